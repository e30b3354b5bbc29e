r"""The texts of a word-gap challenge: windows around gaps, laid back together where they overlap.

Windows of one document may show the same words many times over; counts would be multiplied. They are joined where
they share five words in a row and agree in all of their overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from geval_py.errors import ModelError
from geval_py.modelling.corpus import Sentence, split_as_lmplz
from geval_py.reading.items import Item

SHARED = 5  # words in a row


class Gap(NamedTuple):
    """What stands on both sides of a gap, and its document: the first column, if that is no context."""

    left: Sentence
    right: Sentence
    document: str


def words_in(text: str) -> Sentence:
    r"""Split a column into words; the two characters ``\n`` are a line end.

    >>> words_in("a\\nb  c")
    [b'a', b'b', b'c']
    """
    spaced = text.replace("\\n", " ").replace("\n", " ")
    return split_as_lmplz(spaced.encode(errors="surrogatepass"))


def gap_of(item: Item) -> Gap:
    """Find the contexts of an item: the columns whose names have left and right in them, else the last two.

    A single column is the left context.
    """
    names = list(item.columns)
    left, right = _context_columns(names)
    document = item.columns[names[0]] if names and names[0] not in (left, right) else ""
    return Gap(words_in(item.columns.get(left, "")), words_in(item.columns.get(right, "")), document)


def _context_columns(names: list[str]) -> tuple[str, str]:
    """Give the names of both columns, "" for one that is not there."""
    lefts, rights = ([name for name in names if side in name.lower()] for side in ("left", "right"))
    if lefts or rights:
        return lefts[0] if lefts else "", rights[0] if rights else ""
    if len(names) > 1:
        return names[-2], names[-1]
    return (names[0] if names else ""), ""


def texts_of(items: Iterable[Item]) -> list[Sentence]:
    """Give the texts of items with answers: their windows, laid back together.

    Raises ModelError for an item without an answer, and where there is no item.
    """
    windows: dict[str, list[Sentence]] = defaultdict(list)
    for item in items:
        if item.expected is None:
            raise ModelError(message="There is nothing to train on: train has no answers (expected.tsv)")
        gap = gap_of(item)
        windows[gap.document].append(gap.left + words_in(item.expected) + gap.right)
    if not windows:
        raise ModelError(message="There is nothing to train on: train has no items")
    return [text for of_document in windows.values() for text in laid_together(of_document)]


def laid_together(windows: list[Sentence]) -> list[Sentence]:
    """Join the windows of a document, until none can be joined any more.

    >>> laid_together(["a b c d e f".split(), "x y".split(), "b c d e f g".split()])
    [['a', 'b', 'c', 'd', 'e', 'f', 'g'], ['x', 'y']]
    """
    while True:
        texts = _joined_once(windows)
        if len(texts) == len(windows):
            return texts
        windows = texts


class _Text:
    """A text that grows at both ends; places are counted from the first word that it had."""

    def __init__(self, words: Sentence) -> None:
        self.words = list(words)
        self.start = 0

    def agrees(self, words: Sentence, place: int) -> bool:
        """Tell whether words that begin at a place are the same as its own where they overlap."""
        skip = place - self.start
        own = self.words[max(skip, 0) : max(skip + len(words), 0)]
        return own == words[max(-skip, 0) : max(-skip, 0) + len(own)]

    def add(self, words: Sentence, place: int) -> None:
        """Add words that agree."""
        before = self.start - place
        if before > 0:
            self.words[:0] = words[:before]
            self.start = place
        behind = place + len(words) - (self.start + len(self.words))
        if behind > 0:
            self.words += words[-behind:]


def _joined_once(windows: list[Sentence]) -> list[Sentence]:
    """Join each window with the first text before it that it overlaps and agrees with."""
    texts: list[_Text] = []
    places: dict[tuple[bytes, ...], tuple[_Text, int]] = {}
    for words in windows:
        runs = list(zip(*(words[shift:] for shift in range(SHARED)), strict=False))
        known = ((places[run], start) for start, run in enumerate(runs) if run in places)
        found = ((text, place - start) for (text, place), start in known)
        text, first = next(((text, place) for text, place in found if text.agrees(words, place)), (None, 0))
        if text is None:
            text = _Text(words)
            texts.append(text)
        else:
            text.add(words, first)
        for start, run in enumerate(runs):
            places.setdefault(run, (text, first + start))
    return [text.words for text in texts]
