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

#include "text.hpp"

#if defined(__cpp_lib_to_chars) && !defined(GEVAL_WITHOUT_FROM_CHARS)
#define GEVAL_TO_CHARS 1
#elif !defined(GEVAL_WITHOUT_PYTHON)
#include <Python.h>
#endif

namespace {

constexpr std::size_t MAX_DIGITS = 32;  // of a number, with sign, point and exponent

// Writes a finite number with the fewest digits that read back the same, as Python's repr does, but no ".0" and no "-0".
// With a precision, it writes as many significant digits at most, as the format %g does.
char* write_number(char* to, double value, int precision = 0) {
    value += 0.0;
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

// Writes a finite number as Python's repr does.
char* write_repr(char* to, double value) {
    if (value == 0 && std::signbit(value)) *to++ = '-';
    char* end = write_number(to, value);
    if (std::all_of(to, end, [](char c) { return c != '.' && c != 'e'; })) *end++ = '.', *end++ = '0';
    return end;
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
