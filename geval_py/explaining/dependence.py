"""Whether the lines of some documents are so alike that an interval by lines is too narrow.

Any column of the input might tell the documents. Of those that could (two documents at least, and two lines in each
on average), the one is taken by which the variance of the mean loss grows most, and a permutation test tells whether
that is more than chance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import DataError
from geval_py.explaining.bootstrap import design_effect, permutation_p
from geval_py.explaining.documents import Documents
from geval_py.explaining.significance import LEVEL
from geval_py.reading.features import Fields
from geval_py.reading.sources import can_be_reread

if TYPE_CHECKING:
    from geval_py.scoring.scores import ScoredOutput


LEAST_EFFECT = 1.2  # below which an interval is at most a tenth too narrow
LEAST_LINES = 20
LOOKED_AT = 500  # lines, to find the columns that may tell documents
MOST_INPUT_BYTES = 1 << 25  # of a file that is read for this alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """A column of the input whose documents matter.

    ``documents`` are those of all lines. ``effect`` is the design effect: the variance of the mean loss by document
    over that by line; ``p_value`` is of the permutation test that it is 1.
    """

    documents: Documents = field(repr=False)
    effect: float
    p_value: float

    @property
    def column(self) -> str:
        """The name, or the number, of the column that tells the documents."""
        return self.documents.column

    @property
    def widening(self) -> float:
        """How many times as wide as by lines an interval is by documents."""
        return math.sqrt(self.effect)


def find_dependence(evaluations: Sequence[ScoredOutput], *, seed: int) -> Dependence | None:
    """Find the column by whose documents the lines of some evaluation, all of one set, are most alike.

    None where there is none, the effect is below 1.2 or p is not below 0.05, and where this cannot be told at little
    cost: few lines, infinite losses, or no input that is a file of moderate size and as many lines.
    """
    losses = [np.array(of.line_losses) for of in evaluations if _is_told(of)]
    losses = [column for column in losses if np.isfinite(column).all()]
    if not losses:
        return None
    candidates = (
        (design_effect(of_system, documents.of_line), documents, of_system)
        for documents in _possible_documents(evaluations[0])
        for of_system in losses
    )
    effect, documents, of_system = max(candidates, key=lambda found: found[0], default=(0.0, None, losses[0]))
    if documents is None or effect <= LEAST_EFFECT:
        return None
    p_value = permutation_p(of_system, documents.of_line, seed=seed)
    return Dependence(documents=documents, effect=effect, p_value=p_value) if p_value < LEVEL else None


def _is_told(evaluation: ScoredOutput) -> bool:
    """Tell whether all lines of an evaluation, enough of them, have a loss."""
    first = evaluation.scores[0]
    every_line = first.metric.measure.of_losses and first.line_numbers is None
    return every_line and evaluation.line_count >= LEAST_LINES


def _possible_documents(evaluation: ScoredOutput) -> Iterator[Documents]:
    """Give those of each column of the input that has between two values and half as many as there are lines."""
    path, lines = evaluation.split.input, evaluation.file_lines
    if path is None or not can_be_reread(path) or os.path.getsize(path) > MOST_INPUT_BYTES:
        return
    try:
        rows = b"".join(evaluation.input.blocks()).split(b"\n")[:-1]
    except DataError:
        return
    if len(rows) != lines:
        return
    fields = Fields(evaluation.split.in_header)
    indices = _repeating_columns(rows[:LOOKED_AT])
    cells = [row.split(b"\t", max(indices) + 1) for row in rows] if indices else []
    for index in indices:
        column = [row[index] if index < len(row) else b"" for row in cells]
        if 2 <= len(set(column)) <= lines / 2:
            yield Documents.of(fields.column(index).column_name, column)


def _repeating_columns(rows: Sequence[bytes]) -> list[int]:
    """Give the columns of some rows, from 0, in which some value stands twice: no text does, and it takes longest."""
    columns = zip_longest(*(row.split(b"\t") for row in rows), fillvalue=b"")
    return [index for index, column in enumerate(columns) if len(set(column)) < len(rows)]


# Whether a rare line could cost so much that no resampling of the lines that are there foretells it.


ORDINARY = 20.0  # nats: what a word costs that is not listed, at ten bits and with a rest of two millionths
FAR = 10  # standard errors of the mean loss by which one such line would move it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruin:
    """The greatest loss that some line could have had, possibly inf, and the greatest that one had, in nats."""

    bound: float
    seen: float


def find_ruin(evaluation: ScoredOutput) -> Ruin | None:
    """Tell of an output what a line of it could lose, where that would move the mean loss by ten standard errors.

    None elsewhere: for metrics that are not of hashed words, a loss that every miss may have, few lines, and where a
    loss is infinite already.
    """
    statistics = evaluation.scores[0].statistics
    if statistics.bound <= ORDINARY or statistics.lines < LEAST_LINES:
        return None
    import numpy as np

    losses = np.array(statistics.columns[0])
    seen = float(losses.max())
    if math.isinf(seen):
        return None
    moved = FAR * float(losses.std(ddof=1)) * math.sqrt(len(losses))
    return Ruin(bound=statistics.bound, seen=seen) if statistics.bound > seen + moved else None
