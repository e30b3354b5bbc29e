// Lists of words or numbers in the pages of a Parquet column, as https://parquet.apache.org/docs/file-format/ defines
// them. pyarrow is the reference, and reads what is refused here: all that is damaged, and a list that is empty, missing or
// lacks an entry.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text.hpp"

namespace {

constexpr std::size_t WIDE = 16;  // bytes that are copied at once

// Loads eight bytes, or those before the end and zeros.
inline std::uint64_t load_before(const char* end, const char* p) {
    if (end - p >= 8) return load8(p);
    char bytes[8] = {};
    std::copy(p, end, bytes);
    return load8(bytes);
}

// Numbers of some bits in runs: one number many times, or groups of eight that are packed.
struct Run {
    std::size_t count = 0;
    std::uint32_t number = 0;
    const char* packed = nullptr;
};

class Runs {
  public:
    // There are at most 32 bits.
    Runs(Text bytes, unsigned width) : left_(bytes), width_(width), mask_((std::uint64_t{1} << width) - 1) {}

    // Reads the beginning of a run; false where there is none.
    bool next(Run& run) {
        std::uint64_t head = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (left_.begin == left_.end || shift > 28) return false;
            const auto byte = static_cast<unsigned char>(*left_.begin++);
            head |= std::uint64_t{byte & 127u} << shift;
            if (byte < 128) break;
        }
        if (head > 0xffffffff) return false;
        const bool packed = head & 1;
        run.count = static_cast<std::size_t>(head >> 1);
        if (packed && run.count > 0x7fffffff / 8) return false;
        const std::size_t size = packed ? run.count * width_ : (width_ + 7) / 8;
        if (!run.count || size > left_.size()) return false;
        run.packed = packed ? left_.begin : nullptr;
        if (packed) {
            run.count *= 8;
        } else {
            const std::uint64_t number = load_before(left_.end, left_.begin) & ((std::uint64_t{1} << 8 * size) - 1);
            if (number > mask_) return false;
            run.number = static_cast<std::uint32_t>(number);
        }
        left_.begin += size;
        return true;
    }

    std::uint32_t number(const Run& run, std::size_t i) const {
        if (!run.packed) return run.number;
        const std::size_t bit = i * width_;
        return static_cast<std::uint32_t>(load_before(left_.end, run.packed + bit / 8) >> bit % 8 & mask_);
    }

  private:
    Text left_;
    unsigned width_;
    std::uint64_t mask_;
};

class ParquetLists {
  public:
    // CODES are words as numbers of the dictionary, which all pages refer to; NULLS lists that are missing, which are only
    // counted.
    enum Kind { CODES, WORDS, FLOATS, DOUBLES, NULLS, KINDS };

    // A value that is there has the level `definition`, from 1 on.
    ParquetLists(Kind kind, unsigned definition) : kind_(kind), definition_(definition) {}

    // Begins a row group, with a row and perhaps with a dictionary.
    void start_group() {
        starts_group_ = true;
        in_group_ = 0;
    }

    // Reads the dictionary of a row group, before its pages; false if it is damaged. It follows those of the groups before.
    bool add_dictionary(Text values, std::size_t count) {
        base_ = known();
        longest_ = 0;
        if (has_words()) {
            std::size_t size = dictionary_.size();
            if (size + values.size() > MOST || values.size() / 4 < count) return false;
            dictionary_.resize(size + values.size() + WIDE);
            dictionary_starts_.reserve(dictionary_starts_.size() + count);
            for (std::size_t left = count; left; --left) {
                Text word;
                if (!take_sized(values, word)) return false;
                copy(word, values.end, &dictionary_[size]);
                size += word.size();
                dictionary_starts_.push_back(static_cast<std::int32_t>(size));
                longest_ = std::max(longest_, word.size());
            }
            dictionary_.resize(size);
        } else {
            if (values.size() / width() < count) return false;
            dictionary_.append(values.begin, count * width());
        }
        in_group_ = count;
        return true;
    }

