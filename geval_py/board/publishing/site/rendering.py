"""The templates of a site, filled in, and what they call."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from geval_py.board.publishing.site import figures
from geval_py.showing.numbers import special
from geval_py.showing.templating import environment, short

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
_LONGEST_URL = 500


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    templates = environment("geval_py.board.publishing.site")
    named = (figures.figure, figures.span, figures.places, figures.letters, figures.moment, figures.day, figures.iso)
    templates.filters |= {function.__name__: function for function in named}
    templates.filters |= {
        "size": figures.size,
        "shorten": short,
        "count": figures.count,
        "json": json_of,
        "params": params_of,
        "key": key_of,
    }
    templates.globals |= {
        "policy": POLICY,
        "link_of": link_of,
        "place_of": figures.place,
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
