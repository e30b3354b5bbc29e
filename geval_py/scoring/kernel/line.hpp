// A line of an output, read once and scored.
//
// Only the sum of the values, the values of the expected word's bucket and of the rest, and a few flags are kept; the
// values themselves stay in a buffer that is reused from line to line, for lines that turn out to hold logarithms. A
// malformed line is only marked: the reference parses it again and makes the error, so that each error text exists once.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "decoding.hpp"
#include "flags.hpp"
#include "mistakes.hpp"
#include "murmur.hpp"
#include "numbers.hpp"
#include "secrets.hpp"
#include "text.hpp"

namespace {

constexpr double TOLERANCE = 1e-8;
constexpr double OVERSHOOT = 1e-6;
constexpr double MIN_DIVIDED = 1e-280;
constexpr double MIN_TOTAL = 1.0 - TOLERANCE;
const double MIN_LOG_TOTAL = std::log1p(-TOLERANCE);
const double MAX_LOG_PLAUSIBLE = std::log(1.5);

// Numbers that outlive a line, so that their memory is reused for the next one.
class Numbers {
  public:
    void clear() { size_ = 0; }
    void add(double value) {
        if (size_ == values_.size()) values_.resize(std::max<std::size_t>(64, 2 * size_));
        values_[size_++] = value;
    }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    double operator[](std::size_t i) const { return values_[i]; }
    double sum() const {
        double total = 0;
        for (std::size_t i = 0; i < size_; ++i) total += values_[i];
        return total;
    }
    double greatest() const {
        double most = -INFINITE;
        for (std::size_t i = 0; i < size_; ++i) most = std::max(most, values_[i]);
        return most;
    }
    double least() const {
        double least = INFINITE;
        for (std::size_t i = 0; i < size_; ++i) least = std::min(least, values_[i]);
        return least;
    }
    // ln of the sum of exp of the numbers less an offset.
    double log_sum_exp(double offset) const {
        const double most = greatest() - offset;
        if (most == -INFINITE) return most;
        double total = 0;
        for (std::size_t i = 0; i < size_; ++i) total += std::exp((values_[i] - offset) - most);
        return most + std::log(total);
    }

  private:
    std::vector<double> values_;
    std::size_t size_ = 0;
};

// The words of a line, numbered in order. Words are compared by their hash and their first eight bytes; different words
// made to agree in both count as the same.
class WordSet {
  public:
    void clear() {
        first_ += size_;
        size_ = 0;
        if (first_ >> 31) {  // the numbers may run out: forget all of them
            std::fill(slots_.begin(), slots_.end(), Slot{});
            first_ = 1;
        }
    }

    std::size_t size() const { return size_; }

    // The number of the word on its line, from 0: the size before, if it is new.
    std::uint32_t add(Text word, std::uint32_t hash) {
        const std::size_t length = word.size();
        return add(length >= 8 ? load8(word.begin) : load8(word.begin) & ((std::uint64_t{1} << 8 * length) - 1), hash);
    }

    std::uint32_t add(std::uint64_t first, std::uint32_t hash) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        const std::uint32_t next = first_ + size_, found = insert({first, hash, next});
        size_ += found == next;
        return found - first_;
    }

  private:
    struct Slot {
        std::uint64_t first = 0;
        std::uint32_t hash = 0, number = 0;  // the number in all lines, from 1; a smaller one than this line's is free
    };

    std::uint32_t insert(Slot word) {
        const std::size_t mask = slots_.size() - 1;
        // The top bits depend on all bits of both and on unpredictable numbers, so that nobody can choose words that
        // all want the same slot.
        const std::uint64_t mixed = word.first * SECRETS.first + word.hash * SECRETS.hash;
        for (std::size_t i = mixed >> leading_zeros(mask);; i = (i + 1) & mask) {
            if (slots_[i].number < first_) return (slots_[i] = word).number;
            if (slots_[i].hash == word.hash && slots_[i].first == word.first) return slots_[i].number;
        }
    }

    void grow() {
        std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.number >= first_) insert(slot);
    }

    std::vector<Slot> slots_;
    std::uint32_t first_ = 1, size_ = 0;
};

double log_add_exp(double a, double b) {
    const double most = std::max(a, b);
    if (most == -INFINITE) return most;
    return most + std::log(std::exp(a - most) + std::exp(b - most));
}

inline double loss_of_log(double log_mass) { return std::max(0.0, -log_mass); }

// The purpose of reading: losses, the rules of the checker too (repeated words, rounding), or distributions.
enum class Purpose { losses, rules, profiles };

// A word of a line and its hash.
struct Hashed {
    Text word;
    std::uint32_t hash;
};

