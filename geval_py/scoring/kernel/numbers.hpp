// Numbers in text, read as the C library reads them, to the last bit.

#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <system_error>

#if !defined(__cpp_lib_to_chars) || defined(GEVAL_WITHOUT_FROM_CHARS)
#include <locale>
#include <sstream>
#include <string>
#endif

#include "text.hpp"
#include "wide.hpp"

namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
// By the number of decimal places; whole units count as exact, and rounding beyond these places is negligible.
constexpr double HALF_UNITS[] = {0,    5e-2, 5e-3,  5e-4,  5e-5,  5e-6,  5e-7,  5e-8, 5e-9,
                                 5e-10, 5e-11, 5e-12, 5e-13, 5e-14, 5e-15, 5e-16, 5e-17};

// The number of leading digits among eight bytes.
inline int count_digits(std::uint64_t x) {
    std::uint64_t not_digit = ((x ^ (ONES * 0x30)) + ONES * 0x76) | (x ^ (ONES * 0x30));
    not_digit &= ONES * 0x80;
    return not_digit ? lowest_bit(not_digit) >> 3 : 8;
}

// The value of eight digits: pairs, then fours, then all, each in one multiplication.
inline std::uint64_t eight_digits(std::uint64_t x) {
    x = (x & (ONES * 0x0f)) * 2561 >> 8;
    x = (x & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (x & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

constexpr std::uint64_t POWERS_OF_TEN[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Appends digits to a value (which may overflow: the caller counts them); returns the first byte that is no digit.
inline const char* read_digits(const char* p, std::uint64_t& value) {
    for (;;) {
        const std::uint64_t x = load8(p);
        const int n = count_digits(x);
        if (n == 8) {
            value = value * 100000000 + eight_digits(x);
            p += 8;
        } else {
            if (n == 1)
                value = value * 10 + (x & 0x0f);
            else if (n)
                value = value * POWERS_OF_TEN[n] + eight_digits(x << (64 - 8 * n));
            return p + n;
        }
    }
}

constexpr double EXACT_POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

constexpr int MIN_EXPONENT = -64;

// The 128 most significant bits of 5^0, 5^-1, … 5^-64, the first of which is set. As in the paper below, they are rounded
// up where 5^n fits into 64 bits, and down beyond.
constexpr std::array<Wide, 1 - MIN_EXPONENT> make_powers_of_five() {
    std::array<Wide, 1 - MIN_EXPONENT> powers{};
    std::uint64_t words[8] = {std::uint64_t{1} << 31};  // of 32 bits, the highest first; the last four are for precision
    for (std::size_t n = 0; n < powers.size(); ++n) {
        powers[n] = {(words[2] << 32 | words[3]) + (n > 0 && n < 28), words[0] << 32 | words[1]};
        std::uint64_t remainder = 0;
        for (std::uint64_t& word : words) {
            word |= remainder << 32;
            remainder = word % 5;
            word /= 5;
        }
        while (!(words[0] >> 31))
            for (std::size_t i = 0; i < 8; ++i) words[i] = (words[i] << 1 & 0xffffffffu) | (i < 7 ? words[i + 1] >> 31 : 0);
    }
    return powers;
}

constexpr std::array<Wide, 1 - MIN_EXPONENT> POWERS_OF_FIVE = make_powers_of_five();

// digits * 10^exponent for MIN_EXPONENT <= exponent <= 0, correctly rounded: D. Lemire, "Number parsing at a
// gigabyte per second", Software: Practice and Experience 51 (2021), section 5. In this range 128 bits of the power
// are always enough (N. Mushtak and D. Lemire, "Fast number parsing without fallback", 2023).
inline double scale(std::uint64_t digits, int exponent) {
    // Two numbers that doubles hold exactly, and one rounding (W. D. Clinger, "How to read floating point numbers
    // accurately", 1990): small probabilities, and all with few digits.
    if (digits < (std::uint64_t{1} << 53) && exponent >= -22)
        return static_cast<double>(static_cast<std::int64_t>(digits)) / EXACT_POWERS_OF_TEN[-exponent];
    int shift = leading_zeros(digits);
    const Wide& power = POWERS_OF_FIVE[static_cast<std::size_t>(-exponent)];
    Wide product = multiply(digits << shift, power.high);
    if ((product.high & 0x1ff) == 0x1ff) {
        Wide more = multiply(digits << shift, power.low);
        product.low += more.high;
        if (more.high > product.low) ++product.high;
    }
    int upper = static_cast<int>(product.high >> 63);
    std::uint64_t mantissa = product.high >> (upper + 9);
    int binary = ((217706 * exponent) >> 16) + 63 + upper - shift + 1023;
    // Exactly half way between two doubles, which only small powers allow: round to even.
    if (product.low <= 1 && exponent >= -4 && (mantissa & 3) == 1 && mantissa << (upper + 9) == product.high)
        mantissa &= ~std::uint64_t{1};
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> 53) {
        mantissa >>= 1;
        ++binary;
    }
    std::uint64_t bits = (mantissa & ((std::uint64_t{1} << 52) - 1)) | static_cast<std::uint64_t>(binary) << 52;
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
}

// Any number of the grammar without its sign; false if it is too large for a double, 0 if too small.
bool read_any(const char* p, const char* end, bool large, double& value) {
#if defined(__cpp_lib_to_chars) && !defined(GEVAL_WITHOUT_FROM_CHARS)
    value = 0;
    if (std::from_chars(p, end, value).ec != std::errc::result_out_of_range) return true;
    value = 0;
    return !large;
#else
    std::istringstream stream(std::string(p, end));
    stream.imbue(std::locale::classic());
    stream >> value;
    if (!large && !(value <= 1)) value = 0;
    return !(large && std::fabs(value) >= std::numeric_limits<double>::max() && stream.fail());
#endif
}

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Reads the exponent after an e; returns the first byte after it, or nullptr if there is no exponent.
const char* read_exponent(const char* p, std::int64_t& exponent) {
    const bool below = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    if (!is_digit(*p)) return nullptr;
    std::int64_t written = 0;
    for (; is_digit(*p); ++p) written = std::min<std::int64_t>(written * 10 + (*p - '0'), 1 << 30);
    exponent += below ? -written : written;
    return p;
}

// The number of digits without leading zeros, with or without a point between them.
inline std::ptrdiff_t significant_digits(const char* p, std::ptrdiff_t count) {
    for (; *p == '0' || *p == '.'; ++p) count -= *p == '0';
    return count;
}

// Reads a number of the grammar in a padded text, and the power of ten of its last place; returns the first byte after
// it, or nullptr if there is no number. A number too large for a double becomes infinite.
inline const char* read_number(const char* p, double& value, std::int64_t& exponent) {
    bool negative = false;
    if (!is_digit(*p)) {
        negative = *p == '-';
        if (*p == '-' || *p == '+') ++p;
    }
    const char* begin = p;
    std::uint64_t digits = 0;
    if (p[1] == '.' && is_digit(*p)) {  // as probabilities are written
        digits = static_cast<std::uint64_t>(*p++ - '0');
    } else {
        p = read_digits(p, digits);
        if (p == begin) return nullptr;
    }
    std::ptrdiff_t count = p - begin;
    exponent = 0;
    if (*p == '.') {
        const char* fraction = ++p;
        p = read_digits(p, digits);
        if (p == fraction) return nullptr;
        exponent = fraction - p;
        count += p - fraction;
    }
    if ((*p | 0x20) == 'e') {
        p = read_exponent(p + 1, exponent);
        if (!p) return nullptr;
    }
    const std::ptrdiff_t significant = count > 19 ? significant_digits(begin, count) : count;
    const bool exact = significant <= 19;  // more digits may have overflowed
    if (exact && exponent <= 0 && exponent >= MIN_EXPONENT && digits)
        value = scale(digits, static_cast<int>(exponent));
    else if (exact && !digits)
        value = 0;
    else if (!read_any(begin, p, exponent + significant_digits(begin, count) > 0, value))
        value = INFINITE;
    if (negative) value = -value;
    return p;
}

inline const char* read_number(const char* p, double& value) {
    std::int64_t exponent;
    return read_number(p, value, exponent);
}

// Half a unit in the last place, whose power of ten is given: the most that rounding may have changed a number.
inline double half_unit(std::int64_t exponent) {
    const auto places = static_cast<std::uint64_t>(-exponent);
    return places < std::size(HALF_UNITS) ? HALF_UNITS[places] : 0;
}

}  // namespace
