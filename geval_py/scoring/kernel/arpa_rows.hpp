// The rows of ARPA files, read and written.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formatting.hpp"
#include "numbers.hpp"
#include "text.hpp"
#include "word_table.hpp"

namespace {

struct ArpaRows {
    std::vector<std::int32_t> ids;  // of the words of all n-grams
    std::vector<double> logs, backoffs;
};

// Reads a log10 that a byte follows, or the end of the line.
inline const char* read_log(const char* p, double& value, bool& read) {
    const char* end = read_number(p, value);
    read = read && end;
    return end ? end : p;
}

// Reads the rows of a padded block; false if one is malformed, or has a word that the table lacks and may not add.
bool read_arpa_rows(WordTable& table, Text block, int order, bool grow, ArpaRows& out) {
    while (block.begin != block.end) {
        const Text line = take_line(block);
        double log, backoff = 0;
        bool read = true;
        const char* p = read_log(line.begin, log, read);
        if (!read || !(log <= 0) || p >= line.end || *p++ != '\t') return false;
        for (int i = 0; i < order; ++i) {
            const char* begin = p;
            while (p < line.end && *p != ' ' && *p != '\t') ++p;
            const std::int32_t id = begin < p ? table.number({begin, p}, grow) : -1;
            if (id < 0 || (i + 1 < order && (p == line.end || *p++ != ' '))) return false;
            out.ids.push_back(id);
        }
        if (p < line.end) {
            if (*p != '\t') return false;
            p = read_log(p + 1, backoff, read);
            if (!read || p != line.end || !(backoff < INFINITE)) return false;
        }
        out.logs.push_back(log);
        out.backoffs.push_back(backoff);
    }
    return true;
}

// Writes rows, given as columns of words; without back-offs if they are nullptr. False for a word that does not exist.
bool write_arpa_rows(const WordTable& words, const std::int32_t* columns, std::size_t order, std::size_t rows, const double* logs,
                     const double* backoffs, std::string& out) {
    constexpr std::size_t NUMBERS = 2 * MAX_DIGITS;
    out.resize(rows * NUMBERS);
    char* to = out.data();
    for (std::size_t row = 0; row < rows; ++row) {
        std::size_t needed = NUMBERS;
        for (std::size_t i = 0; i < order; ++i) {
            const auto id = static_cast<std::size_t>(columns[i * rows + row]);
            if (id >= words.size()) return false;
            needed += words.word(id).size() + 1;
        }
        const auto filled = static_cast<std::size_t>(to - out.data());
        if (out.size() - filled < needed) out.resize(2 * out.size() + needed), to = out.data() + filled;
        to = write_short(to, logs[row], 8);
        for (std::size_t i = 0; i < order; ++i) {
            const Text word = words.word(static_cast<std::size_t>(columns[i * rows + row]));
            *to++ = i ? ' ' : '\t';
            to = std::copy(word.begin, word.end, to);
        }
        if (backoffs) *to++ = '\t', to = write_short(to, backoffs[row], 8);
        *to++ = '\n';
    }
    out.resize(static_cast<std::size_t>(to - out.data()));
    return true;
}

}  // namespace
