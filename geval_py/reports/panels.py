"""The panels of a report: a question each, with its answer in a sentence, a chart and a table.

In the order of the page: the score and its interval, the comparison with other outputs, the spread of the lines'
figures, which lines are hard, whether probabilities are calibrated, and what mixing would bring. Above them is what
a reader should do next.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining import losses
from geval_py.explaining.calibration import Calibration, claim_sentence
from geval_py.explaining.comparison import Comparison, System, unit_text
from geval_py.explaining.losses import Outcome
from geval_py.explaining.mixing import Change, Mixture, improve
from geval_py.explaining.significance import LEVEL, MIN_LINES, Interval
from geval_py.reading.features import feature_words
from geval_py.reports import charts
from geval_py.reports.charts import (
    BAD,
    GOOD,
    LISTED,
    NONE,
    SOFT,
    BarPart,
    Chart,
    ChartRow,
    dots,
    figure,
    histogram,
)
from geval_py.reports.report import Report, as_perplexity, score_row
from geval_py.scoring.metrics.base import exp
from geval_py.scoring.scores import Evaluation
from geval_py.tables.escapes import short
from geval_py.tables.numbers import p_value, percent
from geval_py.tables.table import Column, Table, written
from geval_py.text import counted, visible, without_credentials


class Panel(NamedTuple):
    """A question and its answer: a sentence, a chart (None without anything to draw), its data, the method.

    ``key`` is its name in links and files. For the head of the page there are ``finding``, a shorter sentence, and
    ``advice``, what to do; "" for none.
    """

    key: str
    question: str
    sentence: str
    chart: Chart | None
    table: Table
    method: str
    finding: str = ""
    advice: str = ""


def sections(report: Report) -> list[tuple[str, list[Panel]]]:
    """Return the sections of a report that have a panel, in the order in which they are read."""
    quality, loss, hard = [quality_panel(report), comparison_panel(report)], [], []
    if report.of_losses:
        loss = [spread_panel(report), costs_panel(report)]
        hard = [length_panel(report), frequency_panel(report), features_panel(report)]
    else:
        hard = [spread_panel(report), expected_panel(report), features_panel(report)]
    for number, (column, grouping) in enumerate(report.columns(), 1):
        name = short(column)
        what = f"the length of {name}" if grouping.kind == "words" else name
        hard.append(_grouping_panel(report, f"column-{number}", f"Does {what} matter?", grouping, name))
    calibrated = [] if report.calibration is None else calibration_panels(report.calibration)
    panels: list[tuple[str, list[Panel | None]]] = [
        ("How good, how sure", quality),
        (f"Where the loss comes from{report.of_sample}", loss),
        (f"Which lines are hard{report.of_sample}", hard),
        ("Calibration, and what would help", [*calibrated, help_panel(report)]),
    ]
    return [(title, some) for title, of_section in panels if (some := [panel for panel in of_section if panel])]


def next_step(report: Report, panels: Iterable[Panel]) -> str:
    """Return a paragraph on what a reader should do next, the quickest step first."""
    by_key = {panel.key: panel for panel in panels}
    steps = [panel.advice for panel in by_key.values() if panel.advice]
    if (panel := by_key.get("help")) and panel.finding:
        steps.insert(0, panel.sentence)
    if report.infinite:
        step = "Give every line a rest (:prob), so that no word is impossible: an infinite loss decides the score."
        steps.insert(0, step)
    return " ".join(steps) or "Read the worst lines at the end of this page: they show what the model lacks."


def chart_of(evaluation: Evaluation, name: str) -> Chart:
    """Return a chart of the report: spread, costs, length, frequency, culprits, or by a column of the input.

    Raises UsageError for another name, and where there is nothing to draw.
    """
    report = Report(evaluation)
    groupings = dict(report.columns())
    panel = None
    if name in groupings:
        panel = _grouping_panel(report, "column", "", groupings[name], name)
    elif name in CHARTS and (report.of_losses or name in ("spread", "culprits")):
        panel = CHARTS[name](report)
    if panel is None or panel.chart is None:
        names = visible(", ".join([*CHARTS, *groupings]))
        raise UsageError(f"there is no chart {visible(name)!r} of {report.value_name}\n  charts: {names}")
    return panel.chart


Writer: TypeAlias = Callable[[Any], str]
whole: Writer = "{:,}".format
ENDS: list[tuple[str, Writer]] = [("from", figure), ("to", figure)]  # of an interval
RANGE: list[tuple[str, Writer]] = [("range from", percent), ("to", percent)]


def table_of(head: Iterable[tuple[str, Writer]], rows: Iterable[Sequence[object]]) -> Table:
    """Return the table of a panel; ``head`` has the name of each column, and what writes its cells."""
    columns = [Column(name, write=write, alignment="left" if write is written else "right") for name, write in head]
    return Table(columns, list(rows))


# How good it is


def quality_panel(report: Report) -> Panel:
    """Return the panel on the score and its interval, beside other outputs and ones that know little."""
    score, interval, comparison = report.score, report.interval, report.comparison
    (low, high), value, measure = interval.ends, score.value, score.metric.measure
    rows = [score_row("this output", value, report.unit, interval)]
    if comparison is not None:
        names = comparison.short_names()
        others = (system for system in comparison.systems if system.name != comparison.baseline)
        rows += [score_row(names[one.name], one.score, report.unit, one.interval, SOFT) for one in others]
    if report.of_losses:
        if report.calibration is not None and report.calibration.claim is not None:
            rows.insert(0, score_row("its own claim", exp(report.calibration.claim.claimed), colour=BAD))
        method = "An output that knows nothing has :1 on each line."
        if report.unigram is not None:
            rows.append(score_row("words of train", report.unigram, colour=SOFT))
            method += " Words of train: on each line the 10,000 commonest words of train, by their shares."
        if score.metric.bits is not None:
            rows.append(score_row("knows nothing", 2.0**score.metric.bits, colour=SOFT))
    else:
        end = f": the best is {figure(measure.best)}" if math.isfinite(measure.best) else ""
        method = f"Of {short(score.name)}, {score.direction} is better{end}."
    rows = [row for row in rows if math.isfinite(row.value)]
    sentences = [f"{short(score.name)} is {figure(value)}."]
    if low is None or high is None:
        sentences.append("No interval can be computed: no line differs from another.")
    else:
        sentences.append(f"The true score, on endlessly many such lines, is {figure(low)} to {figure(high)} (95 %).")
        if 0.0 < low <= value <= high < math.inf:  # the score of another set varies, too
            least, greatest = sorted((measure.best, measure.worst))
            if measure.in_nats and score.unit == "words":
                ends = [value * (end / value) ** math.sqrt(2) for end in (low, high)]
            else:
                ends = [value + (end - value) * math.sqrt(2) for end in (low, high)]
            lower, upper = (figure(min(max(end, least), greatest)) for end in ends)
            sentences.append(f"Another set of as many lines would score {lower} to {upper}.")
    return Panel(
        "quality",
        "How good is it, and how sure is that?",
        sentence=" ".join([*sentences, *(f"{note[0].upper()}{note[1:]}." for note in report.notes)]),
        chart=dots(rows, title=report.value_name, logarithmic=report.of_losses) if rows else None,
        table=table_of(
            [("what", written), ("perplexity" if report.of_losses else "score", figure), *ENDS],
            [(short(row.label, 60), row.value, row.low, row.high) for row in rows],
        ),
        method=f"With a {interval_text(interval)}. {method}",
        finding=_against_references(report),
    )  # fmt: skip


def _against_references(report: Report) -> str:
    """Compare the score with those of outputs that know little, in a sentence; "" if no such score exists."""
    score, metric = report.score, report.score.metric
    references = [("an output that knows nothing", metric.uninformed_value)]
    if report.unigram is not None:
        value = metric.measure.formula((math.log(report.unigram),), 1)
        references.append(("the word frequencies of train", value))
    if metric.name == "Accuracy" and report.words_of_train:
        word, _ = report.words_of_train.most_common(1)[0]
        share = sum(answer == word for answer in report.expected) / len(report.values)
        references.append((f"the commonest word of train, `{short(word)}`, on each line", share))
    if report.baselines:
        best = min if score.direction == "lower" else max
        references.append(best(report.baselines.items(), key=itemgetter(1)))
    parts = []
    for name, reference in references:
        if reference is None:
            continue
        low, high = sorted((score.value, reference))
        how = "better than" if (score.value < reference) == (score.direction == "lower") else "worse than"
        if figure(low) == figure(high) or (low and high / low < 1.05 and score.unit in ("words", "probability")):
            how = "about as good as"
        elif score.unit in ("words", "probability"):
            how = f"{high / low:,.1f} times {how}" if low and math.isfinite(high) else how
        else:
            how = f"{figure(high - low)}{unit_text(score.unit)} {how}" if math.isfinite(high) else how
        parts.append(f"{how} {name} ({figure(reference)})")
    joined = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return joined and f"{short(score.name)} {figure(score.value)}: {joined}."


def interval_text(interval: Interval) -> str:
    """Describe an interval in a few words."""
    units = "lines" if interval.documents is None else f"{interval.documents:,} documents"
    return f"95 % interval over {units}"


def comparison_panel(report: Report) -> Panel | None:
    """Return the panel that compares outputs; None without another output."""
    comparison = report.comparison
    if comparison is None:
        return None
    names = comparison.short_names()
    others = [system for system in comparison.systems if system.name != comparison.baseline]
    question = f"Is {short(names[others[0].name])} better?" if len(others) == 1 else "Is another one better?"
    sentences = [_verdict(system, comparison) for system in others[:3]]
    first = others[0]
    if first.least_detectable is not None and first.least_detectable < math.inf:
        detectable = comparison.detectable_text(first.least_detectable)
        sentences.append(f"The minimum detectable difference is {detectable} (80 % power, 5 % level).")
    intervals = (one.effect_interval for one in others if one.effect_interval is not None)
    interval = next((f", with a {interval_text(one)}" for one in intervals), "")
    rows, chart = differences(comparison)
    better = next((short(names[system.name]) for system in others if _is_better(system, comparison)), "")
    return Panel(
        "comparison",
        question,
        sentence=" ".join(sentences),
        finding=_verdict(first, comparison),
        advice=better and f"Start from {better}, which is significantly better.",
        chart=chart,
        table=table_of(
            [("output", written), ("score", figure), ("difference", figure), *ENDS, ("p", written), ("won", percent),
             ("lost", percent), ("tied", percent)],
            [(short(names[one.name], 60), one.score, row.value, row.low, row.high,
              p_value(one.p_value), one.won, one.lost, one.tied)
             for one, row in zip(others, rows, strict=True)],
        ),
        method=f"{'Per cent above the score' if comparison.effect_unit == '%' else 'Score minus that'} of "
        f"{short(names[comparison.baseline], 60)}{interval}; p: {comparison.method}, two-sided; won: lines with a "
        f"{'lower loss' if comparison.of_losses else 'better score'}.",
    )  # fmt: skip


def differences(comparison: Comparison) -> tuple[list[ChartRow], Chart | None]:
    """Return the other systems' scores minus the baseline's, with intervals, and a chart of them.

    A difference is NaN where none is finite, and the chart is None if no difference is.
    """
    colours = {True: GOOD, False: BAD, None: SOFT}
    names, rows = comparison.short_names(), []
    for system in comparison.systems:
        if system.name != comparison.baseline:
            low, high = (None, None) if system.effect_interval is None else system.effect_interval.ends
            value = math.nan if system.effect is None else system.effect
            colour = colours[_is_better(system, comparison)]
            rows.append(ChartRow(names[system.name], value, low, high, colour=colour))
    drawn = [row for row in rows if not math.isnan(row.value)]
    title = f"difference in {comparison.effect_unit}" if unit_text(comparison.effect_unit) else "difference"
    return rows, dots(drawn, title=title, rule=0.0, rule_name=names[comparison.baseline]) if drawn else None


def _is_better(system: System, comparison: Comparison) -> bool | None:
    """Whether a system is better than the baseline by more than chance; None if the test cannot tell."""
    if system.effect is None or system.p_value is None or system.p_value >= LEVEL:
        return None
    return (system.effect < 0) == (comparison.direction == "lower")


def _verdict(system: System, comparison: Comparison) -> str:
    name, better = short(comparison.short_names()[system.name]), _is_better(system, comparison)
    if system.effect is None or system.p_value is None:
        if not system.compared:
            return f"{name} cannot be compared: no line is finite in both."
        return f"{name} has {system.infinite} infinite losses, which other lines do not make up for."
    by = f"by {figure(abs(system.effect))}{unit_text(comparison.effect_unit)}"
    if better is None:
        return f"{name} differs {by}, which may be chance (p {p_value(system.p_value)})."
    won = f"; it wins {percent(system.won or 0.0)} of the lines" if comparison.has_line_scores else ""
    return f"{name} is {'better' if better else 'worse'} {by} (p {p_value(system.p_value)}){won}."


# Where the loss comes from


OUTCOMES = {  # names and colours
    Outcome.RIGHT: ("first guess right", GOOD),
    Outcome.LISTED: ("listed, not first", LISTED),
    Outcome.MISSED: ("not listed", BAD),
    Outcome.NO_GUESS: ("no guess", NONE),
}
_OUTCOMES_METHOD = (
    "First guess right: the most likely word is the expected one. Listed: the expected word is listed, "
    "but not first. Not listed: it only has a share of the rest. No guess: the line has nothing but a rest."
)
_ADVICE = {  # by the outcome that costs most
    Outcome.RIGHT: "",
    Outcome.LISTED: "Words that are listed, but not first, make {share} of the loss: rank the listed words better.",
    Outcome.MISSED: "Words that are not listed make {share} of the loss: list more words on each line.",
    Outcome.NO_GUESS: "Lines without a guess make {share} of the loss: list words on these lines.",
}


def spread_panel(report: Report) -> Panel | None:
    """Return the panel on the spread of the lines' losses or scores; None if no single line has a score."""
    values, lines, of_losses = report.values, len(report.values), report.of_losses
    name = short(report.score.name)
    if not of_losses and not len(report.finite):
        return None
    finite = np.isfinite(values)
    bins = losses.bins_of(values[finite], report.outcomes.codes[finite] if of_losses else None)
    marks = [(report.mean, "mean")] if math.isfinite(report.mean) else []
    if of_losses:
        bits = report.score.metric.bits
        sentence = f"The mean loss is {figure(report.mean)} nats, a perplexity of {figure(exp(report.mean))}"
        if bits is not None:
            marks.append((bits * math.log(2), "knows nothing"))
            above = float((values > bits * math.log(2)).mean())
            sentence += f"; {percent(above)} of the lines lose more than an output that knows nothing"
        sentence += "."
        if report.infinite:
            sentence += f" The drawing leaves out {counted(report.infinite, 'line')} with an infinite loss."
        question = "How are the losses spread?"
        method = f"The loss of a line is −ln of the probability of its word. {_OUTCOMES_METHOD}"
    else:
        best, others = report.score.metric.measure.best, lines - len(report.finite)
        share = percent(int((values == best).sum()) / lines)
        of_best = f"{share} of the lines have the best score, {figure(best)}; the" if math.isfinite(best) else "The"
        sentence = f"{of_best} mean of the lines is {figure(report.mean)}."
        sentence += f" {others:,} lines have no finite score, and are left out." if others else ""
        question = "How are the scores of lines spread?"
        method = (
            f"The score of a line is what {name} gives of the line alone. That of an output need not be their mean."
        )
    blocks = []
    for low, high, code, count in bins:
        outcome, colour = OUTCOMES[Outcome(code)] if of_losses else ("", charts.ACCENT)
        said = f"{low:g} to {high:g}{f' nats, {outcome}' if outcome else ''}: {counted(count, 'line')}"
        blocks.append(BarPart(low, high, count / lines, said, outcome, colour))
    head = [("from (nats)" if of_losses else "from", figure), ("to", figure), ("lines", whole), ("share", percent)]
    rows: list[list[object]] = [[low, high, count, count / lines] for low, high, _, count in bins]
    if of_losses:
        head.insert(2, ("outcome", written))
        for row, block in zip(rows, blocks, strict=True):
            row.insert(2, block.name)
    return Panel(
        "spread",
        question,
        sentence,
        chart=histogram(blocks, marks, None if of_losses else f"{name} of the line"),
        table=table_of(head, rows),
        method=method,
    )


