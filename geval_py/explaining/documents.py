"""Documents: lines that belong together, are alike, and tell less than as many lines of different documents.

A document is the lines on which a column of the input is the same, such as the lines of one file.
:mod:`geval_py.explaining.statistics` has the intervals and the tests by documents.

In this order: the documents of an evaluation's lines; the choice of a column of the input by whose documents lines
are so alike that an interval by lines is too narrow.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np

from geval_py.errors import DataError, UsageError
from geval_py.explaining.significance import (
    LEVEL,
    MIN_TESTED_LINES,
    Interval,
    beta_cdf,
    combined_p,
    dot,
    holm,
    sum_of,
)
from geval_py.explaining.statistics import centred_ranks, intervals, sample_of, spread_of_mean, sums_by
from geval_py.reading import features
from geval_py.reading.config import word_of
from geval_py.reading.files import File
from geval_py.reading.lines import LineReader, check_line_count, first_name
from geval_py.reading.splits import Split
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import NOISE, Array, Integers
from geval_py.scoring.scores import Evaluation, Score
from geval_py.text import named, visible

MIN_DOCUMENTS = 10  # if all have as many lines: with fewer, an interval is very wide
MIN_WIDENING = 1.05  # below which it does not matter that lines are alike
FEW_LINES = 40  # with fewer, no interval of the mean of skewed losses is wide enough
MAX_WARNED = 500  # with fewer, nor is one where a hundredth of the lines has most of the loss
FEW_DEGREES = 4  # with fewer, some large documents decide
POSSIBLY_ALIKE = 0.3  # p of the column that is taken to be safe; simulated in tests/explaining/test_dependence.py
LOOKED_AT = 500  # lines, to find the columns that may name documents
MAX_INPUT_BYTES = 1 << 25  # of a file that is read only to find such a column

# A column of the input, by its name or its number from 1; a value for each line, the same on the lines of a document;
# None: find a column; False: no documents.
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

    @property
    def effective(self) -> float:
        """The number of documents with as many lines each that would be as good for an interval."""
        sizes = sums_by(self.of_line)
        return len(self.of_line) ** 2 / dot(sizes, sizes)

    @property
    def nothing_gained(self) -> str:
        """The note for documents that are single lines."""
        return f"each line has a different {_shared(self.column)}: the results are the same as without documents"

    def several(self) -> Documents | None:
        """Return the documents, or None if each line is one; raises UsageError if all lines are one document."""
        if self.are_lines:
            return None
        if self.count == 1:
            column, lines = visible(self.column), len(self.of_line)
            raise UsageError(
                message=f"all {lines} lines are of one document, since the column {column} is the same on all of them"
                "\n  an interval computed by document needs two or more"
            )
        return self

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
        if several is None and measure.in_nats and (lines < FEW_LINES or _is_of_few(figures)):
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


def _is_of_few(losses: Array) -> bool:
    """Whether a hundredth of the lines, at least one, has most of the loss, if that is finite."""
    greatest = np.sort(losses)[-max(1, len(losses) // 100) :]
    return sum_of(greatest) > sum_of(losses) / 2


def documents_in(evaluation: Evaluation, column: str | int) -> Documents:
    """Find the documents of all lines of the output's file, scored or not.

    ``column`` is the name of a column of the input or its number, from 1. A line without the column counts as a line
    with an empty one.

    Raises MissingFileError if there is no input file, UsageError if there is no such column, or no input of lines in
    memory, and LineCountError for an input with another number of lines.
    """
    split = evaluation.split
    if split.input is None:
        what = "documents are given by a column of the input"
        if not split.input_place:
            raise UsageError(message=f"{what}, and there is none: score(…, inputs=…)")
        raise split.missing_input(f"{what}: put the file there, or name no documents")
    message = f"Unknown column `{visible(str(column))}'\n  {features.columns_there_are(str(column), split.in_header)}"
    try:
        field = features.Fields(split.in_header).find(str(column))
    except KeyError:
        raise UsageError(message=message) from None
    text = _text_of(split.input, split)
    check_line_count("input", split.input.name, text.count(b"\n"), split.expected.name, evaluation.file_lines)
    if all(row.count(b"\t") < field.column for row in text.split(b"\n")):
        raise UsageError(message=message)
    return _documents_of_column(text, field)


def _documents_of_column(text: bytes, field: features.Field) -> Documents:
    table = backends.TokenTable()
    _, of_line = table.number(backends.take_column(text, field.column), b"")
    return Documents(field.name, np.array(of_line, np.int64), len(table))


def _shared(column: str) -> str:
    """Return what the lines of a document share: a column's name, or its number where it has no name."""
    return f"value in column {column}" if column.isdigit() else visible(column)


