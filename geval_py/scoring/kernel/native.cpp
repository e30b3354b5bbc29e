// The fast twin of reference.py: the same losses and flags, from the same bytes.
//
// A block of lines is read once. For each line only the sum of the values, the values of the expected word's bucket
// and of the rest, and a few flags are kept; the values themselves stay in a buffer that is reused from line to
// line, for lines that turn out to hold logarithms. A malformed line is only marked: the reference parses it
// again and makes the error, so that each error text exists once.
//
// Any bytes may come. Carriage returns are dropped and undecodable bytes replaced in a copy of the line.

#if !defined(GEVAL_WITHOUT_PYTHON)  // the fuzzers of tests/fuzz call the functions themselves
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#if !defined(__cpp_lib_to_chars) || defined(GEVAL_WITHOUT_FROM_CHARS)
#include <locale>
#include <sstream>
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "powers_of_five.hpp"

namespace {

// Flags of a line; __init__.py has the same names and values.
enum Flag : std::uint32_t {
    MALFORMED = 1 << 0,
    LOGARITHMS = 1 << 1,
    ABOVE_ONE = 1 << 2,
    BELOW_ONE = 1 << 3,
    HAS_REST = 1 << 4,
    ZERO_REST = 1 << 5,
    REST_ALONE = 1 << 6,
    ZERO_ENTRY = 1 << 7,
    CARRIAGE_RETURN = 1 << 8,
    NOT_ASCII = 1 << 9,
    CONTROL = 1 << 10,
    SEPARATOR = 1 << 11,
    CAPITAL = 1 << 12,
    VECTOR = 1 << 13,
    REPEATED = 1 << 14,
    ALL_ZERO = 1 << 15,
    LOOKS_LIKE_PROBABILITIES = 1 << 16,
    ROUNDED = 1 << 17,
    EMPTY_LINE = 1 << 18,
    STRAY_SPACE = 1 << 19,
    NO_COLON = 1 << 20,
    NOT_A_NUMBER = 1 << 21,
    WRONG_LENGTH = 1 << 22,
    NUMBER_TOO_LARGE = 1 << 23,
    TINY = 1 << 24,
    ERROR_KINDS = EMPTY_LINE | STRAY_SPACE | NO_COLON | NOT_A_NUMBER | WRONG_LENGTH | NUMBER_TOO_LARGE,
};

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double TOLERANCE = 1e-8;
constexpr double OVERSHOOT = 1e-6;
constexpr double LEAST_DIVIDED = 1e-280;
constexpr double LEAST_TOTAL = 1.0 - TOLERANCE;
const double LEAST_LOG_TOTAL = std::log1p(-TOLERANCE);
// By the number of decimal places; whole units count as exact, and rounding beyond these places is negligible.
constexpr double HALF_UNITS[] = {0,    5e-2, 5e-3,  5e-4,  5e-5,  5e-6,  5e-7,  5e-8, 5e-9,
                                 5e-10, 5e-11, 5e-12, 5e-13, 5e-14, 5e-15, 5e-16, 5e-17};

// A range of bytes. A line is *padded*: it is followed by a byte that is neither a digit nor a colon nor a space, and by
// seven more readable bytes, so that eight bytes can be loaded from any place up to the end.
struct Text {
    const char* begin;
    const char* end;
    std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

// ---- bytes, eight at a time --------------------------------------------------------------------------------------

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

inline Wide multiply(std::uint64_t a, std::uint64_t b) {
#if defined(_MSC_VER) && defined(_M_X64)
    Wide product;
    product.low = _umul128(a, b, &product.high);
    return product;
#elif defined(_MSC_VER)
    return {a * b, __umulh(a, b)};
#else
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

// ---- MurmurHash3_x86_32, by Austin Appleby, in the public domain -------------------------------------------------

inline std::uint32_t rotate(std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

inline std::uint32_t scramble(std::uint32_t k) { return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

inline std::uint32_t mix_block(std::uint32_t h, std::uint64_t bytes) {
    return rotate(h ^ scramble(static_cast<std::uint32_t>(bytes)), 13) * 5 + 0xe6546b64u;
}

// Mixes in the last bytes, fewer than eight, with zeros after them. Most words have no others: they are hashed without a
// branch that depends on their length, which processors could not predict.
inline std::uint32_t murmur3_end(std::uint32_t h, std::uint64_t bytes, int left, std::size_t size) {
    const std::uint32_t mixed = mix_block(h, bytes);
    h = left >= 4 ? mixed : h;
    bytes = left >= 4 ? bytes >> 32 : bytes;
    h ^= scramble(static_cast<std::uint32_t>(bytes)) ^ static_cast<std::uint32_t>(size);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

// The hash of a word in a padded text.
inline std::uint32_t murmur3(Text word, std::uint32_t seed) {
    std::uint32_t h = seed;
    const char* p = word.begin;
    for (; word.end - p >= 8; p += 8) {
        const std::uint64_t bytes = load8(p);
        h = mix_block(mix_block(h, bytes), bytes >> 32);
    }
    const int left = static_cast<int>(word.end - p);
    return murmur3_end(h, load8(p) & ((std::uint64_t{1} << 8 * left) - 1), left, word.size());
}

// ---- numbers -----------------------------------------------------------------------------------------------------

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

// digits * 10^exponent for LEAST_EXPONENT <= exponent <= 0, correctly rounded: D. Lemire, "Number parsing at a
// gigabyte per second", Software: Practice and Experience 51 (2021), section 5. In this range 128 bits of the power
// are always enough (N. Mushtak and D. Lemire, "Fast number parsing without fallback", 2023).
inline double scale(std::uint64_t digits, int exponent) {
    // Two numbers that doubles hold exactly, and one rounding (W. D. Clinger, "How to read floating point numbers
    // accurately", 1990): small probabilities, and all with few digits.
    if (digits < (std::uint64_t{1} << 53) && exponent >= -22)
        return static_cast<double>(static_cast<std::int64_t>(digits)) / EXACT_POWERS_OF_TEN[-exponent];
    int shift = leading_zeros(digits);
    const Wide& power = POWERS_OF_FIVE[-exponent];
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
    if (exact && exponent <= 0 && exponent >= LEAST_EXPONENT && digits)
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

// ---- text --------------------------------------------------------------------------------------------------------

// The length of the first character: positive if it is well-formed UTF-8, else minus the length of what Python's
// decoder replaces by one U+FFFD (the longest beginning of a character, at least one byte).
int character(const char* p, const char* end) {
    auto byte = [&](int i) { return static_cast<unsigned char>(p[i]); };
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

bool is_utf8(Text text) {
    for (const char* p = text.begin; p != text.end;) {
        if (text.end - p >= 8 && !(load8(p) & (ONES * 0x80))) {
            p += 8;
            continue;
        }
        const int length = character(p, text.end);
        if (length < 0) return false;
        p += length;
    }
    return true;
}

constexpr std::size_t PADDING = 8;

Text padded(std::string& copy) {
    const std::size_t size = copy.size();
    copy.append(PADDING, '\0');
    return {copy.data(), copy.data() + size};
}

// A decoded line: undecodable bytes replaced, carriage returns dropped, and padded; the text around it ends at limit.
// The line is copied only if necessary.
Text decode(Text text, const char* limit, std::string& copy, bool has_return, bool has_high) {
    const bool replace = has_high && !is_utf8(text);
    if (!has_return && !replace && limit - text.end >= static_cast<std::ptrdiff_t>(PADDING)) return text;
    copy.clear();
    if (!has_return && !replace) {
        copy.assign(text.begin, text.end);
        return padded(copy);
    }
    for (const char* p = text.begin; p != text.end;) {
        const int length = replace ? character(p, text.end) : 1;
        if (length < 0)
            copy += "\xef\xbf\xbd";
        else if (*p != '\r')
            copy.append(p, static_cast<std::size_t>(length));
        p += std::abs(length);
    }
    return padded(copy);
}

Text decode(Text text, const char* limit, std::string& copy) {
    const bool high = std::any_of(text.begin, text.end, [](char c) { return c & 0x80; });
    return decode(text, limit, copy, std::memchr(text.begin, '\r', text.size()) != nullptr, high);
}

bool is_control(unsigned char c) { return (c < 0x20 && c != '\r') || c == 0x7f; }

// The kinds of bytes in a line. Compilers turn the loop into vector instructions.
unsigned byte_flags(Text line) {
    unsigned char least = 0xff, most = 0, capital = 0;
    const auto* p = reinterpret_cast<const unsigned char*>(line.begin);
    const auto* end = p + line.size();
    for (const auto* q = p; q != end; ++q) {
        const unsigned char c = *q;
        least = std::min(least, c);
        most = std::max(most, c);
        capital |= static_cast<unsigned char>(c - 'A') < 26;
    }
    unsigned flags = (most & 0x80 ? NOT_ASCII : 0) | (capital ? CAPITAL : 0);
    if (least < 0x20 || most >= 0x7f) {
        if (std::memchr(p, '\r', line.size())) flags |= CARRIAGE_RETURN;
        if (std::any_of(p, end, is_control)) flags |= CONTROL;
    }
    return flags;
}

// ---- a malformed line --------------------------------------------------------------------------------------------

// A place in a word; nothing after the word is read.
struct Cursor {
    const char* p;
    const char* end;
    bool done() const { return p == end; }
    bool is(const char* characters) const { return !done() && *p && std::strchr(characters, *p); }
    bool skip(const char* characters) {
        const bool found = is(characters);
        p += found;
        return found;
    }
    bool skip_all(const char* characters) {
        const char* begin = p;
        while (skip(characters)) {
        }
        return p != begin;
    }
    bool skip_digits() { return skip_all("0123456789"); }
    // A point with digits, or nothing.
    bool skip_fraction() { return !skip(".") || skip_digits(); }
    // Whether the rest is a name, in small letters or capitals.
    bool is_rest(const char* name) const {
        return static_cast<std::size_t>(end - p) == std::strlen(name) &&
               std::equal(p, end, name, [](char c, char small) { return (c | 0x20) == small; });
    }
};

// The twin of wordprobs.number_mistake for ASCII: whether it recognises the mistake in place of a number. The patterns
// are those of NUMBER_MISTAKES, in another order.
bool is_number_mistake(Text word) {
    Cursor number{word.begin, word.end};
    if (number.skip("+-") && number.is("+-")) return true;
    if (number.is_rest("nan") || number.is_rest("inf") || number.is_rest("infinity")) return true;
    Cursor other = number;
    if (other.skip_all("0123456789.,")) {
        other.skip_all("\t\n\v\f\r\x1c\x1d\x1e\x1f");
        if (other.skip("%") && other.done()) return true;
    }
    other = number;
    if (other.skip("0") && other.skip("xX")) return true;
    if (!number.skip_digits()) {
        if (!number.skip(".") || !number.skip_digits()) return false;
        return number.done() || (number.skip("eE") && (number.skip("+-"), number.skip_digits()) && number.done());
    }
    other = number;
    if (other.skip(",") && other.skip_digits() && (other.done() || other.skip("eE"))) return true;
    other = number;
    if (other.skip(".") && other.done()) return true;
    other = number;
    if (other.skip_fraction() && other.skip("eE") && (other.skip("+-"), other.done())) return true;
    if (!number.is("_'")) return false;
    while (number.skip("_'"))
        if (!number.skip_digits()) return false;
    return number.skip_fraction() && number.done();
}

// The kind of error of a word that is not a number, on a line without a colon. MALFORMED: the kind depends on characters
// beyond ASCII, and is left to the reference.
unsigned error_in_vector(Text word, bool is_first) {
    if (word.begin == word.end) return STRAY_SPACE;
    if (is_first) return NO_COLON;
    if (std::any_of(word.begin, word.end, [](char c) { return c & 0x80; })) return MALFORMED;
    return is_number_mistake(word) ? NOT_A_NUMBER : NO_COLON;
}

// The twin of reference.error_kind, for a decoded line: the kind of its first error, or MALFORMED (see above).
unsigned error_kind(Text line) {
    if (line.begin == line.end) return EMPTY_LINE;
    const bool vector = !std::memchr(line.begin, ':', line.size());
    bool too_large = false;
    for (const char* p = line.begin;; ++p) {
        const Text word{p, std::find(p, line.end, ' ')};
        const char* number = word.end;
        while (!vector && number != word.begin && number[-1] != ':') --number;
        if (!vector && number == word.begin) return word.begin == word.end ? STRAY_SPACE : NO_COLON;
        if (vector) number = word.begin;
        double value;
        if (read_number(number, value) != word.end)
            return vector ? error_in_vector(word, word.begin == line.begin) : NOT_A_NUMBER;
        too_large |= std::isinf(value);
        p = word.end;
        if (p == line.end) return too_large ? NUMBER_TOO_LARGE : WRONG_LENGTH;
    }
}

// ---- a line ------------------------------------------------------------------------------------------------------

// Numbers that outlive a line, so that their memory is reused for the next one.
class Numbers {
  public:
    void clear() { size_ = 0; }
    void add(double value) {
        if (size_ == values_.size()) values_.resize(std::max<std::size_t>(64, 2 * size_));
        values_[size_++] = value;
    }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    double operator[](std::size_t i) const { return values_[i]; }
    double sum() const {
        double total = 0;
        for (std::size_t i = 0; i < size_; ++i) total += values_[i];
        return total;
    }
    double greatest() const {
        double most = -INFINITE;
        for (std::size_t i = 0; i < size_; ++i) most = std::max(most, values_[i]);
        return most;
    }
    double least() const {
        double least = INFINITE;
        for (std::size_t i = 0; i < size_; ++i) least = std::min(least, values_[i]);
        return least;
    }
    // ln of the sum of exp of the numbers less an offset.
    double log_sum_exp(double offset) const {
        const double most = greatest() - offset;
        if (most == -INFINITE) return most;
        double total = 0;
        for (std::size_t i = 0; i < size_; ++i) total += std::exp((values_[i] - offset) - most);
        return most + std::log(total);
    }

  private:
    std::vector<double> values_;
    std::size_t size_ = 0;
};

// Two odd numbers, different in each process.
struct Secrets {
    std::uint64_t first, hash;
};

Secrets make_secrets() {
    std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    try {
        std::random_device random;
        seed ^= static_cast<std::uint64_t>(random()) << 32 | random();
    } catch (const std::exception&) {
        // Without a source of random numbers, use the time.
    }
    std::mt19937_64 generator(seed);
    return {generator() | 1, generator() | 1};
}

const Secrets SECRETS = make_secrets();

// The words of a line, numbered in order. Words are compared by their hash and their first eight bytes; different words
// made to agree in both count as the same.
class WordSet {
  public:
    void clear() {
        first_ += size_;
        size_ = 0;
        if (first_ >> 31) {  // the numbers may run out: forget all of them
            std::fill(slots_.begin(), slots_.end(), Slot{});
            first_ = 1;
        }
    }

    std::size_t size() const { return size_; }

    // The number of the word on its line, from 0: the size before, if it is new.
    std::uint32_t add(Text word, std::uint32_t hash) {
        const std::size_t length = word.size();
        return add(length >= 8 ? load8(word.begin) : load8(word.begin) & ((std::uint64_t{1} << 8 * length) - 1), hash);
    }

    std::uint32_t add(std::uint64_t first, std::uint32_t hash) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        const std::uint32_t next = first_ + size_, found = insert({first, hash, next});
        size_ += found == next;
        return found - first_;
    }

  private:
    struct Slot {
        std::uint64_t first = 0;
        std::uint32_t hash = 0, number = 0;  // the number in all lines, from 1; a smaller one than this line's is free
    };

    std::uint32_t insert(Slot word) {
        const std::size_t mask = slots_.size() - 1;
        // The top bits depend on all bits of both and on unpredictable numbers, so that nobody can choose words that
        // all want the same slot.
        const std::uint64_t mixed = word.first * SECRETS.first + word.hash * SECRETS.hash;
        for (std::size_t i = mixed >> leading_zeros(mask);; i = (i + 1) & mask) {
            if (slots_[i].number < first_) return (slots_[i] = word).number;
            if (slots_[i].hash == word.hash && slots_[i].first == word.first) return slots_[i].number;
        }
    }

    void grow() {
        std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.number >= first_) insert(slot);
    }

    std::vector<Slot> slots_;
    std::uint32_t first_ = 1, size_ = 0;
};

double log_add_exp(double a, double b) {
    const double most = std::max(a, b);
    if (most == -INFINITE) return most;
    return most + std::log(std::exp(a - most) + std::exp(b - most));
}

inline double loss_of_log(double log_mass) { return std::max(0.0, -log_mass); }

// The purpose of reading: losses, the rules of the checker too (repeated words, rounding), distributions, entries, or
// losses under several seeds.
enum class Purpose { losses, rules, profiles, entries, seeds };

// What an entry is.
enum class Entry : char { OTHER, HIT, REST };

// A word of a line and its hash.
struct Hashed {
    Text word;
    std::uint32_t hash;
};

constexpr std::uint32_t NO_WORD = ~std::uint32_t{0};
constexpr std::size_t SEED_LANES = 32;  // seeds under which a word is hashed together

class Line {
  public:
    Line(int bits, Purpose purpose) : purpose_(purpose), mask_((std::uint32_t{1} << bits) - 1), share_(1.0 / (mask_ + 1.0)) {}

    // Reads and scores a line; the flags say whether the loss is valid. The texts around line and expected end at the
    // limits.
    double score(Text line, const char* line_limit, Text expected, const char* expected_limit, std::uint32_t seed,
                 unsigned& flags) {
        const unsigned byte_flags_only = flags = byte_flags(line);
        line = decode(line, line_limit, line_copy_, flags & CARRIAGE_RETURN, flags & NOT_ASCII);
        expected = decode(expected, expected_limit, expected_copy_);
        expected_ = {expected, murmur3(expected, seed)};
        const std::uint32_t bucket = bucket_ = expected_.hash & mask_;
        values_.clear(), hits_.clear(), rests_.clear();
        if (!std::memchr(line.begin, ':', line.size())) {
            flags |= VECTOR;
            if (read_vector(line)) return vector_loss(bucket, flags);
        } else if (read_entries(line, seed, bucket, flags)) {
            return entries_loss(flags);
        }
        flags = byte_flags_only | MALFORMED | error_kind(line);
        return std::numeric_limits<double>::quiet_NaN();
    }

    // Scores the line that has so many entries: value(i) is a number, hashes[i] the hash of its word under the line's seed,
    // and sizes[i] the size of that, 0 for the rest. False if a number is not finite, or if the numbers are not the
    // probabilities, or logarithms, that they should be.
    template <typename Value>
    bool score_entries(const Value& value, const std::uint32_t* hashes, const std::uint32_t* sizes, std::size_t count,
                       Text expected, const char* expected_limit, std::uint32_t seed, bool probabilities, double& loss) {
        double least = INFINITE, most = -INFINITE, total = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const double number = value(i);
            least = std::min(least, number), most = std::max(most, number);
            total += number;
        }
        total_ = total;
        probabilities_ = least >= 0 && most > 0 && most <= 1;
        if (probabilities_ != probabilities || total != total) return false;
        values_.clear(), hits_.clear(), rests_.clear();
        for (std::size_t i = 0; !probabilities && i < count; ++i) {
            if (!std::isfinite(value(i))) return false;
            values_.add(value(i));
        }
        expected = decode(expected, expected_limit, expected_copy_);
        const std::uint32_t mask = mask_, bucket = murmur3(expected, seed);
        for (std::size_t i = 0; i < count; ++i) {
            if (sizes[i] && ((hashes[i] ^ bucket) & mask)) continue;
            (sizes[i] ? hits_ : rests_).add(value(i));
        }
        unsigned flags = 0;
        loss = entries_loss(flags);
        return true;
    }

    // The losses of the line read last, for seeds, under so many seeds from one on, each a stride after the other.
    // hash(word, seed, buckets, mask, hashes) hashes a word under seeds, and tells whether any hash is in its bucket.
    template <typename Hash>
    void losses_under(std::uint32_t seed, std::size_t count, bool vector, Hash hash, double* losses, std::size_t stride) {
        constexpr std::size_t LANES = SEED_LANES;
        unsigned flags = 0;
        std::uint32_t buckets[LANES] = {}, hashes[LANES];
        std::array<Numbers, LANES>& hits = hits_under_;
        for (std::size_t first = 0; first < count; first += LANES, seed += LANES, losses += LANES * stride) {
            const std::size_t lanes = std::min(LANES, count - first);
            hash(expected_.word, seed, buckets, mask_, hashes);
            std::copy_n(hashes, LANES, buckets);
            if (vector) {
                for (std::size_t lane = 0; lane < lanes; ++lane) losses[lane * stride] = vector_loss(buckets[lane] & mask_, flags);
                continue;
            }
            for (Numbers& of_lane : hits) of_lane.clear();
            for (std::size_t i = 0; i < listed_.size(); ++i)
                if (listed_[i].size() && hash(listed_[i], seed, buckets, mask_, hashes))
                    for (std::size_t lane = 0; lane < lanes; ++lane)
                        if (!((hashes[lane] ^ buckets[lane]) & mask_)) hits[lane].add(values_[i]);
            // Under most seeds the bucket has no word, or no other than the expected one: their loss is the same.
            hits_.clear();
            const double alone = entries_loss(flags);
            double single = 0, of_single = INFINITE;
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                if (hits[lane].empty()) {
                    losses[lane * stride] = alone;
                } else if (hits[lane].size() == 1 && hits[lane][0] == single && of_single != INFINITE) {
                    losses[lane * stride] = of_single;
                } else {
                    std::swap(hits_, hits[lane]);
                    losses[lane * stride] = entries_loss(flags);
                    if (hits_.size() == 1) single = hits_[0], of_single = losses[lane * stride];
                    std::swap(hits_, hits[lane]);
                }
            }
        }
    }

    // The line read last, for profiles: the values; the number of each one's word, NO_WORD for the rest; the distinct
    // words; and the number of the expected word, if it is listed.
    const Numbers& values() const { return values_; }
    const Numbers& rests() const { return rests_; }
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }
    const std::vector<Hashed>& words() const { return distinct_; }
    std::uint32_t expected_word() const { return expected_word_; }

    // The greatest loss that any of the lines read could have had, with a word whose bucket has no more than its share
    // of the rest.
    double bound() const { return std::max(bound_, least_mass_ > 0 ? loss_of_log(std::log(least_mass_)) : INFINITE); }
    bool are_probabilities() const { return probabilities_; }
    double total() const { return total_; }

  private:
    friend class GuessList;

    bool read_entries(const Text line, const std::uint32_t seed, const std::uint32_t bucket, unsigned& flags) {
        switch (purpose_) {
            case Purpose::rules: return read_entries<Purpose::rules>(line, seed, bucket, flags);
            case Purpose::profiles: return read_entries<Purpose::profiles>(line, seed, bucket, flags);
            case Purpose::entries: return read_entries<Purpose::entries>(line, seed, bucket, flags);
            case Purpose::seeds: return read_entries<Purpose::seeds>(line, seed, bucket, flags);
            default: return read_entries<Purpose::losses>(line, seed, bucket, flags);
        }
    }

    bool read_vector(Text line) {
        const char* p = line.begin;
        for (;;) {
            double value;
            p = read_number(p, value);
            if (!p || std::isinf(value)) return false;
            values_.add(value);
            if (p == line.end) return values_.size() == mask_ + std::size_t{1};
            if (*p++ != ' ') return false;
        }
    }

    // Compiled once for each purpose, so that plain scoring does no work for the others.
    template <Purpose purpose>
    bool read_entries(const Text line, const std::uint32_t seed, const std::uint32_t bucket, unsigned& flags) {
        constexpr bool thorough = purpose == Purpose::rules, whole = purpose == Purpose::profiles;
        constexpr bool marking = purpose == Purpose::entries, keeping = purpose == Purpose::seeds;
        const std::uint32_t mask = mask_;
        double least = INFINITE, most = -INFINITE, total = 0, rounding = 0;
        bool zero = false, tiny = false;
        if (thorough || whole) words_.clear();
        if (whole) numbers_.clear(), distinct_.clear(), expected_word_ = NO_WORD;
        if (marking) entries_.clear();
        if (keeping) listed_.clear();
        const char* p = line.begin;
        for (;;) {
            Text word{p, find_word_end(p, line.end)};
            double value;
            std::int64_t exponent;
            p = word.end == line.end || *word.end == ' ' ? nullptr : read_number(word.end + 1, value, exponent);
            if (!p || (p != line.end && *p != ' ')) {
                p = read_long_entry(word, line.end, value, exponent, flags);
                if (!p) return false;
            }
            if (std::isinf(value)) return false;
            values_.add(value);
            if (keeping) listed_.push_back(word);
            least = std::min(least, value), most = std::max(most, value);
            total += value;
            if (thorough) {
                rounding += half_unit(exponent);
                tiny |= value > 0 && value < LEAST_DIVIDED;
            }
            if (word.begin == word.end) {
                rests_.add(value);
                if (whole) numbers_.push_back(NO_WORD);
                if (marking) entries_.push_back(Entry::REST);
            } else {
                zero |= value == 0;
                const std::uint32_t hash = murmur3(word, seed);
                if ((hash & mask) == bucket) hits_.add(value);
                if (thorough && words_.size() != words_.add(word, hash)) flags |= REPEATED;
                if (whole) add_word({word, hash});
                if (marking) entries_.push_back((hash & mask) == bucket ? Entry::HIT : Entry::OTHER);
            }
            if (p == line.end) break;
            ++p;
        }
        total_ = total;
        rounding_ = rounding;
        probabilities_ = least >= 0 && most > 0 && most <= 1;
        if (zero) flags |= ZERO_ENTRY;
        if (tiny) flags |= TINY;
        if (thorough && rests_.size() > 1) flags |= REPEATED;
        if (least == 0 && most == 0) flags |= ALL_ZERO;
        return true;
    }

    void add_word(Hashed found) {
        const std::uint32_t number = words_.add(found.word, found.hash);
        numbers_.push_back(number);
        if (number == distinct_.size()) distinct_.push_back(found);
        const Text word = found.word, expected = expected_.word;
        if (found.hash == expected_.hash && std::equal(word.begin, word.end, expected.begin, expected.end))
            expected_word_ = number;
    }

    // Reads an entry whose word has colons; returns its end, or nullptr if it is malformed.
    static const char* read_long_entry(Text& word, const char* line_end, double& value, std::int64_t& exponent,
                                       unsigned& flags) {
        const char* end = std::find(word.begin, line_end, ' ');
        const char* colon = end;
        while (colon != word.begin && *--colon != ':') {
        }
        word.end = colon;
        if (colon == end || *colon != ':' || read_number(colon + 1, value, exponent) != end) return nullptr;
        for (const char* p = word.begin; p != word.end; ++p)
            if ((*p == ',' || *p == ';' || *p == '\t') && p != word.begin && p[-1] >= '0' && p[-1] <= '9')
                flags |= SEPARATOR;
        return end;
    }

    // The first colon or space, or the end.
    static const char* find_word_end(const char* p, const char* end) {
        for (;; p += 8) {
            const std::uint64_t bytes = load8(p);
            if (const std::uint64_t found = matches(bytes, ':') | matches(bytes, ' '))
                return std::min(end, p + (lowest_bit(found) >> 3));
            if (end - p <= 8) return end;
        }
    }

    double entries_loss(unsigned& flags) {
        if (!rests_.empty()) flags |= HAS_REST;
        if (rests_.size() == values_.size()) flags |= REST_ALONE;
        return probabilities_ ? probability_loss(flags) : logarithm_loss(flags);
    }

    double probability_loss(unsigned& flags) {
        const double hit = hits_.sum(), rest = rests_.sum();
        flags |= total_flags();
        if (!rests_.empty() && rest == 0) flags |= ZERO_REST;
        const bool off = total_ > 1 || (total_ < LEAST_TOTAL && !rests_.empty());
        const double rest_mass = off ? rest / total_ : total_ < LEAST_TOTAL ? 1 - total_ : rest;
        const double mass = (off ? hit / total_ : hit) + rest_mass * share_;
        least_mass_ = std::min(least_mass_, rest_mass * share_);
        return mass > 0 ? loss_of_log(std::log(mass)) : INFINITE;
    }

    unsigned total_flags() const {
        const unsigned off = total_ > 1 + TOLERANCE ? ABOVE_ONE : total_ < LEAST_TOTAL ? BELOW_ONE : 0;
        const double explained = TOLERANCE + rounding_;
        return off | (off && total_ <= 1 + explained && total_ >= 1 - explained ? ROUNDED : 0);
    }

    double logarithm_loss(unsigned& flags) {
        const double log_share = std::log(share_);
        const double log_total = values_.log_sum_exp(0);
        const bool below = log_total < LEAST_LOG_TOTAL;
        flags |= LOGARITHMS | logarithm_flags(log_total) | looks_like_probabilities();
        if (log_total > 0 || (below && !rests_.empty())) {
            const double greatest = values_.greatest(), log_divisor = values_.log_sum_exp(greatest);
            const double log_rest = rests_.log_sum_exp(greatest) + log_share;
            bound_ = std::max(bound_, log_divisor - log_rest);
            return std::max(0.0, log_divisor - log_add_exp(hits_.log_sum_exp(greatest), log_rest));
        }
        const double log_rest = (below ? std::log(-std::expm1(log_total)) : rests_.log_sum_exp(0)) + log_share;
        bound_ = std::max(bound_, -log_rest);
        return loss_of_log(log_add_exp(hits_.log_sum_exp(0), log_rest));
    }

    double vector_loss(std::uint32_t bucket, unsigned& flags) {
        const double log_total = values_.log_sum_exp(0);
        flags |= LOGARITHMS | logarithm_flags(log_total);
        if (log_total > 0 || log_total < LEAST_LOG_TOTAL) {
            const double greatest = values_.greatest(), log_divisor = values_.log_sum_exp(greatest);
            bound_ = std::max(bound_, log_divisor - (values_.least() - greatest));
            return std::max(0.0, log_divisor - (values_[bucket] - greatest));
        }
        bound_ = std::max(bound_, -values_.least());
        return loss_of_log(values_[bucket]);
    }

    unsigned looks_like_probabilities() const {
        std::size_t inside = 0, positive = 0;
        double least = INFINITE, most = -INFINITE;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const bool is_inside = values_[i] >= 0 && values_[i] <= 1;
            inside += is_inside;
            positive += is_inside && values_[i] > 0;
            least = std::min(least, values_[i]), most = std::max(most, values_[i]);
        }
        const bool overshoots = most >= 0.5 && most <= 1 + OVERSHOOT && least >= -OVERSHOOT;
        return overshoots || (positive && 2 * inside > values_.size()) ? LOOKS_LIKE_PROBABILITIES : 0;
    }

    static unsigned logarithm_flags(double log_total) {
        static const double most = std::log1p(TOLERANCE);
        return (log_total > most ? ABOVE_ONE : 0) | (log_total < LEAST_LOG_TOTAL ? BELOW_ONE : 0);
    }

    Purpose purpose_;
    std::uint32_t mask_, bucket_ = 0;
    double share_;
    WordSet words_;
    std::vector<Hashed> distinct_;
    std::vector<std::uint32_t> numbers_;
    Hashed expected_{};
    std::uint32_t expected_word_ = NO_WORD;
    std::vector<Entry> entries_;
    std::vector<Text> listed_;
    Numbers values_, hits_, rests_;
    std::array<Numbers, SEED_LANES> hits_under_;
    double total_ = 0, rounding_ = 0;
    double least_mass_ = 1, bound_ = 0;
    bool probabilities_ = false;
    std::string line_copy_, expected_copy_;
};

// ---- a block -----------------------------------------------------------------------------------------------------

// Takes the next line off a text.
inline Text take_line(Text& text) {
    const auto* end = static_cast<const char*>(std::memchr(text.begin, '\n', text.size()));
    Text line{text.begin, end ? end : text.end};
    text.begin = end ? end + 1 : text.end;
    return line;
}

// Counts in bytes, sixteen or more in a vector register, before they overflow.
std::size_t count_lines(Text text) {
    std::size_t lines = text.begin != text.end && text.end[-1] != '\n';
    while (text.begin != text.end) {
        constexpr std::ptrdiff_t LANES = 32;
        unsigned char found[LANES] = {};
        const char* stop = text.begin + std::min<std::ptrdiff_t>(255 * LANES, text.end - text.begin) / LANES * LANES;
        for (; text.begin != stop; text.begin += LANES)
            for (int lane = 0; lane < LANES; ++lane) found[lane] += text.begin[lane] == '\n';
        for (unsigned char count : found) lines += count;
        if (text.end - text.begin < LANES)
            for (; text.begin != text.end; ++text.begin) lines += *text.begin == '\n';
    }
    return lines;
}

#include "profile.hpp"

constexpr std::ptrdiff_t NONE = -1;

// Indices of lines, and the greatest loss that any of them could have had.
struct Found {
    bool equal = true;  // whether there are as many lines as expected ones
    std::ptrdiff_t malformed = NONE, undecided = NONE;  // the first malformed line, and the first without a kind of error
    double bound = 0;
};

// Scores the lines, of which there must be as many as expected ones.
Found score_block(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line, bool thorough,
                  double* losses, std::uint32_t* flags) {
    Found found;
    Line line(bits, thorough ? Purpose::rules : Purpose::losses);
    for (std::size_t i = 0; i < lines; ++i) {
        if (outputs.begin == outputs.end) return {false};
        unsigned marks;
        const Text text = take_line(outputs), word = take_line(expected);
        losses[i] = line.score(text, outputs.end, word, expected.end, static_cast<std::uint32_t>(first_line + i), marks);
        flags[i] = static_cast<std::uint32_t>(marks);
        if (marks & MALFORMED) {
            const auto index = static_cast<std::ptrdiff_t>(i);
            if (found.malformed == NONE) found.malformed = index;
            if (found.undecided == NONE && !(marks & ERROR_KINDS)) found.undecided = index;
        }
    }
    found.equal = outputs.begin == outputs.end;
    found.bound = line.bound();
    return found;
}

#include "guesses.hpp"
#include "packed_words.hpp"
#include "listed_rows.hpp"
#include "parquet_lists.hpp"
#include "thrift.hpp"
#include "seeds.hpp"
#include "formatting.hpp"
#include "tokens.hpp"
#include "isotonic.hpp"
#include "exact_sum.hpp"
#include "ngrams.hpp"

#if !defined(GEVAL_WITHOUT_PYTHON)

// ---- Python ------------------------------------------------------------------------------------------------------

class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (view.obj) PyBuffer_Release(&view);
    }
    Text text() const {
        const char* begin = static_cast<const char*>(view.buf);
        return {begin, begin + view.len};
    }
    Py_buffer view{};
};

