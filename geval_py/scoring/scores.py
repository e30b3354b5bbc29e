"""One metric's value on one output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from geval_py.errors import DataError, MalformedLineError, SchemeError
from geval_py.reading.items import column_names
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.outputs import Output
from geval_py.reading.schemes import EvaluationScheme
from geval_py.scoring.metrics import METRICS, LineStatistics, Metric
from geval_py.scoring.parallel import Progress
from geval_py.tables.numbers import number, with_half_width
from geval_py.tables.table import Column, Table
from geval_py.tables.terminals import laid_out
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from typing import Any, ClassVar, TypeAlias

    from geval_py.errors import GevalError
    from geval_py.evaluation import Evaluation
    from geval_py.explaining.documents import Documents
    from geval_py.explaining.lines import Line, LineDifference
    from geval_py.explaining.significance import Interval
    from geval_py.tables.terminals import Alignment

    IntervalOf: TypeAlias = "Callable[[Score], Interval]"  # how a score's interval is made


class Score(Value):
    """One metric's value on one output.

    ``name`` is the name shown, from the scheme; ``statistics`` the line statistics that it is made from.
    ``line_numbers`` are those of the lines that the scheme's flags select, from 1, in the order in which they are
    scored; None for all lines.
    """

    name: str
    value: float
    metric: Metric
    scheme: EvaluationScheme
    statistics: LineStatistics
    line_numbers: array[int] | None = None

    hidden: ClassVar[frozenset[str]] = frozenset({"statistics", "line_numbers"})

    @property
    def unit(self) -> str:
        """What the value counts: nats, bits, words, probability or share."""
        return self.metric.measure.unit

    @property
    def direction(self) -> str:
        """Which values are better: "higher" or "lower"."""
        return self.metric.measure.direction

    def greatest_first(self, *, worst: bool) -> bool:
        """Tell whether the greatest values come first where the worst ones, or the best ones, should."""
        return (self.direction == "lower") == worst

    def interval(
        self,
        *,
        samples: int = DEFAULT_SAMPLES,
        seed: int = DEFAULT_SEED,
        documents: Documents | None = None,
        as_geval: bool = False,
        progress: Progress | None = None,
    ) -> Interval:
        """Give the 95 % interval, from as many resamples of the lines as ``samples``.

        With ``documents``, those of all lines of the file, it is by these. With ``as_geval``, the percentiles are
        GEval's, which are too near to each other where lines are few.

        Raises UsageError for fewer than one sample, a seed below 0, and a single document.
        """
        from geval_py.explaining import bootstrap

        return bootstrap.interval(
            self.metric,
            self.statistics,
            samples=samples,
            seed=seed,
            documents=None if documents is None else documents.of_score(self).several(),
            as_geval=as_geval,
            progress=progress,
        )

    def to_dict(self, interval: Interval | None = None) -> dict[str, Any]:
        """Give what ``--format json`` shows of one metric.

        Its lines are there only where its flags select some, its signature where a library signs its scores.
        """
        shown: dict[str, Any] = {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "direction": self.direction,
            "infinite_losses": self.statistics.infinite,
        }
        if self.metric.signature is not None:
            shown["signature"] = self.metric.signature(self.statistics)
        if self.scheme.selecting_flags:
            shown["lines"] = self.statistics.lines
        if interval is not None:
            shown["interval"] = interval.to_dict()
        return shown


# An output that could not be scored, or not by each metric, among others that could.


class NoScore(Value):
    """A metric that has no score of an output, since its filter selects no line of it."""

    name: str
    metric: Metric
    error: SchemeError

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows of it."""
        measure = self.metric.measure
        return {
            "name": self.name,
            "value": None,
            "unit": measure.unit,
            "direction": measure.direction,
            "error": _error_document(self.error),
        }


