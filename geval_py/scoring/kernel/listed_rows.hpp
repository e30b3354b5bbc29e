// Rows of words and numbers in buffers, as Arrow lays them out, scored, written and read: the twin of listed_rows.py.
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
#include "formatting.hpp"
#include "line.hpp"
#include "murmur.hpp"
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

// Row i has the entries from offsets[i] to before offsets[i + 1]. The text of the word of entry k is from starts[k] to
// before starts[k + 1], and its number is values[k].
struct ListedRows {
    Places offsets, starts, values;
    Text text;
    bool probabilities;
};

class ListedScorer {
  public:
    ListedScorer(const ListedRows& rows, int bits) : rows_(rows), line_(bits, Purpose::losses) {}

    // Scores the rows against as many lines of expected words; returns the first row that is no line, or NONE.
    std::ptrdiff_t score(Text expected, std::uint64_t first_line, double* losses) {
        const std::size_t words = rows_.starts.count ? rows_.starts.count - 1 : 0;
        const auto entries = static_cast<std::int64_t>(std::min(rows_.values.count, words));
        for (std::size_t i = 0; i + 1 < rows_.offsets.count; ++i) {
            const std::int64_t start = rows_.offsets[i], stop = rows_.offsets[i + 1];
            const Text wanted = take_line(expected);
            if (start < 0 || start >= stop || stop > entries ||
                !score_row(static_cast<std::size_t>(start), static_cast<std::size_t>(stop - start), wanted, expected.end,
                           static_cast<std::uint32_t>(first_line + i), losses[i]))
                return static_cast<std::ptrdiff_t>(i);
        }
        return NONE;
    }

    // Writes the rows as lines; returns the first row that is no line, or NONE.
    std::ptrdiff_t write(std::string& to) {
        const std::size_t words = rows_.starts.count ? rows_.starts.count - 1 : 0;
        const auto entries = static_cast<std::int64_t>(std::min(rows_.values.count, words));
        for (std::size_t i = 0; i + 1 < rows_.offsets.count; ++i) {
            const std::int64_t start = rows_.offsets[i], stop = rows_.offsets[i + 1];
            const std::size_t before = to.size();
            bool is_line = start >= 0 && start < stop && stop <= entries;
            double least = INFINITE, most = -INFINITE;
            for (auto k = static_cast<std::size_t>(start); is_line && k < static_cast<std::size_t>(stop); ++k) {
                Text word;
                const double value = rows_.values.wide ? Places::load<double>(rows_.values.begin + 8 * k)
                                                       : static_cast<double>(Places::load<float>(rows_.values.begin + 4 * k));
                is_line = find(k, word) && std::isfinite(value);
                if (!is_line) break;
                char digits[MAX_DIGITS + 4];
                to.append(word.begin, word.size()) += ':';
                to.append(digits, static_cast<std::size_t>(write_repr(digits, value) - digits)) += ' ';
                least = std::min(least, value), most = std::max(most, value);
            }
            if (!is_line || (least >= 0 && most > 0 && most <= 1) != rows_.probabilities) {
                to.resize(before);
                return static_cast<std::ptrdiff_t>(i);
            }
            to.back() = '\n';
        }
        return NONE;
    }

    double bound() const { return line_.bound(); }
    std::size_t far_above_one() const { return line_.far_above_one(); }

  private:
    bool score_row(std::size_t start, std::size_t count, Text wanted, const char* limit, std::uint32_t seed, double& loss) {
        hashes_.resize(count), sizes_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            Text word;
            if (!find(start + i, word)) return false;
            hashes_[i] = murmur3(word, seed), sizes_[i] = word.size() != 0;
        }
        const auto score = [&](const auto& value) {
            return line_.score_entries(value, hashes_.data(), sizes_.data(), count, wanted, limit, seed, rows_.probabilities,
                                       loss);
        };
        const char* const values = rows_.values.begin + start * (rows_.values.wide ? 8 : 4);
        if (rows_.values.wide) return score([=](std::size_t i) { return Places::load<double>(values + 8 * i); });
        return score([=](std::size_t i) { return static_cast<double>(Places::load<float>(values + 4 * i)); });
    }

    // The text of a word, padded, until the next one is asked for; false if there is none, or if a line cannot hold it:
    // it has a space or a line end, or is not UTF-8.
    bool find(std::size_t number, Text& word) {
        const std::int64_t start = rows_.starts[number], stop = rows_.starts[number + 1];
        if (start < 0 || start > stop || static_cast<std::uint64_t>(stop) > rows_.text.size()) return false;
        word = {rows_.text.begin + start, rows_.text.begin + stop};
        if (static_cast<std::size_t>(rows_.text.end - word.end) < PADDING) {
            last_.assign(word.begin, word.end);
            word = padded(last_);
        }
        std::uint64_t separators = 0, high = 0;
        for (const char* p = word.begin; p < word.end; p += 8) {
            std::uint64_t bytes = load8(p);
            if (word.end - p < 8) bytes &= (std::uint64_t{1} << 8 * (word.end - p)) - 1;
            separators |= matches(bytes, ' ') | matches(bytes, '\n') | matches(bytes, '\r');
            high |= bytes & (ONES * 0x80);
        }
        return !separators && (!high || is_utf8(word));
    }

    const ListedRows& rows_;
    std::string last_;  // a word at the end of the text
    std::vector<std::uint32_t> hashes_, sizes_;
    Line line_;
};

// Lines of words, as rows.
struct ReadRows {
    std::vector<std::uint32_t> offsets{0}, starts{0};
    std::vector<char> text;
    std::vector<double> values;
    bool probabilities = false;

    // Whether all lines are of words and in one unit.
    bool read(Text lines) {
        Line line(1, Purpose::entries);
        while (lines.begin != lines.end) {
            unsigned flags;
            const Text text_of_line = take_line(lines);
            line.score(text_of_line, lines.end, {NOTHING, NOTHING}, NOTHING + PADDING, 0, flags);
            if (flags & (MALFORMED | VECTOR)) return false;
            if (values.empty()) probabilities = line.are_probabilities();
            if (line.are_probabilities() != probabilities) return false;
            for (std::size_t i = 0; i < line.listed().size(); ++i) {
                const Text word = line.listed()[i].word;
                text.insert(text.end(), word.begin, word.end);
                starts.push_back(static_cast<std::uint32_t>(text.size()));
                values.push_back(line.values()[i]);
            }
            offsets.push_back(static_cast<std::uint32_t>(values.size()));
        }
        return text.size() < std::size_t{1} << 31;
    }
};

}  // namespace
