"""What a format would act on, written so that it is shown: an escape for each format.

Control characters are no business of those that are for no terminal: :func:`geval_py.text.visible` comes first.
"""

from __future__ import annotations

import html
import re

from geval_py.text import visible

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
    r"""Write a TAB, which would begin another cell, as GEval does.

    >>> tab_text("1901\tNew York")
    '1901<tab>New York'
    """
    return text.replace("\t", "<tab>")


def terminal_text(text: str) -> str:
    r"""Write the same for a terminal, and all else that it would act on as an escape.

    >>> print(terminal_text("a\tb\x1b[31m"))
    a<tab>b\x1b[31m
    """
    return visible(tab_text(text))


def markdown_text(text: str) -> str:
    r"""Escape text for Markdown, in a table too.

    >>> print(markdown_text("a|b"))
    a\|b
    """
    return text.translate(_MARKDOWN)


def latex_text(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> print(latex_text("50 %_x"))
    50 \%\_x
    """
    return text.translate(_LATEX)


def latex_number(text: str) -> str:
    r"""Write what stands in a cell of numbers, with the signs of mathematics.

    >>> latex_number("[-213, Infinity]"), latex_number("<1 %")
    ('[$-$213, $\\infty$]', '$<$1 \\%')
    """
    signs = re.sub("[-+<]?Infinity|[-+<]", lambda match: f"${match[0]}$", text)
    return signs.replace("Infinity", r"\infty").replace("%", r"\%")


def csv_text(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula; quotes are the csv module's to add.

    >>> csv_text("=1+1"), csv_text("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def html_text(text: str) -> str:
    """Escape text for HTML, in attributes too.

    >>> html_text('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    return html.escape(text)
