"""GEval's modes that show lines: line by line, what differs between two outputs, the best of several."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from math import isclose
from operator import itemgetter
from typing import TypeVar

from geval_py.cli.evaluations import evaluate_lines, note
from geval_py.cli.features import kinds_of, rank
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.items import ScoredItem
from geval_py.reading.options import Options
from geval_py.reading.preparation import preparation_of
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.metrics import NOISE
from geval_py.showing.features import STYLES, Marker, marks_text
from geval_py.showing.lines import line_rows, marked_rows
from geval_py.text import visible

Row = TypeVar("Row")


def show_lines(options: Options) -> None:
    """Show every line: score, input, expected word, output."""
    (evaluation,) = evaluate_lines(options)
    prepared = _preparation(evaluation, options)
    rows = zip(evaluation.line_scores(), evaluation.read_items(), strict=True)
    ordered = [
        (score, ScoredItem(text, prepared(expected), prepared(output)))
        for score, (text, expected, output) in _ordered(_filtered(rows, evaluation, options), evaluation, options)
    ]
    if options.mark_worst_features and _shows_colours():
        marker = _marker(evaluation, options)
        note(f"marked words go with bad lines: {marks_text()}, not corrected for their number")
        _write(marked_rows(map(itemgetter(0), ordered), (marker.item(item) for _, item in ordered)))
    else:
        if options.mark_worst_features:
            note("words are marked on a terminal only; FORCE_COLOR=1 marks them everywhere")
        _write_rows(ordered)


def show_difference(options: Options) -> None:
    """Show the lines where two outputs and their scores differ: by how much, the texts, the other's output, this."""
    evaluation, other = evaluate_lines(options, [options.diff or ""])
    prepared = _preparation(evaluation, options)
    pairs = zip(evaluation.read_items(), other.read_items(), strict=True)
    differences = zip(evaluation.score_differences(other), pairs, strict=True)
    rows = (
        (difference, (text, prepared(expected), prepared(before), prepared(output)))
        for difference, ((text, expected, output), (_, _, before)) in _filtered(differences, evaluation, options)
        if difference != 0 and output != before and difference == difference
    )
    ordered = _ordered(rows, evaluation, options)
    if not ordered:
        note("no line differs in both its output and its score")
    _write_rows(ordered)


def show_best(options: Options) -> None:
    """Show of each line the output with the best score: of those that tie, the last."""
    evaluations = evaluate_lines(options, options.alt_out_files)
    for other in evaluations[1:]:
        evaluations[0].check_same_lines(other)
    for_terminal = sys.stdout.isatty()
    best_of = max if evaluations[0].scores[0].greatest_first(worst=False) else min
    scores = zip(*(evaluation.line_scores() for evaluation in evaluations), strict=True)
    outputs = zip(*(evaluation.read_outputs() for evaluation in evaluations), strict=True)
    for of_line, candidates in zip(scores, outputs, strict=True):
        best = best_of(of_line)
        index = max(index for index, score in enumerate(of_line) if isclose(score, best, rel_tol=NOISE))
        line = candidates[index]
        sys.stdout.write((visible(line) if for_terminal else line) + "\n")


def _preparation(evaluation: Evaluation, options: Options) -> Callable[[str], str]:
    """Tell how lines are shown: as they are, or as the metric's flags leave them where that is asked for."""
    preparation = preparation_of(evaluation.scores[0].scheme) if options.show_preprocessed else None
    return str if preparation is None else preparation


def _filtered(rows: Iterable[Row], evaluation: Evaluation, options: Options) -> Iterable[Row]:
    """Give the rows of the lines that have the feature asked for."""
    if not options.filters:
        return rows
    fields = Fields(evaluation.split.in_header)
    wanted: ItemFilter = parse_filter(options.filters, fields, kinds_of(options))
    return compress(rows, evaluation.select(wanted))


def _ordered(rows: Iterable[tuple[float, Row]], evaluation: Evaluation, options: Options) -> list[tuple[float, Row]]:
    """Order rows by score, the worst or the best first, where that is asked for."""
    if not (options.sort or options.reverse_sort):
        return list(rows)
    greatest_first = evaluation.scores[0].greatest_first(worst=options.sort)
    return sorted(rows, key=itemgetter(0), reverse=greatest_first)


def _shows_colours() -> bool:
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _marker(evaluation: Evaluation, options: Options) -> Marker:
    features = rank(options, evaluation)
    marked = features.only(features.p_values < STYLES[-1][0])
    p_values = dict(zip(marked.names, marked.p_values.tolist(), strict=True))
    return Marker(p_values, Fields(evaluation.split.in_header), kinds_of(options).tokens)


def _write_rows(rows: Sequence[tuple[float, Sequence[str]]]) -> None:
    scores, texts = map(itemgetter(0), rows), map(itemgetter(1), rows)
    _write(line_rows(scores, texts, for_terminal=sys.stdout.isatty()))


def _write(rows: Iterator[str]) -> None:
    for row in rows:
        sys.stdout.write(row + "\n")
