// The shares of frequent words in the buckets of expected words; the fast twin of reference.bucket_shares.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decoding.hpp"
#include "murmur.hpp"
#include "packed_words.hpp"
#include "text.hpp"

namespace {

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
