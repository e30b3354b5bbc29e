"""Documents: lines that belong together, are alike, and tell less than as many lines of different documents.

A document is the lines on which a column of the input is the same, such as the lines of one file. With N lines in G
documents g, their losses L and the mean loss m, the variance of m is estimated by

    v = G / (G - 1) * sum over g of (sum over the lines of g of (L - m))^2 / N^2,

and (mean - m) / sqrt(v) has about Student's distribution with G - 1 degrees of freedom (Liang and Zeger,
"Longitudinal data analysis using generalized linear models", 1986; Cameron and Miller, "A practitioner's guide to
cluster-robust inference", 2015). If each line is a document, v is the usual variance of a mean.

In this order: the documents of an evaluation's lines; the variance of the mean loss by documents; the search for a
column of the input by whose documents lines are so alike that an interval by lines is too narrow.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import DataError, UsageError
from geval_py.explaining.significance import LEAST_TESTED, LEVEL, Array, Integers
from geval_py.reading import features, sources
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.scoring.scores import MetricScore, ScoredOutput


PERMUTATIONS = 39  # the fewest with which p can be below 0.05
LEAST_EFFECT = 1.2  # below which an interval is at most a tenth too narrow
LOOKED_AT = 500  # lines, to find the columns that may name documents
MOST_INPUT_BYTES = 1 << 25  # of a file that is read only to find such a column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Documents:
    """The documents of the scored lines.

    ``column`` is the name or the number of the input's column; ``of_line`` has the document of each scored line,
    numbered from 0 in order of appearance; ``count`` is the number of documents.
    """

    column: str
    of_line: Integers
    count: int

    @classmethod
    def of(cls, column: str, values: Iterable[Hashable]) -> Documents:
        """Make documents from the values of a column, one a line."""
        numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
        of_line = np.fromiter(map(numbers.__getitem__, values), np.int64)
        return cls(column=column, of_line=of_line, count=len(numbers))

    @property
    def are_lines(self) -> bool:
        """Whether each line is a document of its own, which is the same as no documents."""
        return self.count == len(self.of_line)

    @property
    def nothing_gained(self) -> str:
        """The note for documents that are single lines."""
        return f"each line is a document of its own by the column {visible(self.column)}: the same as no documents"

    def several(self) -> Documents | None:
        """Return the documents, or None if each line is one; raises UsageError if all lines are one document."""
        if self.are_lines:
            return None
        if self.count == 1:
            column, lines = visible(self.column), len(self.of_line)
            raise UsageError(
                message=f"all {lines} lines are of one document, since the column {column} is the same on all of them"
                "\n  an interval by documents needs two or more"
            )
        return self

    def of_score(self, score: MetricScore) -> Documents:
        """Keep the lines that a metric scored, of all lines of the file."""
        return self if score.line_numbers is None else self.only(np.array(score.line_numbers) - 1)

    def only(self, places: Sequence[int] | Integers) -> Documents:
        """Keep the lines at some places, counted from 0, in this order."""
        values = self.of_line[np.asarray(places, np.int64)]
        numbers, first, of_line = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(numbers), np.int64)
        rank[np.argsort(first)] = np.arange(len(numbers))
        return Documents(column=self.column, of_line=rank[of_line], count=len(numbers))


def documents_of(evaluation: ScoredOutput, column: str | int) -> Documents:
    """Find the documents of the lines that the first metric scored; see :func:`documents_in`."""
    return documents_in(evaluation, column).of_score(evaluation.scores[0])


def documents_in(evaluation: ScoredOutput, column: str | int) -> Documents:
    """Find the documents of all lines of the output's file, scored or not.

    ``column`` is the name of a column of the input or its number, from 1. A line without the column counts as a line
    with an empty one.

    Raises UsageError if there is no input file or no such column, and LineCountError for an input with another
    number of lines.
    """
    if evaluation.split.input is None:
        raise UsageError(message="documents are given by a column of the input, and there is no input file")
    header = evaluation.split.in_header
    try:
        field = features.Fields(header).find(str(column))
    except KeyError:
        raise _no_column(str(column), header) from None
    evaluation.input.check_lines(evaluation.file_lines)
    cells = _Cells(field)
    documents = Documents.of(field.column_name, map(cells.of_line, evaluation.input.lines()))
    if not cells.found:
        raise _no_column(str(column), header)
    return documents


class _Cells:
    """A column of the lines of an input; ``found`` is whether some line has it."""

    def __init__(self, field: features.Field) -> None:
        self.column = field.column
        self.found = False

    def of_line(self, line: str) -> str:
        cells = line.split("\t", self.column + 1)
        if len(cells) <= self.column:
            return ""
        self.found = True
        return cells[self.column]


def _no_column(name: str, header: Sequence[str]) -> UsageError:
    return UsageError(message=f"Unknown column `{visible(name)}'\n  {features.columns_there_are(name, header)}")


# The spread of the mean loss by documents


def cluster_variance(losses: Array, of_line: Integers) -> float:
    """Estimate the variance of the mean loss; ``of_line`` numbers the documents (at least two) from 0."""
    sums = np.bincount(of_line, losses - losses.mean())
    return float(len(sums) / (len(sums) - 1) * (sums**2).sum() / len(losses) ** 2)


def design_effect(losses: Array, of_line: Integers) -> float:
    """Divide the variance by documents by the variance by lines; 1 if documents, or losses, do not differ."""
    by_line = float(losses.var(ddof=1)) / len(losses)
    return cluster_variance(losses, of_line) / by_line if by_line > 0 else 1.0


def permutation_p(losses: Array, of_line: Integers, *, seed: int) -> float:
    """Test whether losses vary more by documents than if lines were dealt out to documents at random.

    The p-value counts the true documents as one permutation. No more are drawn once p cannot be below 0.05.
    """
    rng = np.random.default_rng(seed)
    centred = losses - losses.mean()
    dealt = of_line.copy()

    def spread(numbers: Integers) -> float:
        sums = np.bincount(numbers, centred)
        return float(sums @ sums)

    observed = spread(of_line)
    extreme = 1
    for _ in range(PERMUTATIONS):
        rng.shuffle(dealt)
        extreme += spread(dealt) >= observed
        if extreme >= LEVEL * (PERMUTATIONS + 1):
            break
    return extreme / (PERMUTATIONS + 1)


# Documents that an interval should know about


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """A column of the input whose documents matter.

    ``documents`` are of all lines. ``effect`` is the design effect: the variance of the mean loss by documents
    divided by the variance by lines; ``p_value`` is of the permutation test.
    """

    documents: Documents = field(repr=False)
    effect: float
    p_value: float

    @property
    def column(self) -> str:
        """The name, or the number, of the column."""
        return self.documents.column

    @property
    def widening(self) -> float:
        """How many times wider an interval by documents is than an interval by lines."""
        return math.sqrt(self.effect)


def find_dependence(evaluations: Sequence[ScoredOutput], *, seed: int) -> Dependence | None:
    """Find the column by whose documents the lines of some evaluation are most alike; all are of one test set.

    Of the columns that may name documents (at least two documents, with two lines each on average), the one with the
    greatest design effect is tested by permutations. None if there is no such column, the effect is below 1.2 or p
    is not below 0.05, and if finding out would be costly or impossible: few lines, infinite losses, or no input file
    of moderate size with as many lines.
    """
    losses = [np.array(of.line_losses) for of in evaluations if _has_all_losses(of)]
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


def _has_all_losses(evaluation: ScoredOutput) -> bool:
    first = evaluation.scores[0]
    every_line = first.metric.measure.of_losses and first.line_numbers is None
    return every_line and evaluation.line_count >= LEAST_TESTED


def _possible_documents(evaluation: ScoredOutput) -> Iterator[Documents]:
    """Yield the documents by each column of the input with at least two values, and at most half as many as lines."""
    path, lines = evaluation.split.input, evaluation.file_lines
    if path is None or not sources.can_be_reread(path) or os.path.getsize(path) > MOST_INPUT_BYTES:
        return
    try:
        rows = b"".join(evaluation.input.blocks()).split(b"\n")[:-1]
    except DataError:
        return
    if len(rows) != lines:
        return
    # A column of texts, which take longest, repeats no value even in the first lines.
    first = zip_longest(*(row.split(b"\t") for row in rows[:LOOKED_AT]), fillvalue=b"")
    indices = [index for index, column in enumerate(first) if len(set(column)) < min(lines, LOOKED_AT)]
    cells = [row.split(b"\t", max(indices) + 1) for row in rows] if indices else []
    fields = features.Fields(evaluation.split.in_header)
    for index in indices:
        column = [row[index] if index < len(row) else b"" for row in cells]
        if 2 <= len(set(column)) <= lines / 2:
            yield Documents.of(fields.column(index).column_name, column)
