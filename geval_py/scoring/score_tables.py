"""Scores in tables: of one output (a number, or rows and cross tables), or of several; for commands and in Python."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from geval_py.reading import config
from geval_py.reading.outputs import own_names, short_names, unique_names
from geval_py.scoring.scores import Evaluation, IntervalOf, Score, signature_lines
from geval_py.tables.formats import Tabular
from geval_py.tables.numbers import score_text
from geval_py.tables.table import Column, Table, named_columns, plain_table
from geval_py.text import display_width, visible

if TYPE_CHECKING:
    import pandas as pd

NAME = "File name"  # the heading of outputs' names, as in GEval
FAILED = "error"  # what stands in place of a score that an output at fault has not
MAX_NAMES_IN_CROSS_TABLES = 100
MAX_NAME_LENGTH_IN_CROSS_TABLES = 80


class ScoreTable(Tabular):
    """The scores of the outputs of one test set: as GEval shows them in text, elsewhere a row an output.

    ``shown`` are the names of the outputs, if a user gives some. ``interval`` computes a score's interval, which is
    shown in place of the score; ``how`` says in the legend how.
    """

    def __init__(
        self,
        results: Sequence[Evaluation],
        shown: Sequence[str] = (),
        precision: int | None = None,
        percentage: bool = False,
        interval: IntervalOf | None = None,
        how: str = "",
    ) -> None:
        self.results, self.interval, self.how = results, interval, how
        self.has_own_names = bool(shown)
        self.shown = shown or short_names([result.output for result in results])
        self.precision, self.percentage = precision, percentage
        self.names = [score.name for score in results[0].scores]

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write the scores of one output (a number, or rows and cross tables), or of several (a table).

        TABs split the columns; for a terminal of a ``width`` they are aligned, and the outputs' names stand in place
        of more parameters than fit.
        """
        values = [self._cells(result) for result in self.results]
        if len(values) == 1 and len(self.names) == 1:
            yield values[0][0] + "\n"
            return
        names = list(map(visible, self.names))
        if len(values) == 1:
            blocks = _metric_blocks(names, values[0])
            yield "\n".join(_written(block, width, has_head=len(block[0]) > 2) for block in blocks)
            return
        for by_name in (False, True):
            keys, labels = self._labels(by_name=by_name, as_geval=width is None)
            has_head = keys != [NAME] or len(names) > 1
            rows = [[*keys, *names]] if has_head else []
            rows += [[*label, *cells] for label, cells in zip(labels, values, strict=True)]
            needed = [2 + max(map(display_width, column)) for column in zip(*rows, strict=True)]
            if width is None or sum(needed) - 2 <= width:
                break
        yield _written(rows, width, len(keys), has_head=has_head)

    def _labels(self, *, by_name: bool = False, as_geval: bool = False) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the labels of the outputs, escaped: the parameters in their names.

        An output without parameters has its short name in the first column. If the columns do not tell all outputs
        apart, or with ``by_name``, the short name or the one that a user gives stands alone; ``as_geval``, the name
        as GEval shortens it stands before them.
        """
        outputs, names = [result.output for result in self.results], list(map(visible, self.shown))
        keys = sorted({key for output in outputs for key in output.parameters})
        labels = [[visible(output.parameters.get(key, "")) for key in keys] for output in outputs]
        heads, are_told_apart = list(map(visible, keys)), len(set(map(tuple, labels))) == len(labels)
        if self.has_own_names or by_name or not (as_geval or (keys and are_told_apart)):
            return ["output"], [[name] for name in names]
        if keys and are_told_apart:
            return heads, [
                label if output.parameters else [name, *label[1:]]
                for output, name, label in zip(outputs, names, labels, strict=True)
            ]
        full = [output.name for output in outputs]
        stems = [name.removesuffix(".tsv") for name in full]
        names = list(map(visible, stems if len({*stems}) == len({*full}) else full))
        return [NAME, *heads], [[name, *label] for name, label in zip(names, labels, strict=True)]

    def _cells(self, result: Evaluation) -> list[str]:
        """Write the score by each metric or, if intervals are computed and there is one, its interval."""

        def cell(score: Score) -> str:
            if score.error:
                return FAILED
            value, half_width = score.value, None
            if self.interval is not None and not math.isnan((ends := self.interval(score)).middle):
                value, half_width = ends.middle, ends.half_width
            return score_text(value, self.precision, half_width, percentage=self.percentage)

        return list(map(cell, result.scores))

    def table(self, *, by_name: bool = False) -> Table:
        keys, labels = self._labels(by_name=by_name)
        columns = named_columns(keys)
        columns += named_columns(self.names, "right")
        return Table(columns, [[*label, *self._cells(one)] for label, one in zip(labels, self.results, strict=True)])

    def signatures(self) -> Iterator[str]:
        return signature_lines((one.output.name, one.signature) for one in self.results if one.has_scores)

    def legend(self) -> Iterator[str]:
        if self.interval is not None:
            yield f"±: half of the 95 % interval, {self.how}."

    def records(self) -> Table:
        """Return a row an output: its file, the parameters in its name, its scores with their intervals, or error."""
        keys = sorted({key for result in self.results for key in result.output.parameters})
        ends = ("", " low", " high") if self.interval else ("",)
        columns = (f"{name}{end}" for name in self.names for end in ends)
        head = ["file", *keys, *columns, "lines", "error", "signature"]
        rows = []
        for result in self.results:
            row: list[object] = [result.output.name, *(result.output.parameters.get(key) for key in keys)]
            for score in result.scores:
                row.append(None if score.error else score.value)
                if self.interval is not None:
                    interval = None if score.error else self.interval(score)
                    row += (None, None) if interval is None else (interval.low, interval.high)
            # An error without the picture of its line.
            errors = (" ".join(map(str.strip, str(error).split("\n")[:2])) for error in result.errors)
            lines, signature = (result.line_count, result.signature) if result.has_scores else (None, None)
            rows.append([*row, lines, "; ".join(errors) or None, signature])
        return plain_table(head, rows)

    def to_dict(self) -> dict[str, Any]:
        split = self.results[0].split
        challenge = os.path.basename(os.path.abspath(split.directory))
        outputs = [result.to_dict(self.interval) for result in self.results]
        return {"challenge": challenge, "test": split.name, "outputs": outputs}


class ChallengesTable(Tabular):
    """The scores of the outputs of several challenges, each with its folder, in one table."""

    def __init__(self, scores: Sequence[tuple[str, ScoreTable]]) -> None:
        self.scores = [(os.path.normpath(folder), table) for folder, table in scores]

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write as the scores of one challenge: columns on a terminal, elsewhere cells separated by TABs."""
        if width is not None:
            yield from Tabular.text(self, width)
            return
        table = self.table()
        yield "\t".join(column.heading for column in table.columns) + "\n"
        yield from table.tabs()

    def signatures(self) -> Iterator[str]:
        for folder, scores in self.scores:
            yield from (f"{folder}: {line}" for line in scores.signatures())

    def table(self) -> Table:
        return self._joined(partial(ScoreTable.table, by_name=True))

    def records(self) -> Table:
        return self._joined(ScoreTable.records)

    def legend(self) -> Iterator[str]:
        yield from dict.fromkeys(line for _, scores in self.scores for line in scores.legend())

    def to_dict(self) -> dict[str, Any]:
        return {"challenges": [scores.to_dict() for _, scores in self.scores]}

    def _joined(self, table_of: Callable[[ScoreTable], Table]) -> Table:
        """Put tables below each other, with the columns of all, and the challenge in front."""
        tables = [(folder, table_of(scores)) for folder, scores in self.scores]
        columns = {column.name: column for _, table in tables for column in table.columns}
        rows = [
            [folder, *(cells.get(name, "") for name in columns)]
            for folder, table in tables
            for cells in table.by_name()
        ]
        return Table([Column("challenge"), *columns.values()], rows)


