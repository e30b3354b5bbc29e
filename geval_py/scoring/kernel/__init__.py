"""The kernel's flags, which mark lines that deserve a second look.

They are numbers, not an enum: they are combined once a line, and an enum's operators cost a microsecond each.
flags.hpp has the same values. A malformed line has only MALFORMED, the flags of its bytes, and one of ERROR_KINDS:
the kind of its first error, where a number that is too large counts only if there is no other error.
"""

MALFORMED = 1 << 0
LOGARITHMS = 1 << 1  # the values were read as logarithms
ABOVE_ONE = 1 << 2  # the total is above 1 by more than 1e-8
BELOW_ONE = 1 << 3  # the total is below 1 by more than 1e-8
HAS_REST = 1 << 4
ZERO_REST = 1 << 5  # there is a rest entry, and on a line of probabilities it is 0
REST_ALONE = 1 << 6  # the line has only the rest
ZERO_ENTRY = 1 << 7  # a word's value is 0
CARRIAGE_RETURN = 1 << 8
NOT_ASCII = 1 << 9  # a byte over 127
CONTROL = 1 << 10  # a control character other than a carriage return
SEPARATOR = 1 << 11  # a word holds a colon and a comma, semicolon or TAB behind a digit: two entries, perhaps
CAPITAL = 1 << 12  # an ASCII capital letter
VECTOR = 1 << 13  # a line without a colon
REPEATED = 1 << 14  # a word, or the rest, stands on the line twice
ALL_ZERO = 1 << 15  # every value is 0
LOOKS_LIKE_PROBABILITIES = 1 << 16  # read as logarithms, but most are in [0, 1], or all but for 1e-6
ROUNDED = 1 << 17  # the total is off, but by no more than rounding each number to its last written place explains
EMPTY_LINE = 1 << 18
STRAY_SPACE = 1 << 19
NO_COLON = 1 << 20
NOT_A_NUMBER = 1 << 21
WRONG_LENGTH = 1 << 22  # a vector that has not one number a bucket
NUMBER_TOO_LARGE = 1 << 23  # a number is too large for a double
TINY = 1 << 24  # a word or the rest has a value above 0 and below 1e-280, which a division might lose
FAR_ABOVE_ONE = 1 << 25  # read as logarithms, which total more than 1.5, but not for an overshoot of 1e-6
ERROR_KINDS = EMPTY_LINE | STRAY_SPACE | NO_COLON | NOT_A_NUMBER | WRONG_LENGTH | NUMBER_TOO_LARGE
