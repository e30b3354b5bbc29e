"""Documents: lines that belong together, are alike, and tell less than as many lines of different documents.

A document is the lines on which a column of the input is the same, such as the lines of one file.
:mod:`geval_py.explaining.statistics` has the intervals and the tests by documents.

In this order: the documents of lines, and notes on intervals; the columns of the input that name documents.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, Literal, TypeAlias, final

import numpy as np

from geval_py.errors import DataError, UsageError
from geval_py.explaining.significance import Interval, sum_of
from geval_py.explaining.statistics import intervals, sample_of, spread_of_mean
from geval_py.reading.config import word_of
from geval_py.reading.features import DOCUMENT_NAMES, Field, Fields, columns_named, columns_there_are
from geval_py.reading.lines import LineReader, check_line_count, first_name, read_lines
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import NOISE, Integers
from geval_py.scoring.scores import Evaluation, Score
from geval_py.text import named, visible

MIN_DOCUMENTS = 10  # with fewer, an interval is very wide: a column of fewer is used only if it is named
FEW_LINES = 40  # with fewer, no interval of the mean of skewed losses is wide enough
MAX_WARNED = 500  # with fewer, nor is one where a hundredth of the lines has most of the loss
FEW_DEGREES = 4  # with fewer, some large documents decide
LOOKED_AT = 500  # lines, to find the columns that may name documents

# A column of the input (its name, or its number from 1), or columns that nest, separated by commas; a value for each
# line, the same on the lines of a document; None: the column that is declared or has a usual name; False: none.
DocumentsBy: TypeAlias = "str | int | Collection[Hashable] | Literal[False] | None"


@final
@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of some lines.

    ``column`` is the name or the number of the input's column, or "document"; ``of_line`` has the document of each
    line, numbered from 0; ``count`` is the number of documents.
    """

    column: str
    of_line: Integers
    count: int

    @classmethod
    def of(cls, column: str, values: Iterable[Hashable]) -> Documents:
        """Make documents from the values of a column, one a line, in order of appearance."""
        numbers: dict[Hashable, int] = {}
        of_line = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
        return cls(column, of_line, len(numbers))

    @property
    def are_lines(self) -> bool:
        """Whether each line is a document of its own, which is the same as no documents."""
        return self.count == len(self.of_line)

    def several(self) -> Documents | None:
        """Return the documents, or None if each line is one; raises UsageError if all lines are one document."""
        if self.are_lines:
            return None
        if self.count == 1:
            column, lines = visible(self.column), len(self.of_line)
            raise UsageError(
                f"all {lines} lines are of one document, since the column {column} is the same on all of them"
                "\n  an interval computed by document needs two or more"
            )
        return self

    def nest(self, smaller: Documents) -> bool:
        """Whether all lines of each smaller document are in one of these documents."""
        document_of = np.zeros(smaller.count, np.int64)
        document_of[smaller.of_line] = self.of_line
        return bool((document_of[smaller.of_line] == self.of_line).all())

    def of_score(self, score: Score) -> Documents:
        """Keep the lines that a metric scored, of all lines of the file."""
        return self if score.line_numbers is None else self.only(np.array(score.line_numbers) - 1)

    def only(self, places: Sequence[int] | Integers) -> Documents:
        """Keep the lines at some places, counted from 0."""
        numbers, of_line = np.unique(self.of_line[np.asarray(places, np.int64)], return_inverse=True)
        return Documents(self.column, of_line, len(numbers))


def score_interval(score: Score, *, documents: Documents | None = None, **drawn: Any) -> Interval:
    """Compute the 95 % interval of a score; ``documents`` are of all lines of the file.

    The other arguments are those of :func:`geval_py.explaining.statistics.intervals`, and so are the errors. Raises
    UsageError for a single document, too.
    """
    several = documents and documents.of_score(score).several()
    sample = sample_of(score.metric, [score.statistics], several and several.of_line)
    return intervals(sample, **drawn)[0]


def first_score(evaluation: Evaluation) -> Score:
    """Return the first score that is not an error."""
    return next(score for score in evaluation.scores if score.error is None)


