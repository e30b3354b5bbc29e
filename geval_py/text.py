"""Text from strangers in messages: escaped, measured, shortened, with a caret below; names in natural order.

At the end: the colours and the width of a terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, TextIO, TypeAlias

Alignment: TypeAlias = Literal["left", "centre", "right"]

# White space by Haskell's Data.Char.isSpace, for a regular expression: without U+0085, U+001C to 1F, U+2028 and 2029.
SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_SPACES = "\t\n\v\f\r \u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))  # the same


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text: ``words("a b")`` is ``("a", "b")``."""
    return tuple(text.split())


def visible(text: str) -> str:
    r"""Escape every character that a terminal would not print: control characters, marks of direction and the like.

    In an error message, text from strangers must not move the cursor, change a colour or reverse the line.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def strip_spaces(text: str) -> str:
    r"""Strip white space at both ends like Haskell's ``Data.Text.strip``, which strips less than ``str.strip``.

    >>> strip_spaces(" a\u00a0"), strip_spaces("a\x1c")
    ('a', 'a\x1c')
    """
    return text.strip(_SPACES)


def split_words(text: str) -> list[str]:
    r"""Split at white space like Haskell's ``Data.Text.words``: at space, TAB to CR, U+00A0 and the category Zs.

    >>> split_words(" a\tb\u3000c\u2028d ")
    ['a', 'b', 'c\u2028d']
    """
    return re.findall(f"[^{SPACES}]+", text)


# Characters that take one column: ASCII, Latin letters, and the dashes, quotes and dots of Western texts.
_NARROW = re.compile(r"[ -~\u00a1-\u02ff\u2010-\u2027]*")


def display_width(text: str) -> int:
    """Count the terminal columns of a text: two for wide characters, none for combining ones.

    >>> display_width("水e\N{COMBINING ACUTE ACCENT}")
    3
    """
    return len(text) if _NARROW.fullmatch(text) else sum(width for _, width in characters(text))


def characters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the characters of a text, each with the marks that combine with it, and how many columns it takes."""
    if _NARROW.fullmatch(text):
        yield from ((character, 1) for character in text)
        return
    from wcwidth import iter_graphemes, width  # here: its tables take longer to load than Python takes to start

    yield from ((character, width(character)) for character in iter_graphemes(text))


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word most similar to a misspelt one, None if no word is; ``cutoff`` is from 0, to 1 for equal.

    Case does not count.

    >>> nearest("LOGLOS", ["Perplexity", "LogLoss"])
    'LogLoss'
    """
    from difflib import get_close_matches

    known = {name.casefold(): name for name in reversed(list(words))}  # of equal ones, the first counts
    return next((known[close] for close in get_close_matches(word.casefold(), known, n=1, cutoff=cutoff)), None)


def suggestion(word: str, words: Iterable[str], written: str = "{}") -> str:
    """Return the beginning of a hint for a misspelt word, "" if no known word is similar.

    >>> suggestion("perplexity", ["Perplexity", "LogLoss"])
    'did you mean Perplexity? '
    """
    close = nearest(word, words)
    return f"did you mean {written.format(visible(close))}? " if close else ""


def shorten(text: str, limit: int = 40) -> str:
    """Cut a long token in the middle, for a message."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-(limit // 2 - 1) :]}"


def some_of(names: Iterable[str], most: int = 8) -> str:
    r"""Name a few of many things in a message, escaped, and count the rest.

    >>> some_of(["a", "b\t"]), some_of("abcdefghijk", 3)
    ('a, b\\t', 'a, b, c and 8 more')
    """
    escaped = [visible(name) for name in names]
    rest = len(escaped) - most
    return ", ".join(escaped[:most]) + (f" and {rest} more" if rest > 0 else "")


def shown(value: object) -> str:
    """Return the ``repr()`` of any value, shortened and escaped.

    >>> print(shown(1.5), shown("out.tsv"))
    1.5 'out.tsv'
    """
    return visible(shorten(repr(value)))


def excerpt(text: str, column: int, width: int = 76) -> str:
    """Return two lines: the part of a line around a column (from 1), and a caret below that column."""
    start = max(0, column - 1 - width // 2)
    end = start + width
    head, tail = ("…" if start else ""), ("…" if end < len(text) else "")
    before = head + visible(text[start : column - 1])
    return f"{before}{visible(text[column - 1 : end])}{tail}\n{' ' * display_width(before)}^"


def named(path: str) -> str:
    """Quote a file's name for a sentence; an address loses its credentials.

    >>> named("out.tsv"), named("-"), named("sftp://me:secret@host/out.tsv")
    ('`out.tsv`', 'standard input', '`sftp://host/out.tsv`')
    """
    return "standard input" if path == "-" else f"`{visible(without_credentials(path))}`"


def without_credentials(text: str) -> str:
    """Remove user names and passwords from the addresses in a text.

    >>> without_credentials("cannot connect to sftp://me:secret@host:22/runs")
    'cannot connect to sftp://host:22/runs'
    """
    return re.sub(r"(://)[^/\s]*@", r"\1", text) if "://" in text else text


def natural_order(name: str) -> tuple[list[str | float], str]:
    """Return a key that sorts numbers in names by size.

    >>> sorted(["out-10", "out-2", "lr=0.1", "lr=0.05", "lr=1e-4"], key=natural_order)
    ['lr=1e-4', 'lr=0.05', 'lr=0.1', 'out-2', 'out-10']
    """
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", name)  # every second part is a number
    return [float(part) if place % 2 else part for place, part in enumerate(parts)], name


# Terminals. The colours are those of ECMA-48.
BOLD_RED, RED, YELLOW, DIM = "\x1b[1;31m", "\x1b[31m", "\x1b[33m", "\x1b[2m"
PLAIN = "\x1b[0m"  # ends each of them


def colours_are_unwanted() -> bool:
    """Whether ``NO_COLOR`` is set, which nothing overrides (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def shows_colours(stream: TextIO) -> bool:
    """Whether to write colours to a stream: to a terminal that can show them, or where they are forced.

    ``NO_COLOR``, unless empty, forbids them everywhere; ``FORCE_COLOR``, unless empty or ``0``, forces them into
    files, pipes and ``TERM=dumb`` too.
    """
    if colours_are_unwanted():
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0") or is_able_terminal(stream)


def is_able_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal other than ``TERM=dumb``."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


USUAL_WIDTH = 80  # columns, if a terminal does not report its width


def width_of(stream: TextIO) -> int | None:
    """Return a terminal's width in columns, or ``COLUMNS``; None for a stream that is no terminal."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):
        return USUAL_WIDTH
