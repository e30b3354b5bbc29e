"""Scores as text: of one output (a number, or rows and cross tables) or several (a table); and the metrics."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from geval_py.reading import config
from geval_py.reading.outputs import own_names, unique_names
from geval_py.reading.sources import VirtualFile
from geval_py.scoring.scores import MetricScore, ScoredOutput
from geval_py.tables.numbers import number, with_half_width
from geval_py.text import display_width, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.errors import GevalError
    from geval_py.scoring.scores import Interval
    from geval_py.tables.table import Table

FAILED = "error"  # what stands in place of a score that an output at fault has not
MOST_NAMES_IN_CROSS_TABLES = 100
LONGEST_NAME_IN_CROSS_TABLES = 80  # characters


def scores_text(
    results: Sequence[ScoredOutput],
    precision: int | None = None,
    *,
    names: Sequence[str] = (),
    outputs: Sequence[str] = (),
    percentage: bool = False,
    interval: Callable[[MetricScore], Interval] | None = None,
    width: int | None = None,
) -> str:
    """Write the scores of one output (a number, or rows and cross tables), or of several (a table).

    ``names`` are the metrics' names, for the case that no output has a score, and ``outputs`` the names of several
    outputs, if a user gives some. ``interval`` is a function that
    computes a score's interval, which is written in place of the score. TABs split the columns; for a terminal of a
    ``width`` they are aligned, and the outputs' names stand in place of more parameters than fit.
    """

    def cells(result: ScoredOutput) -> list[str]:
        scores = result.each_score(len(shown))
        return [score_cell(score, interval, precision, percentage=percentage) for score in scores]

    scores = (result.scores for result in results if result.error is None)
    shown = [visible(name) for name in next(([s.name for s in of] for of in scores), names)]
    if len(results) > 1:
        values = [cells(result) for result in results]
        rows = list(_variant_rows(results, shown, values, outputs))
        labels = len(rows[0]) - len(shown)
        if width is not None and not _fit([row[: labels + 1] for row in rows], width):
            names_of = outputs or _file_names([result.output.name for result in results])
            rows = [["File name", *shown], *([visible(name), *of] for name, of in zip(names_of, values, strict=True))]
            labels = 1
        return _rows(rows, width, labels, has_head=len(rows) > len(results))
    if len(shown) == 1:
        return cells(results[0])[0] + "\n"
    return "\n".join(
        _rows(block, width, has_head=len(block[0]) > 2) for block in _metric_blocks(shown, cells(results[0]))
    )


def score_cell(
    score: MetricScore | None,
    interval: Callable[[MetricScore], Interval] | None,
    precision: int | None,
    *,
    percentage: bool,
) -> str:
    """Write a score or, if intervals are computed and there is one, its interval."""
    if score is None:
        return FAILED
    ends = None if interval is None else interval(score)
    if ends is None or math.isnan(ends.middle):
        return number(score.value, precision, percentage=percentage)
    return with_half_width(ends.middle, ends.half_width, precision, percentage=percentage)


def evaluation_text(evaluation: ScoredOutput) -> str:
    """Write the name and the value of each score of one output, a line each; the last one without a line end."""
    from geval_py.tables.table import Column, Table

    columns = [Column(name="metric"), Column(name="score", write=number)]
    rows = [(score.name, score.value) for score in evaluation.scores]
    return "".join(Table(columns, rows).text(header=False)).removesuffix("\n")


def scores_html(evaluation: ScoredOutput) -> str:
    """Write an HTML table of the scores of one output, for notebooks; all text is escaped."""
    from geval_py.tables.table import Column, Table

    score = Column(name="score", alignment="right", write=number)
    columns = [Column(name="output"), Column(name="metric"), score, Column(name="unit"), Column(name="")]
    rows = ((evaluation.output.name, s.name, s.value, s.unit, f"{s.direction} is better") for s in evaluation.scores)
    return "".join(Table(columns, list(rows)).html())


def _rows(rows: Sequence[Sequence[str]], width: int | None, labels: int = 1, *, has_head: bool) -> str:
    """Write a line a row: first its labels, then its scores; the first row may be the columns' names."""
    if width is None:
        return "".join("\t".join(row) + "\n" for row in rows)
    from geval_py.tables.layout import Kind, laid_out

    head, first = (rows[0], 1) if has_head else ([""] * len(rows[0]), 0)
    kinds: list[Kind] = ["middle" if n < labels else "number" for n in range(len(head))]
    droppable = range(labels + 1, len(head))
    return "".join(laid_out(head, kinds, rows[first:], width, header=has_head, droppable=droppable))


