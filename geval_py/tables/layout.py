"""Tables and sentences on a terminal: columns that fit into its width, names that stay distinct, wrapped lines.

A table that is too wide becomes narrower in steps: names lose the beginning and the end that all of them have;
columns are left out, in the order that the table says; texts are shortened. Names are never shortened to equal ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

from geval_py.text import characters, display_width, shared_beginning, visible

if TYPE_CHECKING:
    from typing import Literal, Self, TypeAlias

# Where a text that is too long is shortened: names in the middle. A context has GAP_MARK in it, and what is farthest
# from it is left out. Numbers are written flush right, and never shortened.
Cut: TypeAlias = "Literal['end', 'middle', 'around', 'never']"
Kind: TypeAlias = "Cut | Literal['number']"

SPACE = "  "  # between columns
MIN_TEXT_WIDTH = 6  # cells of a text that remain, however narrow the terminal
READABLE_WIDTH, READABLE_CONTEXT = 12, 15  # a column is left out before another's texts have fewer cells
SAMPLE_ROWS = 100  # that decide the widths: rows come one by one, and there may be millions
ROWS_PER_SCREEN = 20
MAX_NAMES_COMPARED = 1000  # names for which all places of the ellipsis are tried
GAP_MARK = "\0"  # no other text has it, since control characters are escaped
SHOWN_GAP = " ___ "
INDENT = "  "
_STYLE = "\x1b\\[[0-9;]*m|\x1b\\]8;;[^\x1b]*\x1b\\\\"  # a colour, or where a link begins or ends
_BEGINNING = r"(?s).*(?:[=,;:/_ ]|(?<!\d[eE])-)"  # the "-" in 1e-4 is no place to part a name
_ENDING = r"(?s)(?:[,;/_ ]|[.-](?=[^\W\d])).*"


def laid_out(
    headings: Sequence[str],
    kinds: Sequence[Kind],
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    header: bool = True,
    droppable: Sequence[int] = (),
    whole: str = "--format csv",
    legend: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table that fits into a terminal's width, sentences on what was left out, and the legend.

    ``rows`` hold written cells. ``droppable`` are the places of the columns that may be left out, the last one first;
    ``whole`` is what a user adds to the command to see them. Numbers are never cut: one that is wider than those
    before takes space from the last text. The headings are written again and again, so that each screen of a long
    table has them. The rows are read one by one unless some of their cells are names.
    """
    rows, to_drop = iter(rows), list(droppable)
    first = list(rows if "middle" in kinds else islice(rows, SAMPLE_ROWS))
    is_text = [kind not in ("never", "number") for kind in kinds]
    kept, dropped = list(range(len(headings))), list[int]()

    def needed(n: int, cells: Iterable[str]) -> int:
        heading = display_width(headings[n]) if header else 0
        if kinds[n] == "around":
            sides = (_width(side) for cell in cells for side in cell.split(GAP_MARK))
            return max(heading, len(SHOWN_GAP) + 2 * max(sides, default=0))
        return max(heading, max(map(_width, cells), default=0))

    def fits(widths: Sequence[int]) -> bool:
        return sum(widths[n] + len(SPACE) for n in kept) - len(SPACE) <= width

    needs = [needed(n, [row[n] for row in first]) for n in kept]

    def shared_widths() -> list[int]:
        """Return the columns' widths: texts share the space that the others leave, none gets more than it needs."""
        widths = list(needs)
        texts = sorted((n for n in kept if is_text[n]), key=widths.__getitem__)
        left = width - len(SPACE) * (len(kept) - 1) - sum(widths[n] for n in kept if not is_text[n])
        for done, n in enumerate(texts):
            widths[n] = min(widths[n], max(MIN_TEXT_WIDTH, left // (len(texts) - done)))
            left -= widths[n]
        return widths

    # What is shown of each name, and what is said below the table about the ends that all of them have.
    names = {n: {row[n]: row[n] for row in first} for n in kept if kinds[n] == "middle"}
    ends: dict[int, str] = {}
    for n in names if not fits(needs) else ():
        beginning, ending = shared_ends(list(names[n]))
        names[n] = {name: name.removeprefix(beginning).removesuffix(ending) for name in names[n]}
        needs[n] = needed(n, names[n].values())
        sides = [f"`{visible(end)}` {side}" for end, side in ((beginning, "before"), (ending, "after")) if end]
        if sides:
            ends[n] = f"{headings[n]}: each name is shown without {' and '.join(sides)} it."
    readable = [READABLE_CONTEXT if kind == "around" else READABLE_WIDTH for kind in kinds]
    least = [min(need, readable[n]) if is_text[n] else need for n, need in enumerate(needs)]
    while True:
        widths = shared_widths()
        shown = {n: cut_names(names[n].values(), widths[n]) for n in names if n in kept}
        are_distinct = all(len({*texts.values()}) == len(texts) for texts in shown.values())
        if not to_drop or (fits(least) and are_distinct):
            break
        dropped.append(to_drop.pop())
        kept.remove(dropped[-1])
    for n, texts in shown.items():  # names that would look equal are shown whole, in several lines
        times = Counter(texts.values())
        texts |= {one: "\n".join(_pieces(one, max(2, widths[n]))) for one in texts if times[texts[one]] > 1}
        names[n] = {name: texts[one] for name, one in names[n].items()}

    def line(row: Sequence[str], *, is_head: bool = False) -> str:
        own = list(widths)
        texts = [n for n in kept if is_text[n]]
        excess = sum(max(0, _width(row[n]) - own[n]) for n in kept if not is_text[n])
        if excess and texts:
            own[texts[-1]] = max(min(own[texts[-1]], MIN_TEXT_WIDTH), own[texts[-1]] - excess)
        cells = [row[n] if is_head else names.get(n, {}).get(row[n], row[n]) for n in kept]
        lines = zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
        written = ""
        for parts in lines:
            padded = (_padded(part, kinds[n], own[n], is_head=is_head) for n, part in zip(kept, parts, strict=True))
            written += SPACE.join(padded).rstrip(" ") + "\n"
        return written

    head = line(headings, is_head=True) if header else ""
    yield from [head] if header else []
    for number, row in enumerate(chain(first, rows)):
        yield (head if number and number % ROWS_PER_SCREEN == 0 else "") + line(row)
    notes = [ends[n] for n in ends if n in kept]
    without = {headings[n] for n in dropped} - {headings[n] for n in kept}
    if dropped:
        listed = ", ".join(dict.fromkeys(headings[n] for n in sorted(dropped)))
        notes.append(f"Not shown: {listed}; a wider terminal or {whole} shows all.")
    for below in (notes, legend_without(legend, without)):
        yield from fitted(["", *below] if below else [], width)


def _padded(cell: str, kind: Kind, width: int, *, is_head: bool) -> str:
    """Write a cell of a column's width; a context has its gap in the middle, below those of the other rows."""
    if kind == "number":
        return " " * (width - _width(cell)) + cell
    if kind == "around" and not is_head:
        left, _, right = cell.partition(GAP_MARK)
        side = (width - len(SHOWN_GAP)) // 2
        left = cut(left.rstrip(" "), side, head=0)
        cell = " " * (side - _width(left)) + left + SHOWN_GAP + cut(right.lstrip(" "), side)
    elif kind != "never":
        cell = cut(cell, width)
    return cell + " " * (width - _width(cell))


class Legend(str):
    """A line of a legend that explains columns, in parts: the headings of some columns, and what they mean.

    A part without columns goes with the others.

    >>> line = Legend((["won", "lost"], "lines"), (["p"], "a test"), ((), "two-sided"))
    >>> line, line.without({"lost", "p"}), line.without({"won", "lost", "p"})
    ('won, lost: lines; p: a test; two-sided.', 'won: lines; two-sided.', None)
    """

    __slots__ = ("parts",)
    parts: tuple[tuple[Sequence[str], str], ...]

    def __new__(cls, *parts: tuple[Sequence[str], str]) -> Self:
        """Join the parts to a sentence."""
        phrases = (f"{', '.join(columns)}: {meaning}" if columns else meaning for columns, meaning in parts)
        line = super().__new__(cls, f"{'; '.join(phrases)}.")
        line.parts = parts
        return line

    def without(self, left_out: Set[str]) -> Legend | None:
        """Leave out what it says of some columns; None if it explains no other, unless it begins with no column."""
        left = [([name for name in columns if name not in left_out], meaning) for columns, meaning in self.parts]
        kept = [part for part, (columns, _) in zip(left, self.parts, strict=True) if part[0] or not columns]
        return Legend(*kept) if any(columns for columns, _ in left) or not self.parts[0][0] else None


def legend_without(lines: Iterable[str], left_out: Set[str]) -> list[str]:
    """Leave out of a legend what it says of some columns."""
    explained = (line.without(left_out) if isinstance(line, Legend) else line for line in lines)
    return [line for line in explained if line is not None]


# Names


def shared_ends(names: Sequence[str]) -> tuple[str, str]:
    """Return the beginning and the end that all of some distinct names have, up to a sign between their parts.

    >>> shared_ends(["out-model=bigram.tsv", "out-model=bigger.tsv"])
    ('out-model=', '.tsv')
    >>> shared_ends(["out.tsv", "out-2.tsv"]), shared_ends(["out.tsv"])
    (('', '.tsv'), ('', ''))
    """
    if len(names) < 2:
        return "", ""
    match = re.match(_BEGINNING, shared_beginning(names))
    beginning = match[0] if match else ""
    rests = [name.removeprefix(beginning) for name in names]
    if not all(rests) or any(next(characters(rest))[1] == 0 for rest in rests):
        beginning, rests = "", list(names)
    match = re.search(_ENDING, shared_beginning([rest[::-1] for rest in rests])[::-1])
    ending = match[0] if match else ""
    return beginning, "" if ending in rests else ending


def cut_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Shorten names to ``width`` cells, all at one place: the one nearest to the middle that leaves them distinct.

    If there is none, the names are shortened in the middle.

    >>> list(cut_names(["alpha=1,epochs=10", "alpha=2,epochs=10", "none"], 9).values())
    ['alpha=1…0', 'alpha=2…0', 'none']
    """
    unique = list(dict.fromkeys(names))
    middle = (width - 1) // 2
    heads = sorted(range(width), key=lambda head: abs(head - middle)) if len(unique) <= MAX_NAMES_COMPARED else []
    for head in (*heads, middle):
        shown = [cut(name, width, head) for name in unique]
        if len(set(shown)) == len(shown):
            break
    return dict(zip(unique, shown, strict=True))


# Texts, which may contain styles


def _width(cell: str) -> int:
    return display_width(re.sub(_STYLE, "", cell) if "\x1b" in cell else cell)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield styles and characters, and how many cells they take."""
    for part in re.split(f"({_STYLE})", text) if "\x1b" in text else [text]:
        yield from [(part, 0)] if part.startswith("\x1b") else characters(part)


def cut(text: str, width: int, head: int | None = None) -> str:
    r"""Shorten a text to ``width`` cells, of which ``head`` are its beginning, by default all; no style is lost.

    >>> cut("prayers", 7), cut("prayers", 6), cut("prayers", 6, 0), cut("bigram-smoothed", 9, 4), cut("水水水", 4)
    ('prayers', 'praye…', '…ayers', 'bigr…thed', '水…')
    """
    if _width(text) <= width:
        return text
    head = max(0, width - 1) if head is None else head
    parts = list(_parts(text))
    ends = []
    for some, cells in ((parts, head), (parts[::-1], width - 1 - head)):
        kept = 0
        while kept < len(some) and some[kept][1] <= cells:
            cells -= some[kept][1]
            kept += 1
        ends.append(kept)
    start, stop = ends[0], len(parts) - ends[1]
    styles = "".join(part for part, _ in parts[start:stop] if part.startswith("\x1b"))
    return "".join(p for p, _ in parts[:start]) + "…" + styles + "".join(p for p, _ in parts[stop:])


def _pieces(text: str, width: int) -> Iterator[str]:
    """Break a text at any character into pieces of so many cells."""
    piece, taken = "", 0
    for part, cells in _parts(text):
        if taken + cells > width:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + part, taken + cells
    yield piece


def picture(text: str, column: int, width: int) -> str:
    """Return two lines of ``width`` cells: the part of a line around a column (from 1), and a caret below it.

    >>> print(picture("abcdefghij", 6, 6))
    …efgh…
      ^
    """
    near = 8 * width  # characters: the line may have millions, and some of them take no cell
    place = column - 1
    before, after = visible(text[max(0, place - near) : place]), visible(text[place : place + near])
    left = min(_width(before), max((width - 1) // 2, width - _width(after)), width - 1)
    before = cut(before, left, 0) if left else ""
    return f"{before}{cut(after, width - _width(before))}\n{' ' * _width(before)}^"


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines with their ends, broken between words where a terminal's ``width`` is too narrow for them."""
    for line in lines:
        yield from (f"{part}\n" for part in ([line] if width is None else wrapped(line, width)))


def wrapped(line: str, width: int) -> Iterator[str]:
    """Break a line between words; the lines that follow are indented two more.

    >>> list(wrapped("won: lines with a lower loss", 20))
    ['won: lines with a', '  lower loss']
    """
    words = line.lstrip(" ")
    indent = " " * min(len(line) - len(words), width // 2)
    current = indent if _width(line) > width else line
    for word in re.split(" (?!%)", words) if _width(line) > width else []:  # the sign for percent follows its number
        longer = f"{current} {word}" if current.strip(" ") else current + word
        if _width(longer) <= width:
            current = longer
            continue
        if current.strip(" "):
            yield current.rstrip(" ")
            current = indent + INDENT
        *pieces, last = _pieces(word, width - len(indent + INDENT))
        for piece in pieces:
            yield current + piece
            current = indent + INDENT
        current += last
    yield current
