"""Text that strangers wrote: made visible, measured, shortened, excerpted with a caret, put in order."""

from __future__ import annotations

import re
from collections.abc import Iterable

EXCERPT_WIDTH = 76  # columns of a line that are shown around the caret


def visible(text: str) -> str:
    r"""Write every character that a terminal would act on, or not show, as an escape.

    Text from strangers is shown in error messages: no byte of it may move the cursor, change a colour or
    reverse the line.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def display_width(text: str) -> int:
    """Count the terminal columns that a text takes: two for wide characters, none for combining ones.

    >>> display_width("水e\N{COMBINING ACUTE ACCENT}")
    3
    """
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Give the known word that is most like a misspelt one, None if none is like it.

    >>> nearest("perplexity", ["Perplexity", "LogLoss"])
    'Perplexity'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1)), None)


def shorten(text: str, limit: int = 40) -> str:
    """Cut a long token in the middle, for a message."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-(limit // 2 - 1) :]}"


def excerpt(text: str, column: int, width: int = EXCERPT_WIDTH) -> str:
    """Show the part of a line around a column (from 1), with a caret below it, on two lines."""
    start = max(0, column - 1 - width // 2)
    end = start + width
    head, tail = ("…" if start else ""), ("…" if end < len(text) else "")
    before = head + visible(text[start : column - 1])
    return f"{before}{visible(text[column - 1 : end])}{tail}\n{' ' * display_width(before)}^"


def named(path: str) -> str:
    """Name a file in a sentence.

    >>> named("out.tsv"), named("-")
    ('`out.tsv`', 'standard input')
    """
    return "standard input" if path == "-" else f"`{visible(path)}`"


def natural_order(name: str) -> list[tuple[bool, int, str]]:
    """Give a sort key by which out-2 comes before out-10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(not digits, int(digits[:4000] or 0), digits or text) for digits, text in parts]
