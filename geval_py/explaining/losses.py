"""How losses are spread: by what became of the lines, in a histogram, by parts of the lines; and example lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from geval_py.explaining.significance import t_quantile
from geval_py.reading.features import FIELD_NUMBER
from geval_py.reading.items import ScoredItem
from geval_py.reading.preparation import preparation_of
from geval_py.reading.wordprobs import parse_line

if TYPE_CHECKING:
    from geval_py.reading.wordprobs import Distribution
    from geval_py.scoring.scores import ScoredOutput


Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class Outcome(IntEnum):
    """What became of a line, from the best to the worst: a line without a guess has a rest alone, or is a vector."""

    RIGHT = 0
    LISTED = 1
    MISSED = 2
    NO_GUESS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What an output line says: its best guess, the masses of that, of the expected word and of all unlisted ones.

    The best guess is the word with the greatest mass; of several the greatest in code point order, as for Accuracy.
    Masses are in [0, 1]; that of the expected word, ``listed``, is None where it is not in the list, and the guess is
    None where there is no list.
    """

    word: str | None
    confidence: float
    listed: float | None
    rest: float

    def outcome(self, expected: str) -> Outcome:
        """Tell what became of the line."""
        if self.word is None:
            return Outcome.NO_GUESS
        if self.word == expected:
            return Outcome.RIGHT
        return Outcome.MISSED if self.listed is None else Outcome.LISTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Of each scored line, in order: its outcome, and the confidence of its best guess, in [0, 1]."""

    codes: Codes
    confidences: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeShare:
    """The lines of one outcome: how many, their share of all lines and of the finite loss, their mean loss in nats.

    The mean is over lines with a finite loss; NaN where there is none.
    """

    outcome: Outcome
    lines: int
    share_of_lines: float
    share_of_loss: float
    mean_loss: float


def prepared_items(evaluation: ScoredOutput) -> Iterator[ScoredItem]:
    """Give each scored line's texts, output and answer as the metric's flags leave them; raises as read_items."""
    preparation = preparation_of(evaluation.scores[0].scheme)
    items = evaluation.read_items()
    if preparation is None:
        return items
    return (ScoredItem(item.input, preparation(item.expected), preparation(item.output)) for item in items)


def distribution_at(text: str) -> Distribution | None:
    """Give what an output line says of words, None for a vector; raises MalformedLineError."""
    line = parse_line(text)
    return None if line.words is None else line.normalised()


def guess_of(distribution: Distribution | None, expected: str) -> Guess:
    """Give what a line's distribution says of the expected word and of its best guess."""
    if distribution is None:
        return Guess(word=None, confidence=0.0, listed=None, rest=0.0)
    masses = distribution.masses
    word = max(masses, key=lambda one: (masses[one], one), default=None)
    confidence = 0.0 if word is None else masses[word]
    return Guess(word=word, confidence=confidence, listed=masses.get(expected), rest=distribution.rest)


def outcomes_of(items: Iterable[ScoredItem]) -> Outcomes:
    """Tell of each line, prepared as it was scored, what became of it; raises MalformedLineError."""
    guesses = [(guess_of(distribution_at(item.output), item.expected), item.expected) for item in items]
    return Outcomes(
        codes=np.array([guess.outcome(expected) for guess, expected in guesses], np.int64),
        confidences=np.array([guess.confidence for guess, _ in guesses], np.float64),
    )


def outcome_shares(losses: Floats, outcomes: Outcomes) -> list[OutcomeShare]:
    """Share lines and loss out among the outcomes that there are, in their order; ``losses`` are in nats.

    >>> shares = outcome_shares(np.array([1.0, 3.0]), Outcomes(codes=np.array([0, 2]), confidences=np.zeros(2)))
    >>> [(share.outcome.name, share.share_of_loss) for share in shares]
    [('RIGHT', 0.25), ('MISSED', 0.75)]
    """
    finite = np.isfinite(losses)
    total = losses[finite].sum()
    return [
        OutcomeShare(
            outcome=outcome,
            lines=int(here.sum()),
            share_of_lines=float(here.mean()),
            share_of_loss=float(losses[here & finite].sum() / total) if total else 0.0,
            mean_loss=float(losses[here & finite].mean()) if (here & finite).any() else float("nan"),
        )
        for outcome in Outcome
        if (here := outcomes.codes == outcome).any()
    ]


# How losses are spread: a histogram of them, by what became of the lines.


