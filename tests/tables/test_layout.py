"""Tables on narrow terminals: numbers are whole, no column is missing, and no two names look equal."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.cli.terminal import width_of
from geval_py.tables import layout
from geval_py.tables.layout import GAP_MARK
from geval_py.tables.table import Column, Table
from geval_py.text import characters, cut, display_width, picture, visible, wrapped

WIDTHS = st.integers(30, 130)
PARTS = [
    "out-", "model=", "bigram", "alpha=0.1", "alpha=0.2", "seed=1", "seed=2", ",", "日本", "e\u0301", "👍", ".tsv", "…",
]  # fmt: skip
NAME = st.lists(st.sampled_from(PARTS), min_size=1, max_size=30).map("".join)
NAMES = st.lists(NAME, unique=True, min_size=1, max_size=8)
NUMBERS = st.one_of(st.integers(-(10**18), 10**18), st.floats(allow_nan=False).map(lambda value: f"{value:.6g}"))
TEXTS = st.text("ab 水e\u0301👍:=", max_size=150).map(str.strip)


def table_of(names, figures):
    """A table with a row for each name; its figures are the same in all rows."""
    columns = [Column("system"), *(Column(f"figure-{n}", alignment="right") for n in range(len(figures)))]
    return Table(columns, [[name, *figures] for name in names])


@given(NAMES, st.lists(NUMBERS, max_size=6), WIDTHS)
def test_nothing_is_lost(names, figures, width):
    """At any width, each number is whole, each column has its name, and different names look different."""
    text = "".join(table_of(names, figures).terminal(width))
    words = text.split()
    for n, figure in enumerate(figures):
        assert words.count(f"figure-{n}") + words.count(f"figure-{n}:") >= 1
        assert words.count(str(figure)) >= len(names)
    assert "system" in text
    assert "…" in "".join(names) or "…" not in text
    letters = "".join(words)
    assert all(letters.count(part) >= sum(part in name for name in names) for part in ("日", "本", "👍"))


@given(NAMES, WIDTHS)
def test_wrapped_names_stay_distinct(names, width):
    """Each name is followed by a number, so that its lines can be told from those of the next one."""
    lines = "".join(table_of(names, ["#"]).terminal(width)).splitlines()
    assert max(map(display_width, lines)) <= width
    shown = []
    for line in lines[1:]:
        name, mark, _ = line.partition("#")
        shown += [name.strip()] if mark else []
        if not mark:
            shown[-1] += line.strip()
    assert shown == names


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), max_size=5), WIDTHS)
def test_contexts_and_texts_fit(rows, width):
    """A context beside its row or below it; both sides of the gap are as near to it as they can be."""
    columns = [Column("line", alignment="right"), *(Column(of, write=str) for of in ("context", "expected", "guess"))]
    cells = [[n, left + GAP_MARK + right, one, other] for n, (left, right, one, other) in enumerate(rows)]
    lines = "".join(Table(columns, cells).terminal(width)).splitlines()
    assert max(map(display_width, lines)) <= width
    gaps = [display_width(line[: line.index(" ___")]) for line in lines if " ___" in line]
    assert len(gaps) == len(rows)
    assert len(set(gaps)) <= 1


def test_headings_are_on_each_screen():
    table = Table([Column(name="n")], [[n] for n in range(45)])
    lines = "".join(table.terminal(80)).splitlines()
    assert [place for place, line in enumerate(lines) if line == "n"] == [0, 21, 42]
    assert "n" not in "".join(table.terminal(80, header=False)).splitlines()
    assert list(Table([Column(name="n")], []).terminal(80)) == ["n\n"]


@given(TEXTS, st.integers(1, 40), st.booleans())
def test_texts_are_cut(text, width, keep_end):
    shown = cut(text, width, keep_end=keep_end)
    assert display_width(shown) <= width
    kept = shown.removeprefix("…") if keep_end else shown.removesuffix("…")
    assert text.endswith(kept) if keep_end else text.startswith(kept)


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


RED, PLAIN = "\x1b[31m", "\x1b[0m"

CUTS = {
    "wide": ("水水水", 5, "水水…"), "combining characters take no column": ("e\u0301e\u0301e\u0301", 3,
    "e\u0301e\u0301e\u0301"), "combining characters stay with their letter": ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    "a style that is cut is ended": (f"{RED}abc{PLAIN}", 2, f"{RED}a…{PLAIN}"),
    "a style inside is kept": ("a\x1b[31mbcd\x1b[0mefg", 3, "a\x1b[31mb…\x1b[0m"), "empty": ("", 0, ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "width", "shown"), CUTS.values(), ids=CUTS)
def test_cut(text, width, shown):
    assert cut(text, width) == shown
    assert cut("a\x1b[31mbcd\x1b[0me", 3, keep_end=True) == "\x1b[31m…d\x1b[0me"


def test_texts_share_what_there_is():
    """A short one keeps what it needs, the long ones share the rest."""
    table = Table([Column(name, write=str) for name in "abc"], [["a" * 90, "the", "b" * 90]])
    first, second, *_ = table.terminal(79, header=False)
    assert first == f"{'a' * 36}  the  {'b' * 36}\n"
    assert second == f"  {'a' * 34}       {'b' * 36}\n".replace("b" * 36, f"  {'b' * 34}")


def test_rows_are_written_before_all_are_read():
    """Those that come first say how wide the columns are; a number that is wider is whole."""

    def rows():
        yield from [["a", 1]] * layout.SAMPLE_ROWS
        yield ["long", 12345]
        pytest.fail("all rows were read")

    lines = Table([Column("a"), Column("b", alignment="right")], rows()).terminal(80, header=False)
    text = "".join(next(lines) for _ in range(101))
    assert text.endswith(f"a{' ' * 13}1\nlong{' ' * 10}12345\n")


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
