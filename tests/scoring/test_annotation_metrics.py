"""The metrics of annotations, clippings, segments and intervals: what GEval answers, the edges, the limits."""

import math
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from scorers import close, error, score, statistics_of

from geval_py.errors import MalformedLineError
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics import assignment, rectangles
from geval_py.scoring.metrics.rectangles import read_rectangles

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(60))


def test_a_pair_of_different_labels_has_nothing_in_common_in_flc():
    """GEval 1.42.2 fails: `Non-exhaustive guards in function coveredScore`."""
    assert score("FLC-F1", ["a:1-4 b:5-8"], ["a:1-4 b:5-8"]) == 1
    assert score("FLC-F1", ["a:1-4"], ["b:1-4"]) == 0
    assert score("FLC-F1", ["a:1-4 a:4"], ["a:1-4"]) == 0  # what is given overlaps


@pytest.mark.parametrize(("output", "found", "wanted"), [
    ("N:1-4 V:5", 2, 2), ("N:4,1-3 V:5-5", 2, 2), ("N:1-4\u00a0N:V:5", 1, 2), (":1-4 V:5", 1, 2), ("V: V:", 0, 2),
])  # fmt: skip
def test_equal_segments_are_equal_positions(output, found, wanted):
    columns = statistics_of("SegmentAccuracy", [output], ["N:1-4 V:5"]).columns
    assert [column[0] for column in columns] == [found, wanted]


def test_a_line_without_expected_segments_has_no_accuracy():
    """GEval 1.42.2: NaN."""
    metric, statistics = find_metric("SegmentAccuracy"), statistics_of("SegmentAccuracy", ["a:1", ""], ["a:1", ""])
    assert math.isnan(metric.value(statistics))
    assert list(metric.line_scores(statistics)) == close([1, math.nan])


@pytest.mark.parametrize(("number", "distance"), [("2", 3), ("4", 1), ("5", 2), ("6", 3)])
def test_of_a_reversed_interval_the_lower_end_is_asked_first(number, distance):
    assert score("MAE-Against-Interval", [number], ["5,3"]) == distance


FAULTS = {
    "no colon": ("Soft-F1", "a:1 per", "", 5, "endOfInput", "output"),
    "no label": ("Soft-F1", ":1", "", 1, "endOfInput", "output"),
    "a comma at the end": ("FLC-F1", "a:1,", "", 1, "endOfInput", "output"),
    "white space that is no space": ("Soft-F1", "a:1\u00a0b:2", "", 1, "endOfInput", "output"),
    "a probability that is expected": ("Soft-F1", "", "a:1 b:2:0.5", 5, "endOfInput", "expected"),
    "no exponent": ("Probabilistic-Soft-F1", "a:1:1e", "", 1, "endOfInput", "output"),
    "a position too large": ("Soft-F1", f"b:1 a:1-{10**18}", "", 9, "number too large", "output"),
    "a page too large": ("ClippEU", "", f"{10**18}/1,1,2,2/1", 1, "number too large", "expected"),
    "three corners": ("Soft2D-F1", "1,1,2,2 \ta:1,2,3", "", 10, "cannot parse line", "output"),
    "reversed corners": ("Soft2D-F1", "1,1,2,0", "", 1, "cannot parse line", "output"),
    "a margin that is given": ("ClippEU", "1,1,2,2/1", "", 1, "cannot parse line", "output"),
    "no margin": ("ClippEU", "", "1/1,1,2,2", 1, "cannot parse line", "expected"),
    "no segment": ("SegmentAccuracy", "a:b:x", "a:1", 1, "endOfInput", "output"),
    "three ends": ("MAE-Against-Interval", "1", "1,2,3", 1, "cannot parse interval", "expected"),
    "no upper end": ("MSE-Against-Interval", "1", "1,x", 3, "cannot parse interval", "expected"),
    "a probability above 1": ("Probabilistic-Soft-F1", "n:1-3 n:5:1.5", "n:1-3", 7, "endOfInput", "output"),
    "digits before a probability": ("Probabilistic-Soft2D-F1", "1,2,3,4:2", "", 9, "2.0 is not in [0, 1]", "output"),
    "three fields": ("CustomMetric1", "a\tb\tc", "a\tb", 1, "too many fields, only two expected", "output"),
}


