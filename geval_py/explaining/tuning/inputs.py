"""What tuning and mixing are given, checked: enough lines, and which of them are of one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.tuning.folds import Array, Folds, Integers, document_numbers, numbered
from geval_py.explaining.tuning.guesses import hashed_bits
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.score import Score

FEW_LINES = 100

DocumentNumbers: TypeAlias = "str | Sequence[int] | Integers | None"  # a column that tells them, or a number a line


def notes_on_lines(evaluation: Evaluation, force: bool) -> list[str]:
    """Warn where there are few lines.

    Raises UsageError where they are too few, unless it is forced, and for a metric that is not hashed.
    """
    hashed_bits(evaluation)
    lines = evaluation.line_count
    if lines >= FEW_LINES:
        return []
    few = f"{lines} lines are few to tune on: what is found may be luck"
    if force:
        return [few]
    raise UsageError(message=f"{few}; take {FEW_LINES} lines or more, or force it")


def documents_of_lines(evaluation: Evaluation, documents: DocumentNumbers) -> tuple[Integers, int | None]:
    """Give the number of each line's document, and how many there are; None where each line is its own."""
    if documents is None:
        return np.arange(evaluation.line_count), None
    if isinstance(documents, str):
        groups = document_numbers(evaluation, documents)
    elif len(documents) == evaluation.line_count:
        groups = numbered(list(documents))
    else:
        both = f"{len(documents)} documents, but {evaluation.line_count} lines"
        raise UsageError(message=f"{both}: give a number a line")
    return groups, int(groups.max()) + 1


def score_of(score: Score, losses: Array) -> float:
    """Give the value that a metric made of losses has for some lines."""
    mean = np.inf if np.isinf(losses).any() else float(losses.mean())
    return float(score.metric.measure.formula([mean], 1))


def described(evaluation: Evaluation, folds: Folds, documents: int | None, seed: int) -> dict[str, Any]:
    """Give what is said of the lines in the same fields of both: whose they are, how scored, and how held out."""
    first = evaluation.scores[0]
    return {
        "test": evaluation.split.name,
        "metric": first.name,
        "unit": first.unit,
        "direction": first.direction,
        "lines": evaluation.line_count,
        "folds": folds.count,
        "documents": documents,
        "seed": seed,
        "header": evaluation.split.output_header,
    }