def _fit(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether columns, two spaces apart, fit into a terminal's width uncut."""
    return sum(2 + max(map(display_width, column)) for column in zip(*rows, strict=True)) - 2 <= width


def _variant_rows(
    results: Sequence[ScoredOutput], names: list[str], values: list[list[str]], shown: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Yield a row an output, with the parameters in its name, or its name if parameters do not identify it.

    Names that are ``shown`` replace both.
    """
    if shown:
        yield ["output", *names]
        yield from ([visible(name), *cells] for name, cells in zip(shown, values, strict=True))
        return
    keys, labels = variant_labels(results)
    if len(keys) < len(labels[0]):
        names_shown = _file_names([result.output.name for result in results])
        labels = [[visible(name), *label[1:]] for name, label in zip(names_shown, labels, strict=True)]
        keys = ["File name", *keys]
    if keys != ["File name"] or len(names) > 1:
        yield [*map(visible, keys), *names]
    for label, cells in zip(labels, values, strict=True):
        yield label + cells


def variant_labels(results: Sequence[ScoredOutput]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the parameters in outputs' names, and for each output its values, escaped.

    The output's name stands before the values if they do not identify every output.
    """
    outputs = [result.output for result in results]
    keys = sorted({key for output in outputs for key in output.parameters})
    labels = [[visible(output.parameters.get(key, "")) for key in keys] for output in outputs]
    unnamed = any(result.error is not None and not any(label) for result, label in zip(results, labels, strict=True))
    if unnamed or len({tuple(label) for label in labels}) < len(labels):
        labels = [[visible(output.name), *label] for output, label in zip(outputs, labels, strict=True)]
    return keys, labels


def _file_names(names: Sequence[str]) -> Sequence[str]:
    """Leave out the ending .tsv, as GEval does, unless two names become the same."""
    short = [name.removesuffix(".tsv") for name in names]
    return short if len(set(short)) == len(set(names)) else names


def _metric_blocks(names: list[str], values: list[str]) -> list[list[list[str]]]:
    """Return rows of a name and a value, and cross tables for names that form a grid."""
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
        """Yield the rows of the cross table: at least as many rows as columns, and an empty corner."""
        upright = len(self.prefixes) >= len(self.suffixes)
        rows, columns = (self.prefixes, self.suffixes) if upright else (self.suffixes, self.prefixes)
        yield ["", *(column.strip() for column in columns)]
        for row in rows:
            names = (row + column if upright else column + row for column in columns)
            yield [row.strip(), *(values[name] for name in names)]


def find_grids(names: Sequence[str]) -> list[Grid]:
    """Find the greatest grids, at least 2 x 2, that names form; each name is in at most one.

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
    """Return the places where a name may be split: before a run of digits or capitals, after other characters."""
    if len(name) > LONGEST_NAME_IN_CROSS_TABLES:
        return []
    found = re.finditer(r"(?<=[^0-9])(?=[0-9])|(?<![A-Z])(?=[A-Z])|(?<=[\W_])", name)
    return sorted({match.start() for match in found} - {0, len(name)})


def scores_table(
    results: Sequence[ScoredOutput],
    names: Sequence[str],
    interval: Callable[[MetricScore], Interval] | None = None,
) -> Table:
    """Make a table for programs, with all digits: an output's file, the parameters in its name, its scores or error.

    ``names`` are the metrics' names. If there is a function ``interval``, each score is followed by its interval.
    """
    keys = sorted({key for result in results for key in result.output.parameters})
    ends = ("", " low", " high") if interval else ("",)
    scores = [f"{name}{end}" for name in names for end in ends]
    head = ["file", *keys, *scores, "lines", "error", "signature"]
    from geval_py.tables.table import plain_table

    return plain_table(head, [_score_row(result, keys, len(names), interval) for result in results])


def _score_row(
    result: ScoredOutput,
    keys: Sequence[str],
    metrics: int,
    interval: Callable[[MetricScore], Interval] | None,
) -> list[object]:
    of_output = [result.output.name, *(result.output.parameters.get(key) for key in keys)]
    values = chain.from_iterable(_values(score, interval) for score in result.each_score(metrics))
    errors = "; ".join(map(_in_a_line, result.errors)) or None
    if not result.scores:
        return [*of_output, *values, None, errors, None]
    return [*of_output, *values, result.line_count, errors, str(result.signature)]


def _values(score: MetricScore | None, interval: Callable[[MetricScore], Interval] | None) -> Iterator[float | None]:
    yield None if score is None else score.value
    if interval is not None:
        found = None if score is None else interval(score)
        yield from (None, None) if found is None else (found.low, found.high)


def _in_a_line(error: GevalError) -> str:
    """Write an error without the picture of its line."""
    return " ".join(line.strip() for line in str(error).split("\n")[:2])


# Frames, and tables for papers, of several outputs


def short_name(name: str) -> str:
    """Return an output's name without ``out-`` and ``.tsv``, as frames show it.

    >>> short_name("out-model=bigram.tsv"), short_name("out.tsv")
    ('model=bigram', 'out')
    """
    return name.removesuffix(".tsv").removeprefix("out-")


def score_columns(
    evaluations: Sequence[ScoredOutput], scores: Sequence[Mapping[str, float]]
) -> dict[str, Sequence[Any]]:
    """Return columns of outputs: the challenge, if there are several, the name, the parameters, and the scores."""
    names = list(dict.fromkeys(name for row in scores for name in row))
    keys = list(dict.fromkeys(key for one in evaluations for key in one.output.parameters))
    folders = list(map(_folder, evaluations))
    columns: dict[str, Sequence[Any]] = {"challenge": folders} if len(set(folders)) > 1 else {}
    columns |= {"output": [short_name(one.output.name) for one in evaluations]}
    for key in keys:
        name = f"{key} (parameter)" if key in {"challenge", "output", *names} else key
        columns[name] = list(_numbers_or_texts([one.output.parameters.get(key) for one in evaluations]))
    return columns | {name: [row.get(name) for row in scores] for name in names}


def _folder(evaluation: ScoredOutput) -> str:
    """Return the folder of the challenge."""
    return os.path.normpath(os.path.join(os.fspath(evaluation.split.expected), "..", ".."))


def _numbers_or_texts(values: Sequence[str | None]) -> Sequence[float | str | None]:
    """Turn values into numbers if all that are there are finite numbers; whole numbers stay whole."""
    if not all(value is None or re.fullmatch(_NUMBER, value, re.ASCII) for value in values):
        return values
    numbers = [None if value is None else int(value) if value.isdigit() else float(value) for value in values]
    return numbers if all(map(math.isfinite, filter(None, numbers))) else values


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def shown_scores(evaluations: Sequence[ScoredOutput]) -> Table:
    """Make a table for Python's prompt and for notebooks, with six digits of each score."""
    from geval_py.tables.table import Column, Table

    rows = [{score.name: score.value for score in one.scores} for one in evaluations]
    columns, metrics = score_columns(evaluations, rows), {name for row in rows for name in row}
    heads = [
        Column(name=name, alignment="right", write="{:.6g}".format) if name in metrics else Column(name=name)
        for name in columns
    ]
    return Table(heads, list(zip(*columns.values(), strict=True)))


def printed_scores(evaluations: Sequence[ScoredOutput], precision: int | None, names: Mapping[str, str]) -> Table:
    """Make a table for a paper; without a ``precision``, scores are written as each challenge's config.txt says.

    If there are ``names``, they are in the column of the outputs, and parameters have no columns. Raises UsageError
    for a name of an output that is not there.
    """
    from geval_py.tables.table import Column, Table

    rows = [{score.name: score.value for score in one.scores} for one in evaluations]
    columns, metrics = score_columns(evaluations, rows), {name for row in rows for name in row}
    if names:
        outputs = [one.output for one in evaluations]
        unique = unique_names(outputs)
        own = own_names(names, unique, outputs, "scored")
        columns = {name: of for name, of in columns.items() if name in {"challenge", "output", *metrics}}
        columns["output"] = [own.get(name, short) for name, short in zip(unique, columns["output"], strict=True)]
    styles = [_style(one) for one in evaluations]
    for name in metrics:
        columns[name] = [
            None
            if value is None
            else number(value, own_precision if precision is None else precision, percentage=as_share)
            for value, (own_precision, as_share) in zip(columns[name], styles, strict=True)
        ]
    heads = [Column(name=name, alignment="right" if name in metrics else "left") for name in columns]
    return Table(heads, list(zip(*columns.values(), strict=True)))


def _style(evaluation: ScoredOutput) -> tuple[int | None, bool]:
    """Return the precision in a challenge's config.txt, None for all digits, and whether scores are percentages."""
    split = evaluation.split
    if isinstance(split.expected, VirtualFile) or split.name == split.expected:  # lists, or a pair of files
        return None, False
    values = config.config_values(_folder(evaluation))
    return values.get("precision"), values.get("percentage", False)