constexpr std::uint32_t NO_WORD = ~std::uint32_t{0};

// How the values of a line become masses, and the mass of the rest.
struct Normalisation {
    bool probabilities;
    double shift, divisor, rest;
    double logarithm(double value) const { return value - shift - divisor; }
    double mass(double value) const { return probabilities ? value / divisor : std::exp(logarithm(value)); }
};

class Line {
  public:
    Line(int bits, Purpose purpose) : purpose_(purpose), mask_((std::uint32_t{1} << bits) - 1), share_(1.0 / (mask_ + 1.0)) {}

    // Reads and scores a line; the flags say whether the loss is valid. The texts around line and expected end at the
    // limits.
    double score(Text line, const char* line_limit, Text expected, const char* expected_limit, std::uint32_t seed,
                 unsigned& flags) {
        const unsigned byte_flags_only = flags = byte_flags(line);
        line = decode(line, line_limit, line_copy_, flags & CARRIAGE_RETURN, flags & NOT_ASCII);
        expected = decode(expected, expected_limit, expected_copy_);
        expected_ = {expected, murmur3(expected, seed)};
        const std::uint32_t bucket = bucket_ = expected_.hash & mask_;
        values_.clear(), hits_.clear(), rests_.clear();
        if (!std::memchr(line.begin, ':', line.size())) {
            flags |= VECTOR;
            if (read_vector(line)) return vector_loss(bucket, flags);
        } else if (read_entries(line, seed, bucket, flags)) {
            return entries_loss(flags);
        }
        flags = byte_flags_only | MALFORMED | error_kind(line);
        return std::numeric_limits<double>::quiet_NaN();
    }

