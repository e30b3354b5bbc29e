"""Lines of outputs, mixed: the reference. Its native twin for lines of words is rewriting.hpp."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geval_py.reading.lines import Bytes, decode_lines, end_of_lines

if TYPE_CHECKING:
    from geval_py.scoring.recipes import Mixing


def rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Mixing) -> tuple[bytes, int, array[int]]:
    """Rewrite as many lines as each output has, all ended by LF; ``first_line`` is the number of the first one.

    Returns the new lines, their number, and where they end in each output. Raises MalformedLineError without a path.
    """
    lines = list(zip(*map(decode_lines, outputs), strict=False))
    ends = array("q", [end_of_lines(bytes(block), 0, len(lines))[0] for block in outputs])
    rewritten = [f"{recipe.rewrite_line(texts, number)}\n" for number, texts in enumerate(lines, first_line)]
    return "".join(rewritten).encode(), len(lines), ends
