// Losses of distributions in arrays, over a vocabulary that is packed for hashing: the twin of packed_words.py.
//
// MurmurHash3 mixes a block of four bytes before the seed comes in. So a word is kept as its mixed blocks, and one number
// for its last bytes and its length. Words with as many blocks stand together: a loop over them has no branches, and
// compilers turn it into vector instructions. The order of all sums is fixed, so every machine gives the same losses.

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
#include "dispatch.hpp"
#include "line.hpp"
#include "murmur.hpp"
#include "numbers.hpp"
#include "text.hpp"

namespace {

constexpr std::size_t WORD_LANES = 32;   // words that are hashed together
constexpr std::size_t SUM_LANES = 32;    // partial sums of a row
constexpr std::size_t TERMS = 256;       // of a sum, computed together

// The words with a number of blocks. For each WORD_LANES of them stand all first blocks, all second ones, and so on, then
// what is mixed in at the end; a lane without a word has NO_WORD as its id.
struct WordGroup {
    std::size_t blocks;
    std::vector<std::uint32_t> mixed, ids;
};

class PackedWords {
  public:
    // The words are lines, each ended by LF.
    explicit PackedWords(Text words) {
        std::string copy(words.begin, words.end);
        Text text = padded(copy);
        while (text.begin != text.end) add(take_line(text));
        for (WordGroup& group : groups_) {
            group.ids.resize(rounded(group.ids.size()), NO_WORD);
            group.mixed.resize(group.ids.size() * (group.blocks + 1));
        }
    }

    std::size_t size() const { return places_.size(); }
    const std::vector<WordGroup>& groups() const { return groups_; }

    std::uint32_t hash(std::size_t id, std::uint32_t seed) const {
        const Place place = places_[id];
        const WordGroup& group = groups_[place.group];
        const std::uint32_t* block = group.mixed.data() + start(group, place.index);
        std::uint32_t h = seed;
        for (std::size_t i = 0; i < group.blocks; ++i, block += WORD_LANES) h = rotate(h ^ *block, 13) * 5 + 0xe6546b64u;
        return finish(h ^ *block);
    }

    static GEVAL_INLINE std::uint32_t finish(std::uint32_t h) {
        h = (h ^ (h >> 16)) * 0x85ebca6bu;
        h = (h ^ (h >> 13)) * 0xc2b2ae35u;
        return h ^ (h >> 16);
    }

  private:
    struct Place {
        std::uint32_t group, index;
    };

    static std::size_t rounded(std::size_t n) { return (n + WORD_LANES - 1) / WORD_LANES * WORD_LANES; }
    static std::size_t start(const WordGroup& group, std::size_t index) {
        return index / WORD_LANES * WORD_LANES * (group.blocks + 1) + index % WORD_LANES;
    }

    void add(Text word) {
        const std::size_t blocks = word.size() / 4;
        std::size_t number = 0;
        while (number < groups_.size() && groups_[number].blocks != blocks) ++number;
        if (number == groups_.size()) groups_.push_back({blocks, {}, {}});
        WordGroup& group = groups_[number];
        const std::size_t index = group.ids.size();
        group.ids.push_back(static_cast<std::uint32_t>(places_.size()));
        places_.push_back({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(index)});
        group.mixed.resize(rounded(index + 1) * (blocks + 1));
        std::uint32_t* to = group.mixed.data() + start(group, index);
        const char* p = word.begin;
        for (; word.end - p >= 4; p += 4, to += WORD_LANES) *to = scramble(static_cast<std::uint32_t>(load8(p)));
        const std::uint64_t last = load8(p) & ((std::uint64_t{1} << 8 * (word.end - p)) - 1);
        *to = scramble(static_cast<std::uint32_t>(last)) ^ static_cast<std::uint32_t>(word.size());
    }