def notes_on_intervals(documents: Documents | None, all_scores: Iterable[Score]) -> Iterator[str]:
    """Yield a note on a missing interval, on intervals by few lines, or by documents of which few large ones decide.

    The documents are of all lines of the file; None for intervals by lines. On few lines, skewed losses are no
    condition: an interval fails in the samples that lack the great losses, which do not look skewed.
    """
    reasons = []
    few_lines, decided_by_few = MAX_WARNED, list[str]()
    several = None if documents is None or documents.are_lines else documents
    for score in all_scores:
        measure, lines = score.metric.measure, score.statistics.lines
        (figures,) = sample_of(score.metric, [score.statistics]).line_figures()
        greatest = np.sort(figures)[-max(1, lines // 100) :]
        is_of_few = sum_of(greatest) > sum_of(figures) / 2  # a hundredth of the lines has most of the loss
        if several is None and measure.in_nats and (lines < FEW_LINES or is_of_few):
            few_lines = min(few_lines, lines)
        if lines == 1:
            reasons.append("no interval can be computed from 1 line")
        if not np.isfinite(figures).all():
            continue
        has_interval = several is None and measure.of_losses and not measure.in_nats  # Wilson's
        if lines > 1 and not has_interval and np.allclose(figures, figures[0], rtol=NOISE, atol=0.0):
            what = "loss" if measure.of_losses else "score"
            reasons.append(f"no interval can be computed where all {lines} lines have the same {what}")
        kept = several and several.of_score(score)
        if kept and kept.count > 1:
            least = min(FEW_DEGREES, (kept.count - 1) / 2)  # there are more if documents have about as many lines
            if spread_of_mean(figures, kept.of_line).degrees < least:
                decided_by_few.append(
                    f"a few large documents, of {kept.count}, dominate the score: an interval computed by document "
                    "is wide and less reliable"
                )
    yield from dict.fromkeys(reasons)
    if 1 < few_lines < MAX_WARNED:
        yield (
            f"{few_lines} lines are few: if rare lines have far greater losses, an interval contains the true score "
            "in about 90 % of cases, not 95 %"
        )
    yield from decided_by_few[:1]


# The columns of the input that name documents


def choose_documents(evaluation: Evaluation, by: DocumentsBy) -> Documents | None:
    """Return the documents of all lines of the output's file, by which intervals and tests are; None for by line.

    They are those that ``by`` asks for, those that the challenge declares, or those of a column with a usual name
    (:func:`usual_documents`). Raises UsageError for another number of values than lines, and the errors of
    :func:`documents_in`.
    """
    by = evaluation.split.documents if by is None else by
    if by is None:
        return usual_documents(evaluation)
    if by is False:
        return None
    if isinstance(by, str | int):
        return documents_in(evaluation, str(by))
    if len(by) != evaluation.file_lines:
        what = f"{len(by)} documents, but {evaluation.file_lines} lines"
        raise UsageError(f"{what}: give one number for each line")
    return Documents.of("document", by)


def documents_in(evaluation: Evaluation, columns: str) -> Documents:
    """Return the documents by a column of the input, its name or its number from 1.

    Of columns that nest, separated by commas, it is the coarsest: of files and newspapers, the newspapers.

    Raises MissingFileError if there is no input file, UsageError if there is no such column, for columns that do not
    nest and for no input of lines in memory, and LineCountError for an input with another number of lines.
    """
    split, fields = evaluation.split, list[Field]()
    if split.input is None:
        what = "documents are given by a column of the input"
        if not split.input_place:
            raise UsageError(f"{what}, and there is none: score(…, inputs=…)")
        raise split.missing_input(f"{what}: put the file there, or name no documents")
    for column in columns.split(","):
        message = f"Unknown column `{visible(column)}'\n  {columns_there_are(column, split.in_header)}"
        try:
            fields.append(Fields(split.in_header).find(column))
        except KeyError:
            raise UsageError(message) from None
        if fields[-1].column >= max(len(split.in_header), len(_first_cells(evaluation))):
            raise UsageError(message)
    return coarsest(_read_columns(evaluation, fields))


def coarsest(columns: Sequence[Documents]) -> Documents:
    """Return the documents in which those of all other columns nest; raises UsageError if there are none."""
    chosen = min(columns, key=lambda documents: documents.count)
    for documents in columns:
        if not chosen.nest(documents):
            raise UsageError(
                f"documents have to nest, but lines with the same {_shared(documents.column)} differ in "
                f"{visible(chosen.column)}\n  name only one of these columns"
            )
    return chosen


def usual_documents(evaluation: Evaluation) -> Documents | None:
    """Return the documents by the first column with a usual name, or by a coarser one with a usual name.

    The names are in :data:`geval_py.reading.features.DOCUMENT_NAMES`. A column counts if it has ten values or more,
    some of them on two lines. None if there is no such column, or no input with as many lines.
    """
    header, usual = evaluation.split.in_header, None
    fields = map(Fields(header).column, range(len(header)))
    named_so = [field for field in fields if columns_named(DOCUMENT_NAMES, [field.name])]
    with suppress(DataError):
        for documents in _read_columns(evaluation, named_so):
            is_coarser = usual is None or (documents.count < usual.count and documents.nest(usual))
            if is_coarser and MIN_DOCUMENTS <= documents.count < len(documents.of_line):
                usual = documents
    return usual


def notes_on_documents(documents: Documents | None) -> Iterator[str]:
    """Yield a note on documents that are single lines."""
    if documents is not None and documents.are_lines:
        column = _shared(documents.column)
        yield f"each line has a different {column}: the results are the same as without documents"


def notes_on_columns(evaluation: Evaluation, documents: Documents | None, by: DocumentsBy) -> Iterator[str]:
    """Yield a note on columns by which lines may depend on each other, or that there is no input.

    These are columns with the same value on all lines of a document or, by line, with two lines a value or more, in
    the mean; no test is made. Nothing is noted if the documents were asked ``by`` or declared.
    """
    split, lines = evaluation.split, evaluation.file_lines
    if by is not None or split.documents is not None or lines < 2 * MIN_DOCUMENTS:
        return
    if split.input is None:
        if split.input_place:
            yield f"there is no input {named(split.input_place)}: each line counts as a document of its own"
        return

    def has_few_values(column: Documents) -> bool:
        if documents is None:
            return column.count <= lines / 2
        return column.count < documents.count and column.nest(documents)

    columns = list[Documents]()
    with suppress(DataError):
        # A column of texts, which take longest, repeats no value even in the first lines.
        repeated = [n for n, cells in enumerate(_first_cells(evaluation)) if len(set(cells)) < len(cells)]
        columns = _read_columns(evaluation, list(map(Fields(split.in_header).column, repeated)))
    names = [column.column for column in columns if column.count >= MIN_DOCUMENTS and has_few_values(column)]
    if names:
        same = " or ".join(map(_shared, names))
        options = " or ".join(f"--documents {visible(word_of(name))}" for name in names)
        reason = f"lines with the same {_shared(documents.column)} have the same {same}: " if documents else ""
        yield f"{reason}if lines with the same {same} depend on each other, use {options}"


def _first_cells(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return the cells of each column of the input, if there is one, on the first lines."""
    split = evaluation.split
    if split.input is None:
        return []
    lines = islice(read_lines(split.input, header=first_name(split.in_header)), LOOKED_AT)
    return list(zip_longest(*(line.split("\t") for line in lines), fillvalue=""))


def _read_columns(evaluation: Evaluation, fields: Sequence[Field]) -> list[Documents]:
    """Return the documents by columns of the input, if there is one; a line without the column has an empty value.

    Raises LineCountError for an input with another number of lines.
    """
    split = evaluation.split
    if split.input is None or not fields:
        return []
    tables = [backends.TokenTable() for _ in fields]
    columns: list[list[Integers]] = [[np.zeros(0, np.int64)] for _ in fields]
    with LineReader(split.input, header=first_name(split.in_header)) as reader:
        while block := reader.block():
            for field, table, column in zip(fields, tables, columns, strict=True):
                _, numbers = table.number(backends.take_column(block, field.column), b"")
                column.append(np.frombuffer(numbers, np.int64))
    documents = [
        Documents(field.name, np.concatenate(column), len(table))
        for field, table, column in zip(fields, tables, columns, strict=True)
    ]
    check_line_count("input", split.input.name, len(documents[0].of_line), split.expected.name, evaluation.file_lines)
    return documents


def _shared(column: str) -> str:
    """Return what the lines of a document share: a column's name, or its number where it has no name."""
    return f"value in column {column}" if column.isdigit() else visible(column)
