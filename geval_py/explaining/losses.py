"""How losses are spread over the lines, and which lines have the greatest.

In this order: the outcomes of lines, such as a right first guess, and their shares of the loss; a histogram; parts of
the lines, by the answers and by columns of the input; example lines; the loss that a rare line could have, but which
no line has had.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice, repeat
from typing import TYPE_CHECKING, Literal

import numpy as np

from geval_py.explaining.significance import LEAST_LINES, LEAST_TESTED, Array, Integers, t_quantile
from geval_py.reading import features, preparation, wordprobs
from geval_py.reading.items import ItemColumns, ScoredItem
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import COLUMNS
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.scoring.scores import ScoredOutput


ITEMS_AT_ONCE = 4096


class Outcome(IntEnum):
    """The outcome of a line, from the best to the worst; a line without a guess has only a rest, or is a vector."""

    RIGHT = 0
    LISTED = 1
    MISSED = 2
    NO_GUESS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The best guess of an output line, and the masses, in [0, 1], of the guess, the expected word and the rest.

    The best guess is the word with the greatest mass; among equals, the greatest in code point order, as for
    Accuracy. ``listed`` is None if the expected word is not listed, and ``word`` is None if no word is.
    """

    word: str | None
    confidence: float
    listed: float | None
    rest: float

    def outcome(self, expected: str) -> Outcome:
        """Classify the line."""
        if self.word is None:
            return Outcome.NO_GUESS
        if self.word == expected:
            return Outcome.RIGHT
        return Outcome.MISSED if self.listed is None else Outcome.LISTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The outcome of each scored line, in order, the confidence of its best guess, and the mass of the expected word.

    Both are in [0, 1]; a word that is not listed has no mass of its own.
    """

    codes: Integers
    confidences: Array
    given: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeShare:
    """The lines of one outcome: how many, their share of all lines and of the finite loss, their mean loss in nats.

    The mean is over lines with a finite loss; NaN if there are none.
    """

    outcome: Outcome
    lines: int
    share_of_lines: float
    share_of_loss: float
    mean_loss: float


def prepared_items(evaluation: ScoredOutput) -> ItemColumns:
    """Return the scored lines, outputs and answers as the metric's flags leave them; raises as read_items."""
    prepare = preparation.preparation_of(evaluation.scores[0].scheme)
    items = evaluation.read_columns()
    if prepare is None:
        return items
    return ItemColumns(items.inputs, list(map(prepare, items.expected)), list(map(prepare, items.outputs)))


def distribution_at(text: str) -> wordprobs.Distribution | None:
    """Parse an output line's distribution over words, None for a vector; raises MalformedLineError."""
    line = wordprobs.parse_line(text)
    return None if line.words is None else line.normalised()


def guess_of(distribution: wordprobs.Distribution | None, expected: str) -> Guess:
    """Return a distribution's best guess and the mass of the expected word."""
    if distribution is None:
        return Guess(word=None, confidence=0.0, listed=None, rest=0.0)
    masses = distribution.masses
    word = max(masses, key=lambda one: (masses[one], one), default=None)
    confidence = 0.0 if word is None else masses[word]
    return Guess(word=word, confidence=confidence, listed=masses.get(expected), rest=distribution.rest)


def outcomes_of(items: Iterable[ScoredItem]) -> Outcomes:
    """Classify lines, prepared as they were scored; raises MalformedLineError."""
    parts = [_outcomes(*part) for part in _blocks(items)]
    codes, confidences, given = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Outcomes(codes=codes, confidences=confidences, given=given)


def _blocks(items: Iterable[ScoredItem]) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield blocks of outputs, with vectors as lines without words, and of expected words; and the first line."""
    items, first = iter(items), 1
    while (some := list(islice(items, ITEMS_AT_ONCE))) or first == 1:
        outputs = "".join(f"{item.output if ':' in item.output else ':1'}\n" for item in some)
        expected = "".join(f"{item.expected}\n" for item in some)
        yield outputs.encode(), expected.encode(), first
        first += max(1, len(some))


def _outcomes(outputs: bytes, expected: bytes, first_line: int) -> tuple[Integers, Array, Array]:
    """Compute the columns of Outcomes, which depend on no bucket."""
    columns, _ = backends.line_profiles(outputs, expected, 1, first_line, 0)
    found = outcomes_in(dict(zip(COLUMNS, map(np.array, columns), strict=True)).__getitem__)
    return found.codes, found.confidences, found.given


def outcomes_in(column: Callable[[str], Array]) -> Outcomes:
    """Take the outcomes from the profiles of lines; ``column`` returns the column of profiles of a name."""
    right, listed, words = (column(name) > 0 for name in ("guess_right", "listed", "words"))
    codes = np.select([~words, right, listed], [Outcome.NO_GUESS, Outcome.RIGHT, Outcome.LISTED], Outcome.MISSED)
    return Outcomes(codes=codes.astype(np.int64), confidences=column("guess_mass"), given=column("word_mass"))


def outcome_shares(losses: Array, outcomes: Outcomes) -> list[OutcomeShare]:
    """Compute the shares of lines and of loss by outcome, in order; ``losses`` are in nats.

    >>> none = np.zeros(2)
    >>> shares = outcome_shares(np.array([1.0, 3.0]), Outcomes(codes=np.array([0, 2]), confidences=none, given=none))
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


