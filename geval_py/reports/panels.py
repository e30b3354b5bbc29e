"""The panels of a page, and how figures are written in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.explaining.losses import Outcome
from geval_py.reports.drawing import Chart
from geval_py.scoring.metrics.base import exp
from geval_py.tables.table import Column, Table, written

if TYPE_CHECKING:
    from geval_py.explaining.significance import Interval

OUTCOMES = {
    Outcome.RIGHT: "first guess right",
    Outcome.LISTED: "listed, not first",
    Outcome.MISSED: "not listed",
    Outcome.NO_GUESS: "no guess",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A question and its answer: a sentence, a chart (None without anything to draw), its data, the method.

    ``key`` is its name in links and files. ``finding`` is a shorter sentence for the head of the page, "" for none.
    """

    key: str
    question: str
    sentence: str
    chart: Chart | None
    table: Table
    method: str
    legend: tuple[Key, ...] = ()
    finding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of a chart's legend: a colour, by its name in the style sheet, and its meaning."""

    colour: str
    text: str


def table_of(head: Iterable[tuple[str, str]], rows: Iterable[Sequence[object]]) -> Table:
    """Return the table of a panel; ``head`` has each column's name and kind: text, count, figure or share."""
    return Table([COLUMNS[kind](name) for name, kind in head], list(rows))


COLUMNS = {
    "text": lambda name: Column(name=name, write=written),
    "count": lambda name: Column(name=name, alignment="right", write="{:,}".format),
    "figure": lambda name: Column(name=name, alignment="right", write=figure),
    "share": lambda name: Column(name=name, alignment="right", write=percent),
}


def figure(value: float | None) -> str:
    """Write a figure with three digits, or all digits before the point; a dash for None and NaN.

    >>> figure(2311.7), figure(41.54), figure(4.4), figure(0.05231), figure(None), figure(float("inf"))
    ('2,312', '41.5', '4.40', '0.0523', '–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    decimals = 0 if size >= 99.95 or not size else max(0, 2 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}".replace("-", "−")


def perplexity(loss: float | None) -> str:
    """Write a mean loss, in nats, as a perplexity."""
    return "–" if loss is None else figure(exp(loss))


def percent(share: float) -> str:
    """Write a share as a percentage.

    >>> percent(0.4449), percent(0.0589), percent(0.0), percent(0.0004)
    ('44 %', '5.9 %', '0 %', '<0.1 %')
    """
    if 0 < share < 0.0005:
        return "<0.1 %"
    written = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
    return f"{written.removesuffix('.0')} %"


def p_text(p: float) -> str:
    """Write a p or q value.

    >>> p_text(0.00001), p_text(0.012)
    ('<0.001', '0.012')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def interval_method(interval: Interval) -> str:
    """Describe how an interval was computed."""
    if interval.samples is None and interval.documents is None:
        return "Student’s interval, corrected for skewed losses by Hall’s transformation."
    if interval.samples is None:
        return f"Student’s interval over {interval.documents:,} documents, with the variance CR2."
    of = "lines" if interval.documents is None else f"{interval.documents:,} documents"
    return f"Percentile bootstrap of {interval.samples:,} resamples of the {of}, seed {interval.seed}."


def interval_kind(interval: Interval) -> str:
    """Return the kind of an interval in a few words, and what it is over."""
    kind = "Student’s interval" if interval.samples is None else "a bootstrap interval"
    return f"{kind} of 95 % over {'lines' if interval.documents is None else f'{interval.documents:,} documents'}"


def as_perplexity(value: float, unit: str) -> float:
    """Convert a score to a perplexity, by its unit: nats, bits, probability, or words (as it is).

    >>> as_perplexity(0.5, "probability"), round(as_perplexity(3.0, "bits"), 9)
    (2.0, 8.0)
    """
    if unit == "probability":
        return 1 / value if value else math.inf
    return value if unit == "words" else exp(value if unit == "nats" else value * math.log(2))


def brief(name: str) -> str:
    """Shorten an output's name by the parts that all names have.

    >>> brief("out-model=bigram.tsv"), brief("out.tsv")
    ('model=bigram', 'out.tsv')
    """
    return name.removeprefix("out-").removesuffix(".tsv") if name.startswith("out-") else name