// Whether the number of bits is in range; if not, an error is set.
bool check_bits(int bits) {
    if (bits >= 1 && bits <= 24) return true;
    PyErr_SetString(PyExc_ValueError, "bits is from 1 to 24");
    return false;
}

PyObject* wrong_lines() {
    PyErr_SetString(PyExc_ValueError, "the two blocks differ in their number of lines");
    return nullptr;
}

// Runs work; false if memory ends.
template <typename Work>
bool has_memory(Work work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        return false;
    } catch (const std::length_error&) {
        return false;
    }
    return true;
}

// Runs short work with the GIL; false if memory ends, with an error set.
template <typename Work>
bool with_gil(Work work) {
    const bool enough_memory = has_memory(work);
    if (!enough_memory) PyErr_NoMemory();
    return enough_memory;
}

// Runs work without the GIL; false if memory ends, with an error set.
template <typename Work>
bool without_gil(Work work) {
    bool enough_memory;
    Py_BEGIN_ALLOW_THREADS;
    enough_memory = has_memory(work);
    Py_END_ALLOW_THREADS;
    if (!enough_memory) PyErr_NoMemory();
    return enough_memory;
}

PyObject* score_lines(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits;
    unsigned long long first_line;
    int thorough;
    if (!PyArg_ParseTuple(arguments, "y*y*iKp", &outputs.view, &expected.view, &bits, &first_line, &thorough))
        return nullptr;
    if (!check_bits(bits)) return nullptr;
    const std::size_t lines = count_lines(expected.text());
    PyObject* losses = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(lines * sizeof(double)));
    PyObject* flags = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(lines * sizeof(std::uint32_t)));
    if (!losses || !flags) {
        Py_XDECREF(losses);
        Py_XDECREF(flags);
        return nullptr;
    }
    Found found;
    auto* loss_values = reinterpret_cast<double*>(PyBytes_AsString(losses));
    auto* flag_values = reinterpret_cast<std::uint32_t*>(PyBytes_AsString(flags));
    const bool enough_memory = without_gil([&] {
        found = score_block(outputs.text(), expected.text(), lines, bits, first_line, thorough != 0, loss_values,
                            flag_values);
    });
    if (!enough_memory || !found.equal) {
        Py_DECREF(losses);
        Py_DECREF(flags);
        return enough_memory ? wrong_lines() : nullptr;
    }
    return Py_BuildValue("(NNnnd)", losses, flags, static_cast<Py_ssize_t>(found.malformed),
                         static_cast<Py_ssize_t>(found.undecided), found.bound);
}