# The documents of an interval or a test


class Dependence(NamedTuple):
    """Which lines are alike: ``documents``, of all lines of the file, or None if no column tells.

    Intervals by them are up to ``widening`` times as wide as by lines. If not ``surely``, the lines may be no more
    alike than others, and the documents are only to be safe. ``coarse`` are the names of columns whose
    lines are alike too, with their numbers of values, which are too few. ``tested`` are the names of all columns with
    enough documents. ``missing`` is the path of an input that is not there: no column could be looked at. ``what``
    says what is alike: the lines' losses or scores.
    """

    documents: Documents | None
    widening: float = 1.0
    surely: bool = True
    coarse: tuple[tuple[str, int], ...] = ()
    tested: tuple[str, ...] = ()
    missing: str = ""
    what: str = "losses"

    @property
    def column(self) -> str:
        """The name, or the number, of the column; "" for none."""
        return "" if self.documents is None else self.documents.column

    def notes(self, consequence: str) -> Iterator[str]:
        """Yield a note on the column, if there is one, on each that is too coarse, and on a missing input.

        A pair of braces in the ``consequence`` stands for how much wider intervals by document are.
        """
        if self.documents is not None:
            times = f"up to {self.widening:.1f} times" if self.widening >= MIN_WIDENING else "about"
            result = consequence.replace("{}", f"{times} as wide as", 1)
            how = f"have similar {self.what}:" if self.surely else f"may have similar {self.what}: to be safe,"
            advice = f"; add --documents {visible(word_of(self.column))} to config.txt to declare it"
            has_name = features.columns_named(features.DOCUMENT_NAMES, [self.column])
            is_advised = has_name or (self.surely and not self.column.isdigit())
            yield f"lines with the same {_shared(self.column)} {how} {result}{advice if is_advised else ''}"
        for column, values in self.coarse:
            too = "" if self.documents is None else ", too"
            yield (
                f"lines with the same {_shared(column)} have similar {self.what}{too}, but {values} documents are "
                "too few to estimate the score on another document"
            )
        if self.missing:
            yield f"there is no input {named(self.missing)}: each line counts as a document of its own"


def choose_documents(
    evaluations: Sequence[Evaluation], by: DocumentsBy, *, values: Sequence[Array] = ()
) -> tuple[Documents | None, Dependence | None]:
    """Return the documents, of all lines of the file, of intervals and tests of evaluations of one test set.

    Those that are asked for, those that the challenge declares, or those of the column by which lines are most alike,
    with what was found about columns; None where each line is by itself. See :func:`find_dependence`. Raises the
    errors of :func:`documents_in`.
    """
    by = evaluations[0].split.documents if by is None else by
    if by is False:
        return None, None
    if isinstance(by, str | int):
        return documents_in(evaluations[0], by), None
    if by is not None:
        lines = evaluations[0].file_lines
        if len(by) != lines:
            raise UsageError(message=f"{len(by)} documents, but {lines} lines: give one number for each line")
        return Documents.of("document", by), None
    dependence = find_dependence(evaluations, values=values)
    return dependence.documents, dependence


def notes_on_documents(documents: Documents | None, dependence: Dependence | None, consequence: str) -> Iterator[str]:
    """Yield notes on documents that are single lines, and on the columns by which lines are alike."""
    if documents is not None and documents.are_lines:
        yield documents.nothing_gained
    if dependence is not None:
        yield from dependence.notes(consequence)


