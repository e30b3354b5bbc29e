"""The scoring kernel, from blocks of lines to losses, in two backends with the same results.

``reference``, in Python, is readable, and ``native``, in C++, is its fast twin. The native backend is used if it was
built; the environment variable GEVAL_PY_BACKEND (native or python) forces one of them.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from geval_py.errors import UsageError
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from geval_py.reading.lines import Bytes
    from geval_py.reading.listed import ListedRows
    from geval_py.reading.parquet_lists import Decoder
    from geval_py.reading.thrift import ReadStruct
    from geval_py.scoring.kernel.packed_words import Hashes, Ids, Numbers, Unit
    from geval_py.scoring.kernel.reference import Doubles, ForecastArrays, Guesses, HonestFits
    from geval_py.scoring.kernel.tokens import Integers, Matrix, TokenTable


__all__ = [
    "Backend",
    "add_rows",
    "array_losses",
    "bounded_losses",
    "choose_backend",
    "count_lines",
    "exact_sum",
    "frequent_tokens",
    "hashed_losses",
    "honest_fits",
    "isotonic",
    "line_profiles",
    "pack_words",
    "parquet_kernel",
    "row_losses",
    "score_lines",
    "take_column",
    "token_table",
]
VARIABLE = "GEVAL_PY_BACKEND"


class Backend(Value):
    """One implementation of the kernel; :mod:`geval_py.scoring.kernel.reference` describes the functions."""

    name: str
    hashed_losses: Callable[[Bytes, bytes, int, int], array[float]]
    bounded_losses: Callable[[Bytes, bytes, int, int], tuple[array[float], float]]
    reseeded_losses: Callable[[Bytes, bytes, int, int, int], tuple[array[float], ...]]
    score_lines: Callable[[Bytes, bytes, int, int], tuple[array[float], array[int]]]
    count_lines: Callable[[Bytes], int]
    read_guesses: Callable[[Bytes, bytes, int, int], Guesses]
    bucket_shares: Callable[[bytes, array[float], bytes, int, int], array[float]]
    exact_sum: Callable[[Doubles], float]
    isotonic: Callable[[Doubles, Doubles], array[float]]
    honest_fits: Callable[[ForecastArrays, int, int], HonestFits]
    format_entries: Callable[[bytes, Doubles, float, float], str]
    parallel: bool  # whether it releases the GIL


@cache
def choose_backend() -> Backend:
    """Return the backend to use; raises UsageError if a forced one is unknown or was not built."""
    forced = os.environ.get(VARIABLE)
    if forced not in {None, "native", "python"}:
        raise UsageError(message=f"{VARIABLE} is `{visible(forced or '')}`; it may be native or python")
    native = None if forced == "python" else _native_backend()
    if forced == "native" and native is None:
        raise UsageError(message=f"{VARIABLE} is native, but the native kernel was not built with this package")
    return native or _reference_backend()


def _native_backend() -> Backend | None:
    try:
        from geval_py.scoring.kernel import native
    except ModuleNotFoundError:  # it was not built
        return None
    except ImportError as error:
        raise UsageError(
            message=f"the native kernel cannot be loaded: {visible(str(error))}\n  {VARIABLE}=python does without it"
        ) from error
    return _backend("native", native, parallel=True)


def _reference_backend() -> Backend:
    from geval_py.scoring.kernel import reference

    return _backend("python", reference, parallel=False)


def _backend(name: str, module: ModuleType, *, parallel: bool) -> Backend:
    return Backend(
        name=name,
        hashed_losses=module.hashed_losses,
        bounded_losses=module.bounded_losses,
        reseeded_losses=module.reseeded_losses,
        score_lines=module.score_lines,
        count_lines=module.count_lines,
        read_guesses=module.read_guesses,
        bucket_shares=module.bucket_shares,
        exact_sum=module.exact_sum,
        isotonic=module.isotonic,
        honest_fits=module.honest_fits,
        format_entries=module.format_entries,
        parallel=parallel,
    )


def hashed_losses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> array[float]:
    """Score a block with the chosen backend; see :func:`geval_py.scoring.kernel.reference.hashed_losses`."""
    return choose_backend().hashed_losses(outputs, expected, bits, first_line)


def bounded_losses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float]:
    """Score and bound a block with the backend; see :func:`geval_py.scoring.kernel.reference.bounded_losses`."""
    return choose_backend().bounded_losses(outputs, expected, bits, first_line)


def score_lines(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], array[int]]:
    """Score and flag a block with the chosen backend; see :func:`geval_py.scoring.kernel.reference.score_lines`."""
    return choose_backend().score_lines(outputs, expected, bits, first_line)


def line_profiles(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, draws: int
) -> tuple[tuple[array[float], ...], array[float]]:
    """Profile a block's distributions; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""
    if choose_backend().name == "native":
        from geval_py.scoring.kernel.native import line_profiles as profile
    else:
        from geval_py.scoring.kernel.profile import line_profiles as profile
    return profile(outputs, expected, bits, first_line, draws)