    // Adds a page of so many values, whose bytes last as long as their owner; false if it is damaged, or not of the usual
    // form.
    bool add_page(Text bytes, std::shared_ptr<void> owner, std::size_t count, bool coded) {
        if (!count) return true;
        Text repetition, definition;
        if (!take_sized(bytes, repetition) || !take_sized(bytes, definition)) return false;
        unsigned bits = 1;
        while (definition_ >> bits) ++bits;
        if (kind_ == NULLS) {
            missing_ += count;
            return are_all(repetition, 1, 0, count) && are_all(definition, bits, 0, count);
        }
        if (!are_all(definition, bits, definition_, count) || !find_rows(repetition, count) || rows_[first_] != taken_)
            return false;
        pages_.push_back({std::move(owner), bytes, coded, count, base_, in_group_, Runs({nullptr, nullptr}, 0), Run(), 0});
        Page& page = pages_.back();
        if (coded) {
            if (page.values.begin == page.values.end) return false;
            const auto of_codes = static_cast<unsigned char>(*page.values.begin++);
            if (of_codes > 32) return false;
            page.codes = Runs(page.values, of_codes);
        } else if (kind_ == CODES || (kind_ != WORDS && page.values.size() / width() < count)) {
            return false;
        }
        entries_ += count;
        return true;
    }

    // Adds up the sizes of words of the dictionary; false for a code without a word.
    bool add_sizes(const std::int32_t* codes, std::size_t count, std::size_t& sum) const {
        for (; count; --count, ++codes) {
            const auto code = static_cast<std::size_t>(*codes);
            if (*codes < 0 || code >= dictionary_starts_.size() - 1) return false;
            sum += static_cast<std::size_t>(dictionary_starts_[code + 1] - dictionary_starts_[code]);
        }
        return true;
    }

    // How many rows have begun; the last one may go on in the next page.
    std::size_t begun() const { return rows_.size() - first_ + missing_; }

    // How many entries the first rows have.
    std::size_t entries(std::size_t rows) const {
        return (rows < rows_.size() - first_ ? rows_[first_ + rows] : entries_) - taken_;
    }

