"""Tables and sentences on a terminal: columns that fit into its width, names that stay distinct, wrapped lines.

A table that is too wide becomes narrower in steps: names lose the beginning and the end that all of them have; texts
and names are cut; columns go. Names are never cut to equal ones, nor inside a number: they are written on several
lines before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice, zip_longest

from geval_py.tables.names import OwnName, cut_names, cuts_number, shared_ends
from geval_py.text import PLAIN, Alignment, characters, display_width, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Self, TypeAlias

# Where a text that is too long is cut. A context has GAP_MARK in it, and what is farthest from it is cut.
Cut: TypeAlias = "Literal['end', 'middle', 'around', 'never']"

SPACE = "  "  # between columns
LEAST_WIDTH = 6  # columns of text that remain, however narrow the terminal
READABLE = {"end": 12, "middle": 12, "around": 36}  # a column goes before another is cut to fewer cells
ROWS_LOOKED_AT = 100  # rows that decide the widths: they come one by one, and there may be millions
ROWS_BELOW_HEADINGS = 20  # of a long table: so many fit on any screen
GAP_MARK = "\0"  # no other text has it, since control characters are escaped
SHOWN_GAP = " ___ "
INDENT = "  "
_STYLE = "\x1b\\[[0-9;]*m"


class Shape(Value):
    """What is known of a column: its heading, its alignment, and how its cells are cut.

    Only a column that is aligned left is cut. ``middle`` is for names, which stay distinct. A column ``instead_of``
    another, by its heading, is shown where that one is left out.
    """

    heading: str
    alignment: Alignment = "left"
    cut: Cut = "end"
    instead_of: str = ""

    @property
    def is_cut(self) -> bool:
        return self.alignment == "left" and self.cut != "never"


def laid_out(
    shapes: Sequence[Shape],
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    header: bool = True,
    may_go: Sequence[int] = (),
    whole: str = "--format csv",
    legend: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table that fits into a terminal's width, sentences on what was left out, and the legend.

    ``may_go`` are the places of the columns that may be left out, the last one first; ``whole`` is what a user adds
    to the command to see them. Numbers are never cut: one that is wider than those before takes space from the last
    text. The headings are written again and again, so that each screen of a long table has them. The rows may be an
    iterator; they are read one by one unless some of their cells are names.
    """
    rows = iter(rows)
    has_names = any(shape.cut == "middle" for shape in shapes)
    first = list(rows if has_names else islice(rows, ROWS_LOOKED_AT))
    fitted = _Fitted(shapes, list(zip(*first, strict=True)) or [()] * len(shapes), width, header=header)
    fitted.fit(list(may_go))
    head = fitted.line([shape.heading for shape in shapes], is_head=True) if header else ""
    if header:
        yield head
    for number, row in enumerate(chain(first, rows)):
        if header and number and number % ROWS_BELOW_HEADINGS == 0:
            yield head
        yield fitted.line(row)
    for below in (list(fitted.notes(whole)), list(fitted.legend(legend))):
        yield from (f"{line}\n" for line in chain([""] if below else [], *(wrapped(line, width) for line in below)))


