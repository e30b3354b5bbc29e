// The kind of error of a malformed line. The reference says what is wrong.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "flags.hpp"
#include "numbers.hpp"
#include "text.hpp"

namespace {

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

}  // namespace
