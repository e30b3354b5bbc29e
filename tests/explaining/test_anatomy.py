"""Where the loss comes from: outcomes, parts, bins and the lines to look at."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.explaining import losses as losses_module
from geval_py.explaining.losses import (
    CONTEXT,
    MOST_BINS,
    MOST_PARTS,
    Outcome,
    Outcomes,
    by_column,
    by_frequency,
    by_length,
    distribution_at,
    guess_of,
    in_context,
    loss_bins,
    outcome_shares,
    outcomes_in,
    outcomes_of,
    parts_of,
    quantiles_of,
    worst_and_best,
)
from geval_py.explaining.worst_features import culprits_of
from geval_py.reading.items import ScoredItem
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import COLUMNS
from geval_py.scoring.metrics.exact import is_hit

LOSSES = st.lists(st.floats(0, 60) | st.just(math.inf), min_size=1, max_size=60)


def outcomes(codes):
    none = np.zeros(len(codes))
    return Outcomes(codes=np.array(codes, np.int64), confidences=none, given=none)


@pytest.mark.parametrize(
    ("line", "expected", "outcome", "listed"),
    [
        ("the:0.5 a:0.25 :0.25", "the", Outcome.RIGHT, 0.5),
        ("the:0.5 a:0.25 :0.25", "a", Outcome.LISTED, 0.25),
        ("the:0.5 a:0.25 :0.25", "of", Outcome.MISSED, None),
        ("a:0.5 the:0.5", "the", Outcome.RIGHT, 0.5),  # of equal ones the greatest in code point order, as Accuracy
        (":1", "the", Outcome.NO_GUESS, None),
        ("-1.0 -2.0 -0.5 -3.0", "the", Outcome.NO_GUESS, None),  # a vector
        ("the:0 a:0.5 :0.5", "the", Outcome.LISTED, 0.0),
    ],
)
def test_what_became_of_a_line(line, expected, outcome, listed):
    guess = guess_of(distribution_at(line), expected)
    assert guess.outcome(expected) == outcome
    assert guess.listed == listed


@pytest.mark.parametrize("expected", ["a", "b", "c", "d"])
@pytest.mark.parametrize("words", [list(words) for n in (1, 2, 3) for words in permutations("abc", n)], ids="".join)
def test_the_first_guess_is_right_where_accuracy_says_so(words, expected):
    line = " ".join([*(f"{word}:0.2" for word in words), ":0.2"])
    assert (guess_of(distribution_at(line), expected).outcome(expected) == Outcome.RIGHT) == is_hit(line, expected)


@given(LOSSES, st.data())
def test_shares_are_of_all_lines_and_of_the_finite_loss(losses, data):
    codes = data.draw(st.lists(st.integers(0, 3), min_size=len(losses), max_size=len(losses)))
    shares = outcome_shares(np.array(losses), outcomes(codes))
    assert sum(share.lines for share in shares) == len(losses)
    assert sum(share.share_of_lines for share in shares) == pytest.approx(1)
    finite = [loss for loss in losses if math.isfinite(loss)]
    assert sum(share.share_of_loss for share in shares) == pytest.approx(1 if sum(finite) else 0)


@given(LOSSES)
def test_bins_hold_each_finite_line_once(losses):
    bins = loss_bins(np.array(losses), outcomes([1] * len(losses)))
    finite = [loss for loss in losses if math.isfinite(loss)]
    assert sum(one.lines for one in bins) == len(finite)
    assert len(bins) <= MOST_BINS
    for one in bins:
        inside = sum(one.low <= loss < one.high or math.isclose(loss, one.low) for loss in finite)
        assert inside >= one.lines


@given(LOSSES, st.data())
def test_parts_hold_each_line_once(losses, data):
    words = data.draw(st.lists(st.text(max_size=20), min_size=len(losses), max_size=len(losses)))
    counts = data.draw(st.dictionaries(st.text(max_size=20), st.integers(1, 10**7)))
    for parts in (by_length(np.array(losses), words), by_frequency(np.array(losses), words, counts)):
        assert sum(part.lines for part in parts) == len(losses)
        for part in parts:
            assert part.low is None or 0 <= part.low <= part.mean_loss <= part.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_quantiles_never_part_equal_values(values):
    parts = parts_of(np.ones(len(values)), *quantiles_of(np.array(values)))
    assert sum(part.lines for part in parts) == len(values)
    assert len(parts) <= MOST_PARTS


def test_labels_of_lengths_and_frequencies():
    words = ["x" * length for length in (1, 7, 8, 9, 12, 13, 40)]
    assert [part.label for part in by_length(np.ones(7), words)] == ["1", "7", "8–9", "10–12", "13 or more"]
    counts = {"x" * 7: 1, "x" * 8: 9, "x" * 9: 10, "x" * 12: 250_000}
    labels = [part.label for part in by_frequency(np.ones(7), words, counts)]
    assert labels == ["never", "once", "2–9", "10–99", "100,000 or more"]


def test_a_part_has_students_interval():
    (part,) = by_length(np.array([1.0, 2.0, 3.0]), ["a", "b", "c"])  # t of 2 degrees of freedom: 4.303
    assert (part.low, part.high) == (0.0, pytest.approx(2 + 4.303 / math.sqrt(3), abs=1e-3))
    assert (part.low, part.high) == (0.0, pytest.approx(2 + 4.302653 / math.sqrt(3)))  # no loss is below 0
    (part,) = by_length(np.array([9.0, 10.0, 11.0]), ["a", "b", "c"])
    assert (part.low, part.high) == pytest.approx((10 - 4.302653 / math.sqrt(3), 10 + 4.302653 / math.sqrt(3)))
    (part,) = by_length(np.array([9.0, math.inf, 11.0]), ["a", "b", "c"])
    assert (part.lines, part.mean_loss) == (3, 10.0)
    (part,) = by_length(np.array([9.0, math.inf]), ["a", "b"])
    assert (part.lines, part.mean_loss, part.low, part.high) == (2, 9.0, None, None)
    (one,) = by_length(np.array([1.0]), ["a"])
    assert (one.low, one.high) == (None, None)


@pytest.mark.parametrize(
    ("texts", "kind", "labels"),
    [
        (["1901", "1902"] * 10, "number", ["1901", "1902"]),
        ([str(year) for year in range(1900, 1920)], "number", [f"{y}–{y + 1}" for y in range(1900, 1920, 2)]),
        (["a"] * 12 + ["b"] * 10 + ["c"], "value", ["a", "b", "others"]),
        ([" ".join(["w"] * (4 + n % 3)) + str(n) for n in range(30)], "words", ["4", "5", "6"]),
    ],
)
def test_how_a_column_parts_lines(texts, kind, labels):
    found = by_column(np.ones(len(texts)), "C", texts)
    assert found.kind == kind
    assert [part.label for part in found.parts] == labels


@pytest.mark.parametrize("texts", [["same"] * 30, [f"id-{n}" for n in range(30)]], ids=["constant", "identity"])
def test_what_parts_nothing(texts):
    assert by_column(np.ones(30), "C", texts) is None


@given(LOSSES, st.integers(0, 9), st.integers(0, 9))
def test_the_worst_and_the_best(losses, worst, best):
    chosen = worst_and_best(np.array(losses), outcomes([0] * len(losses)), worst, best).tolist()
    assert len(chosen) == len(set(chosen)) == min(len(losses), worst + best)
    assert [losses[n] for n in chosen] == sorted((losses[n] for n in chosen), reverse=True)


def test_of_equal_losses_the_more_confident_is_worse():
    of = Outcomes(
        codes=np.zeros(4, np.int64), confidences=np.array([0.1, 0.9, 0.9, 1.0]), given=np.array([0, 0, 0, 0.1])
    )
    assert worst_and_best(np.array([7.0] * 4), of).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("f-1\t1901\tbefore\tafter", (("f-1", "1901"), "before", "after")),
        ("before\tafter", ((), "before", "after")),
        ("only", ((), "only", "")),
        ("", ((), "", "")),
        ("a" * 100 + "\t" + "b" * 100, ((), "…" + "a" * CONTEXT, "b" * CONTEXT + "…")),
    ],
)
def test_a_gap_in_its_context(line, shown):
    assert in_context(line) == shown


def test_culprits_are_what_costs():
    items = [ScoredItem("", "bad" if n % 4 == 0 else "good", "x:0.5 :0.5") for n in range(400)]
    losses = np.array([6.0 if n % 4 == 0 else 2.0 for n in range(400)]) + np.arange(400) / 1e4
    (culprit, *_) = culprits_of(items, losses, (), None)
    assert culprit.feature == "exp:bad"
    assert culprit.lines == 100
    assert culprit.fall == pytest.approx(1 - math.exp(-1), abs=1e-3)  # a quarter of the lines, each by 4 nats
    assert culprit.q < 1e-6


ENTRY = st.tuples(st.sampled_from(["", "a", "b", "ą", "a:b"]), st.sampled_from(["0", "0.25", "0.3", "1"])).map(
    ":".join
)
LINES = st.lists(ENTRY, min_size=1, max_size=5).map(" ".join) | st.just("-1.0 -2.0")


@given(st.lists(st.tuples(LINES, st.sampled_from(["a", "b", "ą", "a:b", ""])), max_size=9), st.integers(1, 4))
def test_outcomes_are_those_of_the_guesses(pairs, at_once):
    items = [ScoredItem("", expected, line) for line, expected in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses_module, "ITEMS_AT_ONCE", at_once)
        found = outcomes_of(iter(items))
    guesses = [guess_of(distribution_at(item.output), item.expected) for item in items]
    assert found.codes.tolist() == [guess.outcome(item.expected) for guess, item in zip(guesses, items, strict=True)]
    assert found.confidences.tolist() == pytest.approx([guess.confidence for guess in guesses], rel=1e-12)
    assert found.given.tolist() == pytest.approx([guess.listed or 0.0 for guess in guesses], rel=1e-12)


@given(
    st.lists(
        st.tuples(LINES.filter(lambda line: ":" in line) | st.just("-1.0 " * 15 + "-2.0"), st.just("a")), min_size=1
    )
)
def test_outcomes_are_the_same_from_the_profiles_of_any_bits(pairs):
    texts = ("".join(f"{text}\n" for text in column).encode() for column in zip(*pairs, strict=True))
    columns, _ = backends.line_profiles(*texts, 4, 1, 0)
    found = outcomes_in(dict(zip(COLUMNS, map(np.array, columns), strict=True)).__getitem__)
    want = outcomes_of(ScoredItem("", expected, line) for line, expected in pairs)
    for name in ("codes", "confidences", "given"):
        assert getattr(found, name).tolist() == getattr(want, name).tolist()


def test_outcomes_of_lines():
    items = [ScoredItem("", "a", "a:0.9 :0.1"), ScoredItem("", "a", ":1")]
    found = outcomes_of(items)
    assert found.codes.tolist() == [Outcome.RIGHT, Outcome.NO_GUESS]
    assert found.confidences.tolist() == [0.9, 0.0]