@pytest.mark.parametrize(("name", "output", "expected", "column", "reason", "role"), FAULTS.values(), ids=FAULTS)
def test_a_line_that_cannot_be_read(name, output, expected, column, reason, role):
    caught = error(name, [output], [expected])
    assert (caught.line, caught.column, caught.reason, caught.role) == (1, column, reason, role)
    assert caught.hint
    assert caught.text == (output if role == "output" else expected)


INTERVAL = "an interval is two numbers with a comma between them: `1592,1593.5`"
HINTS = [  # of an output, or of what is expected
    ("Soft-F1", "per", "", "`per` is no annotation; an annotation is `label:1-4,7`, perhaps with a probability "
     "behind it: `label:1-4,7:0.5`"),
    ("SegmentAccuracy", "per", "", "`per` is no segment; a segment is `label:1-4,7`"),
    ("SegmentAccuracy", "a:1-4 b:2-3", "", "position 2 is in two segments, the other one in column 1"),
    ("Soft2D-F1", "3,3,1,1", "", "`3,3,1,1` is no rectangle; the first corner is the one with the smaller numbers"),
    ("Soft2D-F1", "x", "", "`x` is no rectangle; a rectangle is `label:2/10,20,30,40`, on page 2, perhaps with a "
     "probability behind it"),
    ("Soft2D-F1", "3,3,4,4:1.5", "", "`1.5` is not from 0 to 1"),
    ("ClippEU", "x", "", "`x` is no rectangle; a rectangle is `2/10,20,30,40`, on page 2, without label or margin"),
    ("ClippEU", "", "x", "`x` is no rectangle; a rectangle is `2/10,20,30,40/5`, on page 2, with a margin of 5"),
    ("Soft-F1", f"a:{10**18}", "", "`1000000000000000000` is too large; a number has at most 18 digits"),
    ("CustomMetric1", "a", "a\tb", "a line has two fields with a TAB between them, and here is 1"),
    ("CustomMetric1", "a\tb\tc", "a\tb", "a line has two fields with a TAB between them, and here are 3"),
    *(("RMSE-Against-Interval", "1", expected, INTERVAL) for expected in ("", "1", "1,", "1,2,3", "1,x")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "output", "expected", "hint"), HINTS)
def test_a_hint_says_what_is_written_there(name, output, expected, hint):
    assert error(name, [output], [expected]).hint == hint


@pytest.mark.parametrize(("written", "shown"), [("1.5", "1.5"), ("-0.01", "-1.0e-2"), ("1e999", "Infinity")])
def test_what_is_no_probability(written, shown):
    caught = error("Probabilistic-Soft2D-F1", [f"1,1,2,2 1,1,2,2:{written}"], [""])
    assert str(caught).splitlines()[0] == f"{shown} is not in [0, 1]"
    assert caught.column == 17


def test_long_spans_and_large_areas_are_exact_and_cost_nothing():
    score("Soft-F1", ["a:1"], ["a:1"])  # what is imported takes memory
    tracemalloc.start()
    assert score("Soft-F1", ["label:1-999999999999"], ["label:500000000000-999999999999"]) == pytest.approx(0.5)
    assert score("SegmentAccuracy", ["a:1-999999999999999999"], ["a:1-5,6-999999999999999999"]) == 1
    assert score("FLC-F1", ["a:1-999999999999999999"], ["a:7"]) == pytest.approx(2e-18)
    huge = "0,0,999999999999999999,999999999999999999"
    assert score("Soft2D-F1", [f"{huge} {huge} 1,1,2,2"], [f"{huge} {huge} 1,1,2,2"]) == 1
    (region,) = read_rectangles(True, huge, 1)
    assert region.size == 10**36
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(("name", "output"), [
    ("Soft-F1", f"a:1-{'9' * 1000}"), ("SegmentAccuracy", f"a:{'9' * 5000}"), ("Soft2D-F1", f"{'9' * 1000},1,2,2"),
    ("ClippEU", f"{'9' * 5000}/1,1,2,2"),
])  # fmt: skip
def test_a_number_of_a_thousand_digits_is_an_error_and_one_of_a_thousand_zeros_is_not(name, output):
    assert error(name, [output], [""]).reason == "number too large"
    assert statistics_of(name, [output.replace("9", "0")], [""]).lines == 1