class Failure(Value):
    """An output that is at fault, or of which a metric's filter selects no line, and the error that says how.

    Where other metrics could score it, ``evaluation`` is by these, and ``results`` has what each metric gave, in
    order; else there is none.
    """

    output: Output
    error: DataError | SchemeError
    evaluation: Evaluation | None = None
    results: tuple[Score | NoScore, ...] = ()

    @property
    def errors(self) -> list[DataError | SchemeError]:
        """All that is wrong, what metrics have in common once."""
        return list({str(error): error for error in (self.error, *_errors_of(self.results))}.values())

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Give what ``--format json`` shows of it: the error or, where it has scores, those and each metric's error.

        With ``interval``, which gives a score's, each metric that has a score has its own.
        """
        if self.evaluation is None:
            shown = {"file": self.output.name, "parameters": self.output.parameters}
            return shown | {"error": _error_document(self.error)}
        metrics = iter(self.evaluation.to_dict(interval)["metrics"])
        return self.evaluation.to_dict() | {
            "metrics": [of.to_dict() if isinstance(of, NoScore) else next(metrics) for of in self.results]
        }


def scores_of(results: Sequence[Score | NoScore]) -> tuple[Score, ...]:
    """Give the scores that there are; raises the first error where there is none."""
    errors = _errors_of(results)
    if len(errors) == len(results):
        raise errors[0]
    return tuple(result for result in results if not isinstance(result, NoScore))


def failure_of(evaluation: Evaluation, results: Sequence[Score | NoScore]) -> Failure | None:
    """Give the failure of an output that metrics scored, but not each; None where each did."""
    errors = _errors_of(results)
    if not errors:
        return None
    return Failure(output=evaluation.output, error=errors[0], evaluation=evaluation, results=tuple(results))


def _errors_of(results: Iterable[Score | NoScore]) -> list[SchemeError]:
    return [result.error for result in results if isinstance(result, NoScore)]


def _error_document(error: DataError | SchemeError) -> dict[str, Any]:
    """Say what is wrong; the line and the column are None where no place is at fault."""
    line = column = None
    if isinstance(error, MalformedLineError):
        line, column = error.line, error.column
    return {"message": str(error), "line": line, "column": column}


def what_is_scored(results: Iterable[Evaluation | Failure]) -> list[Evaluation]:
    """Give the evaluations, also by some metrics where others failed."""
    evaluations = (result.evaluation if isinstance(result, Failure) else result for result in results)
    return [evaluation for evaluation in evaluations if evaluation is not None]


def each_score(result: Evaluation | Failure, metrics: int) -> Sequence[Score | None]:
    """Give the score by each of so many metrics, None by those by which there is none."""
    if not isinstance(result, Failure):
        return result.scores
    found = [None if isinstance(of, NoScore) else of for of in result.results]
    return found or [None] * metrics


def evaluations_of(results: Iterable[Evaluation | Failure]) -> list[Evaluation]:
    """Give the evaluations; raises the error of the first failure, and asks for no result behind it."""
    evaluations = []
    for result in results:
        if isinstance(result, Failure):
            raise result.error
        evaluations.append(result)
    return evaluations


# The scores of one output (a number, or rows and cross tables), or of several (a table).


FAILED = "error"  # what stands in place of a score that an output at fault has not


MOST_NAMES_IN_CROSS_TABLES = 100


LONGEST_NAME_IN_CROSS_TABLES = 80  # characters


def scores_text(
    results: Sequence[Evaluation | Failure],
    precision: int | None = None,
    *,
    names: Sequence[str] = (),
    percentage: bool = False,
    interval: Callable[[Score], Interval] | None = None,
    width: int | None = None,
) -> str:
    """Write the scores of one output (a number, or rows and cross tables), or of several (a table).

    ``names`` are those of the metrics, where no output tells them. With ``interval``, which gives a score's,
    intervals are written in place of the scores. TABs split the columns; for a terminal of a ``width`` they are
    aligned.
    """

    def cell(score: Score) -> str:
        if interval is None:
            return number(score.value, precision, percentage=percentage)
        return with_half_width(interval(score), precision, percentage=percentage)

    def cells(result: Evaluation | Failure) -> list[str]:
        return [FAILED if score is None else cell(score) for score in each_score(result, len(shown))]

    scores = (result.scores for result in results if not isinstance(result, Failure))
    shown = [visible(name) for name in next(([s.name for s in of] for of in scores), names)]
    if len(results) > 1:
        rows = list(_variant_rows(results, shown, [cells(result) for result in results]))
        return _rows(rows, width, labels=len(rows[0]) - len(shown))
    if len(shown) == 1:
        return cells(results[0])[0] + "\n"
    return "\n".join(_rows(block, width) for block in _metric_blocks(shown, cells(results[0])))


def evaluation_text(evaluation: Evaluation) -> str:
    """Write the name and the value of each score of one output, a line each; the last one without a line end."""
    from geval_py.tables.table import Column, Table

    columns = [Column(name="metric"), Column(name="score", write=number)]
    rows = [(score.name, score.value) for score in evaluation.scores]
    return "".join(Table(columns, rows).text(header=False)).removesuffix("\n")


def scores_html(evaluation: Evaluation) -> str:
    """Write an HTML table of the scores of one output, for notebooks; all text is escaped."""
    from geval_py.tables.table import Column, Table

    score = Column(name="score", alignment="right", write=number)
    columns = [Column(name="output"), Column(name="metric"), score, Column(name="unit"), Column(name="")]
    rows = ((evaluation.output.name, s.name, s.value, s.unit, f"{s.direction} is better") for s in evaluation.scores)
    return "".join(Table(columns, list(rows)).html())


def _rows(rows: Sequence[Sequence[str]], width: int | None, labels: int = 1) -> str:
    """Write a line a row, whose first cells are its labels, and the others its scores."""
    if width is None:
        return "".join("\t".join(row) + "\n" for row in rows)
    alignments: list[Alignment] = ["left" if column < labels else "right" for column in range(len(rows[0]))]
    return "".join(laid_out(rows, alignments, width))


def _variant_rows(
    results: Sequence[Evaluation | Failure], names: list[str], values: list[list[str]]
) -> Iterator[list[str]]:
    """Give a row an output, with the parameters in its name, or the name where those do not tell it apart."""
    outputs = [result.output for result in results]
    keys = sorted({key for output in outputs for key in output.parameters})
    labels = [[visible(output.parameters.get(key, "")) for key in keys] for output in outputs]
    unnamed = any(
        isinstance(result, Failure) and not any(label) for result, label in zip(results, labels, strict=True)
    )
    if unnamed or len({tuple(label) for label in labels}) < len(labels):
        names_shown = _file_names([output.name for output in outputs])
        labels = [[visible(name), *label] for name, label in zip(names_shown, labels, strict=True)]
        keys = ["File name", *keys]
    if keys != ["File name"] or len(names) > 1:
        yield [*map(visible, keys), *names]
    for label, cells in zip(labels, values, strict=True):
        yield label + cells


def _file_names(names: Sequence[str]) -> Sequence[str]:
    """Leave out the ending .tsv, as GEval does, unless that makes two names the same."""
    short = [name.removesuffix(".tsv") for name in names]
    return short if len(set(short)) == len(set(names)) else names


def _metric_blocks(names: list[str], values: list[str]) -> list[list[list[str]]]:
    """Give rows of a name and a value, and cross tables for names that form a grid."""
    by_name = dict(zip(names, values, strict=True))
    blocks: list[list[list[str]]] = []
    open_block: list[list[str]] | None = None
    grids = find_grids(names)
    for name, value in zip(names, values, strict=True):
        grid = next((g for g in grids if name in g.cells()), None)
        if grid is None:
            if open_block is None:
                open_block = []
                blocks.append(open_block)
            open_block.append([name, value])
        elif name == grid.first:
            blocks.append(list(grid.table(by_name)))
            open_block = None
    return blocks


class Grid:
    """Names that are all the products of some prefixes and some suffixes."""

    def __init__(self, prefixes: Sequence[str], suffixes: Sequence[str], names: Sequence[str]) -> None:
        self.prefixes, self.suffixes = prefixes, suffixes
        self.first = next(name for name in names if name in self.cells())

    def cells(self) -> frozenset[str]:
        return frozenset(prefix + suffix for prefix in self.prefixes for suffix in self.suffixes)

    def table(self, values: Mapping[str, str]) -> Iterator[list[str]]:
        """Give the rows of the cross table: at least as many rows as columns, an empty corner."""
        upright = len(self.prefixes) >= len(self.suffixes)
        rows, columns = (self.prefixes, self.suffixes) if upright else (self.suffixes, self.prefixes)
        yield ["", *(column.strip() for column in columns)]
        for row in rows:
            names = (row + column if upright else column + row for column in columns)
            yield [row.strip(), *(values[name] for name in names)]


def find_grids(names: Sequence[str]) -> list[Grid]:
    """Find the greatest grids, at least 2 x 2, that names form; each name is in one at most.

    Names are split only between their parts. Equal names are in none.
    """
    free = [name for name in names if names.count(name) == 1] if len(names) <= MOST_NAMES_IN_CROSS_TABLES else []
    grids = []
    while grid := _greatest_grid(free):
        grids.append(grid)
        free = [name for name in free if name not in grid.cells()]
    return grids


def _greatest_grid(names: Sequence[str]) -> Grid | None:
    suffixes: dict[str, list[str]] = {}  # of each prefix, in order
    for name in names:
        for cut in _part_boundaries(name):
            suffixes.setdefault(name[:cut], []).append(name[cut:])
    wide = {prefix: ends for prefix, ends in suffixes.items() if len(ends) >= 2}
    sets = {prefix: frozenset(ends) for prefix, ends in wide.items()}
    best: tuple[int, int, list[str], list[str]] | None = None
    seen = set()
    for one, ends in wide.items():
        for other in sets.values():
            shared = sets[one] & other
            if len(shared) < 2 or shared in seen:
                continue
            seen.add(shared)
            common = [end for end in ends if end in shared]
            rows = [prefix for prefix, of in sets.items() if shared <= of]
            cells = {row + end for row in rows for end in common}
            if len(rows) >= 2 and len(cells) == len(rows) * len(common):
                rank = (len(common) * len(rows), max(map(len, rows)))  # equal sizes: the longest prefixes
                if best is None or rank > best[:2]:
                    best = (*rank, rows, common)
    return None if best is None else Grid(best[2], best[3], names)


def _part_boundaries(name: str) -> list[int]:
    """Give the places where a name may be split: before a run of digits or capitals, after other characters."""
    if len(name) > LONGEST_NAME_IN_CROSS_TABLES:
        return []
    found = re.finditer(r"(?<=[^0-9])(?=[0-9])|(?<![A-Z])(?=[A-Z])|(?<=[\W_])", name)
    return sorted({match.start() for match in found} - {0, len(name)})


# Tables for programs, as ``--format csv`` writes them: numbers with all their digits, the input's columns apart.


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


def _input_columns(evaluation: Evaluation) -> list[str]:
    return column_names(evaluation.input_width(), evaluation.split.in_header, OWN_COLUMNS)


def _figures(row: LineDifference) -> tuple[float | None, ...]:
    return row.difference, row.line.score, row.line.loss, row.other.score, row.other.loss


def _texts(line: Line, columns: Sequence[str]) -> list[str | None]:
    """Give the columns of a line's input, None for one that it has not, and the expected line."""
    found: list[str | None] = list(line.item.input.split("\t")) if columns else []
    return [*found, *[None] * (len(columns) - len(found)), line.item.expected]


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    return Table([Column(name=name, write=str) for name in names], rows)


# What there is: the metrics; the rules of the checker, all of them or one.


def metrics_table() -> Table:
    """Make a table with a row a metric."""
    columns = [Column(name=name) for name in ("metric", "unit", "direction", "what it is")]
    measures = ((metric, metric.measure) for metric in METRICS.values())
    return Table(
        columns,
        [(metric.name, of.unit, f"{of.direction} is better", metric.summary) for metric, of in measures],
    )
