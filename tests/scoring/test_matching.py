"""Metrics with a slash in their names: how answers are matched, and means over classes."""

import itertools
import json
import lzma
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from scorers import error, score, statistics_of

from geval_py.errors import SchemeError
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.matching import (
    MATCHINGS,
    distance,
    fuzzy,
    greatest_match,
    number_in,
    without_label,
)
from geval_py.scoring.metrics.registry import MAX_PREFIXES, geval_name

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(60))
DATA = Path(__file__).parent.parent / "data/matched-metrics.jsonl.xz"
GOLDEN = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


# GEval's answers


@pytest.mark.parametrize("name", dict.fromkeys(row["metric"] for row in GOLDEN))
def test_golden_scores(name):
    """GEval 1.42.2, --metric and the metric's name; inputs made up."""
    rows = [row for row in GOLDEN if row["metric"] == name]
    found = [score(name, row["output"], row["expected"]) for row in rows]
    assert found == pytest.approx([row["value"] for row in rows], rel=1e-9, abs=1e-9)


BROKEN = [  # GEval 1.42.2, --metric and the metric's name
    ("MacroAvg/F1", ["0.4", "0.1", "1"], ["1", "0", "2"], 3, "expected 0 or 1", "expected"),
    ("MacroAvg/RMSE", ["1", "two", "2"], ["1.5", "2", "2"], 2, "input does not start with a digit", "output"),
]


@pytest.mark.parametrize(("name", "outputs", "expected", "line", "reason", "role"), BROKEN)
def test_a_line_that_cannot_be_read(name, outputs, expected, line, reason, role):
    caught = error(name, outputs, expected)
    assert (caught.line, caught.reason, caught.role) == (line, reason, role)


# Names


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("Fuzzy/Lower/Accuracy", "Fuzzy/Accuracy"),
        ("MacroAvg/Lower/Fuzzy/Smart/Accuracy", "MacroAvg/Lower/Fuzzy/Accuracy"),
        ("Mean/Smart/MultiLabel-F0.5", "Mean/Smart/MultiLabel-F0.5"),
        ("CutLabel/CutLabel/MultiLabel-F2", "CutLabel/CutLabel/MultiLabel-F2.0"),
        ("MacroAvg/F2", "MacroAvg/F2.0"),
        ("MacroAvg/SMAPE", "MacroAvg/SMAPE"),
    ],
)
def test_names_nest(name, theirs):
    """GEval 1.42.2: evaluationSchemeName shows the metric as it was read."""
    metric = find_metric(name)
    assert metric.name == name
    assert metric == find_metric(name)
    assert geval_name(name) == theirs


@pytest.mark.parametrize(
    "name",
    [
        *("Lower", "Lower/", "/Accuracy", "lower/Accuracy", "Lower//Accuracy", "Lower/Accuracy/",
            "Lower/MultiLabel-F"),
        *("Lower/" * (MAX_PREFIXES + 1) + "Accuracy", "Lower/" * 9999 + "Accuracy", "MacroAvg/", "Mean/Lower/"),
        *("MacroAvg/F", "MacroAvg/F1x", "Fuzzy/MultiLabel-F-1", "Mean/Fuzzy/MultiLabel-F"),
    ],
)  # fmt: skip
def test_other_names_are_unknown(name):
    with pytest.raises(SchemeError) as caught:
        find_metric(name)
    assert str(caught.value).startswith("Unknown or broken metric definition: ")


def test_each_matching_has_both_metrics():
    assert find_metric("CutLabel/" * MAX_PREFIXES + "Accuracy").matching == ("CutLabel",) * MAX_PREFIXES
    for name in MATCHINGS:
        assert find_metric(f"{name}/Accuracy").answers == "any"
        assert find_metric(f"{name}/MultiLabel-F1").is_tokenised
        assert find_metric(f"MacroAvg/{name}/Accuracy").matching == (name,)
        assert find_metric(f"Mean/{name}/MultiLabel-F2").matching == (name,)


