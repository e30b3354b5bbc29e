"""Scores of lists of predictions and of arrays, whose lines take the place of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.reading.config import Task
from geval_py.reading.files import File
from geval_py.reading.outputs import Output
from geval_py.reading.splits import Split
from geval_py.scoring import evaluate
from geval_py.scoring.encoding import encoded_texts, reference_texts
from geval_py.scoring.scores import Evaluation, check_input_length
from geval_py.scoring.writing import is_predictions, prediction_lines

if TYPE_CHECKING:
    import pandas as pd

    Inputs: TypeAlias = Iterable[str | Mapping[str, object]] | pd.DataFrame


def score_lists(
    task: Task, predictions: Any, references: Any, inputs: Inputs | None, vocabulary: frozenset[str], name: str
) -> Evaluation:
    """Score predictions against as many references; see :func:`geval_py.score`."""
    are_arrays = is_predictions(predictions)
    if are_arrays:
        references = predictions.vocabulary.words_of(references, predictions.shape)
    schemes = evaluate.select_schemes(task)
    are_words = any(metric.is_of_words for _, metric in schemes)
    split = split_from_lists(predictions, references, inputs, name, are_words=are_words)
    if are_arrays and all(metric.bits and not scheme.flags for scheme, metric in schemes):
        from geval_py.scoring.arrays import numbers_of_lines

        (output,), line_numbers = split.outputs, numbers_of_lines(1, len(predictions))
        statistics_of = cache(partial(predictions.statistics, references, line_numbers))
        plans = evaluate.plan_metrics(schemes)
        scores = [evaluate.score_of(plan, statistics_of(plan.metric.bits), output) for plan in plans]
        evaluation = Evaluation(split, output, scores, len(predictions))
        evaluation.notes = evaluate.notes_of(evaluation, task)
    else:
        (evaluation,) = evaluate.evaluate_split(task, split, schemes, keep=True, vocabulary=vocabulary)
    if evaluation.has_scores:
        check_input_length(split, evaluation.file_lines)
    return evaluation


def split_from_lists(
    predictions: Any, references: Any, inputs: Inputs | None, name: str, *, are_words: bool
) -> Split:
    """Return a split whose files are in memory; the output has the name."""
    if is_predictions(predictions):
        output = File(name, lambda _: iter(prediction_lines(predictions)))
    else:
        output = File(name, data=b"".join(prediction_lines(predictions)))
    expected = encoded_texts("references", reference_texts(references, are_words=are_words))
    input_file, header = None, tuple[str, ...]()
    if inputs is not None:
        rows: list[Any] = inputs.to_dict("records") if hasattr(inputs, "to_dict") else list(inputs)
        names = dict.fromkeys(chain.from_iterable(row for row in rows if isinstance(row, Mapping)))
        header = tuple(map(_cell, names))
        if names:
            cells = [[_cell(row.get(name, "")) for name in names] for row in rows]
            rows = ["\t".join(row) for row in (header, *cells)]
        input_file = File("inputs", data=encoded_texts("inputs", rows))
    return Split(
        name="expected",
        expected=File("expected", data=expected),
        outputs=(Output(output, name, parameters={}),),
        input=input_file,
        in_header=header,
    )


def _cell(value: object) -> str:
    """Write a value as a cell: TABs and line ends become the characters that stand for them in a challenge."""
    return str(value).replace("\t", "\\t").replace("\r", "").replace("\n", "\\n")
