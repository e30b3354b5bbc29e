"""Items: the lines of a set with their input, expected answer and output, and the names of the input's columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import NamedTuple


class Item(NamedTuple):
    """One line of a set.

    ``line`` is its number, from 1, not counting a header; ``columns`` are the input's fields by the
    names of their columns, or their numbers, from 1; ``expected`` is the answer, None if it is hidden.
    """

    line: int
    columns: dict[str, str]
    expected: str | None


class ScoredItem(NamedTuple):
    """A line's texts: its input (the columns joined by TABs), the expected line, the output."""

    input: str
    expected: str
    output: str


def lines_of(texts: Sequence[str]) -> bytes:
    """Write texts as lines in UTF-8, each ended by LF."""
    return ("\n".join(texts) + "\n").encode() if texts else b""


def column_name(header: Sequence[str], index: int) -> str:
    """Return the name of an input column, counted from 0: from the header, or its number if that is not unique.

    >>> [column_name(("Year", "Text", "Text", "7"), index) for index in range(5)]
    ['Year', 'Text', '3', '4', '5']
    """
    number = str(index + 1)
    name = header[index] if index < len(header) else number
    is_number_of_another = name.isdigit() and name != number
    return number if is_number_of_another or name in header[:index] else name


def column_names(width: int, header: Sequence[str], taken: Collection[str]) -> list[str]:
    """Return unique names for all input columns of a table with other columns.

    >>> column_names(3, ["Year", "line"], {"line"}), column_names(1, ["line"], {"line", "in<line>"})
    (['Year', 'in<line>', '3'], ['in<1>'])
    """
    used = dict.fromkeys(taken)
    for column in range(width):
        name = header[column] if column < len(header) else str(column + 1)
        names = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
        used[next(name for name in names if name not in used)] = None
    return list(used)[len(used) - width :]


def input_columns(
    rows: Sequence[Sequence[str]], width: int, header: Sequence[str], taken: Collection[str]
) -> dict[str, list[str | None]]:
    """Return the input's fields by column, under the names of :func:`column_names`; a missing field is None."""
    names = column_names(width, header, taken)
    return {name: [row[n] if n < len(row) else None for row in rows] for n, name in enumerate(names)}
