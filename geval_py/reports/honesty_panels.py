"""Panels on honesty: whether an output's probabilities come true, and how much of its score is luck of the hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.explaining.significance import NORMAL, Interval
from geval_py.reports.axes import Chart, Palette
from geval_py.reports.charts import Row, dots, reliability
from geval_py.reports.panel import Key, Panel, figure, percent, table_of
from geval_py.reports.quality_panels import as_perplexity, score_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.explaining.calibration import Calibration, Claim
    from geval_py.explaining.luck import Luck
    from geval_py.explaining.reliability import Points, Reliability
    from geval_py.reports.contents import Report
    from geval_py.tables.table import Table


_BAND = (
    "The band holds what 95 % of outputs would show whose probabilities come true; it is found by drawing "
    "each line’s word from its own distribution."
)
_LEGEND = (
    Key(colour="accent", text="as honest ones would be"),
    Key(colour="bad", text="outside of the band"),
    Key(colour="wash", text="honest, 95 %"),
)


def words_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often listed words were the expected word, by their probability; None if no word is listed."""
    if calibration.words is None:
        return None
    return reliability(
        calibration.words.bins,
        palette,
        logarithmic=True,
        x_name="probability given to a listed word",
        y_name="share right",
    )


def guess_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often the first guess was right, by its probability, as a monotone curve; None without guesses."""
    if calibration.corp is None:
        return None
    return reliability(
        calibration.corp.curve,
        palette,
        steps=True,
        x_name="probability given to the first guess",
        y_name="share right",
    )


def rest_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often the word was not listed, by the rest; None if no line has a guess."""
    if calibration.rest is None:
        return None
    return reliability(calibration.rest.bins, palette, x_name="rest of the line", y_name="word not listed")


def honesty_panels(calibration: Calibration, palette: Palette) -> Iterator[Panel]:
    """Yield the panels on listed words, first guesses and the rest, as far as the output has these."""
    if calibration.words is not None:
        part = calibration.words
        yield Panel(
            key="honest",
            question="Are the probabilities honest?",
            sentence=f"{_claimed_and_found(part, 'Listed words')} {claim_sentence(calibration.claim)}",
            finding=claim_sentence(calibration.claim) if calibration.claim.is_significant else "",
            chart=words_chart(calibration, palette),
            legend=_LEGEND,
            table=_points_table("probability", part.bins),
            method=f"All words that lines list, in bins with as many expected hits. {_BAND} {_sets(calibration)}",
        )
    if calibration.guess is not None and calibration.corp is not None and calibration.guess_error is not None:
        part, error = calibration.guess, calibration.guess_error
        off = (
            f"Calibration error {percent(error.ece)}; an honest output would show {percent(error.honest)} by chance."
        )
        yield Panel(
            key="guess",
            question="Can its first guess be trusted?",
            sentence=f"{_claimed_and_found(part, 'First guesses')} {off}",
            chart=guess_chart(calibration, palette),
            table=_points_table("probability", calibration.corp.curve),
            method="Isotonic regression of being right on the probability (Dimitriadis, Gneiting and Jordan 2021); "
            f"the table has both ends of each step. {_BAND}",
        )
    if calibration.rest is not None:
        part = calibration.rest
        yield Panel(
            key="rest",
            question="Is the rest large enough?",
            sentence=f"The rest holds {percent(part.claimed)} on average where there is a guess; "
            f"the word was not listed {percent(part.found)} of the time{_honestly(part)}.",
            chart=rest_chart(calibration, palette),
            legend=_LEGEND,
            table=_points_table("rest", part.bins),
            method=f"Lines with a guess, in bins of as many lines. {_BAND}",
        )


def _claimed_and_found(part: Reliability, things: str) -> str:
    found = f"are right {percent(part.found)} of the time{_honestly(part)}"
    return f"{things} claim {percent(part.claimed)} on average and {found}."


def _honestly(part: Reliability) -> str:
    return (
        ", as honest ones would be" if part.is_honest else f" (honest: {percent(part.low)} to {percent(part.high)})"
    )


def claim_sentence(claim: Claim) -> str:
    """Compare the perplexity that an output's probabilities promise with its real one; "" if nothing is finite."""
    if not claim.lines:
        return ""
    promise = f"Its own probabilities promise a perplexity of {figure(claim.claimed_perplexity)}"
    if not claim.is_significant:
        return f"{promise}; it gets {figure(claim.perplexity)}, which may be chance."
    how = "it is too sure of itself" if claim.gap > 0 else "it is less sure than it could be"
    return f"{promise}; it gets {figure(claim.perplexity)}: {how}."


def _sets(calibration: Calibration) -> str:
    if calibration.sets is None:
        return ""
    held = (
        f"{percent(level)}: {percent(found)}"
        for level, found in zip(calibration.sets.x, calibration.sets.y, strict=True)
    )
    return f"How often the smallest sets of words with such a probability hold the word: {', '.join(held)}."


def _points_table(name: str, points: Points) -> Table:
    bounds = (("honest from", "share"), ("to", "share"))
    head = ((name, "share"), ("true", "share"), *bounds, ("number", "count"))
    rows = zip(points.x, points.y, points.low, points.high, points.n, strict=True)
    return table_of(head, list(rows))


def luck_chart(luck: Luck, interval: Interval, score: float, palette: Palette) -> Chart:
    """Draw the perplexities that other lines, and other seeds of the hash, would give."""
    unit = luck.unit
    low, high = sorted(as_perplexity(end, unit) for end in (luck.low, luck.high))
    formula = as_perplexity(luck.formula.score, unit)
    seeds = Row(
        label="other seeds",
        value=formula,
        low=low,
        high=high,
        points=tuple(as_perplexity(one, unit) for one in luck.scores),
        said=f"other seeds of the hash: {figure(low)} to {figure(high)}",
        colour=palette.soft,
    )
    return dots(
        [score_row("other lines", score, unit, interval), seeds],
        palette,
        rule=as_perplexity(score, unit),
        rule_name="this output",
    )


def luck_panel(report: Report, luck: Luck, palette: Palette) -> Panel:
    """Return the panel on the luck of the hash."""
    score, interval = report.evaluation.scores[0], report.interval
    half, of_lines = (luck.high - luck.low) / 2, interval.half_width
    less = f", {figure(of_lines / half)} times less than the choice of lines" if 0 < half < of_lines else ""
    z = luck.z or 0.0
    seed = "was ordinary" if abs(z) < NORMAL else "was lucky" if z < 0 else "was unlucky"
    return Panel(
        key="luck",
        question="How much is luck of the hash?",
        sentence=f"Collisions move this score by ± {figure(half)} (95 %){less}; this seed {seed}.",
        chart=luck_chart(luck, interval, score.value, palette),
        table=table_of(
            (("what", "text"), ("score", "figure")),
            [("this output", score.value), ("mean over seeds, by formula", luck.formula.score),
             *((f"seed {n}", one) for n, one in enumerate(luck.scores, 1))],
        ),
        method=f"The lines scored again with {luck.seeds} other seeds, line numbers plus 1 to {luck.seeds} (small "
        "marks), and the range that holds 95 % of seeds.",
    )  # fmt: skip