    std::vector<WordGroup> groups_;
    std::vector<Place> places_;
};

// ---- loops that become vector instructions -----------------------------------------------------------------------

// The hash of a line that is looked for: its seed, and the low bits that a word of the bucket has.
struct Wanted {
    std::uint32_t seed, mask, bucket;
    GEVAL_INLINE bool is(std::uint32_t hash) const { return ((hash ^ bucket) & mask) == 0; }
};

template <int BLOCKS>  // negative: any number
GEVAL_INLINE void find_in_group(const WordGroup& group, Wanted wanted, std::vector<std::uint32_t>& found) {
    const std::size_t blocks = BLOCKS < 0 ? group.blocks : static_cast<std::size_t>(BLOCKS);
    const std::uint32_t* mixed = group.mixed.data();
    for (std::size_t first = 0; first < group.ids.size(); first += WORD_LANES) {
        std::uint32_t h[WORD_LANES];
        for (std::size_t lane = 0; lane < WORD_LANES; ++lane) h[lane] = wanted.seed;
        for (std::size_t i = 0; i < blocks; ++i, mixed += WORD_LANES)
            for (std::size_t lane = 0; lane < WORD_LANES; ++lane)
                h[lane] = rotate(h[lane] ^ mixed[lane], 13) * 5 + 0xe6546b64u;
        std::uint32_t any = 0;
        for (std::size_t lane = 0; lane < WORD_LANES; ++lane) {
            h[lane] = PackedWords::finish(h[lane] ^ mixed[lane]);
            any |= wanted.is(h[lane]);
        }
        mixed += WORD_LANES;
        if (any)
            for (std::size_t lane = 0; lane < WORD_LANES; ++lane)
                if (wanted.is(h[lane]) && group.ids[first + lane] != NO_WORD) found.push_back(group.ids[first + lane]);
    }
}

GEVAL_INLINE void find_words_inline(const PackedWords& words, Wanted wanted, std::vector<std::uint32_t>& found) {
    for (const WordGroup& group : words.groups()) {
        switch (group.blocks) {
            case 0: find_in_group<0>(group, wanted, found); break;
            case 1: find_in_group<1>(group, wanted, found); break;
            case 2: find_in_group<2>(group, wanted, found); break;
            case 3: find_in_group<3>(group, wanted, found); break;
            default: find_in_group<-1>(group, wanted, found);
        }
    }
}

// What one pass over a row finds: the greatest number, their sum, and whether all are in range.
struct Summary {
    double greatest = -INFINITE, total = 0;
    bool valid = true;
};

// The sum of probabilities, which are in [0, 1]. A NaN shows in the sum.
template <typename Number>
GEVAL_INLINE Summary sum_inline(const Number* values, std::size_t size) {
    double totals[SUM_LANES] = {};
    Number least[SUM_LANES] = {}, most[SUM_LANES] = {};
    const auto add = [&](const Number* from, std::size_t lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const Number value = from[lane];
            totals[lane] += static_cast<double>(value);
            least[lane] = value < least[lane] ? value : least[lane];
            most[lane] = value > most[lane] ? value : most[lane];
        }
    };
    std::size_t i = 0;
    for (; i + SUM_LANES <= size; i += SUM_LANES) add(values + i, SUM_LANES);
    add(values + i, size - i);
    Summary found;
    for (double total : totals) found.total += total;
    found.valid = found.total == found.total && *std::min_element(least, least + SUM_LANES) >= 0 &&
                  *std::max_element(most, most + SUM_LANES) <= 1;
    return found;
}

// The greatest of logarithms, none of which may be NaN or +inf.
template <typename Number>
GEVAL_INLINE Summary greatest_inline(const Number* values, std::size_t size) {
    constexpr Number LARGEST = std::numeric_limits<Number>::max();
    Number most[SUM_LANES];
    std::uint32_t wrong[SUM_LANES] = {};
    std::fill(most, most + SUM_LANES, -std::numeric_limits<Number>::infinity());
    const auto add = [&](const Number* from, std::size_t lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const Number value = from[lane];
            most[lane] = value > most[lane] ? value : most[lane];
            wrong[lane] |= !(value <= LARGEST);
        }
    };
    std::size_t i = 0;
    for (; i + SUM_LANES <= size; i += SUM_LANES) add(values + i, SUM_LANES);
    add(values + i, size - i);
    Summary found;
    found.greatest = *std::max_element(most, most + SUM_LANES);
    found.valid = std::count(wrong, wrong + SUM_LANES, 0u) == SUM_LANES;
    return found;
}