    // Takes the first rows: where each begins and the last one ends, and their values, or where their words begin in `text`
    // and the last one ends. False if a page is damaged; then nothing more can be taken.
    bool take(std::size_t rows, std::int32_t* offsets, char* values) {
        const std::size_t count = entries(rows);
        if (rows > begun() || count > MOST || kind_ == NULLS) return false;
        for (std::size_t i = 0; i <= rows; ++i) offsets[i] = static_cast<std::int32_t>(entries(i));
        size_ = 0;
        for (std::size_t left = count; left;) {
            Page& page = pages_.front();
            const std::size_t n = std::min(left, page.left);
            if (!(page.coded ? take_coded(page, n, values) : take_plain(page, n, values))) return false;
            values += n * width();
            page.left -= n;
            left -= n;
            if (page.left) continue;
            spent_.push_back(std::move(page.owner));
            pages_.pop_front();
        }
        if (kind_ == WORDS) store(values, size_);
        taken_ += count;
        first_ += rows;
        if (first_ > rows_.size() / 2) {
            rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        return true;
    }

    // Lets the owners of the pages go that were taken.
    void forget() { spent_.clear(); }

    // The words that were taken last.
    Text text() const { return {text_.data(), text_.data() + size_}; }

    // The bytes of a value in what `take` gives.
    std::size_t width() const { return kind_ == DOUBLES ? 8 : 4; }

    Kind kind() const { return kind_; }
    std::size_t longest() const { return longest_; }
    const std::vector<std::int32_t>& dictionary_starts() const { return dictionary_starts_; }
    Text dictionary_text() const { return {dictionary_.data(), dictionary_.data() + dictionary_.size()}; }

  private:
    static constexpr std::size_t MOST = 0x7fffffff;  // Arrow counts entries and bytes in 32 bits
    static constexpr std::size_t MOST_TEXT = std::size_t{1} << 27;  // that is taken at once

    struct Page {
        std::shared_ptr<void> owner;
        Text values;
        bool coded;
        std::size_t left;
        std::size_t base, known;  // where the dictionary of its row group begins, and its size
        Runs codes;
        Run run;           // of codes
        std::size_t done;  // of the run
    };

    // How many values the dictionary has.
    std::size_t known() const { return has_words() ? dictionary_starts_.size() - 1 : dictionary_.size() / width(); }

    bool has_words() const { return kind_ == CODES || kind_ == WORDS; }

    // Takes bytes that have their number before them: a word, or levels.
    static bool take_sized(Text& left, Text& bytes) {
        if (left.size() < 4) return false;
        std::uint32_t size;
        std::memcpy(&size, left.begin, sizeof size);
        left.begin += sizeof size;
        if (size > left.size()) return false;
        bytes = {left.begin, left.begin + size};
        left.begin += size;
        return true;
    }

    static bool are_all(Text levels, unsigned bits, unsigned level, std::size_t count) {
        Runs runs(levels, bits);
        for (Run run; count; count -= std::min(count, run.count)) {
            if (!runs.next(run)) return false;
            const std::size_t n = run.packed ? std::min(count, run.count) : 1;
            for (std::size_t i = 0; i < n; ++i)
                if (runs.number(run, i) != level) return false;
        }
        return true;
    }

    // Each entry with the level 0 begins a row.
    bool find_rows(Text levels, std::size_t count) {
        Runs runs(levels, 1);
        Run run;
        const std::size_t before = rows_.size();
        for (std::size_t at = 0; at < count; at += std::min(count - at, run.count)) {
            if (!runs.next(run)) return false;
            const std::size_t n = std::min(count - at, run.count);
            if (!run.packed && !run.number)
                for (std::size_t i = 0; i < n; ++i) rows_.push_back(entries_ + at + i);
            for (std::size_t i = 0; run.packed && i < n; i += 64) {
                std::uint64_t zeros = ~load_before(levels.end, run.packed + i / 8);
                if (n - i < 64) zeros &= (std::uint64_t{1} << (n - i)) - 1;
                for (; zeros; zeros &= zeros - 1)
                    rows_.push_back(entries_ + at + i + static_cast<std::size_t>(lowest_bit(zeros)));
            }
        }
        if (starts_group_ && (rows_.size() == before || rows_[before] != entries_)) return false;
        starts_group_ = false;
        return begun() > 0;
    }

    bool take_plain(Page& page, std::size_t count, char* values) {
        if (kind_ != WORDS) {
            std::memcpy(values, page.values.begin, count * width());
            page.values.begin += count * width();
            return true;
        }
        for (; count; --count, values += 4) {
            Text word;
            if (!take_sized(page.values, word) || !add(word, page.values.end, values)) return false;
        }
        return true;
    }

    bool take_coded(Page& page, std::size_t count, char* values) {
        while (count) {
            if (page.done == page.run.count) {
                if (!page.codes.next(page.run)) return false;
                page.done = 0;
            }
            const std::size_t n = std::min(count, page.run.count - page.done);
            for (std::size_t i = 0; i < n; ++i, values += width()) {
                std::size_t code = page.codes.number(page.run, page.done + i);
                if (code >= page.known) return false;
                code += page.base;
                if (kind_ == CODES) {
                    store(values, code);
                } else if (kind_ == WORDS) {
                    const char *const text = dictionary_.data(), *const end = text + dictionary_.size();
                    const Text word{text + dictionary_starts_[code], text + dictionary_starts_[code + 1]};
                    if (!add(word, end, values)) return false;
                } else {
                    std::memcpy(values, dictionary_.data() + code * width(), width());
                }
            }
            page.done += n;
            count -= n;
        }
        return true;
    }

    // Adds a word, of bytes that are readable up to an end, to the text.
    bool add(Text word, const char* end, char* start) {
        store(start, size_);
        const std::size_t size = word.size();
        if (size_ + size > MOST_TEXT) return false;
        if (text_.size() - size_ < size + WIDE) {
            text_.resize(2 * (size_ + size) + WIDE);
        }
        copy(word, end, &text_[size_]);
        size_ += size;
        return true;
    }

    // Copies a word, of bytes that are readable up to an end, to where WIDE more bytes than it has may be written.
    static void copy(Text word, const char* end, char* to) {
        const bool wide = word.size() <= WIDE && static_cast<std::size_t>(end - word.begin) >= WIDE;
        std::memcpy(to, word.begin, wide ? WIDE : word.size());
    }

    static void store(char* to, std::size_t number) {
        const auto narrow = static_cast<std::int32_t>(number);
        std::memcpy(to, &narrow, sizeof narrow);
    }

    Kind kind_;
    unsigned definition_;
    std::string dictionary_;
    std::size_t longest_ = 0, base_ = 0, in_group_ = 0;
    bool starts_group_ = true;
    std::vector<std::int32_t> dictionary_starts_{0};
    std::deque<Page> pages_;
    std::vector<std::shared_ptr<void>> spent_;
    std::vector<std::size_t> rows_;  // the entries with which rows begin; those before first_ are taken
    std::size_t first_ = 0, entries_ = 0, taken_ = 0;
    std::size_t missing_ = 0;  // lists
    std::string text_;
    std::size_t size_ = 0;
};

}  // namespace
