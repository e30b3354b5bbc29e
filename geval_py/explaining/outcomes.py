"""What became of each line: whether its word was the first guess, another one of the list, or in the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

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
