// The fast twin of profile.py: the profile of each line's distribution.
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

constexpr double EDGES[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};  // of the bins of words
constexpr int WORD_BINS = 10;
constexpr int MAX_TABLE_BITS = 16;

// A row's columns, in the order of COLUMNS.
enum ProfileColumn {
    LOSS, IS_VECTOR, ENTROPY, VARIANCE, WORD_MASS, LISTED, REST, GUESS_MASS, GUESS_RIGHT, WORDS, MASSES,
    COUNTS = MASSES + WORD_BINS, PROFILE_COLUMNS = COUNTS + WORD_BINS,
};

class Profiler {
  public:
    explicit Profiler(int bits)
        : buckets_count_(std::uint32_t{1} << bits), places_(bits > MAX_TABLE_BITS ? 0 : buckets_count_) {}

    // Fills a row, which is all zeros, for a line that was read.
    void add(const Line& line, double loss, bool vector, double* row) {
        row[LOSS] = loss;
        row[IS_VECTOR] = vector;
        const Normalisation normalisation = line.normalisation(vector);
        masses_.assign(line.words().size(), 0.0);
        chances_.clear();
        for (std::size_t i = 0; i < line.values().size(); ++i) {
            const double mass = normalisation.mass(line.values()[i]);
            if (vector)
                chances_.push_back({mass, -normalisation.logarithm(line.values()[i])});
            else if (line.numbers()[i] != NO_WORD)
                masses_[line.numbers()[i]] += mass;
        }
        if (!vector) {
            row[REST] = normalisation.rest;
            add_words(line, row);
            add_buckets(line, normalisation.rest / buckets_count_);
        }
        for (const Chance& chance : chances_) row[ENTROPY] += chance.mass * chance.loss;
        for (const Chance& chance : chances_) {
            const double deviation = chance.loss - row[ENTROPY];
            row[VARIANCE] += chance.mass * (deviation * deviation);
        }
    }

  private:
    struct Bucket {
        std::uint32_t number;
        double mass;  // of its words
    };
    struct Chance {
        double mass, loss;  // the probability of a loss
    };

    void add_words(const Line& line, double* row) const {
        const std::uint32_t expected = line.expected_word();
        const bool listed = expected != NO_WORD;
        std::size_t guess = NO_WORD;
        for (std::size_t i = 0; i < masses_.size(); ++i) {
            const double mass = masses_[i];
            if (guess == NO_WORD || mass > masses_[guess] ||
                (mass == masses_[guess] && comes_after(line.words(), i, guess)))
                guess = i;
            int bin = 0;
            while (bin < WORD_BINS - 1 && mass >= EDGES[bin]) ++bin;
            row[MASSES + bin] += mass;
            row[COUNTS + bin] += 1;
        }
        row[WORD_MASS] = listed ? masses_[expected] : 0;
        row[LISTED] = listed;
        row[GUESS_MASS] = guess == NO_WORD ? 0 : masses_[guess];
        row[GUESS_RIGHT] = listed && guess == expected;
        row[WORDS] = static_cast<double>(masses_.size());
    }

    // In the order of code points, which is that of the bytes of UTF-8.
    static bool comes_after(const std::vector<Hashed>& words, std::size_t one, std::size_t other) {
        const Text a = words[one].word, b = words[other].word;
        const int order = std::memcmp(a.begin, b.begin, std::min(a.size(), b.size()));
        return order ? order > 0 : a.size() > b.size();
    }

    // Adds the chance of each bucket that has words, and that of all others; each bucket has a share of the rest.
    void add_buckets(const Line& line, double share) {
        fill_buckets(line);
        for (const Bucket& bucket : filled_)
            if (const double mass = bucket.mass + share; mass > 0) chances_.push_back({mass, -std::log(mass)});
        if (share > 0)
            chances_.push_back({static_cast<double>(buckets_count_ - filled_.size()) * share, -std::log(share)});
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

    std::uint32_t buckets_count_;
    std::vector<std::uint32_t> places_;
    std::vector<double> masses_;
    std::vector<Chance> chances_;
    std::vector<Bucket> filled_;
    WordSet buckets_;
};

// The columns one after the other.
struct ProfiledBlock {
    std::vector<double> columns;
    BlockEnd end;
};

inline ProfiledBlock profile_block(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line) {
    ProfiledBlock block;
    block.columns.resize(lines * PROFILE_COLUMNS);
    Line line(bits, Purpose::profiles);
    Profiler profiler(bits);
    block.end = read_block(line, outputs, expected, lines, first_line, false, [&](std::size_t i, double loss, unsigned flags) {
        double row[PROFILE_COLUMNS] = {};
        profiler.add(line, loss, flags & VECTOR, row);
        for (std::size_t column = 0; column < PROFILE_COLUMNS; ++column) block.columns[column * lines + i] = row[column];
    });
    return block;
}

}  // namespace
