"""Panels on the loss: how losses are spread, which kind of miss costs most, which lines are hard.

The panels for a metric without losses stand at the end; they are made from the scores of lines and of parts of them.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from geval_py.explaining import losses
from geval_py.explaining.significance import LEAST_LINES
from geval_py.reports import contents, quality_panels
from geval_py.reports.charts import Block, Row, bars, dots, histogram, joined_bars
from geval_py.reports.drawing import Chart, Palette
from geval_py.reports.panels import OUTCOMES, Key, Panel, figure, interval_kind, p_text, percent, perplexity, table_of
from geval_py.scoring.metrics.base import exp
from geval_py.tables.escapes import short
from geval_py.tables.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from geval_py.explaining.worst_features import Culprit
    from geval_py.reports.contents import BadFeature, Overview, Report, ScoredParts
    from geval_py.scoring.scores import MetricScore
    from geval_py.tables.table import Table


OUTCOME_COLOURS = {
    losses.Outcome.RIGHT: "good",
    losses.Outcome.LISTED: "listed",
    losses.Outcome.MISSED: "bad",
    losses.Outcome.NO_GUESS: "none",
}
OUTCOMES_METHOD = (
    "First guess right: the word with the greatest mass is the expected one. Listed: the expected word is listed, "
    "but not first. Not listed: it only has a share of the rest. No guess: the line has nothing but a rest."
)


def spread_chart(
    bins: Sequence[losses.Bin], lines: int, mean_loss: float, bits: int | None, palette: Palette
) -> Chart:
    """Draw the shares of the lines by their loss in nats, and mark the mean and the loss of knowing nothing."""
    blocks = [
        Block(
            start=one.low,
            end=one.high,
            share=one.lines / lines,
            name=OUTCOMES[one.outcome],
            colour=palette.of_outcome(one.outcome),
            said=f"{one.low:g} to {one.high:g} nats, {OUTCOMES[one.outcome]}: {counted(one.lines, 'line')}",
        )
        for one in bins
    ]
    marks = [(mean_loss, "mean")] if math.isfinite(mean_loss) else []
    if bits is not None:
        marks.append((bits * math.log(2), "knows nothing"))
    return histogram(blocks, marks, palette)


def costs_chart(shares: Sequence[losses.OutcomeShare], palette: Palette) -> Chart:
    """Draw the shares of the lines, and of the loss, by the outcome of the lines."""
    of_lines, of_loss = _blocks(shares, "lines", palette), _blocks(shares, "loss", palette)
    return joined_bars(list(of_lines), list(of_loss), ("share of the lines", "share of the loss"), palette)


def _blocks(shares: Sequence[losses.OutcomeShare], of: str, palette: Palette) -> Iterator[Block]:
    at = 0.0
    for one in shares:
        share = one.share_of_lines if of == "lines" else one.share_of_loss
        name = OUTCOMES[one.outcome]
        yield Block(
            start=at,
            end=at + share,
            share=share,
            name=name,
            colour=palette.of_outcome(one.outcome),
            said=f"{name}: {percent(share)} of the {of}",
        )
        at += share


def spread_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the spread of losses."""
    metric, lines = report.evaluation.scores[0].metric, len(report.line_losses)
    above = float((report.line_losses > (metric.bits or 0) * math.log(2)).mean())
    nothing = f"{percent(above)} of the lines lose more than an output that knows nothing" if metric.bits else ""
    sentence = f"The mean loss is {figure(report.mean_loss)} nats, a perplexity of {perplexity(report.mean_loss)}"
    infinite = (
        f" The drawing leaves out {counted(report.infinite, 'line')} with an infinite loss."
        if report.infinite
        else ""
    )
    return Panel(
        key="spread",
        question="How are the losses spread?",
        sentence=f"{sentence}; {nothing}.{infinite}" if nothing else f"{sentence}.{infinite}",
        chart=spread_chart(report.bins, lines, report.mean_loss, metric.bits, palette),
        legend=_legend(report, lambda one: percent(one.share_of_lines)),
        table=table_of(
            (
                ("from (nats)", "figure"),
                ("to", "figure"),
                ("outcome", "text"),
                ("lines", "count"),
                ("share", "share"),
            ),
            [(b.low, b.high, OUTCOMES[b.outcome], b.lines, b.lines / lines) for b in report.bins],
        ),
        method=f"The loss of a line is −ln of the probability of its word. {OUTCOMES_METHOD}",
    )


