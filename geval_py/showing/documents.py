"""What the JSON documents of lines and features hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from geval_py.reading.features import Fields

if TYPE_CHECKING:
    from geval_py.explaining.features.table import WorstFeatures
    from geval_py.explaining.lines import Line, LineDifference
    from geval_py.reading.items import ScoredItem
    from geval_py.scoring.evaluation import Evaluation

Document = dict[str, Any]


def explained_head(evaluations: Sequence[Evaluation]) -> Document:
    """Say what is explained: the first metric of an output, or of it against another."""
    first = evaluations[0]
    score = first.scores[0]
    return {
        "test": first.split.name,
        "metric": score.name,
        "unit": score.unit,
        "direction": score.direction,
        "outputs": [{"file": of.output.name, "signature": of.signature and str(of.signature)} for of in evaluations],
    }


def line_documents(lines: Iterable[Line], fields: Fields) -> Iterator[Document]:
    """Give a document a line: its number, score, loss and texts, those of the input by the columns' names."""
    for line in lines:
        yield {
            "line": line.number,
            "score": line.score,
            "loss": line.loss,
            "input": _input(line.item, fields),
            "expected": line.item.expected,
            "output": line.item.output,
        }


def difference_documents(differences: Iterable[LineDifference], fields: Fields) -> Iterator[Document]:
    """Give a document a line in two outputs, with the score, the loss and the output of both."""
    for difference, line, other in differences:
        yield {
            "line": line.number,
            "difference": difference,
            "score": line.score,
            "loss": line.loss,
            "other_score": other.score,
            "other_loss": other.loss,
            "input": _input(line.item, fields),
            "expected": line.item.expected,
            "output": line.item.output,
            "other_output": other.item.output,
        }


def feature_documents(features: WorstFeatures) -> Iterator[Document]:
    """Give a document a feature, with the keys of :meth:`WorstFeatures.to_frame`; None for what is not known."""
    columns = features.columns
    own = [columns[name].tolist() for name in columns if name not in features.more]
    more = ([None if math.isnan(value) else value for value in column.tolist()] for column in features.more.values())
    for name, *row in zip(features.names, *own, *more, strict=True):
        yield {"feature": name} | dict(zip(columns, row, strict=True))


def _input(item: ScoredItem, fields: Fields) -> dict[str, str]:
    return {field.column_name: text for field, text in fields.split(item) if field.is_column}