MOST_BINS = 24
_STEPS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Losses from ``low`` up to below ``high``, in nats, of lines with one outcome: how many of them."""

    low: float
    high: float
    outcome: Outcome
    lines: int


def loss_bins(losses: Floats, outcomes: Outcomes) -> list[Bin]:
    """Count the finite losses in bins of equal and round width, at most 24; empty ones are left out."""
    finite = np.isfinite(losses)
    greatest = float(losses[finite].max(initial=0.0))
    width = next((step for step in _STEPS if greatest / step < MOST_BINS), math.ceil(greatest / MOST_BINS) or 1.0)
    places = (losses[finite] / width).astype(np.int64)
    codes = outcomes.codes[finite]
    return [
        Bin(low=place * width, high=(place + 1) * width, outcome=outcome, lines=lines)
        for outcome in Outcome
        for place, lines in enumerate(np.bincount(places[codes == outcome]).tolist())
        if lines
    ]


# Parts of the lines


MOST_PARTS = 10
LEAST_LINES = 10  # of a part that is named by its value
WORDS_OF_A_TEXT = 4.0  # from this mean number of words on, a column is text
Kind = Literal["number", "value", "words"]
_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13)  # characters: where parts begin
_FREQUENCIES = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some lines: what they have in common, how many they are, their mean loss in nats and its 95 % interval.

    The interval is Student's, over lines; None for a single line. Lines with an infinite loss are counted, and left
    out of the mean, which is NaN where no other is left.
    """

    label: str
    lines: int
    mean_loss: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts by a column of the input: its name, and whether it is told apart by numbers, values or its length.

    The length is counted in words.
    """

    column: str
    kind: Kind
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which lines belong together by a column: ``codes`` are places among ``labels``, some of which may be unused."""

    column: str
    kind: Kind
    codes: Codes
    labels: tuple[str, ...]


def parts_of(losses: Floats, codes: Codes, labels: Sequence[str]) -> tuple[Part, ...]:
    """Give the parts that have a line; ``codes`` are the lines' places in ``labels``, below 0 for none."""
    return tuple(_part(label, losses[codes == code]) for code, label in enumerate(labels) if (codes == code).any())