# Distances, against plain code


def edits(one, other):
    """Count the edits from one text to another (Wagner and Fischer 1974)."""
    row = list(range(len(other) + 1))
    for n, left in enumerate(one, 1):
        diagonal, row[0] = row[0], n
        for m, right in enumerate(other, 1):
            diagonal, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, diagonal + (left != right))
    return row[-1]


TEXT = st.text(alphabet="aAbłŁİ=5.-+VIX ", max_size=9)


@PROPERTY
@given(TEXT, TEXT)
def test_fuzzy_divides_edits_by_what_is_expected(given_, expected):
    want = min(1, edits(given_, expected) / len(expected)) if expected else 1
    assert fuzzy(given_, expected) == want


def similarity(names, given_, expected):
    """Compare two texts as the definitions of GEval 1.42.2 (GEval.MatchingSpecification) say, step by step."""
    if not names:
        return float(given_ == expected)
    first, rest = names[0], names[1:]
    if first == "Fuzzy":
        return max(0.0, 1 - edits(given_, expected) / len(expected)) if expected else 0.0
    if first == "Lower":
        return similarity(rest, *("".join(one.lower()[0] for one in text) for text in (given_, expected)))
    if first == "CutLabel":
        return similarity(
            rest, *(text[text.index("=") + 1 :] if "=" in text else text for text in (given_, expected))
        )
    if first == "Smart":
        return similarity(rest if any(one.isalpha() for one in expected) else (), given_, expected)
    if first == "ExtractNumber":
        wanted = number_in(expected)
        return similarity(rest, given_, expected) if wanted is None else float(number_in(given_) == wanted)
    return float(similarity(rest, given_, expected) >= (0.8 if first == "Harden" else 0.5))


NAMES = st.lists(st.sampled_from(sorted(MATCHINGS)), max_size=4).map(tuple)


