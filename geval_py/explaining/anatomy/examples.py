"""The lines to look at: the worst and the best, each with its gap in its context and what was guessed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.anatomy.outcomes import (
    Codes,
    Floats,
    Outcome,
    Outcomes,
    distribution_at,
    guess_of,
    prepared_items,
)

if TYPE_CHECKING:
    from geval_py.reading.items import ScoredItem
    from geval_py.scoring.evaluation import Evaluation

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


def examples_of(evaluation: Evaluation, losses: Floats, outcomes: Outcomes) -> list[Example]:
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
