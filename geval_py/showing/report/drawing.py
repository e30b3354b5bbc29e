"""A chart turned into SVG, made fit for a page that holds several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from geval_py.showing.report.charts.frame import Chart

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
