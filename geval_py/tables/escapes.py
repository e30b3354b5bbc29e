"""Escapes for each output format: TAB-separated, Markdown, LaTeX, CSV, HTML and JSON; and templates that escape.

Only the terminal's escapes handle control characters: call :func:`geval_py.text.visible` before the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from geval_py.tables.numbers import exact
from geval_py.text import shorten, visible

if TYPE_CHECKING:
    from jinja2 import Environment


# Characters that make a spreadsheet read a cell as a formula (OWASP, CSV Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        **{special: f"\\{special}" for special in "{}$&#_%"},
    }
)
_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{special: f"\\{special}" for special in "\\`*_[]|~$#"}}
)


def tab_text(text: str) -> str:
    r"""Replace each TAB, which would begin another cell, as GEval does.

    >>> tab_text("1901\tNew York")
    '1901<tab>New York'
    """
    return text.replace("\t", "<tab>")


def terminal_text(text: str) -> str:
    r"""Escape text for a terminal, with TABs as in :func:`tab_text`.

    >>> print(terminal_text("a\tb\x1b[31m"))
    a<tab>b\x1b[31m
    """
    return visible(tab_text(text))


def markdown_text(text: str) -> str:
    r"""Escape text for Markdown, also inside a table.

    >>> print(markdown_text("a|b"))
    a\|b
    """
    return text.translate(_MARKDOWN)


def latex_text(text: str) -> str:
    r"""Escape text for LaTeX; two hyphens stay two, not a dash.

    >>> print(latex_text("50 %_x--y"))
    50 \%\_x-{}-y
    """
    escaped = text.translate(_LATEX)
    return re.sub("-(?=-)", "-{}", escaped) if "--" in escaped else escaped


def latex_number(text: str) -> str:
    r"""Write a cell of numbers with LaTeX's mathematical signs, and stars above the line.

    >>> latex_number("[-213, Infinity]"), latex_number("<1 %"), latex_number("-3±1**")
    ('[$-$213, $\\infty$]', '$<$1 \\%', '$-$3$\\pm$1$^{**}$')
    """
    return re.sub(r"([-+<]?Infinity|[-+<±])|([*]+)|[\\{}$&#_%~^>|`]", _latex_sign, text)


def _latex_sign(match: re.Match[str]) -> str:
    sign, stars = match.groups()
    if stars:
        return f"$^{{{stars}}}$"
    if sign:
        return f"${sign}$".replace("Infinity", r"\infty").replace("±", r"\pm")
    return match[0].translate(_LATEX)


def csv_text(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula; the csv module adds quotes.

    >>> csv_text("=1+1"), csv_text("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def html_text(text: str) -> str:
    """Escape text for HTML, also inside attributes.

    >>> html_text('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    from html import escape  # whose table of entities is large

    return escape(text)


def json_text(document: Mapping[str, Any] | list[Any]) -> str:
    r"""Write a JSON document in ASCII that strict parsers accept.

    Infinity and NaN become strings. Lone surrogates, as in a path that is not UTF-8, become escapes, since strict
    parsers refuse ``"\udc80"``. ``##[``, which begins a command in the log of a GitHub job, is written as an escape.
    """
    return _written(document, indent=2) + "\n"


def json_list_text(head: Mapping[str, Any], name: str, items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Write a document that ends in a long list piece by piece, like :func:`json_text` but with an item per line."""
    end = "]\n}\n"
    yield json_text({**head, name: []}).removesuffix(end)
    comma = ""
    for item in items:
        yield f"{comma}\n    {_written(item)}"
        comma, end = ",", "\n  ]\n}\n"
    yield end


def _written(document: object, indent: int | None = None) -> str:
    import json  # here: a score for people needs none

    written = json.dumps(_strict(document), ensure_ascii=True, indent=indent, allow_nan=False)
    return written.replace("##[", "##\\u005b")


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else exact(value)
    if isinstance(value, Mapping):
        return {_strict(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value


def environment(package: str) -> Environment:
    """Return the Jinja environment for the folder ``templates`` of a package; it escapes every text for HTML.

    Control characters and marks that change the direction of a line are shown as escapes.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
            return visible(value)
        return value

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=shown,
    )


def short(value: object, limit: int = 40) -> str:
    r"""Shorten a stranger's text to at most ``limit`` characters, with escapes for control characters.

    >>> short("a\x1b[31m")
    'a\\x1b[31m'
    """
    text = shorten(str(value), limit)
    return text if text.isprintable() else shorten(visible(text), limit)
