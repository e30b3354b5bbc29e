"""Items: the lines of a set with their input, expected answer and output, and the names of the input's columns.

Among these are the contexts of a word gap: one list of exact names, for models and for the search for leaks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import NamedTuple

from geval_py.errors import UsageError
from geval_py.text import suggestion, visible

LEFT_NAMES = ("LeftContext", "leftcontext", "left_context", "left context", "Left", "left")
RIGHT_NAMES = ("RightContext", "rightcontext", "right_context", "right context", "Right", "right")  # of contexts


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


def find_contexts(names: Sequence[str], left: str = "", right: str = "") -> tuple[str, str]:
    """Return the names of the left and of the right context, "" for one that does not exist.

    ``left`` and ``right`` are the names given by the user. Else the columns have a name of LEFT_NAMES and of
    RIGHT_NAMES. Columns without names, which are numbered, have the contexts last; a single one is the left context.
    Raises UsageError if nothing names the contexts, and for two columns that could be the same one.

    >>> find_contexts(["FileId", "copyright", "LeftContext", "RightContext"])
    ('LeftContext', 'RightContext')
    """
    there = f"there are {visible(', '.join(names))}"
    for name, option in ((left, "--left"), (right, "--right")):
        if name and name not in names:
            raise UsageError(f"no column {visible(name)} ({option})\n  {suggestion(name, names)}{there}")
    if left or right:
        if left == right:
            raise UsageError(f"--left and --right are both {visible(left)}")
        return left, right
    lefts, rights = ([name for name in names if name in usual] for usual in (LEFT_NAMES, RIGHT_NAMES))
    for several in (lefts, rights):
        if len(several) > 1:
            message = f"both {visible(several[0])} and {visible(several[1])} are names of a context"
            raise UsageError(f"{message}\n  --left and --right name the columns of the contexts")
    if lefts or rights:
        return "".join(lefts), "".join(rights)
    if len(names) > 1 and not all(name.isdigit() for name in names):
        message = "no column has a name of a context, such as LeftContext and RightContext"
        raise UsageError(f"{message}\n  --left and --right name the columns; {there}")
    return (names[-2], names[-1]) if len(names) > 1 else ("".join(names), "")
