// Lines of outputs, mixed: the fast twin of rewriting.py, for lines of words.
//
// Sums are taken in the twin's order.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "formatting.hpp"
#include "line.hpp"

namespace {

// How lines are mixed. A row of weights has those of the uniform distribution, of the outputs, of the outputs with their
// rest given to the frequent words, and of the frequent words. There is a row more than edges.
struct Recipe {
    const double *weights, *edges, *shares;
    std::size_t edge_count;
    Text words;  // frequent ones, as lines, padded; their shares and, last, that of all other words
};

class Rewriter {
  public:
    Rewriter(const Recipe& recipe, std::size_t outputs, int bits, std::vector<char>& to)
        : recipe_(recipe), parts_(outputs), rests_(outputs), to_(to) {
        for (std::size_t i = 0; i < outputs; ++i) lines_.push_back(std::make_unique<Line>(bits, Purpose::profiles));
        for (Text words = recipe.words; words.begin != words.end;) frequent_.push_back(take_line(words));
    }

    // Rewrites the next line of each output, whose texts begin there; false for a line that the twin has to rewrite.
    bool rewrite(std::vector<Text>& outputs, std::uint64_t number) {
        const auto seed = static_cast<std::uint32_t>(number);
        const std::size_t count = outputs.size();
        words_.clear(), sums_.clear();
        double clarity = 0;  // the probability of the likeliest word and of the rest
        for (std::size_t i = 0; i < count; ++i) {
            unsigned flags;
            const Text text = take_line(outputs[i]);
            lines_[i]->score(text, outputs[i].end, {NOTHING, NOTHING}, NOTHING + PADDING, seed, flags);
            if (flags & (MALFORMED | VECTOR) || !read_words(*lines_[i], parts_[i])) return false;
            rests_[i] = lines_[i]->normalisation(false).rest;
            double greatest = 0;
            for (const Part& part : parts_[i]) greatest = std::max(greatest, part.mass);
            clarity += greatest + rests_[i];
        }
        const std::size_t bin = static_cast<std::size_t>(
            std::upper_bound(recipe_.edges, recipe_.edges + recipe_.edge_count, clarity / static_cast<double>(count)) -
            recipe_.edges);
        const double *row = recipe_.weights + bin * (2 * count + 2), *kept = row + 1, *given = kept + count;
        double to_words = given[count], rest = row[0];
        for (std::size_t i = 0; i < count; ++i) {
            const double factor = kept[i] + given[i];
            for (const Part& part : parts_[i]) sums_[part.number].mass += factor * part.mass;
            to_words += given[i] * rests_[i];
            rest += kept[i] * rests_[i];
        }
        return add_frequent(to_words, seed) && write(rest + to_words * recipe_.shares[frequent_.size()]);
    }

  private:
    struct Sum {
        Text word;
        double mass;
    };

    // The mass of a word of a line, and the number of its sum.
    struct Part {
        std::size_t number;
        double mass;
    };

    // Reads the masses of the words of a line.
    bool read_words(const Line& line, std::vector<Part>& parts) {
        const Normalisation normalisation = line.normalisation(false);
        parts.clear();
        for (const Hashed& word : line.words()) {
            const Sum* sum = sum_of(word);
            if (!sum) return false;
            parts.push_back({static_cast<std::size_t>(sum - sums_.data()), 0});
        }
        for (std::size_t i = 0; i < line.values().size(); ++i)
            if (line.numbers()[i] != NO_WORD) parts[line.numbers()[i]].mass += normalisation.mass(line.values()[i]);
        return true;
    }

    bool add_frequent(double mass, std::uint32_t seed) {
        for (std::size_t i = 0; i < frequent_.size(); ++i) {
            Sum* sum = sum_of({frequent_[i], murmur3(frequent_[i], seed)});
            if (!sum) return false;
            sum->mass += mass * recipe_.shares[i];
        }
        return true;
    }

    // The sum of a word; null if another word seems to be the same.
    Sum* sum_of(const Hashed& hashed) {
        const Text word = hashed.word;
        const std::uint32_t number = words_.add(word, hashed.hash);
        if (number == sums_.size()) return &sums_.emplace_back(Sum{word, 0});
        const Text other = sums_[number].word;
        return std::equal(word.begin, word.end, other.begin, other.end) ? &sums_[number] : nullptr;
    }

    // The twin of wordprobs.line_of_masses.
    bool write(double rest) {
        sums_.push_back({{NOTHING, NOTHING}, rest});
        const std::size_t before = to_.size();
        std::size_t most = MAX_DIGITS;
        for (const Sum& sum : sums_) most += sum.word.size() + MAX_DIGITS + 2;
        to_.resize(before + most);
        double rounded = 0, largest = 0, of_largest = 0;
        char *end = to_.data() + before, *from = end, *until = end;  // the digits of the largest mass
        for (const Sum& sum : sums_) {
            if (!(sum.mass > 0)) continue;
            std::memcpy(end, sum.word.begin, 8);  // most words are no longer
            if (sum.word.size() > 8) std::memcpy(end + 8, sum.word.begin + 8, sum.word.size() - 8);
            char* const digits = end + sum.word.size() + 1;
            digits[-1] = ':';
            double value = 0;
            end = write_short(digits, sum.mass, 6, &value);
            *end++ = ' ';
            if (!value) read_number(digits, value);
            rounded += value;
            if (sum.mass > largest) largest = sum.mass, of_largest = value, from = digits, until = end - 1;
        }
        if (until == from) {
            to_.resize(before);
            return false;
        }
        end[-1] = '\n';
        char digits[MAX_DIGITS];
        const auto length = write_number(digits, 1 - (rounded - of_largest), 12) - digits;
        std::memmove(from + length, until, static_cast<std::size_t>(end - until));
        std::copy_n(digits, length, from);
        to_.resize(static_cast<std::size_t>(end - until + length + from - to_.data()));
        return true;
    }

    const Recipe& recipe_;
    std::vector<Text> frequent_;
    std::vector<std::unique_ptr<Line>> lines_;
    std::vector<std::vector<Part>> parts_;  // of each output
    std::vector<double> rests_;
    WordSet words_;
    std::vector<Sum> sums_;
    std::vector<char>& to_;
};

}  // namespace
