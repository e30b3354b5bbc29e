// Losses of rows of words and numbers in buffers, as Arrow lays them out: the twin of listed_rows.py.
//
// A row is scored by the code that scores its line, in the same order, so the digits are the same.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "decoding.hpp"
#include "dispatch.hpp"
#include "line.hpp"
#include "murmur.hpp"
#include "packed_words.hpp"
#include "text.hpp"

namespace {

// Numbers of four or eight bytes, which may stand at any address.
struct Places {
    const char* begin;
    std::size_t count;
    bool wide;

    std::int64_t operator[](std::size_t i) const {
        if (wide) return load<std::int64_t>(begin + 8 * i);
        return load<std::int32_t>(begin + 4 * i);
    }

    template <typename Number>
    static Number load(const char* from) {
        Number number;
        std::memcpy(&number, from, sizeof number);
        return number;
    }
};

// Row i has the entries from offsets[i] to before offsets[i + 1]; the text of word j is from starts[j] to before
// starts[j + 1]. Entry k has the word codes[k], or without codes the word k.
struct ListedRows {
    Places offsets, starts, codes, values;
    bool coded;
    Text text;
    bool probabilities;
};

// Words of fewer than SHORT bytes, one at a place of each array: their bytes, with zeros after them, in three blocks of
// four; their sizes; and their hashes under a seed.
constexpr std::size_t SHORT = 12, SHORT_LANES = 8;

struct ShortWords {
    std::vector<std::uint32_t> first, second, third, size, hash;

    void make_room(std::size_t count) {
        const std::size_t rounded = (count + SHORT_LANES - 1) / SHORT_LANES * SHORT_LANES;
        if (rounded <= first.size()) return;
        for (auto* array : {&first, &second, &third, &size, &hash}) array->resize(rounded);
    }

    void put(std::size_t place, std::uint64_t low, std::uint64_t high, std::size_t bytes) {
        first[place] = static_cast<std::uint32_t>(low), second[place] = static_cast<std::uint32_t>(low >> 32);
        third[place] = static_cast<std::uint32_t>(high), size[place] = static_cast<std::uint32_t>(bytes);
    }
};

// Bits that are set if any of the four bytes equals c.
GEVAL_INLINE std::uint32_t matches4(std::uint32_t x, char c) {
    x ^= 0x01010101u * static_cast<unsigned char>(c);
    return (x - 0x01010101u) & ~x & 0x80808080u;
}

GEVAL_INLINE std::uint32_t separators4(std::uint32_t x) { return matches4(x, ' ') | matches4(x, '\n') | matches4(x, '\r'); }

// What the bytes of words have: one that no word in a line has, or one that is not ASCII.
struct ShortBytes {
    bool separator, high;
};

// Hashes the first words, in a loop without branches that becomes vector instructions.
GEVAL_INLINE ShortBytes hash_short_inline(ShortWords& words, std::size_t count, std::uint32_t seed) {
    const std::uint32_t *first = words.first.data(), *second = words.second.data(), *third = words.third.data();
    const std::uint32_t* size = words.size.data();
    std::uint32_t* hash = words.hash.data();
    std::uint32_t separators[SHORT_LANES] = {}, bytes[SHORT_LANES] = {};
    for (std::size_t from = 0; from < count; from += SHORT_LANES) {
        for (std::size_t lane = 0; lane < SHORT_LANES; ++lane) {
            const std::size_t i = from + lane;
            const std::uint32_t a = first[i], b = second[i], c = third[i], n = size[i];
            const std::uint32_t one = rotate(seed ^ scramble(a), 13) * 5 + 0xe6546b64u;
            const std::uint32_t two = rotate(one ^ scramble(b), 13) * 5 + 0xe6546b64u;
            const std::uint32_t mixed = n < 4 ? seed : n < 8 ? one : two, last = n < 4 ? a : n < 8 ? b : c;
            hash[i] = PackedWords::finish(mixed ^ scramble(last) ^ n);
            separators[lane] |= separators4(a) | separators4(b) | separators4(c);
            bytes[lane] |= a | b | c;
        }
    }
    std::uint32_t any_separator = 0, any = 0;
    for (std::size_t lane = 0; lane < SHORT_LANES; ++lane) any_separator |= separators[lane], any |= bytes[lane];
    return {any_separator != 0, (any & 0x80808080u) != 0};
}

using HashShort = ShortBytes (*)(ShortWords&, std::size_t, std::uint32_t);

#define GEVAL_HASH_SHORT(NAME, TARGET)                                                              \
    TARGET ShortBytes hash_short_##NAME(ShortWords& words, std::size_t count, std::uint32_t seed) { \
        return hash_short_inline(words, count, seed);                                               \
    }

