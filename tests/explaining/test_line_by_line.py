"""Lines as text."""

import math
import random
from operator import attrgetter

import pytest

from geval_py.explaining.line_by_line import LineListing, ScoredLine, sort_lines
from geval_py.tables import sorting


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


@pytest.mark.parametrize("size", [1, 300, 1 << 24], ids=["of single lines", "of some lines", "of all lines"])
@pytest.mark.parametrize("greatest_first", [False, True])
def test_lines_are_sorted_in_runs(size, greatest_first, monkeypatch):
    """Equals stay in order, and lines without a score are last; lines and their texts are sorted alike."""
    monkeypatch.setattr(sorting, "RUN_BYTES", size)
    chance = random.Random(1)
    scores = chance.choices([0.25, -0.0, 0.0, 1.0, math.inf, -math.inf, math.nan], k=400)
    rows = [ScoredLine(n, score, None, "a\tb", f"w{n}", "\u6c34:1") for n, score in enumerate(scores)]
    scored = [row for row in rows if row.score == row.score]
    want = sorted(scored, key=attrgetter("score"), reverse=greatest_first)
    want += [row for row in rows if row.score != row.score]
    assert list(map(str, sort_lines(rows, "score", greatest_first=greatest_first))) == list(map(str, want))
    shown = LineListing(evaluations=(), lines=iter(rows), greatest_first=greatest_first)
    assert list(shown.text()) == list(table(want).tabs())
