"""The tokens of texts, numbered; and the columns of lines.

This is the reference of tokens.hpp; the native kernel has the same names, arguments and errors.
A token stands between separators, at most three ASCII characters other than LF.
"""

from __future__ import annotations

import re
from array import array


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

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: bytes, separators: bytes, *_seen: bytearray | int) -> tuple[array[int], array[int]]:
        """Return the number of distinct tokens of each line, and their numbers, line by line.

        ``text`` is in UTF-8, each line ended by LF. Tokens stand between ``separators``, which are ASCII characters;
        without any, each line is one token, even an empty one.

        With a bytearray and a number, the native table may leave out rare tokens; this one does not. With 0 it counts
        tokens, up to 255, in bytes that hashes choose, and numbers none; else it numbers only those whose byte is at
        least the number.
        """
        counts, numbers = array("q"), array("q")
        splitter = re.compile(f"[{re.escape(separators.decode())}]" if separators else "\n")
        for line in text.decode().removesuffix("\n").split("\n") if text else ():
            tokens = dict.fromkeys(token for token in splitter.split(line) if token or not separators)
            counts.append(len(tokens))
            numbers.extend(self._numbers.setdefault(token, len(self._numbers)) for token in tokens)
        return counts, numbers

    def names(self, numbers: array[int]) -> list[str]:
        """Return the tokens with some numbers of 8 bytes; raises ValueError for others, and IndexError."""
        names = list(self._numbers)
        return [names[number] for number in self._checked(numbers)]

    def sorted(self, numbers: array[int]) -> array[int]:
        """Sort numbers of 8 bytes by their tokens, character by character; raises ValueError and IndexError."""
        return array("q", sorted(self._checked(numbers), key=list(self._numbers).__getitem__))

    def _checked(self, numbers: array[int]) -> list[int]:
        if numbers.itemsize != 8:
            raise ValueError("a number of a token has 8 bytes")
        if any(not 0 <= number < len(self) for number in numbers):
            raise IndexError("no token has this number")
        return list(numbers)


def take_column(text: bytes, column: int) -> bytes:
    r"""Take a column, counted from 0, of lines whose columns TABs separate: a cell of each line, each ended by LF.

    The cell of a line that lacks the column is empty.

    >>> take_column(b"a\tb\tc\nd\n", 1)
    b'b\n\n'
    """
    rows = (line.split(b"\t", column + 1) for line in text.removesuffix(b"\n").split(b"\n")) if text else ()
    return b"".join((row[column] if column < len(row) else b"") + b"\n" for row in rows)
