"""The native kernel (native.cpp): those of its functions that need Python, with the names of the backend in Python.

The modules of :data:`geval_py.scoring.kernel.backends.PYTHON` describe the functions.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING

import geval_py.scoring.kernel._native as _native  # not "from": where it was not built, that is another error
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.kernel import ERROR_KINDS, MALFORMED

if TYPE_CHECKING:
    from geval_py.scoring.kernel.rewriting import Mixing


def score_lines(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], array[int]]:
    """See the function of the same name in the reference."""
    losses, flags, undecided = _native.score_lines(outputs, expected, bits, first_line)
    if undecided >= 0:  # the kind of an error may depend on characters beyond ASCII, which the reference knows
        from geval_py.scoring.kernel import reference

        raw_lines = bytes(outputs).split(b"\n")
        for index in range(undecided, len(flags)):
            if flags[index] & (MALFORMED | ERROR_KINDS) == MALFORMED:
                (text,) = decode_lines(raw_lines[index] + b"\n")
                flags[index] |= reference.error_kind(reference.malformed_error(text, bits))
    return losses, flags


def rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Mixing) -> tuple[bytes, int, array[int]]:
    """See :func:`geval_py.scoring.kernel.rewriting.rewrite_lines`."""
    from geval_py.scoring.kernel import rewriting

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