GEVAL_HASH_SHORT(portable, )
#if defined(GEVAL_DISPATCHES)
GEVAL_HASH_SHORT(avx2, GEVAL_AVX2)
#endif

inline HashShort choose_hash_short() { return GEVAL_CHOOSE(hash_short); }

class ListedScorer {
  public:
    ListedScorer(const ListedRows& rows, int bits)
        : rows_(rows), line_(bits, Purpose::losses), hash_short_(choose_hash_short()) {
        // A dictionary with more words than there are entries is not worth it. A word that no line can hold stays unknown.
        if (!rows.coded || !rows.starts.count || rows.starts.count - 1 > rows.values.count) return;
        words_.resize(rows.starts.count - 1);
        for (std::size_t code = 0; code < words_.size(); ++code) meet(code);
    }

    // Scores the rows against as many lines of expected words; returns the first row that is no line, or NONE.
    std::ptrdiff_t score(Text expected, std::uint64_t first_line, double* losses) {
        const std::size_t most = rows_.coded ? std::min(rows_.values.count, rows_.codes.count) : rows_.values.count;
        for (std::size_t i = 0; i + 1 < rows_.offsets.count; ++i) {
            const std::int64_t start = rows_.offsets[i], stop = rows_.offsets[i + 1];
            const Text wanted = take_line(expected);
            if (start < 0 || start >= stop || static_cast<std::uint64_t>(stop) > most ||
                !score_row(static_cast<std::size_t>(start), static_cast<std::size_t>(stop), wanted, expected.end,
                           static_cast<std::uint32_t>(first_line + i), losses[i]))
                return static_cast<std::ptrdiff_t>(i);
        }
        return NONE;
    }

    double bound() const { return line_.bound(); }

  private:
    // A word of a dictionary, once it is known, as ShortWords has it.
    struct Word {
        std::uint64_t low = 0;
        std::uint32_t high = 0, size = UNKNOWN;  // or LONG
    };
    static constexpr std::uint32_t UNKNOWN = 0xffffffff, LONG = 0xfffffffe;

    // A word of SHORT bytes or more: its place in the row, and its number.
    struct LongWord {
        std::size_t place;
        std::uint64_t number;
    };

    bool score_row(std::size_t start, std::size_t stop, Text wanted, const char* limit, std::uint32_t seed, double& loss) {
        const std::size_t count = stop - start;
        short_.make_room(count);
        long_.clear();
        for (std::size_t i = 0; i < count; ++i)
            if (!(words_.empty() ? put_word(i, number_at(start + i)) : put_known(i, number_at(start + i)))) return false;
        const ShortBytes found = hash_short_(short_, count, seed);
        if (words_.empty() && (found.separator || (found.high && !are_utf8(start, count)))) return false;
        for (const LongWord& word : long_) {
            Text text;
            if (!find(word.number, text)) return false;
            short_.hash[word.place] = murmur3(text, seed);
        }
        const auto score = [&](const auto& value) {
            return line_.score_entries(value, short_.hash.data(), short_.size.data(), count, wanted, limit, seed,
                                       rows_.probabilities, loss);
        };
        const char* const values = rows_.values.begin + start * (rows_.values.wide ? 8 : 4);
        if (rows_.values.wide) return score([=](std::size_t i) { return Places::load<double>(values + 8 * i); });
        return score([=](std::size_t i) { return static_cast<double>(Places::load<float>(values + 4 * i)); });
    }

    // The number of an entry's word; where a code is negative, it is of no word.
    std::uint64_t number_at(std::size_t entry) const {
        return rows_.coded ? static_cast<std::uint64_t>(rows_.codes[entry]) : entry;
    }

