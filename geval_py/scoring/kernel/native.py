"""The native kernel (native.cpp): the functions of the backend in Python, with their names, arguments and errors.

The modules of :data:`geval_py.scoring.kernel.backends.PYTHON` describe the functions.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import geval_py.scoring.kernel._native as _native  # not "from": where it was not built, that is another error
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.kernel import ERROR_KINDS, MALFORMED
from geval_py.scoring.kernel._native import (
    count_lines,
    exact_sum,
    format_entries,
    pack_words,
    take_column,
)

if TYPE_CHECKING:
    from geval_py.reading.sources import ListedRows
    from geval_py.scoring.kernel.reference import Doubles, EntryMasses

__all__ = ["count_lines", "exact_sum", "format_entries", "pack_words", "take_column"]  # as they are


def hashed_losses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> array[float]:
    return bounded_losses(outputs, expected, bits, first_line)[0]


def bounded_losses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float]:
    losses, _, malformed, _, bound = _native.score_lines(outputs, expected, bits, first_line, False)
    _check_lines(outputs, bits, first_line, malformed)
    return array("d", losses), bound


def reseeded_losses(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, seeds: int
) -> tuple[array[float], ...]:
    losses, malformed = _native.reseeded_losses(outputs, expected, bits, first_line, seeds)
    _check_lines(outputs, bits, first_line, malformed)
    return _columns(losses, seeds)


def score_lines(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], array[int]]:
    losses, flag_bytes, _, undecided, _ = _native.score_lines(outputs, expected, bits, first_line, True)
    flags = array("I", flag_bytes)
    if undecided >= 0:  # the kind of an error may depend on characters beyond ASCII, which the reference knows
        from geval_py.scoring.kernel import reference

        raw_lines = bytes(outputs).split(b"\n")
        for index in range(undecided, len(flags)):
            if flags[index] & (MALFORMED | ERROR_KINDS) == MALFORMED:
                (text,) = decode_lines(raw_lines[index] + b"\n")
                flags[index] |= reference.error_kind(reference.malformed_error(text, bits))
    return array("d", losses), flags


def line_profiles(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, draws: int
) -> tuple[tuple[array[float], ...], array[float]]:
    from geval_py.scoring.kernel.profile import COLUMNS

    columns, histogram, malformed = _native.line_profiles(outputs, expected, bits, first_line, draws)
    _check_lines(outputs, bits, first_line, malformed)
    return _columns(columns, len(COLUMNS)), array("d", histogram)


def read_guesses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> EntryMasses:
    from geval_py.scoring.kernel.reference import EntryMasses

    counts, masses, hits, rests, malformed = _native.read_guesses(outputs, expected, bits, first_line)
    _check_lines(outputs, bits, first_line, malformed)
    return EntryMasses(array("q", counts), array("d", masses), hits, array("d", rests))


def bucket_shares(words: bytes, shares: array[float], expected: bytes, bits: int, first_line: int) -> array[float]:
    return array("d", _native.bucket_shares(words, shares, expected, bits, first_line))


def array_losses(*rows: Any) -> tuple[array[float], float, int]:
    losses, bound, fault = _native.array_losses(*rows)
    return array("d", losses), bound, fault


def row_losses(rows: ListedRows, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float, int]:
    losses, bound, fault = _native.row_losses(
        rows.offsets, rows.starts, rows.text, rows.values, rows.probabilities, expected, bits, first_line
    )
    return array("d", losses), bound, fault


def isotonic(values: Doubles, weights: Doubles) -> array[float]:
    return array("d", _native.isotonic(values, weights))


class NativeTokenTable:
    """Numbers the distinct tokens of texts; see :class:`geval_py.scoring.kernel.tokens.TokenTable`."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        self._table = _native.token_table()
        self.number("".join(f"{token}\n" for token in tokens).encode(), b"")

    def __len__(self) -> int:
        return _native.count_tokens(self._table)

    def __reduce__(self) -> tuple[type[NativeTokenTable], tuple[list[str]]]:
        return NativeTokenTable, (self.names(array("q", range(len(self)))),)

    def number(self, text: bytes, separators: bytes) -> tuple[array[int], array[int]]:
        counts, numbers = _native.number_tokens(self._table, text, separators)
        return array("q", counts), array("q", numbers)

    def names(self, numbers: array[int]) -> list[str]:
        return _native.token_names(self._table, numbers).decode().split("\n")[:-1]

    def sorted(self, numbers: array[int]) -> array[int]:
        return array("q", _native.sort_tokens(self._table, numbers))


TokenTable = NativeTokenTable


def _columns(numbers: bytes, count: int) -> tuple[array[float], ...]:
    """Divide the doubles of so many columns, one after the other."""
    size = len(numbers) // max(1, count)
    return tuple(array("d", numbers[place * size : (place + 1) * size]) for place in range(count))


def _check_lines(outputs: Bytes, bits: int, first_line: int, malformed: int) -> None:
    """Let the reference parse the malformed line, by its index, and raise; -1 for none."""
    if malformed < 0:
        return
    from geval_py.scoring.kernel import reference

    (text,) = decode_lines(bytes(outputs).split(b"\n", malformed + 1)[malformed] + b"\n")
    raise reference.malformed_error(text, bits, first_line + malformed)