def exact_sum(numbers: Doubles) -> float:
    """Sum numbers exactly with the chosen backend; see :func:`geval_py.scoring.kernel.reference.exact_sum`."""
    return choose_backend().exact_sum(numbers)


def isotonic(values: Doubles, weights: Doubles) -> array[float]:
    """Fit rising values with the chosen backend; see :func:`geval_py.scoring.kernel.reference.isotonic`."""
    return choose_backend().isotonic(values, weights)


def honest_fits(forecasts: ForecastArrays, seed: int, draws: int) -> HonestFits:
    """Draw honest outcomes with the chosen backend; see :func:`geval_py.scoring.kernel.reference.honest_fits`."""
    return choose_backend().honest_fits(forecasts, seed, draws)


def token_table() -> TokenTable:
    """Return an empty table of tokens; see :class:`geval_py.scoring.kernel.tokens.TokenTable`."""
    table: TokenTable = _of_tokens().TokenTable()
    return table


def frequent_tokens(
    text: bytes, separators: bytes, classes: bytes, least: int
) -> tuple[list[str], array[int], array[int]]:
    """Find the tokens of many lines; see :func:`geval_py.scoring.kernel.tokens.frequent_tokens`."""
    found: tuple[list[str], array[int], array[int]] = _of_tokens().frequent_tokens(text, separators, classes, least)
    return found


def add_rows(sums: Matrix, rows: Matrix, places: Integers, numbers: Integers) -> None:
    """Add rows to sums, in place; see :func:`geval_py.scoring.kernel.tokens.add_rows`."""
    _of_tokens().add_rows(sums, rows, places, numbers)


def take_column(text: bytes, column: int) -> bytes:
    """Take a column of lines; see :func:`geval_py.scoring.kernel.tokens.take_column`."""
    cells: bytes = _of_tokens().take_column(text, column)
    return cells


def _of_tokens() -> ModuleType:
    if choose_backend().name == "native":
        from geval_py.scoring.kernel import native

        return native
    from geval_py.scoring.kernel import tokens

    return tokens


def pack_words(words: bytes) -> Any:
    """Pack words for :func:`array_losses`; see :func:`geval_py.scoring.kernel.packed_words.pack_words`."""
    return _of_arrays().pack_words(words)


def array_losses(
    words: Any,
    values: Numbers,
    ids: Ids | None,
    offsets: Ids | None,
    rests: NDArray[np.float64] | None,
    expected: bytes,
    lines: Hashes,
    bits: int,
    unit: Unit,
) -> tuple[array[float], float, int]:
    """Score rows of numbers; see :func:`geval_py.scoring.kernel.packed_words.array_losses`."""
    found: tuple[array[float], float, int] = _of_arrays().array_losses(
        words, values, ids, offsets, rests, expected, lines, bits, unit
    )
    return found


def parquet_kernel() -> tuple[type[Decoder], ReadStruct] | None:
    """Return what decodes lists in Parquet, and what reads Thrift; None where pyarrow decodes them, the reference."""
    if choose_backend().name != "native" or sys.byteorder != "little" or not hasattr(os, "pread"):
        return None
    from geval_py.scoring.kernel.native import ParquetLists, read_struct

    return ParquetLists, read_struct


def row_losses(rows: ListedRows, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float, int]:
    """Score rows in buffers; see :func:`geval_py.scoring.kernel.listed_rows.row_losses`."""
    if choose_backend().name == "native":
        from geval_py.scoring.kernel.native import row_losses as score
    else:
        from geval_py.scoring.kernel.listed_rows import row_losses as score
    return score(rows, expected, bits, first_line)


def _of_arrays() -> ModuleType:
    """Return the module of the chosen backend with the functions for arrays; the reference needs numpy."""
    if choose_backend().name == "native":
        from geval_py.scoring.kernel import native

        return native
    from geval_py.scoring.kernel import packed_words

    return packed_words


def count_lines(text: Bytes) -> int:
    """Count the lines of a text; the last one may lack its LF."""
    return choose_backend().count_lines(text)
