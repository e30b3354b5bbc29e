"""Disclosed figures as text: the digits that are disclosed, no more and no fewer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from geval_py.board.ranking.disclosure import figure as plain
from geval_py.board.ranking.columns import group_label
from geval_py.tables.escapes import environment, short
from geval_py.tables.numbers import special

if TYPE_CHECKING:
    from jinja2 import Environment


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def figure(value: float | None, digits: int) -> str:
    """Write a number with significant digits, a dash for none.

    >>> figure(174.6, 4), figure(170.0, 4), figure(1235000.0, 4), figure(0.0123, 4), figure(None, 4)
    ('174.6', '170.0', '1235000', '0.01230', '–')
    """
    if value is None or not digits:
        return "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return plain(value, digits).replace("-", "−")


def span(low: float | None, high: float | None, digits: int) -> str:
    """Write an interval, "" for none.

    >>> span(168.1, 181.24, 4)
    '168.1–181.2'
    """
    return "" if low is None or high is None else f"{figure(low, digits)}–{figure(high, digits)}"


def place(number: int | None, *, shared: bool, ties: str) -> str:
    """Write a place, with = where others share it and the board says so; a dash for none."""
    return "–" if number is None else f"{number}=" if shared and ties == "shared" else str(number)


def places(first: int | None, last: int | None) -> str:
    """Write a range of places."""
    if first is None or last is None:
        return "–"
    return str(first) if first == last else f"{first}–{last}"


def letters(groups: Sequence[int]) -> str:
    """Write the numbers of clusters, from 0, as compact letters.

    >>> letters((0, 1))
    'ab'
    """
    return "".join(map(group_label, groups))


def moment(when: datetime) -> str:
    """Write a moment for people, to the minute.

    >>> moment(datetime(2027, 1, 31, 23, 5, tzinfo=UTC))
    '31 Jan 2027, 23:05 UTC'
    """
    utc = when.astimezone(UTC)
    return f"{day(utc)}, {utc:%H:%M} UTC"


def day(when: datetime) -> str:
    """Write the day of a moment, in UTC."""
    utc = when.astimezone(UTC)
    return f"{utc.day} {_MONTHS[utc.month - 1]} {utc.year}"


def short_day(when: datetime) -> str:
    """Write the day of a moment, in UTC, without its year."""
    utc = when.astimezone(UTC)
    return f"{utc.day} {_MONTHS[utc.month - 1]}"


def iso(when: datetime) -> str:
    """Write a moment for machines, to the second.

    >>> iso(datetime(2027, 1, 31, 23, 5, tzinfo=UTC))
    '2027-01-31T23:05:00Z'
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def count(number: int, noun: str, plural: str = "") -> str:
    """Write a number of things.

    >>> count(1, "entry", "entries"), count(10519, "line")
    ('1 entry', '10,519 lines')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """Write a number of bytes.

    >>> size(999), size(1_500_000)
    ('999 B', '1.5 MB')
    """
    amount = float(number)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


# The templates of a site, filled in, and what they call.


POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
_LONGEST_URL = 500


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    templates = environment("geval_py.board.site")
    named = (figure, span, places, letters, moment, day, iso)
    templates.filters |= {function.__name__: function for function in named}
    templates.filters |= {
        "size": size,
        "shorten": short,
        "count": count,
        "json": json_of,
        "params": params_of,
        "key": key_of,
    }
    templates.globals |= {
        "policy": POLICY,
        "link_of": link_of,
        "place_of": place,
        "lines_of_text": str.splitlines,
    }
    return templates


def params_of(params: Mapping[str, object]) -> str:
    """Write parameters in a line.

    >>> params_of({"model": "bigram", "k": 3})
    'model=bigram, k=3'
    """
    return ", ".join(f"{name}={value}" for name, value in params.items())


def json_of(value: Sequence[object]) -> str:
    """Write a list for a data attribute, which is escaped with the rest."""
    return json.dumps(value, ensure_ascii=False)


def key_of(value: float | None) -> str:
    """Write a number as scripts read it, "" for none.

    >>> key_of(1e22), key_of(float("inf")), key_of(None)
    ('1e+22', 'Infinity', '')
    """
    return "" if value is None else special(value) if not math.isfinite(value) else repr(value)


def link_of(url: str) -> str | None:
    """Give a link of a stranger's if it leads to a web page, None else: only http and https may be followed.

    >>> link_of("https://example.org/a?b=c"), link_of("javascript:alert(1)"), link_of("//example.org")
    ('https://example.org/a?b=c', None, None)
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= _LONGEST_URL
    except ValueError:
        return None
    return url if known and url.isprintable() and " " not in url else None


# The challenge's README.md as HTML: no HTML of its own, no image, no link but to web pages.


_BOX = '<div class="scroll" role="region" tabindex="0" aria-label="Table">'


def readme_html(text: str) -> Markup:
    """Render Markdown with tables; images stand as their text, since a page loads nothing from elsewhere."""
    markdown = _markdown()
    return Markup(markdown.renderer.render(list(_tamed(markdown.parse(text))), markdown.options, {}))


def has_title(text: str) -> bool:
    """Tell whether a README has a heading of the first level."""
    return any(token.tag == "h1" for token in _markdown().parse(text))


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _tamed(tokens: Iterable[Token]) -> Iterator[Token]:
    """Put what may be wide into boxes that scroll, by keyboard too, and take out styles, which the policy refuses."""
    for token in tokens:
        if token.type == "table_open":
            yield _raw(_BOX)
        if token.type in ("th_open", "td_open"):
            _align(token)
        if token.type in ("fence", "code_block"):
            yield _raw(f'<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n')
        else:
            token.children = list(_inline(token.children)) if token.children else token.children
            yield token
        if token.type == "table_close":
            yield _raw("</div>\n")


def _raw(html: str) -> Token:
    return Token("html_block", "", 0, content=html)


def _align(cell: Token) -> None:
    """Say by a class how a cell is aligned, and what a header heads."""
    right = "right" in str(cell.attrGet("style") or "")
    cell.attrs = {"class": "number"} if right else {}
    if cell.tag == "th":
        cell.attrs["scope"] = "col"


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    opened: list[str] = []
    for token in tokens:
        if token.type == "image":
            yield Token("text", "", 0, content=token.content)
            continue
        if token.type == "link_open":
            url = link_of(str(token.attrGet("href") or ""))
            token.tag, token.attrs = ("span", {}) if url is None else ("a", {"href": url, "rel": "nofollow noopener"})
            opened.append(token.tag)
        elif token.type == "link_close":
            token.tag = opened.pop()
        yield token
