"""Items, a row a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from geval_py.showing.numbers import plain
from geval_py.text import visible


def line_rows(
    scores: Iterable[float], items: Iterable[Sequence[str]], *, for_terminal: bool = False
) -> Iterator[str]:
    """Write a row a line: its score, then its texts; a TAB inside one as ``<tab>``."""
    for score, item in zip(scores, items, strict=True):
        texts = (text.replace("\t", "<tab>") for text in item)
        shown = map(visible, texts) if for_terminal else texts
        yield "\t".join((plain(score), *shown))


def marked_rows(scores: Iterable[float], items: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write the same of texts that are ready for a terminal."""
    for score, item in zip(scores, items, strict=True):
        yield "\t".join((plain(score), *item))
