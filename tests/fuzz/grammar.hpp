// Mutations that know the grammar of output lines: entries of a word, a colon and a number, and vectors of numbers.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// splitmix64 (S. Vigna, 2015).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15u;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        return mixed ^ (mixed >> 31);
    }
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(((next() >> 32) * limit) >> 32); }
    template <std::size_t SIZE>
    const char* one_of(const char* const (&texts)[SIZE]) {
        return texts[below(SIZE)];
    }

  private:
    std::uint64_t state_;
};

constexpr const char* SOME_NUMBERS[] = {
    "0", "1", "0.5", "1.0", "0.25", "-0", "1e-5", "-1", "-2.3025850929940455", "-745.2", "-800", "1e309", "1e-400",
    "4.9e-324", "2.2250738585072011e-308", "1.7976931348623159e308", "9007199254740993", "0.3333333333333333",
    "12345678901234567890", "-1e308", "+0.5", "0.9999999999", "1.00000001", "1e22", "1e23", "-0.0", "00.5", "1E-2",
};
constexpr const char* SOME_MISTAKES[] = {
    "nan", "inf", "-infinity", "0,5", "5%", "0x1", "1_0", "1'0", "--1", "+", "-", ".5", "5.", "1e", "1e+", "", "1:",
    "1 ", "\xef\xbc\x95", "1.5.2", "e5", "1e5.5", "+-1", "0,5e1", "5 %", "1\t", "\xd9\xa5",
};
constexpr const char* SOME_EXPONENTS[] = {"e-", "e", "E+"};
constexpr const char* SOME_WORDS[] = {
    "a", "b", "ka", "Ab", "of", "the", "a:b", ":", "::", "1", "0.1,b", "0.2;c", "9\tx", "\xc5\xbc\xc3\xb3\xc5\x82w",
    "\xe2\x82\xac", "\xf0\x9f\x92\x96", "\xe3\x80\x80", "\xc2\xa0", "\xff", "\xe2\x82", "\xed\xa0\x80", "\xf0\x9f\x92",
    "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "\r", "\x7f", "\t", "nan", "<s>", "-", "",
};
constexpr const char* SOME_SEPARATORS[] = {" ", "\n", ":", "\t", "\r", "\r\n", "  ", ",", ";", "\xc2\xa0", "e", ".", "-", "0"};

inline void append_digits(std::string& to, Random& random, std::size_t most) {
    for (std::size_t left = 1 + random.below(most); left; --left) to += static_cast<char>('0' + random.below(10));
}

// A number half way between two doubles, with up to five decimal places: rounding depends on its last bit.
inline void append_halfway(std::string& to, Random& random) {
    const std::size_t places = random.below(6);
    const std::uint64_t whole = (std::uint64_t{1} << 53) | (random.next() >> 11) | 1, mask = (std::uint64_t{1} << places) - 1;
    to += std::to_string(whole >> places);
    if (places) to += '.';
    std::uint64_t rest = whole & mask;
    for (std::size_t i = 0; i < places; ++i) {
        rest *= 10;
        to += static_cast<char>('0' + (rest >> places));
        rest &= mask;
    }
}

inline void append_number(std::string& to, Random& random) {
    switch (random.below(9)) {
        case 0: to += random.one_of(SOME_NUMBERS); break;
        case 1: to += random.one_of(SOME_MISTAKES); break;
        case 2: append_digits(to, random, 22); break;
        case 3:
            append_number(to, random);
            to += random.one_of(SOME_EXPONENTS);
            append_digits(to, random, 3);
            break;
        case 4:
            to += '-';
            append_digits(to, random, 3);
            to += '.';
            append_digits(to, random, 18);
            break;
        case 5: append_halfway(to, random); break;
        default:
            to += "0.";
            append_digits(to, random, random.below(4) ? 4 : 20);
    }
}

inline void append_entry(std::string& to, Random& random) {
    to += random.one_of(SOME_WORDS);
    if (random.below(32)) to += ':';
    append_number(to, random);
}

// Entries or a vector, perhaps of as many values as there are buckets.
inline void append_line(std::string& to, Random& random, int bits) {
    const bool vector = random.below(4) == 0;
    const std::size_t count = vector && bits <= 4 ? std::size_t{1} << bits : 1 + random.below(6);
    const bool logarithms = vector || random.below(3) == 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i) to += ' ';
        if (!vector) (to += random.below(5) ? random.one_of(SOME_WORDS) : "") += ':';
        to += logarithms ? "-" : "0.";
        append_digits(to, random, 3);
        if (logarithms && random.below(2)) to += ".5";
    }
}

