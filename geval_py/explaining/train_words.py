"""The frequent words of a challenge's train, and what they give to the expected words of a test set."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from geval_py.reading import splits, wordprobs
from geval_py.reading.files import File
from geval_py.reading.lines import LineReader, read_lines
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Array
from geval_py.scoring.recipes import Shares

DEFAULT_WORDS = 300  # more improve little, and make long lines


def frequent_words(answers: Iterable[str], count: int) -> Shares:
    """Return the shares of the ``count`` most frequent answers that an output can list.

    In case of ties they are the first by code points. Answers that an output cannot list, such as those with a space,
    count in the total but are left out.
    """
    counts = Counter(answers)
    total = counts.total()
    words = sorted(filter(wordprobs.is_listable, counts), key=lambda word: (-counts[word], word))[:count]
    return {word: counts[word] / total for word in words}


def frequent_words_of_train(split: splits.Split, count: int) -> Shares:
    """Return the most frequent answers in the train/expected.tsv beside a test set; none without such a file."""
    path = splits.training_answers(split.expected)
    return {} if path is None else frequent_words(read_lines(path, header=split.output_header), count)


def bucket_shares(split: splits.Split, frequent: Shares, bits: int) -> Array:
    """Return, for each line of the answers, the sum of the shares of the frequent words in its bucket."""
    return _bucket_shares(split.expected, split.output_header, tuple(frequent.items()), bits)


@lru_cache(maxsize=1)  # a report needs the same sums twice, which takes seconds for a million lines
def _bucket_shares(file: File, header: str | None, frequent: tuple[tuple[str, float], ...], bits: int) -> Array:
    with LineReader(file, header=header) as expected:
        answers = b"".join(iter(expected.block, b""))
    words = "".join(f"{word}\n" for word, _ in frequent).encode()
    return np.frombuffer(backends.bucket_shares(words, array("d", dict(frequent).values()), answers, bits, 1))
