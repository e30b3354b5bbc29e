"""The charts of a report for notebooks: each function takes an evaluation and returns a chart, which Jupyter shows.

from geval_py import evaluate, plots
plots.losses(evaluate("my-challenge", "dev-0"))

A chart can be saved: ``plots.losses(…).save("losses.svg")``. All functions raise UsageError for a metric that is not
made from log losses of words, and if the texts were not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from geval_py.errors import UsageError
from geval_py.text import visible

__all__ = [
    "calibration",
    "column",
    "comparison",
    "costs",
    "first_guess",
    "frequencies",
    "lengths",
    "losses",
    "luck",
    "rest",
    "tuning",
]

if TYPE_CHECKING:
    from geval_py.evaluation import Evaluation
    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.losses import Outcomes
    from geval_py.reports.drawing import Chart


def losses(evaluation: Evaluation) -> Chart:
    """Draw the spread of the line losses, by outcome: first guess right, listed, not listed."""
    from geval_py.explaining.losses import loss_bins
    from geval_py.reports import contents, drawing, loss_panels

    values = contents.log_losses(evaluation)
    bins = loss_bins(values, _outcomes(evaluation))
    bits = evaluation.scores[0].metric.bits
    return loss_panels.spread_chart(bins, len(values), contents.mean_of(values), bits, drawing.NOTEBOOK)


def costs(evaluation: Evaluation) -> Chart:
    """Draw which kind of miss costs most: the shares of the lines and of the loss, by outcome."""
    from geval_py.explaining.losses import outcome_shares
    from geval_py.reports import contents, drawing, loss_panels

    shares = outcome_shares(contents.log_losses(evaluation), _outcomes(evaluation))
    return loss_panels.costs_chart(shares, drawing.NOTEBOOK)


def lengths(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by the number of characters of the expected word."""
    from geval_py.explaining.losses import by_length
    from geval_py.reports import contents, drawing, loss_panels

    values = contents.log_losses(evaluation)
    parts = by_length(values, _words(evaluation))
    return loss_panels.parts_chart(parts, contents.mean_of(values), drawing.NOTEBOOK)


def frequencies(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by how often the train/expected.tsv beside the test set has the expected word.

    Raises UsageError without such a file.
    """
    from geval_py.explaining.losses import by_frequency
    from geval_py.reports import contents, drawing, loss_panels

    values = contents.log_losses(evaluation)
    counts = contents.counts_of_train(evaluation)
    parts = by_frequency(values, _words(evaluation), counts) if counts else ()
    if not parts:
        raise UsageError(message="there is no train/expected.tsv beside the test set, whose words would be counted")
    return loss_panels.parts_chart(parts, contents.mean_of(values), drawing.NOTEBOOK)


def column(evaluation: Evaluation, name: str) -> Chart:
    """Draw the perplexity by a column of the input: by its numbers, its values or, for text, its length in words.

    Raises UsageError without such a column, and if it does not divide the lines into parts.
    """
    from geval_py.reports import contents, drawing, loss_panels

    values = contents.log_losses(evaluation)
    found = {
        parts.column: parts.parts for parts in contents.columns_of(evaluation, values, evaluation.read_columns())
    }
    if name not in found:
        there = f"columns that divide them: {visible(', '.join(found))}" if found else "no column divides them"
        message = f"the column {visible(name)!r} does not divide the lines into parts\n  {there}"
        raise UsageError(message=message)
    return loss_panels.parts_chart(found[name], contents.mean_of(values), drawing.NOTEBOOK)


def _outcomes(evaluation: Evaluation) -> Outcomes:
    from geval_py.explaining.losses import outcomes_of, prepared_items

    return outcomes_of(prepared_items(evaluation))


def _words(evaluation: Evaluation) -> list[str]:
    from geval_py.explaining.losses import prepared_items

    return prepared_items(evaluation).expected


def comparison(evaluations: Comparison | Iterable[Evaluation]) -> Chart:
    """Draw the scores of other outputs minus the score of the first, or of a comparison's baseline, with intervals.

    Raises UsageError if no difference is finite, and the errors of :func:`geval_py.compare`.
    """
    from geval_py.explaining.comparison import Comparison, compare
    from geval_py.reports import drawing, quality_panels

    compared = evaluations if isinstance(evaluations, Comparison) else compare(evaluations)
    chart = quality_panels.differences_chart(compared, drawing.NOTEBOOK)
    if chart is None:
        raise UsageError(message="there is no difference to draw: no line is finite in all outputs")
    return chart


def calibration(evaluation: Evaluation) -> Chart:
    """Draw how often listed words were the expected word, by the given probability, with the band of honest outputs.

    Raises UsageError if no line lists a word, and the errors of :func:`geval_py.calibration`.
    """
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports import drawing, quality_panels

    return _drawn(quality_panels.words_chart(calibrating.calibration(evaluation), drawing.NOTEBOOK))


def first_guess(evaluation: Evaluation) -> Chart:
    """Draw how often the likeliest word was right, by its probability; raises the errors of :func:`calibration`."""
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports import drawing, quality_panels

    return _drawn(quality_panels.guess_chart(calibrating.calibration(evaluation), drawing.NOTEBOOK))


def rest(evaluation: Evaluation) -> Chart:
    """Draw how often the word was not listed, by the rest of the line; raises the errors of :func:`calibration`."""
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports import drawing, quality_panels

    return _drawn(quality_panels.rest_chart(calibrating.calibration(evaluation), drawing.NOTEBOOK))


def _drawn(chart: Chart | None) -> Chart:
    if chart is None:
        raise UsageError(message="there is nothing to draw: no line lists a word")
    return chart


def luck(evaluation: Evaluation) -> Chart:
    """Draw the true score's interval and the scores of other seeds of the hash; raises as :func:`geval_py.luck`."""
    from geval_py.explaining import luck as hashing
    from geval_py.reports import drawing, quality_panels

    return quality_panels.luck_chart(
        hashing.luck(evaluation), evaluation.interval(), evaluation.score, drawing.NOTEBOOK
    )


def tuning(evaluation: Evaluation) -> Chart:
    """Draw what tuning would bring, on held-out lines; raises the errors of :func:`geval_py.tune`."""
    from geval_py.explaining.tuning import tune
    from geval_py.reports import drawing, quality_panels

    return quality_panels.help_chart(tune(evaluation), None, drawing.NOTEBOOK)


def __dir__() -> list[str]:
    return __all__
