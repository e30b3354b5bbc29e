// The fast twin of tokens.py: tokens are numbered, and columns are taken out of lines.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "prefetch.hpp"
#include "secrets.hpp"
#include "text.hpp"
#include "wide.hpp"

namespace {

// Bytes that end a token, found 64 at a time: a bit for each.
class Separators {
  public:
    // At most three, and LF.
    explicit Separators(Text separators) {
        std::copy_n(separators.begin, std::min<std::size_t>(3, separators.size()), marks_);
    }

    // The bits of those among the next bytes of a text, at most 64.
    std::uint64_t find(Text text) const {
        if (text.size() >= 64) return find(text.begin);
        char last[64] = {};
        std::copy(text.begin, text.end, last);
        return find(last) & ((std::uint64_t{1} << text.size()) - 1);
    }

  private:
    std::uint64_t find(const char* p) const {
        std::uint64_t bits = 0;
#if defined(__SSE2__)
        for (int i = 0; i < 4; ++i) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
            __m128i equal = _mm_setzero_si128();
            for (char mark : marks_) equal = _mm_or_si128(equal, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(mark)));
            bits |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(equal))) << (16 * i);
        }
#else
        for (int i = 0; i < 64; ++i)
            bits |= std::uint64_t{p[i] == marks_[0] || p[i] == marks_[1] || p[i] == marks_[2] || p[i] == marks_[3]} << i;
#endif
        return bits;
    }

    char marks_[4] = {'\n', '\n', '\n', '\n'};
};

// Calls token(Text) for each token of a text, and end_line() after each line; the last line may lack its LF.
template <typename Token, typename EndLine>
void split_lines(Text text, Separators separators, Token token, EndLine end_line) {
    const char* start = text.begin;
    for (const char* chunk = text.begin; chunk < text.end; chunk += 64) {
        for (std::uint64_t bits = separators.find({chunk, text.end}); bits; bits &= bits - 1) {
            const char* p = chunk + lowest_bit(bits);
            if (p != start) token(Text{start, p});
            if (*p == '\n') end_line();
            start = p + 1;
        }
    }
    if (start != text.end) token(Text{start, text.end});
    if (text.begin != text.end && text.end[-1] != '\n') end_line();
}

// How often tokens were seen, up to 255, by their hashes: tokens with the same place are counted together.
struct Sightings {
    unsigned char* counts;
    std::uint64_t size;
    int least;  // 0 to count tokens; else only those seen as often are numbered
    unsigned char& at(std::uint32_t hash) const { return counts[hash * size >> 32]; }
    bool is_numbered(std::uint32_t hash) { return least ? at(hash) >= std::min(least, 255) : (at(hash) += at(hash) < 255, false); }
};

// Distinct tokens, numbered from 0 in the order in which they appear.
class TokenTable {
  public:
    // The number of distinct tokens of each line, and their numbers, line by line. Tokens stand between separators;
    // without any, each line is one token.
    void number(Text text, Text separators, Sightings seen, std::vector<std::int64_t>& counts, std::vector<std::int64_t>& numbers) {
        const std::lock_guard<std::mutex> lock(mutex_);
        seen_ = seen, limit_ = text.end, line_tokens_.clear(), ++line_;  // a line that memory did not suffice for is over
        if (separators.begin == separators.end)
            while (text.begin != text.end) keep(line_token(take_line(text))), end_line(counts, numbers);
        else
            split_lines(text, Separators(separators), [&](Text token) { keep(line_token(token)); }, [&] { end_line(counts, numbers); });
    }