    // Puts a word to its place in the row; false if there is none, or if no line can hold it.
    bool put_known(std::size_t i, std::uint64_t code) {
        if (code >= words_.size()) return false;
        const Word& word = words_[code];
        if (word.size == UNKNOWN) return false;
        if (word.size == LONG) return put_long(i, code);
        short_.put(i, word.low, word.high, word.size);
        return true;
    }

    bool put_word(std::size_t i, std::uint64_t number) {
        Text word;
        if (!locate(number, word)) return false;
        if (word.size() >= SHORT) return put_long(i, number);
        put_short(word, [&](std::uint64_t low, std::uint64_t high) { short_.put(i, low, high, word.size()); });
        return true;
    }

    bool put_long(std::size_t i, std::uint64_t number) {
        long_.push_back({i, number});
        short_.put(i, 0, 0, LONG);
        return true;
    }

    // Gives the bytes of a short word.
    template <typename Put>
    void put_short(Text word, const Put& put) const {
        static constexpr std::uint64_t ALL = ~std::uint64_t{0};
        static constexpr std::uint64_t LOW[SHORT] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff,
                                                     0xffffffffffffff, ALL, ALL, ALL, ALL};
        static constexpr std::uint64_t HIGH[SHORT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xffff, 0xffffff};
        const char* p = word.begin;
        char copy[16] = {};
        if (rows_.text.end - p < 16) p = std::copy(word.begin, word.end, copy) - word.size();
        put(load8(p) & LOW[word.size()], load8(p + 8) & HIGH[word.size()]);
    }

    // Makes a word of the dictionary known, if a line can hold it.
    void meet(std::size_t code) {
        Text text;
        if (!find(code, text)) return;
        Word& word = words_[code];
        word.size = LONG;
        if (text.size() >= SHORT) return;
        word.size = static_cast<std::uint32_t>(text.size());
        locate(code, text);
        put_short(text, [&](std::uint64_t low, std::uint64_t high) {
            word.low = low, word.high = static_cast<std::uint32_t>(high);
        });
    }

    // Whether the words of a row that are not ASCII are UTF-8; long ones are looked at elsewhere.
    bool are_utf8(std::size_t start, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) {
            Text word;
            if (((short_.first[i] | short_.second[i] | short_.third[i]) & 0x80808080u) && locate(number_at(start + i), word) && !is_utf8(word))
                return false;
        }
        return true;
    }

    // The text of a word; false if there is none.
    bool locate(std::uint64_t number, Text& word) const {
        if (!rows_.starts.count || number >= rows_.starts.count - 1) return false;
        const std::int64_t start = rows_.starts[number], stop = rows_.starts[number + 1];
        if (start < 0 || start > stop || static_cast<std::uint64_t>(stop) > rows_.text.size()) return false;
        word = {rows_.text.begin + start, rows_.text.begin + stop};
        return true;
    }

    // The text of a word, padded, until the next one is asked for; false if there is none, or if a line cannot hold it.
    bool find(std::uint64_t number, Text& word) {
        if (!locate(number, word)) return false;
        if (static_cast<std::size_t>(rows_.text.end - word.end) < PADDING) {
            last_.assign(word.begin, word.end);
            word = padded(last_);
        }
        return fits(word);
    }

    // Whether a line can hold a word: it has no space and no line end, and is UTF-8.
    static bool fits(Text word) {
        std::uint64_t found = 0, high = 0;
        for (const char* p = word.begin; p < word.end; p += 8) {
            std::uint64_t bytes = load8(p);
            if (word.end - p < 8) bytes &= (std::uint64_t{1} << 8 * (word.end - p)) - 1;
            found |= matches(bytes, ' ') | matches(bytes, '\n') | matches(bytes, '\r');
            high |= bytes & (ONES * 0x80);
        }
        return !found && (!high || is_utf8(word));
    }

    const ListedRows& rows_;
    std::string last_;  // a word at the end of the text
    std::vector<Word> words_;
    ShortWords short_;
    std::vector<LongWord> long_;
    Line line_;
    HashShort hash_short_;
};

}  // namespace