# A histogram


MOST_BINS = 24
_STEPS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The number of losses from ``low`` to below ``high``, in nats, on lines with one outcome."""

    low: float
    high: float
    outcome: Outcome
    lines: int


def loss_bins(losses: Array, outcomes: Outcomes) -> list[Bin]:
    """Count the finite losses in at most 24 bins of equal, round width; empty bins are left out."""
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
WORDS_OF_A_TEXT = 4.0  # mean number of words from which a column is text
Kind = Literal["number", "value", "words"]
_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13)  # in characters: the first of each part
_FREQUENCIES = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Lines with something in common: their number, their mean loss in nats and its 95 % interval.

    The interval is Student's, over lines; None for a single line. Lines with an infinite loss are counted, but left
    out of the mean, which is NaN if no other line is left.
    """

    label: str
    lines: int
    mean_loss: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts by a column of the input: by ranges of its numbers, by its values, or by its length in words."""

    column: str
    kind: Kind
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The part of each line by a column: ``codes`` are places in ``labels``, some of which may be unused."""

    column: str
    kind: Kind
    codes: Integers
    labels: tuple[str, ...]


def parts_of(losses: Array, codes: Integers, labels: Sequence[str]) -> tuple[Part, ...]:
    """Compute the parts with at least one line; ``codes`` are the lines' places in ``labels``, below 0 for none."""
    return tuple(_part(label, losses[codes == code]) for code, label in enumerate(labels) if (codes == code).any())


