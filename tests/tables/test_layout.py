"""Tables on narrow terminals: no line is too wide, and no two names look equal."""

import io
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.tables import layout
from geval_py.tables.layout import GAP_MARK, Legend, cut, cut_names, laid_out, picture, shared_ends, wrapped
from geval_py.tables.table import Column, Table
from geval_py.text import characters, display_width, visible, width_of

WIDTHS = st.integers(40, 130)
PARTS = [
    "out-", "model=", "bigram", "alpha=0.1", "alpha=0.2", "seed=1", "seed=2", ",", "日本", "e\u0301", "👍", ".tsv", "…",
]  # fmt: skip
NAMES = st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=30).map("".join), unique=True, max_size=8)
TEXTS = st.text("ab 水e\u0301👍:=", max_size=150).map(str.strip)


def shown_names(lines, names):
    """Return the cells of the first column, of one line or more, by the figures in the second one."""
    cells, number = {}, -1
    for line in lines:
        match = re.fullmatch(r"(.*?)\s*#(\d+)#", line)
        if match:
            number = int(match[2])
            cells[number] = match[1]
        elif number >= 0:
            cells[number] += f"\n{line.rstrip()}"
    assert sorted(cells) == list(range(len(names)))
    return list(cells.values())


@given(NAMES, WIDTHS, st.lists(st.integers(0, 10**12), max_size=6))
def test_names_stay_distinct(names, width, figures):
    """However narrow the terminal is, and whatever else there is to show."""
    columns = [Column(name="system", cut="middle"), Column(name="n", alignment="right")]
    columns += [Column(name=f"figure {n}", alignment="right") for n in range(len(figures))]
    rows = [[name, f"#{n}#", *figures] for n, name in enumerate(names)]
    droppable = [column.name for column in columns[2:]]
    lines = "".join(Table(columns, rows, droppable=droppable).terminal(width)).splitlines()
    assert max(map(display_width, lines)) <= width
    kept = len(re.findall("figure", lines[0]))
    tails = "".join(rf"\s+{figure}" for figure in figures[:kept])
    table = lines[1 : lines.index("")] if "" in lines else lines[1:]
    shown = shown_names([re.sub(rf"(#\d+#){tails}$", r"\1", line) for line in table], names)
    assert len(set(shown)) == len(names)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), max_size=5), WIDTHS)
def test_contexts_and_texts_fit(rows, width):
    """A context beside its row or below it; both sides of the gap are as near to it as they can be."""
    headings, kinds = ("line", "context", "expected", "guess"), ("number", "around", "end", "end")
    cells = [[str(n), left + GAP_MARK + right, one, other] for n, (left, right, one, other) in enumerate(rows)]
    lines = "".join(laid_out(headings, kinds, cells, width)).splitlines()
    assert max(map(display_width, lines)) <= width
    gaps = [display_width(line[: line.index(" ___")]) for line in lines if " ___" in line]
    assert len(gaps) == len(rows)
    assert len(set(gaps)) <= 1


def test_columns_go_in_order():
    columns = [Column(name=name, alignment="right") for name in ("a" * 12, "b" * 12, "c" * 12, "d" * 12)]
    table = Table(columns, [[1, 2, 3, 4]], droppable=["c" * 12, "a" * 12, "d" * 12])
    heads = {width: next(iter(table.terminal(width))).split() for width in (54, 53, 40, 39, 26, 25)}
    shown = {width: "".join(head[0] for head in heads[width]) for width in heads}
    assert shown == {54: "abcd", 53: "abc", 40: "abc", 39: "bc", 26: "bc", 25: "b"}


def test_columns_that_went_are_not_explained():
    columns = [Column(name=name, alignment="right") for name in ("score", "p rand", "won", "lost")]
    legend = (
        "score: of out.tsv; 5 samples.",
        "",
        Legend((["won", "lost"], "lines; or so"), (["p rand"], "a test"), ((), "two-sided")),
        Legend((["won"], "fewer may be better"), ((), "a tie is none")),
        Legend(((), "of p rand: all pairs"), (["lost"], "rarely")),
    )
    table = Table(columns, [[1.5, 0.5, 3, 4]])
    assert list(table.terminal(80, legend=legend))[-6:] == ["\n", *(f"{line}\n" for line in legend)]
    assert "".join(table.terminal(21, legend=legend)).partition("all.\n\n")[2].replace("\n  ", " ") == (
        "score: of out.tsv; 5 samples.\n\nwon: lines; or so; p rand: a test; two-sided.\n"
        "won: fewer may be better; a tie is none.\nof p rand: all pairs.\n"
    )
    assert "".join(table.terminal(12, legend=legend)).partition("all.\n\n")[2].replace("\n  ", " ") == (
        "score: of out.tsv; 5 samples.\n\nof p rand: all pairs.\n"
    )


