// Flags of a line, with the names and values of kernel/__init__.py.

#pragma once

#include <cstdint>

namespace {

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
    FAR_ABOVE_ONE = 1 << 25,
    ERROR_KINDS = EMPTY_LINE | STRAY_SPACE | NO_COLON | NOT_A_NUMBER | WRONG_LENGTH | NUMBER_TOO_LARGE,
};

inline unsigned flag_if(bool condition, Flag flag) { return condition ? unsigned{flag} : 0; }

}  // namespace