def _written(rows: Sequence[Sequence[str]], width: int | None, labels: int = 1, *, has_head: bool) -> str:
    """Write a line a row: first its labels, then its scores; the first row may be the columns' names."""
    if width is None:
        return "".join("\t".join(row) + "\n" for row in rows)
    head, first = (rows[0], 1) if has_head else ([""] * len(rows[0]), 0)
    columns = [*named_columns(head[:labels]), *named_columns(head[labels:], "right")]
    return "".join(Table(columns, rows[first:]).terminal(width, header=has_head))


# Cross tables


def _metric_blocks(names: list[str], values: list[str]) -> list[list[list[str]]]:
    """Return rows of a name and a value, and cross tables for names that form a grid.

    A cross table has at least as many rows as columns, and an empty corner.
    """
    by_name = dict(zip(names, values, strict=True))
    grid_of = {name: grid for grid in find_grids(names) for name in grid.cells}
    blocks: list[list[list[str]]] = [[]]
    for name, value in zip(names, values, strict=True):
        grid = grid_of.get(name)
        if grid is None:
            blocks[-1].append([name, value])
        elif by_name.keys() >= grid.cells:  # none of its cells is written
            upright = len(grid.prefixes) >= len(grid.suffixes)
            rows, columns = (grid.prefixes, grid.suffixes) if upright else (grid.suffixes, grid.prefixes)
            cross_table = [["", *(column.strip() for column in columns)]]
            for row in rows:
                cells = (row + column if upright else column + row for column in columns)
                cross_table.append([row.strip(), *map(by_name.pop, cells)])
            blocks += [cross_table, []]
    return [block for block in blocks if block]