    std::size_t size() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return tokens_.size();
    }

    // Whether all numbers are those of tokens.
    bool has(const std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return std::all_of(numbers, numbers + count, [&](std::int64_t number) {
            return number >= 0 && static_cast<std::size_t>(number) < tokens_.size();
        });
    }

    // The tokens with some numbers, each ended by LF.
    std::string names(const std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::string names;
        for (std::size_t i = 0; i < count; ++i) {
            const Token& token = tokens_[static_cast<std::size_t>(numbers[i])];
            names.append(text_of(token), token.size);
            names += '\n';
        }
        return names;
    }

    // Sorts numbers by their tokens, byte by byte, which is the order of code points. The first bytes of a token stand
    // beside its number while it is sorted: most comparisons read nothing else.
    void sort(std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        struct Key {
            std::uint64_t first, second;
            const Token* token;
        };
        std::vector<Key> keys(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Token& token = tokens_[static_cast<std::size_t>(numbers[i])];
            keys[i] = {eight_bytes(token, 0), eight_bytes(token, 8), &token};
        }
        std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
            if (a.first != b.first) return a.first < b.first;
            if (a.second != b.second) return a.second < b.second;
            const Token &one = *a.token, &other = *b.token;
            const int order = std::memcmp(text_of(one), text_of(other), std::min(one.size, other.size));
            return order ? order < 0 : one.size < other.size;
        });
        for (std::size_t i = 0; i < count; ++i) numbers[i] = keys[i].token - tokens_.data();
    }

  private:
    struct Token {
        std::uint64_t start;  // of its bytes
        std::uint32_t size, line;  // the last line that has it
    };
    struct Slot {
        std::uint32_t hash = 0, number = 0;  // from 1; 0 if it is free
    };
    // A token of the line that is read, and its hash.
    struct LineToken {
        const char* begin;
        std::uint32_t size, hash;
    };

    const char* text_of(const Token& token) const { return texts_.data() + token.start; }

    // Eight bytes of a token from a place, the first one highest; zeros after its end.
    std::uint64_t eight_bytes(const Token& token, std::size_t from) const {
        const char* text = text_of(token);
        std::uint64_t bytes = 0;
        for (std::size_t i = from; i < from + 8; ++i)
            bytes = bytes << 8 | (i < token.size ? static_cast<unsigned char>(text[i]) : 0u);
        return bytes;
    }

    // wyhash's mixing (Wang Yi, 2019), with unpredictable numbers: nobody can choose tokens that want the same slot.
    static std::uint64_t mix(std::uint64_t hash, std::uint64_t bytes) {
        const Wide product = multiply(hash ^ SECRETS.first, bytes ^ SECRETS.hash);
        return product.low ^ product.high;
    }

    // Eight bytes as they stand in memory, or what is left of them before the end, followed by zeros.
    std::uint64_t bytes_at(const char* p, const char* end) const {
        std::uint64_t bytes = 0;
        const std::ptrdiff_t left = end - p;
        if (left >= 8) {
            std::memcpy(&bytes, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        } else if (left > 0 && limit_ - p >= 8) {
            std::memcpy(&bytes, p, 8);
            bytes &= ~std::uint64_t{0} >> (8 * (8 - left));
#endif
        } else if (left > 0) {
            std::memcpy(&bytes, p, static_cast<std::size_t>(left));
        }
        return bytes;
    }

    LineToken line_token(Text text) const {
        if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
        std::uint64_t hash = text.size();
        for (const char* p = text.begin; p < text.end; p += 8) hash = mix(hash, bytes_at(p, text.end));
        return {text.begin, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(hash)};
    }

    // Keeps a token of the line until all are found. Meanwhile its slot, which may be anywhere, is fetched from memory.
    void keep(const LineToken& token) {
        line_tokens_.push_back(token);
        prefetch(seen_.size ? &seen_.at(token.hash) : static_cast<void*>(&slots_[token.hash & (slots_.size() - 1)]));
    }

    // Numbers the tokens of a line. The tokens that are known, which may be anywhere too, are fetched from memory first.
    void end_line(std::vector<std::int64_t>& counts, std::vector<std::int64_t>& numbers) {
        const std::size_t before = numbers.size();
        for (const LineToken& token : line_tokens_) {
            const Slot& slot = slots_[token.hash & (slots_.size() - 1)];
            if (slot.number) prefetch(&tokens_[slot.number - 1]);
        }
        for (const LineToken& token : line_tokens_)
            if (!seen_.size || seen_.is_numbered(token.hash)) add(token, numbers);
        counts.push_back(static_cast<std::int64_t>(numbers.size() - before));
        line_tokens_.clear();
        ++line_;
    }

    void add(const LineToken& fresh, std::vector<std::int64_t>& numbers) {
        if (3 * (tokens_.size() + 1) > 2 * slots_.size()) grow();
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = fresh.hash & mask;; i = (i + 1) & mask) {
            if (!slots_[i].number) {
                if (tokens_.size() >= std::numeric_limits<std::uint32_t>::max() - 1) throw std::bad_alloc();
                numbers.push_back(static_cast<std::int64_t>(tokens_.size()));
                // The text comes first: if memory ends here, no token is left without its text.
                const std::uint64_t start = texts_.size();
                texts_.append(fresh.begin, fresh.size);
                tokens_.push_back({start, fresh.size, line_});
                slots_[i] = {fresh.hash, static_cast<std::uint32_t>(tokens_.size())};
                return;
            }
            if (slots_[i].hash != fresh.hash) continue;
            Token& token = tokens_[slots_[i].number - 1];
            if (!is_same(token, fresh)) continue;
            if (token.line != line_) numbers.push_back(slots_[i].number - 1);
            token.line = line_;
            return;
        }
    }

    bool is_same(const Token& token, const LineToken& fresh) const {
        return token.size == fresh.size && !std::memcmp(text_of(token), fresh.begin, token.size);
    }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        const std::size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (!slot.number) continue;
            std::size_t i = slot.hash & mask;
            while (slots_[i].number) i = (i + 1) & mask;
            slots_[i] = slot;
        }
    }

    mutable std::mutex mutex_;
    std::string texts_;
    std::vector<Token> tokens_;
    std::vector<Slot> slots_ = std::vector<Slot>(64);
    std::vector<LineToken> line_tokens_;  // on a line
    Sightings seen_{};
    const char* limit_ = nullptr;  // where the text that is read ends
    std::uint32_t line_ = 1;
};

// A column of lines whose columns are separated by TABs: a cell of each line, each ended by LF.
inline std::string take_column(Text text, std::size_t column) {
    std::string cells;
    while (text.begin != text.end) {
        Text cell = take_line(text);
        for (std::size_t before = 0; before < column && cell.begin != cell.end; ++before) {
            const auto* tab = static_cast<const char*>(std::memchr(cell.begin, '\t', cell.size()));
            cell.begin = tab ? tab + 1 : cell.end;
        }
        const auto* tab = static_cast<const char*>(std::memchr(cell.begin, '\t', cell.size()));
        cells.append(cell.begin, tab ? tab : cell.end);
        cells += '\n';
    }
    return cells;
}

}  // namespace