    // The line read last, for profiles: the values; the number of each one's word, NO_WORD for the rest; the distinct
    // words; and the number of the expected word, if it is listed.
    const Numbers& values() const { return values_; }
    const Numbers& rests() const { return rests_; }
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }
    const std::vector<Hashed>& words() const { return distinct_; }
    std::uint32_t expected_word() const { return expected_word_; }

    // How the values of the line read last become masses: the twin of distribution_of.
    Normalisation normalisation(bool vector) const {
        const bool has_rest = !rests_.empty();
        if (!vector && probabilities_) {
            const bool below = total_ < MIN_TOTAL;
            const double divisor = total_ > 1 || (below && has_rest) ? total_ : 1;
            return {true, 0, divisor, rests_.sum() / divisor + (below && !has_rest ? 1 - total_ : 0)};
        }
        const double log_total = values_.log_sum_exp(0);
        const bool below = log_total < MIN_LOG_TOTAL, divides = log_total > 0 || (below && (has_rest || vector));
        const double shift = divides ? values_.greatest() : 0, divisor = divides ? values_.log_sum_exp(shift) : 0;
        const double missing = below && !divides ? -std::expm1(log_total) : 0;
        return {false, shift, divisor, has_rest ? std::exp(rests_.log_sum_exp(shift) - divisor) : missing};
    }

    // The greatest loss that any of the lines read could have had, with a word whose bucket has no more than its share
    // of the rest.
    double bound() const { return std::max(bound_, least_mass_ > 0 ? loss_of_log(std::log(least_mass_)) : INFINITE); }
    std::size_t far_above_one() const { return far_above_one_; }  // lines with the flag
    bool are_probabilities() const { return probabilities_; }

  private:
    bool read_entries(const Text line, const std::uint32_t seed, const std::uint32_t bucket, unsigned& flags) {
        switch (purpose_) {
            case Purpose::rules: return read_entries<Purpose::rules>(line, seed, bucket, flags);
            case Purpose::profiles: return read_entries<Purpose::profiles>(line, seed, bucket, flags);
            default: return read_entries<Purpose::losses>(line, seed, bucket, flags);
        }
    }

    bool read_vector(Text line) {
        const char* p = line.begin;
        for (;;) {
            double value;
            p = read_number(p, value);
            if (!p || std::isinf(value)) return false;
            values_.add(value);
            if (p == line.end) return values_.size() == mask_ + std::size_t{1};
            if (*p++ != ' ') return false;
        }
    }

    // Compiled once for each purpose, so that plain scoring does no work for the others.
    template <Purpose purpose>
    bool read_entries(const Text line, const std::uint32_t seed, const std::uint32_t bucket, unsigned& flags) {
        constexpr bool thorough = purpose == Purpose::rules, whole = purpose == Purpose::profiles;
        const std::uint32_t mask = mask_;
        double least = INFINITE, most = -INFINITE, total = 0, rounding = 0;
        bool zero = false, tiny = false;
        if (thorough || whole) words_.clear();
        if (whole) numbers_.clear(), distinct_.clear(), expected_word_ = NO_WORD;
        const char* p = line.begin;
        for (;;) {
            Text word{p, find_word_end(p, line.end)};
            double value;
            std::int64_t exponent;
            p = word.end == line.end || *word.end == ' ' ? nullptr : read_number(word.end + 1, value, exponent);
            if (!p || (p != line.end && *p != ' ')) {
                p = read_long_entry(word, line.end, value, exponent, flags);
                if (!p) return false;
            }
            if (std::isinf(value)) return false;
            values_.add(value);
            least = std::min(least, value), most = std::max(most, value);
            total += value;
            if (thorough) {
                rounding += half_unit(exponent);
                tiny |= value > 0 && value < MIN_DIVIDED;
            }
            if (word.begin == word.end) {
                rests_.add(value);
                if (whole) numbers_.push_back(NO_WORD);
            } else {
                zero |= value == 0;
                const std::uint32_t hash = murmur3(word, seed);
                if ((hash & mask) == bucket) hits_.add(value);
                if (thorough && words_.size() != words_.add(word, hash)) flags |= REPEATED;
                if (whole) add_word({word, hash});
            }
            if (p == line.end) break;
            ++p;
        }
        total_ = total;
        rounding_ = rounding;
        probabilities_ = least >= 0 && most > 0 && most <= 1;
        if (zero) flags |= ZERO_ENTRY;
        if (tiny) flags |= TINY;
        if (thorough && rests_.size() > 1) flags |= REPEATED;
        if (least == 0 && most == 0) flags |= ALL_ZERO;
        return true;
    }

    void add_word(Hashed found) {
        const std::uint32_t number = words_.add(found.word, found.hash);
        numbers_.push_back(number);
        if (number == distinct_.size()) distinct_.push_back(found);
        const Text word = found.word, expected = expected_.word;
        if (found.hash == expected_.hash && std::equal(word.begin, word.end, expected.begin, expected.end))
            expected_word_ = number;
    }

    // Reads an entry whose word has colons; returns its end, or nullptr if it is malformed.
    static const char* read_long_entry(Text& word, const char* line_end, double& value, std::int64_t& exponent,
                                       unsigned& flags) {
        const char* end = std::find(word.begin, line_end, ' ');
        const char* colon = end;
        while (colon != word.begin && *--colon != ':') {
        }
        word.end = colon;
        if (colon == end || *colon != ':' || read_number(colon + 1, value, exponent) != end) return nullptr;
        for (const char* p = word.begin; p != word.end && p + 1 != word.end; ++p)  // a last one is as in `5:00,`
            if ((*p == ',' || *p == ';' || *p == '\t') && p != word.begin && p[-1] >= '0' && p[-1] <= '9')
                flags |= SEPARATOR;
        return end;
    }

    // The first colon or space, or the end.
    static const char* find_word_end(const char* p, const char* end) {
        for (;; p += 8) {
            const std::uint64_t bytes = load8(p);
            if (const std::uint64_t found = matches(bytes, ':') | matches(bytes, ' '))
                return std::min(end, p + (lowest_bit(found) >> 3));
            if (end - p <= 8) return end;
        }
    }

    double entries_loss(unsigned& flags) {
        if (!rests_.empty()) flags |= HAS_REST;
        if (rests_.size() == values_.size()) flags |= REST_ALONE;
        return probabilities_ ? probability_loss(flags) : logarithm_loss(flags);
    }

    double probability_loss(unsigned& flags) {
        const double hit = hits_.sum(), rest = rests_.sum();
        flags |= total_flags();
        if (!rests_.empty() && rest == 0) flags |= ZERO_REST;
        const bool off = total_ > 1 || (total_ < MIN_TOTAL && !rests_.empty());
        const double rest_mass = off ? rest / total_ : total_ < MIN_TOTAL ? 1 - total_ : rest;
        const double mass = (off ? hit / total_ : hit) + rest_mass * share_;
        least_mass_ = std::min(least_mass_, rest_mass * share_);
        return mass > 0 ? loss_of_log(std::log(mass)) : INFINITE;
    }

    unsigned total_flags() const {
        const unsigned off = flag_if(total_ > 1 + TOLERANCE, ABOVE_ONE) | flag_if(total_ < MIN_TOTAL, BELOW_ONE);
        const double explained = TOLERANCE + rounding_;
        return off | flag_if(off && total_ <= 1 + explained && total_ >= 1 - explained, ROUNDED);
    }

    double logarithm_loss(unsigned& flags) {
        const double log_share = std::log(share_);
        const double log_total = values_.log_sum_exp(0);
        const bool below = log_total < MIN_LOG_TOTAL;
        flags |= LOGARITHMS | logarithm_flags(log_total) | looks_like_probabilities(log_total);
        far_above_one_ += (flags & FAR_ABOVE_ONE) != 0;
        if (log_total > 0 || (below && !rests_.empty())) {
            const double greatest = values_.greatest(), log_divisor = values_.log_sum_exp(greatest);
            const double log_rest = rests_.log_sum_exp(greatest) + log_share;
            bound_ = std::max(bound_, log_divisor - log_rest);
            return std::max(0.0, log_divisor - log_add_exp(hits_.log_sum_exp(greatest), log_rest));
        }
        const double log_rest = (below ? std::log(-std::expm1(log_total)) : rests_.log_sum_exp(0)) + log_share;
        bound_ = std::max(bound_, -log_rest);
        return loss_of_log(log_add_exp(hits_.log_sum_exp(0), log_rest));
    }

    double vector_loss(std::uint32_t bucket, unsigned& flags) {
        const double log_total = values_.log_sum_exp(0);
        flags |= LOGARITHMS | logarithm_flags(log_total) | flag_if(log_total > MAX_LOG_PLAUSIBLE, FAR_ABOVE_ONE);
        far_above_one_ += (flags & FAR_ABOVE_ONE) != 0;
        if (log_total > 0 || log_total < MIN_LOG_TOTAL) {
            const double greatest = values_.greatest(), log_divisor = values_.log_sum_exp(greatest);
            bound_ = std::max(bound_, log_divisor - (values_.least() - greatest));
            return std::max(0.0, log_divisor - (values_[bucket] - greatest));
        }
        bound_ = std::max(bound_, -values_.least());
        return loss_of_log(values_[bucket]);
    }

    unsigned looks_like_probabilities(double log_total) const {
        std::size_t inside = 0, positive = 0;
        double least = INFINITE, most = -INFINITE;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const bool is_inside = values_[i] >= 0 && values_[i] <= 1;
            inside += is_inside;
            positive += is_inside && values_[i] > 0;
            least = std::min(least, values_[i]), most = std::max(most, values_[i]);
        }
        const bool overshoots = most <= 1 + OVERSHOOT && least >= -OVERSHOOT;  // by rounding
        const bool looks = (overshoots && most >= 0.5) || (positive && 2 * inside > values_.size());
        return flag_if(looks, LOOKS_LIKE_PROBABILITIES) |
               flag_if(!(overshoots && looks) && log_total > MAX_LOG_PLAUSIBLE, FAR_ABOVE_ONE);
    }

    static unsigned logarithm_flags(double log_total) {
        static const double most = std::log1p(TOLERANCE);
        return flag_if(log_total > most, ABOVE_ONE) | flag_if(log_total < MIN_LOG_TOTAL, BELOW_ONE);
    }

    Purpose purpose_;
    std::uint32_t mask_, bucket_ = 0;
    double share_;
    WordSet words_;
    std::vector<Hashed> distinct_;
    std::vector<std::uint32_t> numbers_;
    Hashed expected_{};
    std::uint32_t expected_word_ = NO_WORD;
    Numbers values_, hits_, rests_;
    double total_ = 0, rounding_ = 0;
    double least_mass_ = 1, bound_ = 0;
    std::size_t far_above_one_ = 0;
    bool probabilities_ = false;
    std::string line_copy_, expected_copy_;
};

// How the reading of a block ended: whether it had as many lines as expected ones, and the index of its first malformed
// line, or NONE.
struct BlockEnd {
    bool equal = true;
    std::ptrdiff_t malformed = NONE;
};

// Scores the lines of a block, of which there must be as many as expected ones, and calls take(index, loss, flags) after
// each; ends before the first malformed line, unless those are taken too.
template <typename Take>
BlockEnd read_block(Line& line, Text outputs, Text expected, std::size_t lines, std::uint64_t first_line, bool takes_malformed,
                   Take take) {
    BlockEnd end;
    for (std::size_t i = 0; i < lines; ++i) {
        if (outputs.begin == outputs.end) return {false, end.malformed};
        unsigned flags;
        const Text text = take_line(outputs), word = take_line(expected);
        const double loss =
            line.score(text, outputs.end, word, expected.end, static_cast<std::uint32_t>(first_line + i), flags);
        if (flags & MALFORMED && end.malformed == NONE) end.malformed = static_cast<std::ptrdiff_t>(i);
        if (flags & MALFORMED && !takes_malformed) return end;
        take(i, loss, flags);
    }
    end.equal = outputs.begin == outputs.end;
    return end;
}

}  // namespace