def costs_panel(report: Report) -> Panel:
    """Return the panel on the costs of each kind of miss."""
    shares = losses.outcome_shares(report.values, report.outcomes.codes)
    worst = max(shares, key=lambda one: one.share_of_loss)
    costs = f"{percent(worst.share_of_lines)} of the lines ({OUTCOMES[worst.outcome][0]})"
    costs += f" make {percent(worst.share_of_loss)} of the loss"
    bars = []
    for what in ("lines", "loss"):
        parts = [one.share_of_lines if what == "lines" else one.share_of_loss for one in shares]
        blocks = []
        for one, share, end in zip(shares, parts, accumulate(parts), strict=True):
            name, colour = OUTCOMES[one.outcome]
            said = f"{name}: {percent(share)} of the {what}"
            blocks.append(BarPart(end - share, end, share, said, name, colour))
        bars.append((f"share of the {what}", blocks))
    return Panel(
        "costs",
        "Which kind of miss costs most?",
        sentence=f"{costs}: their perplexity is {figure(exp(worst.mean_loss))}.",
        finding=f"{costs}.",
        advice=_ADVICE[worst.outcome].format(share=percent(worst.share_of_loss)),
        chart=charts.stacked_bars(bars),
        table=table_of(
            [("outcome", written), ("lines", whole), ("share of lines", percent), ("share of loss", percent),
             ("mean loss (nats)", figure), ("perplexity", figure)],
            [(OUTCOMES[one.outcome][0], one.lines, one.share_of_lines, one.share_of_loss, one.mean_loss,
              exp(one.mean_loss)) for one in shares],
        ),
        method=f"{_OUTCOMES_METHOD} Shares of the loss are of its finite part.",
    )  # fmt: skip