def find_dependence(evaluations: Sequence[Evaluation], *, values: Sequence[Array] = ()) -> Dependence:
    """Find the column of the input by whose documents lines are alike; all evaluations are of one test set.

    The documents of a column count if they would be as good as ten equal ones. The first such column whose name is
    one of documents (:data:`geval_py.reading.features.DOCUMENT_NAMES`) is taken without a test.

    Otherwise, a column is tested on the finite lines of each evaluation by the first metric, and of each two by the
    differences of their lines; or only by other ``values`` of the scored lines. The p-values of the evaluations are
    combined, and so are those of the differences; p is twice the smaller one of both, corrected by Holm's method for
    the number of columns. It depends little on how many evaluations there are. Of the columns with p below 0.05, that
    with the widest interval is taken. If there is none, that with the least p of the differences (of the evaluation,
    if there is only one) is taken to be safe, if this p, uncorrected, is below 0.3: a test that is more strict misses
    effects that matter. No column is found if finding out would be costly or impossible: few lines, a metric without
    figures of lines, or no input file of moderate size with as many lines.
    """
    first, kinds = evaluations[0], partial(_figures, evaluations, values)
    has_figures = any(np.isfinite(figures).sum() >= MIN_TESTED_LINES for figures in kinds()[0])
    possible = list(possible_documents(first)) if has_figures else []
    fine = [documents for documents in possible if documents.effective >= MIN_DOCUMENTS]
    named_so = features.columns_named(features.DOCUMENT_NAMES, [documents.column for documents in fine])[:1]
    fine = [documents for documents in fine if not named_so or documents.column in named_so]
    p_values, last_p_values, widenings = _test_columns(fine, kinds())
    similar = [n for n, p_value in enumerate(holm(p_values)) if p_value < LEVEL]
    safe = [n for n, p_value in enumerate(last_p_values) if named_so or p_value < POSSIBLY_ALIKE]
    place = max(similar, key=widenings.__getitem__, default=None)
    if place is None:
        place = min(safe, key=last_p_values.__getitem__, default=None)
    wider = 1.0 if place is None else widenings[place]
    chosen = fine[place] if place is not None and (named_so or wider >= MIN_WIDENING) else None

    def means(of_line: Integers, figures: Array) -> Array:
        """Return the means of the finite figures of documents."""
        finite = np.isfinite(figures)
        with np.errstate(invalid="ignore"):  # of a document without finite figures
            return sums_by(of_line, np.where(finite, figures, 0.0)) / sums_by(of_line, finite)

    # Columns with few values, whose lines may be alike too. Where whole documents of the chosen column have a value,
    # they are what is dealt out, by the means of their lines.
    rest = [documents for documents in possible if documents.effective < MIN_DOCUMENTS]
    p_values = []
    for column in rest:
        kinds_of_column: Iterable[Iterable[Array]] = kinds()
        if chosen is not None:
            of_document = np.empty(chosen.count, np.int64)
            of_document[chosen.of_line] = column.of_line
            if (of_document[chosen.of_line] == column.of_line).all():
                column = replace(column, of_line=of_document)
                kinds_of_column = [map(partial(means, chosen.of_line), kind) for kind in kinds_of_column]
        p_values += _test_columns([column], kinds_of_column)[0]
    return Dependence(
        chosen,
        wider,
        surely=bool(similar),
        coarse=tuple((one.column, one.count) for one, p in zip(rest, holm(p_values), strict=True) if p < LEVEL),
        tested=tuple(documents.column for documents in fine),
        missing=first.split.input_place if has_figures and first.split.input is None else "",
        what="losses" if first.scores[0].metric.measure.of_losses else "scores",
    )


def possible_documents(evaluation: Evaluation) -> Iterator[Documents]:
    """Yield the documents by each column of the input with two values or more, some of them on several lines."""
    file, lines = evaluation.split.input, evaluation.file_lines
    if file is None or (file.path is not None and os.path.getsize(file.path) > MAX_INPUT_BYTES):
        return
    try:
        text = _text_of(file, evaluation.split)
    except DataError:
        return
    if text.count(b"\n") != lines:
        return
    # A column of texts, which take longest, repeats no value even in the first lines.
    rows = (row.split(b"\t") for row in text.split(b"\n", LOOKED_AT)[: min(lines, LOOKED_AT)])
    fields = features.Fields(evaluation.split.in_header)
    for index, cells in enumerate(zip_longest(*rows, fillvalue=b"")):
        if len(set(cells)) < len(cells):
            documents = _documents_of_column(text, fields.column(index))
            if 2 <= documents.count < lines:
                yield documents


def _text_of(file: File, split: Split) -> bytes:
    """Return the lines of the input, encoded."""
    with LineReader(file, header=first_name(split.in_header)) as reader:
        return b"".join(iter(reader.block, b""))