def many(count, item):
    return " ".join(item.format(n, n + 700) for n in range(count))


TOO_MANY = {
    "annotations": ("Soft-F1", many(60, "a:{}-{}"), many(61, "a:{}-{}"), "61 expected and 60 given"),
    "annotations with probabilities": ("Probabilistic-Soft-F1", many(70, "a:{}"), many(70, "b:{}"),
        "70 expected and 70 given"),
    "labels": ("Probabilistic-MultiLabel-F1", many(70, "a"), many(60, "b"), "60 expected and 70 given"),
    "labels to be compared": ("Lower/MultiLabel-F1", many(70, "a"), many(60, "b"), "60 expected and 70 given"),
    "fragments": ("FLC-F1", many(70, "a:{0}"), many(70, "a:0-99"), "70 expected and 70 given"),
    "clippings": ("ClippEU", many(70, "1,1,2,2"), many(70, "1,1,2,2/9"), "70 expected and 70 given"),
    "rectangles": ("Probabilistic-Soft2D-F1", many(70, "0,0,{},9"), many(70, "0,0,{},9"), "70 expected and 70 given"),
    "a grid": ("Soft2D-F1", many(40, "{0},{0},{1},{1}"), "1,1,9,9", "1 expected and 40 given"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "output", "expected", "items"), TOO_MANY.values(), ids=TOO_MANY)
def test_a_line_that_would_take_too_long_is_an_error(name, output, expected, items, monkeypatch):
    monkeypatch.setattr(assignment, "MAX_PAIRS", 3600)
    monkeypatch.setattr(rectangles, "MAX_RECTANGLES", 40)
    caught = error(name, [output], [expected])
    assert (caught.reason, caught.column) == ("too many items to be matched", 1)
    assert caught.hint == f"{items} items cannot be compared; split the text of the line into several lines"


@pytest.mark.parametrize(("name", "form"), [("Soft-F1", "{}:1-9"), ("Soft2D-F1", "{}:{},{},99,99")])
def test_the_limits_are_those_of_a_line_not_of_a_label(name, form, monkeypatch):
    def line(labels):
        return " ".join(form.format(label, n, n) for label in labels for n in range(20))

    monkeypatch.setattr(assignment, "MAX_PAIRS", 600)
    monkeypatch.setattr(rectangles, "MAX_RECTANGLES", 60)
    score(name, [line("a")], [line("a")])
    assert error(name, [line("ab")], [line("ab")]).reason == "too many items to be matched"


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.long)])
def test_many_items_that_hardly_overlap_are_scored(count):
    outputs, expected = many(count, "a:{0}0-{0}9"), many(count, "a:{0}5-{0}9")
    assert score("Soft-F1", [outputs], [expected]) == pytest.approx(0.5)
    squares = many(count, "{0}0,{0}0,{0}9,{0}9")
    assert score("Soft2D-F1", [squares], [squares]) == 1
    assert score("ClippEU", [squares], [many(count, "{0}0,{0}0,{0}9,{0}9/1")]) == 1
    spans = ",".join(str(3 * n) for n in range(count))  # one annotation of many spans
    assert score("FLC-F1", [many(count, "a:{0}0-{0}9")], [f"a:{spans}"]) == pytest.approx(0.2 / 1.1)
    assert score("Soft-F1", [f"a:{spans}"], [f"a:{spans}"]) == 1


NAME = st.sampled_from(["Soft-F1", "FLC-F1", "SegmentAccuracy", "Soft2D-F1", "ClippEU", "Probabilistic-Soft2D-F1"])
LINE = st.text(st.sampled_from("ab:/,-. 0159\t\u00a0e"), max_size=20)


@PROPERTY
@given(NAME, LINE, LINE)
def test_any_line_is_scored_or_an_error_at_its_place(name, output, expected):
    try:
        value = score(name, [output], [expected])
    except MalformedLineError as error_:
        caught = error_
    else:
        assert value >= 0 or math.isnan(value)
        return
    assert caught.text == (output if caught.role == "output" else expected)
    assert caught.text[caught.column - 1 :].startswith(caught.token)