def documents_panel(report: Report, palette: Palette) -> Panel | None:
    """Return the panel on how documents differ; None without documents, or with few."""
    spread = report.by_document
    if spread is None:
        return None
    (low, high), by_chance = spread.quartiles, spread.by_chance
    bins = contents.score_bins(spread.means)
    blocks = [
        Block(
            start=one.low,
            end=one.high,
            share=one.lines / len(spread.means),
            name="documents",
            colour=palette.accent,
            said=f"{one.low:g} to {one.high:g} nats: {counted(one.lines, 'document')}",
        )
        for one in bins
    ]
    chance = f"{perplexity(by_chance[0])} to {perplexity(by_chance[1])}"
    return Panel(
        key="documents",
        question="Do documents differ?",
        sentence=f"Half of the {len(spread.means):,} documents by {short(spread.column)} have a perplexity of "
        f"{perplexity(low)} to {perplexity(high)}; by chance alone it would be {chance}.",
        chart=histogram(
            blocks,
            [(statistics.median(spread.means.tolist()), "median")],
            palette,
            title="mean loss of a document in nats",
        ),
        table=table_of(
            (("from (nats)", "figure"), ("to", "figure"), ("documents", "count")),
            [(one.low, one.high, one.lines) for one in bins],
        ),
        method="A document is the lines with the same value in the column. By chance alone: lines are dealt out to "
        f"documents at random, {contents.DEALT} times. The quartiles are of the documents’ mean losses.",
    )


def costs_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the costs of each kind of miss."""
    worst = max(report.shares, key=lambda one: one.share_of_loss)
    what = f"{percent(worst.share_of_lines)} of the lines ({OUTCOMES[worst.outcome]})"
    costs = f"{what} make {percent(worst.share_of_loss)} of the loss"
    return Panel(
        key="costs",
        question="Which kind of miss costs most?",
        sentence=f"{costs}: their perplexity is {perplexity(worst.mean_loss)}.",
        finding=f"{costs}.",
        chart=costs_chart(report.shares, palette),
        legend=_legend(report, lambda one: f"perplexity {perplexity(one.mean_loss)}"),
        table=table_of(
            (("outcome", "text"), ("lines", "count"), ("share of lines", "share"), ("share of loss", "share"),
             ("mean loss (nats)", "figure"), ("perplexity", "figure")),
            [(OUTCOMES[one.outcome], one.lines, one.share_of_lines, one.share_of_loss, one.mean_loss,
              exp(one.mean_loss)) for one in report.shares],
        ),
        method=f"{OUTCOMES_METHOD} Shares of the loss are of its finite part.",
    )  # fmt: skip


def _legend(report: Report, say: Callable[[losses.OutcomeShare], str]) -> tuple[Key, ...]:
    return tuple(
        Key(colour=OUTCOME_COLOURS[one.outcome], text=f"{OUTCOMES[one.outcome]}: {say(one)}") for one in report.shares
    )


# The loss by parts of the lines: long words, rare words, columns of the input, features of bad lines


_INTERVAL = "The perplexity is e to the mean loss; the interval is Student’s, of 95 %, over the lines of the part."


def parts_chart(parts: Sequence[losses.Part], mean_loss: float, palette: Palette) -> Chart:
    """Draw the perplexity of each part with its interval, and of all lines as a rule."""
    rows = [
        Row(
            label=part.label,
            value=exp(part.mean_loss),
            low=None if part.low is None else exp(part.low),
            high=None if part.high is None else exp(part.high),
            lines=part.lines,
            said=f"{short(part.label)}: perplexity {perplexity(part.mean_loss)}, {counted(part.lines, 'line')}",
        )
        for part in parts
    ]
    return dots(rows, palette, rule=exp(mean_loss))


def culprits_chart(culprits: Sequence[Culprit], palette: Palette) -> Chart:
    """Draw by how much the perplexity would fall if the lines with a feature were no worse than the others."""
    rows = [
        Row(
            label=one.feature,
            value=one.fall,
            low=one.low,
            high=one.high,
            said=f"{short(one.feature)}: {percent(one.fall)} on {counted(one.lines, 'line')}",
        )
        for one in culprits
    ]
    return bars(rows, palette, [f"{counted(one.lines, 'line')}, q {p_text(one.q)}" for one in culprits])


def length_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the length of words."""
    return Panel(
        key="length",
        question="Are long words harder?",
        sentence=_worst_and_best("Words of {} characters", "those of {}", report.by_length),
        chart=parts_chart(report.by_length, report.mean_loss, palette),
        table=_parts_table("characters", report.by_length),
        method=f"By the number of characters of the expected word. {_INTERVAL}",
    )


