"""Scores of lists of predictions and of arrays, which take the place of files.

Whatever explains a score can read their lines again (:func:`geval_py.reading.sources.memory_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.reading.config import Task
from geval_py.reading.lines import Text, Texts
from geval_py.reading.outputs import Output
from geval_py.reading.sources import memory_file
from geval_py.reading.splits import Split
from geval_py.scoring import evaluate
from geval_py.scoring.encoding import encoded_texts, reference_texts
from geval_py.scoring.scores import ScoredOutput
from geval_py.scoring.writing import is_predictions, prediction_lines

if TYPE_CHECKING:
    import pandas as pd

    Inputs: TypeAlias = Iterable[str | Mapping[str, object]] | pd.DataFrame


def score_lists(
    predictions: Any,
    references: Any,
    metrics: Sequence[str],
    *,
    inputs: Inputs | None = None,
    tokenizer: str | None = None,
    vocabulary: Iterable[str] = (),
    name: str | None = None,
) -> ScoredOutput:
    """Score predictions against as many references; see :class:`geval_py.Metric`."""
    if are_arrays := is_predictions(predictions):
        metrics = metrics or [predictions.metric]
        references = predictions.vocabulary.words_of(references, predictions.shape)
    schemes = evaluate.select_schemes(Task(metrics=tuple(metrics), tokenizer=tokenizer))
    are_words = any(metric.is_of_words for _, metric in schemes)
    split = split_from_lists(predictions, references, inputs, name, are_words=are_words)
    output = split.outputs[0]
    if not are_arrays or not all(metric.bits and not scheme.flags for scheme, metric in schemes):
        return evaluate.evaluate_output(
            split, output, schemes, frozenset(vocabulary), texts="files", sign=not are_arrays
        )
    from geval_py.scoring.arrays import numbers_of_lines  # arrays need not be written as text

    lines = numbers_of_lines(1, len(predictions))
    of_bits = {
        bits: predictions.statistics(references, lines, bits) for _, metric in schemes if (bits := metric.bits)
    }
    scores = (evaluate.score_of(plan, of_bits[plan.metric.bits or 0]) for plan in evaluate.plan_metrics(schemes))
    texts = Texts(*(Text(path, None, keep=False) for path in (output.path, split.expected)))
    return ScoredOutput(
        split=split, output=output, scores=tuple(scores), file_lines=len(predictions),
        input=split.input_text(keep=False), texts=texts,
    )  # fmt: skip


def split_from_lists(
    predictions: Any, references: Any, inputs: Inputs | None, name: str | None, *, are_words: bool
) -> Split:
    """Return a split whose files are in memory; the output has the name, by default "predictions"."""
    lines: Callable[[], Iterable[bytes]] = partial(
        prediction_lines, predictions
    )  # arrays are written if they are read
    if not is_predictions(predictions):
        lines = partial(iter, [b"".join(lines())])
    header: tuple[str, ...] = ()
    files = {"expected": encoded_texts("references", reference_texts(references, are_words=are_words))}
    if inputs is not None:
        rows: list[Any] = inputs.to_dict("records") if hasattr(inputs, "to_dict") else list(inputs)
        names = dict.fromkeys(chain.from_iterable(row for row in rows if isinstance(row, Mapping)))
        header = tuple(map(_cell, names))
        if names:
            cells = [[_cell(row.get(name, "")) for name in names] for row in rows]
            rows = ["\t".join(row) for row in (header, *cells)]
        files["inputs"] = encoded_texts("inputs", rows)
    in_memory = {file: memory_file(file, partial(iter, [text])) for file, text in files.items()}
    name = "predictions" if name is None else name
    return Split(
        name="expected",
        expected=in_memory["expected"],
        outputs=(Output(path=memory_file(name, lines), name=name, parameters={}),),
        input=in_memory.get("inputs"),
        in_header=header,
    )


def _cell(value: object) -> str:
    """Write a value as a cell: TABs and line ends become the characters that stand for them in a challenge."""
    return str(value).replace("\t", "\\t").replace("\r", "").replace("\n", "\\n")