// e to the power of x, for x <= 0, right to about an ulp; nearly 0 below -708. With k the whole number nearest to
// x / ln 2, it is 2^k times the Taylor series of x - k ln 2, which is at most ln 2 / 2.
GEVAL_INLINE double exp_below_zero(double x) {
    constexpr double SHIFT = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number, in the low bits
    constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    x = x < -708.0 ? -708.0 : x;
    const double shifted = x * 1.4426950408889634 + SHIFT;
    const double k = shifted - SHIFT;
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double p = 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    std::uint64_t bits, power;
    std::memcpy(&power, &shifted, 8);
    std::memcpy(&bits, &p, 8);
    bits += power << 52;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
}

// The sum of exp of numbers less their greatest.
template <typename Number>
GEVAL_INLINE double sum_exp_inline(const Number* values, std::size_t size, double greatest) {
    double totals[SUM_LANES] = {};
    for (std::size_t i = 0; i < size; i += TERMS) {
        const std::size_t count = std::min(TERMS, size - i);
        double terms[TERMS];
        for (std::size_t j = 0; j < count; ++j) terms[j] = exp_below_zero(static_cast<double>(values[i + j]) - greatest);
        std::fill(terms + count, terms + TERMS, 0.0);
        for (std::size_t j = 0; j < TERMS; j += SUM_LANES)
            for (std::size_t lane = 0; lane < SUM_LANES; ++lane) totals[lane] += terms[j + lane];
    }
    double sum = 0;
    for (double total : totals) sum += total;
    return sum;
}

template <typename Number>
struct Loops {
    void (*find_words)(const PackedWords&, Wanted, std::vector<std::uint32_t>&);
    Summary (*sum)(const Number*, std::size_t);
    Summary (*greatest)(const Number*, std::size_t);
    double (*sum_exp)(const Number*, std::size_t, double);
};

#define GEVAL_LOOPS(NAME, TARGET)                                                                            \
    TARGET void find_words_##NAME(const PackedWords& words, Wanted wanted, std::vector<std::uint32_t>& found) { \
        find_words_inline(words, wanted, found);                                                             \
    }                                                                                                        \
    template <typename Number>                                                                               \
    TARGET Summary sum_##NAME(const Number* values, std::size_t size) {                                      \
        return sum_inline(values, size);                                                                     \
    }                                                                                                        \
    template <typename Number>                                                                               \
    TARGET Summary greatest_##NAME(const Number* values, std::size_t size) {                                 \
        return greatest_inline(values, size);                                                                \
    }                                                                                                        \
    template <typename Number>                                                                               \
    TARGET double sum_exp_##NAME(const Number* values, std::size_t size, double greatest) {                  \
        return sum_exp_inline(values, size, greatest);                                                       \
    }                                                                                                        \
    template <typename Number>                                                                               \
    constexpr Loops<Number> loops_##NAME() {                                                                 \
        return {find_words_##NAME, sum_##NAME<Number>, greatest_##NAME<Number>, sum_exp_##NAME<Number>};     \
    }

GEVAL_LOOPS(portable, )
#if defined(GEVAL_DISPATCHES)
GEVAL_LOOPS(avx2, GEVAL_AVX2)
#endif

template <typename Number>
Loops<Number> choose_loops() {
#if defined(GEVAL_DISPATCHES)
    if (__builtin_cpu_supports("avx2")) return loops_avx2<Number>();
#endif
    return loops_portable<Number>();
}

// ---- rows --------------------------------------------------------------------------------------------------------

enum class Unit : int { probabilities, logarithms, logits };

// Rows of numbers, one for each word, or for the ids of a row; ids and rests may be null.
template <typename Number>
struct Rows {
    std::size_t count;
    std::size_t size;         // of a row
    const char* values;
    std::ptrdiff_t stride;    // bytes from one row to the next
    const std::int64_t* ids;  // of all rows, which follow one another
    const double* rests;      // in the unit of the values
    const Number* row(std::size_t i) const {
        return reinterpret_cast<const Number*>(values + static_cast<std::ptrdiff_t>(i) * stride);
    }
};

template <typename Number>
class RowScorer {
  public:
    RowScorer(const PackedWords& words, int bits, Unit unit)
        : words_(words), mask_((std::uint32_t{1} << bits) - 1), share_(1.0 / (mask_ + 1.0)), unit_(unit) {}

