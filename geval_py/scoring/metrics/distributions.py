"""Metrics of distributions over words or labels, ``word:probability …``, for tasks near word-gap prediction.

Words are compared as they are, without hashing, but for norms. In this order: what a line lists; suggestions (hits,
ranks, keystrokes); choices among options; norms, where the answer is itself a distribution; labels and forecasts.

Keystrokes are those of T. Wandmacher and J.-Y. Antoine, "Methods to integrate a language model with semantic
information for a word prediction component" (EMNLP-CoNLL 2007): a list of k words, of which one keystroke selects one
and types the space too. A word that is typed to its end also takes one keystroke for the space. Here neither is
counted, so that the best share is 1.

The Brier score is G. W. Brier's, "Verification of forecasts expressed in terms of probability" (1950): the sum over
all labels, in [0, 2]. The calibration error is that of C. Guo and others, "On calibration of modern neural networks"
(2017): of the most likely label, in bins of equal width. The skill is that of the logarithmic score.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from math import exp, fsum, inf, log
from typing import NamedTuple

from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import (
    NO_DIGIT,
    REST,
    are_probabilities,
    distribution_of,
    log_sum_exp,
    parse_entries,
    scale_logarithms,
    scale_probabilities,
    word_buckets,
)
from geval_py.scoring.metrics.columns import malformed, of_role
from geval_py.text import shorten, split_words, strip_spaces, visible

MIN_OPTIONS = 2
MAX_OPTIONS_SHOWN = 8
NO_CHOICE = "no choice of options"
NO_OPTION = "the answer is not an option"
NO_SHARE = "a share is from 0 to 1"
NO_BASELINE = "no probability in the baseline"


class Listed(NamedTuple):
    """What a line lists: its words with their numbers, not normalised; equal words are added up.

    The numbers are probabilities or, if ``logarithmic``, natural logarithms. A word of probability 0 is left out.
    ``log_rest`` is the logarithm of the rest's number; the logarithm of a mass is that of its number less ``shift``,
    and then less ``log_divisor``.
    """

    numbers: dict[str, float]
    logarithmic: bool
    log_rest: float
    shift: float
    log_divisor: float

    def log_mass(self, word: str) -> float:
        """Return the logarithm of a word's mass; -inf for a word that is not listed."""
        number = self.numbers.get(word)
        if number is None:
            return -inf
        return min(0.0, (number if self.logarithmic else log(number)) - self.shift - self.log_divisor)

    @property
    def log_rest_mass(self) -> float:
        """The logarithm of the mass of all words that are not listed."""
        return min(0.0, self.log_rest - self.shift - self.log_divisor)

    def log_shares(self, words: Collection[str]) -> dict[str, float]:
        """Return the logarithms of distinct words' masses; those that are not listed share the rest evenly."""
        unlisted = sum(word not in self.numbers for word in words)
        share = self.log_rest_mass - log(unlisted) if unlisted else -inf
        return {word: self.log_mass(word) if word in self.numbers else share for word in words}

    def better_than(self, word: str) -> Iterable[str]:
        """Yield the words before a listed word: of equal numbers, the greater word is first, as for Accuracy."""
        number = self.numbers[word]
        return (one for one, value in self.numbers.items() if value > number or (value == number and one > word))

    def guess(self) -> str | None:
        """Return the word before all others; None if no word is listed."""
        return max(self.numbers, key=lambda word: (self.numbers[word], word), default=None)


def entries_of(text: str, line: int) -> tuple[list[str], list[float]]:
    """Read a line of ``word:probability`` entries; raises MalformedLineError, also for a vector of buckets."""
    if not text:
        raise malformed(NO_DIGIT, text, line, "the line is empty; write `:1` where there is no guess")
    return parse_entries(text, line)


def listed_of(text: str, line: int) -> Listed:
    """Read what a line lists; raises MalformedLineError."""
    words, values = entries_of(text, line)
    if are_probabilities(values):
        return _listed_probabilities(words, values)
    shift, log_divisor, log_rest = scale_logarithms(values, REST in words)
    numbers = dict(zip(words, values, strict=True))
    if len(numbers) < len(words):
        grouped: dict[str, list[float]] = {}
        for word, value in zip(words, values, strict=True):
            grouped.setdefault(word, []).append(value)
        numbers = {word: of[0] if len(of) == 1 else log_sum_exp(of) for word, of in grouped.items()}
    log_rest = numbers.pop(REST, log_rest)
    return Listed(numbers, logarithmic=True, log_rest=log_rest, shift=shift, log_divisor=log_divisor)