def _part(label: str, losses: Floats) -> Part:
    finite = losses[np.isfinite(losses)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    half = half_width(finite)
    low, high = (None, None) if half is None else (max(0.0, mean - half), mean + half)
    return Part(label=label, lines=len(losses), mean_loss=mean, low=low, high=high)


def half_width(values: Floats) -> float | None:
    """Give half the width of Student's 95 % interval of a mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    return t_quantile(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))


def by_length(losses: Floats, words: Iterable[str]) -> tuple[Part, ...]:
    """Give the parts by the number of characters of the expected words."""
    return _by_bounds(losses, np.array([len(word) for word in words], np.int64), _LENGTHS, str)


def by_frequency(losses: Floats, words: Iterable[str], counts: Mapping[str, int]) -> tuple[Part, ...]:
    """Give the parts by how often the expected words were seen, by their counts."""
    seen = np.array([counts.get(word, 0) for word in words], np.int64)
    return _by_bounds(losses, seen, _FREQUENCIES, lambda number: ("never", "once")[number] if number < 2 else "")


def _by_bounds(losses: Floats, values: Codes, bounds: Sequence[int], name: Callable[[int], str]) -> tuple[Part, ...]:
    """Give the parts between bounds; one that holds a single number has its name."""
    labels = []
    for low, above in zip(bounds, [*bounds[1:], None], strict=True):
        if above is None:
            labels.append(f"{low:,} or more")
        else:
            labels.append((name(low) if above == low + 1 else "") or f"{low:,}–{above - 1:,}")
    return parts_of(losses, np.searchsorted(np.array(bounds), values, side="right") - 1, labels)


def by_column(losses: Floats, column: str, texts: Sequence[str]) -> Parts | None:
    """Give the parts by a column: by ranges of its numbers, by its values or, where it is text, by its length.

    None where that parts nothing: all lines have one value, or hardly two lines have the same.
    """
    found = grouping_of(column, texts)
    if found is None:
        return None
    return Parts(column=column, kind=found.kind, parts=parts_of(losses, found.codes, found.labels))


def grouping_of(column: str, texts: Sequence[str]) -> Grouping | None:
    """Tell which lines belong together by a column; None where that parts nothing."""
    counts = Counter(texts)
    if all(map(FIELD_NUMBER.fullmatch, counts)):
        return _grouping(column, "number", *quantiles_of(np.array(list(map(float, texts)))))
    words = [text.count(" ") + 1 if text else 0 for text in texts]
    if len(counts) > MOST_PARTS and sum(words) / len(words) >= WORDS_OF_A_TEXT:
        return _grouping(column, "words", *quantiles_of(np.array(words, np.float64)))
    common = [value for value, lines in counts.most_common(MOST_PARTS) if lines >= LEAST_LINES]
    labels = [*sorted(common), "others"]
    places = {value: place for place, value in enumerate(labels[:-1])}
    codes = np.array([places.get(text, len(common)) for text in texts], np.int64)
    return _grouping(column, "value", codes, labels) if common else None


def _grouping(column: str, kind: Kind, codes: Codes, labels: Sequence[str]) -> Grouping | None:
    several = len(np.unique(codes)) > 1
    return Grouping(column=column, kind=kind, codes=codes, labels=tuple(labels)) if several else None


def by_quantiles(losses: Floats, values: Floats, most: int = MOST_PARTS) -> tuple[Part, ...]:
    """Give a part for each value or, where there are too many, parts of about as many lines each by rising values.

    >>> [part.label for part in by_quantiles(np.ones(4), np.array([1.0, 2.0, 2.0, 3.5]), most=2)]
    ['1–2', '3.5']
    """
    return parts_of(losses, *quantiles_of(values, most))


def quantiles_of(values: Floats, most: int = MOST_PARTS) -> tuple[Codes, list[str]]:
    """Give the part that each value is in, and the labels of these parts."""
    bounds = np.unique(values)
    if len(bounds) > most:
        bounds = np.unique(np.sort(values)[[-(-len(values) * part // most) - 1 for part in range(1, most + 1)]])
    codes = np.searchsorted(bounds, values, side="left")
    return codes, [_range(values[codes == code]) for code in range(len(bounds))]


def _range(values: Floats) -> str:
    low, high = f"{values.min():.6g}", f"{values.max():.6g}"
    return low if low == high else f"{low}–{high}"


# Example lines


WORST, BEST = 300, 100
GUESSES = 5
CONTEXT = 72  # characters on each side of a gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A line: its number in the file, its loss in nats, the texts around its gap, the answer, what was guessed.

    ``about`` are the other columns of the input. ``listed`` is the mass of the expected word, None where it was not
    in the list; ``guesses`` are the words with the greatest masses, and these; ``rest`` is the mass of all others.
    """

    number: int
    loss: float
    about: tuple[str, ...]
    before: str
    expected: str
    after: str
    outcome: Outcome
    listed: float | None
    guesses: tuple[tuple[str, float], ...]
    rest: float


def worst_and_best(losses: Floats, confidences: Floats, worst: int = WORST, best: int = BEST) -> Codes:
    """Give the places of the lines to show, by falling loss; of equal ones the more confident guess is first.

    >>> worst_and_best(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 0.1, 0.9, 0.5]), worst=2, best=1).tolist()
    [3, 2, 0]
    """
    order = np.lexsort((-confidences, -losses))
    return order if len(order) <= worst + best else np.concatenate([order[:worst], order[len(order) - best :]])


def examples_of(evaluation: ScoredOutput, losses: Floats, outcomes: Outcomes) -> list[Example]:
    """Give the 300 lines with the greatest losses and the 100 with the least, by falling loss."""
    chosen = worst_and_best(losses, outcomes.confidences)
    keep = np.zeros(len(losses), np.bool_)
    keep[chosen] = True
    items = dict(zip(np.flatnonzero(keep).tolist(), compress(prepared_items(evaluation), keep), strict=True))
    numbers = evaluation.line_numbers or range(1, len(losses) + 1)
    return [_example(numbers[place], float(losses[place]), items[place]) for place in chosen.tolist()]


def _example(number: int, loss: float, item: ScoredItem) -> Example:
    distribution = distribution_at(item.output)
    guess = guess_of(distribution, item.expected)
    about, before, after = in_context(item.input)
    masses = {} if distribution is None else distribution.masses
    guesses = sorted(masses.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:GUESSES]
    return Example(
        number=number,
        loss=loss,
        about=about,
        before=before,
        expected=item.expected,
        after=after,
        outcome=guess.outcome(item.expected),
        listed=guess.listed,
        guesses=tuple(guesses),
        rest=guess.rest,
    )


def in_context(line: str) -> tuple[tuple[str, ...], str, str]:
    r"""Part an input line: the columns before the last two, the end of the last but one, the beginning of the last.

    A line of one column stands before the gap. The two characters ``\n``, which stand for a line end, become ⏎.

    >>> in_context("1901\tin\\nthe\tof may")
    (('1901',), 'in ⏎ the', 'of may')
    """
    *about, before, after = line.split("\t") if "\t" in line else (line, "")
    before, after = (text.replace("\\n", " ⏎ ") for text in (before, after))
    head = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    tail = after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"
    return tuple(about), head, tail
