"""How a site writes: figures with the digits that are disclosed, moments, templates, and the challenge's README."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from geval_py.board.settings import moment_text
from geval_py.tables import escapes, numbers
from geval_py.text import counted
from geval_py.version import REPOSITORY

if TYPE_CHECKING:
    from jinja2 import Environment

    from geval_py.board.ranking.views import Entry, Standings


POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
MAX_URL = 500


def figure(value: float | None, digits: int) -> str:
    """Write a number with significant digits, a dash for none.

    >>> figure(174.6, 4), figure(170.0, 4), figure(1235000.0, 4), figure(0.0123, 4), figure(None, 4)
    ('174.6', '170.0', '1235000', '0.01230', '–')
    """
    return with_signs(numbers.significant(value, digits)) if digits and value is not None else "–"


def span(low: float | None, high: float | None, digits: int) -> str:
    """Write an interval, "" for none, with no more digits than its width needs.

    >>> span(168.1, 181.24, 4), span(512.3, 598.1, 4)
    ('168–182', '512–599')
    """
    if low is None or high is None or not digits:
        return ""
    return with_signs("–".join(numbers.interval(low, high, digits)))


def with_signs(text: str) -> str:
    """Return numbers with the signs of mathematics.

    >>> with_signs("-Infinity")
    '−∞'
    """
    return text.replace("-", "−").replace("Infinity", "∞")


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
    return f"{utc.day} {utc:%b %Y}"


def anywhere_on_earth(when: datetime) -> str:
    """Write a deadline by the clock of the last place on earth where its day ends, as conferences set them.

    >>> anywhere_on_earth(datetime(2027, 2, 1, 11, 59, tzinfo=UTC))
    '31 Jan, 23:59 AoE'
    """
    there = when.astimezone(timezone(timedelta(hours=-12)))
    return f"{there.day} {there:%b, %H:%M} AoE"


def breakable(name: str) -> Markup:
    """Let a line end within a name in camel case.

    >>> breakable("LogLossHashed<")
    Markup('Log<wbr>Loss<wbr>Hashed&lt;')
    """
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])", name))


# Templates


json_of = partial(json.dumps, ensure_ascii=False)  # for data attributes; the template escapes it


def render(template: str, **values: object) -> str:
    """Fill in a template."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    templates = escapes.environment("geval_py.board.site")
    named = (figure, span, moment, anywhere_on_earth, day, breakable, markdown_html)
    templates.filters |= {function.__name__: function for function in named}
    templates.filters |= {
        "shorten": escapes.short,
        "json": json_of,
        "key": key_of,
        "iso": moment_text,
        "count": counted,
    }
    templates.globals |= {
        "link_of": link_of,
        "difference": numbers.difference,
        "plain": numbers.significant,
        "isinf": math.isinf,
        "repository": REPOSITORY,
    }
    return templates


def what_it_takes(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Return sentences: how far an entry is from the places around it, and which of these differ only by chance.

    They use nothing but what a leaderboard shows.
    """
    return tuple(render("advice.txt", standings=standings, entry=entry).splitlines())


def key_of(value: object) -> str:
    """Write what a page's script sorts by: a number as scripts read it, or a text; "" for none.

    >>> key_of(1e22), key_of(float("inf")), key_of(None), key_of("a")
    ('1e+22', 'Infinity', '', 'a')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return numbers.exact(value)
    return "" if value is None else str(value)


def link_of(url: str) -> str | None:
    """Return a submitter's link if its scheme is http or https and it has a host, else None.

    >>> link_of("https://example.org/a?b=c"), link_of("javascript:alert(1)"), link_of("//example.org")
    ('https://example.org/a?b=c', None, None)
    """
    try:
        parts = urlsplit(url)
        is_of_web = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= MAX_URL
    except ValueError:
        return None
    return url if is_of_web and url.isprintable() and " " not in url else None


# The organiser's Markdown: the challenge's README.md, and texts of board.yaml


def markdown_html(text: str) -> Markup:
    """Render Markdown with tables, without raw HTML; an image becomes its text, as a page loads nothing else.

    Tables and code stand in boxes that scroll, by keyboard too; styles, which the policy refuses, become classes.
    """
    html = re.sub(' style="text-align:(left|center)"', "", _markdown().render(text))
    for tag, other in TAGS.items():
        html = html.replace(tag, other)
    return Markup(html)


TAGS = {  # what Markdown's tags become; its texts have no "<"
    "<table>": '<div class="scroll" role="region" tabindex="0" aria-label="Table"><table>',
    "</table>": "</table>\n</div>",
    "<th>": '<th scope="col">',
    '<th style="text-align:right">': '<th class="number" scope="col">',
    '<td style="text-align:right">': '<td class="number">',
    "<pre>": '<pre tabindex="0">',
}


@cache
def _markdown() -> MarkdownIt:
    """Return a renderer of Markdown; a link to anything but a web page leads nowhere."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def link(renderer: Any, tokens: Sequence[Token], index: int, *more: Any) -> str:
        url = link_of(str(tokens[index].attrGet("href")))
        tokens[index].attrs = {"href": url, "rel": "nofollow noopener"} if url else {}
        return str(renderer.renderToken(tokens, index, *more))

    markdown.add_render_rule("link_open", link)
    markdown.add_render_rule("image", lambda _, tokens, index, *__: str(escape(tokens[index].content)))
    return markdown