# Which lines are hard: by their answers, columns of the input and documents, and features of bad lines


_GROUP_METHODS = {
    "range": "",
    "number": "Where there are more than ten numbers, ranges have about as many lines each.",
    "value": "Values with fewer than ten lines, and those behind the ten most frequent, are put together.",
    "words": "By the number of words, which are separated by spaces.",
}


def length_panel(report: Report) -> Panel:
    """Return the panel on the length of words."""
    grouping = losses.group_by_range(map(len, report.expected), losses.LENGTHS)
    rows = report.rows(grouping)
    return _rows_panel(
        report, "length", "Are long words harder?", rows, "characters",
        extremes(report, rows, "the word", "has", " characters"), "By the number of characters of the expected word.",
    )  # fmt: skip


def frequency_panel(report: Report) -> Panel | None:
    """Return the panel on the frequency of words in train; None without a train."""
    counts = report.words_of_train
    if not counts:
        return None
    rows = report.rows(losses.group_by_range(map(counts.__getitem__, report.expected), losses.FREQUENCIES))
    first, lines = rows[0], len(report.values)
    seen = {"never": "never seen", "once": "seen once"}.get(first.label, f"seen {first.label} times")
    lost = ""
    if math.isfinite(first.value):
        share = (first.lines or 0) * math.log(first.value) / (report.mean * lines)
        lost = f" and {percent(share)} of the loss"
    return _rows_panel(
        report, "frequency", "Does it know the frequent words?", rows, "times in train",
        f"Words {seen} in train are {percent((first.lines or 0) / lines)} of the lines{lost}.",
        "By how often train/expected.tsv has the expected word.",
    )  # fmt: skip