class _Fitted:
    """The columns that are shown, their widths, and the shown names of each column of names."""

    def __init__(self, shapes: Sequence[Shape], cells: Sequence[Sequence[str]], width: int, *, header: bool) -> None:
        self._shapes, self._cells, self._width, self._header = shapes, cells, width, header
        self._kept = [n for n, shape in enumerate(shapes) if not shape.instead_of]
        self._gone: list[int] = []
        self._below: int | None = None  # a column of contexts that stands below each row
        self._ends: dict[int, tuple[str, str]] = {}
        self._names: dict[int, Mapping[str, str]] = {}
        self._needed = [self._need(n, column) for n, column in enumerate(cells)]
        self._widths: list[int] = []

    def fit(self, may_go: list[int]) -> None:
        """Choose what is shown; of the columns that may go, the last one goes first."""
        if not self._fits(self._needed):
            for n in self._columns_of("middle"):
                self._leave_ends_out(n)
        while not self._is_readable():
            contexts = self._columns_of("around")
            if contexts:
                self._below = contexts[0]
                self._kept.remove(contexts[0])
            elif may_go:
                self._leave_out(may_go.pop())
            else:
                break
        self._keep_numbers(may_go)
        self._take_back()
        for n, shown in self._names.items():
            equal, width = _equal(shown.values()), max(2, self._widths[n])
            whole = {
                name: "\n".join(_name_pieces(self._inner(n, name), width))
                for name, of in shown.items()
                if of in equal or cuts_number(self._inner(n, name), of)
            }
            self._names[n] = {**shown, **whole}

    def _leave_out(self, n: int) -> None:
        self._gone.append(n)
        others = (m for m, shape in enumerate(self._shapes) if shape.instead_of == self._shapes[n].heading)
        self._kept = sorted({*self._kept, *others} - {n})

    def _keep_numbers(self, may_go: Sequence[int]) -> None:
        """Leave out one more column if no number in a name is cut then."""
        if not may_go or not self._cuts_numbers():
            return
        before = list(self._kept), list(self._gone)
        self._leave_out(may_go[-1])
        if not self._is_readable() or self._cuts_numbers():
            self._kept, self._gone = before
            self._is_readable()

    def _cuts_numbers(self) -> bool:
        return any(
            cuts_number(self._inner(n, name), of) for n, names in self._names.items() for name, of in names.items()
        )

    def _take_back(self) -> None:
        """Show a column again in the place of a narrower one, if those that went after it have left enough room."""
        for n in [n for n in self._kept if self._shapes[n].instead_of]:
            before = list(self._kept)
            first = next(m for m in self._gone if self._shapes[m].heading == self._shapes[n].instead_of)
            self._kept = sorted({*before, first} - {n})
            if self._is_readable() and not self._cuts_numbers():
                self._gone.remove(first)
            else:
                self._kept = before
                self._is_readable()

    def _columns_of(self, cut: Cut) -> list[int]:
        return [n for n in self._kept if self._shapes[n].cut == cut]

    def _need(self, n: int, cells: Iterable[str]) -> int:
        heading = [display_width(self._shapes[n].heading)] if self._header else []
        if self._shapes[n].cut == "around":
            sides = (side for cell in cells for side in cell.split(GAP_MARK))
            return max([*heading, len(SHOWN_GAP) + 2 * max(map(_width, sides), default=0)])
        return max([*heading, *map(_width, cells)], default=0)

    def _leave_ends_out(self, n: int) -> None:
        names = list(dict.fromkeys(self._cells[n]))
        self._ends[n] = shared_ends([name for name in names if not isinstance(name, OwnName)])
        self._needed[n] = self._need(n, (self._inner(n, name) for name in names))

    def _inner(self, n: int, name: str) -> str:
        beginning, ending = ("", "") if isinstance(name, OwnName) else self._ends.get(n, ("", ""))
        return name[len(beginning) : len(name) - len(ending)]

    def _fits(self, widths: Sequence[int]) -> bool:
        return sum(widths[n] + len(SPACE) for n in self._kept) - len(SPACE) <= self._width

    def _is_readable(self) -> bool:
        """Set the widths and the names; return whether no column is too narrow, and all names are distinct."""
        shapes = self._shapes
        least = [
            min(need, READABLE[shape.cut]) if shape.is_cut else need
            for shape, need in zip(shapes, self._needed, strict=True)
        ]
        self._widths = self._shared_widths()
        self._names = {}
        for n in self._columns_of("middle"):
            inner = {name: self._inner(n, name) for name in self._cells[n]}
            shown = cut_names(list(inner.values()), self._widths[n])
            self._names[n] = {name: shown[of] for name, of in inner.items()}
        distinct = not any(_equal(shown.values()) for shown in self._names.values())
        return self._fits(least) and distinct

    def _shared_widths(self) -> list[int]:
        """Return the columns' widths: those that are cut share the space that the others leave."""
        widths = list(self._needed)
        cut_ones = [n for n in self._kept if self._shapes[n].is_cut]
        left = self._width - len(SPACE) * (len(self._kept) - 1)
        left -= sum(widths[n] for n in self._kept if n not in cut_ones)
        for done, n in enumerate(sorted(cut_ones, key=widths.__getitem__)):
            widths[n] = min(widths[n], max(LEAST_WIDTH, left // (len(cut_ones) - done)))
            left -= widths[n]
        return widths

    def line(self, row: Sequence[str], *, is_head: bool = False) -> str:
        """Write a row, with a context that has no place in it on the next line."""
        kept, shapes = self._kept, self._shapes
        widths = {n: self._widths[n] for n in kept}
        cut_ones = [n for n in kept if shapes[n].is_cut]
        excess = sum(max(0, _width(row[n]) - widths[n]) for n in kept if n not in cut_ones)
        if excess and cut_ones:
            last = cut_ones[-1]
            widths[last] = max(min(widths[last], LEAST_WIDTH), widths[last] - excess)
        cells = [self._names.get(n, {}).get(row[n], row[n]) if not is_head else row[n] for n in kept]
        lines = zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
        written = [
            SPACE.join(_cell(cell, shapes[n], widths[n], is_head=is_head) for n, cell in zip(kept, line, strict=True))
            for line in lines
        ]
        if self._below is not None and not is_head:
            written.append(INDENT + _in_context(row[self._below], self._width - len(INDENT)))
        return "".join(f"{line.rstrip(' ')}\n" for line in written)

    def notes(self, whole: str) -> Iterator[str]:
        """Yield notes on what the table does not show, and how to see it."""
        for n in self._kept:
            ends = self._ends.get(n, ("", ""))
            parts = (f"{visible(end)} {where}" for end, where in zip(ends, ("before", "after"), strict=True) if end)
            if any(ends):
                yield f"{self._shapes[n].heading}: each name is shown without {' and '.join(parts)} it."
        if self._gone:
            gone = ", ".join(dict.fromkeys(self._shapes[n].heading for n in sorted(self._gone)))
            yield f"Not shown: {gone}; a wider terminal or {whole} shows all."

    def legend(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield a legend without what it says of columns that are not shown."""
        shown = {self._shapes[n].heading for n in self._kept}
        gone = {self._shapes[n].heading for n in self._gone} - shown
        yield from legend_without(lines, gone)


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
        sayings = (f"{', '.join(columns)}: {meaning}" if columns else meaning for columns, meaning in parts)
        line = super().__new__(cls, f"{'; '.join(sayings)}.")
        line.parts = parts
        return line

    def without(self, gone: Set[str]) -> Legend | None:
        """Leave out what it says of some columns; None if it explains no other, unless it begins with no column."""
        left = [[name for name in columns if name not in gone] for columns, _ in self.parts]
        kept = [(names, of[1]) for names, of in zip(left, self.parts, strict=True) if names or not of[0]]
        return Legend(*kept) if any(left) or not self.parts[0][0] else None


def legend_without(lines: Iterable[str], gone: Set[str]) -> list[str]:
    """Leave out of a legend what it says of some columns."""
    explained = (line.without(gone) if isinstance(line, Legend) else line for line in lines)
    return [line for line in explained if line is not None]


def _cell(cell: str, shape: Shape, width: int, *, is_head: bool) -> str:
    if not shape.is_cut:
        space = max(0, width - _width(cell))
        left = space if shape.alignment != "left" else 0
        return " " * left + cell + " " * (space - left)
    cell = _in_context(cell, width) if shape.cut == "around" and not is_head else cut(cell, width)
    return cell + " " * (width - _width(cell))


def _in_context(cell: str, width: int) -> str:
    """Write a context: the gap is in the middle, so that those of all rows are below each other."""
    left, _, right = cell.partition(GAP_MARK)
    side = (width - len(SHOWN_GAP)) // 2
    left = cut_start(left.rstrip(" "), side)
    return " " * (side - _width(left)) + left + SHOWN_GAP + cut(right.lstrip(" "), side)


# Names


def _equal(shown: Iterable[str]) -> set[str]:
    """Return the texts that occur more than once."""
    seen: set[str] = set()
    equal: set[str] = set()
    for text in shown:
        (equal if text in seen else seen).add(text)
    return equal


def _name_pieces(name: str, width: int) -> Iterator[str]:
    """Break a name into pieces of so many cells, between its parts where they fit."""
    piece = ""
    for part in re.split(r"(?<=[,;/_ ])", name):
        if piece and _width(piece + part) > width:
            yield piece
            piece = ""
        *whole, piece = _pieces(piece + part, width)
        yield from whole
    yield piece


def _pieces(text: str, width: int) -> Iterator[str]:
    """Break a text at any character into pieces of so many cells."""
    piece, taken = "", 0
    for part, cells in _parts(text):
        if taken + cells > width:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + part, taken + cells
    yield piece


# Texts


def _width(cell: str) -> int:
    return display_width(re.sub(_STYLE, "", cell) if "\x1b" in cell else cell)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield styles and characters, and how many cells they take."""
    for part in re.split(f"({_STYLE})", text) if "\x1b" in text else [text]:
        if part.startswith("\x1b"):
            yield part, 0
        else:
            yield from characters(part)


def cut(text: str, width: int) -> str:
    r"""Cut a text, which may contain styles, to ``width`` columns.

    >>> cut("prayers", 7), cut("prayers", 6), cut("水水水", 4)
    ('prayers', 'praye…', '水…')
    """
    if text.isascii() and "\x1b" not in text:
        return text if len(text) <= width else text[: width - 1] + "…"
    shown: list[str] = []
    taken, fitting = 0, 0
    for part, cells in _parts(text):
        taken += cells
        if taken > width:
            head = "".join(shown[:fitting])
            has_style = re.findall(_STYLE, head)[-1:] not in ([], [PLAIN])
            return f"{head}…{PLAIN if has_style else ''}"
        shown.append(part)
        fitting = len(shown) if taken < width else fitting
    return text


def cut_start(text: str, width: int) -> str:
    """Cut a text, which may contain styles, to its last ``width`` columns.

    >>> cut_start("prayers", 7), cut_start("prayers", 6)
    ('prayers', '…ayers')
    """
    if _width(text) <= width:
        return text
    parts = list(_parts(text))
    start, taken = len(parts), 1
    while taken + parts[start - 1][1] <= width:
        start -= 1
        taken += parts[start][1]
    style = "".join([part for part, _ in parts[:start] if part.startswith("\x1b")][-1:])
    return f"…{style.removesuffix(PLAIN)}{''.join(part for part, _ in parts[start:])}"


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
    before = cut_start(before, left) if left else ""
    return f"{before}{cut(after, width - _width(before))}\n{' ' * _width(before)}^"


def wrapped(line: str, width: int) -> Iterator[str]:
    """Break a line, which may contain styles, between words; the lines that follow are indented two more.

    >>> list(wrapped("won: lines with a lower loss", 20))
    ['won: lines with a', '  lower loss']
    """
    if _width(line) <= width:
        yield line
        return
    words = line.lstrip(" ")
    indent = min(len(line) - len(words), width // 2)
    current, has_words = " " * indent, False
    following = " " * indent + INDENT
    for word in re.split(" (?!%)", words):  # the sign for percent stays with its number
        longer = f"{current} {word}" if has_words else current + word
        if _width(longer) <= width:
            current, has_words = longer, True
            continue
        if has_words:
            yield current.rstrip(" ")
            current = following
        *pieces, last = _pieces(word, width - len(following))
        for piece in pieces:
            yield current + piece
            current = following
        current, has_words = current + last, True
    yield current
