// The entries of lines; the fast twin of reference.read_guesses.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decoding.hpp"
#include "flags.hpp"
#include "line.hpp"
#include "murmur.hpp"
#include "packed_words.hpp"
#include "text.hpp"

namespace {

// The entries of all lines of a block, normalised.
class GuessList {
  public:
    std::vector<std::int64_t> counts;
    std::vector<double> masses, rests;
    std::vector<char> hits;

    BlockEnd read(Text outputs, Text expected, int bits, std::uint64_t first_line) {
        Line line(bits, Purpose::entries);
        return read_block(line, outputs, expected, count_lines(expected), first_line, false,
                          [&](std::size_t, double, unsigned flags) { add(line, flags & VECTOR); });
    }

    // Adds the entries of a line that was read.
    void add(const Line& line, bool vector) {
        const std::size_t before = masses.size();
        const Normalisation normalisation = line.normalisation(vector);
        for (std::size_t i = 0; i < line.values_.size(); ++i) {
            if (!vector && !line.listed_[i].word.size()) continue;
            masses.push_back(normalisation.mass(line.values_[i]));
            hits.push_back((vector ? i : line.listed_[i].hash & line.mask_) == line.bucket_);
        }
        rests.push_back(normalisation.rest);
        counts.push_back(static_cast<std::int64_t>(masses.size() - before));
    }
};

// Sums, for each expected word, the shares of the words in its bucket; returns whether there are as many words as
// shares.
bool sum_shares(Text words, const double* shares, std::size_t count, Text expected, int bits, std::uint64_t first_line,
                std::vector<double>& sums) {
    const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
    const PackedWords packed(words);
    if (packed.size() != count) return false;
    const auto find_words = choose_loops<double>().find_words;
    std::string copy;
    std::vector<std::uint32_t> ids;
    for (std::uint64_t number = first_line; expected.begin != expected.end; ++number) {
        const auto seed = static_cast<std::uint32_t>(number);
        const Text word = take_line(expected);
        ids.clear();
        find_words(packed, {seed, mask, murmur3(decode(word, expected.end, copy), seed)}, ids);
        std::sort(ids.begin(), ids.end());  // so that the sum has one order
        double sum = 0;
        for (std::uint32_t id : ids) sum += shares[id];
        sums.push_back(sum);
    }
    return true;
}

}  // namespace
