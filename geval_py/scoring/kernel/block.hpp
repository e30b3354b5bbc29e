// A block of lines, scored: the fast twin of reference.py, with the same losses and flags from the same bytes.

#pragma once

#include <cstddef>
#include <cstdint>

#include "flags.hpp"
#include "line.hpp"
#include "text.hpp"

namespace {

// Indices and numbers of lines, and the greatest loss that any of them could have had.
struct BlockResult {
    bool equal = true;  // whether there are as many lines as expected ones
    std::ptrdiff_t malformed = NONE, undecided = NONE;  // the first malformed line, and the first without a kind of error
    double bound = 0;
    std::size_t far_above_one = 0;  // lines
};

// Scores the lines, of which there must be as many as expected ones.
BlockResult score_block(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line, bool thorough,
                  double* losses, std::uint32_t* flags) {
    BlockResult result;
    Line line(bits, thorough ? Purpose::rules : Purpose::losses);
    for (std::size_t i = 0; i < lines; ++i) {
        if (outputs.begin == outputs.end) return {false};
        unsigned marks;
        const Text text = take_line(outputs), word = take_line(expected);
        losses[i] = line.score(text, outputs.end, word, expected.end, static_cast<std::uint32_t>(first_line + i), marks);
        flags[i] = static_cast<std::uint32_t>(marks);
        if (marks & MALFORMED) {
            const auto index = static_cast<std::ptrdiff_t>(i);
            if (result.malformed == NONE) result.malformed = index;
            if (result.undecided == NONE && !(marks & ERROR_KINDS)) result.undecided = index;
        }
    }
    result.equal = outputs.begin == outputs.end;
    result.bound = line.bound();
    result.far_above_one = line.far_above_one();
    return result;
}

}  // namespace
