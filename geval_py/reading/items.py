"""One line of a set: what a model is given, what it should answer, and what it answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import NamedTuple


class Item(NamedTuple):
    """One line of a set.

    ``line`` is its number, from 1, not counting a header; ``columns`` are those of the input, by their names in order
    (:func:`column_name`), without any that the line lacks; ``expected`` is the answer, None where it is hidden.
    """

    line: int
    columns: dict[str, str]
    expected: str | None


class ScoredItem(NamedTuple):
    """A line's texts: its input (the columns joined by TABs), the expected line, the output."""

    input: str
    expected: str
    output: str


def column_name(header: Sequence[str], index: int) -> str:
    """Name a column of the input, counted from 0: as the header says or, if it has no name of its own, by its number.

    >>> [column_name(("Year", "Text", "Text", "7"), index) for index in range(5)]
    ['Year', 'Text', '3', '4', '5']
    """
    return header[index] if has_name(header, index) else str(index + 1)


def has_name(header: Sequence[str], index: int) -> bool:
    """Tell whether a column's name is no other's, and not the number of another."""
    if index >= len(header) or header.index(header[index]) != index:
        return False
    name = header[index]
    return not name.isdigit() or name == str(index + 1)


def unused_name(column: int, header: Sequence[str], taken: Collection[str]) -> str:
    """Name a column of the input, counted from 0, in a table that has other columns too.

    >>> unused_name(1, ("Year", "line"), {"line", "Year"})
    'in<line>'
    """
    name = header[column] if column < len(header) else str(column + 1)
    names = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
    return next(name for name in names if name not in taken)
