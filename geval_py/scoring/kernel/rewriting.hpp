// Lines of outputs, mixed or tuned: the fast twin of rewriting.py, for lines of words.
//
// Sums are taken in the twin's order.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "formatting.hpp"
#include "guesses.hpp"

namespace {

constexpr double REST_OFFSET = 0.001, MIN_PART = 1e-6, MAX_PART = 1 - 1e-6, MAX_FIGURE = 4;
constexpr std::size_t TUNING_NUMBERS = 3, FIGURES = 4, BY_LINE_NUMBERS = 2 * FIGURES + 2 * (FIGURES + 1);

// How lines are rewritten. Without tuning, the weights are those of the outputs and, last, of the frequent words.
struct Recipe {
    const double *weights, *shares;
    Text words;              // frequent ones, as lines, padded, with as many shares
    const double* tuning;    // the temperature, lambda, nu and, if they depend on the line, the numbers of ByLine; or null
    bool by_line;
};

class Rewriter {
  public:
    Rewriter(const Recipe& recipe, std::size_t outputs, int bits, std::vector<char>& to)
        : recipe_(recipe), guesses_(outputs), to_(to) {
        for (std::size_t i = 0; i < outputs; ++i) lines_.push_back(std::make_unique<Line>(bits, Purpose::entries));
        for (Text words = recipe.words; words.begin != words.end;) frequent_.push_back(take_line(words));
        for (std::size_t i = 0; i < frequent_.size(); ++i) shared_ += recipe.shares[i];
    }

    // Rewrites the next line of each output, whose texts begin there; false for a line that the twin has to rewrite.
    bool rewrite(std::vector<Text>& outputs, std::uint64_t number) {
        const auto seed = static_cast<std::uint32_t>(number);
        words_.clear(), sums_.clear();
        double rest = 0;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            unsigned flags;
            const Text text = take_line(outputs[i]);
            lines_[i]->score(text, outputs[i].end, {NOTHING, NOTHING}, NOTHING + PADDING, seed, flags);
            if (flags & (MALFORMED | VECTOR)) return false;
            GuessList& guesses = guesses_[i];
            guesses.masses.clear(), guesses.hits.clear(), guesses.rests.clear(), guesses.counts.clear();
            guesses.add(*lines_[i], false);
            double of_line = guesses.rests[0], to_words = 0;
            if (recipe_.tuning) to_words = tune(guesses.masses, of_line);
            if (!add(lines_[i]->listed(), guesses.masses, recipe_.tuning ? 1 : recipe_.weights[i])) return false;
            if (recipe_.tuning && to_words != 0 && !add_frequent(to_words, seed)) return false;
            rest += recipe_.tuning ? of_line - to_words * shared_ : recipe_.weights[i] * of_line;
        }
        if (!recipe_.tuning && !frequent_.empty()) {
            const double weight = recipe_.weights[outputs.size()];
            if (!add_frequent(weight, seed)) return false;
            rest += weight * std::max(0.0, 1 - shared_);
        }
        return write(rest);
    }

  private:
    struct Sum {
        Text word;
        double mass, part;  // in all, and of the line that is being added
    };

    // Tunes the masses of entries and the rest; returns the mass that goes to the frequent words.
    double tune(std::vector<double>& masses, double& rest) const {
        double lambda = recipe_.tuning[1], nu = recipe_.tuning[2], greatest = 0, total = 0;
        for (double mass : masses) greatest = std::max(greatest, mass);
        if (recipe_.by_line) {
            const double* numbers = recipe_.tuning + TUNING_NUMBERS;
            const double figures[FIGURES] = {std::log(rest + REST_OFFSET), greatest,
                                             std::log1p(static_cast<double>(masses.size())), masses.empty() ? 1.0 : 0.0};
            double places[2] = {numbers[2 * FIGURES], numbers[3 * FIGURES + 1]};
            for (std::size_t i = 0; i < FIGURES; ++i) {
                const double apart = (figures[i] - numbers[i]) / numbers[FIGURES + i];
                const double x = std::min(std::max(apart, -MAX_FIGURE), MAX_FIGURE);
                places[0] += numbers[2 * FIGURES + 1 + i] * x, places[1] += numbers[3 * FIGURES + 2 + i] * x;
            }
            for (double& place : places)
                place = place > -700 ? std::min(std::max(1 / (1 + std::exp(-place)), MIN_PART), MAX_PART) : MIN_PART;
            lambda = places[0], nu = places[1];
        }
        double scale = 1 - lambda;
        if (recipe_.tuning[0] != 1 && greatest != 0) {
            const double power = 1 / recipe_.tuning[0];
            for (double& mass : masses) total += mass = std::pow(mass / greatest, power);
            scale = scale * (1 - rest) / total;
        }
        for (double& mass : masses) mass = scale * mass;
        rest = (1 - lambda) * rest + lambda;
        return rest * nu;
    }

    // Adds the masses of a line's entries, those of equal words first, by a weight.
    bool add(const std::vector<Hashed>& words, const std::vector<double>& masses, double weight) {
        touched_.clear();
        std::size_t i = 0;
        for (const Hashed& word : words) {
            if (!word.word.size()) continue;
            Sum* sum = sum_of(word);
            if (!sum) return false;
            if (sum->part < 0) sum->part = 0, touched_.push_back(static_cast<std::size_t>(sum - sums_.data()));
            sum->part += masses[i++];
        }
        for (std::size_t number : touched_) sums_[number].mass += weight * sums_[number].part, sums_[number].part = -1;
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
        if (number == sums_.size()) return &sums_.emplace_back(Sum{word, 0, -1});
        const Text other = sums_[number].word;
        return std::equal(word.begin, word.end, other.begin, other.end) ? &sums_[number] : nullptr;
    }

    // The twin of wordprobs.line_of_masses.
    bool write(double rest) {
        sums_.push_back({{NOTHING, NOTHING}, rest, 0});
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
    double shared_ = 0;
    std::vector<std::unique_ptr<Line>> lines_;
    std::vector<GuessList> guesses_;
    WordSet words_;
    std::vector<Sum> sums_;
    std::vector<std::size_t> touched_;
    std::vector<char>& to_;
};

}  // namespace
