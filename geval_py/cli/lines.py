"""GEval's modes that show lines: line by line, what differs between two outputs, the best of several."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, compress, islice
from math import isclose
from operator import attrgetter
from typing import TypeVar

from geval_py.cli.evaluations import document_head, evaluate_lines
from geval_py.cli.features import kinds_of, rank
from geval_py.cli.settings import Settings
from geval_py.cli.terminal import note, write_table
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
from geval_py.reading.splits import Task
from geval_py.scoring.metrics import NOISE
from geval_py.scoring.scores import ScoredOutput
from geval_py.tables.escapes import json_list_text
from geval_py.tables.terminals import colours_are_unwanted, shows_colours
from geval_py.text import visible

Row = TypeVar("Row", Line, LineDifference)


def show_lines(task: Task, settings: Settings) -> None:
    """Show every line: score, input, expected word, output."""
    (evaluation,) = evaluate_lines(task, settings)
    prepared = _preparation(evaluation, settings)
    rows = _ordered(_filtered(read_lines(evaluation), evaluation, task, settings), "score", evaluation, settings)
    lines = map(prepared, rows)
    if settings.mark_worst_features and settings.format != "text":
        note("words are marked in text only")
    listing = LineListing(evaluation=evaluation, lines=lines, for_terminal=sys.stdout.isatty())
    if settings.format == "csv":
        sys.stdout.writelines(listing.records().csv())
    elif settings.format == "json":
        head = document_head(task) | listing.to_dict()
        sys.stdout.writelines(json_list_text(head, listing.name, listing.documents()))
    elif settings.mark_worst_features and shows_colours(sys.stdout):
        marker = _marker(evaluation, task, settings)
        note(f"marked words go with bad lines: {marks_text()}, not corrected for their number")
        write_table(replace(listing, marker=marker).table())
    else:
        if settings.mark_worst_features:
            note(_why_no_marks())
        write_table(listing.table())


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
    shown = chain(first, differences)
    listing = DifferenceListing(
        evaluation=evaluation, other=other, differences=shown, for_terminal=sys.stdout.isatty()
    )
    if settings.format == "csv":
        sys.stdout.writelines(listing.records().csv())
    elif settings.format == "json":
        head = document_head(task) | listing.to_dict()
        sys.stdout.writelines(json_list_text(head, listing.name, listing.documents()))
    else:
        write_table(listing.table())


def show_best(task: Task, settings: Settings) -> None:
    """Show of each line the output with the best score: of those that tie, the last."""
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


def _preparation(evaluation: ScoredOutput, settings: Settings) -> Callable[[Line], Line]:
    """Tell how lines are shown: as they are, or as the metric's flags leave them where that is asked for."""
    preparation = preparation_of(evaluation.scores[0].scheme) if settings.show_preprocessed else None
    if preparation is None:
        return lambda line: line

    def prepared(line: Line) -> Line:
        expected, output = preparation(line.item.expected), preparation(line.item.output)
        return line._replace(item=line.item._replace(expected=expected, output=output))

    return prepared


def _filtered(rows: Iterable[Row], evaluation: ScoredOutput, task: Task, settings: Settings) -> Iterable[Row]:
    """Give the rows of the lines that have the feature asked for."""
    if not settings.filters:
        return rows
    fields = Fields(evaluation.split.in_header)
    wanted: ItemFilter = parse_filter(settings.filters, fields, kinds_of(task, settings))
    return compress(rows, evaluation.select(wanted))


def _ordered(rows: Iterable[Row], key: str, evaluation: ScoredOutput, settings: Settings) -> Iterator[Row]:
    """Order rows by a figure of theirs, the worst or the best first, where that is asked for; else one by one."""
    if not (settings.sort or settings.reverse_sort):
        return iter(rows)
    greatest_first = evaluation.scores[0].greatest_first(worst=settings.sort)
    return iter(sorted(rows, key=attrgetter(key), reverse=greatest_first))


def _marker(evaluation: ScoredOutput, task: Task, settings: Settings) -> Marker:
    features = rank(task, settings.replace(distinct=False, documents=None), evaluation)
    marked = features.only(features.p_values < STYLES[-1][0])
    p_values = dict(zip(marked.names, marked.p_values.tolist(), strict=True))
    return Marker(p_values, Fields(evaluation.split.in_header), kinds_of(task, settings).tokens)


def _why_no_marks() -> str:
    if colours_are_unwanted():
        return "words are marked by colours, and NO_COLOR is set"
    return "words are marked on a terminal only; FORCE_COLOR=1 marks them everywhere"


# ``geval --just-tokenize``: standard input, line by line, as its tokens.


def write_tokens(name: str | None) -> None:
    """Write each line of standard input with spaces between the tokens of a tokenizer.

    A terminal is shown no control character but TAB. Raises UsageError if no tokenizer is named, or as
    :func:`find_tokenizer`, and UnreadableFileError.
    """
    if name is None:
        raise UsageError(message="a tokenizer must be specified with --tokenizer option")
    from geval_py.reading.tokenizers import find_tokenizer

    tokenizer = find_tokenizer(name)
    for_terminal = sys.stdout.isatty()
    with LineReader(STANDARD_INPUT) as reader:
        while block := reader.block():
            for text in decode_lines(block):
                line = tokenizer.line(text)
                sys.stdout.write(_shown(line) + "\n" if for_terminal else line + "\n")


def _shown(line: str) -> str:
    return "\t".join(map(visible, line.split("\t")))