// A place in a text where a token begins, or its end.
inline std::size_t token_in(const std::string& text, Random& random) {
    const std::size_t from = random.below(text.size() + 1), found = text.find_first_of(" \n", from);
    return found == std::string::npos ? text.size() : found + 1;
}

inline std::size_t end_of_token(const std::string& text, std::size_t begin) {
    return std::min(text.find_first_of(" \n", begin), text.size());
}

// Changes a text of output lines in one place.
inline void mutate_lines(std::string& text, Random& random, int bits) {
    static thread_local std::string piece;
    piece.clear();
    const std::size_t token = token_in(text, random), end = end_of_token(text, token);
    switch (random.below(9)) {
        case 0:  // a new entry
            append_entry(piece, random);
            text.insert(token, piece += ' ');
            break;
        case 1: text.erase(token, end + 1 - token); break;
        case 2: {  // another number
            const std::size_t colon = text.find_last_of(": \n", end ? end - 1 : 0);
            const std::size_t from = colon == std::string::npos || colon < token ? token : colon + 1;
            append_number(piece, random);
            text.replace(from, end - from, piece);
            break;
        }
        case 3: {  // another word, or none: the rest
            const std::size_t colon = text.find(':', token);
            text.replace(token, std::min(colon, end) - token, random.below(3) ? random.one_of(SOME_WORDS) : "");
            break;
        }
        case 4:  // an entry again, elsewhere
            piece.assign(text, token, end - token);
            text.insert(token_in(text, random), piece += ' ');
            break;
        case 5: text.insert(random.below(text.size() + 1), random.one_of(SOME_SEPARATORS)); break;
        case 6: {  // a line again
            const std::size_t begin = token ? text.rfind('\n', token - 1) + 1 : 0;
            piece.assign(text, begin, std::min(text.find('\n', token), text.size()) - begin);
            text.insert(begin, piece += '\n');
            break;
        }
        case 7:  // a new line
            append_line(piece, random, bits);
            text.insert(token, piece += random.below(8) ? "\n" : "");
            break;
        default: {  // some byte
            const std::size_t place = random.below(text.size() + 1);
            if (place < text.size()) text[place] = static_cast<char>(random.below(256));
        }
    }
}

// Changes an input of kernel.hpp's Block: its lines, its expected word, or its first bytes.
inline std::size_t mutate_block(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
    constexpr std::size_t HEADER = 3;
    Random random(seed);
    if (max_size < HEADER + 8 || (size > HEADER && random.below(8) == 0)) return LLVMFuzzerMutate(data, size, max_size);
    static thread_local std::string text, word;
    text.clear(), word.clear();
    std::uint8_t header[HEADER] = {};
    std::memcpy(header, data, std::min(size, HEADER));
    if (size > HEADER) text.assign(reinterpret_cast<const char*>(data) + HEADER, size - HEADER);
    if (const std::size_t mark = text.rfind('\1'); mark != std::string::npos) {
        word.assign(text, mark + 1, std::string::npos);
        text.resize(mark);
    }
    const int bits = 1 + header[0] % 24;
    switch (random.below(10)) {
        case 0: header[0] = static_cast<std::uint8_t>(random.next()); break;
        case 1: header[1 + random.below(2)] = static_cast<std::uint8_t>(random.next()); break;
        case 2: {  // the expected word: one of the lines', or another
            const std::size_t token = token_in(text, random), end = std::min(text.find(':', token), text.size());
            random.below(3) ? word.assign(text, token, std::min<std::size_t>(end - token, 20)) : word = random.one_of(SOME_WORDS);
            break;
        }
        case 3: {
            const std::size_t token = token_in(text, random);
            const std::size_t length = std::min(end_of_token(text, token) - token, max_size / 2);
            std::string part = text.substr(token, length);
            part.resize(length + 8);
            const std::size_t made = LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(&part[0]), length, length + 8);
            text.replace(token, length, part, 0, made);
            break;
        }
        default:
            do mutate_lines(text, random, bits);
            while (random.below(3) == 0);
    }
    if (word.size() > max_size - HEADER - 1) word.resize(max_size - HEADER - 1);
    if (text.size() > max_size - HEADER - 1 - word.size()) text.resize(max_size - HEADER - 1 - word.size());
    std::memcpy(data, header, HEADER);
    std::memcpy(data + HEADER, text.data(), text.size());
    data[HEADER + text.size()] = 1;
    std::memcpy(data + HEADER + text.size() + 1, word.data(), word.size());
    return HEADER + text.size() + 1 + word.size();
}

}  // namespace
