"""The charts of a report for notebooks: each function takes an evaluation and returns a chart, which Jupyter shows.

from geval_py import evaluate, plots
plots.losses(evaluate("my-challenge", "dev-0"))

A chart can be saved: ``plots.losses(…).save("losses.svg")``. All functions raise UsageError for a metric that is not
made from log losses of words, and if the texts were not kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from geval_py.errors import UsageError
from geval_py.evaluation import Evaluation
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.tuning import tune
from geval_py.reports import panels
from geval_py.reports.charts import Chart
from geval_py.reports.report import Report
from geval_py.text import visible

__all__ = [
    "column",
    "comparison",
    "costs",
    "frequencies",
    "lengths",
    "losses",
    "tuning",
]


def losses(evaluation: Evaluation) -> Chart:
    """Draw the spread of the line losses, by outcome: first guess right, listed, not listed."""
    return _chart(panels.spread_panel(_report(evaluation)))


def costs(evaluation: Evaluation) -> Chart:
    """Draw which kind of miss costs most: the shares of the lines and of the loss, by outcome."""
    return _chart(panels.costs_panel(_report(evaluation)))


def lengths(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by the number of characters of the expected word."""
    return _chart(panels.length_panel(_report(evaluation)))


def frequencies(evaluation: Evaluation) -> Chart:
    """Draw the perplexity by how often the train/expected.tsv beside the test set has the expected word.

    Raises UsageError without such a file.
    """
    missing = "there is no train/expected.tsv beside the test set, whose words would be counted"
    return _chart(panels.frequency_panel(_report(evaluation)), missing)


def column(evaluation: Evaluation, name: str) -> Chart:
    """Draw the perplexity by a column of the input: by its numbers, its values or, for text, its length in words.

    Raises UsageError without such a column, and if it does not divide the lines into parts.
    """
    report = _report(evaluation)
    groupings = dict(report.columns())
    if name not in groupings:
        names = visible(", ".join(groupings))
        advice = f"columns that divide them: {names}" if groupings else "no column divides them"
        message = f"the column {visible(name)!r} does not divide the lines into parts\n  {advice}"
        raise UsageError(message=message)
    return panels.group_chart(report, report.rows(groupings[name]))


def comparison(first: Comparison | Evaluation | Iterable[Evaluation], *others: Evaluation) -> Chart:
    """Draw the scores of other outputs minus the score of the first, or of a comparison's baseline, with intervals.

    Raises UsageError if no difference is finite, and the errors of :func:`geval_py.compare`.
    """
    _, chart = panels.differences(first if isinstance(first, Comparison) else compare(first, *others))
    if chart is None:
        raise UsageError(message="there is no difference to draw: no line is finite in all outputs")
    return chart


def tuning(evaluation: Evaluation, *, force: bool = False) -> Chart:
    """Draw what tuning would bring, on held-out lines.

    Arguments and errors are those of :func:`geval_py.explaining.tuning.tune`.
    """
    _, chart = panels.changes(tune(evaluation, force=force), None)
    return chart


def _report(evaluation: Evaluation) -> Report:
    report = Report(evaluation)
    if not report.of_losses:
        name = visible(report.score.metric.name)
        message = f"this needs log losses of words, which {name} does not have; choose another metric"
        raise UsageError(message=message, arguments=("metric",))
    return report


def _chart(panel: panels.Panel | None, missing: str = "there is nothing to draw: no line lists a word") -> Chart:
    """Return a panel's chart; raises UsageError without one."""
    if panel is None or panel.chart is None:
        raise UsageError(message=missing)
    return panel.chart


def __dir__() -> list[str]:
    return __all__
