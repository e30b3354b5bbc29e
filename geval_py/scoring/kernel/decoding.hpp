// Any bytes as text: undecodable ones are replaced and carriage returns dropped, in a copy of the line if it has any.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "flags.hpp"
#include "text.hpp"
#include "utf8.hpp"

namespace {

constexpr std::size_t PADDING = 8;
constexpr char NOTHING[PADDING] = {};  // an empty text, padded

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

inline bool is_control(unsigned char c) { return ((c < 0x20) & (c != '\r')) | (c == 0x7f); }

// The kinds of bytes in a line. Compilers turn the loops into vector instructions; most lines of ASCII need only the first.
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
        unsigned char returns = 0, control = 0;
        for (const auto* q = p; q != end; ++q) {
            const unsigned char c = *q;
            returns |= c == '\r';
            control |= is_control(c);
        }
        flags |= flag_if(returns, CARRIAGE_RETURN) | flag_if(control, CONTROL);
    }
    return flags;
}

}  // namespace
