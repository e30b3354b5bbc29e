"""GEval's modes that show lines: line by line, the differences between two outputs, the best of several, tokens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, compress, islice
from math import isclose
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from geval_py.cli.features import kinds_of, rank
from geval_py.cli.score import evaluate_lines, show_of_task
from geval_py.cli.terminal import note
from geval_py.errors import UsageError
from geval_py.explaining.line_by_line import (
    STYLES,
    DifferenceListing,
    Line,
    LineDifference,
    LineListing,
    Marker,
    marks_text,
    read_differences,
    read_lines,
)
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.preparation import preparation_of
from geval_py.reading.sources import STANDARD_INPUT
from geval_py.reading.tokenizers import find_tokenizer
from geval_py.scoring.metrics import NOISE
from geval_py.tables.terminals import colours_are_unwanted, shows_colours
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.cli.options import Settings
    from geval_py.reading.splits import Task
    from geval_py.scoring.scores import ScoredOutput

Row = TypeVar("Row", Line, LineDifference)


def show_lines(task: Task, settings: Settings) -> None:
    """Show every line: score, input, expected word, output."""
    (evaluation,) = evaluate_lines(task, settings)
    prepared = _preparation(evaluation, settings)
    rows = _ordered(_filtered(read_lines(evaluation), evaluation, task, settings), "score", evaluation, settings)
    listing = LineListing(evaluation=evaluation, lines=map(prepared, rows), for_terminal=_escapes(settings))
    if settings.mark_worst_features and settings.format != "text":
        note("words are marked in text only")
    elif settings.mark_worst_features and shows_colours(sys.stdout):
        listing = replace(listing, marker=_marker(evaluation, task, settings))
        note(f"marked words go with bad lines: {marks_text()}, not corrected for their number")
    elif settings.mark_worst_features and colours_are_unwanted():
        note("words are marked by colours, and NO_COLOR is set")
    elif settings.mark_worst_features:
        note("words are marked on a terminal only; FORCE_COLOR=1 marks them everywhere")
    show_of_task(task, listing, settings.format)


def show_difference(task: Task, settings: Settings) -> None:
    """Show the lines where two outputs and their scores differ: by how much, the texts, the other's output, this."""
    evaluation, other = evaluate_lines(task, settings, [settings.diff or ""])
    prepared = _preparation(evaluation, settings)
    rows = (row for row in _filtered(read_differences(evaluation, other), evaluation, task, settings) if row.differs)
    differences = (
        LineDifference(difference, prepared(line), prepared(before))
        for difference, line, before in _ordered(rows, "difference", evaluation, settings)
    )
    first = list(islice(differences, 1))
    if not first:
        note("no line differs in both its output and its score")
    listing = DifferenceListing(
        evaluation=evaluation, other=other, differences=chain(first, differences), for_terminal=_escapes(settings)
    )
    show_of_task(task, listing, settings.format)


def show_best(task: Task, settings: Settings) -> None:
    """Show for each line the output with the best score; if several tie, the last of them."""
    evaluations = evaluate_lines(task, settings, settings.alt_out_files)
    for other in evaluations[1:]:
        evaluations[0].check_same_lines(other)
    for_terminal = sys.stdout.isatty()
    best_of = max if evaluations[0].scores[0].greatest_first(worst=False) else min
    scores = zip(*(evaluation.each_line_score() for evaluation in evaluations), strict=True)
    outputs = zip(*(evaluation.read_outputs() for evaluation in evaluations), strict=True)
    for of_line, candidates in zip(scores, outputs, strict=True):
        best = best_of(of_line)
        ties = (index for index, score in enumerate(of_line) if isclose(score, best, rel_tol=NOISE))
        index = max(ties, default=len(candidates) - 1)  # where a single line has no score, all tie
        line = candidates[index]
        sys.stdout.write((visible(line) if for_terminal else line) + "\n")


def write_tokens(name: str | None) -> None:
    """Write each line of standard input with spaces between the tokens of a tokenizer (``geval --just-tokenize``).

    A terminal is shown no control character but TAB. Raises UsageError without a tokenizer's name, or as
    :func:`find_tokenizer`, and UnreadableFileError.
    """
    if name is None:
        raise UsageError(message="a tokenizer must be specified with --tokenizer option")
    tokenizer = find_tokenizer(name)
    for_terminal = sys.stdout.isatty()
    with LineReader(STANDARD_INPUT) as reader:
        while block := reader.block():
            for text in decode_lines(block):
                line = tokenizer.line(text)
                sys.stdout.write(("\t".join(map(visible, line.split("\t"))) if for_terminal else line) + "\n")


def _escapes(settings: Settings) -> bool:
    """Whether texts are escaped: files and pipes get them as they are, but only in GEval's own format."""
    return settings.format != "text" or sys.stdout.isatty()


def _preparation(evaluation: ScoredOutput, settings: Settings) -> Callable[[Line], Line]:
    """Return what a line is shown as: itself or, if that is asked for, as the metric's flags leave it."""
    preparation = preparation_of(evaluation.scores[0].scheme) if settings.show_preprocessed else None
    if preparation is None:
        return lambda line: line

    def prepared(line: Line) -> Line:
        expected, output = preparation(line.item.expected), preparation(line.item.output)
        return line._replace(item=line.item._replace(expected=expected, output=output))

    return prepared


def _filtered(rows: Iterable[Row], evaluation: ScoredOutput, task: Task, settings: Settings) -> Iterable[Row]:
    """Keep the rows of the lines that have the wanted features."""
    if not settings.filters:
        return rows
    fields = Fields(evaluation.split.in_header)
    wanted: ItemFilter = parse_filter(settings.filters, fields, kinds_of(task, settings))
    return compress(rows, evaluation.select(wanted))


def _ordered(rows: Iterable[Row], key: str, evaluation: ScoredOutput, settings: Settings) -> Iterator[Row]:
    """Order rows by one of their figures, the worst or the best first, if that is asked for; else one by one."""
    if not (settings.sort or settings.reverse_sort):
        return iter(rows)
    greatest_first = evaluation.scores[0].greatest_first(worst=settings.sort)
    return iter(sorted(rows, key=attrgetter(key), reverse=greatest_first))


def _marker(evaluation: ScoredOutput, task: Task, settings: Settings) -> Marker:
    features = rank(task, settings.replace(distinct=False, documents=None), evaluation)
    marked = features.at((features.p_values < STYLES[-1][0]).nonzero()[0])
    p_values = dict(zip(marked.names, marked.p_values.tolist(), strict=True))
    return Marker(p_values, Fields(evaluation.split.in_header), kinds_of(task, settings).tokens)
