"""HTML from templates: every text is escaped, and what no screen shows is written as an escape."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from geval_py.text import shorten, visible


def environment(package: str) -> Environment:
    """Make the environment of the templates that lie in a package's folder ``templates``."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Let no control character into a page, nor a mark that turns the direction of a line."""
    return value if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable() else visible(value)


def short(value: object, limit: int = 40) -> str:
    r"""Show a stranger's text in so many characters, what no screen shows as escapes.

    >>> short("a\x1b[31m")
    'a\\x1b[31m'
    """
    text = shorten(str(value), limit)
    return text if text.isprintable() else shorten(visible(text), limit)
