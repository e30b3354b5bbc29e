"""The panels on quality: how good an output is, how sure that is, and what would make it better.

In the order of the page: the score and its interval; the comparison with other outputs; the luck of the hash;
honesty, that is whether the probabilities come true; and what tuning or mixing would bring.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geval_py.explaining.significance import LEVEL, NORMAL, Interval, lines_needed
from geval_py.reports.charts import Row, dots, reliability
from geval_py.reports.drawing import Chart, Palette
from geval_py.reports.panels import (
    Key,
    Panel,
    as_perplexity,
    brief,
    figure,
    interval_kind,
    interval_method,
    p_text,
    percent,
    table_of,
)
from geval_py.scoring.metrics.base import exp
from geval_py.tables.escapes import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from geval_py.explaining import cross_validation, mixing, paired
    from geval_py.explaining.calibration import Calibration, Claim
    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.luck import Luck
    from geval_py.explaining.reliability import Points, Reliability
    from geval_py.explaining.tuning import Trial, Tuning
    from geval_py.reports.contents import Overview, Report
    from geval_py.scoring.scores import MetricScore
    from geval_py.tables.table import Table


UNSAID = ("share", "correlation", "answers' unit", "its square")  # units that are not written behind a number
_BAND = (
    "The band holds what 95 % of outputs would show whose probabilities come true; it is found by drawing "
    "each line’s word from its own distribution."
)
_LEGEND = (
    Key(colour="accent", text="as honest ones would be"),
    Key(colour="bad", text="outside of the band"),
    Key(colour="wash", text="honest, 95 %"),
)
TRIAL_NAMES = {
    ("temperature",): "sharpness T",
    ("lambda",): "more rest λ",
    ("lambda", "nu"): "λ, words ν",
    ("by-line",): "by line",
}


def quality_panel(report: Report, palette: Palette) -> Panel:
    """Return the panel on the score and its uncertainty."""
    rows = [row for row in quality_rows(report, palette) if math.isfinite(row.value)]
    method = "An output that knows nothing has :1 on each line."
    if report.unigram is not None:
        method += " Words of train: on each line the 10,000 commonest words of train, by their shares."
    return score_panel(report, rows, dots(rows, palette) if rows else None, "perplexity", method)


def score_panel(
    report: Report | Overview, rows: Sequence[Row], chart: Chart | None, heading: str, method: str
) -> Panel:
    """Return the panel on the score and its interval; ``rows`` are in the table, under ``heading``."""
    score, interval = report.evaluation.scores[0], report.interval
    return Panel(
        key="quality",
        question="How good is it, and how sure is that?",
        sentence=" ".join(
            (
                f"{short(score.name)} is {figure(score.value)}.",
                *_meanings(score, interval),
                *(f"{note[0].upper()}{note[1:]}." for note in report.notes),
            )
        ),
        chart=chart,
        table=table_of(
            (("what", "text"), (heading, "figure"), ("from", "figure"), ("to", "figure")),
            [(short(row.label, 60), row.value, row.low, row.high) for row in rows],
        ),
        method=f"{interval_method(interval)} {method}",
    )


def _meanings(score: MetricScore, interval: Interval) -> Iterator[str]:
    """Yield what an interval says of the true score, and of the score of another set, which varies, too."""
    low, high = interval.ends
    if low is None or high is None:
        yield "How far the true score may be is not known: no line differs from another."
        return
    value = score.value
    yield f"The true score, on endlessly many such lines, is {figure(low)} to {figure(high)} (95 %)."
    if not 0.0 < low <= value <= high < math.inf:
        return
    measure = score.metric.measure
    best, worst = sorted((measure.best, measure.worst))
    if measure.in_nats and score.unit == "words":
        ends = [value * (end / value) ** math.sqrt(2) for end in (low, high)]
    else:
        ends = [value + (end - value) * math.sqrt(2) for end in (low, high)]
    low, high = (min(max(end, best), worst) for end in ends)
    yield f"Another set of as many lines would score {figure(low)} to {figure(high)}."


def quality_rows(report: Report, palette: Palette) -> Iterator[Row]:
    """Yield the rows to compare: the output's own claim, the output, others, and an output that knows nothing."""
    score = report.evaluation.scores[0]
    if report.calibration is not None and report.calibration.claim.lines:
        claimed = report.calibration.claim.claimed_perplexity
        yield score_row("its own claim", claimed, "words", None, palette.bad)
    yield from output_rows(report, score.unit, palette)
    if report.unigram is not None:
        yield score_row("words of train", report.unigram, "words", None, palette.soft)
    if score.metric.bits is not None:
        yield score_row("knows nothing", 2.0**score.metric.bits, "words", None, palette.soft)


def output_rows(report: Report | Overview, unit: str, palette: Palette) -> Iterator[Row]:
    """Yield the row of the output and the rows of the outputs that it is compared with."""
    yield score_row("this output", report.evaluation.scores[0].value, unit, report.interval)
    if report.comparison is not None:
        names = report.comparison.short_names()
        for system in _others(report.comparison):
            yield score_row(names[system.name], system.score, unit, system.interval, palette.soft)


