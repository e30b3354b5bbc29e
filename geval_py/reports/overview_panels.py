"""Panels for any metric, from the scores of lines and of parts of the lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geval_py.explaining.significance import LEAST_LINES
from geval_py.reports import charts, contents, loss_panels, quality_panels
from geval_py.reports.axes import Panel, figure, p_text, percent, table_of
from geval_py.tables.escapes import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from geval_py.reports.axes import Chart, Palette
    from geval_py.scoring.scores import MetricScore


def standing_panel(overview: contents.Overview, palette: Palette) -> Panel:
    """Return the panel on the score and its uncertainty."""
    score = overview.evaluation.scores[0]
    rows = [row for row in quality_panels.output_rows(overview, "words", palette) if math.isfinite(row.value)]
    method = f"Of {short(score.name)}, {score.direction} is better: the best is {figure(score.metric.measure.best)}."
    return quality_panels.score_panel(
        overview, rows, _linear(rows, palette, score) if rows else None, "score", method
    )


def _linear(rows: Sequence[charts.Row], palette: Palette, score: MetricScore, rule: float | None = None) -> Chart:
    return charts.dots(rows, palette, rule=rule, title=short(score.name), logarithmic=False)


def scores_panel(overview: contents.Overview, palette: Palette) -> Panel | None:
    """Return the panel on the spread of the lines' scores; None if no single line has a score."""
    known, lines = overview.known, len(overview.line_scores)
    if not len(known):
        return None
    score, mean = overview.evaluation.scores[0], float(known.mean())
    best = int((known == score.metric.measure.best).sum())
    others = lines - len(known)
    left_out = f" {others:,} lines have no finite score, and are left out." if others else ""
    blocks = [
        charts.Block(
            start=one.low,
            end=one.high,
            share=one.lines / lines,
            name="lines",
            colour=palette.accent,
            said=f"{one.low:g} to {one.high:g}: {one.lines:,} lines",
        )
        for one in overview.bins
    ]
    return Panel(
        key="spread",
        question="How are the scores of lines spread?",
        sentence=f"{percent(best / lines)} of the lines have the best score, {figure(score.metric.measure.best)}; "
        f"the mean of the lines is {figure(mean)}.{left_out}",
        chart=charts.histogram(blocks, [(mean, "mean")], palette, title=f"{short(score.name)} of the line"),
        table=table_of(
            (("from", "figure"), ("to", "figure"), ("lines", "count"), ("share", "share")),
            [(one.low, one.high, one.lines, one.lines / lines) for one in overview.bins],
        ),
        method=f"The score of a line is what {short(score.name)} gives of the line alone. That of an output need not "
        "be their mean.",
    )


def expected_panel(overview: contents.Overview, palette: Palette) -> Panel | None:
    """Return the panel on hard answers; None if the answers do not divide the lines into parts."""
    of = overview.by_expected
    if of is None:
        return None
    question = {
        "words": "Are long answers harder?",
        "number": "Does the size of the answer matter?",
        "value": "Are some answers harder?",
    }
    return _parts_panel(overview, of, palette, "expected", question[of.kind])


def input_panels(overview: contents.Overview, palette: Palette) -> Iterator[Panel]:
    """Yield a panel on each column of the input."""
    for number, of in enumerate(overview.by_column, 1):
        what = f"the length of {short(of.column)}" if of.kind == "words" else short(of.column)
        yield _parts_panel(overview, of, palette, f"column-{number}", f"Does {what} matter?")


def _parts_panel(
    overview: contents.Overview, of: contents.ScoredParts, palette: Palette, key: str, question: str
) -> Panel:
    score = overview.evaluation.scores[0]
    answers = "the answer" if of.column == contents.EXPECTED and key == contents.EXPECTED else short(of.column)
    rows = [
        charts.Row(
            label=part.label,
            value=part.score,
            low=None if part.interval is None else part.interval.low,
            high=None if part.interval is None else part.interval.high,
            lines=part.lines,
            said=f"{short(part.label)}: {figure(part.score)}, {part.lines:,} lines",
        )
        for part in of.parts
    ]
    bounds = ((short(score.name), "figure"), ("from", "figure"), ("to", "figure"))
    return Panel(
        key=key,
        question=question,
        sentence=_worst_and_best(of, answers, score),
        chart=_linear(rows, palette, score, rule=score.value),
        table=table_of(
            (("words" if of.kind == "words" else answers, "text"), ("lines", "count"), *bounds),
            [(short(row.label, 60), row.lines, row.value, row.low, row.high) for row in rows],
        ),
        method=f"{loss_panels.PARTS_METHODS[of.kind]} "
        "The score is that of the lines of the part, with its bootstrap interval of 95 %.",
    )


def _worst_and_best(of: contents.ScoredParts, answers: str, score: MetricScore) -> str:
    """Name the worst and the best part, and say if their intervals overlap."""
    told = [part for part in of.parts if part.lines >= LEAST_LINES and math.isfinite(part.score)]
    if len(told) < 2:
        return "There are too few lines of each kind to tell."
    lowest, highest = (choose(told, key=lambda part: part.score) for choose in (min, max))
    name = short(score.name)
    if math.isclose(lowest.score, highest.score):
        return f"{name} is {figure(lowest.score)} in each part."
    worst, best = (highest, lowest) if score.direction == "lower" else (lowest, highest)
    verb, unit = ("has", " words") if of.kind == "words" else ("is", "")
    low, high = lowest.interval, highest.interval
    tail = "" if low is not None and high is not None and low.high < high.low else "; the intervals overlap"
    return (
        f"{name} is worst, {figure(worst.score)}, where {answers} {verb} {short(worst.label)}{unit}, and best, "
        f"{figure(best.score)}, where it {verb} {short(best.label)}{tail}."
    )


def features_panel(overview: contents.Overview, palette: Palette) -> Panel | None:
    """Return the panel on the features of bad lines; None if no single line has a score."""
    if not len(overview.known):
        return None
    found, score = overview.features, overview.evaluation.scores[0]
    sentence = "No word, and no shape of a word, goes with bad lines by more than chance."
    finding = ""
    mean = float(overview.known.mean())
    if found:
        first = found[0]
        finding = (
            f"The {first.lines:,} lines with {short(first.feature)} have a mean score of {figure(first.mean)}; "
            f"that of all lines is {figure(mean)}."
        )
        sentence = finding
    return Panel(
        key="culprits",
        question="What goes with bad lines?",
        sentence=sentence,
        finding=finding,
        chart=_linear([_feature_row(one, palette) for one in found], palette, score, rule=mean) if found else None,
        table=table_of(
            (
                ("feature", "text"),
                ("lines", "count"),
                ("mean score", "figure"),
                ("q", "text"),
                ("explained", "share"),
            ),
            [(short(one.feature, 60), one.lines, one.mean, p_text(one.q), one.explained) for one in found],
        ),
        method=f"{loss_panels.FEATURES_METHOD}. Means are of the scores of lines. geval -w lists all.",
    )


def _feature_row(one: contents.BadFeature, palette: Palette) -> charts.Row:
    said = f"{short(one.feature)}: {figure(one.mean)} on {one.lines:,} lines"
    return charts.Row(label=one.feature, value=one.mean, lines=one.lines, said=said, colour=palette.bad)
