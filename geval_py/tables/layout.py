"""Tables on a terminal: numbers are never cut, texts wrap, and no column is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from geval_py.text import BREAK, cut, fitted, styled_width, wrapped

SPACE = "  "  # between columns
MIN_TEXT_WIDTH = 12  # columns of a text that wraps
SAMPLE_ROWS = 100  # decide the widths: rows come one by one, and there may be millions
ROWS_PER_SCREEN = 20
GAP_MARK = "\0"  # in a context; no other text has it, since control characters are escaped
SHOWN_GAP = " ___ "


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
        words = (word for cell in (column[:header] if is_text else column) for word in re.split(BREAK, cell))
        least = max(map(styled_width, words), default=0)
        widths.append(max(least, min(needs[-1], MIN_TEXT_WIDTH)) if is_text else least)
    surplus = width - sum(widths) - len(SPACE) * (len(widths) - 1)
    if surplus < 0:
        for number, row in enumerate(chain(sample, rows)):
            yield from ["\n"] if number else []
            for heading, cell in zip(headings, row, strict=True):
                label = f"{heading}: " if header else ""
                shown = around_gap(cell, width - styled_width(label)) if GAP_MARK in cell else cell
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
                part + " " * (space - styled_width(part)) if is_text else " " * (space - styled_width(part)) + part
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
    return (
        len(SHOWN_GAP) + 2 * max(map(styled_width, cell.split(GAP_MARK))) if GAP_MARK in cell else styled_width(cell)
    )


def around_gap(context: str, width: int) -> str:
    r"""Show what of a context fits beside the gap, which is in the middle.

    >>> around_gap("on the\0of the city", 17)
    'on the ___ of th…'
    """
    left, _, right = context.partition(GAP_MARK)
    side = (width - len(SHOWN_GAP)) // 2
    left = cut(left.rstrip(" "), side, keep_end=True)
    return " " * (side - styled_width(left)) + left + SHOWN_GAP + cut(right.lstrip(" "), side)