def _listed_probabilities(words: Sequence[str], values: Sequence[float]) -> Listed:
    divisor, missing = scale_probabilities(values, REST in words)
    numbers: dict[str, float] = {}
    for word, value in zip(words, values, strict=True):
        if value:
            numbers[word] = numbers.get(word, 0.0) + value
    rest = numbers.pop(REST, 0.0) + missing
    log_rest = log(rest) if rest else -inf
    return Listed(numbers, logarithmic=False, log_rest=log_rest, shift=0.0, log_divisor=log(divisor))


# Suggestions


def rank_of(text: str, expected: str, line: int) -> int:
    """Return the rank of the expected word among the listed words, from 1; 0 if it is not listed."""
    listed, word = listed_of(text, line), strip_spaces(expected)
    return 1 + sum(1 for _ in listed.better_than(word)) if word in listed.numbers else 0


def miss_of_first(first: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Return 0 if the expected word is among the first words, else 1."""
    return (not 1 <= rank_of(text, expected, line) <= first,)


def reciprocal_rank(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Return 1 divided by the rank of the expected word; 0 if it is not listed."""
    rank = rank_of(text, expected, line)
    return (1 / rank if rank else 0.0,)


def keystrokes(first: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the characters of a word that need not be typed, and all its characters.

    After each character the ``first`` words are shown that begin with what has been typed.
    """
    listed, word = listed_of(text, line), strip_spaces(expected)
    if word not in listed.numbers:
        return 0, len(word)
    alike = [0] * (len(word) + 1)  # by the number of first characters shared: the words shown before this one
    for one in listed.better_than(word):
        pairs = enumerate(zip(one, word, strict=False))
        alike[next((place for place, (a, b) in pairs if a != b), min(len(one), len(word)))] += 1
    typed, before = len(word) + 1, 0
    while typed and before + alike[typed - 1] < first:
        typed -= 1
        before += alike[typed]
    return max(0, len(word) - typed), len(word)


# Choices


def choice_loss(given: str, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Compute the loss of the expected option, in nats, where the options of the input have all mass."""
    shares, answer = _chosen(given, text, expected, line)
    if shares[answer] == -inf:
        return (inf,)
    return (max(0.0, log_sum_exp(list(shares.values())) - shares[answer]),)


def choice_miss(given: str, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Return 0 if the likeliest option is the expected one, else 1; an option without mass is no guess."""
    shares, answer = _chosen(given, text, expected, line)
    best = max(shares, key=lambda option: (shares[option], option))
    return (best != answer or shares[answer] == -inf,)


def _chosen(given: str, text: str, expected: str, line: int) -> tuple[dict[str, float], str]:
    """Return the logarithms of the options' masses, and the answer; raises MalformedLineError."""
    listed = listed_of(text, line)
    options, answer = of_role("input", options_of, given, line), strip_spaces(expected)
    if answer not in options:
        shown = " ".join(options[:MAX_OPTIONS_SHOWN]) + (" …" if len(options) > MAX_OPTIONS_SHOWN else "")
        hint = f"`{visible(shorten(answer))}` is none of the input's options: {visible(shorten(shown))}"
        error = malformed(NO_OPTION, expected, line, hint)
        error.role = "expected"
        raise error
    return listed.log_shares(options), answer


def options_of(given: str, line: int) -> list[str]:
    """Read the distinct options in the last column of an input line; raises MalformedLineError."""
    column = given.rpartition("\t")[2]
    options = list(dict.fromkeys(split_words(column)))
    if len(options) < MIN_OPTIONS:
        hint = f"the last column has the options, at least {MIN_OPTIONS}, with spaces between them"
        raise malformed(NO_CHOICE, given, line, hint, len(given) - len(column) + 1, column)
    return options


# Norms


def norm_of(text: str, line: int) -> Listed:
    """Read an expected line of ``word:share`` entries; raises MalformedLineError, also for counts."""
    words, values = entries_of(text, line)
    if not are_probabilities(values):
        hint = "the shares of the answers are from 0 to 1, and not all 0; divide counts by their sum"
        raise malformed(NO_SHARE, text, line, hint)
    return _listed_probabilities(words, values)


def norm_cross_entropy(bits: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Compute the mean loss of a norm's buckets, in nats, each weighted by its share."""
    return (max(0.0, _divergence(bits, text, expected, line, of_norm=0.0)),)


def norm_divergence(bits: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Compute the Kullback-Leibler divergence of a line from a norm, in nats, over buckets."""
    return (max(0.0, _divergence(bits, text, expected, line, of_norm=1.0)),)


def _divergence(bits: int, text: str, expected: str, line: int, *, of_norm: float) -> float:
    """Sum p (of_norm ln p - ln q) over the buckets; p are the masses of the norm, and q those of the line."""
    given, given_share = _bucket_logs(listed_of(text, line), bits, line)
    wanted, wanted_share = _bucket_logs(of_role("expected", norm_of, expected, line), bits, line)
    places = wanted.keys() | given.keys()
    pairs = [(wanted.get(place, wanted_share), given.get(place, given_share), 1) for place in places]
    pairs.append((wanted_share, given_share, (1 << bits) - len(places)))
    terms = [(exp(p) * count, of_norm * p - q) for p, q, count in pairs if exp(p) * count > 0.0]
    return fsum(weight * term for weight, term in terms) if all(term < inf for _, term in terms) else inf


def _bucket_logs(listed: Listed, bits: int, line: int) -> tuple[dict[int, float], float]:
    """Return the logarithms of the masses of the buckets with a listed word, and of each other bucket."""
    share = listed.log_rest_mass - bits * log(2)
    grouped: dict[int, list[float]] = {}
    for word, bucket in zip(listed.numbers, word_buckets(list(listed.numbers), bits, line), strict=True):
        grouped.setdefault(bucket, [share]).append(listed.log_mass(word))
    return {bucket: log_sum_exp(of) for bucket, of in grouped.items()}, share


def rank_correlation(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Return Spearman's correlation of a line with a norm over the norm's words, and 1; 0 and 0 if the norm has none.

    Words of the norm that are not listed share the last rank.
    """
    listed, norm = listed_of(text, line), of_role("expected", norm_of, expected, line).numbers
    if len({*norm.values()}) < 2:
        return 0.0, 0.0
    numbers = [listed.numbers.get(word, -inf) for word in norm]
    if len({*numbers}) < 2:
        return 0.0, 1.0
    import numpy as np

    from geval_py.scoring.metrics.regression import ranks

    ranked = ranks(np.array([list(norm.values()), numbers]))
    if np.array_equal(*ranked):
        return 1.0, 1.0  # which rounding would miss
    table = np.asarray(np.corrcoef(ranked))
    return float(table[0, 1]), 1.0


def mean_correlation(totals: Sequence[float], lines: float) -> float:
    """Compute the mean correlation of the lines whose norm has ranks; 0 without any."""
    del lines
    correlation, ranked = totals
    return correlation / ranked if ranked else 0.0


# Labels and forecasts


def brier_score(vocabulary: frozenset[str], text: str, expected: str, line: int) -> tuple[float]:
    """Compute the Brier score of a line; the labels of the vocabulary that it does not list share the rest evenly."""
    distribution, label = distribution_of(*entries_of(text, line)), strip_spaces(expected)
    masses = distribution.masses
    unlisted = len(vocabulary) - sum(one in vocabulary for one in masses)
    share = distribution.rest / unlisted if unlisted else 0.0
    of_label = masses.get(label, share if label in vocabulary else 0.0)
    squares = [mass * mass for mass in masses.values()] + [share * share * unlisted]
    return (max(0.0, fsum([*squares, -of_label * of_label, (1 - of_label) ** 2])),)


def confidence_gap(bins: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Return, in the bin of the guess's probability, that probability less 1 for a hit; 0 in all other bins."""
    listed = listed_of(text, line)
    guess = listed.guess()
    confidence = 0.0 if guess is None else exp(listed.log_mass(guess))
    row = [0.0] * bins
    edges = [place / bins for place in range(1, bins)]
    row[bisect_left(edges, confidence)] = confidence - (guess is not None and guess == strip_spaces(expected))
    return tuple(row)


def relative_loss(given: str, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Compute the losses of the answer in nats: the line's, and that of the baseline in the input's last column."""
    listed, label = listed_of(text, line), strip_spaces(expected)
    column = given.rpartition("\t")[2]
    try:
        baseline = listed_of(column, line)
        of_baseline = baseline.log_mass(label)
        if of_baseline == -inf:
            hint = f"the baseline in the last column gives the answer `{visible(shorten(label))}` no probability"
            raise malformed(NO_BASELINE, column, line, hint)
    except MalformedLineError as error:
        error.role, error.text, error.column = "input", given, error.column + len(given) - len(column)
        raise
    return -listed.log_shares({*baseline.numbers})[label], -of_baseline


def skill(totals: Sequence[float], lines: float) -> float:
    """Compute 1 minus the loss in proportion to the baseline's; 1 where there is no loss."""
    del lines
    loss, baseline = totals
    if loss == 0.0 or (baseline == inf and loss < inf):
        return 1.0
    return 1 - loss / baseline if baseline > 0.0 and loss < inf else -inf
