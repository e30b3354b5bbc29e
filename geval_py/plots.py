"""The charts of a report for notebooks: each takes an evaluation, and gives an Altair chart, which shows itself.

from geval_py import evaluate, plots
plots.losses(evaluate("my-challenge", "dev-0"))

All raise UsageError where a package of the extra ``report`` is missing, for a metric that is not made from log losses
of words, and where the texts were not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from geval_py.errors import UsageError
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.evaluation import Evaluation
    from geval_py.explaining.comparison import Comparison
    from geval_py.reports.axes import Chart

Given = ParamSpec("Given")
Made = TypeVar("Made")
PACKAGES = ("altair", "jinja2", "markupsafe", "scipy")  # of the extra


def _of_extra(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let a missing package say what adds it."""

    @wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return function(*args, **kwargs)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in PACKAGES:
                raise
            message = f"geval_py.plots needs {error.name}: pip install ./geval-py[report]"
            raise UsageError(message=message) from error

    return checked


@_of_extra
def losses(evaluation: Evaluation) -> Chart:
    """Draw how the line losses are spread, by what became of the lines: first guess right, listed, not listed."""
    from geval_py.explaining.losses import loss_bins, outcomes_of, prepared_items
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.contents import log_losses, mean_of
    from geval_py.reports.loss_panels import spread_chart

    values = log_losses(evaluation)
    bins = loss_bins(values, outcomes_of(prepared_items(evaluation)))
    bits = evaluation.scores[0].metric.bits
    return spread_chart(bins, len(values), mean_of(values), bits, NOTEBOOK)


@_of_extra
def costs(evaluation: Evaluation) -> Chart:
    """Draw which kind of miss costs most: the shares of the lines and of the loss, by what became of the lines."""
    from geval_py.explaining.losses import outcome_shares, outcomes_of, prepared_items
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.contents import log_losses
    from geval_py.reports.loss_panels import costs_chart

    return costs_chart(outcome_shares(log_losses(evaluation), outcomes_of(prepared_items(evaluation))), NOTEBOOK)


@_of_extra
def lengths(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by the number of characters of the expected word."""
    from geval_py.explaining.losses import by_length, prepared_items
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.contents import log_losses, mean_of
    from geval_py.reports.loss_panels import parts_chart

    values = log_losses(evaluation)
    parts = by_length(values, [item.expected for item in prepared_items(evaluation)])
    return parts_chart(parts, mean_of(values), NOTEBOOK)


@_of_extra
def frequencies(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by how often the train/expected.tsv beside the test set has the expected word.

    Raises UsageError where there is no such file.
    """
    from geval_py.explaining.losses import prepared_items
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.contents import frequencies_of, log_losses, mean_of
    from geval_py.reports.loss_panels import parts_chart

    values = log_losses(evaluation)
    parts = frequencies_of(evaluation, values, [item.expected for item in prepared_items(evaluation)])
    if not parts:
        raise UsageError(message="there is no train/expected.tsv beside the test set, whose words would be counted")
    return parts_chart(parts, mean_of(values), NOTEBOOK)


@_of_extra
def column(evaluation: Evaluation, name: str) -> Chart:
    """Draw the perplexity by a column of the input: by its numbers, its values or, of text, by its length in words.

    Raises UsageError where there is no such column, or nothing is parted by it.
    """
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.contents import columns_of, log_losses, mean_of
    from geval_py.reports.loss_panels import parts_chart

    values = log_losses(evaluation)
    found = {parts.column: parts.parts for parts in columns_of(evaluation, values)}
    if name not in found:
        there = f"those that are: {visible(', '.join(found))}" if found else "there is none that is"
        raise UsageError(message=f"the lines are not parted by a column {visible(name)!r}\n  {there}")
    return parts_chart(found[name], mean_of(values), NOTEBOOK)


@_of_extra
def comparison(evaluations: Comparison | Iterable[Evaluation]) -> Chart:
    """Draw the scores of other outputs minus that of the first, or of a comparison's baseline, with intervals.

    Raises UsageError where no difference is finite, and as :func:`geval_py.compare`.
    """
    from geval_py.explaining.comparison import Comparison, compare
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.quality_panels import differences_chart

    compared = evaluations if isinstance(evaluations, Comparison) else compare(evaluations)
    chart = differences_chart(compared, NOTEBOOK)
    if chart is None:
        raise UsageError(message="there is no difference to draw: no line is finite in all outputs")
    return chart


@_of_extra
def calibration(evaluation: Evaluation) -> Chart:
    """Draw how often listed words were the word, by the probability given, with the band of honest outputs.

    Raises UsageError where no line lists a word, and as :func:`geval_py.calibration`.
    """
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.honesty_panels import words_chart

    return _drawn(words_chart(calibrating.calibration(evaluation), NOTEBOOK))


@_of_extra
def first_guess(evaluation: Evaluation) -> Chart:
    """Draw how often the likeliest word was right, by its probability; raises as :func:`calibration`."""
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.honesty_panels import guess_chart

    return _drawn(guess_chart(calibrating.calibration(evaluation), NOTEBOOK))


@_of_extra
def rest(evaluation: Evaluation) -> Chart:
    """Draw how often the word was not listed, by the rest of the line; raises as :func:`calibration`."""
    from geval_py.explaining import calibration as calibrating
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.honesty_panels import rest_chart

    return _drawn(rest_chart(calibrating.calibration(evaluation), NOTEBOOK))


def _drawn(chart: Chart | None) -> Chart:
    if chart is None:
        raise UsageError(message="there is nothing to draw: no line lists a word")
    return chart


@_of_extra
def luck(evaluation: Evaluation) -> Chart:
    """Draw what other lines, and other seeds of the hash, would give; raises as :func:`geval_py.luck`."""
    from geval_py.explaining import luck as hashing
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.honesty_panels import luck_chart

    return luck_chart(hashing.luck(evaluation), evaluation.interval(), evaluation.score, NOTEBOOK)


@_of_extra
def tuning(evaluation: Evaluation) -> Chart:
    """Draw what tuning would bring, on held-out lines; raises as :func:`geval_py.tune`."""
    from geval_py.explaining.tuning import tune
    from geval_py.reports.axes import NOTEBOOK
    from geval_py.reports.quality_panels import help_chart

    return help_chart(tune(evaluation), None, NOTEBOOK)
