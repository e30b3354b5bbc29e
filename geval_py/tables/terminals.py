"""Terminals: their colours (ECMA-48), their width, and rows in columns that fit into it."""

from __future__ import annotations

import os
import re
from itertools import chain, islice

from geval_py.text import display_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Literal, TextIO, TypeAlias

    Alignment: TypeAlias = Literal["left", "centre", "right"]

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
GAP = "  "
LEAST_WIDTH = 6  # columns of text that remain, however narrow the terminal
ROWS_LOOKED_AT = 100  # rows that decide the widths: they come one by one, and there may be millions
_STYLE = "\x1b\\[[0-9;]*m"  # not compiled at import: writing to a pipe does not need it


def width_of(stream: TextIO) -> int | None:
    """Return a terminal's width in columns, or ``COLUMNS``; None for a stream that is no terminal."""
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):
        return USUAL_WIDTH


def laid_out(rows: Iterable[Sequence[str]], alignments: Sequence[Alignment], width: int) -> Iterator[str]:
    """Yield a line per row, in columns that fit into a terminal's width; the rows may be an iterator.

    Text, which is aligned left, is cut with ``…`` where it does not fit. Numbers are never cut: one that is wider
    than its column takes space from the last column of text.
    """
    rows = iter(rows)
    first = list(islice(rows, ROWS_LOOKED_AT))
    needed = [max(map(_width, column)) for column in zip(*first, strict=True)]
    texts = [column for column, alignment in enumerate(alignments) if alignment == "left"]
    widths = _fitting(needed, texts, width)
    for row in chain(first, rows):
        excess = sum(max(0, _width(row[n]) - most) for n, most in enumerate(widths) if n not in texts)
        fitting = list(widths)
        if excess and texts:
            last = widths[texts[-1]]
            fitting[texts[-1]] = max(min(last, LEAST_WIDTH), last - excess)
        yield GAP.join(map(_padded, row, fitting, alignments)).rstrip(" ") + "\n"


def _fitting(needed: Sequence[int], texts: Sequence[int], width: int) -> list[int]:
    """Return the columns' widths: those of text share the space that the numbers leave."""
    widths = list(needed)
    left = width - len(GAP) * (len(needed) - 1) - sum(needed) + sum(needed[column] for column in texts)
    for done, column in enumerate(sorted(texts, key=needed.__getitem__)):
        share = max(LEAST_WIDTH, left // (len(texts) - done))
        widths[column] = min(needed[column], share)
        left -= widths[column]
    return widths


def _padded(cell: str, width: int, alignment: Alignment) -> str:
    if alignment != "left":
        return " " * (width - _width(cell)) + cell
    cell = cut(cell, width)
    return cell + " " * (width - _width(cell))


def _width(cell: str) -> int:
    return display_width(re.sub(_STYLE, "", cell) if "\x1b" in cell else cell)


def cut(text: str, width: int) -> str:
    r"""Cut a text, which may contain styles, to ``width`` columns.

    >>> cut("prayers", 7), cut("prayers", 6), cut("水水水", 4)
    ('prayers', 'praye…', '水…')
    """
    if text.isascii() and "\x1b" not in text:
        return text if len(text) <= width else text[: width - 1] + "…"
    shown: list[str] = []
    taken, fitting = 0, 0
    for part in re.finditer(f"{_STYLE}|.", text, re.DOTALL):
        taken += display_width(part[0]) if len(part[0]) == 1 else 0
        if taken > width:
            head = "".join(shown[:fitting])
            has_style = re.findall(_STYLE, head)[-1:] not in ([], [PLAIN])
            return f"{head}…{PLAIN if has_style else ''}"
        shown.append(part[0])
        fitting = len(shown) if taken < width else fitting
    return text
