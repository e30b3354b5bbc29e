r"""Cut gaps: words taken out of a text, with a context on both sides.

Windows of a word and ``context`` words on each side do not overlap, unless gaps are asked for that are nearer to each
other. A context keeps the line end, but not the space, next to the gap; line ends are written as the two characters
``\n``, as in Challenging America. A word hyphenated at a line end stays as it is, but its halves are no gaps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring.documents import Document
from geval_py.authoring.parts import draw
from geval_py.errors import UsageError
from geval_py.text import visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_CONTEXT = 40  # words on each side
DEFAULT_SEED = "first gap"
DEFAULT_WORDS = r"\w"  # a word that may be a gap has a letter, a digit or an underscore
_IN_WORDS = np.array([not chr(code).isspace() for code in range(0x3002)])  # U+3000 is the last white space


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How gaps are cut.

    ``every`` is the least number of words from a gap to the next, None for a window's width; with ``random`` it is
    drawn from that to twice as many. ``words`` is found in each word that may be a gap, which is one of ``frequent``,
    if that is given.
    """

    context: int = DEFAULT_CONTEXT
    every: int | None = None
    random: bool = False
    words: re.Pattern[str] = re.compile(DEFAULT_WORDS)
    frequent: Container[str] | None = None
    seed: str = DEFAULT_SEED

    @property
    def window(self) -> int:
        """The words of a window."""
        return 2 * self.context + 1

    @property
    def step(self) -> int:
        """The least number of words from a gap to the next."""
        return self.window if self.every is None else self.every

    def takes(self, word: str) -> bool:
        """Tell whether a word may be a gap."""
        return self.words.search(word) is not None and (self.frequent is None or word in self.frequent)


@dataclass(frozen=True, slots=True)
class Gap:
    """A word cut out of a document: its place there, counted in words, and the texts on both sides."""

    document: Document
    place: int
    left: str
    word: str
    right: str

    def input_line(self) -> str:
        """Give the line of in.tsv, without its end."""
        return "\t".join((*self.document.columns.values(), _on_a_line(self.left), _on_a_line(self.right)))


def _on_a_line(text: str) -> str:
    return text.replace("\t", " ").replace("\n", "\\n")


def cut_gaps(document: Document, cut: Cut) -> Iterator[Gap]:
    """Cut the gaps of a document, in order; one that is shorter than a window has none.

    The first is drawn, by the hash of the document's id, among those with which as many gaps fit as with any, were
    every word taken; one that may not be a gap gives way to the next.
    """
    text, context = document.text, cut.context
    starts, ends = word_bounds(text)
    spare = len(starts) - cut.window
    if spare < 0:
        return
    place = context + draw(cut.seed, document.id, spare % cut.step + 1)
    while place + context < len(starts):
        start, end = int(starts[place]), int(ends[place])
        word = text[start:end]
        if is_half(text, start, end) or not cut.takes(word):
            place += 1
            continue
        left, right = text[starts[place - context] : start], text[end : ends[place + context]]
        yield Gap(document, place, left.rstrip(" \t"), word, right.lstrip(" \t"))
        place += cut.step + (draw(f"{cut.seed} {place}", document.id, cut.step) if cut.random else 0)


def word_bounds(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give where the words of a text begin, and where they end: between white space, as ``str.split`` knows it.

    >>> [bounds.tolist() for bounds in word_bounds(" a word")]
    [[1, 3], [2, 7]]
    """
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    inside = np.ones(len(characters) + 2, dtype=bool)
    inside[0] = inside[-1] = False
    inside[1:-1] = _IN_WORDS[np.minimum(characters, len(_IN_WORDS) - 1)]
    bounds = np.flatnonzero(inside[1:] != inside[:-1])
    return bounds[::2], bounds[1::2]


def is_half(text: str, start: int, end: int) -> bool:
    r"""Tell whether a word is either half of one hyphenated at a line end.

    >>> is_half("rail-\nroad ends", 0, 5), is_half("rail-\nroad ends", 6, 10), is_half("rail-\nroad ends", 11, 15)
    (True, True, False)
    """
    return text.startswith("-\n", end - 1) or text.startswith("-\n", max(0, start - 2), start)


def frequent_words(documents: Iterable[Document], least: int) -> frozenset[str]:
    """Give the words that some documents have so many times, or more."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(document.text.split())
    return frozenset(word for word, count in counts.items() if count >= least)


def read_pattern(text: str) -> re.Pattern[str]:
    """Read a regular expression; raises UsageError."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(message=f"--words is no regular expression: {visible(text)}\n  {error}") from error
