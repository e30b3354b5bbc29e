// A text: a range of bytes, its lines, and eight bytes at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace {

constexpr std::ptrdiff_t NONE = -1;  // an index of nothing

// A range of bytes. A line is *padded*: it is followed by a byte that is neither a digit nor a colon nor a space, and by
// seven more readable bytes, so that eight bytes can be loaded from any place up to the end.
struct Text {
    const char* begin;
    const char* end;
    std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

constexpr std::uint64_t ONES = 0x0101010101010101u;

// Eight bytes, the first one lowest on every machine.
inline std::uint64_t load8(const char* p) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

// The high bit of each byte that equals c; bits above the lowest match may be wrong.
inline std::uint64_t matches(std::uint64_t x, char c) {
    x ^= ONES * static_cast<unsigned char>(c);
    return (x - ONES) & ~x & (ONES * 0x80);
}

inline int lowest_bit(std::uint64_t x) {
#if defined(_MSC_VER)
    unsigned long index;
    _BitScanForward64(&index, x);
    return static_cast<int>(index);
#else
    return __builtin_ctzll(x);
#endif
}

inline int leading_zeros(std::uint64_t x) {
#if defined(_MSC_VER)
    unsigned long index;
    _BitScanReverse64(&index, x);
    return 63 - static_cast<int>(index);
#else
    return __builtin_clzll(x);
#endif
}

// Takes the next line off a text.
inline Text take_line(Text& text) {
    const auto* end = static_cast<const char*>(std::memchr(text.begin, '\n', text.size()));
    Text line{text.begin, end ? end : text.end};
    text.begin = end ? end + 1 : text.end;
    return line;
}

std::size_t count_lines(Text text) {
    std::size_t lines = 0;
    for (; text.begin != text.end; ++lines) take_line(text);
    return lines;
}

}  // namespace
