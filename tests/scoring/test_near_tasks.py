"""The metrics of tasks near word gaps: what scikit-learn and SciPy answer, tables by hand, and the edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from scipy.stats import entropy
from scorers import block, error, statistics_of

import geval_py
from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import parse_line
from geval_py.scoring.evaluate import column_of, find_metric
from geval_py.scoring.metrics.registry import METRICS

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(100))
NEAR_METRICS = {name: metric for name, metric in METRICS.items() if metric.has_entries}
each = pytest.mark.parametrize("metric", NEAR_METRICS.values(), ids=NEAR_METRICS)


def lines_of(name, *of, **beside):
    return list(find_metric(name).line_scores(statistics_of(name, *of, **beside)))


def perfect(metric):
    if metric.answers == "shares":
        shares = ["a:0.5 b:0.3 c:0.2", "a:0.9 b:0.1", "c:0.75 :0.25"]
        return shares, shares, ["x", "y", "z"]
    return ["a:1", "b:1", "c:1"], ["a", "b", "c"], ["x\ta b c"] * 3


@each
def test_what_is_right_has_the_best_score(metric):
    outputs, expected, inputs = perfect(metric)
    statistics = statistics_of(metric.name, outputs, expected, inputs)
    assert len(statistics.columns) == len(metric.measure.columns)
    totals = [np.array(column) for column in statistics.columns]  # as for resamples
    alone = [metric.value(statistics.only([n])) for n in range(3)]
    assert metric.measure.formula(totals, np.ones(3)).tolist() == pytest.approx(alone)
    if metric.name != "CrossEntropyToNormsHashed":  # which is the entropy of the norms at best
        assert metric.value(statistics) == pytest.approx(metric.measure.best, abs=1e-12)


WORDS = ["tea", "milk", "water", "café", "x:y"]
NORM = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)


def shares(weights, rest):
    whole = sum(weights) + rest
    entries = [f"{word}:{weight / whole!r}" for word, weight in zip(WORDS, weights, strict=True) if weight]
    return " ".join(entries + [f":{rest / whole!r}"] * (rest > 0))


@PROPERTY
@given(NORM, NORM, st.integers(0, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 99))
def test_norms_are_compared_as_scipy_compares_buckets(norm, given_, norm_rest, rest, bits, line):
    expected, output = shares(norm, norm_rest), shares(given_, rest)
    wanted, found = (np.array(parse_line(of).buckets(bits, line)) for of in (expected, output))
    divergence, own = entropy(wanted, found, base=2), entropy(wanted, base=2)
    for name, theirs in (("KullbackLeiblerHashed", divergence), ("CrossEntropyToNormsHashed", own + divergence)):
        metric = find_metric(f"{name}{bits}")
        statistics = column_of(metric, frozenset()).statistics(block([output]), block([expected]), line)
        assert metric.value(statistics) == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        assert metric.value(statistics) >= 0


@pytest.mark.parametrize(("output", "answer", "rank"), [
    ("a:0.5 b:0.3 :0.2", " b ", 2), ("a:0.5 b:0.3 :0.2", "c", 0), (":1", "a", 0), ("é:0.5 z:0.5", "é", 1),
    ("a:0.2 b:0.3 a:0.2 :0.3", "a", 1),  # repeated words add up
    ("a:-1 b:-2 a:-900", "b", 2), ("a:0 b:-1", "b", 2),  # logarithms
    ("a:0.25 b:0.25 c:0.25", "a", 3),  # of equal words, the greater is first
    ("a:-900 b:-901", "a", 1),  # as probabilities, both would be 0
    ("a:0.5 b:0", "b", 0),  # no mass: not listed
])  # fmt: skip
def test_ranks(output, answer, rank):
    assert lines_of("MRR", [output], [answer]) == [1 / rank if rank else 0.0]
    for k in (1, 2, 3):
        assert lines_of(f"Hit@{k}", [output], [answer]) == [float(0 < rank <= k)]


@pytest.mark.parametrize(("output", "answer", "probability", "hit"), [
    ("a:0.4 b:0.1 :0.5", "a", 0.4 / (0.4 + 0.1 + 0.5), 0),  # c has the rest, alone
    ("a:0.6 b:0.1 :0.3", "a", 0.6, 1), ("a:0.6 b:0.1 :0.3", "c", 0.3, 0),
    ("a:0.4 x:0.4 :0.2", "b", 0.1 / 0.6, 0),  # b and c share the rest
    (":1", "a", 1 / 3, 0), (":1", "c", 1 / 3, 1),  # of equal options, the greatest
    ("a:1", "b", 0.0, 0), ("x:1", "c", 0.0, 0),  # no option has mass
    ("a:-1000 b:-1001 c:-1001", "a", 1 / (1 + 2 / math.e), 1), ("a:0.5 a:0.5", "a", 1.0, 1),
])  # fmt: skip
def test_choices_by_hand(output, answer, probability, hit):
    of = [output], [answer], ["text\ta b c a"]
    assert lines_of("ChoiceLogLoss", *of) == pytest.approx([-math.log(probability) if probability else math.inf])
    assert lines_of("ChoiceAccuracy", *of) == [hit]


HALVES = math.log2(1024)


@pytest.mark.parametrize(("output", "norm", "cross_entropy", "divergence"), [
    ("a:0.5 b:0.5", "a:1", 1.0, 1.0),
    (":1", "a:0.5 b:0.5", HALVES, HALVES - 1),
    ("a:1", "a:0.5 b:0.5", math.inf, math.inf),  # b has no mass
    ("a:1", "a:0.5 :0.5", math.inf, math.inf),
    ("a:-2000 b:0", "a:1", 2000 / math.log(2), 2000 / math.log(2)),  # which no probability could say
])  # fmt: skip
def test_norms_by_hand(output, norm, cross_entropy, divergence):
    """With 1024 buckets, in which a and b do not collide on line 1."""
    of = [output], [norm]
    assert lines_of("CrossEntropyToNormsHashed", *of) == pytest.approx([cross_entropy], rel=1e-3, abs=1e-12)
    assert lines_of("KullbackLeiblerHashed", *of) == pytest.approx([divergence], rel=1e-3, abs=1e-12)
    # The same entries in another order, and shares that are rounded, have no divergence.
    assert lines_of("KullbackLeiblerHashed", ["b:0.33 a:0.33 c:0.33"], ["a:0.33 b:0.33 c:0.33"]) == [0.0]


@pytest.mark.parametrize(("output", "norm", "row"), [
    ("a:0.5 x:0.5", "a:0.6 b:0.3 c:0.1", (math.sqrt(3) / 2, 1)),  # b and c share the last rank
    (":1", "a:0.6 b:0.4", (0, 1)),
    ("a:0.5", "a:1", (0, 0)), ("a:0.5", "a:0.5 b:0.5", (0, 0)), ("a:0.5", ":1", (0, 0)),
    ("a:-1e300 b:-1.7e308", "a:0.6 b:0.4", (1, 1)),
])  # fmt: skip
def test_rank_correlations_by_hand(output, norm, row):
    assert [column[0] for column in statistics_of("RankCorrelation", [output], [norm]).columns] == pytest.approx(row)


@pytest.mark.parametrize(("output", "label", "want"), [
    ("a:0.6 b:0.3 :0.1", "a", 0.16 + 0.09 + 0.01), ("a:0.6 b:0.3 :0.1", "c", 0.36 + 0.09 + 0.81),
    ("a:0.6 :0.4", "b", 0.36 + 0.64 + 0.04),  # b and c share the rest
    (":1", "a", 4 / 9 + 2 / 9), ("a:0.5 z:0.5", "z", 0.25 + 0.25), ("b:1", "a", 2.0), ("a:0.5 a:0.5", " a", 0.0),
    ("a:0.6 :0.4", "z", 0.36 + 0.04 + 0.04 + 1),  # neither listed nor known
])  # fmt: skip
def test_brier_scores_by_hand(output, label, want):
    ((found,),) = statistics_of("BrierScore", [output], [label], vocabulary="abc").columns
    assert found == pytest.approx(want)


@each
def test_an_output_line_that_cannot_be_read(metric):
    _, (answer, *_), (given_, *_) = perfect(metric)
    caught = error(metric.name, ["a:0.5 b:0,5"], [answer], [given_])
    assert (caught.line, caught.column, caught.role, caught.text) == (1, 9, "output", "a:0.5 b:0,5")
    assert caught.hint == "`0,5` is not a number; write a decimal point, not a comma"


OTHERS = {
    "a count": ("KullbackLeiblerHashed", "tea:3 milk:1", "", "expected", 1,
        "the shares of the answers are from 0 to 1, and not all 0; divide counts by their sum"),
    "no share": ("RankCorrelation", "tea:0", "", "expected", 1,
        "the shares of the answers are from 0 to 1, and not all 0; divide counts by their sum"),
    "a word alone": ("CrossEntropyToNormsHashed", "tea:0.5 milk", "", "expected", 9,
        "`milk` has no probability; an entry is `word:probability`, and a word cannot contain a space"),
    "an empty norm": ("RankCorrelation", "", "", "expected", 1,
        "the line is empty; write `:1` where there is no guess"),
    "no option": ("ChoiceLogLoss", "d", "x\ta b c", "expected", 1, "`d` is none of the input's options: a b c"),
    "many options": ("ChoiceAccuracy", "", "x\ta b c d e f g h i", "expected", 1,
        "`` is none of the input's options: a b c d e f g h …"),
    "one option": ("ChoiceLogLoss", "a", "x\ta a", "input", 3,
        "the last column has the options, at least 2, with spaces between them"),
    "an empty column": ("ChoiceAccuracy", "a", "x\t", "input", 3,
        "the last column has the options, at least 2, with spaces between them"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected", "given_", "role", "column", "hint"), OTHERS.values(), ids=OTHERS)
def test_another_line_that_cannot_be_read(name, expected, given_, role, column, hint):
    caught = error(name, ["a:0.5 :0.5"], [expected], [given_])
    assert (caught.line, caught.column, caught.role, caught.hint) == (1, column, role, hint)
    assert caught.text == (given_ if role == "input" else expected)


def test_a_fault_of_the_input_names_its_file_and_line(tmp_path):
    for name, text in {"in": "x\ta b\nx\ta\n", "expected": "a\na\n", "out": "a:1\na:1\n"}.items():
        (tmp_path / f"{name}.tsv").write_text(text)
    place = f"Line 2: Unexpected data [no choice of options]\n  `{tmp_path}/in.tsv`, line 2, column 3: "
    hint = "the last column has the options, at least 2, with spaces between them\n    x\\ta\n       ^"
    with refused(place + hint, MalformedLineError):
        geval_py.score_file(tmp_path / "out.tsv", tmp_path / "expected.tsv", metric="ChoiceAccuracy")
    with pytest.raises(MalformedLineError) as caught:
        geval_py.score([{"a": 1.0}] * 2, ["a", "a"], metric="ChoiceAccuracy", inputs=["x\ta b", "x\ta"])
    assert (caught.value.line, caught.value.path) == (2, "inputs")


def test_text_flags_change_outputs_answers_and_options():
    flags = "ChoiceAccuracy:l"
    of = [{"Lamp": 0.75, "tree": 0.25}], ["LAMP"]
    assert geval_py.score(*of, inputs=["x\tlamp Tree"], metric=flags).score == 1
    assert geval_py.score([{"LAMP": 0.5, "lamp": 0.25, "a": 0.25}], ["Lamp"], metric="MRR:l").score == 1


@pytest.mark.parametrize("entries", [1000, pytest.param(10**6, marks=pytest.mark.long)], ids=["many", "a million"])
@each
def test_a_line_of_very_many_entries(metric, entries):
    """In time and memory that rise with its length: as an output, an answer and an input."""
    words = [f"w{n}" for n in range(entries)]
    many = " ".join(f"{word}:{1 / entries!r}" for word in words)
    logs = " ".join(f"{word}:-{n}" for n, word in enumerate(words, 1))
    expected = many if metric.answers == "shares" else words[-1]
    inputs = ["x\t" + " ".join(words)] * 2
    statistics = statistics_of(metric.name, [many, logs], [expected] * 2, inputs, vocabulary=words)
    assert statistics.lines == 2
    assert all(math.isfinite(value) for column in statistics.columns for value in column)