def test_what_is_left_out_is_said():
    names = [f"out-model={model},seed=1.tsv" for model in ("bigram", "trigram")]
    columns = [Column(name="system", cut="middle"), Column(name="score", alignment="right"), Column(name="remark")]
    rows = [[name, 1.5, "as good as it can be"] for name in names]
    assert "".join(Table(columns, rows).terminal(30)).splitlines() == [
        "system   score  remark", "bigram     1.5  as good as it…", "trigram    1.5  as good as it…", "",
        "system: each name is shown", "  without `out-model=` before", "  and `,seed=1.tsv` after it.",
    ]  # fmt: skip
    assert "".join(Table(columns, rows).terminal(25)).splitlines()[-3:] == [
        "Not shown: remark; a", "  wider terminal or", "  --format csv shows all.",
    ]  # fmt: skip
    other = Table([Column(name="n"), columns[0]], [["n" * 12, name] for name in names])
    assert "without" not in "".join(other.terminal(14))


def test_names_that_would_look_equal_are_whole():
    names = [f"{'a' * 30}{letter}{'b' * 30}" for letter in "xy"]
    lines = "".join(Table([Column(name="n", cut="middle")], [[name] for name in names]).terminal(25)).splitlines()
    assert lines == ["n", *(name[start : start + 25] for name in names for start in (0, 25, 50))]


def test_headings_are_on_each_screen():
    table = Table([Column(name="n")], [[n] for n in range(45)])
    lines = "".join(table.terminal(80)).splitlines()
    assert [place for place, line in enumerate(lines) if line == "n"] == [0, 21, 42]
    assert "n" not in "".join(table.terminal(80, header=False)).splitlines()


ENDS = {
    "both": (["out-a,e=1.tsv", "out-b,e=1.tsv"], ("out-", ",e=1.tsv")),
    "parts of words are kept": (["bigram", "bigger"], ("", "")),
    "so are parts of numbers": (["lr=1e-4", "lr=1e-5"], ("lr=", "")),
    "and decimals": (["a=0.15", "b=1.15"], ("", "")),
    "a name is never empty": (["model=", "model=a"], ("", "")),
    "nor at its end": ([".tsv", "a.tsv"], ("", "")),
    "marks stay with their letter": (["a=\u0301b", "a=\u0301c"], ("", "")),
    "one": (["out.tsv"], ("", "")),
}


@pytest.mark.parametrize(("names", "ends"), ENDS.values(), ids=ENDS)
def test_shared_ends(names, ends):
    assert shared_ends(names) == ends


@given(NAMES, st.integers(2, 40))
def test_names_are_cut(names, width):
    shown = cut_names(names, width)
    assert all(display_width(text) <= width for text in shown.values())
    assert all(shown[name] == name for name in names if display_width(name) <= width)


@given(TEXTS, st.integers(1, 40))
def test_texts_are_cut_at_any_place(text, width):
    for head in range(width):
        start, mark, end = cut(text, width, head).rpartition("…")
        assert display_width(start + mark + end) <= width
        assert text.startswith(start)
        assert text.endswith(end)


@given(st.text("ab水e\u0301\t👍", min_size=1, max_size=300), st.data(), WIDTHS)
def test_the_caret_is_below_its_character(text, data, width):
    column = data.draw(st.integers(1, len(text) + 1))
    line, caret = picture(text, column, width).split("\n")
    assert max(display_width(line), len(caret)) <= width
    place = text[column - 1 : column]
    starts, at = {}, 0
    for part, cells in characters(line):
        starts[at] = part
        at += cells
    if place and not place.startswith("\u0301"):
        assert (starts[len(caret) - 1]).startswith(visible(place)[0])


