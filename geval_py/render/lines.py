"""Items, a row a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from geval_py.errors import visible
from geval_py.render.numbers import plain


def line_rows(
    scores: Iterable[float], items: Iterable[tuple[str, str, str]], *, for_terminal: bool = False
) -> Iterator[str]:
    """Write a row a line: score, input, expected, output; a TAB inside a field as ``<tab>``."""
    for score, item in zip(scores, items, strict=True):
        fields = (text.replace("\t", "<tab>") for text in item)
        shown = map(visible, fields) if for_terminal else fields
        yield "\t".join((plain(score), *shown))