def expected_panel(report: Report) -> Panel | None:
    """Return the panel on hard answers; None if they, or their first columns, do not divide the lines."""
    grouping = losses.group_by_text([expected.partition("\t")[0] for expected in report.expected])
    if grouping is None:
        return None
    questions = {
        "words": "Are long answers harder?",
        "number": "Does the size of the answer matter?",
        "value": "Are some answers harder?",
    }
    return _grouping_panel(report, "expected", questions[grouping.kind], grouping, "the answer")


def _grouping_panel(report: Report, key: str, question: str, grouping: losses.Grouping, name: str) -> Panel:
    rows, (verb, unit) = report.rows(grouping), ("has", " words") if grouping.kind == "words" else ("is", "")
    sentence = extremes(report, rows, name, verb, unit)
    return _rows_panel(report, key, question, rows, unit.strip() or name, sentence, _GROUP_METHODS[grouping.kind])


def _rows_panel(
    report: Report, key: str, question: str, rows: Sequence[ChartRow], heading: str, sentence: str, method: str
) -> Panel:
    """Return a panel on the figures of groups of lines."""
    documents = report.documents
    over = "lines" if documents is None or documents.are_lines else "documents, or over lines of one document"
    figures = (
        "The perplexity is e to the mean loss" if report.of_losses else "The score is that of the lines of the group"
    )
    of_all = exp(report.mean) if report.of_losses else report.score.value
    return Panel(
        key,
        question,
        sentence,
        chart=dots(rows, title=report.value_name, rule=of_all, logarithmic=report.of_losses),
        table=table_of(
            [(heading, written), ("lines", whole), (report.value_name, figure), *ENDS, ("differs", written)],
            [(short(row.label, 60), row.lines, row.value, row.low, row.high, row.note) for row in rows],
        ),
        method=f"{method} {figures}, with its interval of 95 % over {over}. Small q: the lines of a group rank "
        "otherwise than the other lines, corrected for the number of groups.",
    )  # fmt: skip


