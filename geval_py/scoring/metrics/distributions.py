"""Metrics of distributions over words or labels, ``word:probability …``, for tasks near word-gap prediction.

Words are compared as they are, without hashing, but for norms. In this order: what a line lists; suggestions (hits,
ranks); choices among options; norms, where the answer is itself a distribution; labels.

The Brier score is G. W. Brier's, "Verification of forecasts expressed in terms of probability" (1950): the sum over
all labels, in [0, 2].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, inf, log
from typing import NamedTuple, TypeAlias

from geval_py.reading.wordprobs import (
    NO_DIGIT,
    REST,
    are_probabilities,
    log_sum_exp,
    parse_entries,
    scale_logarithms,
    word_buckets,
)
from geval_py.scoring.metrics.base import Row
from geval_py.scoring.metrics.columns import malformed, mismatch
from geval_py.scoring.metrics.regression import ranks
from geval_py.text import shorten, split_words, strip_spaces, visible

MIN_OPTIONS = 2
MAX_OPTIONS_SHOWN = 8


class Listed(NamedTuple):
    """The logarithms of the masses of a line's words, equal ones added up, and of the mass of all other words.

    A word of probability 0 is left out.
    """

    log_masses: dict[str, float]
    log_rest: float

    def rank(self, word: str) -> int:
        """Return the rank of a word, from 1; 0 if it is not listed.

        Of equally probable words, the greatest is first, as for Accuracy.
        """
        if word not in self.log_masses:
            return 0
        key = self.log_masses[word], word
        return sum((log_mass, other) >= key for other, log_mass in self.log_masses.items())


def listed_of(text: str, line: int) -> Listed:
    """Read a line of ``word:probability`` entries; raises MalformedLineError, also for a vector of buckets."""
    if not text:
        raise malformed(NO_DIGIT, text, line, "the line is empty; write `:1` where there is no guess")
    words, values = parse_entries(text, line)
    if are_probabilities(values):
        values = [log(value) if value else -inf for value in values]
    shift, log_divisor, log_missing = scale_logarithms(values, REST in words)
    log_masses: dict[str, float] = {}
    for word, value in zip(words, values, strict=True):
        if value > -inf:
            log_mass = log_sum_exp([log_masses.get(word, -inf), value - shift - log_divisor])
            log_masses[word] = min(0.0, log_mass)
    log_rest = log_masses.pop(REST, log_missing)
    return Listed(log_masses, log_rest)


# Suggestions


def miss_of_first(first: int, listed: Listed, expected: str) -> float:
    """Return 0 if the expected word is among the first words, else 1."""
    return not 1 <= listed.rank(strip_spaces(expected)) <= first


def reciprocal_rank(listed: Listed, expected: str) -> float:
    """Return 1 divided by the rank of the expected word; 0 if it is not listed."""
    rank = listed.rank(strip_spaces(expected))
    return 1 / rank if rank else 0.0


# Choices


def choice_loss(listed: Listed, expected: str, options: Sequence[str]) -> float:
    """Compute the loss of the expected option, in nats, where the options of the input have all mass."""
    shares, answer = _shares_of_options(listed, expected, options)
    if shares[answer] == -inf:
        return inf
    return max(0.0, log_sum_exp(list(shares.values())) - shares[answer])


def choice_miss(listed: Listed, expected: str, options: Sequence[str]) -> float:
    """Return 0 if the likeliest option is the expected one, else 1; an option without mass is no guess."""
    shares, answer = _shares_of_options(listed, expected, options)
    best = max(shares, key=lambda option: (shares[option], option))
    return best != answer or shares[answer] == -inf


def _shares_of_options(listed: Listed, expected: str, options: Sequence[str]) -> tuple[dict[str, float], str]:
    """Return the logarithms of the options' masses, and the answer; raises the error for an answer that is none."""
    answer = strip_spaces(expected)
    if answer not in options:
        shown = " ".join(options[:MAX_OPTIONS_SHOWN]) + (" …" if len(options) > MAX_OPTIONS_SHOWN else "")
        hint = f"`{visible(shorten(answer))}` is none of the input's options: {visible(shorten(shown))}"
        raise mismatch("the answer is not an option", hint, role="expected")
    unlisted = sum(option not in listed.log_masses for option in options)
    share = listed.log_rest - log(unlisted) if unlisted else -inf  # of an option that is not listed
    return {option: listed.log_masses.get(option, share) for option in options}, answer


