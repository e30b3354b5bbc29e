"""Charts as SVG: their elements, axes and legends, and :class:`Chart`, which shows and saves them.

A chart in a page names the variables of the page's style sheet as its colours, so that dark mode works; a chart in a
notebook has colours of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from geval_py.explaining.losses import Outcome
from geval_py.reading import rewriting
from geval_py.reports.scales import Scale

FONT = 11  # pixels, as all lengths here
LETTER = 6.5  # the width of a character, about
TITLE = 32  # from the end of an axis down to its name
BELOW = 36  # what an axis with a name takes below a chart
LEGEND_ROW = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """A colour for each part of charts; with ``legends``, charts draw their own legends."""

    ground: str
    raised: str
    ink: str
    soft: str
    line: str
    track: str
    accent: str
    good: str
    listed: str
    bad: str
    none: str
    on_fill: str
    legends: bool

    def of_outcome(self, outcome: Outcome) -> str:
        """Return the colour of the outcome of a line."""
        return (self.good, self.listed, self.bad, self.none)[outcome]


PAGE = Palette(
    ground="",
    raised="var(--raised)",
    ink="var(--ink)",
    soft="var(--soft)",
    line="var(--line)",
    track="var(--track)",
    accent="var(--accent)",
    good="var(--good)",
    listed="var(--listed)",
    bad="var(--bad)",
    none="var(--none)",
    on_fill="var(--on-fill)",
    legends=False,
)
NOTEBOOK = Palette(
    ground="#ffffff",
    raised="#ffffff",
    ink="#17191c",
    soft="#555a61",
    line="#e2e0d8",
    track="#cfccc3",
    accent="#1c5fb0",
    good="#10765c",
    listed="#3a78bd",
    bad="#c2560c",
    none="#6b7078",
    on_fill="#ffffff",
    legends=True,
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, which Jupyter shows; its marks have descriptions, for screen readers and under the pointer.

    ``width`` and ``height`` are in pixels, ``parts`` are elements of SVG over the colour ``ground``.
    """

    width: float
    height: float
    parts: tuple[str, ...]
    ground: str = ""

    def element(self, name: str) -> str:
        """Return the chart as an element of a page, with ``name`` for screen readers."""
        return self._svg(f'class="chart" role="graphics-document" aria-label={quoted(name)}')

    @property
    def svg(self) -> str:
        """The chart as the text of an SVG file."""
        return self._svg('xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"')

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart as an SVG file; raises UsageError if it cannot be written."""
        with rewriting.written_whole(os.fspath(path)) as file:
            file.write(self.svg.encode())

    def _svg(self, attributes: str) -> str:
        width, height = _written(self.width), _written(self.height)
        ground = [element("rect", width="100%", height="100%", fill=self.ground)] if self.ground else []
        parts = "".join([*ground, *self.parts])
        return f'<svg {attributes} width="{width}" height="{height}" viewBox="0 0 {width} {height}">{parts}</svg>'

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Chart: {self.width:g} x {self.height:g} pixels, {len(self.parts)} elements>"


# Elements


def element(tag: str, *inner: str, **attributes: float | str | None) -> str:
    """Return an element of SVG around markup; `_` stands for `-` in names, and what is None is left out.

    >>> element("line", x2=1.005, stroke_width=2, stroke=None)
    '<line x2="1" stroke-width="2"/>'
    """
    written = "".join(
        f" {name.replace('_', '-')}={quoted(value if isinstance(value, str) else _written(value))}"
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(inner)}</{tag}>" if inner else f"<{tag}{written}/>"


_SPACES = str.maketrans({"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def quoted(value: str) -> str:
    """Quote an attribute's value as xml.sax.saxutils does, whose import takes 20 ms.

    >>> print(quoted("a & b"), quoted('the "end"'), quoted("o'clock"))
    "a &amp; b" 'the "end"' "o'clock"
    """
    value = escape(value, quote=False).translate(_SPACES)
    return f"'{value}'" if '"' in value and "'" not in value else '"' + value.replace('"', "&quot;") + '"'


def described(tag: str, kind: str, said: str, **attributes: float | str | None) -> str:
    """Return a mark with a description in words; ``kind`` is what screen readers call it."""
    title = f"<title>{escape(said, quote=False)}</title>"
    return element(tag, title, role="graphics-symbol", aria_roledescription=kind, **attributes)


def unsaid(*parts: str) -> str:
    """Group parts that screen readers pass over."""
    return element("g", *parts, aria_hidden="true")


def text(x: float, y: float, words: str, colour: str, *, anchor: str | None = None, bold: bool = False) -> str:
    """Write words with their middle at the height y; ``anchor`` is None for start, or middle, or end."""
    weight = "bold" if bold else None
    return element("text", escape(words, quote=False), x=x, y=y, dy="0.35em", fill=colour, font_size=FONT,
                   font_weight=weight, text_anchor=anchor)  # fmt: skip


def path(points: Iterable[tuple[float, float]]) -> str:
    """Return the commands that join points.

    >>> path([(0, 1), (2, 3.456)])
    'M0 1L2 3.46'
    """
    return f"M{'L'.join(f'{_written(x)} {_written(y)}' for x, y in points)}"


def _written(number: float) -> str:
    """Write a length, to a hundredth of a pixel."""
    return f"{number:.2f}".rstrip("0").rstrip(".") if number else "0"


# Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where a chart draws its marks, in pixels from its left and its top."""

    left: float
    right: float
    top: float
    bottom: float