def extremes(report: Report, rows: Sequence[ChartRow], what: str, verb: str, unit: str) -> str:
    """Name the worst and the best group, with q."""
    told = [row for row in rows if (row.lines or 0) >= MIN_LINES and math.isfinite(row.value)]
    if len(told) < 2:
        return "There are too few lines of each kind to tell."
    lowest, highest = (choose(told, key=lambda row: row.value) for choose in (min, max))
    name = "The perplexity" if report.of_losses else report.value_name
    if math.isclose(lowest.value, highest.value):
        return f"{name} is {figure(lowest.value)} in each part."
    lower_is_better = report.of_losses or report.score.direction == "lower"
    worst, best = (highest, lowest) if lower_is_better else (lowest, highest)
    of_worst, of_best = (f" ({row.note})" if row.note else "" for row in (worst, best))
    return (
        f"{name} is worst, {figure(worst.value)}, where {what} {verb} {short(worst.label)}{unit}{of_worst}, "
        f"and best, {figure(best.value)}, where it {verb} {short(best.label)}{of_best}."
    )


def features_panel(report: Report) -> Panel | None:
    """Return the panel on the features of bad lines; None if no single line has a score."""
    if not report.of_losses and not len(report.finite):
        return None
    columns = {name: column.tolist() for name, column in report.features.columns.items()}
    names = list(map(feature_words, report.features.names))
    head: list[tuple[str, Writer]]
    rows, cells = list[ChartRow](), list[tuple[object, ...]]()
    for place, name in enumerate(names):
        lines, q = columns["count"][place], f"q {p_value(columns['q'][place])}"
        if report.of_losses:
            gain, low, high = (columns[column][place] for column in ("gain", "gain_low", "gain_high"))
            rows.append(ChartRow(name, gain, low, high, lines, q, BAD))
            cells.append((short(name, 60), lines, columns["perplexity"][place], gain, low, high, q))
        else:
            rows.append(ChartRow(name, columns["score"][place], lines=lines, note=q, colour=BAD))
            cells.append((short(name, 60), lines, columns["score"][place], q))
    finding = "No word or shape of a word is significantly more common in bad lines."
    if names:
        of_sample = " of the sample" if report.of_sample else ""
        what, value = f"{rows[0].lines:,} lines{of_sample} with {short(names[0])}", rows[0].value
        finding = f"The {what} have a mean score of {figure(value)}; that of all lines is {figure(report.mean)}."
        if report.of_losses:
            finding = f"If the {what} were no worse than the others, the perplexity would fall by {percent(value)}."
    if report.of_losses:
        head = [("perplexity", figure), ("fall", percent), ("from", percent), ("to", percent)]
        chart = dots(rows, title="fall of the perplexity", rule=0.0, rule_name="no fall", write=percent)
        method = "by how far the perplexity would fall"
    else:
        head = [("mean score", figure)]
        chart = dots(rows, title=report.value_name, rule=report.mean)
        method = "the surest first. Means are of the scores of lines"
    return Panel(
        "culprits",
        "What is common in bad lines?",
        sentence=finding,
        chart=chart if names else None,
        table=table_of([("feature", written), ("lines", whole), *head, ("q", written)], cells),
        method=f"Words and shapes of words on at least ten lines with q below 0.05; {method}. geval -w lists all.",
        finding=finding if names else "",
    )


