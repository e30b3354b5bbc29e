"""Where the loss comes from: how losses are spread, and which kind of miss costs most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geval_py.explaining.anatomy.outcomes import Outcome
from geval_py.showing.report.charts.frame import Chart
from geval_py.showing.report.charts.shares import Block, histogram, joined_bars
from geval_py.showing.report.panels.panel import Key, Panel, table_of
from geval_py.showing.report.wording import OUTCOMES, figure, percent, perplexity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from geval_py.explaining.anatomy.outcomes import OutcomeShare
    from geval_py.explaining.anatomy.spread import Bin
    from geval_py.explaining.report import Report
    from geval_py.showing.report.palette import Palette

_CLASSES = {Outcome.RIGHT: "good", Outcome.LISTED: "listed", Outcome.MISSED: "bad", Outcome.NO_GUESS: "none"}
_WHAT_OUTCOMES_ARE = (
    "First guess right: the word with the greatest mass is the expected one. Listed: another word is. Not listed: "
    "the word is among those that share the rest. No guess: the line has a rest alone."
)


def spread_chart(bins: Sequence[Bin], lines: int, mean_loss: float, bits: int | None, palette: Palette) -> Chart:
    """Draw the shares of the lines by their loss, in nats, and the losses of the mean and of knowing nothing."""
    blocks = [
        Block(
            start=one.low,
            end=one.high,
            share=one.lines / lines,
            name=OUTCOMES[one.outcome],
            colour=palette.of_outcome(one.outcome),
            said=f"{one.low:g} to {one.high:g} nats, {OUTCOMES[one.outcome]}: {one.lines:,} lines",
        )
        for one in bins
    ]
    marks = [(mean_loss, "mean")] if math.isfinite(mean_loss) else []
    if bits is not None:
        marks.append((bits * math.log(2), "knows nothing"))
    return histogram(blocks, marks, palette)


def costs_chart(shares: Sequence[OutcomeShare], palette: Palette) -> Chart:
    """Draw the shares of the lines, and of the loss, by what became of the lines."""
    of_lines, of_loss = _blocks(shares, "lines", palette), _blocks(shares, "loss", palette)
    return joined_bars(list(of_lines), list(of_loss), ("share of the lines", "share of the loss"), palette)


def _blocks(shares: Sequence[OutcomeShare], of: str, palette: Palette) -> Iterator[Block]:
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
    """Answer how losses are spread."""
    metric, lines = report.evaluation.scores[0].metric, len(report.losses)
    above = float((report.losses > (metric.bits or 0) * math.log(2)).mean())
    nothing = f"{percent(above)} of the lines lose more than an output that knows nothing" if metric.bits else ""
    sentence = f"The mean loss is {figure(report.mean_loss)} nats, a perplexity of {perplexity(report.mean_loss)}"
    infinite = f" {report.infinite:,} lines with an infinite loss are not drawn." if report.infinite else ""
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
        method=f"The loss of a line is −ln of the probability of its word. {_WHAT_OUTCOMES_ARE}",
    )


def costs_panel(report: Report, palette: Palette) -> Panel:
    """Answer which kind of miss costs most."""
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
              math.exp(one.mean_loss)) for one in report.shares],
        ),
        method=f"{_WHAT_OUTCOMES_ARE} Shares of the loss are of its finite part.",
    )  # fmt: skip


def _legend(report: Report, say: Callable[[OutcomeShare], str]) -> tuple[Key, ...]:
    return tuple(
        Key(colour=_CLASSES[one.outcome], text=f"{OUTCOMES[one.outcome]}: {say(one)}") for one in report.shares
    )
