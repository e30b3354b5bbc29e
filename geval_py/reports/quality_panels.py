"""Panels on quality: how good an output is, whether another is better, and what tuning or mixing would bring."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from geval_py.explaining.significance import LEVEL, Interval
from geval_py.reports.axes import Chart, Palette
from geval_py.reports.charts import Row, dots
from geval_py.reports.panel import Panel, figure, p_text, percent, table_of
from geval_py.scoring.metrics.base import exp
from geval_py.tables.escapes import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.cross_validation import Change
    from geval_py.explaining.mixing import Mixture
    from geval_py.explaining.paired import System
    from geval_py.explaining.tuning import Tuning
    from geval_py.reports.contents import Overview, Report


UNSAID = ("share", "correlation", "answers' unit", "its square")  # units that are not written behind a number


def as_perplexity(value: float, unit: str) -> float:
    """Convert a score to a perplexity, by its unit: nats, bits, probability, or words (as it is).

    >>> as_perplexity(0.5, "probability"), round(as_perplexity(3.0, "bits"), 9)
    (2.0, 8.0)
    """
    if unit == "probability":
        return 1 / value if value else math.inf
    return value if unit == "words" else exp(value if unit == "nats" else value * math.log(2))


def score_row(label: str, value: float, unit: str, interval: Interval | None, colour: str = "") -> Row:
    """Return the row of a score, with its interval, as perplexities."""
    ends = [] if interval is None else sorted(as_perplexity(end, unit) for end in (interval.low, interval.high))
    low, high = ends or (None, None)
    shown = as_perplexity(value, unit)
    return Row(label=label, value=shown, low=low, high=high, said=f"{short(label)}: {figure(shown)}", colour=colour)


def quality_rows(report: Report, palette: Palette) -> Iterator[Row]:
    """Yield the rows to compare: the output's own claim, the output, others, and an output that knows nothing."""
    score = report.evaluation.scores[0]
    if report.calibration is not None and report.calibration.claim.lines:
        claimed = report.calibration.claim.claimed_perplexity
        yield score_row("its own claim", claimed, "words", None, palette.bad)
    yield from output_rows(report, score.unit, palette)
    if score.metric.bits is not None:
        yield score_row("knows nothing", 2.0**score.metric.bits, "words", None, palette.soft)


def output_rows(report: Report | Overview, unit: str, palette: Palette) -> Iterator[Row]:
    """Yield the row of the output and the rows of the outputs that it is compared with."""
    yield score_row("this output", report.evaluation.scores[0].value, unit, report.interval)
    if report.comparison is not None:
        for system in _others(report.comparison):
            yield score_row(brief(system.name), system.score, unit, system.interval, palette.soft)


def brief(name: str) -> str:
    """Shorten an output's name by the parts that all names have.

    >>> brief("out-model=bigram.tsv"), brief("out.tsv")
    ('model=bigram', 'out.tsv')
    """
    return name.removeprefix("out-").removesuffix(".tsv") if name.startswith("out-") else name


