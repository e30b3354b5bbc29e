// Output lines written from words and numbers: the twin of reference.format_entries.

#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "numbers.hpp"
#include "text.hpp"

#if defined(__cpp_lib_to_chars) && !defined(GEVAL_WITHOUT_FROM_CHARS)
#define GEVAL_TO_CHARS 1
#elif !defined(GEVAL_WITHOUT_PYTHON)
#include <Python.h>
#endif

namespace {

constexpr std::size_t MAX_DIGITS = 32;  // of a number, with sign, point and exponent

// Writes a finite number with the fewest digits that read back the same, as Python's repr does, but no ".0" and no "-0".
// With a precision, it writes any number with as many significant digits at most, as the format %g does.
char* write_number(char* to, double value, int precision = 0) {
    if (!precision) value += 0.0;
#if defined(GEVAL_TO_CHARS)
    if (precision) return std::to_chars(to, to + MAX_DIGITS, value, std::chars_format::general, precision).ptr;
    const double size = std::fabs(value);
    const bool plain = (size >= 1e-4 && size < 1e16) || value == 0;
    return std::to_chars(to, to + MAX_DIGITS, value, plain ? std::chars_format::fixed : std::chars_format::scientific).ptr;
#elif defined(GEVAL_WITHOUT_PYTHON)  // for the fuzzers; more digits than are needed
    return to + std::snprintf(to, MAX_DIGITS, "%.*g", precision ? precision : 17, value);
#else
    char* digits = PyOS_double_to_string(value, precision ? 'g' : 'r', precision, 0, nullptr);  // needs the GIL
    if (!digits) throw std::bad_alloc();
    const std::size_t length = std::strlen(digits);
    std::memcpy(to, digits, length);
    PyMem_Free(digits);
    return to + length;
#endif
}

// Writes a number with six to eight significant digits at most, as the format %g does. In most cases, it tells which
// positive number the digits are.
char* write_short(char* to, double value, int precision, double* rounded = nullptr) {
    const double size = std::fabs(value), most = EXACT_POWERS_OF_TEN[precision];
    if (!(size >= 1e-14 && size < 10)) return write_number(to, value == value ? value : size, precision);  // no "-nan"
    // The digits as a whole number, after one multiplication by a power of ten that a double holds exactly. Its error
    // is below 1e-8, so that the whole number is right unless the fraction is that close to a half.
    int places = precision - 1;
    double scaled = size * EXACT_POWERS_OF_TEN[places];
    while (scaled < most / 10) scaled = size * EXACT_POWERS_OF_TEN[++places];
    const auto whole = static_cast<std::uint32_t>(scaled + 0.5);
    if (whole >= most || std::fabs(std::fabs(scaled - whole) - 0.5) < 1e-6) return write_number(to, value, precision);
    if (rounded) *rounded = whole / EXACT_POWERS_OF_TEN[places];
    char digits[8];
    const char* end = std::to_chars(digits, digits + 8, whole).ptr;
    while (end[-1] == '0') --end;
    if (value < 0) *to++ = '-';
    const int zeros = places - precision + 1;  // before the first digit
    if (zeros && zeros < 5) return std::copy<const char*>(digits, end, std::copy_n("0.000", 1 + zeros, to));
    *to++ = digits[0];
    if (end != digits + 1) *to++ = '.';
    to = std::copy<const char*>(digits + 1, end, to);
    if (!zeros) return to;
    *to++ = 'e', *to++ = '-', *to++ = static_cast<char>('0' + zeros / 10), *to++ = static_cast<char>('0' + zeros % 10);
    return to;
}

// Writes words, which are lines, each ended by LF, and as many numbers as entries. False if there are not as many, or if
// a number is not in a range.
bool format_entries(Text words, const double* numbers, std::size_t count, double least, double most, std::string& line) {
    line.resize(words.size() + (MAX_DIGITS + 2) * count);
    char* to = &line[0];
    for (std::size_t i = 0; i < count; ++i) {
        if (words.begin == words.end || !(numbers[i] >= least && numbers[i] <= most)) return false;
        const Text word = take_line(words);
        if (i) *to++ = ' ';
        std::memcpy(to, word.begin, word.size());
        to += word.size();
        *to++ = ':';
        to = write_number(to, numbers[i]);
    }
    line.resize(static_cast<std::size_t>(to - line.data()));
    return words.begin == words.end;
}

}  // namespace
