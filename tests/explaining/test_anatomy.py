"""Where the loss comes from: outcomes, parts, bins and the lines to look at."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.explaining import losses as losses_module
from geval_py.explaining.losses import (
    CONTEXT,
    MAX_GROUPS,
    Outcome,
    bins_of,
    example_of,
    group_by_text,
    in_context,
    outcomes_of,
)
from geval_py.reading.items import ScoredItem


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
    item = ScoredItem("", expected, line)
    assert outcomes_of([item]).codes.tolist() == [outcome]
    assert outcomes_of([item]).word_masses.tolist() == [listed or 0.0]
    assert example_of(item).listed == listed


def test_an_example_shows_the_likeliest_words():
    example = example_of(ScoredItem("1901\tin the\tof may", "b", "a:0.1 b:0.2 c:0.05 d:0.1 e:0.1 f:0.1 :0.35"))
    assert example.guesses == (("b", 0.2), ("f", 0.1), ("e", 0.1), ("d", 0.1), ("a", 0.1))
    assert (example.about, example.before, example.after) == (("1901",), "in the", "of may")
    assert (example.listed, example.rest) == (0.2, pytest.approx(0.35))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.data())
def test_bins_hold_whatever_numbers_there_are(values, data):
    """Strangers' numbers, of 1e300 too: all lines are in a bin of their code, and bins are few and in order."""
    codes = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    bins = bins_of(np.array(values), codes)
    for code in (0, 1):
        own = [one for one in bins if one[2] == code]
        assert sum(lines for *_, lines in own) == (codes == code).sum()
        assert len(own) <= 21
        assert all(low < high for low, high, _, _ in own)
        assert all(one[1] <= later[0] for one, later in pairwise(own))


@pytest.mark.parametrize(
    ("values", "bins"),
    [
        # A value at an edge is in the bin above, the last one in the last; rounding, as of 0.15 / 0.05, moves none.
        ([round(n * 0.05, 2) for n in range(21)], [(round(n * 0.05, 2), 1 if n < 19 else 2) for n in range(20)]),
        ([-0.97, 0.03], [(-1.0, 1), (0.0, 1)]),
        ([0.25, 0.25], [(0.25, 2)]),
        ([], []),
    ],
)
def test_bins(values, bins):
    assert [(low, lines) for low, _, _, lines in bins_of(np.array(values))] == bins


def labels(grouping):
    """The labels of the groups that have a line."""
    return [grouping.labels[code] for code in np.unique(grouping.codes)]


@given(st.lists(st.floats(-1e6, 1e6).map(str), min_size=1, max_size=200))
def test_groups_of_numbers_never_part_equal_values(texts):
    grouping = group_by_text(texts)
    if grouping is None:
        assert len(set(map(float, texts))) == 1
        return
    assert grouping.kind == "number"
    assert len(labels(grouping)) <= MAX_GROUPS
    assert len(set(zip(map(float, texts), grouping.codes.tolist(), strict=True))) == len(set(map(float, texts)))


@pytest.mark.parametrize(
    ("texts", "kind", "names"),
    [
        (["1901", "1902"] * 10, "number", ["1901", "1902"]),
        ([str(year) for year in range(1900, 1920)], "number", [f"{y}–{y + 1}" for y in range(1900, 1920, 2)]),
        (["a"] * 12 + ["b"] * 10 + ["c"], "value", ["a", "b", "others"]),
        ([" ".join(["w"] * (4 + n % 3)) + str(n) for n in range(30)], "words", ["4", "5", "6"]),
    ],
)
def test_how_a_column_groups_lines(texts, kind, names):
    grouping = group_by_text(texts)
    assert grouping.kind == kind
    assert labels(grouping) == names


@pytest.mark.parametrize("texts", [["same"] * 30, [f"id-{n}" for n in range(30)]], ids=["constant", "identity"])
def test_what_groups_nothing(texts):
    assert group_by_text(texts) is None


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


ENTRY = st.tuples(st.sampled_from(["", "a", "b", "ą", "a:b"]), st.sampled_from(["0", "0.25", "0.3", "1"])).map(
    ":".join
)
LINES = st.lists(ENTRY, min_size=1, max_size=5).map(" ".join) | st.just("-1.0 -2.0")


@given(st.lists(st.tuples(LINES, st.sampled_from(["a", "b", "ą", "a:b", ""])), max_size=9), st.integers(1, 4))
def test_outcomes_are_those_of_the_guesses(pairs, at_once):
    items = [ScoredItem("", expected, line) for line, expected in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses_module, "ITEMS_AT_ONCE", at_once)
        outcomes = outcomes_of(iter(items))
    examples = [example_of(item) for item in items]
    guesses = [(one.guesses or ((None, 0.0),))[0] for one in examples]
    assert outcomes.confidences.tolist() == pytest.approx([mass for _, mass in guesses], rel=1e-12)
    assert outcomes.word_masses.tolist() == pytest.approx([one.listed or 0.0 for one in examples], rel=1e-12)
    rights = [word == item.expected for (word, _), item in zip(guesses, items, strict=True)]
    assert (outcomes.codes == Outcome.RIGHT).tolist() == rights
    assert (outcomes.codes == Outcome.NO_GUESS).tolist() == [word is None for word, _ in guesses]
