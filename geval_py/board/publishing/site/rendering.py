"""Templates filled in: every text is escaped, and what no screen shows is written as an escape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from geval_py.board.publishing.site import figures
from geval_py.showing.numbers import special
from geval_py.text import shorten, visible

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
_LONGEST_URL = 500


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("geval_py.board.publishing.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=_shown,
    )
    named = (figures.figure, figures.span, figures.places, figures.letters, figures.moment, figures.day, figures.iso)
    environment.filters |= {function.__name__: function for function in named}
    environment.filters |= {
        "size": figures.size,
        "shorten": short,
        "count": figures.count,
        "json": json_of,
        "params": params_of,
        "key": key_of,
    }
    environment.globals |= {
        "policy": POLICY,
        "link_of": link_of,
        "place_of": figures.place,
        "lines_of_text": str.splitlines,
    }
    return environment


def _shown(value: object) -> object:
    """Let no control character into a page, nor a mark that turns the direction of a line."""
    return value if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable() else visible(value)


def short(value: object, limit: int = 40) -> str:
    """Show a stranger's text in so many characters, what no screen shows as escapes."""
    text = shorten(str(value), limit)
    return text if text.isprintable() else shorten(visible(text), limit)


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