def _figures(evaluations: Sequence[Evaluation], values: Sequence[Array]) -> list[Iterator[Array]]:
    """Return the figures of each evaluation, and the differences of each two; or other values.

    They are of all lines of the file, not finite where a line has none, and are made one by one: those of all pairs
    together may be larger than memory.
    """

    def of_file(figures: Array, score: Score) -> Array:
        if score.line_numbers is None:
            return figures
        whole = np.full(evaluations[0].file_lines, np.nan)
        whole[np.array(score.line_numbers, np.int64) - 1] = figures
        return whole

    first = evaluations[0].scores[0]
    if values:
        return [(of_file(column, first) for column in values)]
    scores = list(map(first_score, evaluations))
    columns = [
        (score, figures) for score in scores for figures in sample_of(score.metric, [score.statistics]).line_figures()
    ]

    def differences() -> Iterator[Array]:
        for (score, column), (other_score, other) in combinations(columns, 2):
            if score.line_numbers == other_score.line_numbers:
                with np.errstate(invalid="ignore"):  # of infinite lines
                    yield of_file(column - other, score)

    return [(of_file(column, score) for score, column in columns), differences()]


def _test_columns(
    columns: Sequence[Documents], kinds: Iterable[Iterable[Array]]
) -> tuple[list[float], list[float], list[float]]:
    """Test some kinds of figures for each column.

    Returns the columns' p-values of all kinds, those of the last kind, and how much wider their intervals are, at
    most. All kinds count alike, however many figures they have; few finite figures are left out.
    """
    p_values, widenings = list[list[float]](), [[1.0] * len(columns)]
    for kind in kinds if columns else ():
        of_kind = []
        for figures in kind:
            places = np.flatnonzero(np.isfinite(figures))
            if len(places) < MIN_TESTED_LINES:
                continue
            values = figures[places]
            ranks = centred_ranks(values)
            of_lines = [(one if len(values) == len(figures) else one.only(places)).of_line for one in columns]
            of_kind.append([alike_p(ranks, of_line) for of_line in of_lines])
            tested = zip(of_lines, of_kind[-1], strict=True)
            widenings.append([widening(values, of_line) if p < POSSIBLY_ALIKE else 1.0 for of_line, p in tested])
        p_values += [list(map(combined_p, zip(*of_kind, strict=True)))] if of_kind else []
    p_values = p_values or [[1.0] * len(columns)]
    together = [min(1.0, len(p_values) * min(of_column)) for of_column in zip(*p_values, strict=True)]
    return together, p_values[-1], list(map(max, zip(*widenings, strict=True)))


def widening(values: Array, of_line: Integers) -> float:
    """Divide the width of a mean's interval by documents by that of the interval by lines; 1 without a spread."""
    by_line, by_document = (spread_of_mean(values, units).half_width for units in (np.arange(len(values)), of_line))
    return by_document / by_line if by_line > 0.0 else 1.0


def alike_p(ranks: Array, of_line: Integers) -> float:
    """Test whether the lines of a document are more alike than if lines were dealt out to documents at random.

    It is Kruskal and Wallis's test on :func:`centred_ranks`. Its statistic, divided by the greatest possible one, has
    about the beta distribution with the mean and the variance that it has when lines are dealt out (Wallace,
    "Simplified beta-approximations to the Kruskal-Wallis H test", 1959). 1 if all ranks are equal, or each line is a
    document, or all lines are one.
    """
    lines, sizes = len(ranks), sums_by(of_line)
    documents, total = len(sizes), dot(ranks, ranks)
    if total == 0.0 or documents in (1, lines):
        return 1.0
    sums = np.bincount(of_line, ranks)
    statistic = (lines - 1) * sum_of(sums**2 / sizes) / total
    mean = documents - 1
    unequal = 3.0 * documents**2 - 6 * documents + lines * (2.0 * documents**2 - 6 * documents + 1)
    variance = 2 * mean - 2 * unequal / (5 * lines * (lines + 1)) - 6 / 5 * sum_of(1 / sizes)
    greatest = (lines**3 - sum_of(sizes**3)) / (lines * (lines + 1))
    share = mean / greatest
    both = share * (1 - share) * greatest**2 / variance - 1
    return beta_cdf(1 - statistic / greatest, both * (1 - share), both * share) if both > 0.0 else 1.0