@settings(PROPERTY, max_examples=examples(300))
@given(NAMES, TEXT, TEXT)
def test_names_compose(names, given_, expected):
    assert 1 - distance(names, given_, expected) == similarity(names, given_, expected)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5 apples", "5"), ("-5", "5"), ("+3.14", "+3.14"), ("-.5", "-.5"), ("5.", "5"), ("0012", "0012"),
        ("٣", None), ("Henry VIII", "8"), ("I", "1"), ("MCMXC", "1990"), ("IIX", "10"), ("viii", None),
        ("VIII. x", None), ("M" * 5000, "5000000"), ("", None),
    ],
)  # fmt: skip
def test_numbers(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(("text", "value"), [("a=b=c", "b=c"), ("a=", ""), ("=a", "a"), ("a", "a"), ("", "")])
def test_a_label_ends_at_the_first_equals_sign(text, value):
    assert without_label(text) == value


# Labels


def greatest(measure, wanted, given_):
    """Try all pairings."""
    few, many = sorted((range(len(wanted)), range(len(given_))), key=len)
    is_short = len(few) == len(wanted)
    best = 0.0
    for chosen in itertools.permutations(many, len(few)):
        pairs = zip(few, chosen, strict=True) if is_short else zip(chosen, few, strict=True)
        best = max(best, sum(1 - measure(wanted[n], given_[m]) for n, m in pairs))
    return best


WORDS = st.lists(st.text(alphabet="abAB", min_size=1, max_size=4), max_size=5)


@PROPERTY
@given(NAMES, WORDS, WORDS)
def test_the_greatest_match_is_that_of_all_pairings(names, wanted, given_):
    measure = partial(distance, names)
    assert greatest_match(measure, wanted, given_) == pytest.approx(greatest(measure, wanted, given_))


@PROPERTY
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_matching_in_any_case_is_that_of_lines_in_lower_case(lines):
    expected, outputs = ([" ".join(words) for words in side] for side in zip(*lines, strict=True))
    lower = [text.lower() for text in outputs], [text.lower() for text in expected]
    for name in ("MultiLabel-F2", "Mean/MultiLabel-F1"):
        mean, _, inner = name.rpartition("/")
        matched = "/".join(filter(None, (mean, "Lower", inner)))
        assert score(matched, outputs, expected) == pytest.approx(score(name, *lower))


def test_labels_swap_the_roles():
    """GEval 1.42.2: an expected label stands for the given one, so Fuzzy divides by the length of the given one."""
    assert statistics_of("Fuzzy/MultiLabel-F1", ["abcd"], ["ab"]).columns[0].tolist() == [0.5]
    assert score("Fuzzy/Accuracy", ["abcd"], ["ab"]) == 0.0


def test_labels_below_a_half_are_not_given():
    columns = statistics_of("Lower/MultiLabel-F1", ["A:0.5 B:0.49"], ["a b"]).columns
    assert [column[0] for column in columns] == [1.0, 2, 1]


def test_too_many_labels():
    line = " ".join(["a"] * 3163)
    caught = error("Fuzzy/MultiLabel-F1", ["a", line], ["a", line])
    assert (caught.line, caught.token) == (2, line)
    assert caught.hint.startswith("3163 expected and 3163 given items cannot be compared; ")


@pytest.mark.slow
def test_a_line_of_a_megabyte_is_matched_in_seconds():
    start = time.process_time()
    text = "x" * 1_000_000
    assert score("Fuzzy/Accuracy", [text], ["short\tx"]) == 0.0
    assert score("Fuzzy/Accuracy", [text], [text + "y"]) == pytest.approx(1)
    assert score("ExtractNumber/Fuzzy/Accuracy", ["7" * 1_000_000], ["+7"]) == 0.0
    assert score("ExtractNumber/Accuracy", ["MI" * 500_000], ["7"]) == 0.0
    assert score("Fuzzy/MultiLabel-F1", ["x " * 500_000], ["x y z"]) == pytest.approx(2 / 500_003)
    assert time.process_time() - start < 20


# Means over classes


NUMBERS = st.lists(st.tuples(st.sampled_from(["1", "1.0", "01", "-0", "0", "2.5"]), st.integers(-3, 3)), min_size=1)


@pytest.mark.parametrize("name", ["RMSE", "MSE", "MAE", "SMAPE"])
@PROPERTY
@given(pairs=NUMBERS)
def test_a_mean_over_numbers_is_that_of_the_scores_of_each(name, pairs):
    groups = {}
    for answer, number in pairs:
        groups.setdefault(float(answer), []).append((answer, str(number)))
    want = [score(name, *reversed(list(zip(*group, strict=True)))) for group in groups.values()]
    answers, numbers = zip(*pairs, strict=True)
    assert score(f"MacroAvg/{name}", map(str, numbers), answers) == pytest.approx(np.mean(want))


@PROPERTY
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_a_mean_of_f_scores(pairs):
    """Of the class 0, 1 if nothing is given, else 0; of the class 1, with a precision of 1 if something is found."""
    zeros, ones = ([found for wanted, found in pairs if wanted is one] for one in (False, True))
    recall = sum(ones) / len(ones) if ones else 0
    want = ([float(not any(zeros))] if zeros else []) + ([2 * recall / (1 + recall)] if ones else [])
    answers, outputs = zip(*(map(str, map(int, pair)) for pair in pairs), strict=True)
    assert score("MacroAvg/F1", outputs, answers) == pytest.approx(np.mean(want))


def test_the_score_of_a_line_of_a_mean_over_numbers_is_its_own():
    metric, lines = find_metric("MacroAvg/MAE"), statistics_of("MacroAvg/MAE", ["1", "3"], ["1", "1"])
    assert list(metric.line_scores(lines)) == [0.0, 2.0]
    assert metric.value(lines) == 1.0
