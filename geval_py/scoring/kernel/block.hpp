// A block of lines, scored: the fast twin of reference.py, with the same losses and flags from the same bytes.

#pragma once

#include <cstddef>
#include <cstdint>

#include "flags.hpp"
#include "line.hpp"
#include "text.hpp"

namespace {

// How a block ended, the first malformed line without a kind of error, and the greatest loss that any line could have had.
struct BlockResult {
    BlockEnd end;
    std::ptrdiff_t undecided = NONE;
    double bound = 0;
    std::size_t far_above_one = 0;  // lines
};

// Scores the lines, of which there must be as many as expected ones.
BlockResult score_block(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line, bool thorough,
                  double* losses, std::uint32_t* flags) {
    BlockResult result;
    Line line(bits, thorough ? Purpose::rules : Purpose::losses);
    result.end = read_block(line, outputs, expected, lines, first_line, true, [&](std::size_t i, double loss, unsigned marks) {
        losses[i] = loss, flags[i] = marks;
        if (marks & MALFORMED && !(marks & ERROR_KINDS) && result.undecided == NONE)
            result.undecided = static_cast<std::ptrdiff_t>(i);
    });
    result.bound = line.bound();
    result.far_above_one = line.far_above_one();
    return result;
}

}  // namespace