def options_of(text: str, line: int) -> list[str]:
    """Read the distinct options in the last column of an input line; raises MalformedLineError."""
    column = text.rpartition("\t")[2]
    options = list(dict.fromkeys(split_words(column)))
    if len(options) < MIN_OPTIONS:
        hint = f"the last column has the options, at least {MIN_OPTIONS}, with spaces between them"
        raise malformed("no choice of options", text, line, hint, len(text) - len(column) + 1, column)
    return options


# Norms


def norm_of(text: str, line: int) -> Listed:
    """Read an expected line of ``word:share`` entries; raises MalformedLineError, also for counts."""
    norm = listed_of(text, line)
    if not are_probabilities(parse_entries(text, line)[1]):
        hint = "the shares of the answers are from 0 to 1, and not all 0; divide counts by their sum"
        raise malformed("a share is from 0 to 1", text, line, hint)
    return norm


Buckets: TypeAlias = tuple[dict[int, float], float]  # logarithms of masses: of some buckets, and of each other one


def buckets_of(bits: int, parse: Callable[[str, int], Listed], text: str, line: int) -> Buckets:
    """Return the logarithms of the masses of the buckets with a listed word, and of each other bucket."""
    listed = parse(text, line)
    share = listed.log_rest - bits * log(2)
    grouped: dict[int, list[float]] = {}
    buckets = word_buckets(list(listed.log_masses), bits, line)
    for bucket, log_mass in zip(buckets, listed.log_masses.values(), strict=True):
        grouped.setdefault(bucket, [share]).append(log_mass)
    return {bucket: log_sum_exp(logs) for bucket, logs in grouped.items()}, share


def norm_loss(bits: int, weight: float, line: Buckets, norm: Buckets) -> float:
    """Sum p (weight ln p - ln q) over the buckets, where p are the masses of the norm, and q those of the line.

    For a weight of 0 it is the cross-entropy, and for 1 the Kullback-Leibler divergence, in nats.
    """
    (logs, share), (norm_logs, norm_share) = line, norm
    places = norm_logs.keys() | logs.keys()
    pairs = [(norm_logs.get(place, norm_share), logs.get(place, share), 1) for place in places]
    pairs.append((norm_share, share, (1 << bits) - len(places)))
    return max(0.0, fsum(exp(p) * count * (weight * p - q) for p, q, count in pairs if exp(p) * count > 0.0))


def rank_correlation(listed: Listed, norm: Listed) -> Row:
    """Return Spearman's correlation of a line with a norm over the norm's words, and 1; 0 and 0 if the norm has none.

    Words of the norm that are not listed share the last rank.
    """
    import numpy as np

    pairs = np.array([(log_share, listed.log_masses.get(word, -inf)) for word, log_share in norm.log_masses.items()])
    shares, masses = (ranks(column) for column in pairs.reshape(-1, 2).T)
    if not np.any(np.diff(shares)):
        return 0.0, 0.0
    if not np.any(np.diff(masses)):
        return 0.0, 1.0
    # Equal ranks have a correlation of 1, which rounding would miss.
    return 1.0 if np.array_equal(shares, masses) else float(np.corrcoef(shares, masses)[0, 1]), 1.0


def mean_correlation(correlation: float, ranked: float) -> float:
    """Compute the mean correlation of the lines whose norm has ranks; 0 without any."""
    return correlation / ranked if ranked else 0.0


# Labels


def brier_score(vocabulary: frozenset[str], listed: Listed, expected: str) -> float:
    """Compute the Brier score of a line; the labels of the vocabulary that it does not list share the rest evenly."""
    label, masses = strip_spaces(expected), {word: exp(mass) for word, mass in listed.log_masses.items()}
    unlisted = len(vocabulary) - sum(word in vocabulary for word in masses)
    share = exp(listed.log_rest) / unlisted if unlisted else 0.0
    of_label = masses.get(label, share if label in vocabulary else 0.0)
    squares = [mass * mass for mass in masses.values()] + [share * share * unlisted]
    return max(0.0, fsum([*squares, -of_label * of_label, (1 - of_label) ** 2]))
