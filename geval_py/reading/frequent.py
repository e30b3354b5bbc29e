"""The commonest answers of a challenge's train, and their shares: what to guess where nothing else is known."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

from geval_py.reading.distribution import Distribution
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, TRAINING_SET, Split
from geval_py.values import Value

DEFAULT_WORDS = 100
# What would split a line, or what the rules take for a mistake in it: an odd character, or two entries in one.
_UNWRITABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff]|:.*[0-9][,;]|[0-9][,;].*:"
)


class FrequentWords(Value):
    """Words, the commonest first, and the share of each among all answers, in (0, 1]; together at most 1."""

    words: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the shares."""
        return sum(self.shares)

    @property
    def distribution(self) -> Distribution:
        """The words by their shares, and the rest for all others."""
        masses = dict(zip(self.words, self.shares, strict=True))
        return Distribution(masses=masses, rest=max(0.0, 1.0 - self.total))


def frequent_words(answers: Iterable[str], count: int) -> FrequentWords:
    """Give the ``count`` commonest answers that an output can list, of equal ones the first by code points.

    What an output cannot list, an answer with a space and an empty one, counts among all answers, but is left out.
    """
    counts = Counter(answers)
    total = counts.total()
    words = sorted(filter(is_listable, counts), key=lambda word: (-counts[word], word))[:count]
    return FrequentWords(words=tuple(words), shares=tuple(counts[word] / total for word in words))


def is_listable(word: str) -> bool:
    """Tell whether an output can list a word, and nobody would take it for a mistake."""
    return word != "" and not _UNWRITABLE.search(word)


def frequent_words_of_train(split: Split, count: int) -> FrequentWords | None:
    """Give the commonest answers of the train/expected.tsv beside a test set; None where there is no such file."""
    folder = os.path.dirname(split.expected)
    path = find_file(os.path.join(folder, os.pardir, TRAINING_SET, EXPECTED_FILE))
    return None if path is None else frequent_words(read_lines(path, header=split.output_header), count)