template <typename Number>
PyObject* bytes_of(const std::vector<Number>& numbers) {
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(numbers.data()),
                                     static_cast<Py_ssize_t>(numbers.size() * sizeof(Number)));
}

PyObject* raise_value_error(const char* message) {
    PyErr_SetString(PyExc_ValueError, message);
    return nullptr;
}

template <typename Number>
const Number* numbers_of(const Buffer& buffer) {
    return static_cast<const Number*>(buffer.view.buf);
}

// Whether the items of all buffers have the size of a double and of an int64.
bool have_eight_bytes(std::initializer_list<const Buffer*> buffers) {
    return std::all_of(buffers.begin(), buffers.end(), [](const Buffer* buffer) { return buffer->view.itemsize == 8; });
}

template <typename Number>
std::size_t length_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.view.len) / sizeof(Number);
}

PyObject* reseeded_losses(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits, seeds;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iKi", &outputs.view, &expected.view, &bits, &first_line, &seeds)) return nullptr;
    if (!check_bits(bits)) return nullptr;
    std::vector<double> losses;
    std::ptrdiff_t malformed = NONE;
    bool equal = false;
    if (!without_gil([&] {
            malformed = score_under_seeds(outputs.text(), expected.text(), count_lines(expected.text()), bits, first_line,
                                          static_cast<std::size_t>(std::max(0, seeds)), losses, equal);
        }))
        return nullptr;
    if (malformed == NONE && !equal) return wrong_lines();
    return Py_BuildValue("(Nn)", bytes_of(losses), static_cast<Py_ssize_t>(malformed));
}