    // Scores rows against as many lines of expected words, padded; returns the first row that is at fault, or NONE.
    std::ptrdiff_t score(const Rows<Number>& rows, Text expected, const std::uint32_t* lines, double* losses) {
        for (std::size_t i = 0; i < rows.count; ++i) {
            const Text word = take_line(expected);
            const Wanted wanted{lines[i], mask_, murmur3(word, lines[i])};
            found_.clear();
            const Number* values = rows.row(i);
            if (!rows.ids) {
                loops_.find_words(words_, wanted, found_);
                std::sort(found_.begin(), found_.end());
            } else if (!find_ids(rows.ids + i * rows.size, rows.size, wanted)) {
                return static_cast<std::ptrdiff_t>(i);
            }
            hits_.clear();
            for (std::uint32_t place : found_) hits_.add(static_cast<double>(values[place]));
            const double* rest = rows.rests ? rows.rests + i : nullptr;
            if (!(unit_ == Unit::probabilities ? probability_loss(values, rows.size, rest, losses[i])
                                         : logarithm_loss(values, rows.size, rest, losses[i])))
                return static_cast<std::ptrdiff_t>(i);
        }
        return NONE;
    }

    // The greatest loss that any of the rows could have had; see Line::bound.
    double bound() const { return bound_; }

  private:
    bool find_ids(const std::int64_t* ids, std::size_t size, Wanted wanted) {
        for (std::size_t i = 0; i < size; ++i) {
            if (ids[i] < 0 || static_cast<std::uint64_t>(ids[i]) >= words_.size()) return false;
            if (wanted.is(words_.hash(static_cast<std::size_t>(ids[i]), wanted.seed)))
                found_.push_back(static_cast<std::uint32_t>(i));
        }
        return true;
    }

    // As Line::probability_loss; without mass and rest, all mass is missing.
    bool probability_loss(const Number* values, std::size_t size, const double* rest, double& loss) {
        const Summary found = loops_.sum(values, size);
        const double listed = rest ? *rest : 0, total = found.total + listed, hit = hits_.sum();
        if (!found.valid || !(listed >= 0 && listed <= 1) || (rest && total == 0)) return false;
        const bool off = total > 1 || (total < MIN_TOTAL && rest);
        const double rest_mass = (off ? listed / total : total < MIN_TOTAL ? 1 - total : listed) * share_;
        const double mass = (off ? hit / total : hit) + rest_mass;
        loss = loss_of_mass(mass);
        bound_ = std::max(bound_, loss_of_mass(rest_mass));
        return true;
    }

    // As Line::logarithm_loss; logits always total 1.
    bool logarithm_loss(const Number* values, std::size_t size, const double* rest, double& loss) {
        const Summary found = loops_.greatest(values, size);
        const double listed = rest ? *rest : -INFINITE, greatest = std::max(found.greatest, listed);
        if (!found.valid || !(listed < INFINITE) || (greatest == -INFINITE && (rest || unit_ == Unit::logits))) return false;
        double log_sum = -INFINITE;
        if (greatest != -INFINITE)
            log_sum = std::log(loops_.sum_exp(values, size, greatest) + std::exp(listed - greatest));
        const double log_total = greatest + log_sum;
        if (unit_ == Unit::logarithms && log_total > MAX_LOG_PLAUSIBLE) return false;
        const bool below = log_total < MIN_LOG_TOTAL;
        const bool divides = unit_ == Unit::logits || log_total > 0 || (below && rest);
        const double shift = divides ? greatest : 0, log_divisor = divides ? log_sum : 0;
        const double log_missing = below && !divides ? std::log(-std::expm1(log_total)) : listed - shift;
        const double log_rest = log_missing + std::log(share_);
        loss = std::max(0.0, log_divisor - log_add_exp(hits_.log_sum_exp(shift), log_rest));
        bound_ = std::max(bound_, log_divisor - log_rest);
        return true;
    }

    static double loss_of_mass(double mass) { return mass > 0 ? loss_of_log(std::log(mass)) : INFINITE; }

    const PackedWords& words_;
    const Loops<Number> loops_ = choose_loops<Number>();
    std::uint32_t mask_;
    double share_;
    Unit unit_;
    double bound_ = 0;
    std::vector<std::uint32_t> found_;
    Numbers hits_;
};

}  // namespace
