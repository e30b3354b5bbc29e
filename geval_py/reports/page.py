"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from markupsafe import Markup

from geval_py.reports.axes import NOTEBOOK, PAGE
from geval_py.reports.contents import Overview
from geval_py.reports.honesty_panels import honesty_panels, luck_panel
from geval_py.reports.loss_panels import (
    column_panels,
    costs_panel,
    culprits_panel,
    frequency_panel,
    length_panel,
    spread_panel,
)
from geval_py.reports.overview_panels import (
    expected_panel,
    features_panel,
    input_panels,
    scores_panel,
    standing_panel,
)
from geval_py.reports.panel import OUTCOMES, Panel, Section, figure, percent, perplexity
from geval_py.reports.quality_panels import comparison_panel, help_panel, quality_panel
from geval_py.scoring.metrics.base import exp
from geval_py.tables.escapes import environment, short
from geval_py.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

    from geval_py.explaining.losses import Example
    from geval_py.reports.axes import Chart, Palette
    from geval_py.reports.contents import Report


def sections_of(report: Report, palette: Palette) -> list[Section]:
    """Give the sections of a report, each with a panel at least."""
    found = (
        _section("How good, how sure", _quality(report, palette)),
        _section("Where the loss comes from", [spread_panel(report, palette), costs_panel(report, palette)]),
        _section("Which lines are hard", _parts(report, palette)),
        _section("Honest probabilities, and what would help", _help(report, palette)),
    )
    return [section for section in found if section.panels]


def overview_sections(overview: Overview, palette: Palette) -> list[Section]:
    """Give the sections of a report on any metric, each with a panel at least."""
    comparison = comparison_panel(overview.comparison, palette)
    good = [standing_panel(overview, palette), comparison, scores_panel(overview, palette)]
    hard = [expected_panel(overview, palette), features_panel(overview, palette), *input_panels(overview, palette)]
    found = (
        _section("How good, how sure", good),
        _section("Which lines are hard", hard),
    )
    return [section for section in found if section.panels]


def _section(title: str, panels: Iterable[Panel | None]) -> Section:
    return Section(title=title, panels=tuple(panel for panel in panels if panel is not None))


def _quality(report: Report, palette: Palette) -> list[Panel | None]:
    comparison = comparison_panel(report.comparison, palette)
    return [quality_panel(report, palette), comparison or _luck(report, palette)]


def _luck(report: Report, palette: Palette) -> Panel | None:
    return None if report.luck is None else luck_panel(report, report.luck, palette)


def _help(report: Report, palette: Palette) -> Iterator[Panel | None]:
    if report.calibration is not None:
        yield from honesty_panels(report.calibration, palette)
    if report.tuning is not None:
        yield help_panel(report, report.tuning, palette)
    if report.comparison is not None:  # else it stands further up, so that columns are about as long
        yield _luck(report, palette)


def _parts(report: Report, palette: Palette) -> list[Panel]:
    frequency = [frequency_panel(report, palette)] if report.by_frequency else []
    columns = column_panels(report, palette)
    return [length_panel(report, palette), *frequency, culprits_panel(report, palette), *columns]


# A chart turned into SVG, made fit for a page that holds several.


_GEOMETRY = re.compile(r'(?<= )(d|transform|x|y|x1|x2|y1|y2|width|height|r)="([^"]*)"')
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_NO_SHAPE = re.compile(r'<path class="(?:background|foreground)" aria-hidden="true" d="[^"]*"[^>]*/>')


def svg(chart: Chart) -> str:
    """Draw a chart as an SVG file. Vega runs inside of this process, and loads nothing."""
    from vl_convert import vegalite_to_svg

    return renumbered(str(vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])))


def renumbered(drawing: str, beginning: str = "id") -> str:
    """Call ids by their order: Vega goes on counting from one drawing to the next.

    >>> renumbered('<g id="clip7"/><path clip-path="url(#clip7)"/>')
    '<g id="id1"/><path clip-path="url(#id1)"/>'
    """
    names = dict.fromkeys(re.findall(r'(?<= )id="([^"]*)"', drawing))
    for number, name in enumerate(names, 1):
        drawing = drawing.replace(f' id="{name}"', f' id="{beginning}{number}"')
        drawing = drawing.replace(f"url(#{name})", f"url(#{beginning}{number})")
    return drawing


def fitted_svg(chart: Chart, key: str, label: str) -> str:
    """Draw a chart as an SVG element of a page; ``label`` says what it is, its ids begin with ``key``."""
    return fit(svg(chart), key, label)


def fit(drawing: str, key: str, label: str) -> str:
    """Let ids begin with a key, drop what is invisible, round coordinates to a hundredth of a pixel, name the whole.

    >>> fit('<svg xmlns="x" class="marks" width="1"><g id="a" d="M0.12345,1"/></svg>', "k", "Why?")
    '<svg class="chart" role="graphics-document" aria-label="Why?" width="1"><g id="k-1" d="M0.12,1"/></svg>'
    """
    drawing = _NO_SHAPE.sub("", drawing)
    drawing = _GEOMETRY.sub(lambda found: f'{found[1]}="{_NUMBER.sub(_rounded, found[2])}"', drawing)
    drawing = renumbered(drawing, f"{key}-")
    for idle in (' pointer-events="none"', ' opacity="1"', ' font-family="sans-serif"'):
        drawing = drawing.replace(idle, "")
    start = f'<svg class="chart" role="graphics-document" aria-label={quoteattr(label)}'
    return re.sub(r'^<svg(?: xmlns(?::xlink)?="[^"]*"| version="[^"]*"| class="marks")*', lambda _: start, drawing)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


# The page of a report: one file that loads nothing, shows all without a script, and is the same when made again.


_PACKAGE = "geval_py.reports"
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