PyObject* line_profiles(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits, draws;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iKi", &outputs.view, &expected.view, &bits, &first_line, &draws)) return nullptr;
    if (bits < 1 || bits > 24 || draws < 0 || draws > MOST_DRAWS) {
        PyErr_SetString(PyExc_ValueError, "bits is from 1 to 24, draws from 0 to 10000");
        return nullptr;
    }
    ProfiledBlock block;
    if (!without_gil([&] {
            block = profile_block(outputs.text(), expected.text(), count_lines(expected.text()), bits, first_line, draws);
        }))
        return nullptr;
    if (!block.equal) return wrong_lines();
    return Py_BuildValue("(NNn)", bytes_of(block.columns), bytes_of(block.histogram),
                         static_cast<Py_ssize_t>(block.malformed));
}

PyObject* read_guesses(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iK", &outputs.view, &expected.view, &bits, &first_line)) return nullptr;
    if (!check_bits(bits)) return nullptr;
    GuessList guesses;
    bool equal = true;
    if (!without_gil([&] { equal = guesses.read(outputs.text(), expected.text(), bits, first_line); })) return nullptr;
    if (!equal) return wrong_lines();
    return Py_BuildValue("(NNNNn)", bytes_of(guesses.counts), bytes_of(guesses.masses), bytes_of(guesses.hits),
                         bytes_of(guesses.rests), static_cast<Py_ssize_t>(guesses.malformed));
}

