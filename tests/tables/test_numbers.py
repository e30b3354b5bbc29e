"""Values as text: numbers and scores."""

import math
import re
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from geval_py.reading.files import File
from geval_py.reading.outputs import Output, parse_parameters
from geval_py.scoring.score_tables import ScoreTable, find_grids
from geval_py.tables.numbers import exact, fixed, p_value, score_text, significant

PROPERTY = settings(deadline=None, derandomize=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)

SHORTEST = [
    # the first four: GEval 1.42.2, --metric LikelihoodHashed and its kin
    (0.001818390380192753, "1.818390380192753e-3"), (4.3584681516067923e-4, "4.3584681516067923e-4"),
    (1.1083667033559879e-2, "1.1083667033559879e-2"), (549.9369172278606, "549.9369172278606"), (0.0, "0.0"),
    (-0.0, "0.0"), (1.0, "1.0"), (0.1, "0.1"), (-0.1, "-0.1"), (0.09999999999999999, "9.999999999999999e-2"),
    (0.05, "5.0e-2"), (-0.05, "-5.0e-2"), (9999999.0, "9999999.0"), (9999999.999999998, "9999999.999999998"),
    (1e7, "1.0e7"), (-12345678.9, "-1.23456789e7"), (1e22, "1.0e22"), (5e-324, "5.0e-324"),
    (1.7976931348623157e308, "1.7976931348623157e308"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
    (math.nan, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SHORTEST)
def test_exact(value, text):
    assert exact(value) == text


PLAIN = [
    (0.0003904297851074462, "0.0003904297851074462"),
    # GEval 1.42.2, --line-by-line
    (1e22, "10000000000000000000000.0"), (1e-5, "0.00001"), (1.5e-7, "0.00000015"), (3.0, "3.0"), (-2.5, "-2.5"),
    (1e16, "10000000000000000.0"), (123456789012345680.0, "123456789012345680.0"), (0.0, "0.0"), (-0.0, "0.0"),
    (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), PLAIN)
def test_exact_without_an_exponent(value, text):
    assert exact(value, exponent=False) == text


@PROPERTY
@given(FINITE)
def test_the_digits_read_back_the_same(value):
    plain = exact(value, exponent=False)
    assert float(plain) == value
    assert re.fullmatch(r"-?[0-9]+\.[0-9]+", plain)
    assert plain != "-0.0"
    text = exact(value)
    assert float(text) == value
    assert re.fullmatch(r"-?[0-9]+\.[0-9]+|-?[1-9]\.[0-9]+e-?[1-9][0-9]*", text)
    assert ("e" in text) == (value != 0 and not 0.1 <= abs(value) < 1e7)
    assert not text.startswith("-0.0")


FIXED = [
    (0.005, 2, "0.00"), (0.025, 2, "0.02"), (0.015, 2, "0.02"), (0.035, 2, "0.04"), (1.005, 2, "1.00"),
    (2.675, 2, "2.68"), (0.0050000001, 2, "0.01"), (0.5, 0, "0"), (1.5, 0, "2"), (2.5, 0, "2"), (467.4999, 0, "467"),
    (175.8251, 2, "175.83"), (9.999, 2, "10.00"), (1.0, 5, "1.00000"), (1e22, 1, "10000000000000000000000.0"),
    (1e-300, 3, "0.000"), (5e-324, 330, "0." + "0" * 323 + "5000000"), (-1.005, 2, "-1.00"), (-0.001, 2, "0.00"),
    (-0.4, 0, "0"), (-0.0, 1, "0.0"), (0.0, 0, "0"), (1.7976931348623157e308, 0, "17976931348623157" + "0" * 292),
    (math.inf, 2, "Infinity"), (-math.inf, 2, "-Infinity"), (math.nan, 2, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "precision", "text"), FIXED)
def test_fixed(value, precision, text):
    assert fixed(value, precision) == text


@PROPERTY
@given(FINITE, st.integers(0, 20))
def test_fixed_is_the_nearest(value, precision):
    text = fixed(value, precision)
    assert re.fullmatch(rf"-?[0-9]+\.[0-9]{{{precision}}}" if precision else "-?[0-9]+", text)
    off = abs(Decimal(text) - Decimal(repr(value)))
    half = Decimal(5).scaleb(-precision - 1)
    assert off <= half
    assert off < half or int(text[-1]) % 2 == 0
    assert not text.startswith("-") or Decimal(text) < 0


NUMBERS = [
    (0.0057, None, False, "5.7e-3"), (0.0057, 2, False, "0.01"), (0.0057, 2, True, "1"), (0.0057, 4, True, "0.57"),
    (0.0057, None, True, "0.57"), (0.29, None, True, "29.0"), (0.12345, 3, True, "12.3"), (0.5, 1, True, "50"),
    (0.5, 0, True, "50"), (0.0, None, True, "0.0"), (math.inf, 2, True, "Infinity"), (math.nan, None, True, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "precision", "percentage", "text"), NUMBERS)
def test_number(value, precision, percentage, text):
    assert score_text(value, precision, percentage=percentage) == text


INTERVALS = [
    # low, high, precision, percentage
    (1.0, 3.0, None, False, "2.0±1.0"), (0.0123, 0.0145, None, False, "0.0134±0.0011"),
    (0.0123, 0.0145, None, True, "1.34±0.11"), (0.0123, 0.0145, 3, False, "0.013±0.001"),
    (0.0123, 0.0145, 3, True, "1.3±0.1"), (0.0123, 0.0145, 9, False, "0.0134±0.0011"),
    (900.0, 1140.0, None, False, "1020±120"), (900.0, 1140.0, None, True, "102000±12000"),
    (0.0, 0.198, None, False, "0.099±0.099"), (0.0, 0.2, None, False, "0.10±0.10"),
    (0.2, 0.2, None, False, "0.2±0.0"), (0.5, 0.5, None, True, "50±0"), (0.5, 0.5, 0, False, "0±0"),
    (4.2, 4.2, 2, False, "4.2±0.0"), (3.0, math.inf, None, False, "Infinity"),
    (math.inf, math.inf, 2, True, "Infinity"),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high", "precision", "percentage", "text"), INTERVALS)
def test_an_interval(low, high, precision, percentage, text):
    """As of GEval 1.42.2, --metric Accuracy --bootstrap 10; never more than --precision."""
    assert score_text((low + high) / 2, precision, (high - low) / 2, percentage=percentage) == text


SIGNIFICANT = [
    (549.9369, 4, "549.9"), (550.0, 4, "550.0"), (550.0, 3, "550"), (0.0018, 2, "0.0018"), (0.0, 4, "0"), (4.0, 6, "4.00000"),
    (81234.5, 2, "81234"), (1.2345e20, 2, "1.2e20"), (math.inf, 4, "Infinity"), (math.nan, 4, "NaN"), (None, 4, ""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "digits", "text"), SIGNIFICANT)
def test_significant(value, digits, text):
    assert significant(value, digits) == text


@pytest.mark.parametrize(("p", "text"), [(0.01234, "0.0123"), (1 / 10001, "<0.0001"), (1.0, "1.0000"), (None, "")])
def test_p_value(p, text):
    assert p_value(p) == text


def scores_text(results, precision=None, *, percentage=False):
    return "".join(ScoreTable(results=results, precision=precision, percentage=percentage).text())


def scored(scores, name="out.tsv"):
    listed = [SimpleNamespace(name=name, value=value, error=None) for name, value in scores]
    output = Output(File(name), name, parameters=parse_parameters(name))
    return SimpleNamespace(output=output, scores=listed, errors=[], has_scores=True)


HASHED = {
    "LikelihoodHashed8": 0.0123, "LikelihoodHashed12": 0.0027, "LogLossHashed8": 4.401, "LogLossHashed12": 5.912,
}  # fmt: skip
GRID = "\t8\t12\nLikelihoodHashed\t0.01\t0.00\nLogLossHashed\t4.40\t5.91\n"

METRIC_TABLES = {
    "a row, then a grid": ({"PerplexityHashed": 175.83, **HASHED}, f"PerplexityHashed\t175.83\n\n{GRID}"),
    "rows around and inside a grid": ({"A": 1.0, "LikelihoodHashed8": 0.0123, "B": 2.0, "LikelihoodHashed12": 0.0027,
     "LogLossHashed8": 4.401, "C": 3.0, "LogLossHashed12": 5.912}, f"A\t1.00\n\n{GRID}\nB\t2.00\nC\t3.00\n"),
    "two grids": ({"a 1": 1.0, "x_3": 5.0, "a 2": 2.0, "x_4": 6.0, "b 1": 3.0, "b 2": 4.0, "y_3": 7.0, "y_4": 8.0},
     "\t1\t2\na\t1.00\t2.00\nb\t3.00\t4.00\n\n\t3\t4\nx_\t5.00\t6.00\ny_\t7.00\t8.00\n"),
    "more columns than rows are turned": ({"a 1": 1.0, "a 2": 2.0, "a 3": 3.0, "b 1": 4.0, "b 2": 5.0, "b 3": 6.0},
     "\ta\tb\n1\t1.00\t4.00\n2\t2.00\t5.00\n3\t3.00\t6.00\n"),
    "split before a capital": ({"LogLossHashed": 1.0, "LogLossWord": 2.0, "PerplexityHashed": 3.0,
     "PerplexityWord": 4.0}, "\tHashed\tWord\nLogLoss\t1.00\t2.00\nPerplexity\t3.00\t4.00\n"),
    "no split inside a number": ({"a11": 1.0, "a12": 2.0, "a21": 3.0, "a22": 4.0},
     "a11\t1.00\na12\t2.00\na21\t3.00\na22\t4.00\n"),
    "a grid with a hole": ({"a 1": 1.0, "a 2": 2.0, "b 1": 3.0}, "a 1\t1.00\na 2\t2.00\nb 1\t3.00\n"),
    "names with escapes": ({"a\x1b[31m": 1.0, "b\tc": 2.0}, "a\\x1b[31m\t1.00\nb\\tc\t2.00\n"),
}  # fmt: skip


@pytest.mark.parametrize(("scores", "text"), METRIC_TABLES.values(), ids=METRIC_TABLES)
def test_several_metrics(scores, text):
    """Names that form a grid of at least 2 x 2 become a cross table."""
    assert scores_text([scored(scores.items())], 2) == text


PARTS = st.lists(st.sampled_from(["a", "b", "A", "B", "1", "2", " ", "_"]), min_size=1, max_size=5).map("".join)


@PROPERTY
@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
@example([], [], ["AA", "AAA", "AAAA"])
@example([], [], ["__", "___", "____"])
@example(["a "], ["1", "2"], ["b 1", "b 3"])  # two prefixes with one suffix in common
def test_a_grid_shows_each_of_its_names_once(prefixes, suffixes, others):
    names = [prefix + suffix for prefix in prefixes for suffix in suffixes] + others
    shown = []
    for grid in find_grids(names):
        cells = [prefix + suffix for prefix in grid.prefixes for suffix in grid.suffixes]
        assert min(len(grid.prefixes), len(grid.suffixes)) >= 2
        assert all(names.count(cell) == 1 for cell in cells)
        assert len(set(cells)) == len(cells)
        assert grid.cells == set(cells)
        shown += cells
    assert len(set(shown)) == len(shown)


@PROPERTY
@given(st.lists(PARTS, min_size=2, max_size=8))
def test_every_score_is_shown(names):
    assume(len(set(names)) == len(names))
    text = scores_text([scored([(name, 100.0 + n) for n, name in enumerate(names)])])
    values = re.findall(r"(?<=\t)1[0-9][0-9]\.0(?=[\t\n])", text)
    assert sorted(map(float, values)) == [100.0 + n for n in range(len(names))]


VARIANTS = {
    "several parameters, sorted by name": ({"out-lr=0.1,epochs=2.tsv": [1.0, 2.0], "out-lr=0.1,epochs=10.tsv": [3.0,
     4.0]}, "epochs\tlr\tPerplexity\tLogLoss\n2\t0.1\t1.00\t2.00\n10\t0.1\t3.00\t4.00\n"),
    "an out.tsv beside them": ({"out-a=1.tsv": [1.0], "out.tsv": [2.0]}, "a\tPerplexity\n1\t1.00\nout\t2.00\n"),
    "no parameters and two metrics": ({"out-x.tsv": [1.0, 3.0], "out.tsv": [2.0, 4.0]},
     "File name\tPerplexity\tLogLoss\nout-x\t1.00\t3.00\nout\t2.00\t4.00\n"),
    "names that parameters do not tell apart": ({"out-a=1.tsv": [1.0], "out-x.tsv": [2.0], "out.tsv": [3.0]},
     "File name\ta\tPerplexity\nout-a=1\t1\t1.00\nout-x\t\t2.00\nout\t\t3.00\n"),
    "names that only their endings tell apart": ({"guess.tsv": [1.0], "guess": [2.0]},
     "guess.tsv\t1.00\nguess\t2.00\n"),
    "with escapes": ({"out-\x1b=\x1b.tsv": [1.0], "out.tsv": [2.0]}, "\\x1b\tPerplexity\n\\x1b\t1.00\nout\t2.00\n"),
}  # fmt: skip


@pytest.mark.parametrize(("outputs", "text"), VARIANTS.values(), ids=VARIANTS)
def test_several_outputs(outputs, text):
    """Parameters come first; a file without them has its short name in the first column (GEval: nothing)."""
    names = ("Perplexity", "LogLoss")
    evaluations = [scored(zip(names, values, strict=False), name=name) for name, values in outputs.items()]
    assert scores_text(evaluations, 2) == text