def frequency_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the frequency of words in train."""
    total, first = report.mean_loss * len(report.line_losses), report.by_frequency[0]
    share = percent(first.lines * first.mean_loss / total) if math.isfinite(first.mean_loss) else ""
    lost = f" and {share} of the loss" if share else ""
    seen = {"never": "never seen", "once": "seen once"}.get(first.label, f"seen {first.label} times")
    sentence = f"Words {seen} in train are {percent(first.lines / len(report.line_losses))} of the lines{lost}."
    return Panel(
        key="frequency",
        question="Does it know the frequent words?",
        sentence=sentence,
        chart=parts_chart(report.by_frequency, report.mean_loss, palette),
        table=_parts_table("times in train", report.by_frequency),
        method=f"By how often train/expected.tsv has the expected word. {_INTERVAL}",
    )


def column_panels(report: Report, palette: Palette) -> Iterator[Panel]:
    """Yield a panel on each column of the input."""
    for number, of in enumerate(report.by_column, 1):
        name = short(of.column)
        what = f"the length of {name}" if of.kind == "words" else name
        yield Panel(
            key=f"column-{number}",
            question=f"Does {what} matter?",
            sentence=_column_sentence(name, of),
            chart=parts_chart(of.parts, report.mean_loss, palette),
            table=_parts_table("words" if of.kind == "words" else name, of.parts),
            method=f"{PARTS_METHODS[of.kind]} {_INTERVAL}",
        )


def _column_sentence(name: str, of: losses.Parts) -> str:
    literal = name.replace("{", "{{").replace("}", "}}")
    lines = f"Lines with {{}} words in {literal}" if of.kind == "words" else f"Lines with {literal} {{}}"
    return _worst_and_best(lines, "those with {}", of.parts)


PARTS_METHODS = {
    "number": "Where there are more than ten numbers, ranges have about as many lines each.",
    "value": "Values with fewer than ten lines, and those behind the ten most frequent, are put together.",
    "words": "By the number of words, which are separated by spaces.",
}
FEATURES_METHOD = (
    "Words and shapes of words on at least ten lines, chosen one after the other, each time the one that explains "
    "most of what those before it left open"
)


def culprits_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the features of bad lines."""
    found = report.culprits
    cost = explained = ""
    if found:
        first = found[0]
        lines = f"the {first.lines:,} lines with {short(first.feature)}"
        cost = f"If {lines} were no worse than the others, the perplexity would fall by {percent(first.fall)}."
        together = "Together, those below explain" if len(found) > 1 else "That explains"
        explained = f" {together} {percent(found[-1].explained)} of the variance of the loss."
    return Panel(
        key="culprits",
        question="What goes with bad lines?",
        sentence=f"{cost}{explained}" or "No word, and no shape of a word, goes with bad lines by more than chance.",
        finding=cost,
        chart=culprits_chart(found, palette) if found else None,
        table=table_of(
            (("feature", "text"), ("lines", "count"), ("perplexity", "figure"), ("fall", "share"), ("from", "share"),
             ("to", "share"), ("q", "text"), ("explained", "share")),
            [(short(one.feature, 60), one.lines, one.perplexity, one.fall, one.low, one.high, p_text(one.q),
              one.explained) for one in found],
        ),
        method=f"{FEATURES_METHOD}; by how far the perplexity would fall. geval -w lists all.",
    )  # fmt: skip


def _worst_and_best(one: str, other: str, parts: Sequence[losses.Part]) -> str:
    """Name the worst and the best part, and say if their intervals overlap; the two patterns take their labels."""
    told = [part for part in parts if part.lines >= LEAST_LINES and math.isfinite(part.mean_loss)]
    if len(told) < 2:
        return "There are too few lines of each kind to tell."
    worst, best = (choose(told, key=lambda part: part.mean_loss) for choose in (max, min))
    sure = worst.low is not None and best.high is not None and worst.low > best.high
    tail = "" if sure else "; the intervals overlap"
    what = one.format(short(worst.label)), other.format(short(best.label))
    figures = perplexity(worst.mean_loss), perplexity(best.mean_loss)
    return f"{what[0]} have a perplexity of {figures[0]}, {what[1]} of {figures[1]}{tail}."


def _parts_table(name: str, parts: Sequence[losses.Part]) -> Table:
    bounds = (("perplexity", "figure"), ("from", "figure"), ("to", "figure"))
    rows = []
    for part in parts:
        low, high = (None if end is None else exp(end) for end in (part.low, part.high))
        rows.append((short(part.label, 60), part.lines, part.mean_loss, exp(part.mean_loss), low, high))
    return table_of(((name, "text"), ("lines", "count"), ("mean loss (nats)", "figure"), *bounds), rows)


