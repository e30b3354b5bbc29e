"""What the kernel notes of each line: which ones deserve a second look.

Numbers, not an enum: they are combined once a line, and an enum's operators cost a microsecond each. The same values
stand in native.cpp. A malformed line has only the flags of its bytes beside MALFORMED.
"""

MALFORMED = 1 << 0
LOGARITHMS = 1 << 1  # the values were read as logarithms
ABOVE_ONE = 1 << 2  # the total is above 1 by more than 1e-8
BELOW_ONE = 1 << 3  # the total is below 1 by more than 1e-8
HAS_REST = 1 << 4
ZERO_REST = 1 << 5  # there is a rest entry, and on a line of probabilities it is 0
REST_ALONE = 1 << 6  # the rest is all there is
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