def _part(label: str, losses: Array) -> Part:
    finite = losses[np.isfinite(losses)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    low = high = None
    if len(finite) > 1:
        half = t_quantile(len(finite) - 1) * float(finite.std(ddof=1)) / math.sqrt(len(finite))
        low, high = max(0.0, mean - half), mean + half
    return Part(label=label, lines=len(losses), mean_loss=mean, low=low, high=high)


def by_length(losses: Array, words: Iterable[str]) -> tuple[Part, ...]:
    """Compute the parts by the number of characters of the expected words."""
    return _by_bounds(losses, np.array([len(word) for word in words], np.int64), _LENGTHS, str)


def by_frequency(losses: Array, words: Iterable[str], counts: Mapping[str, int]) -> tuple[Part, ...]:
    """Compute the parts by how often the expected words were seen."""
    seen = np.array([counts.get(word, 0) for word in words], np.int64)
    return _by_bounds(losses, seen, _FREQUENCIES, lambda number: ("never", "once")[number] if number < 2 else "")


def _by_bounds(
    losses: Array, values: Integers, bounds: Sequence[int], name: Callable[[int], str]
) -> tuple[Part, ...]:
    """Compute the parts between bounds; a part of a single number is named by ``name``."""
    labels = []
    for low, above in zip(bounds, [*bounds[1:], None], strict=True):
        if above is None:
            labels.append(f"{low:,} or more")
        else:
            labels.append((name(low) if above == low + 1 else "") or f"{low:,}–{above - 1:,}")
    return parts_of(losses, np.searchsorted(np.array(bounds), values, side="right") - 1, labels)


def by_column(losses: Array, column: str, texts: Sequence[str]) -> Parts | None:
    """Compute the parts by a column: by ranges of its numbers, by its values or, if it is text, by its length.

    None if all lines would be in one part: they have one value, or hardly any two lines have the same.
    """
    found = grouping_of(column, texts)
    if found is None:
        return None
    return Parts(column=column, kind=found.kind, parts=parts_of(losses, found.codes, found.labels))


def grouping_of(column: str, texts: Sequence[str]) -> Grouping | None:
    """Assign lines to parts by a column; None if there would be one part only."""
    if all(map(features.FIELD_NUMBER.fullmatch, texts)):
        return _grouping(column, "number", *quantiles_of(np.array(list(map(float, texts)))))
    words = np.array(list(map(str.count, texts, repeat(" ")))) + np.array(list(map(bool, texts)))
    if words.mean() >= WORDS_OF_A_TEXT and _are_many(texts):
        return _grouping(column, "words", *quantiles_of(words.astype(np.float64)))
    counts = Counter(texts)
    common = [value for value, lines in counts.most_common(MOST_PARTS) if lines >= LEAST_LINES]
    labels = [*sorted(common), "others"]
    if not common:
        return None
    places = {value: place for place, value in enumerate(labels[:-1])}
    codes = np.array([places.get(text, len(common)) for text in texts], np.int64)
    return _grouping(column, "value", codes, labels)


def _are_many(texts: Sequence[str]) -> bool:
    """Whether a column has more values than parts."""
    return len(set(texts[:1000])) > MOST_PARTS or len(set(texts)) > MOST_PARTS


def _grouping(column: str, kind: Kind, codes: Integers, labels: Sequence[str]) -> Grouping | None:
    several = len(np.unique(codes)) > 1
    return Grouping(column=column, kind=kind, codes=codes, labels=tuple(labels)) if several else None


def quantiles_of(values: Array, most: int = MOST_PARTS) -> tuple[Integers, list[str]]:
    """Assign values to parts of about as many lines each, by rising values; return their parts and the labels."""
    ordered = np.sort(values)
    bounds = _distinct(ordered)
    if len(bounds) > most:
        bounds = _distinct(ordered[[-(-len(values) * part // most) - 1 for part in range(1, most + 1)]])
    codes = np.searchsorted(bounds, values, side="left")
    return codes, [_range(values[codes == code]) for code in range(len(bounds))]


def _distinct(ordered: Array) -> Array:
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def _range(values: Array) -> str:
    low, high = f"{values.min():.6g}", f"{values.max():.6g}"
    return low if low == high else f"{low}–{high}"


# Example lines


WORST, BEST = 300, 100
GUESSES = 5
CONTEXT = 72  # characters on each side of a gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A line: its number in the file, its loss in nats, the texts around its gap, the answer, the guesses.

    ``about`` are the other columns of the input. ``listed`` is the mass of the expected word, None if it is not
    listed; ``guesses`` are the words with the greatest masses; ``rest`` is the mass of all unlisted words.
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


def worst_and_best(losses: Array, outcomes: Outcomes, worst: int = WORST, best: int = BEST) -> Integers:
    """Choose the lines to show, by falling loss.

    Many lines may have the same loss, such as all that miss the word's bucket. Of these, the line comes first that
    gave the word less, then the one with the more confident guess.

    >>> sure = np.array([0.5, 0.1, 0.9, 0.5])
    >>> outcomes = Outcomes(codes=np.zeros(4, np.int64), confidences=sure, given=np.array([0.5, 0.1, 0.1, 0.2]))
    >>> worst_and_best(np.array([1.0, 2.0, 2.0, 2.0]), outcomes, worst=2, best=1).tolist()
    [2, 1, 0]
    """
    return both_ends(np.lexsort((-outcomes.confidences, outcomes.given, -losses)), worst, best)


def both_ends(order: Integers, worst: int = WORST, best: int = BEST) -> Integers:
    """Keep the first and the last of lines that are in order, the worst first; all of them if they are few."""
    return order if len(order) <= worst + best else np.concatenate([order[:worst], order[len(order) - best :]])


def examples_of(items: ItemColumns, numbers: Sequence[int], losses: Array, outcomes: Outcomes) -> list[Example]:
    """Return the 300 lines with the greatest losses and the 100 with the least, by falling loss.

    ``items`` are prepared, and ``numbers`` are those of their lines.
    """
    chosen = worst_and_best(losses, outcomes).tolist()
    return [_example(numbers[place], float(losses[place]), items[place]) for place in chosen]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruin:
    """The greatest loss that a line could have had, possibly inf, and the greatest loss of any line, in nats."""

    bound: float
    seen: float

    def note(self, path: str) -> str:
        """Write a note on such a line of the output with a path."""
        most = f"up to {self.bound:.0f} nats" if math.isfinite(self.bound) else "everything"
        return (
            f"a line of {named(path)} could lose {most}, and none lost more than {self.seen:.1f}"
            "\n  one such line would move the score far beyond its interval: leave more to the rest"
        )


def find_ruin(evaluation: ScoredOutput) -> Ruin | None:
    """Compute how much a line could lose, if such a line would move the mean loss by ten standard errors.

    None otherwise, and for metrics not of hashed words, a bound that any miss may reach, few lines, and infinite
    losses.
    """
    statistics = evaluation.scores[0].statistics
    if statistics.bound <= ORDINARY or statistics.lines < LEAST_TESTED:
        return None
    losses = np.array(statistics.columns[0])
    seen = float(losses.max())
    if math.isinf(seen):
        return None
    moved = FAR * float(losses.std(ddof=1)) * math.sqrt(len(losses))
    return Ruin(bound=statistics.bound, seen=seen) if statistics.bound > seen + moved else None
