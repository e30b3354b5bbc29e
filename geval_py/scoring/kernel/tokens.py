"""The tokens of texts: numbered, counted, and their lines' figures added up; and the columns of lines.

This is the reference of tokens.hpp; :mod:`geval_py.scoring.kernel.native` has the same names, arguments and errors.
A token stands between separators, at most three ASCII characters other than LF.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

UNKNOWN = ord("#")  # the class of a character beyond a table of classes


class TokenTable:
    r"""Numbers the distinct tokens of texts from 0, in the order in which they appear.

    >>> table = TokenTable()
    >>> table.number(b"b a:b\n\n", b" :")
    (array('q', [2, 0]), array('q', [0, 1]))
    >>> table.number(b"a:b\n", b""), table.names(array("q", [2, 0]))
    ((array('q', [1]), array('q', [2])), ['a:b', 'b'])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def number(self, text: bytes, separators: bytes) -> tuple[array[int], array[int]]:
        """Return the number of distinct tokens of each line, and their numbers, line by line.

        ``text`` is in UTF-8, each line ended by LF. Tokens stand between ``separators``, which are ASCII characters;
        without any, each line is one token, even an empty one.
        """
        counts, numbers = array("q"), array("q")
        splitter = re.compile(f"[{re.escape(separators.decode())}]" if separators else "\n")
        for line in text.decode().removesuffix("\n").split("\n") if text else ():
            tokens = dict.fromkeys(token for token in splitter.split(line) if token or not separators)
            counts.append(len(tokens))
            numbers.extend(map(self._number, tokens))
        return counts, numbers

    def _number(self, token: str) -> int:
        number = self._numbers.setdefault(token, len(self._names))
        if number == len(self._names):
            self._names.append(token)
        return number

    def names(self, numbers: array[int]) -> list[str]:
        """Return the tokens with some numbers of 8 bytes; raises ValueError for others, and IndexError."""
        return [self._names[number] for number in self._checked(numbers)]

    def sorted(self, numbers: array[int]) -> array[int]:
        """Sort numbers of 8 bytes by their tokens, character by character; raises ValueError and IndexError."""
        return array("q", sorted(self._checked(numbers), key=self._names.__getitem__))

    def _checked(self, numbers: array[int]) -> list[int]:
        if numbers.itemsize != 8:
            raise ValueError("a number of a token has 8 bytes")
        if any(not 0 <= number < len(self) for number in numbers):
            raise IndexError("no token has this number")
        return list(numbers)


def frequent_tokens(
    text: bytes, separators: bytes, classes: bytes, least: int
) -> tuple[list[str], array[int], array[int]]:
    r"""Find the tokens that stand on at least ``least`` lines, or those of their shapes.

    ``text`` is in UTF-8, each line ended by LF. With ``classes``, the class of each character by its code point, an
    ASCII character, a token's shape counts in its place: the classes of its characters, in which a run of the same
    class, except ``9``, becomes its first character and a plus sign; a character beyond the table has the class
    ``#``. Returns the tokens in the order of their characters, the number of distinct ones on each line, and their
    places, line by line, in the order in which they appear.

    >>> frequent_tokens(b"b a:c\na b b\n", b" :", b"", 2)
    (['a', 'b'], array('q', [2, 2]), array('q', [1, 0, 0, 1]))
    """
    lines = [list(dict.fromkeys(of_line)) for of_line in _tokens(text.decode(), separators.decode(), classes)]
    lines_with = Counter(chain.from_iterable(lines))
    names = sorted(token for token, count in lines_with.items() if count >= least)
    places = {token: place for place, token in enumerate(names)}
    found = [[places[token] for token in of_line if token in places] for of_line in lines]
    return names, array("q", map(len, found)), array("q", chain.from_iterable(found))


def _tokens(text: str, separators: str, classes: bytes) -> Iterator[list[str]]:
    splitter = re.compile(f"[{re.escape(separators)}]")
    for line in text.removesuffix("\n").split("\n") if text else ():
        tokens = list(filter(None, splitter.split(line)))
        yield [_shape(token, classes) for token in tokens] if classes else tokens


def _shape(token: str, classes: bytes) -> str:
    of_each = (classes[ord(one)] if ord(one) < len(classes) else UNKNOWN for one in token)
    return re.sub(r"([^9])\1+", r"\1+", "".join(map(chr, of_each)))


def add_rows(sums: Matrix, rows: Matrix, places: Integers, numbers: Integers) -> None:
    """Add rows to sums, in place: for each of the aligned places and numbers, a row to the sum with that number.

    Raises ValueError if the arrays do not fit together or their items do not have 8 bytes, and IndexError for a place
    or a number without a row; then nothing is added.
    """
    import numpy as np

    has_shape = sums.ndim == rows.ndim == 2 and sums.shape[1] == rows.shape[1] and len(places) == len(numbers)
    if not has_shape or any(part.itemsize != 8 for part in (sums, rows, places, numbers)):
        raise ValueError("the arrays do not fit together")
    for of_rows, count in ((places, len(rows)), (numbers, len(sums))):
        if ((of_rows < 0) | (of_rows >= count)).any():
            raise IndexError("no row has this number")
    with np.errstate(invalid="ignore"):  # opposite infinities
        np.add.at(sums, numbers, rows[places])


def take_column(text: bytes, column: int) -> bytes:
    r"""Take a column, counted from 0, of lines whose columns TABs separate: a cell of each line, each ended by LF.

    The cell of a line that lacks the column is empty.

    >>> take_column(b"a\tb\tc\nd\n", 1)
    b'b\n\n'
    """
    rows = (line.split(b"\t", column + 1) for line in text.removesuffix(b"\n").split(b"\n")) if text else ()
    return b"".join((row[column] if column < len(row) else b"") + b"\n" for row in rows)
