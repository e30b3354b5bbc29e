"""Columns that fit into a terminal."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.tables import layout
from geval_py.tables.layout import cut, laid_out
from geval_py.text import display_width, width_of

RED, PLAIN = "\x1b[31m", "\x1b[0m"

CUTS = {
    "short": ("abc", 5, "abc"),
    "just fitting": ("abcde", 5, "abcde"),
    "too long": ("abcdef", 5, "abcd…"),
    "wide": ("水水水", 5, "水水…"),
    "wide, with a column left over": ("水水水", 4, "水…"),
    "just fitting, wide": ("水水", 4, "水水"),
    "combining characters take no column": ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
    "combining characters stay with their letter": ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    "a style takes no column": (f"{RED}abc{PLAIN}", 3, f"{RED}abc{PLAIN}"),
    "a style that is cut is ended": (f"{RED}abc{PLAIN}", 2, f"{RED}a…{PLAIN}"),
    "a style that ended before is not": (f"{RED}a{PLAIN}bcd", 3, f"{RED}a{PLAIN}b…"),
    "empty": ("", 0, ""),
}


@pytest.mark.parametrize(("text", "width", "shown"), CUTS.values(), ids=CUTS)
def test_cut(text, width, shown):
    assert cut(text, width) == shown


@given(st.text("ab水e\u0301"), st.integers(1, 9))
def test_what_is_cut_fits(text, width):
    """It begins as the text does; what fits is not cut."""
    shown = cut(text, width)
    assert display_width(shown) <= width
    assert shown == text if display_width(text) <= width else text.startswith(shown.removesuffix("…"))


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


def test_no_rows():
    assert rows_of([], [], 80) == []


def terminal(is_one=True):
    stream = io.StringIO()
    stream.isatty = lambda: is_one
    return stream


WIDTHS = {
    "COLUMNS": ("120", 120), "no COLUMNS": (None, 80), "an empty COLUMNS": ("", 80), "a COLUMNS of 0": ("0", 80),
    "another COLUMNS": ("-1", 80),
}  # fmt: skip


@pytest.mark.parametrize(("given", "width"), WIDTHS.values(), ids=WIDTHS)
def test_width(given, width, monkeypatch):
    if given is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", given)
    assert width_of(terminal()) == width
    assert width_of(terminal(is_one=False)) is None


@pytest.mark.parametrize(("columns", "width"), [(132, 132), (0, 80)], ids=["known", "unknown"])
def test_the_width_of_a_terminal(columns, width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    stream = terminal()
    stream.fileno = lambda: 1
    assert width_of(stream) == width