@given(st.lists(st.text("ab水:%", min_size=1, max_size=60), min_size=1), st.integers(0, 6), st.integers(20, 80))
def test_wrapped_lines_fit_and_lose_nothing(words, indent, width):
    line = " " * indent + " ".join(words)
    lines = list(wrapped(line, width))
    assert max(map(display_width, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(words)
    assert all(line.startswith(" " * indent + "  ") for line in lines[1:])
    assert list(wrapped("an interval of 95 % of all", 17)) == ["an interval of", "  95 % of all"]


CELLS = {
    "a": 1, "水": 2, "e\u0301": 1, "❤": 1, "❤\ufe0f": 2, "👍": 2, "각": 2, "\u1100\u1161\u11a8": 2, "\u093f": 1,
    "\u0941": 0,
}  # fmt: skip


@pytest.mark.parametrize(("text", "cells"), CELLS.items(), ids=map(ascii, CELLS))
def test_cells(text, cells):
    assert display_width(text) == cells


# Rows, and the width of a terminal

RED, PLAIN = "\x1b[31m", "\x1b[0m"

CUTS = {
    "just fitting": ("abcde", 5, "abcde"),
    "wide": ("水水水", 5, "水水…"),
    "just fitting, wide": ("水水", 4, "水水"),
    "combining characters take no column": ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
    "combining characters stay with their letter": ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    "a style takes no column": (f"{RED}abc{PLAIN}", 3, f"{RED}abc{PLAIN}"),
    "a style that is cut is ended": (f"{RED}abc{PLAIN}", 2, f"{RED}a…{PLAIN}"),
    "a style that ended before is not": (f"{RED}a{PLAIN}bcd", 3, f"{RED}a{PLAIN}b…"),
    "a style inside is kept": ("a\x1b[31mbcd\x1b[0mefg", 3, "a\x1b[31mb…\x1b[0m"),
    "empty": ("", 0, ""),
}


@pytest.mark.parametrize(("text", "width", "shown"), CUTS.values(), ids=CUTS)
def test_cut(text, width, shown):
    assert cut(text, width) == shown
    assert cut("a\x1b[31mbcd\x1b[0me", 3, 0) == "…\x1b[31md\x1b[0me"


ROWS = [["name", "score"], ["a", "1.5"], ["a name that is rather long", "12.25"]]
TABLES = {
    "wide enough": (40, ["name                        score", "a                             1.5",
     "a name that is rather long  12.25"]),
    "too narrow: a text is cut": (20, ["name           score", "a                1.5", "a name that …  12.25"]),
    "a number is never cut": (5, ["name    score", "a         1.5", "a nam…  12.25"]),
}  # fmt: skip


def rows_of(rows, kinds, width, **more):
    return list(laid_out([""] * len(kinds), kinds, rows, width, header=False, **more))


@pytest.mark.parametrize(("width", "lines"), TABLES.values(), ids=TABLES)
def test_laid_out(width, lines):
    """Texts flush left, numbers flush right."""
    assert [line.removesuffix("\n") for line in rows_of(ROWS, ["end", "number"], width)] == lines


def test_texts_share_what_there_is():
    """A short one keeps what it needs, the long ones share the rest."""
    (line,) = rows_of([["1.0", "a" * 90, "the", "b" * 90]], ["number", "end", "end", "end"], 80)
    assert line == f"1.0  {'a' * 33}…  the  {'b' * 33}…\n"
    assert len(line) == 81


def test_rows_are_written_before_all_are_read():
    """Those that come first say how wide the columns are."""

    def rows():
        yield from [["a", "1"]] * layout.SAMPLE_ROWS
        yield ["long", "1234"]
        pytest.fail("all rows were read")

    lines = laid_out(["", ""], ["end", "number"], rows(), 80, header=False)
    assert [next(lines) for _ in range(101)][99:] == ["a  1\n", "…  1234\n"]


def test_a_number_wider_than_those_before_takes_from_the_last_text():
    rows = [["1", "abc", "2", "d" * 20]] * layout.SAMPLE_ROWS + [["12345", "abc", "2", "d" * 20]]
    *_, before, last = rows_of(rows, ["number", "end", "number", "end"], 25)
    assert (before, last) == ("1  abc  2  ddddddddddddd…\n", "12345  abc  2  ddddddddd…\n")


@pytest.mark.parametrize(
    ("variable", "reported", "width"),
    [("120", 132, 120), (None, 132, 132), ("", 132, 132), ("0", 132, 132), ("-1", 132, 132), (None, 0, 80), (None, None, 80)],
)  # fmt: skip
def test_the_width_of_a_terminal(variable, reported, width, monkeypatch):
    """COLUMNS, what the terminal reports, or 80; none of a pipe."""
    stream = io.StringIO()
    assert width_of(stream) is None
    monkeypatch.setenv("COLUMNS", variable) if variable is not None else monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    if reported is not None:  # otherwise it has no file number
        monkeypatch.setattr(stream, "fileno", lambda: 1)
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((reported, 24)))
    assert width_of(stream) == width