def score_row(label: str, value: float, unit: str, interval: Interval | None, colour: str = "") -> Row:
    """Return the row of a score, with its interval, as perplexities."""
    ends = () if interval is None else interval.ends
    low, high = sorted(as_perplexity(end, unit) for end in ends if end is not None) or (None, None)
    shown = as_perplexity(value, unit)
    return Row(label=label, value=shown, low=low, high=high, said=f"{short(label)}: {figure(shown)}", colour=colour)


def comparison_panel(comparison: Comparison | None, palette: Palette) -> Panel | None:
    """Return the panel that compares outputs; None without another output."""
    if comparison is None:
        return None
    others = _others(comparison)
    question = f"Is {short(brief(others[0].name))} better?" if len(others) == 1 else "Is another one better?"
    sentence = " ".join([*(_verdict(system, comparison) for system in others[:3]), *_lines_needed(others[0])])
    known = (of.difference_interval for of in others if of.difference_interval is not None)
    interval = next((f", with {interval_kind(of)}" for of in known), "")
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
        method=f"Score minus that of {short(comparison.baseline, 60)}{interval}; p of approximate "
        f"randomisation, two-sided, {comparison.samples:,} samples; won: lines with a "
        f"{'lower loss' if comparison.of_losses else 'better score'}.",
    )  # fmt: skip


def differences_chart(comparison: Comparison, palette: Palette) -> Chart | None:
    """Draw the other systems' scores minus the baseline's, with intervals; None if no difference is finite."""
    rows = [row for system in _others(comparison) if (row := _difference(system, comparison, palette)) is not None]
    if not rows:
        return None
    title = "difference" if comparison.unit in UNSAID else f"difference in {comparison.unit}"
    name = comparison.short_names()[comparison.baseline]
    return dots(rows, palette, rule=0.0, title=title, rule_name=name, logarithmic=False)


def _others(comparison: Comparison) -> list[paired.System]:
    return [system for system in comparison.systems if system.name != comparison.baseline]


def _difference(system: paired.System, comparison: Comparison, palette: Palette) -> Row | None:
    interval = system.difference_interval
    if system.difference is None:
        return None
    low, high = (None, None) if interval is None else interval.ends
    return Row(
        label=comparison.short_names()[system.name],
        value=system.difference,
        low=low,
        high=high,
        said=f"{short(system.name)}: {figure(system.difference)}",
        colour={True: palette.good, False: palette.bad, None: palette.soft}[_is_better(system, comparison)],
    )


def _is_better(system: paired.System, comparison: Comparison) -> bool | None:
    """Whether a system is better than the baseline by more than chance; None if the test cannot tell."""
    if system.difference is None or system.p_randomisation is None or system.p_randomisation >= LEVEL:
        return None
    return (system.difference < 0) == (comparison.direction == "lower")


def _comparison_row(system: paired.System) -> tuple[object, ...]:
    interval = system.difference_interval
    low, high = (None, None) if interval is None else interval.ends
    p = None if system.p_randomisation is None else p_text(system.p_randomisation)
    shares = (system.won, system.lost, system.tied)
    return short(system.name, 60), system.score, system.difference, low, high, p, *shares


def _lines_needed(system: paired.System) -> Iterator[str]:
    """Yield how many such lines it takes to tell a system from the baseline, in four of five cases."""
    interval = system.difference_interval
    if not system.difference or interval is None or not 0.0 < interval.half_width < math.inf:
        return
    needed = lines_needed(system.compared, system.difference, interval.half_width)
    name = short(brief(system.name))
    yield f"To tell {name} apart in 80 % of cases takes about {needed:,} such lines."


def _verdict(system: paired.System, comparison: Comparison) -> str:
    name, better = short(brief(system.name)), _is_better(system, comparison)
    if system.difference is None or system.p_randomisation is None:
        return f"{name} cannot be compared: no line is finite in both."
    unit = "" if comparison.unit in UNSAID else f" {comparison.unit}"
    by = f"by {figure(abs(system.difference))}{unit}"
    if better is None:
        return f"{name} differs {by}, which may be chance (p {p_text(system.p_randomisation)})."
    won = f"it wins {percent(system.won or 0.0)} of the lines"
    return f"{name} is {'better' if better else 'worse'} {by} (p {p_text(system.p_randomisation)}); {won}."


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


def luck_chart(luck: Luck, interval: Interval, score: float, palette: Palette) -> Chart:
    """Draw the interval of the true score, and the perplexities that other seeds of the hash would give."""
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
        [score_row("true score", score, unit, interval), seeds],
        palette,
        rule=as_perplexity(score, unit),
        rule_name="this output",
    )


def honesty_panels(calibration: Calibration, palette: Palette) -> Iterator[Panel]:
    """Yield the panels on listed words, first guesses and the rest, if the output has them."""
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


