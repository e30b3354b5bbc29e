"""How losses are spread over the lines, and which lines have the greatest.

In this order: the outcomes of lines, such as a right first guess, and their shares of the loss; the bins of a
histogram; groups of lines, by their answers and by columns of the input; example lines; the loss that a rare line
could have, but which no line has had.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import islice, repeat
from typing import Literal, NamedTuple

import numpy as np

from geval_py.explaining.significance import (
    MIN_LINES,
    MIN_TESTED_LINES,
    benjamini_hochberg,
    dot,
    mean_of,
    normal_cdf,
    sum_of,
)
from geval_py.explaining.statistics import sums_by
from geval_py.reading import features, wordprobs
from geval_py.reading.items import ScoredItem
from geval_py.scoring.metrics import regression
from geval_py.scoring.metrics.base import Array, HashedColumn, Integers, profile_of
from geval_py.scoring.scores import Evaluation

ITEMS_AT_ONCE = 4096


class Outcome(IntEnum):
    """The outcome of a line, from the best to the worst; a line without a guess has only a rest, or is a vector."""

    RIGHT = 0
    LISTED = 1
    MISSED = 2
    NO_GUESS = 3


class Outcomes(NamedTuple):
    """The outcome of each scored line, in order, the confidence of its best guess, and the mass of the expected word.

    The best guess is the word with the greatest mass; among equals, the greatest in code point order, as for
    Accuracy. Masses are in [0, 1]; a word that is not listed has no mass of its own.
    """

    codes: Integers
    confidences: Array
    word_masses: Array


class OutcomeShare(NamedTuple):
    """The lines of one outcome: how many, their share of all lines and of the finite loss, their mean loss in nats.

    The mean is over lines with a finite loss; NaN if there are none.
    """

    outcome: Outcome
    lines: int
    share_of_lines: float
    share_of_loss: float
    mean_loss: float


def outcomes_of(items: Iterable[ScoredItem]) -> Outcomes:
    """Classify lines, prepared as they were scored; raises MalformedLineError."""
    column, items = HashedColumn(bits=1, profile=True), iter(items)  # nothing here depends on buckets
    statistics = column.statistics(b"", b"", 1)
    while block := list(islice(items, ITEMS_AT_ONCE)):
        # A vector counts as a line without words.
        outputs = "".join(f"{item.output if ':' in item.output else ':1'}\n" for item in block)
        expected = "".join(f"{item.expected}\n" for item in block)
        statistics.extend(column.statistics(outputs.encode(), expected.encode(), statistics.lines + 1))
    profile = profile_of(statistics)
    is_outcome = profile["words"] == 0, profile["guess_right"] > 0, profile["listed"] > 0
    codes = np.select(is_outcome, (Outcome.NO_GUESS, Outcome.RIGHT, Outcome.LISTED), Outcome.MISSED)
    return Outcomes(codes.astype(np.int64), profile["guess_mass"], profile["word_mass"])


def outcome_shares(losses: Array, codes: Integers) -> list[OutcomeShare]:
    """Compute the shares of lines and of loss by outcome, in order; ``losses`` are in nats.

    >>> shares = outcome_shares(np.array([1.0, 3.0]), np.array([0, 2]))
    >>> [(share.outcome.name, share.share_of_loss) for share in shares]
    [('RIGHT', 0.25), ('MISSED', 0.75)]
    """
    finite = np.isfinite(losses)
    total = losses[finite].sum()
    shares = []
    for outcome in Outcome:
        here = codes == outcome
        own = losses[here & finite]
        if here.any():
            of_loss, mean = float(own.sum() / total) if total else 0.0, mean_of(own) if len(own) else math.nan
            shares.append(OutcomeShare(outcome, int(here.sum()), float(here.mean()), of_loss, mean))
    return shares


# A histogram


MAX_BINS = 20
_STEPS = tuple(factor * 10.0**power for power in range(-6, 12) for factor in (1.0, 2.0, 5.0))


def bins_of(values: Array, codes: Integers | None = None) -> list[tuple[float, float, int, int]]:
    """Count finite values in at most 21 bins of equal, round width: low, high, code and number of values.

    A bin holds values from ``low`` to below ``high``, the last one also ``high``. Values with different ``codes`` are
    counted apart, and empty bins are left out.

    >>> bins_of(np.array([0.0, 0.0, 0.5, 1.0]))
    [(0.0, 0.05, 0, 2), (0.5, 0.55, 0, 1), (0.95, 1.0, 0, 1)]
    """
    if not len(values):
        return []
    low, high = float(values.min()), float(values.max())
    range_of_bin = high / MAX_BINS - low / MAX_BINS  # the difference of two numbers of 1e308 is infinite
    least = max(range_of_bin, max(abs(low), abs(high)) * 1e-12)  # else rounding makes bins of no width
    width = next((step for step in _STEPS if step >= least), least)
    first = math.floor(low / width)
    last = max(first, math.ceil(high / width) - 1)
    places = np.clip(np.floor(values / width + 1e-9).astype(np.int64), first, last) - first
    codes = np.zeros(len(values), np.int64) if codes is None else codes
    return [
        (round((first + place) * width, 12), round((first + place + 1) * width, 12), code, count)
        for code in np.unique(codes).tolist()
        for place, count in enumerate(np.bincount(places[codes == code]).tolist())
        if count
    ]


# Groups of lines


MAX_GROUPS = 10
WORDS_OF_A_TEXT = 4.0  # mean number of words from which a column is text
LENGTHS = {n: str(n) for n in range(8)} | {8: "8–9", 10: "10–12", 13: "13 or more"}  # in characters
FREQUENCIES = {
    0: "never", 1: "once", 2: "2–9", 10: "10–99", 100: "100–999", 1_000: "1,000–9,999", 10_000: "10,000–99,999",
    100_000: "100,000 or more",
}  # fmt: skip


class Grouping(NamedTuple):
    """The group of each line: ``codes`` are places in ``labels``, some of which may be unused.

    ``kind`` is what divides the lines: ranges of numbers, values, the length in words, or given ranges.
    """

    kind: Literal["number", "value", "words", "range"]
    codes: Integers
    labels: tuple[str, ...]


def group_q_values(values: Array, grouping: Grouping, documents: Integers | None = None) -> Array:
    """Return q of each group: whether the values of its lines differ from those of the other lines; NaN without any.

    All lines are ranked by their values, and the ranks of a group compared with the mean rank. The variance is that
    of sums by document, and q is p corrected for the number of groups by Benjamini and Hochberg.
    """
    p_values, known = np.full(len(grouping.labels), np.nan), np.flatnonzero(~np.isnan(values))
    ranks = regression.ranks(values[known]) - (len(known) + 1) / 2
    units = np.arange(len(known)) if documents is None else documents[known]
    for code in np.unique(grouping.codes[known]):
        in_group = grouping.codes[known] == code
        sums = sums_by(units, (in_group - in_group.mean()) * ranks)
        if deviation := math.sqrt(dot(sums, sums)):
            p_values[code] = 2 * normal_cdf(-abs(sum_of(sums)) / deviation)
    return benjamini_hochberg(p_values)


def group_by_range(values: Iterable[int], labels: Mapping[int, str]) -> Grouping:
    """Group lines by ranges of whole numbers; ``labels`` are keyed by the first number of each range."""
    codes = np.searchsorted(np.array(list(labels)), np.array(list(values), np.int64), side="right") - 1
    return Grouping("range", codes, tuple(labels.values()))


def group_by_text(texts: Sequence[str]) -> Grouping | None:
    """Group lines by ranges of the numbers of a column, by its values or, if it is text, by its length in words.

    None if all lines would be in one group: they have one value, or hardly any two lines have the same.
    """
    words = np.array(list(map(str.count, texts, repeat(" ")))) + np.array(list(map(bool, texts)))
    if all(map(features.FIELD_NUMBER.fullmatch, texts)):
        grouping = Grouping("number", *_by_quantiles(np.array(list(map(float, texts)))))
    elif words.mean() >= WORDS_OF_A_TEXT and len(set(texts)) > MAX_GROUPS:
        grouping = Grouping("words", *_by_quantiles(words.astype(np.float64)))
    else:
        common = [value for value, lines in Counter(texts).most_common(MAX_GROUPS) if lines >= MIN_LINES]
        places = {value: place for place, value in enumerate(sorted(common))}
        codes = np.array([places.get(text, len(common)) for text in texts], np.int64)
        grouping = Grouping("value", codes, (*places, "others"))
    return grouping if len(np.unique(grouping.codes)) > 1 else None


def _by_quantiles(values: Array) -> tuple[Integers, tuple[str, ...]]:
    """Assign values to at most ten groups of about as many lines each, by rising values; return codes and labels."""
    bounds = np.unique(values)
    if len(bounds) > MAX_GROUPS:
        shares = np.arange(1, MAX_GROUPS + 1) / MAX_GROUPS
        bounds = np.unique(np.quantile(values, shares, method="inverted_cdf"))
    codes = np.searchsorted(bounds, values, side="left")
    ranges = [(f"{here.min():.6g}", f"{here.max():.6g}") for n in range(len(bounds)) for here in [values[codes == n]]]
    return codes, tuple(low if low == high else f"{low}–{high}" for low, high in ranges)


# Example lines


WORST, BEST = 300, 100
GUESSES = 5
CONTEXT = 72  # characters on each side of a gap


class Example(NamedTuple):
    """A distribution over words for a gap: the texts around it, the answer, the guesses.

    ``about`` are the other columns of the input. ``listed`` is the mass of the expected word, None if it is not
    listed; ``guesses`` are the words with the greatest masses; ``rest`` is the mass of all unlisted words.
    """

    about: tuple[str, ...]
    before: str
    expected: str
    after: str
    listed: float | None
    guesses: tuple[tuple[str, float], ...]
    rest: float


def worst_and_best(badness: Array, outcomes: Outcomes | None = None) -> Integers:
    """Return the lines by falling badness, such as their losses: all, or the first 300 and the last 100.

    Many lines may have the same loss, such as all that miss the word's bucket. Of these, by the ``outcomes``, the
    line comes first that gave the word less, then the one with the more confident guess. Lines with NaN are left out.

    >>> masses, sure = np.array([0.5, 0.1, 0.1, 0.2]), np.array([0.5, 0.1, 0.9, 0.5])
    >>> outcomes = Outcomes(codes=np.zeros(4, np.int64), confidences=sure, word_masses=masses)
    >>> worst_and_best(np.array([1.0, 2.0, 2.0, 2.0]), outcomes).tolist()
    [2, 1, 3, 0]
    >>> worst_and_best(np.array([math.nan, 1.0, 2.0])).tolist()
    [2, 1]
    """
    ties = () if outcomes is None else (-outcomes.confidences, outcomes.word_masses)
    order = np.lexsort((*ties, -badness))
    order = order[~np.isnan(badness[order])]
    return np.concatenate([order[:WORST], order[WORST:][-BEST:]])


def example_of(item: ScoredItem) -> Example:
    """Return a prepared line as an example; raises MalformedLineError."""
    line = wordprobs.parse_line(item.output)
    distribution = None if line.words is None else line.normalised()
    masses = {} if distribution is None else distribution.masses
    about, before, after = in_context(item.input)
    return Example(
        about,
        before,
        item.expected,
        after,
        listed=masses.get(item.expected),
        guesses=tuple(sorted(masses.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:GUESSES]),
        rest=0.0 if distribution is None else distribution.rest,
    )


def in_context(line: str) -> tuple[tuple[str, ...], str, str]:
    r"""Split an input line: other columns, the end of the text before the gap, the beginning of the text after it.

    The last two columns are the texts around the gap; a single column stands before it. The two characters ``\n``,
    which stand for a line end, become ⏎.

    >>> in_context("1901\tin\\nthe\tof may")
    (('1901',), 'in ⏎ the', 'of may')
    """
    *about, before, after = line.split("\t") if "\t" in line else (line, "")
    before, after = (text.replace("\\n", " ⏎ ") for text in (before, after))
    head = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    tail = after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"
    return tuple(about), head, tail


# Losses that no line has had yet

ORDINARY = 20.0  # nats: the loss of an unlisted word at ten bits with a rest of two millionths
FAR = 10  # standard errors of the mean loss by which one such line would move it


def unbounded_loss(evaluation: Evaluation) -> tuple[float, float] | None:
    """Return the greatest loss that a line could have, possibly inf, and the greatest of any line, in nats.

    None unless one such line would move the mean loss by ten standard errors, and for metrics not of hashed words, a
    bound that any miss may reach, few lines, and infinite losses.
    """
    statistics = evaluation.scores[0].statistics
    if statistics.bound <= ORDINARY or statistics.lines < MIN_TESTED_LINES:
        return None
    losses = np.array(statistics.columns[0])
    greatest = float(losses.max())
    moved = FAR * float(losses.std(ddof=1)) * math.sqrt(len(losses)) if math.isfinite(greatest) else math.inf
    return (statistics.bound, greatest) if statistics.bound > greatest + moved else None
