"""The page of a report: its sections, its charts as SVG, and the whole as one file.

The page loads nothing, shows everything without a script, and is the same each time it is made.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator
from importlib.resources import files

from markupsafe import Markup

from geval_py.reports import charts as drawing
from geval_py.reports.panels import OUTCOMES, next_step, sections
from geval_py.reports.report import Report
from geval_py.tables.escapes import environment, short
from geval_py.tables.numbers import percent
from geval_py.version import __version__

PACKAGE = "geval_py.reports"
BARS = 20  # lengths of the bars of guesses: the style sheet has a class for each


def page(report: Report, title: str) -> str:
    """Render the page of a report; ``title`` names the challenge."""
    style, script = (files(PACKAGE).joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    style_hash, script_hash = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (style, script)
    )
    templates = environment(PACKAGE)
    templates.filters |= {
        "figure": drawing.figure, "percent": percent, "bar": bar, "sort_key": sort_key, "shorten": short
    }  # fmt: skip
    shown = sections(report)
    panels = [panel for _, of_section in shown for panel in of_section]
    return templates.get_template("page.html").render(
        title=title,
        report=report,
        evaluation=report.evaluation,
        score=report.score,
        sections=shown,
        findings=[panel.finding for panel in panels if panel.finding and panel.key != "help"],
        next_step=next_step(report, panels),
        examples=list(report.examples()),
        outcomes={outcome: name for outcome, (name, _) in OUTCOMES.items()},
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; img-src data:; "
        "base-uri 'none'; form-action 'none'",  # nothing but the page's own style and script
        version=__version__,
    )


def charts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each chart of a report."""
    for _, panels in sections(report):
        for panel in panels:
            if panel.chart is not None:
                yield panel.key, panel.chart.svg


# Filters of the templates


def bar(share: float) -> str:
    """Return the class of a bar for a share, in twentieths, rounded up.

    >>> bar(0.0), bar(0.001), bar(0.5)
    ('b0', 'b1', 'b10')
    """
    return f"b{min(BARS, math.ceil(share * BARS))}"


def sort_key(value: float) -> str:
    """Write a figure as a page's script sorts it.

    >>> sort_key(0.25), sort_key(-math.inf)
    ('0.25', '-Infinity')
    """
    return repr(float(value)).replace("inf", "Infinity")
