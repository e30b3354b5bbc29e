"""Lines of outputs, mixed or tuned: the reference. Its native twin for lines of words is rewriting.hpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from geval_py.reading.lines import Bytes, decode_lines

if TYPE_CHECKING:
    from geval_py.scoring.recipes import Recipe


def rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Recipe) -> bytes:
    """Rewrite as many lines of each output, each ended by LF; ``first_line`` is the number of the first one.

    Raises MalformedLineError, without a path, and ValueError if the outputs differ in their number of lines.
    """
    lines = enumerate(zip(*map(decode_lines, outputs), strict=True), first_line)
    return "".join([f"{recipe.rewrite_line(texts, line)}\n" for line, texts in lines]).encode()
