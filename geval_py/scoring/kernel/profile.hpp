// The fast twin of profile.py: the profile of each line's distribution, and the histogram of all words.
//
// Sums are taken in the twin's order.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "flags.hpp"
#include "line.hpp"
#include "numbers.hpp"
#include "text.hpp"

namespace {

constexpr int OCTAVES = 40, PARTS = 8, BINS = OCTAVES * PARTS;
constexpr int COUNTS = 3;  // of the histogram: words, their mass, and hits
constexpr std::size_t GUIDES = 64;  // of the search for a draw's bin
constexpr int MAX_DRAWS = 10000;
constexpr int MAX_TABLE_BITS = 16;

// A row's columns, in the order of COLUMNS.
enum ProfileColumn {
    LOSS, IS_VECTOR, ENTROPY, WORD_MASS, LISTED, REST, GUESS_MASS, GUESS_RIGHT, WORDS, AHEAD, AMONG, PROFILE_COLUMNS,
};

inline double surprise(double mass) { return mass > 0 ? -mass * std::log(mass) : 0; }

// splitmix64's number at a place of its sequence, in [0, 1).
inline double random_number(std::uint64_t place) {
    std::uint64_t mixed = (place + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((mixed ^ (mixed >> 31)) >> 11) * 0x1p-53;
}

// The bin of a mass: the exponent and the first bits of the mantissa, as they stand in the number.
inline int bin_of(double mass) {
    std::uint64_t bits;
    std::memcpy(&bits, &mass, 8);
    const auto bin = static_cast<std::int64_t>(bits >> 49) - (1023 - OCTAVES) * PARTS;
    return static_cast<int>(std::min<std::int64_t>(BINS - 1, std::max<std::int64_t>(0, bin)));
}

class Profiler {
  public:
    Profiler(int bits, int draws)
        : buckets_count_(std::uint32_t{1} << bits), places_(bits > MAX_TABLE_BITS ? 0 : buckets_count_),
          draws_(static_cast<std::size_t>(draws)), counts_(BINS * COUNTS),
          drawn_(static_cast<std::size_t>(BINS + 1) * static_cast<std::size_t>(draws)) {}

    // Fills a row, which is all zeros, and counts the words of a line that was read.
    void add(const Line& line, double loss, bool vector, std::uint64_t number, double* row) {
        row[LOSS] = loss;
        const Normalisation normalisation = line.normalisation(vector);
        row[IS_VECTOR] = vector;
        masses_.assign(line.words().size(), 0.0);
        for (std::size_t i = 0; i < line.values().size(); ++i) {
            const double mass = normalisation.mass(line.values()[i]);
            if (vector)
                row[ENTROPY] -= mass * normalisation.logarithm(line.values()[i]);
            else if (line.numbers()[i] != NO_WORD)
                masses_[line.numbers()[i]] += mass;
        }
        if (vector) return;
        rest_ = normalisation.rest;
        add_words(line, row);
        row[ENTROPY] = entropy(line);
        count(line.expected_word(), number);
    }

    // For each bin, the counts and the counts of the draws.
    std::vector<double> histogram() const {
        std::vector<double> all;
        all.reserve(counts_.size() + drawn_.size());
        for (std::size_t bin = 0; bin < BINS; ++bin) {
            all.insert(all.end(), counts_.begin() + bin * COUNTS, counts_.begin() + (bin + 1) * COUNTS);
            all.insert(all.end(), drawn_.begin() + bin * draws_, drawn_.begin() + (bin + 1) * draws_);
        }
        return all;
    }

  private:
    struct Bucket {
        std::uint32_t number;
        double mass;  // of its words
    };

    void add_words(const Line& line, double* row) const {
        const std::uint32_t expected = line.expected_word();
        const bool listed = expected != NO_WORD;
        const double own = listed ? masses_[expected] : 0;
        double guess_mass = 0, ahead = 0, among = 0;
        std::size_t guess = NO_WORD;
        for (std::size_t i = 0; i < masses_.size(); ++i) {
            const double mass = masses_[i];
            if (guess == NO_WORD || mass > guess_mass || (mass == guess_mass && comes_after(line.words(), i, guess)))
                guess_mass = mass, guess = i;
            ahead += !listed || mass > own ? mass : 0;
            among += mass == own ? mass : 0;
        }
        row[WORD_MASS] = own;
        row[LISTED] = listed;
        row[REST] = rest_;
        row[GUESS_MASS] = guess_mass;
        row[GUESS_RIGHT] = listed && guess == expected;
        row[WORDS] = static_cast<double>(masses_.size());
        row[AHEAD] = ahead;
        row[AMONG] = listed ? among : rest_;
    }

    // In the order of code points, which is that of the bytes of UTF-8.
    static bool comes_after(const std::vector<Hashed>& words, std::size_t one, std::size_t other) {
        const Text a = words[one].word, b = words[other].word;
        const int order = std::memcmp(a.begin, b.begin, std::min(a.size(), b.size()));
        return order ? order > 0 : a.size() > b.size();
    }

    // The entropy of the buckets.
    double entropy(const Line& line) {
        fill_buckets(line);
        const double share = rest_ / buckets_count_;
        double sum = 0;
        for (const Bucket& bucket : filled_) sum += surprise(bucket.mass + share);
        return sum + static_cast<double>(buckets_count_ - filled_.size()) * surprise(share);
    }

    // The buckets that have words, in order of appearance.
    void fill_buckets(const Line& line) {
        for (const Bucket& bucket : filled_)
            if (!places_.empty()) places_[bucket.number] = 0;
        buckets_.clear(), filled_.clear();
        for (std::size_t i = 0; i < masses_.size(); ++i) {
            const std::uint32_t number = line.words()[i].hash & (buckets_count_ - 1);
            const std::size_t place = find_place(number);
            if (place == filled_.size()) filled_.push_back({number, 0});
            filled_[place].mass += masses_[i];
        }
    }

    // Where a bucket is, or will be, among those filled: looked up in a table of all, unless it would be large.
    std::size_t find_place(std::uint32_t bucket) {
        if (places_.empty()) return buckets_.add(bucket, bucket);
        if (!places_[bucket]) places_[bucket] = static_cast<std::uint32_t>(filled_.size() + 1);
        return places_[bucket] - 1;
    }

    void count(std::uint32_t expected, std::uint64_t number) {
        if (masses_.empty()) return;
        double of_bins[BINS] = {};
        bool has_words[BINS] = {};
        for (std::size_t i = 0; i < masses_.size(); ++i) {
            const int bin = bin_of(masses_[i]);
            of_bins[bin] += masses_[i];
            has_words[bin] = true;
            double* counts = &counts_[static_cast<std::size_t>(bin) * COUNTS];
            counts[0] += 1, counts[1] += masses_[i], counts[2] += i == expected;
        }
        bins_.clear(), sums_.clear();
        double sum = 0;
        for (int bin = BINS; bin-- > 0;)
            if (has_words[bin]) bins_.push_back(bin), sums_.push_back(sum += of_bins[bin]);
        bins_.push_back(BINS), sums_.push_back(INFINITE);  // a word of the rest, whose draws nobody reads
        // Where the search for a chance begins, by its first bits. Most end there or one further on, without a branch
        // that could not be predicted.
        std::uint32_t begin[GUIDES];
        for (std::size_t guide = 0, place = 0; draws_ && guide < GUIDES; ++guide) {
            while (sums_[place] <= static_cast<double>(guide) / GUIDES) ++place;
            begin[guide] = static_cast<std::uint32_t>(place);
        }
        for (std::size_t draw = 0; draw < draws_; ++draw) {
            const double chance = random_number(number * draws_ + draw);
            std::size_t drawn = begin[static_cast<std::size_t>(chance * GUIDES)];
            drawn += sums_[drawn] <= chance;
            while (sums_[drawn] <= chance) ++drawn;
            ++drawn_[static_cast<std::size_t>(bins_[drawn]) * draws_ + draw];
        }
    }

    std::uint32_t buckets_count_;
    std::vector<std::uint32_t> places_;
    std::size_t draws_;
    std::vector<double> masses_, sums_;
    std::vector<Bucket> filled_;
    std::vector<int> bins_;
    double rest_ = 0;
    WordSet buckets_;
    std::vector<double> counts_;
    std::vector<std::uint32_t> drawn_;
};

// The columns one after the other, and the histogram.
struct ProfiledBlock {
    std::vector<double> columns, histogram;
    BlockEnd end;
};

inline ProfiledBlock profile_block(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line,
                                   int draws) {
    ProfiledBlock block;
    block.columns.resize(lines * PROFILE_COLUMNS);
    Line line(bits, Purpose::profiles);
    Profiler profiler(bits, draws);
    block.end = read_block(line, outputs, expected, lines, first_line, false, [&](std::size_t i, double loss, unsigned flags) {
        double row[PROFILE_COLUMNS] = {};
        profiler.add(line, loss, flags & VECTOR, first_line + i, row);
        for (std::size_t column = 0; column < PROFILE_COLUMNS; ++column) block.columns[column * lines + i] = row[column];
    });
    block.histogram = profiler.histogram();
    return block;
}

}  // namespace