CHARTS: dict[str, Callable[[Report], Panel | None]] = {
    "spread": spread_panel,
    "costs": costs_panel,
    "length": length_panel,
    "frequency": frequency_panel,
    "culprits": features_panel,
}


# Calibration


_CALIBRATION_TEXTS = {  # a question, and what goes before the figures of its answer
    "words": ("Are the probabilities calibrated?", "Listed words claim", "and are right"),
    "guess": ("Can its first guess be trusted?", "First guesses claim", "and are right"),
    "rest": ("Is the rest large enough?", "The rest holds", "where there is a guess; the word was not listed"),
}


def calibration_panels(calibration: Calibration) -> list[Panel]:
    """Return the panels on listed words, the first guess and the rest; none if no line lists words."""
    claim = calibration.claim
    told = "" if claim is None else claim_sentence(claim)
    finding = "" if claim is None or claim.is_calibrated else told
    by_document = "" if calibration.documents is None else ", which is computed by document"
    panels = []
    for part, shares in calibration.parts().items():
        question, claims, come_true = _CALIBRATION_TEXTS[part]
        claimed, observed, low, high = map(percent, (shares.claimed, shares.observed, shares.low, shares.high))
        verdict = f"{shares.place} the calibrated range, {low} to {high}"
        sentence = f"{claims} {claimed} on average {come_true} {observed} of the time ({verdict})."
        panels.append(
            Panel(
                part,
                question,
                sentence=f"{sentence} {told}".rstrip() if part == "words" else sentence,
                finding=finding if part == "words" else "",
                chart=calibration.chart(part),
                table=table_of(
                    [("probability", percent), ("observed", percent), *RANGE, ("number", whole)],
                    [(one.claimed, one.observed, one.low, one.high, one.n) for one in shares.bins],
                ),
                method=f"95 % of calibrated outputs lie in the band{by_document}.",
            )
        )
    return panels


