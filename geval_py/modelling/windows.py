r"""The texts of a word-gap challenge: windows around gaps, joined where they overlap.

Windows of one document may repeat the same words, which would be counted several times. Two windows are joined if
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
    """The words on both sides of a gap, and its document: the first column, unless that is a context."""

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
    """Find the contexts of an item: the columns whose names contain "left" and "right", else the last two.

    A single column is the left context.
    """
    names = list(item.columns)
    lefts, rights = ([name for name in names if side in name.lower()] for side in ("left", "right"))
    if lefts or rights:
        left, right = lefts[0] if lefts else "", rights[0] if rights else ""
    elif len(names) > 1:
        left, right = names[-2:]
    else:
        left, right = names[0] if names else "", ""
    document = item.columns[names[0]] if names and names[0] not in (left, right) else ""
    return Gap(words_in(item.columns.get(left, "")), words_in(item.columns.get(right, "")), document)


def texts_of(items: Iterable[Item]) -> list[Sentence]:
    """Return the texts of items with answers: the windows of each document, joined.

    Raises ModelError for an item without an answer, and if there is no item.
    """
    windows: dict[str, list[Sentence]] = defaultdict(list)
    for item in items:
        if item.expected is None:
            raise ModelError(message="There is nothing to train on: train has no answers (expected.tsv)")
        gap = gap_of(item)
        windows[gap.document].append(gap.left + words_in(item.expected) + gap.right)
    if not windows:
        raise ModelError(message="There is nothing to train on: train has no items")
    return [text for of_document in windows.values() for text in join_windows(of_document)]


def join_windows(windows: list[Sentence]) -> list[Sentence]:
    """Join the windows of a document until no two overlap.

    >>> join_windows(["a b c d e f".split(), "x y".split(), "b c d e f g".split()])
    [['a', 'b', 'c', 'd', 'e', 'f', 'g'], ['x', 'y']]
    """
    while True:
        texts = _joined_once(windows)
        if len(texts) == len(windows):
            return texts
        windows = texts


class _Text:
    """A text that grows at both ends; places count from its first word at the beginning."""

    def __init__(self, words: Sentence) -> None:
        self.words = list(words)
        self.start = 0

    def agrees(self, words: Sentence, place: int) -> bool:
        """Whether words that begin at a place are equal to the text where they overlap."""
        skip = place - self.start
        own = self.words[max(skip, 0) : max(skip + len(words), 0)]
        return own == words[max(-skip, 0) : max(-skip, 0) + len(own)]

    def add(self, words: Sentence, place: int) -> None:
        """Add words that agree with the text."""
        before = self.start - place
        if before > 0:
            self.words[:0] = words[:before]
            self.start = place
        behind = place + len(words) - (self.start + len(self.words))
        if behind > 0:
            self.words += words[-behind:]


def _joined_once(windows: list[Sentence]) -> list[Sentence]:
    """Join each window with the first earlier text that it overlaps and agrees with."""
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
