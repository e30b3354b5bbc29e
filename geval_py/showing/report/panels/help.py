"""What would help at once: an output tuned, and outputs mixed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geval_py.scoring.metrics.base import exp
from geval_py.showing.report.charts.dots import Row, dots
from geval_py.showing.report.charts.frame import Chart
from geval_py.showing.report.panels.panel import Panel, table_of
from geval_py.showing.report.panels.quality import as_perplexity
from geval_py.showing.report.wording import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.explaining.report import Report
    from geval_py.explaining.tuning.folds import Change
    from geval_py.explaining.tuning.mixing import Mixture
    from geval_py.explaining.tuning.tune import Trial, Tuning
    from geval_py.showing.report.palette import Palette

NAMES = {
    ("temperature",): "sharpness T",
    ("lambda",): "more rest λ",
    ("lambda", "nu"): "λ, words ν",
}


def help_chart(tuning: Tuning, mixture: Mixture | None, palette: Palette) -> Chart:
    """Draw the perplexity as it is, and what was held out with each change; what is surely better is green."""
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
        rows.append(_row("mixed", mixture.held_out, mixture.unit, base, mixture.change, mixture.taken, palette))
    return dots(rows, palette, rule=as_perplexity(tuning.score, tuning.unit), rule_name="as it is")


def _trial_rows(tuning: Tuning, palette: Palette) -> Iterator[Row]:
    scores: dict[tuple[str, ...], float] = {(): tuning.score}
    for trial in tuning.trials:
        base = as_perplexity(scores.get(trial.against, tuning.score), tuning.unit)
        scores[trial.names] = trial.score
        yield _row(name_of(trial), trial.score, tuning.unit, base, trial.change, trial.taken, palette)


def _row(label: str, score: float, unit: str, base: float, change: Change, taken: bool, palette: Palette) -> Row:
    """Make the row of a change; its interval is that of the change, on top of what it was held against."""
    bounded = math.isfinite(change.low) and math.isfinite(change.high)
    return Row(
        label=label,
        value=as_perplexity(score, unit),
        low=base * exp(change.low) if bounded else None,
        high=base * exp(change.high) if bounded else None,
        said=f"{label}: {figure(score)}, {_verdict(taken)}",
        colour=palette.good if taken else palette.soft,
    )


def name_of(trial: Trial) -> str:
    """Name what was tried, in a chart."""
    return NAMES.get(trial.names, ", ".join(trial.names))


def _verdict(taken: bool) -> str:
    return "surely better" if taken else "not surely better: leave it"


def help_panel(report: Report, tuning: Tuning, palette: Palette) -> Panel:
    """Answer what would help at once."""
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
            list(_rows(tuning, mixture)),
        ),
        method=f"Each is found on nine tenths of the lines, and scored on the last tenth, in {tuning.folds} folds. λ "
        "is a mixture with an output that knows nothing, ν sends a part of the rest to the commonest words of train. "
        "One is taken if the 95 % interval of the change lies below 0.",
    )  # fmt: skip


def _rows(tuning: Tuning, mixture: Mixture | None) -> Iterator[tuple[object, ...]]:
    yield "as it is", tuning.score, None, None, None, "", ""
    for trial in tuning.trials:
        found = ", ".join(f"{name} {trial.found.named[name]:.3g}" for name in trial.names)
        yield ", ".join(trial.names), trial.score, *_ends(trial.change), found, _verdict(trial.taken)
    if mixture is not None:
        weights = ", ".join(f"{figure(component.weight)}" for component in mixture.components)
        yield "mixed", mixture.held_out, *_ends(mixture.change), f"weights {weights}", _verdict(mixture.taken)


def _ends(change: Change) -> tuple[float, float, float]:
    return change.mean, change.low, change.high
