"""Columns that fit into a terminal."""

import io
import os

import pytest

from geval_py.tables import layout
from geval_py.tables.layout import cut, laid_out
from geval_py.text import width_of

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
