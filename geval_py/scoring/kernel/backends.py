"""The scoring kernel, from blocks of lines to losses, in two backends with the same results.

The native one, in C++, is used if it was built; the environment variable GEVAL_PY_BACKEND (native or python) forces
one of them. Call the kernel's functions through this module: ``backends.bounded_losses(…)`` is that of the chosen
backend, looked up when it is called. The backend in Python describes the functions; its modules are in PYTHON.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, Literal

from geval_py.errors import UsageError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.kernel import ERROR_KINDS, MALFORMED
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.scoring.kernel.packed_words import array_losses, pack_words
    from geval_py.scoring.kernel.profile import line_profiles
    from geval_py.scoring.kernel.reference import (
        bounded_losses,
        bucket_shares,
        count_lines,
        format_entries,
        score_lines,
    )
    from geval_py.scoring.kernel.rewriting import Mixing, rewrite_lines
    from geval_py.scoring.kernel.tokens import TokenTable, take_column

__all__ = [  # the functions of a backend
    "TokenTable", "array_losses", "bounded_losses", "bucket_shares", "count_lines", "format_entries",
    "line_profiles", "pack_words", "rewrite_lines", "score_lines",
    "take_column",
]  # fmt: skip
VARIABLE = "GEVAL_PY_BACKEND"
PYTHON = ("reference", "profile", "tokens", "rewriting", "packed_words")  # the last one imports numpy


@cache
def choose_backend() -> Literal["native", "python"]:
    """Return the backend to use; raises UsageError if a forced one is unknown or was not built.

    Only the native one releases the GIL.
    """
    forced = os.environ.get(VARIABLE)
    if forced not in {None, "native", "python"}:
        raise UsageError(f"{VARIABLE} is `{visible(forced or '')}`; it may be native or python")
    if forced == "python":
        return "python"
    try:
        import_module("geval_py.scoring.kernel._native")
    except ModuleNotFoundError as error:  # it was not built
        if forced == "native":
            message = f"{VARIABLE} is native, but the native kernel was not built with this package"
            raise UsageError(message) from error
        return "python"
    except ImportError as error:
        advice = f"{VARIABLE}=python does without it"
        message = f"the native kernel cannot be loaded: {visible(str(error))}\n  {advice}"
        raise UsageError(message) from error
    return "native"


# Functions of C++ that need Python


def _score_lines(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], array[int]]:
    """See :func:`geval_py.scoring.kernel.reference.score_lines`."""
    from geval_py.scoring.kernel import _native

    losses, flags, undecided = _native.score_lines(outputs, expected, bits, first_line)
    if undecided >= 0:  # the kind of an error may depend on characters beyond ASCII, which the reference knows
        from geval_py.scoring.kernel import reference

        raw_lines = bytes(outputs).split(b"\n")
        for index in range(undecided, len(flags)):
            if flags[index] & (MALFORMED | ERROR_KINDS) == MALFORMED:
                (text,) = decode_lines(raw_lines[index] + b"\n")
                flags[index] |= reference.error_kind(reference.malformed_error(text, bits))
    return losses, flags


def _rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Mixing) -> tuple[bytes, int, array[int]]:
    """See :func:`geval_py.scoring.kernel.rewriting.rewrite_lines`."""
    from geval_py.scoring.kernel import _native, rewriting

    written, lines, ends = b"", 0, array("q", bytes(8 * len(outputs)))
    if not recipe.as_vectors:
        words = "".join(f"{word}\n" for word in recipe.frequent).encode()
        shares = array("d", [*recipe.frequent.values(), rewriting.rest_of(recipe.frequent)])
        weights, edges = array("d", chain.from_iterable(recipe.weights)), array("d", recipe.edges)
        written, lines, ends = _native.rewrite_lines(
            tuple(outputs), first_line, words, shares, weights, edges, recipe.bits
        )
    rest = [memoryview(block)[end:] for block, end in zip(outputs, ends, strict=True)]
    if all(rest):  # a line of buckets, or a malformed one
        more, more_lines, more_ends = rewriting.rewrite_lines(rest, first_line + lines, recipe)
        return written + more, lines + more_lines, array("q", map(add, ends, more_ends))
    return written, lines, ends


WRAPPED = {"rewrite_lines": _rewrite_lines, "score_lines": _score_lines}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a function of the chosen backend."""
        if name in __all__:
            is_native = choose_backend() == "native"
            if is_native and name in WRAPPED:
                return WRAPPED[name]
            for module in ("_native",) if is_native else PYTHON:
                functions = import_module(f"geval_py.scoring.kernel.{module}")
                if hasattr(functions, name):
                    return getattr(functions, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