# For any metric


def standing_panel(overview: Overview, palette: Palette) -> Panel:
    """Return the panel on the score and its uncertainty."""
    score = overview.evaluation.scores[0]
    rows = [row for row in quality_panels.output_rows(overview, "words", palette) if math.isfinite(row.value)]
    best = score.metric.measure.best
    end = f": the best is {figure(best)}" if math.isfinite(best) else ""
    method = f"Of {short(score.name)}, {score.direction} is better{end}."
    return quality_panels.score_panel(
        overview, rows, _linear(rows, palette, score) if rows else None, "score", method
    )


def _linear(rows: Sequence[Row], palette: Palette, score: MetricScore, rule: float | None = None) -> Chart:
    return dots(rows, palette, rule=rule, title=short(score.name), logarithmic=False)


def scores_panel(overview: Overview, palette: Palette) -> Panel | None:
    """Return the panel on the spread of the lines' scores; None if no single line has a score."""
    known, lines = overview.known, len(overview.line_scores)
    if not len(known):
        return None
    score, mean = overview.evaluation.scores[0], float(known.mean())
    best = score.metric.measure.best
    share = percent(int((known == best).sum()) / lines)
    of_best = f"{share} of the lines have the best score, {figure(best)}; the" if math.isfinite(best) else "The"
    others = lines - len(known)
    left_out = f" {others:,} lines have no finite score, and are left out." if others else ""
    blocks = [
        Block(
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
        sentence=f"{of_best} mean of the lines is {figure(mean)}.{left_out}",
        chart=histogram(blocks, [(mean, "mean")], palette, title=f"{short(score.name)} of the line"),
        table=table_of(
            (("from", "figure"), ("to", "figure"), ("lines", "count"), ("share", "share")),
            [(one.low, one.high, one.lines, one.lines / lines) for one in overview.bins],
        ),
        method=f"The score of a line is what {short(score.name)} gives of the line alone. That of an output need not "
        "be their mean.",
    )


def expected_panel(overview: Overview, palette: Palette) -> Panel | None:
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


def input_panels(overview: Overview, palette: Palette) -> Iterator[Panel]:
    """Yield a panel on each column of the input."""
    for number, of in enumerate(overview.by_column, 1):
        what = f"the length of {short(of.column)}" if of.kind == "words" else short(of.column)
        yield _parts_panel(overview, of, palette, f"column-{number}", f"Does {what} matter?")


def _parts_panel(overview: Overview, of: ScoredParts, palette: Palette, key: str, question: str) -> Panel:
    score = overview.evaluation.scores[0]
    answers = "the answer" if of.column == contents.EXPECTED and key == contents.EXPECTED else short(of.column)
    rows = [
        Row(
            label=part.label,
            value=part.score,
            low=None if part.interval is None else part.interval.ends[0],
            high=None if part.interval is None else part.interval.ends[1],
            lines=part.lines,
            said=f"{short(part.label)}: {figure(part.score)}, {part.lines:,} lines",
        )
        for part in of.parts
    ]
    bounds = ((short(score.name), "figure"), ("from", "figure"), ("to", "figure"))
    known = (part.interval for part in of.parts if part.interval is not None)
    interval = next((f", with {interval_kind(one)}" for one in known), "")
    return Panel(
        key=key,
        question=question,
        sentence=_best_and_worst_mean(of, answers, score),
        chart=_linear(rows, palette, score, rule=score.value),
        table=table_of(
            (("words" if of.kind == "words" else answers, "text"), ("lines", "count"), *bounds),
            [(short(row.label, 60), row.lines, row.value, row.low, row.high) for row in rows],
        ),
        method=f"{PARTS_METHODS[of.kind]} The score is that of the lines of the part{interval}.",
    )


def _best_and_worst_mean(of: ScoredParts, answers: str, score: MetricScore) -> str:
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


def features_panel(overview: Overview, palette: Palette) -> Panel | None:
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
        method=f"{FEATURES_METHOD}. Means are of the scores of lines. geval -w lists all.",
    )


def _feature_row(one: BadFeature, palette: Palette) -> Row:
    said = f"{short(one.feature)}: {figure(one.mean)} on {one.lines:,} lines"
    return Row(label=one.feature, value=one.mean, lines=one.lines, said=said, colour=palette.bad)