PyObject* bucket_shares(PyObject*, PyObject* arguments) {
    Buffer words, shares, expected;
    int bits;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*y*iK", &words.view, &shares.view, &expected.view, &bits, &first_line))
        return nullptr;
    if (!check_bits(bits)) return nullptr;
    std::vector<double> sums;
    bool equal = true;
    if (!without_gil([&] {
            equal = sum_shares(words.text(), static_cast<const double*>(shares.view.buf),
                               static_cast<std::size_t>(shares.view.len) / sizeof(double), expected.text(), bits, first_line,
                               sums);
        }))
        return nullptr;
    if (!equal) {
        PyErr_SetString(PyExc_ValueError, "words and shares differ in number");
        return nullptr;
    }
    return bytes_of(sums);
}

PyObject* format_entries(PyObject*, PyObject* arguments) {
    Buffer words, numbers;
    double least, most;
    if (!PyArg_ParseTuple(arguments, "y*y*dd", &words.view, &numbers.view, &least, &most)) return nullptr;
    const auto* values = static_cast<const double*>(numbers.view.buf);
    const std::size_t count = static_cast<std::size_t>(numbers.view.len) / sizeof(double);
    std::string line;
    bool enough_memory = true, fits = true;
#if defined(GEVAL_TO_CHARS)
    Py_BEGIN_ALLOW_THREADS;
#endif
    try {
        fits = format_entries(words.text(), values, count, least, most, line);
    } catch (const std::bad_alloc&) {
        enough_memory = false;
    } catch (const std::length_error&) {
        enough_memory = false;
    }
#if defined(GEVAL_TO_CHARS)
    Py_END_ALLOW_THREADS;
#endif
    if (!enough_memory) return PyErr_NoMemory();
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "words and numbers differ in number, or a number is out of range");
        return nullptr;
    }
    return PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), nullptr);
}

PyObject* exact_sum(PyObject*, PyObject* argument) {
    Buffer numbers;
    if (PyObject_GetBuffer(argument, &numbers.view, PyBUF_C_CONTIGUOUS)) return nullptr;
    Expansion sum;
    double found = 0;
    Py_BEGIN_ALLOW_THREADS;
    const double* values = static_cast<const double*>(numbers.view.buf);
    const std::size_t size = static_cast<std::size_t>(numbers.view.len) / sizeof(double);
    for (std::size_t i = 0; i < size && sum.is_finite(); ++i) sum.add(values[i]);
    found = sum.is_finite() ? sum.rounded() : std::accumulate(values, values + size, 0.0);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(found);
}

PyObject* isotonic(PyObject*, PyObject* arguments) {
    Buffer values, weights;
    if (!PyArg_ParseTuple(arguments, "y*y*", &values.view, &weights.view)) return nullptr;
    if (values.view.len != weights.view.len) {
        PyErr_SetString(PyExc_ValueError, "values and weights differ in number");
        return nullptr;
    }
    std::vector<double> found;
    if (!without_gil([&] {
            found = isotonic(static_cast<const double*>(values.view.buf), static_cast<const double*>(weights.view.buf),
                             static_cast<std::size_t>(values.view.len) / sizeof(double));
        }))
        return nullptr;
    return bytes_of(found);
}

// Whether all numbers are below a size.
bool are_below(const Buffer& numbers, std::size_t size) {
    const auto* begin = static_cast<const std::int64_t*>(numbers.view.buf);
    return std::all_of(begin, begin + numbers.view.len / 8,
                       [size](std::int64_t number) { return static_cast<std::uint64_t>(number) < size; });
}

PyObject* honest_fits(PyObject*, PyObject* arguments) {
    Buffer p, n, places, ends, starts, others, other_bins;
    unsigned long long state[4];
    Py_ssize_t draws, other_count;
    if (!PyArg_ParseTuple(arguments, "(KKKK)ny*y*y*y*y*y*y*n", &state[0], &state[1], &state[2], &state[3], &draws, &p.view,
                          &n.view, &places.view, &ends.view, &starts.view, &others.view, &other_bins.view, &other_count))
        return nullptr;
    const Honest honest{
        numbers_of<double>(p), numbers_of<double>(n), length_of<double>(p), numbers_of<std::int64_t>(places),
        length_of<std::int64_t>(places), numbers_of<std::int64_t>(ends), numbers_of<std::int64_t>(starts),
        length_of<std::int64_t>(ends), length_of<std::int64_t>(starts),
        others.view.len ? numbers_of<double>(others) : nullptr, numbers_of<std::int64_t>(other_bins),
        static_cast<std::size_t>(std::max<Py_ssize_t>(0, other_count))};
    const auto* begin = honest.starts;
    if (!have_eight_bytes({&p, &n, &places, &ends, &starts, &others, &other_bins}) || honest.things >> 32 ||
        p.view.len != n.view.len || others.view.len != other_bins.view.len ||
        (honest.others && others.view.len != places.view.len) || draws < 0 || !are_below(places, honest.size) ||
        !are_below(ends, honest.size) || !are_below(starts, honest.size) ||
        !are_below(other_bins, honest.other_count) ||
        std::adjacent_find(begin, begin + honest.start_count, std::greater_equal<>()) != begin + honest.start_count)
        return raise_value_error("the arrays do not fit together");
    HonestFits found;
    if (!without_gil([&] {
            found = honest_fits(honest, Pcg64({state[1], state[0]}, {state[3], state[2]}), static_cast<std::size_t>(draws));
        }))
        return nullptr;
    return Py_BuildValue("(NNNN)", bytes_of(found.excesses), bytes_of(found.curves), bytes_of(found.bins),
                         bytes_of(found.other_bins));
}

constexpr const char* TABLE = "geval_py.TokenTable";

TokenTable* table_in(PyObject* capsule) { return static_cast<TokenTable*>(PyCapsule_GetPointer(capsule, TABLE)); }

PyObject* token_table(PyObject*, PyObject*) {
    auto* table = new (std::nothrow) TokenTable;
    if (!table) return PyErr_NoMemory();
    PyObject* capsule = PyCapsule_New(table, TABLE, [](PyObject* old) { delete table_in(old); });
    if (!capsule) delete table;
    return capsule;
}

PyObject* number_tokens(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer text, separators;
    if (!PyArg_ParseTuple(arguments, "Oy*y*", &capsule, &text.view, &separators.view)) return nullptr;
    TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    std::vector<std::int64_t> counts, numbers;
    if (!without_gil([&] { table->number(text.text(), separators.text(), counts, numbers); })) return nullptr;
    return Py_BuildValue("(NN)", bytes_of(counts), bytes_of(numbers));
}

// Gives the tokens of numbers, or sorts the numbers by them.
template <bool sorts>
PyObject* of_tokens(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer buffer;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &buffer.view)) return nullptr;
    const TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    if (!have_eight_bytes({&buffer})) return raise_value_error("a number of a token has 8 bytes");
    std::string names;
    std::vector<std::int64_t> numbers;
    bool known = true;
    if (!without_gil([&] {
            numbers.resize(buffer.text().size() / sizeof(std::int64_t));
            if (!numbers.empty()) std::memcpy(numbers.data(), buffer.text().begin, numbers.size() * sizeof(std::int64_t));
            known = table->has(numbers.data(), numbers.size());
            if (known && sorts) table->sort(numbers.data(), numbers.size());
            if (known && !sorts) names = table->names(numbers.data(), numbers.size());
        }))
        return nullptr;
    if (!known) {
        PyErr_SetString(PyExc_IndexError, "no token has this number");
        return nullptr;
    }
    return sorts ? bytes_of(numbers) : PyBytes_FromStringAndSize(names.data(), static_cast<Py_ssize_t>(names.size()));
}

PyObject* frequent_tokens(PyObject*, PyObject* arguments) {
    Buffer text, separators, classes;
    Py_ssize_t least;
    if (!PyArg_ParseTuple(arguments, "y*y*y*n", &text.view, &separators.view, &classes.view, &least)) return nullptr;
    FrequentTokens found;
    if (!without_gil([&] {
            found = frequent_tokens(text.text(), separators.text(), classes.text(),
                                    static_cast<std::size_t>(std::max<Py_ssize_t>(0, least)));
        }))
        return nullptr;
    PyObject* names = PyBytes_FromStringAndSize(found.names.data(), static_cast<Py_ssize_t>(found.names.size()));
    return Py_BuildValue("(NNN)", names, bytes_of(found.counts), bytes_of(found.places));
}

PyObject* take_column(PyObject*, PyObject* arguments) {
    Buffer text;
    Py_ssize_t column;
    if (!PyArg_ParseTuple(arguments, "y*n", &text.view, &column)) return nullptr;
    std::string cells;
    if (!without_gil([&] { cells = take_column(text.text(), static_cast<std::size_t>(std::max<Py_ssize_t>(0, column))); }))
        return nullptr;
    return PyBytes_FromStringAndSize(cells.data(), static_cast<Py_ssize_t>(cells.size()));
}

