// UTF-8, well formed as in Python's strict decoder: no overlong forms, no surrogates, nothing above U+10FFFF.
//
// With AVX2, 32 bytes are checked at a time by three tables (Keiser and Lemire, "Validating UTF-8 in less than one
// instruction per byte", 2021): what is wrong with two bytes that follow one another depends on three of their halves.

#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "dispatch.hpp"
#include "text.hpp"

#if defined(GEVAL_DISPATCHES)
#include <immintrin.h>
#endif

namespace {

using Byte = unsigned char;

// The length of the first character: positive if it is well-formed UTF-8, else minus the length of what Python's
// decoder replaces by one U+FFFD (the longest beginning of a character, at least one byte).
int character(const char* p, const char* end) {
    auto byte = [&](int i) { return static_cast<Byte>(p[i]); };
    const int first = byte(0);
    if (first < 0x80) return 1;
    const int length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; ++i) {
        if (p + i == end) return -i;
        const int least = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const int most = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (byte(i) < least || byte(i) > most) return -i;
    }
    return length ? length : -1;
}

// Whether a byte is wrong after the three bytes before it. Compilers turn a loop of it into vector instructions.
inline Byte is_wrong(Byte c, Byte before, Byte second, Byte third) {
    const Byte of_three = std::max<Byte>(second, 0xa0) - 0x20, of_four = std::max<Byte>(third, 0xb0) - 0x30;
    const Byte continues = (c & 0xc0) == 0x80, should = std::max(before, std::max(of_three, of_four)) >= 0xc0;
    const Byte wrong_three = c & 0x20 ? 0xed : 0xe0, wrong_four = c & 0x30 ? 0xf4 : 0xf0;  // which this may not follow
    return (continues ^ should) | ((c & 0xfe) == 0xc0) | (c >= 0xf5) | (before == wrong_three) | (before == wrong_four);
}

// Zeros stand before and after the text, so that its end ends a character. All loops have whole vectors.
bool is_utf8_portable(Text text) {
    constexpr std::ptrdiff_t LANES = 32;
    const auto* p = reinterpret_cast<const Byte*>(text.begin);
    const std::ptrdiff_t size = text.end - text.begin, whole = size < 3 ? 0 : (size - 3) / LANES * LANES;
    Byte first[3 + LANES] = {}, last[3 + LANES] = {}, wrong = 0;
    std::copy(p, p + std::min(size, LANES), first + 3);
    std::copy(p + whole, p + size, last);
    const std::pair<const Byte*, std::ptrdiff_t> parts[] = {{first + 3, LANES}, {whole ? p + 3 : p, whole}, {last + 3, LANES}};
    for (const auto& [bytes, count] : parts)
        for (std::ptrdiff_t i = 0; i < count; ++i) wrong |= is_wrong(bytes[i], bytes[i - 1], bytes[i - 2], bytes[i - 3]);
    return !wrong;
}

#if defined(GEVAL_DISPATCHES)

// What may be wrong with a byte and the next one. Two continuations are right in the middle of a character. 0xf5 to 0xff
// before a continuation below 0x90 have the bit that overlong forms of 0xf0 have.
enum Wrong : unsigned char {
    TOO_SHORT = 1,  // a first byte without a continuation
    TOO_LONG = 2,  // a continuation after ASCII
    OVERLONG_3 = 4,
    TOO_LARGE = 8,
    SURROGATE = 16,
    OVERLONG_2 = 32,
    OVERLONG_4 = 64,
    TWO = 128,  // continuations
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO,  // whatever the low half of the first byte is
    ABOVE_F4 = ANY_LOW | TOO_LARGE | OVERLONG_4,
    ANY_NEXT = TOO_LONG | OVERLONG_2 | TWO,
};

// By the high half of a byte, by its low half, and by the high half of the next byte.
alignas(16) constexpr unsigned char WRONG_BY_HALVES[3][16] = {
    {TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TWO, TWO, TWO, TWO,
     TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | OVERLONG_4},
    {ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4, ANY_LOW | OVERLONG_2, ANY_LOW, ANY_LOW, ANY_LOW | TOO_LARGE,
     ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4, ABOVE_F4 | SURROGATE, ABOVE_F4,
     ABOVE_F4},
    {TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
     ANY_NEXT | OVERLONG_3 | OVERLONG_4, ANY_NEXT | OVERLONG_3 | TOO_LARGE, ANY_NEXT | SURROGATE | TOO_LARGE,
     ANY_NEXT | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT},
};

// The bits of a table by the low halves of bytes.
GEVAL_AVX2 inline __m256i look_up(const unsigned char* table, __m256i bytes) {
    const __m128i row = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), _mm256_and_si256(bytes, _mm256_set1_epi8(15)));
}

GEVAL_AVX2 bool is_utf8_avx2(Text text) {
    constexpr std::ptrdiff_t SIZE = 32;
    __m256i before = _mm256_setzero_si256(), wrong = before;
    char last[SIZE] = {};  // zeros follow the text, so that its end ends a character
    for (bool is_last = false; !is_last; text.begin += SIZE) {
        is_last = text.end - text.begin < SIZE;
        if (is_last) std::copy(text.begin, text.end, last);
        const char* p = is_last ? last : text.begin;
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        const __m256i joined = _mm256_permute2x128_si256(before, bytes, 0x21);
        const __m256i one = _mm256_alignr_epi8(bytes, joined, 15), two = _mm256_alignr_epi8(bytes, joined, 14);
        const __m256i three = _mm256_alignr_epi8(bytes, joined, 13);  // the bytes that many places before
        const __m256i pairs = _mm256_and_si256(
            _mm256_and_si256(look_up(WRONG_BY_HALVES[0], _mm256_srli_epi16(one, 4)), look_up(WRONG_BY_HALVES[1], one)),
            look_up(WRONG_BY_HALVES[2], _mm256_srli_epi16(bytes, 4)));
        const __m256i inside = _mm256_or_si256(_mm256_subs_epu8(two, _mm256_set1_epi8(0xe0 - TWO)),
                                               _mm256_subs_epu8(three, _mm256_set1_epi8(0xf0 - TWO)));
        wrong = _mm256_or_si256(wrong, _mm256_xor_si256(
                                           pairs, _mm256_and_si256(inside, _mm256_set1_epi8(static_cast<char>(TWO)))));
        before = bytes;
    }
    return _mm256_testz_si256(wrong, wrong);
}

#endif

inline bool is_utf8(Text text) { return GEVAL_CHOOSE(is_utf8)(text); }

}  // namespace
