"""Lines as text."""

import math

import pytest

from geval_py.explaining.line_by_line import LineListing, ScoredLine


def lines(*items, score=1.0):
    return [ScoredLine(n, score, 0.5, *item) for n, item in enumerate(items, 1)]


def table(lines, for_terminal=False):
    return LineListing(evaluations=(), lines=lines, for_terminal=for_terminal).table()


def test_lines():
    """A line an item: score, input, expected, output, split by TAB; a TAB inside a field is written <tab>."""
    first = lines(("Psa-5\t1605", "prayer", "prayer:0.5 :0.5"), score=0.00039)
    second = lines(("", "a\tb", "a\tb:1\x1b[0m"), score=math.inf)
    assert "".join(table([*first, *second]).tabs()) == (
        "0.00039\tPsa-5<tab>1605\tprayer\tprayer:0.5 :0.5\nInfinity\t\ta<tab>b\ta<tab>b:1\x1b[0m\n"
    )


def test_lines_for_a_terminal():
    shown = table(lines(("a\tb\x1b[31m", "水\u202e", "\x9b:1")), for_terminal=True)
    assert list(shown.tabs()) == ["1.0\ta<tab>b\\x1b[31m\t水\\u202e\t\\x9b:1\n"]


def test_lines_are_written_one_by_one():
    def items():
        yield from lines(("a", "b", "c"))
        pytest.fail("a line was read ahead")

    assert next(table(items()).tabs()) == "1.0\ta\tb\tc\n"