Tick = tuple[float, Sequence[str]]  # a value, and what is written at it, in one row or several


def x_axis(frame: Frame, scale: Scale, ticks: Iterable[Tick], palette: Palette, title: str | None = None) -> str:
    """Draw lines through a chart at ticks, what they mean below it, and the axis's name below that."""
    parts, rows = [], 1
    for value, words in ticks:
        x = scale.at(value)
        parts.append(element("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, stroke=palette.line))
        half = max(map(len, words)) * LETTER / 2
        place, anchor = (frame.right + 8, "end") if x + half > frame.right + 8 else (x, "middle")
        parts += [text(place, frame.bottom + 11 + 13 * row, word, palette.soft, anchor=anchor)
                  for row, word in enumerate(words)]  # fmt: skip
        rows = max(rows, len(words))
    if title:
        middle = (frame.left + frame.right) / 2
        parts.append(text(middle, frame.bottom + TITLE - 3 + 13 * (rows - 1), title, palette.soft, anchor="middle"))
    return element("g", *parts) if parts else ""


def y_axis(frame: Frame, scale: Scale, ticks: Iterable[Tick], palette: Palette, title: str | None = None) -> str:
    """Draw lines across a chart at ticks, what they mean at its left, and the axis's name above."""
    parts = []
    for value, words in ticks:
        y = scale.at(value)
        parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, stroke=palette.line))
        parts.append(text(frame.left - 5, y, " ".join(words), palette.soft, anchor="end"))
    if title:
        parts.append(text(frame.left, frame.top - 12, title, palette.soft))
    return element("g", *parts) if parts else ""


def legend(
    entries: Sequence[tuple[str, str]],
    top: float,
    width: float,
    palette: Palette,
    dashes: Sequence[str | None] | None = None,
) -> Iterator[str]:
    """Draw colours and their names, in two columns; with ``dashes`` (None: no gaps) a piece of each line."""
    for number, (colour, name) in enumerate(entries):
        x, y = width / 2 * (number % 2) + 4, top + LEGEND_ROW * (number // 2 + 0.5)
        if dashes is None:
            yield element("rect", x=x, y=y - 5, width=10, height=10, fill=colour)
        else:
            yield element("line", x1=x - 3, x2=x + 12, y1=y, y2=y, stroke=colour, stroke_width=1.7,
                          stroke_dasharray=dashes[number])  # fmt: skip
        yield text(x + 15, y, name, palette.ink)
