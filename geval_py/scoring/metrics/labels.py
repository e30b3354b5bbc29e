"""Metrics of lines with any number of labels, words between white space; those given may have probabilities.

A label with its probability is ``label:0.75``; the number has a point and is from 0 to 1, or the whole word is a
label. One without is certain. The F-scores count labels given with a probability of 0.5 or more, each as often as
it stands there. The log-loss of a line is that of all labels that were expected or given, each by itself: GEval's
definition, by which a label that was not given has probability 0. An empty line has no label; the F-score of one
where none is expected is 1, and its loss 0.
"""

from __future__ import annotations

from collections import Counter
from math import inf, log, log1p

from geval_py.reading.wordprobs import NUMBER
from geval_py.scoring.metrics.ratios import f_score
from geval_py.text import split_words

THRESHOLD = 0.5


def probable_labels(text: str) -> list[tuple[str, float]]:
    """Read the labels of an output line with their probabilities.

    >>> probable_labels("a:0.5 b c:1 :0.5")
    [('a', 0.5), ('b', 1.0), ('c:1', 1.0), (':0.5', 1.0)]
    """
    return list(map(_label, split_words(text)))


def _label(word: str) -> tuple[str, float]:
    label, _, number = word.rpartition(":")
    if label and "." in number and NUMBER.fullmatch(number) and 0 <= float(number) <= 1:
        return label, float(number)
    return word, 1.0


def label_counts(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the labels that are right, expected, and given."""
    del line
    given = Counter(label for label, probability in probable_labels(text) if probability >= THRESHOLD)
    wanted = Counter(split_words(expected))
    return (given & wanted).total(), wanted.total(), given.total()


def label_f(beta: float, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the F-score of a line's labels."""
    return (f_score(beta, label_counts(text, expected, line)),)


def label_loss(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the loss of a line's labels, in nats, in [0, inf]."""
    del line
    given, wanted = probable_labels(text), split_words(expected)
    first: dict[str, float] = {}
    for label, probability in given:
        first.setdefault(label, probability)
    found = (first.get(label, 0.0) for label in wanted)
    unwanted = (probability for label, probability in given if label not in wanted)
    losses = [-log(probability) if probability else inf for probability in found]
    losses += [-log1p(-probability) if probability < 1 else inf for probability in unwanted]
    return (max(0.0, sum(losses)),)