# What would help


def help_panel(report: Report) -> Panel | None:
    """Return the panel on mixing; None for what cannot be mixed."""
    if not report.can_be_tuned:
        return None
    mixtures = [improve(report.evaluation, documents=report.column)]
    if len(report.outputs) > 1:
        mixtures.append(improve(report.outputs, documents=report.column))
    rows, chart = changes(mixtures)
    taken = [mixture for mixture in mixtures if mixture.taken]
    sentence, finding = "No mixture that was tried is significantly better.", ""
    if taken:
        best = min(taken, key=lambda mixture: round(mixture.change.mean, 4))  # the simpler one if they are as good
        gain = f"Mixed, it would score about {figure(best.held_out)} in place of {figure(mixtures[0].score)}"
        paths = [without_credentials(output.output.path) for output in report.outputs]
        words = ["tune", *report.options, "-o", paths[0]] if best is mixtures[0] else ["mix", *report.options, *paths]
        command = visible(shlex.join(["geval", *words]))
        sentence, finding = f"{gain}, on lines that were held out ({command}).", f"{gain}."
    return Panel(
        "help",
        "What would help without another model?",
        sentence,
        chart,
        table=table_of(
            [("what", written), ("perplexity held out", figure), *ENDS, ("verdict", written)],
            [(row.label, row.value, row.low, row.high, row.note) for row in rows],
        ),
        method="The output is mixed with the frequent words of train and with a distribution that is the same for "
        "all words. The weights are found on nine tenths of the lines, and tried on the last tenth, in "
        f"{mixtures[0].folds} folds. A mixture is significantly better if the 95 % interval of the change lies below "
        "0, or if chance would give as much in at most 5 % of cases.",
        finding=finding,
    )


def changes(mixtures: Sequence[Mixture]) -> tuple[list[ChartRow], Chart]:
    """Return the present perplexity and the held-out one of each mixture, and a chart of them.

    The first mixture is of the output alone, the second of all outputs.
    """
    rows = [ChartRow("as it is", as_perplexity(mixtures[0].score, mixtures[0].unit), colour=SOFT)]
    for label, mixture in zip(("with train", "with the others"), mixtures, strict=False):
        value, base = (as_perplexity(score, mixture.unit) for score in (mixture.held_out, mixture.score))
        rows.append(change_row(label, value, base, mixture.change, mixture.taken))
    return rows, dots(rows, title="perplexity", rule=rows[0].value, rule_name="as it is", logarithmic=True)


def change_row(label: str, value: float, base: float, change: Change, taken: bool) -> ChartRow:
    """Return the row of a change from the perplexity ``base``; its interval is that of the change, applied to it.

    The note names what decided: the interval or, if that holds 0, the p-value, which sees smaller gains.
    """
    note = "significantly better" if change.high < 0.0 else f"probably better, p {p_value(change.p_value)}"
    is_bounded = math.isfinite(change.low) and math.isfinite(change.high)
    return ChartRow(
        label,
        value,
        low=base * exp(change.low) if is_bounded else None,
        high=base * exp(change.high) if is_bounded else None,
        note=note if taken else "not significantly better: leave it",
        colour=GOOD if taken else SOFT,
    )