class Grid(NamedTuple):
    """Names (``cells``) that are all the products of some prefixes and some suffixes."""

    prefixes: Sequence[str]
    suffixes: Sequence[str]
    cells: frozenset[str]


def find_grids(names: Sequence[str]) -> list[Grid]:
    """Find the greatest grids, at least 2 x 2, that names form; each name is in at most one.

    Names are split only between their parts. Equal names are in none. Of equal sizes, the grid with the longest
    prefixes comes first.
    """
    free = [name for name in names if names.count(name) == 1] if len(names) <= MAX_NAMES_IN_CROSS_TABLES else []
    largest: list[Grid] = []
    while True:
        suffixes: dict[str, list[str]] = {}  # of each prefix, in order
        for name in free:
            # A name may be split before a run of digits or capitals, and after other characters.
            parts = r"(?<=[^0-9])(?=[0-9])|(?<![A-Z])(?=[A-Z])|(?<=[\W_])"
            places = re.finditer(parts, name if len(name) <= MAX_NAME_LENGTH_IN_CROSS_TABLES else "")
            for cut in sorted({match.start() for match in places} - {0, len(name)}):
                suffixes.setdefault(name[:cut], []).append(name[cut:])
        sets = {prefix: frozenset(ends) for prefix, ends in suffixes.items() if len(ends) >= 2}
        shared: dict[frozenset[str], list[str]] = {}  # what two prefixes have in common, in the order of the first
        for prefix, own in sets.items():
            for other in sets.values():
                shared.setdefault(own & other, [end for end in suffixes[prefix] if end in other])
        grids = []
        for common, ends in shared.items():
            prefixes = [prefix for prefix, own in sets.items() if common <= own]
            cells = frozenset(prefix + end for prefix in prefixes for end in ends)
            if len(ends) >= 2 and len(cells) == len(prefixes) * len(ends) > len(ends):
                grids.append(Grid(prefixes, ends, cells))
        if not grids:
            return largest
        largest.append(max(grids, key=lambda grid: (len(grid.cells), max(map(len, grid.prefixes)))))
        free = [name for name in free if name not in largest[-1].cells]


# Evaluations in Python


def short_name(name: str) -> str:
    """Return an output's name without ``out-`` and ``.tsv``, as frames show it.

    >>> short_name("out-model=bigram.tsv"), short_name("out.tsv")
    ('model=bigram', 'out')
    """
    return name.removesuffix(".tsv").removeprefix("out-")


def shown_names(evaluations: Sequence[Evaluation], names: Mapping[str, str]) -> list[str]:
    """Return the outputs' names as a user wants them, an empty list if none is given; raises UsageError."""
    if not names:
        return []
    outputs = [one.output for one in evaluations]
    unique = unique_names(outputs)
    renamed = own_names(names, unique, outputs, "scored")
    return [renamed.get(name, short) for name, short in zip(unique, short_names(outputs), strict=True)]


def scores_table(
    evaluations: Sequence[Evaluation], precision: int | None = None, names: Mapping[str, str] | None = None
) -> Tabular:
    """Return the table that the command shows of outputs, by default with the precision of each config.txt.

    Raises UsageError for a name of an output that is not there.
    """
    shown = dict(zip(evaluations, shown_names(evaluations, names or {}), strict=False))
    alike: dict[tuple[str, ...], list[Evaluation]] = {}
    for one in evaluations:
        alike.setdefault((one.split.directory, *(score.name for score in one.scores)), []).append(one)
    tables = []
    for (folder, *_), results in alike.items():
        values = config.config_values(folder) if folder else {}  # otherwise lists, or a pair of files
        own_precision = values.get("precision") if precision is None else precision
        own_shown = [shown[one] for one in results if shown]
        tables.append((folder, ScoreTable(results, own_shown, own_precision, values.get("percentage", False))))
    return tables[0][1] if len(tables) == 1 else ChallengesTable(tables)


def scores_frame(evaluations: Sequence[Evaluation], *, intervals: bool) -> pd.DataFrame:
    """Return a frame of outputs; see :meth:`geval_py.evaluation.Evaluations.to_frame`."""
    import numpy as np
    import pandas as pd

    scores = pd.DataFrame([one.scores_dict(intervals=intervals) for one in evaluations])
    parameters = pd.DataFrame([one.output.parameters for one in evaluations])
    for key, texts in parameters.items():
        numbers = pd.to_numeric(texts, errors="coerce")
        if np.isfinite(numbers[texts.notna()]).all():
            parameters[key] = numbers
    names = pd.DataFrame({"output": [short_name(one.output.name) for one in evaluations]})
    taken = {key: f"{key} (parameter)" for key in parameters if key in {"challenge", "output", *scores}}
    folders = [os.path.normpath(one.split.directory) for one in evaluations]
    if len(set(folders)) > 1:
        names.insert(0, "challenge", folders)
    return pd.concat([names, parameters.rename(columns=taken), scores], axis=1)
