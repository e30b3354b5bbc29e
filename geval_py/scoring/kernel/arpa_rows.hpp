// The rows of ARPA files, read and written.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

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

// Writes a number as "%.8g" does; at most 24 bytes.
char* write_log(char* out, double value) {
    constexpr int DIGITS = 8;
    constexpr double MOST = 1e8;
    if (std::isnan(value)) return std::copy_n("nan", 3, out);
    if (std::signbit(value)) *out++ = '-';
    double size = std::fabs(value);
    if (size == INFINITE) return std::copy_n("inf", 3, out);
    if (size == 0) {
        *out++ = '0';
        return out;
    }
    // The digits as a whole number, after one multiplication by a power of ten that a double holds exactly. Its error
    // is below 1e-8, so that the whole number is right unless its fraction is that close to a half.
    std::uint64_t digits = 0;
    int exponent = 0;
    bool sure = false;
    if (size >= 1e-14 && size < 1e7) {
        exponent = static_cast<int>(std::floor(std::ilogb(size) * 0.30102999566398120));
        if (size * EXACT_POWERS_OF_TEN[DIGITS - 1 - exponent] >= MOST) ++exponent;
        const double scaled = size * EXACT_POWERS_OF_TEN[DIGITS - 1 - exponent];
        digits = static_cast<std::uint64_t>(scaled);
        const double rest = scaled - static_cast<double>(digits);
        sure = std::fabs(rest - 0.5) > 1e-6;
        digits += rest > 0.5;
    }
    if (!sure) {
        char text[40];
        std::snprintf(text, sizeof text, "%.7e", size);
        const char* p = text;
        digits = 0;
        for (; *p != 'e'; ++p)
            if (is_digit(*p)) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');  // the point may be a comma
        exponent = std::atoi(p + 1);
    }
    if (digits == 100000000) {
        digits = 10000000;
        ++exponent;
    }
    char text[DIGITS];
    for (int i = DIGITS; i--; digits /= 10) text[i] = static_cast<char>('0' + digits % 10);
    int left = DIGITS;
    while (text[left - 1] == '0') --left;
    if (exponent < -4 || exponent >= DIGITS) {
        *out++ = text[0];
        if (left > 1) *out++ = '.';
        out = std::copy(text + 1, text + left, out);
        return out + std::snprintf(out, 6, "e%+03d", exponent);
    }
    if (exponent < 0) {
        out = std::copy_n("0.000", 1 - exponent, out);
        return std::copy(text, text + left, out);
    }
    out = std::copy(text, text + exponent + 1, out);
    if (left <= exponent + 1) return out;
    *out++ = '.';
    return std::copy(text + exponent + 1, text + left, out);
}

// Writes rows, given as columns of words; without back-offs if they are nullptr. False for a word that does not exist.
bool write_arpa_rows(const WordTable& words, const std::int32_t* columns, std::size_t order, std::size_t rows, const double* logs,
                     const double* backoffs, std::vector<char>& out) {
    constexpr std::size_t NUMBERS = 64;
    std::size_t filled = 0;
    out.resize(rows * 64);
    for (std::size_t row = 0; row < rows; ++row) {
        if (out.size() - filled < NUMBERS) out.resize(2 * out.size() + NUMBERS);
        filled = static_cast<std::size_t>(write_log(out.data() + filled, logs[row]) - out.data());
        for (std::size_t i = 0; i < order; ++i) {
            const auto id = static_cast<std::size_t>(columns[i * rows + row]);
            if (id >= words.size()) return false;
            const Text word = words.word(id);
            if (out.size() - filled < word.size() + NUMBERS) out.resize(2 * out.size() + word.size() + NUMBERS);
            out[filled++] = i ? ' ' : '\t';
            std::copy(word.begin, word.end, out.data() + filled);
            filled += word.size();
        }
        if (backoffs) {
            out[filled++] = '\t';
            filled = static_cast<std::size_t>(write_log(out.data() + filled, backoffs[row]) - out.data());
        }
        out[filled++] = '\n';
    }
    out.resize(filled);
    return true;
}

}  // namespace
