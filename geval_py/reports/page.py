"""The page of a report: its sections, its charts as SVG, and the whole as one file.

The page loads nothing, shows everything without a script, and is the same each time it is made.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from geval_py.reports import contents, drawing, loss_panels, panels, quality_panels
from geval_py.scoring.metrics.base import exp
from geval_py.tables.escapes import environment, short
from geval_py.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


PACKAGE = "geval_py.reports"
BARS = 20  # lengths of the bars of guesses: the style sheet has a class for each


def page(report: contents.Report | contents.Overview, title: str) -> str:
    """Render the page of a report; ``title`` names the challenge."""
    sections = _sections(report, drawing.PAGE)
    style, script = (files(PACKAGE).joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=title,
            of_words=not isinstance(report, contents.Overview),
            report=report,
            evaluation=report.evaluation,
            score=report.evaluation.scores[0],
            sections=sections,
            drawings={
                panel.key: Markup(panel.chart.element(panel.question))  # which escapes all texts
                for section in sections
                for panel in section.panels
                if panel.chart is not None
            },
            findings=[panel.finding for section in sections for panel in section.panels if panel.finding],
            outcomes=panels.OUTCOMES,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            version=__version__,
        )
    )


def charts(report: contents.Report | contents.Overview) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each chart of a report, in the colours for notebooks."""
    for section in _sections(report, drawing.NOTEBOOK):
        for panel in section.panels:
            if panel.chart is not None:
                yield panel.key, panel.chart.svg


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy of a page with one style and one script of its own, and nothing else."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The sections, in the order in which they are read


def _sections(report: contents.Report | contents.Overview, palette: drawing.Palette) -> list[panels.Section]:
    """Return the sections that have a panel."""
    found = (
        _overview_panels(report, palette)
        if isinstance(report, contents.Overview)
        else _report_panels(report, palette)
    )
    sections = [(title, tuple(panel for panel in some if panel is not None)) for title, some in found]
    return [panels.Section(title=title, panels=some) for title, some in sections if some]


def _report_panels(
    report: contents.Report, palette: drawing.Palette
) -> Iterator[tuple[str, Iterable[panels.Panel | None]]]:
    comparison = quality_panels.comparison_panel(report.comparison, palette)
    luck = None if report.luck is None else quality_panels.luck_panel(report, report.luck, palette)
    yield "How good, how sure", [quality_panels.quality_panel(report, palette), comparison or luck]
    costs = loss_panels.costs_panel(report, palette)
    yield "Where the loss comes from", [loss_panels.spread_panel(report, palette), costs]
    hard: list[panels.Panel | None] = [loss_panels.length_panel(report, palette)]
    if report.by_frequency:
        hard.append(loss_panels.frequency_panel(report, palette))
    hard.append(loss_panels.culprits_panel(report, palette))
    by_document = loss_panels.documents_panel(report, palette)
    yield "Which lines are hard", [*hard, by_document, *loss_panels.column_panels(report, palette)]
    honest: list[panels.Panel | None] = []
    if report.calibration is not None:
        honest += quality_panels.honesty_panels(report.calibration, palette)
    if report.tuning is not None:
        honest.append(quality_panels.help_panel(report, report.tuning, palette))
    if comparison is not None:  # else luck stands further up, so that columns are about as long
        honest.append(luck)
    yield "Honest probabilities, and what would help", honest


def _overview_panels(
    overview: contents.Overview, palette: drawing.Palette
) -> Iterator[tuple[str, Iterable[panels.Panel | None]]]:
    comparison = quality_panels.comparison_panel(overview.comparison, palette)
    standing = loss_panels.standing_panel(overview, palette)
    yield "How good, how sure", [standing, comparison, loss_panels.scores_panel(overview, palette)]
    expected = loss_panels.expected_panel(overview, palette)
    features = loss_panels.features_panel(overview, palette)
    yield "Which lines are hard", [expected, features, *loss_panels.input_panels(overview, palette)]


# Templates and their filters


@cache
def _templates() -> Environment:
    templates = environment(PACKAGE)
    named = (panels.figure, panels.percent, panels.perplexity, bar, score_key, columns)
    templates.filters |= {function.__name__: function for function in named} | {"shorten": short, "key": loss_key}
    return templates


def bar(share: float) -> str:
    """Return the class of a bar for a share, in twentieths, rounded up.

    >>> bar(0.0), bar(0.001), bar(0.5)
    ('b0', 'b1', 'b10')
    """
    return f"b{min(BARS, math.ceil(share * BARS))}"


def columns(text: str) -> str:
    r"""Separate a line's columns, or its references, by dots.

    >>> columns("1901\ta text")
    '1901 · a text'
    """
    return text.replace("\t", " · ")


def score_key(score: float) -> str:
    """Write a score as a page's script sorts it."""
    return repr(score) if math.isfinite(score) else "Infinity" if score > 0 else "-Infinity"


def loss_key(loss: float) -> str:
    """Write a loss as a perplexity, as a page's script sorts it."""
    value = exp(loss)
    return f"{value:.7g}" if math.isfinite(value) else "Infinity"