PyObject* add_rows(PyObject*, PyObject* arguments) {
    PyObject *sums_object, *rows_object;
    Buffer sums, rows, places, numbers;
    if (!PyArg_ParseTuple(arguments, "OOy*y*", &sums_object, &rows_object, &places.view, &numbers.view) ||
        PyObject_GetBuffer(sums_object, &sums.view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0 ||
        PyObject_GetBuffer(rows_object, &rows.view, PyBUF_C_CONTIGUOUS) < 0)
        return nullptr;
    if (!have_eight_bytes({&sums, &rows, &places, &numbers}) || sums.view.ndim != 2 || rows.view.ndim != 2 ||
        sums.view.shape[1] != rows.view.shape[1] || places.view.len != numbers.view.len)
        return raise_value_error("the arrays do not fit together");
    const std::size_t columns = static_cast<std::size_t>(rows.view.shape[1]);
    bool in_range = true;
    Py_BEGIN_ALLOW_THREADS;
    const auto add = [&](auto width) {
        in_range = add_rows<decltype(width)::value>(
            static_cast<double*>(sums.view.buf), static_cast<std::size_t>(sums.view.shape[0]),
            static_cast<const double*>(rows.view.buf), static_cast<std::size_t>(rows.view.shape[0]), columns,
            static_cast<const std::int64_t*>(places.view.buf), static_cast<const std::int64_t*>(numbers.view.buf),
            static_cast<std::size_t>(places.view.len) / sizeof(std::int64_t));
    };
    switch (columns) {  // the usual numbers of columns are known to the compiler
        case 4: add(std::integral_constant<std::size_t, 4>()); break;
        case 5: add(std::integral_constant<std::size_t, 5>()); break;
        case 6: add(std::integral_constant<std::size_t, 6>()); break;
        case 7: add(std::integral_constant<std::size_t, 7>()); break;
        case 8: add(std::integral_constant<std::size_t, 8>()); break;
        case 10: add(std::integral_constant<std::size_t, 10>()); break;
        case 11: add(std::integral_constant<std::size_t, 11>()); break;
        default: add(std::integral_constant<std::size_t, 0>());
    }
    Py_END_ALLOW_THREADS;
    if (!in_range) {
        PyErr_SetString(PyExc_IndexError, "no row has this number");
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyObject* count_tokens(PyObject*, PyObject* capsule) {
    const TokenTable* table = table_in(capsule);
    return table ? PyLong_FromSize_t(table->size()) : nullptr;
}

constexpr char PACKED_WORDS[] = "geval_py.PackedWords";

void free_words(PyObject* capsule) { delete static_cast<PackedWords*>(PyCapsule_GetPointer(capsule, PACKED_WORDS)); }

PyObject* pack_words(PyObject*, PyObject* arguments) {
    Buffer words;
    if (!PyArg_ParseTuple(arguments, "y*", &words.view)) return nullptr;
    PackedWords* packed = nullptr;
    if (!without_gil([&] { packed = new PackedWords(words.text()); })) return nullptr;
    PyObject* capsule = PyCapsule_New(packed, PACKED_WORDS, free_words);
    if (!capsule) delete packed;
    return capsule;
}

// The numbers of an optional buffer; false if an error is set.
template <typename Number>
bool optional_numbers(PyObject* object, Buffer& buffer, const Number*& numbers, std::size_t& size) {
    numbers = nullptr, size = 0;
    if (object == Py_None) return true;
    if (PyObject_GetBuffer(object, &buffer.view, PyBUF_C_CONTIGUOUS) < 0) return false;
    if (buffer.view.itemsize != sizeof(Number)) {
        raise_value_error("the arrays do not fit together");
        return false;
    }
    numbers = static_cast<const Number*>(buffer.view.buf);
    size = static_cast<std::size_t>(buffer.view.len) / sizeof(Number);
    return true;
}

PyObject* array_losses(PyObject*, PyObject* arguments) {
    PyObject *capsule, *values_object, *ids_object, *offsets_object, *rests_object;
    Buffer values, ids, offsets, rests, expected, lines;
    int bits, unit;
    if (!PyArg_ParseTuple(arguments, "OOOOOy*y*ii", &capsule, &values_object, &ids_object, &offsets_object, &rests_object,
                          &expected.view, &lines.view, &bits, &unit) ||
        !check_bits(bits))
        return nullptr;
    const auto* words = static_cast<const PackedWords*>(PyCapsule_GetPointer(capsule, PACKED_WORDS));
    if (!words || PyObject_GetBuffer(values_object, &values.view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) return nullptr;
    const Py_buffer& view = values.view;
    Rows<double> rows{static_cast<std::size_t>(lines.view.len) / 4, static_cast<const char*>(view.buf), 0, nullptr, nullptr,
                      nullptr};
    std::size_t id_count, offset_count, rest_count;
    if (!optional_numbers(ids_object, ids, rows.ids, id_count) ||
        !optional_numbers(offsets_object, offsets, rows.offsets, offset_count) ||
        !optional_numbers(rests_object, rests, rows.rests, rest_count))
        return nullptr;
    const bool is_float = view.format && !std::strcmp(view.format, "f");
    bool fits = (is_float || (view.format && !std::strcmp(view.format, "d"))) && (!rows.rests || rest_count == rows.count);
    if (rows.ids) {
        fits = fits && view.ndim == 1 && static_cast<std::size_t>(view.shape[0]) == id_count && rows.offsets &&
               offset_count == rows.count + 1 && are_offsets(rows.offsets, offset_count, id_count) &&
               (view.shape[0] < 2 || view.strides[0] == view.itemsize);
    } else {
        fits = fits && view.ndim == 2 && static_cast<std::size_t>(view.shape[0]) == rows.count &&
               static_cast<std::size_t>(view.shape[1]) == words->size() &&
               (view.shape[1] < 2 || view.strides[1] == view.itemsize);
        if (fits) rows.stride = view.strides[0];
    }
    if (!fits || unit < 0 || unit > static_cast<int>(Unit::logits) || count_lines(expected.text()) != rows.count) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
        return nullptr;
    }
    PyObject* losses = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(rows.count * sizeof(double)));
    if (!losses) return nullptr;
    auto* found = reinterpret_cast<double*>(PyBytes_AsString(losses));
    const auto* numbers = static_cast<const std::uint32_t*>(lines.view.buf);
    std::ptrdiff_t fault = NONE;
    double bound = 0;
    if (!without_gil([&] {
            std::string copy(expected.text().begin, expected.text().end);
            const Text answers = padded(copy);
            if (is_float) {
                const Rows<float> single{rows.count, rows.values, rows.stride, rows.ids, rows.offsets, rows.rests};
                RowScorer<float> scorer(*words, bits, static_cast<Unit>(unit));
                fault = scorer.score(single, answers, numbers, found);
                bound = scorer.bound();
            } else {
                RowScorer<double> scorer(*words, bits, static_cast<Unit>(unit));
                fault = scorer.score(rows, answers, numbers, found);
                bound = scorer.bound();
            }
        })) {
        Py_DECREF(losses);
        return nullptr;
    }
    return Py_BuildValue("(Ndn)", losses, bound, static_cast<Py_ssize_t>(fault));
}

// The numbers of a buffer; false if an error is set.
bool places_of(PyObject* object, Buffer& buffer, Places& places) {
    if (PyObject_GetBuffer(object, &buffer.view, PyBUF_C_CONTIGUOUS) < 0) return false;
    const Py_ssize_t size = buffer.view.itemsize;
    if (size == 4 || size == 8) {
        places = {static_cast<const char*>(buffer.view.buf), static_cast<std::size_t>(buffer.view.len / size), size == 8};
        return true;
    }
    PyErr_SetString(PyExc_ValueError, "offsets, codes and values have four or eight bytes");
    return false;
}

PyObject* row_losses(PyObject*, PyObject* arguments) {
    PyObject *offsets_object, *starts_object, *codes_object, *values_object;
    Buffer offsets, starts, text, codes, values, expected;
    int probabilities, bits;
    unsigned long long first_line;
    ListedRows rows{};
    if (!PyArg_ParseTuple(arguments, "OOy*OOpy*iK", &offsets_object, &starts_object, &text.view, &codes_object,
                          &values_object, &probabilities, &expected.view, &bits, &first_line) ||
        !check_bits(bits))
        return nullptr;
    rows.coded = codes_object != Py_None;
    if (!places_of(offsets_object, offsets, rows.offsets) || !places_of(starts_object, starts, rows.starts) ||
        !places_of(values_object, values, rows.values) || (rows.coded && !places_of(codes_object, codes, rows.codes)))
        return nullptr;
    rows.text = text.text();
    rows.probabilities = probabilities;
    const std::size_t count = rows.offsets.count - (rows.offsets.count > 0);
    if (!rows.offsets.count || count_lines(expected.text()) != count) return wrong_lines();
    PyObject* losses = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * sizeof(double)));
    if (!losses) return nullptr;
    auto* found = reinterpret_cast<double*>(PyBytes_AsString(losses));
    std::ptrdiff_t fault = NONE;
    double bound = 0;
    if (!without_gil([&] {
            ListedScorer scorer(rows, bits);
            fault = scorer.score(expected.text(), first_line, found);
            bound = scorer.bound();
        })) {
        Py_DECREF(losses);
        return nullptr;
    }
    return Py_BuildValue("(Ndn)", losses, bound, static_cast<Py_ssize_t>(fault));
}

