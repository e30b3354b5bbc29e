"""Tables and sentences on a terminal: numbers are never cut, texts wrap, and no column is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from geval_py.text import characters, display_width, visible

SPACE = "  "  # between columns
INDENT = "  "  # of the lines that continue a text
MIN_TEXT_WIDTH = 12  # columns of a text that wraps
SAMPLE_ROWS = 100  # decide the widths: rows come one by one, and there may be millions
ROWS_PER_SCREEN = 20
GAP_MARK = "\0"  # in a context; no other text has it, since control characters are escaped
SHOWN_GAP = " ___ "
_STYLE = "\x1b\\[[0-9;]*m"  # a colour
_BREAK = r" (?!%|[^ ]*\])"  # a space, but not before a percent sign or the upper end of an interval


def laid_out(
    headings: Sequence[str],
    are_texts: Sequence[bool],
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    header: bool = True,
) -> Iterator[str]:
    """Yield the lines of a table on a terminal of a ``width``; ``rows`` hold written cells, and are read one by one.

    Texts are flush left, and wrap where they must, to MIN_TEXT_WIDTH columns or more. Numbers are flush right, and
    wrap only between words. If the columns do not fit even so, each row is a list of headings and cells. The header
    is repeated on each screen.
    """
    rows = iter(rows)
    sample = list(islice(rows, SAMPLE_ROWS))
    needs, widths = list[int](), list[int]()
    shortest_text = MIN_TEXT_WIDTH if len(sample) == SAMPLE_ROWS else 0  # there may be longer ones in later rows
    for column, is_text in zip(zip(*[headings] * header, *sample, strict=True), are_texts, strict=False):
        needs.append(max(*map(_needed, column), shortest_text * is_text))
        words = (word for cell in (column[:header] if is_text else column) for word in re.split(_BREAK, cell))
        least = max(map(_width, words), default=0)
        widths.append(max(least, min(needs[-1], MIN_TEXT_WIDTH)) if is_text else least)
    surplus = width - sum(widths) - len(SPACE) * (len(widths) - 1)
    if surplus < 0:
        for number, row in enumerate(chain(sample, rows)):
            yield from ["\n"] if number else []
            for heading, cell in zip(headings, row, strict=True):
                label = f"{heading}: " if header else ""
                shown = around_gap(cell, width - _width(label)) if GAP_MARK in cell else cell
                yield from fitted([f"{label}{shown}".rstrip(" ")], width)
        return
    for of_texts in (True, False):  # columns share the space that is left, and none gets more than it needs
        columns = [n for n in range(len(widths)) if are_texts[n] == of_texts]
        columns.sort(key=lambda n: needs[n] - widths[n])
        for done, n in enumerate(columns):
            extra = min(needs[n] - widths[n], surplus // (len(columns) - done))
            widths[n] += extra
            surplus -= extra

    def lines(row: Sequence[str]) -> Iterator[str]:
        cells = [
            [around_gap(cell, space)] if GAP_MARK in cell else wrapped(cell, space, is_text=is_text)
            for cell, space, is_text in zip(row, widths, are_texts, strict=True)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (
                part + " " * (space - _width(part)) if is_text else " " * (space - _width(part)) + part
                for part, space, is_text in zip(parts, widths, are_texts, strict=True)
            )
            yield SPACE.join(padded).rstrip(" ") + "\n"

    head = list(lines(headings)) if header else []
    yield from head
    for number, row in enumerate(chain(sample, rows)):
        yield from head if number and number % ROWS_PER_SCREEN == 0 else []
        yield from lines(row)


def _needed(cell: str) -> int:
    """Return how many columns a cell takes in one line; a context, with the gap in the middle."""
    return len(SHOWN_GAP) + 2 * max(map(_width, cell.split(GAP_MARK))) if GAP_MARK in cell else _width(cell)


def around_gap(context: str, width: int) -> str:
    r"""Show what of a context fits beside the gap, which is in the middle.

    >>> around_gap("on the\0of the city", 17)
    'on the ___ of th…'
    """
    left, _, right = context.partition(GAP_MARK)
    side = (width - len(SHOWN_GAP)) // 2
    left = cut(left.rstrip(" "), side, keep_end=True)
    return " " * (side - _width(left)) + left + SHOWN_GAP + cut(right.lstrip(" "), side)


# Texts, which may contain styles


def _width(cell: str) -> int:
    return display_width(re.sub(_STYLE, "", cell) if "\x1b" in cell else cell)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield styles and characters, and how many columns they take."""
    for part in re.split(f"({_STYLE})", text) if "\x1b" in text else [text]:
        yield from [(part, 0)] if part.startswith("\x1b") else characters(part)


def cut(text: str, width: int, *, keep_end: bool = False) -> str:
    r"""Shorten a text to ``width`` columns: to its beginning, or its end; no style is lost.

    >>> cut("prayers", 7), cut("prayers", 6), cut("prayers", 6, keep_end=True), cut("水水水", 4)
    ('prayers', 'praye…', '…ayers', '水…')
    """
    if _width(text) <= width:
        return text
    parts = list(_parts(text))[:: -1 if keep_end else 1]
    kept, left = 0, width - 1
    while parts[kept][1] <= left:
        left -= parts[kept][1]
        kept += 1
    styles = [part for part, _ in parts[kept:] if part.startswith("\x1b")]
    shown = [*(part for part, _ in parts[:kept]), "…", *styles]
    return "".join(shown[:: -1 if keep_end else 1])


def picture(text: str, column: int, width: int) -> str:
    """Return two lines of ``width`` columns: the part of a line around a column (from 1), and a caret below it.

    >>> print(picture("abcdefghij", 6, 6))
    …efgh…
      ^
    """
    near = 8 * width  # characters: the line may have millions, and some of them take no column
    place = column - 1
    before, after = visible(text[max(0, place - near) : place]), visible(text[place : place + near])
    left = min(_width(before), max((width - 1) // 2, width - _width(after)), width - 1)
    before = cut(before, left, keep_end=True) if left else ""
    return f"{before}{cut(after, width - _width(before))}\n{' ' * _width(before)}^"


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines with their ends, broken between words where a terminal's ``width`` is too narrow for them."""
    for line in lines:
        yield from (f"{part}\n" for part in ([line] if width is None else wrapped(line, width)))


def wrapped(line: str, width: int, *, is_text: bool = True) -> Iterator[str]:
    """Break a line between words. A text is also broken in words that are too long, and the rest is indented.

    Such a word is broken behind a comma or a slash, if it has one.

    >>> list(wrapped("won: lines with a lower loss", 20)), list(wrapped("549.9 [512, 598]", 8, is_text=False))
    (['won: lines with a', '  lower loss'], ['549.9', '[512, 598]'])
    """
    if _width(line) <= width:
        yield line
        return
    words = line.lstrip(" ")
    current = " " * min(len(line) - len(words), width // 2)
    indent = current + INDENT * is_text
    for word in re.split(_BREAK, words):
        longer = f"{current} {word}" if current.strip(" ") else current + word
        if _width(longer) <= width:
            current = longer
            continue
        if current.strip(" "):
            yield current.rstrip(" ")
            current = indent
        taken = len(current)
        for part, space in _parts(word):
            if is_text and taken + space > width and current.strip(" "):
                end = max(map(current.rfind, ",/")) + 1 or len(current)  # parameters and folders are kept whole
                yield current[:end]
                current = indent + current[end:]
                taken = _width(current)
            current, taken = current + part, taken + space
    yield current
