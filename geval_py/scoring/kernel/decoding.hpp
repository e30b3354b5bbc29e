// Any bytes as text: undecodable ones are replaced and carriage returns dropped, in a copy of the line if it has any.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "flags.hpp"
#include "text.hpp"

namespace {

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
    unsigned flags = flag_if(most & 0x80, NOT_ASCII) | flag_if(capital, CAPITAL);
    if (least < 0x20 || most >= 0x7f) {
        if (std::memchr(p, '\r', line.size())) flags |= CARRIAGE_RETURN;
        if (std::any_of(p, end, is_control)) flags |= CONTROL;
    }
    return flags;
}

}  // namespace