PyObject* score_probing(PyObject*, PyObject* arguments) {
    Buffer model, counts, text;
    float multiplier;
    int marks;
    if (!PyArg_ParseTuple(arguments, "y*y*fy*p", &model.view, &counts.view, &multiplier, &text.view, &marks)) return nullptr;
    const std::uint64_t* sizes = numbers_of<std::uint64_t>(counts);
    ProbingLogs found;
    bool whole = true;
    if (!without_gil([&] {
            ProbingModel opened;
            whole = opened.open(model.text(), multiplier, {sizes, sizes + length_of<std::uint64_t>(counts)});
            if (whole) opened.score(text.text(), marks, found);
        }))
        return nullptr;
    if (!whole) return raise_value_error("the file is too short for its tables");
    return Py_BuildValue("(NNN)", bytes_of(found.logs), bytes_of(found.unknown), bytes_of(found.lengths));
}

// A C++ object that Python holds.
template <typename Object>
PyObject* capsule_of(std::unique_ptr<Object> object, const char* name) {
    PyObject* capsule = PyCapsule_New(object.get(), name, [](PyObject* self) {
        delete static_cast<Object*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    });
    if (capsule) object.release();
    return capsule;
}

constexpr char WORD_TABLE[] = "geval_py.WordTable", KEY_INDEX[] = "geval_py.KeyIndex";

PyObject* word_table(PyObject*, PyObject* arguments) {
    Buffer words, alias;
    if (!PyArg_ParseTuple(arguments, "y*y*", &words.view, &alias.view)) return nullptr;
    std::unique_ptr<WordTable> table;
    if (!without_gil([&] { table = std::make_unique<WordTable>(words.text(), alias.text()); })) return nullptr;
    return capsule_of(std::move(table), WORD_TABLE);
}

PyObject* table_words(PyObject*, PyObject* capsule) {
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    return table ? bytes_of(table->text()) : nullptr;
}

PyObject* number_words(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer text, spaces;
    int grow;
    if (!PyArg_ParseTuple(arguments, "Oy*y*p", &capsule, &text.view, &spaces.view, &grow)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    NumberedLines found;
    if (!table || !without_gil([&] {
            const std::lock_guard<std::mutex> lock(table->mutex);
            found = number_words(*table, text.text(), spaces.text(), grow);
        }))
        return nullptr;
    return Py_BuildValue("(NN)", bytes_of(found.ids), bytes_of(found.lengths));
}

PyObject* read_arpa_rows(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer block;
    int order, grow;
    if (!PyArg_ParseTuple(arguments, "Oy*ip", &capsule, &block.view, &order, &grow)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    ArpaRows found;
    bool well_formed = false;
    if (!table || !without_gil([&] {
            const std::lock_guard<std::mutex> lock(table->mutex);
            std::string copy(block.text().begin, block.text().end);
            well_formed = read_arpa_rows(*table, padded(copy), order, grow, found);
        }))
        return nullptr;
    if (!well_formed) Py_RETURN_NONE;
    return Py_BuildValue("(NNN)", bytes_of(found.ids), bytes_of(found.logs), bytes_of(found.backoffs));
}

PyObject* write_arpa_rows(PyObject*, PyObject* arguments) {
    Buffer text, starts, columns, logs, backoffs;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*", &text.view, &starts.view, &columns.view, &logs.view, &backoffs.view))
        return nullptr;
    const std::size_t rows = length_of<double>(logs), ids = length_of<std::int32_t>(columns);
    if (!length_of<std::int64_t>(starts) || (rows ? ids % rows : ids) ||
        (backoffs.view.len && backoffs.view.len != logs.view.len))
        return raise_value_error("the columns differ in length");
    const Words words{text.text().begin, numbers_of<std::int64_t>(starts), length_of<std::int64_t>(starts) - 1};
    if (words.starts[0] != 0 || words.starts[words.number] != text.view.len ||
        std::adjacent_find(words.starts, words.starts + words.number + 1, std::greater_equal<>()) !=
            words.starts + words.number + 1)
        return raise_value_error("the words do not start where they should");
    std::vector<char> out;
    bool known = true;
    if (!without_gil([&] {
            known = write_arpa_rows(words, numbers_of<std::int32_t>(columns), rows ? ids / rows : 0, rows,
                                    numbers_of<double>(logs),
                                    backoffs.view.len ? numbers_of<double>(backoffs) : nullptr, out);
        }))
        return nullptr;
    return known ? bytes_of(out) : raise_value_error("a row has a word that does not exist");
}

// An index, with the numbers that it looks at.
struct HeldIndex {
    Buffer keys;
    std::unique_ptr<KeyIndex> index;
};

constexpr char THRIFT_SHAPE[] = "geval_py.ThriftShape";

// Reads a shape as reading/thrift.py writes it: a number, a list of one shape, or shapes by the numbers of fields.
bool read_shape(PyObject* from, ThriftShape& shape) {
    if (PyDict_Check(from)) {
        shape.kind = ThriftReader::STRUCT;
        PyObject *key, *part;
        for (Py_ssize_t place = 0; PyDict_Next(from, &place, &key, &part);) {
            shape.fields.push_back(PyLong_AsLongLong(key));
            shape.parts.emplace_back();
            if (PyErr_Occurred() || !read_shape(part, shape.parts.back())) return false;
        }
        return true;
    }
    if (PyList_Check(from) && PyList_Size(from) == 1) {
        shape.kind = ThriftReader::LIST;
        shape.parts.emplace_back();
        return read_shape(PyList_GetItem(from, 0), shape.parts.back());
    }
    shape.kind = static_cast<int>(PyLong_AsLong(from));
    return !PyErr_Occurred();
}

PyObject* thrift_shape(PyObject*, PyObject* from) {
    auto shape = std::make_unique<ThriftShape>();
    if (!read_shape(from, *shape)) return nullptr;
    return capsule_of(std::move(shape), THRIFT_SHAPE);
}

PyObject* object_of(const ThriftValue& value) {
    switch (value.kind) {
    case ThriftValue::TRUTH: return PyBool_FromLong(value.number != 0);
    case ThriftValue::NUMBER: return PyLong_FromLongLong(value.number);
    case ThriftValue::TEXT:
        return PyBytes_FromStringAndSize(value.text.begin, static_cast<Py_ssize_t>(value.text.size()));
    case ThriftValue::LIST: {
        PyObject* list = PyList_New(static_cast<Py_ssize_t>(value.parts.size()));
        for (std::size_t i = 0; list && i < value.parts.size(); ++i) {
            PyObject* part = object_of(value.parts[i]);
            if (!part || PyList_SetItem(list, static_cast<Py_ssize_t>(i), part) < 0) Py_CLEAR(list);
        }
        return list;
    }
    default: {
        PyObject* fields = PyDict_New();
        for (std::size_t i = 0; fields && i < value.parts.size(); ++i) {
            PyObject *number = PyLong_FromLong(value.parts[i].field), *part = object_of(value.parts[i]);
            if (!number || !part || PyDict_SetItem(fields, number, part) < 0) Py_CLEAR(fields);
            Py_XDECREF(number);
            Py_XDECREF(part);
        }
        return fields;
    }
    }
}

PyObject* read_struct(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer data;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(arguments, "Oy*n", &capsule, &data.view, &most)) return nullptr;
    const auto* shape = static_cast<ThriftShape*>(PyCapsule_GetPointer(capsule, THRIFT_SHAPE));
    if (!shape) return nullptr;
    if (most < 0) return raise_value_error("most is not negative");
    ThriftReader reader(data.text(), static_cast<std::uint64_t>(most));
    ThriftValue found;
    ThriftReader::Fault fault = ThriftReader::NO_FAULT;
    const auto read = [&] { fault = reader.read(*shape, found); };
    // The header of a page takes less time than other threads to give the GIL back.
    if (!(data.text().size() < 1 << 16 ? with_gil(read) : without_gil(read))) return nullptr;
    if (fault) return PyLong_FromLong(fault);
    PyObject* fields = object_of(found);
    if (!fields) return nullptr;
    return Py_BuildValue("(Nn)", fields, static_cast<Py_ssize_t>(reader.left().begin - data.text().begin));
}

constexpr char PARQUET_LISTS[] = "geval_py.ParquetLists";

PyObject* parquet_lists(PyObject*, PyObject* arguments) {
    int kind, definition;
    if (!PyArg_ParseTuple(arguments, "ii", &kind, &definition)) return nullptr;
    if (kind < 0 || kind >= ParquetLists::KINDS || definition < 1 || definition > 255)
        return raise_value_error("kind is from 0 to 4, definition from 1 to 255");
    std::unique_ptr<ParquetLists> lists;
    if (!without_gil([&] {
            lists = std::make_unique<ParquetLists>(static_cast<ParquetLists::Kind>(kind), static_cast<unsigned>(definition));
        }))
        return nullptr;
    return capsule_of(std::move(lists), PARQUET_LISTS);
}

ParquetLists* lists_in(PyObject* capsule) {
    return static_cast<ParquetLists*>(PyCapsule_GetPointer(capsule, PARQUET_LISTS));
}

PyObject* add_dictionary(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer values;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(arguments, "Oy*n", &capsule, &values.view, &count)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (count < 0) return raise_value_error("count is not negative");
    bool whole = false;
    if (!without_gil([&] { whole = lists->add_dictionary(values.text(), static_cast<std::size_t>(count)); }))
        return nullptr;
    return PyLong_FromSsize_t(whole ? static_cast<Py_ssize_t>(lists->longest()) : -1);
}

PyObject* start_group(PyObject*, PyObject* capsule) {
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    lists->start_group();
    Py_RETURN_NONE;
}

PyObject* dictionary_of(PyObject*, PyObject* capsule) {
    const ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    const Text text = lists->dictionary_text();
    return Py_BuildValue("(Ny#)", bytes_of(lists->dictionary_starts()), text.begin, static_cast<Py_ssize_t>(text.size()));
}

PyObject* text_size(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer codes;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &codes.view)) return nullptr;
    const ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    std::size_t size = 0;
    if (!lists->add_sizes(numbers_of<std::int32_t>(codes), length_of<std::int32_t>(codes), size))
        return raise_value_error("a code has no word");
    return PyLong_FromSize_t(size);
}

