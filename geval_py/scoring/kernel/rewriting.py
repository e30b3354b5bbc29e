"""Lines of outputs, mixed or tuned: the reference. Its native twin for lines of words is rewriting.hpp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from geval_py.reading.lines import Bytes, decode_lines


class Recipe(Protocol):
    """How lines are rewritten: :meth:`rewrite_line`, and the numbers with which the native twin does the same.

    ``weights`` are those of the outputs and, last, of the ``frequent`` words; ``tuning`` are the numbers of
    :class:`geval_py.explaining.derived.Parameters`; either is empty. ``as_vectors`` is whether the lines written are
    masses of buckets, which the native twin does not write.
    """

    @property
    def weights(self) -> tuple[float, ...]: ...
    @property
    def tuning(self) -> tuple[float, ...]: ...
    @property
    def frequent(self) -> Mapping[str, float]: ...
    @property
    def bits(self) -> int: ...
    @property
    def as_vectors(self) -> bool: ...

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Return a line made of one line of each output; ``line`` is its number in the files.

        Raises MalformedLineError, without a path, for the first malformed text.
        """


def rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Recipe) -> bytes:
    """Rewrite as many lines of each output, each ended by LF; ``first_line`` is the number of the first one.

    Raises MalformedLineError, without a path, and ValueError if the outputs differ in their number of lines.
    """
    lines = enumerate(zip(*map(decode_lines, outputs), strict=True), first_line)
    return "".join([f"{recipe.rewrite_line(texts, line)}\n" for line, texts in lines]).encode()
