"""Metrics with a slash in their names: how answers are matched, and means over classes."""

import time

import pytest
from scorers import error, score, statistics_of

from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics import translation
from geval_py.scoring.metrics.matching import MATCHINGS, fuzzy, number_in
from geval_py.scoring.metrics.registry import MAX_PREFIXES


def test_each_matching_has_both_metrics():
    assert find_metric("CutLabel/" * MAX_PREFIXES + "Accuracy").matching == ("CutLabel",) * MAX_PREFIXES
    for name in MATCHINGS:
        assert find_metric(f"{name}/Accuracy").answers == "any"
        assert find_metric(f"{name}/MultiLabel-F1").is_tokenised
        assert find_metric(f"MacroAvg/{name}/Accuracy").matching == (name,)
        assert find_metric(f"Mean/{name}/MultiLabel-F2").matching == (name,)


def test_fuzzy_divides_edits_by_what_is_expected():
    pairs = [("kitten", "sitting"), ("abcd", "ab"), ("abcdef", "ab"), ("", "ab"), ("ab", ""), ("Łódż", "łódź")]
    assert [fuzzy(*pair) for pair in pairs] == [3 / 7, 1, 1, 1, 1, 0.5]


@pytest.mark.parametrize(("text", "number"), [
    ("5 apples", "5"), ("-5", "5"), ("+3.14", "+3.14"), ("-.5", "-.5"), ("5.", "5"), ("0012", "0012"),
    ("٣", None), ("Henry VIII", "8"), ("I", "1"), ("MCMXC", "1990"), ("IIX", "10"), ("viii", None),
    ("VIII. x", None), ("M" * 5000, "5000000"), ("", None),
])  # fmt: skip
def test_numbers(text, number):
    assert number_in(text) == number


def test_too_many_labels():
    line = " ".join(["a"] * 3163)
    caught = error("Fuzzy/MultiLabel-F1", ["a", line], ["a", line])
    assert (caught.line, caught.token) == (2, line)
    assert caught.hint.startswith("3163 expected and 3163 given items cannot be compared; ")


@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_very_long_line_is_matched_in_seconds(size):
    start = time.process_time()
    text = "x" * size
    assert score("Fuzzy/Accuracy", [text], ["short\tx"]) == 0.0
    assert score("Fuzzy/Accuracy", [text], [text + "y"]) == pytest.approx(1, abs=1e-4)
    assert score("ExtractNumber/Fuzzy/Accuracy", ["7" * size], ["+7"]) == 0.0
    assert score("ExtractNumber/Accuracy", ["MI" * (size // 2)], ["7"]) == 0.0
    assert score("Fuzzy/MultiLabel-F1", ["x " * (size // 2)], ["x y z"]) == pytest.approx(2 / (size // 2 + 3))
    assert time.process_time() - start < 20


def test_long_texts_are_compared_in_a_process_that_can_be_interrupted(monkeypatch):
    monkeypatch.setattr(translation, "LONG_PAIR", 1)
    assert score("Fuzzy/Accuracy", ["kitten"], ["sitting"]) == pytest.approx(4 / 7)


def test_the_score_of_a_line_of_a_mean_over_numbers_is_its_own():
    metric, lines = find_metric("MacroAvg/MAE"), statistics_of("MacroAvg/MAE", ["1", "3"], ["1", "1"])
    assert list(metric.line_scores(lines)) == [0.0, 2.0]
    assert metric.value(lines) == 1.0