PyObject* add_page(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    std::shared_ptr<Buffer> page(new (std::nothrow) Buffer);
    Py_ssize_t count;
    int coded;
    if (!page) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(arguments, "Oy*np", &capsule, &page->view, &count, &coded)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (count < 0) return raise_value_error("count is not negative");
    bool whole = false;
    if (!without_gil([&] { whole = lists->add_page(page->text(), page, static_cast<std::size_t>(count), coded); }))
        return nullptr;
    return PyLong_FromSsize_t(whole ? static_cast<Py_ssize_t>(lists->begun()) : -1);
}

PyObject* take_rows(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Py_ssize_t rows;
    if (!PyArg_ParseTuple(arguments, "On", &capsule, &rows)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (rows < 0 || static_cast<std::size_t>(rows) > lists->begun()) return raise_value_error("so many rows are not there");
    const bool words = lists->kind() == ParquetLists::WORDS;
    const std::size_t count = lists->entries(static_cast<std::size_t>(rows)) + words;
    PyObject* offsets = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(4 * (static_cast<std::size_t>(rows) + 1)));
    PyObject* values = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * lists->width()));
    bool whole = false, enough_memory = offsets && values;
    if (enough_memory) {
        auto* places = reinterpret_cast<std::int32_t*>(PyBytes_AsString(offsets));
        char* into = PyBytes_AsString(values);
        enough_memory = without_gil([&] { whole = lists->take(static_cast<std::size_t>(rows), places, into); });
        lists->forget();
    }
    if (enough_memory && whole) {
        const Text text = lists->text();
        return Py_BuildValue("(NNy#)", offsets, values, text.begin, static_cast<Py_ssize_t>(text.size()));
    }
    Py_XDECREF(offsets);
    Py_XDECREF(values);
    if (!enough_memory) return nullptr;
    Py_RETURN_NONE;
}

// What is freed stays with the process, which else spends up to a third of its time on getting pages back.
PyObject* keep_freed_memory(PyObject*, PyObject*) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 25);  // the largest that is possible
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
#endif
    Py_RETURN_NONE;
}

PyObject* key_index(PyObject*, PyObject* arguments) {
    auto held = std::make_unique<HeldIndex>();
    if (!PyArg_ParseTuple(arguments, "y*", &held->keys.view)) return nullptr;
    const std::size_t number = length_of<std::int64_t>(held->keys);
    if (number >> 31) return raise_value_error("there are too many keys");
    if (!without_gil([&] { held->index = std::make_unique<KeyIndex>(numbers_of<std::int64_t>(held->keys), number); }))
        return nullptr;
    return capsule_of(std::move(held), KEY_INDEX);
}

PyObject* find_keys(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer wanted;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &wanted.view)) return nullptr;
    auto* held = static_cast<HeldIndex*>(PyCapsule_GetPointer(capsule, KEY_INDEX));
    std::vector<std::int32_t> rows;
    if (!held || !without_gil([&] {
            rows.resize(length_of<std::int64_t>(wanted));
            held->index->find(numbers_of<std::int64_t>(wanted), rows.size(), rows.data());
        }))
        return nullptr;
    return bytes_of(rows);
}

PyObject* count_lines(PyObject*, PyObject* arguments) {
    Buffer text;
    if (!PyArg_ParseTuple(arguments, "y*", &text.view)) return nullptr;
    std::size_t lines;
    Py_BEGIN_ALLOW_THREADS;
    lines = count_lines(text.text());
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(lines);
}

// For the tests: a loss does not show the last bit of a number.
PyObject* read_number(PyObject*, PyObject* arguments) {
    Buffer text;
    if (!PyArg_ParseTuple(arguments, "y*", &text.view)) return nullptr;
    std::string copy(text.text().begin, text.text().end);
    const Text number = padded(copy);
    double value = 0;
    if (read_number(number.begin, value) != number.end) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

PyMethodDef METHODS[] = {
    {"read_number", read_number, METH_VARARGS, "read_number(text) -> the number, inf if too large; None if it is none"},
    {"count_lines", count_lines, METH_VARARGS, "count_lines(text) -> number of lines; the last may lack its LF"},
    {"line_profiles", line_profiles, METH_VARARGS,
     "line_profiles(outputs, expected, bits, first_line, draws) -> (columns, histogram, index of the first malformed "
     "line, -1 for none)"},
    {"reseeded_losses", reseeded_losses, METH_VARARGS,
     "reseeded_losses(outputs, expected, bits, first_line, seeds) -> (losses under each seed, index of the first malformed "
     "line or -1)"},
    {"score_lines", score_lines, METH_VARARGS,
     "score_lines(outputs, expected, bits, first_line, thorough) -> (losses, flags, index of the first malformed line, of "
     "the first whose kind of error the reference must tell; -1 for none)"},
    {"read_guesses", read_guesses, METH_VARARGS,
     "read_guesses(outputs, expected, bits, first_line) -> (counts, masses, hits, rests, index of the first malformed line "
     "or -1)"},
    {"bucket_shares", bucket_shares, METH_VARARGS,
     "bucket_shares(words, shares, expected, bits, first_line) -> the sum of the shares in each expected word's bucket"},
    {"exact_sum", exact_sum, METH_O, "exact_sum(numbers) -> the sum, rounded once"},
    {"isotonic", isotonic, METH_VARARGS, "isotonic(values, weights) -> the nearest rising values"},
    {"honest_fits", honest_fits, METH_VARARGS,
     "honest_fits(state, draws, p, n, places, ends, starts, others, other_bins, other_count) -> (excesses, curves, hits in "
     "bins, hits of others)"},
    {"token_table", token_table, METH_NOARGS, "token_table() -> an empty table of tokens"},
    {"number_tokens", number_tokens, METH_VARARGS,
     "number_tokens(table, text, separators) -> (the number of distinct tokens of each line, their numbers)"},
    {"token_names", of_tokens<false>, METH_VARARGS, "token_names(table, numbers) -> the tokens, each ended by LF"},
    {"sort_tokens", of_tokens<true>, METH_VARARGS, "sort_tokens(table, numbers) -> the numbers in the order of the tokens"},
    {"frequent_tokens", frequent_tokens, METH_VARARGS,
     "frequent_tokens(text, separators, classes, least) -> (the tokens, each ended by LF, how many each line has, their "
     "places)"},
    {"take_column", take_column, METH_VARARGS, "take_column(text, column) -> a cell of each line, each ended by LF"},
    {"add_rows", add_rows, METH_VARARGS, "add_rows(sums, rows, places, numbers): add the row at each place to a sum"},
    {"count_tokens", count_tokens, METH_O, "count_tokens(table) -> how many there are"},
    {"format_entries", format_entries, METH_VARARGS, "format_entries(words, numbers, least, most) -> the output line"},
    {"pack_words", pack_words, METH_VARARGS, "pack_words(words) -> the lines as words that can be hashed fast"},
    {"array_losses", array_losses, METH_VARARGS,
     "array_losses(words, values, ids, offsets, rests, expected, lines, bits, unit) -> (losses, bound, index of the first "
     "row at fault or -1)"},
    {"row_losses", row_losses, METH_VARARGS,
     "row_losses(offsets, starts, text, codes, values, probabilities, expected, bits, first_line) -> (losses, bound, index "
     "of the first row that is no line or -1)"},
    {"thrift_shape", thrift_shape, METH_O, "thrift_shape(shape) -> the shape of a structure"},
    {"read_struct", read_struct, METH_VARARGS,
     "read_struct(shape, data, most) -> (fields, size); 1 where the data end, 2 for too many entries, 3 for what is wrong"},
    {"keep_freed_memory", keep_freed_memory, METH_NOARGS,
     "keep_freed_memory(): let this process keep the memory that it frees, if it has glibc"},
    {"parquet_lists", parquet_lists, METH_VARARGS, "parquet_lists(kind, definition) -> an empty column of lists"},
    {"start_group", start_group, METH_O, "start_group(lists): what is added next is of another row group"},
    {"add_dictionary", add_dictionary, METH_VARARGS,
     "add_dictionary(lists, values, count) -> the size of its longest word; -1 if it is refused"},
    {"dictionary_of", dictionary_of, METH_O, "dictionary_of(lists) -> (starts, text) of the words of all dictionaries"},
    {"text_size", text_size, METH_VARARGS, "text_size(lists, codes) -> the bytes of their words"},
    {"add_page", add_page, METH_VARARGS,
     "add_page(lists, page, count, coded) -> how many rows have begun; -1 if it is refused"},
    {"take_rows", take_rows, METH_VARARGS,
     "take_rows(lists, rows) -> (offsets, values or starts, text); None if a page is damaged"},
    {"score_probing", score_probing, METH_VARARGS,
     "score_probing(model, counts, multiplier, text, marks) -> (log10 of the tokens, whether unknown, tokens by line)"},
    {"word_table", word_table, METH_VARARGS, "word_table(words, alias) -> a table that numbers words"},
    {"table_words", table_words, METH_O, "table_words(table) -> the words, each with an LF behind it"},
    {"number_words", number_words, METH_VARARGS, "number_words(table, text, spaces, grow) -> (ids, words by line)"},
    {"read_arpa_rows", read_arpa_rows, METH_VARARGS,
     "read_arpa_rows(table, block, order, grow) -> (ids, logs, back-offs), None if the reference must read them"},
    {"write_arpa_rows", write_arpa_rows, METH_VARARGS,
     "write_arpa_rows(words, starts, columns, logs, back-offs) -> the rows of an ARPA file"},
    {"key_index", key_index, METH_VARARGS, "key_index(keys) -> an index of different numbers"},
    {"find_keys", find_keys, METH_VARARGS, "find_keys(index, wanted) -> the row of each number, -1 if there is none"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot SLOTS[] = {{0, nullptr}};

PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "The native kernel; see geval_py.scoring.kernel.native.", 0, METHODS, SLOTS, nullptr, nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&MODULE); }

#else

}  // namespace

#endif
