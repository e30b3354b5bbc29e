// The entries of lines; the fast twin of reference.read_guesses.

#pragma once

#include <algorithm>
#include <cmath>
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
    std::ptrdiff_t malformed = NONE;  // the first malformed line, at which reading ends

    // Reads a block; returns whether it has as many lines as expected ones.
    bool read(Text outputs, Text expected, int bits, std::uint64_t first_line) {
        Line line(bits, Purpose::entries);
        const std::size_t lines = count_lines(expected);
        for (std::size_t i = 0; i < lines; ++i) {
            if (outputs.begin == outputs.end) return false;
            unsigned flags;
            const Text text = take_line(outputs), word = take_line(expected);
            line.score(text, outputs.end, word, expected.end, static_cast<std::uint32_t>(first_line + i), flags);
            if (flags & MALFORMED) {
                malformed = static_cast<std::ptrdiff_t>(i);
                return true;
            }
            add(line, flags & VECTOR);
        }
        return outputs.begin == outputs.end;
    }

    // Adds the entries of a line that was read.
    void add(const Line& line, bool vector) {
        const std::size_t before = masses.size();
        vector ? add_vector(line) : line.probabilities_ ? add_probabilities(line) : add_logarithms(line);
        counts.push_back(static_cast<std::int64_t>(masses.size() - before));
    }

  private:
    void add_probabilities(const Line& line) {
        const bool has_rest = !line.rests_.empty();
        const bool divided = line.total_ > 1 || (line.total_ < MIN_TOTAL && has_rest);
        const double divisor = divided ? line.total_ : 1;
        add_entries(line, [divisor](double value) { return value / divisor; });
        const double missing = !divided && line.total_ < MIN_TOTAL ? 1 - line.total_ : 0;
        rests.push_back(line.rests_.sum() / divisor + missing);
    }

    void add_logarithms(const Line& line) {
        const double log_total = line.values_.log_sum_exp(0);
        const bool below = log_total < MIN_LOG_TOTAL, has_rest = !line.rests_.empty();
        const bool divided = log_total > 0 || (below && has_rest);
        const double shift = divided ? line.values_.greatest() : 0;
        const double log_divisor = divided ? line.values_.log_sum_exp(shift) : 0;
        add_entries(line, [=](double value) { return std::exp(value - shift - log_divisor); });
        if (has_rest)
            rests.push_back(std::exp(line.rests_.log_sum_exp(shift) - log_divisor));
        else
            rests.push_back(!divided && below ? -std::expm1(log_total) : 0);
    }

    template <typename Normalise>
    void add_entries(const Line& line, Normalise normalise) {
        for (std::size_t i = 0; i < line.values_.size(); ++i) {
            if (line.entries_[i] == Entry::REST) continue;
            masses.push_back(normalise(line.values_[i]));
            hits.push_back(line.entries_[i] == Entry::HIT);
        }
    }

    void add_vector(const Line& line) {
        const double log_total = line.values_.log_sum_exp(0);
        const bool divided = log_total > 0 || log_total < MIN_LOG_TOTAL;
        const double shift = divided ? line.values_.greatest() : 0;
        const double log_divisor = divided ? line.values_.log_sum_exp(shift) : 0;
        for (std::size_t i = 0; i < line.values_.size(); ++i) {
            masses.push_back(std::exp(line.values_[i] - shift - log_divisor));
            hits.push_back(i == line.bucket_);
        }
        rests.push_back(0);
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
