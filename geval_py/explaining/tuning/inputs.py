"""What tuning and mixing are given, checked: enough lines, and which of them are held out together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.dependence import find_dependence
from geval_py.explaining.documents import Documents, documents_of
from geval_py.explaining.tuning.folds import Array, Folds, Integers
from geval_py.explaining.tuning.guesses import hashed_bits
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.score import Score
from geval_py.text import visible

FEW_LINES = 100

# A column that tells the documents, or a number a line; None: those that matter, if any; False: none.
HeldTogether: TypeAlias = "str | int | Sequence[int] | Integers | Literal[False] | None"


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


def folds_of(evaluations: Sequence[Evaluation], together: HeldTogether, seed: int) -> tuple[Folds, list[str]]:
    """Deal the lines of evaluations of one set into folds, those of a document together; gives them and notes.

    Raises UsageError where all lines are of one document, for another number of documents than of lines, and what
    :func:`documents_of` raises for a column.
    """
    documents, notes = _documents(evaluations, together, seed)
    lines = evaluations[0].line_count
    return Folds.of(np.arange(lines) if documents is None else documents.of_line, seed), notes


def _documents(
    evaluations: Sequence[Evaluation], together: HeldTogether, seed: int
) -> tuple[Documents | None, list[str]]:
    if together is False:
        return None, []
    if together is None:
        found = find_dependence(evaluations, seed=seed)
        if found is None:
            return None, []
        return found.documents, [f"lines with the same {visible(found.column)} are alike: they are held out together"]
    if isinstance(together, (str, int)):
        told = documents_of(evaluations[0], together)
        return told.several(), [told.nothing_gained] if told.are_lines else []
    return _numbered(together, evaluations[0].line_count), []


def _numbered(numbers: Sequence[int] | Integers, lines: int) -> Documents:
    if len(numbers) != lines:
        raise UsageError(message=f"{len(numbers)} documents, but {lines} lines: give a number a line")
    told = Documents.of("", numbers)
    if told.count < 2:
        raise UsageError(message="all lines are of one document: none can be held out")
    return told


def score_of(score: Score, losses: Array) -> float:
    """Give the value that a metric made of losses has for some lines."""
    mean = np.inf if np.isinf(losses).any() else float(losses.mean())
    return float(score.metric.measure.formula([mean], 1))


def described(evaluation: Evaluation, folds: Folds, seed: int) -> dict[str, Any]:
    """Give what is said of the lines in the same fields of both: whose they are, how scored, and how held out."""
    first = evaluation.scores[0]
    return {
        "test": evaluation.split.name,
        "metric": first.name,
        "unit": first.unit,
        "direction": first.direction,
        "lines": evaluation.line_count,
        "folds": folds.count,
        "documents": folds.documents,
        "seed": seed,
        "header": evaluation.split.output_header,
    }