def quality_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the score and its uncertainty."""
    rows = [row for row in quality_rows(report, palette) if math.isfinite(row.value)]
    method = "An output that knows nothing has :1 on each line."
    panel = score_panel(report, rows, dots(rows, palette) if rows else None, "perplexity", method)
    if report.dependence is None:
        return panel
    alike = f"Lines with the same {short(report.dependence.column)} are alike"
    wider = f"which makes this interval {report.dependence.widening:.1f} times as wide"
    return replace(panel, sentence=f"{panel.sentence} {alike}, {wider}.")


def score_panel(
    report: Report | Overview, rows: Sequence[Row], chart: Chart | None, heading: str, method: str
) -> Panel:
    """Return the panel on the score and its interval; ``rows`` are in the table, under ``heading``."""
    score, interval = report.evaluation.scores[0], report.interval
    return Panel(
        key="quality",
        question="How good is it, and how sure is that?",
        sentence=f"{short(score.name)} is {figure(score.value)}; other lines of the same kind would give "
        f"{figure(interval.low)} to {figure(interval.high)} in 95 % of cases.",
        chart=chart,
        table=table_of(
            (("what", "text"), (heading, "figure"), ("from", "figure"), ("to", "figure")),
            [(short(row.label, 60), row.value, row.low, row.high) for row in rows],
        ),
        method=f"{interval_method(interval)} {method}",
    )


def interval_method(interval: Interval) -> str:
    """Describe how an interval was computed."""
    if interval.samples is None:
        return f"Student’s interval over {interval.documents:,} documents."
    of = "lines" if interval.documents is None else f"{interval.documents:,} documents"
    return f"Percentile bootstrap of {interval.samples:,} resamples of the {of}, seed {interval.seed}."


def differences_chart(comparison: Comparison, palette: Palette) -> Chart | None:
    """Draw the other systems' scores minus the baseline's, with intervals; None if no difference is finite."""
    rows = [row for system in _others(comparison) if (row := _difference(system, comparison, palette)) is not None]
    if not rows:
        return None
    title = "difference" if comparison.unit in UNSAID else f"difference in {comparison.unit}"
    return dots(rows, palette, rule=0.0, title=title, rule_name=brief(comparison.baseline), logarithmic=False)


def _others(comparison: Comparison) -> list[System]:
    return [system for system in comparison.systems if system.name != comparison.baseline]


def _difference(system: System, comparison: Comparison, palette: Palette) -> Row | None:
    interval = system.difference_interval
    if system.difference is None:
        return None
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return Row(
        label=brief(system.name),
        value=system.difference,
        low=low,
        high=high,
        said=f"{short(system.name)}: {figure(system.difference)}",
        colour={True: palette.good, False: palette.bad, None: palette.soft}[_is_better(system, comparison)],
    )


def _is_better(system: System, comparison: Comparison) -> bool | None:
    """Whether a system is better than the baseline by more than chance; None if the test cannot tell."""
    if system.difference is None or system.p_randomisation is None or system.p_randomisation >= LEVEL:
        return None
    return (system.difference < 0) == (comparison.direction == "lower")


def comparison_panel(comparison: Comparison | None, palette: Palette) -> Panel | None:
    """Return the panel that compares outputs; None without another output."""
    if comparison is None:
        return None
    others = _others(comparison)
    question = f"Is {short(brief(others[0].name))} better?" if len(others) == 1 else "Is another one better?"
    sentence = " ".join(_verdict(system, comparison) for system in others[:3])
    return Panel(
        key="comparison",
        question=question,
        sentence=sentence,
        finding=_verdict(others[0], comparison),
        chart=differences_chart(comparison, palette),
        table=table_of(
            (("output", "text"), ("score", "figure"), ("difference", "figure"), ("from", "figure"), ("to", "figure"),
             ("p", "text"), ("won", "share"), ("lost", "share"), ("tied", "share")),
            [_comparison_row(system) for system in others],
        ),
        method=f"Score minus that of {short(comparison.baseline, 60)}, with its bootstrap interval; p of approximate "
        f"randomisation, two-sided, {comparison.samples:,} samples; won: lines with a "
        f"{'lower loss' if comparison.of_losses else 'better score'}.",
    )  # fmt: skip


def _comparison_row(system: System) -> tuple[object, ...]:
    interval = system.difference_interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    p = None if system.p_randomisation is None else p_text(system.p_randomisation)
    shares = (system.won, system.lost, system.tied)
    return short(system.name, 60), system.score, system.difference, low, high, p, *shares


def _verdict(system: System, comparison: Comparison) -> str:
    name, better = short(brief(system.name)), _is_better(system, comparison)
    if system.difference is None or system.p_randomisation is None:
        return f"{name} cannot be compared: no line is finite in both."
    unit = "" if comparison.unit in UNSAID else f" {comparison.unit}"
    by = f"by {figure(abs(system.difference))}{unit}"
    if better is None:
        return f"{name} differs {by}, which may be chance (p {p_text(system.p_randomisation)})."
    won = f"it wins {percent(system.won or 0.0)} of the lines"
    return f"{name} is {'better' if better else 'worse'} {by} (p {p_text(system.p_randomisation)}); {won}."


# Tuning and mixing


TRIAL_NAMES = {("temperature",): "sharpness T", ("lambda",): "more rest λ", ("lambda", "nu"): "λ, words ν"}


def help_chart(tuning: Tuning, mixture: Mixture | None, palette: Palette) -> Chart:
    """Draw the present perplexity and the held-out perplexity of each change; surely better ones are green."""
    rows = [
        Row(
            label="as it is",
            value=as_perplexity(tuning.score, tuning.unit),
            said=f"as it is: {figure(tuning.score)}",
            colour=palette.soft,
        )
    ]
    rows += _trial_rows(tuning, palette)
    if mixture is not None:
        base = as_perplexity(mixture.score, mixture.unit)
        rows.append(
            _change_row("mixed", mixture.held_out, mixture.unit, base, mixture.change, mixture.taken, palette)
        )
    return dots(rows, palette, rule=as_perplexity(tuning.score, tuning.unit), rule_name="as it is")


def _trial_rows(tuning: Tuning, palette: Palette) -> Iterator[Row]:
    scores: dict[tuple[str, ...], float] = {(): tuning.score}
    for trial in tuning.trials:
        base = as_perplexity(scores.get(trial.against, tuning.score), tuning.unit)
        scores[trial.names] = trial.score
        name = TRIAL_NAMES.get(trial.names, ", ".join(trial.names))
        yield _change_row(name, trial.score, tuning.unit, base, trial.change, trial.taken, palette)


def _change_row(
    label: str, score: float, unit: str, base: float, change: Change, taken: bool, palette: Palette
) -> Row:
    """Return the row of a change; its interval is that of the change, applied to the perplexity ``base``."""
    bounded = math.isfinite(change.low) and math.isfinite(change.high)
    return Row(
        label=label,
        value=as_perplexity(score, unit),
        low=base * exp(change.low) if bounded else None,
        high=base * exp(change.high) if bounded else None,
        said=f"{label}: {figure(score)}, {_help_verdict(taken)}",
        colour=palette.good if taken else palette.soft,
    )


def _help_verdict(taken: bool) -> str:
    return "surely better" if taken else "not surely better: leave it"


def help_panel(report: Report, tuning: Tuning, palette: Palette) -> Panel:
    """Return the panel on tuning and mixing."""
    mixture = report.mixture
    best = next((trial for trial in reversed(tuning.trials) if trial.taken), None)
    if best is None:
        sentence = "Nothing that was tried is surely better: its rest and its words are as they should be."
        finding = ""
    else:
        gain = f"Tuned, it would score about {figure(best.score)} in place of {figure(tuning.score)}"
        sentence, finding = f"{gain}, on lines that it was not tuned on: geval tune --apply.", f"{gain}."
    if mixture is not None and mixture.taken:
        sentence += f" Mixed with the others it would score {figure(mixture.held_out)}: geval mix."
    return Panel(
        key="help",
        question="What would help at once?",
        sentence=sentence,
        finding=finding,
        chart=help_chart(tuning, mixture, palette),
        table=table_of(
            (("what", "text"), ("held out", "figure"), ("nats", "figure"), ("from", "figure"), ("to", "figure"),
             ("found", "text"), ("verdict", "text")),
            list(_help_rows(tuning, mixture)),
        ),
        method=f"Each is found on nine tenths of the lines, and scored on the last tenth, in {tuning.folds} folds. λ "
        "is a mixture with an output that knows nothing, ν sends a part of the rest to the commonest words of train. "
        "One is taken if the 95 % interval of the change lies below 0.",
    )  # fmt: skip


def _help_rows(tuning: Tuning, mixture: Mixture | None) -> Iterator[tuple[object, ...]]:
    yield "as it is", tuning.score, None, None, None, "", ""
    for trial in tuning.trials:
        found = ", ".join(f"{name} {trial.found.named[name]:.3g}" for name in trial.names)
        yield ", ".join(trial.names), trial.score, *_ends(trial.change), found, _help_verdict(trial.taken)
    if mixture is not None:
        weights = ", ".join(f"{figure(component.weight)}" for component in mixture.components)
        yield "mixed", mixture.held_out, *_ends(mixture.change), f"weights {weights}", _help_verdict(mixture.taken)


def _ends(change: Change) -> tuple[float, float, float]:
    return change.mean, change.low, change.high
