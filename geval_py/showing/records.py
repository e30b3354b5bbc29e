"""Tables for programs, as ``--format csv`` writes them: numbers with all their digits, the input's columns apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from geval_py.reading.inputs import column_names
from geval_py.scoring.failure import Failure, each_score
from geval_py.showing.documents import feature_documents
from geval_py.showing.tables import Column, Table

if TYPE_CHECKING:
    from geval_py.errors import GevalError
    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.features.table import WorstFeatures
    from geval_py.explaining.lines import Line, LineDifference
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.scoring.evaluation import Evaluation
    from geval_py.scoring.score import Score


_FIGURES = ("line", "difference", "score", "loss", "other_score", "other_loss")
_TEXTS = ("expected", "output", "other_output")
OWN_COLUMNS = {*_FIGURES, *_TEXTS}  # what no column of the input is called


def scores_table(
    results: Sequence[Evaluation | Failure], names: Sequence[str], interval: Callable[[Score], Interval] | None = None
) -> Table:
    """Make a table with a row an output: its file, the parameters in its name, its scores; or the error.

    ``names`` are those of the metrics; with ``interval``, which gives a score's, each has its two ends too.
    """
    keys = sorted({key for result in results for key in result.output.parameters})
    ends = ("", " low", " high") if interval else ("",)
    scores = [f"{name}{end}" for name in names for end in ends]
    head = ["file", *keys, *scores, "lines", "error", "signature"]
    return _table(head, [_score_row(result, keys, len(names), interval) for result in results])


def _score_row(
    result: Evaluation | Failure, keys: Sequence[str], metrics: int, interval: Callable[[Score], Interval] | None
) -> list[object]:
    of_output = [result.output.name, *(result.output.parameters.get(key) for key in keys)]
    values = chain.from_iterable(_values(score, interval) for score in each_score(result, metrics))
    errors = "; ".join(map(_in_a_line, result.errors)) if isinstance(result, Failure) else None
    scored = result.evaluation if isinstance(result, Failure) else result
    if scored is None:
        return [*of_output, *values, None, errors, None]
    return [*of_output, *values, scored.line_count, errors, str(scored.signature)]


def _values(score: Score | None, interval: Callable[[Score], Interval] | None) -> Iterator[float | None]:
    yield None if score is None else score.value
    if interval is not None:
        found = None if score is None else interval(score)
        yield from (None, None) if found is None else (found.low, found.high)


def _in_a_line(error: GevalError) -> str:
    """Write an error without the picture of its line."""
    return " ".join(line.strip() for line in str(error).split("\n")[:2])


def lines_table(lines: Iterable[Line], evaluation: Evaluation) -> Table:
    """Make a table with a row a line of an evaluation."""
    columns = _input_columns(evaluation)
    rows = ([line.number, line.score, line.loss, *_texts(line, columns), line.item.output] for line in lines)
    return _table(["line", "score", "loss", *columns, "expected", "output"], rows)


def differences_table(differences: Iterable[LineDifference], evaluation: Evaluation) -> Table:
    """Make a table with a row a line of an evaluation, and of another output."""
    columns = _input_columns(evaluation)
    rows = (
        [row.line.number, *_figures(row), *_texts(row.line, columns), row.line.item.output, row.other.item.output]
        for row in differences
    )
    return _table([*_FIGURES, *columns, *_TEXTS], rows)


def _input_columns(evaluation: Evaluation) -> list[str]:
    return column_names(evaluation.input_width(), evaluation.split.in_header, OWN_COLUMNS)


def _figures(row: LineDifference) -> tuple[float | None, ...]:
    return row.difference, row.line.score, row.line.loss, row.other.score, row.other.loss


def _texts(line: Line, columns: Sequence[str]) -> list[str | None]:
    """Give the columns of a line's input, None for one that it has not, and the expected line."""
    found: list[str | None] = list(line.item.input.split("\t")) if columns else []
    return [*found, *[None] * (len(columns) - len(found)), line.item.expected]


def features_table(features: WorstFeatures) -> Table:
    """Make a table with a row a feature."""
    rows = (list(of.values()) for of in feature_documents(features))
    return _table(["feature", *features.columns], rows)


def comparison_table(comparison: Comparison) -> Table:
    """Make a table with a row a system; ``groups`` has the numbers, from 0, of those it is in."""
    rows = [comparison.row(system) | {"signature": str(system.signature)} for system in comparison.systems]
    for row in rows:
        row["groups"] = " ".join(map(str, row["groups"]))
    return _table(list(rows[0]), [list(row.values()) for row in rows])


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    return Table([Column(name=name, write=str) for name in names], rows)