def words_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often listed words were the expected word, by their probability; None if no word is listed."""
    words = calibration.words
    return None if words is None else _right_by_probability("a listed word", words.bins, palette, logarithmic=True)


def guess_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often the first guess was right, by its probability, as a monotone curve; None without guesses."""
    corp = calibration.corp
    return None if corp is None else _right_by_probability("the first guess", corp.curve, palette, steps=True)


def _right_by_probability(
    what: str, points: Points, palette: Palette, *, logarithmic: bool = False, steps: bool = False
) -> Chart:
    x_name, y_name = f"probability given to {what}", "share right"
    return reliability(points, palette, logarithmic=logarithmic, steps=steps, x_name=x_name, y_name=y_name)


def rest_chart(calibration: Calibration, palette: Palette) -> Chart | None:
    """Draw how often the word was not listed, by the rest; None if no line has a guess."""
    if calibration.rest is None:
        return None
    return reliability(calibration.rest.bins, palette, x_name="rest of the line", y_name="word not listed")


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
    points = calibration.sets_of_guesses or calibration.sets
    if points is None:
        return ""
    held = (f"{percent(level)}: {percent(found)}" for level, found in zip(points.x, points.y, strict=True))
    of = "" if calibration.sets_of_guesses is None else ", on lines with a guess"
    return f"How often the smallest sets of words with such a probability hold the word{of}: {', '.join(held)}."


def _points_table(name: str, points: Points) -> Table:
    bounds = (("honest from", "share"), ("to", "share"))
    head = ((name, "share"), ("true", "share"), *bounds, ("number", "count"))
    rows = zip(points.x, points.y, points.low, points.high, points.n, strict=True)
    return table_of(head, list(rows))


def help_panel(report: Report, tuning: Tuning, palette: Palette) -> Panel:
    """Return the panel on tuning and mixing."""
    mixture = report.mixture
    best = next((trial for trial in reversed(tuning.trials) if trial.taken), None)
    if best is None:
        sentence = "Nothing that was tried is surely better: its rest and its words are as they should be."
        finding = ""
    else:
        gain = f"Tuned, it would score about {figure(best.score)} in place of {figure(tuning.score)}"
        sentence, finding = f"{gain}, on lines that it was not tuned on: geval tune --apply test-A.", f"{gain}."
    if mixture is not None and mixture.taken:
        sentence += f" Mixed with the others it would score {figure(mixture.held_out)}: geval mix."
    return Panel(
        key="help",
        question="What would help without another model?",
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
        "By line, λ and ν depend on the rest, the greatest probability and the number of words of a line. One is "
        "taken if the 95 % interval of the change lies below 0, or if it would come by luck in at most 5 % of cases.",
    )  # fmt: skip


def help_chart(tuning: Tuning, mixture: mixing.Mixture | None, palette: Palette) -> Chart:
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
        yield _change_row(
            _trial_name(trial, tuning), trial.score, tuning.unit, base, trial.change, trial.taken, palette
        )


def _trial_name(trial: Trial, tuning: Tuning) -> str:
    name = TRIAL_NAMES.get(trial.names, ", ".join(trial.names))
    return f"{name}, {trial.words:,} words" if tuning.has_more_words(trial) else name


def _change_row(
    label: str, score: float, unit: str, base: float, change: cross_validation.Change, taken: bool, palette: Palette
) -> Row:
    """Return the row of a change; its interval is that of the change, applied to the perplexity ``base``."""
    bounded = math.isfinite(change.low) and math.isfinite(change.high)
    return Row(
        label=label,
        value=as_perplexity(score, unit),
        low=base * exp(change.low) if bounded else None,
        high=base * exp(change.high) if bounded else None,
        said=f"{label}: {figure(score)}, {_help_verdict(change, taken)}",
        colour=palette.good if taken else palette.soft,
    )


def _help_verdict(change: cross_validation.Change, taken: bool) -> str:
    """Name what decided: the interval or, if that holds 0, the p-value, which sees smaller gains."""
    if not taken:
        return "not surely better: leave it"
    return "surely better" if change.high < 0.0 else f"better by p {p_text(change.p_value)}: take it"


def _help_rows(tuning: Tuning, mixture: mixing.Mixture | None) -> Iterator[tuple[object, ...]]:
    yield "as it is", tuning.score, None, None, None, "", ""
    for trial in tuning.trials:
        named = trial.found.named
        found = ", ".join(f"{name} {named[name]:.3g}" for name in trial.names if name in named)
        yield (
            _trial_name(trial, tuning),
            trial.score,
            *_ends(trial.change),
            found,
            _help_verdict(trial.change, trial.taken),
        )
    if mixture is not None:
        weights = ", ".join(f"{figure(component.weight)}" for component in mixture.components)
        yield (
            "mixed",
            mixture.held_out,
            *_ends(mixture.change),
            f"weights {weights}",
            _help_verdict(mixture.change, mixture.taken),
        )


def _ends(change: cross_validation.Change) -> tuple[float, float, float]:
    return change.mean, change.low, change.high
