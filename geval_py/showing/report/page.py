"""The page of a report: one file that loads nothing, shows all without a script, and is the same when made again."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from geval_py.explaining.overview import Overview
from geval_py.scoring.metrics.base import exp
from geval_py.showing.report.drawing import fitted_svg, svg
from geval_py.showing.report.palette import NOTEBOOK, PAGE
from geval_py.showing.report.sections import overview_sections, sections_of
from geval_py.showing.report.wording import OUTCOMES, figure, percent, perplexity
from geval_py.showing.templating import environment, short
from geval_py.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

    from geval_py.explaining.anatomy.examples import Example
    from geval_py.explaining.report import Report
    from geval_py.showing.report.palette import Palette
    from geval_py.showing.report.panels.panel import Section

_PACKAGE = "geval_py.showing.report"
BARS = 20  # lengths of the bars of guesses: the style sheet has a class for each


def page(report: Report | Overview, title: str) -> str:
    """Make the page of a report on an output of a challenge with such a title."""
    sections = _sections(report, PAGE)
    style, script = (_text(name) for name in ("style.css", "script.js"))
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=title,
            lines="texts.html" if isinstance(report, Overview) else "gaps.html",
            report=report,
            evaluation=report.evaluation,
            score=report.evaluation.scores[0],
            sections=sections,
            drawings=_drawings(sections),
            findings=[panel.finding for section in sections for panel in section.panels if panel.finding],
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            version=__version__,
        )
    )


def _sections(report: Report | Overview, palette: Palette) -> list[Section]:
    return overview_sections(report, palette) if isinstance(report, Overview) else sections_of(report, palette)


def charts(report: Report | Overview) -> Iterator[tuple[str, str]]:
    """Draw each chart of a report by itself, in colours of its own; gives its name and its SVG."""
    for section in _sections(report, NOTEBOOK):
        for panel in section.panels:
            if panel.chart is not None:
                yield panel.key, svg(panel.chart)


def policy(style: str, script: str) -> str:
    """Give the Content-Security-Policy of a page that has a style and a script in it, and nothing else."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _drawings(sections: Iterable[Section]) -> dict[str, Markup]:
    """Draw the charts, by the keys of their panels; they hold no text that is not escaped."""
    panels = (panel for section in sections for panel in section.panels)
    return {p.key: Markup(fitted_svg(p.chart, p.key, p.question)) for p in panels if p.chart is not None}


def _text(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    templates = environment(_PACKAGE)
    templates.filters |= {
        "figure": figure,
        "percent": percent,
        "perplexity": perplexity,
        "shorten": short,
        "bar": bar,
        "key": key_of,
        "score_key": score_key,
        "columns": columns,
    }
    templates.globals |= {"outcome_of": outcome_of}
    return templates


def bar(share: float) -> str:
    """Give the class of a bar that shows a share, in twentieths; what is above 0 has a bar.

    >>> bar(0.0), bar(0.001), bar(0.5)
    ('b0', 'b1', 'b10')
    """
    return f"b{min(BARS, math.ceil(share * BARS))}"


def columns(text: str) -> str:
    r"""Write a line's columns, or its several references, apart.

    >>> columns("1901\ta text")
    '1901 · a text'
    """
    return text.replace("\t", " · ")


def score_key(score: float) -> str:
    """Write a score as that by which lines are sorted."""
    return repr(score) if math.isfinite(score) else "Infinity" if score > 0 else "-Infinity"


def key_of(loss: float) -> str:
    """Write a loss as a perplexity by which lines are sorted."""
    value = exp(loss)
    return f"{value:.7g}" if math.isfinite(value) else "Infinity"


def outcome_of(example: Example) -> str:
    """Say what became of a line."""
    return OUTCOMES[example.outcome]
