"""Where the loss comes from: outcomes, parts, bins and the lines to look at."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py import score
from geval_py.explaining import losses as losses_module
from geval_py.explaining.losses import Grouping, Outcome, example_of, group_by_text, group_q_values, outcomes_of
from geval_py.reading.items import ScoredItem


@pytest.mark.parametrize(("line", "expected", "outcome", "listed"), [
    ("the:0.5 a:0.25 :0.25", "the", Outcome.RIGHT, 0.5), ("the:0.5 a:0.25 :0.25", "a", Outcome.LISTED, 0.25),
    ("the:0.5 a:0.25 :0.25", "of", Outcome.MISSED, None), ("the:0 a:0.5 :0.5", "the", Outcome.LISTED, 0.0),
    ("a:0.5 the:0.5", "the", Outcome.RIGHT, 0.5),  # of equal ones the greatest in code point order, as Accuracy
    (":1", "the", Outcome.NO_GUESS, None), ("-1.0 -2.0 -0.5 -3.0", "the", Outcome.NO_GUESS, None),  # a vector
])  # fmt: skip
def test_what_became_of_a_line(line, expected, outcome, listed):
    item = ScoredItem("", expected, line)
    assert outcomes_of([item]).codes.tolist() == [outcome]
    assert outcomes_of([item]).word_masses.tolist() == [listed or 0.0]
    assert example_of(item).listed == listed


def labels(grouping):
    return [grouping.labels[code] for code in np.unique(grouping.codes)]


@given(st.lists(st.floats(-1e6, 1e6).map(str), min_size=1, max_size=200))
def test_groups_of_numbers_never_part_equal_values(texts):
    grouping = group_by_text(texts)
    if grouping is None:
        assert len(set(map(float, texts))) == 1
        return
    assert grouping.kind == "number"
    assert len(labels(grouping)) <= losses_module.MAX_GROUPS
    assert len(set(zip(map(float, texts), grouping.codes.tolist(), strict=True))) == len(set(map(float, texts)))


@pytest.mark.parametrize(("texts", "kind", "names"), [
    (["1901", "1902"] * 10, "number", ["1901", "1902"]),
    ([str(year) for year in range(1900, 1920)], "number", [f"{y}–{y + 1}" for y in range(1900, 1920, 2)]),
    (["a"] * 12 + ["b"] * 10 + ["c"], "value", ["a", "b", "others"]),
    ([" ".join(["w"] * (4 + n % 3)) + str(n) for n in range(30)], "words", ["4", "5", "6"]),
])  # fmt: skip
def test_how_a_column_groups_lines(texts, kind, names):
    grouping = group_by_text(texts)
    assert grouping.kind == kind
    assert labels(grouping) == names


@pytest.mark.parametrize("texts", [["same"] * 30, [f"id-{n}" for n in range(30)]], ids=["constant", "identity"])
def test_what_groups_nothing(texts):
    assert group_by_text(texts) is None


MASS = st.sampled_from(["0", "0.25", "0.3", "1"])
ENTRY = st.tuples(st.sampled_from(["", "a", "b", "ą", "a:b"]), MASS).map(":".join)
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


def lines(rests):
    """An output in which every third guess is wrong, with what each line leaves to the rest; and the answers."""
    return [f"a:{1 - rest} :{rest!r}" for rest in rests], ["b" if n % 3 == 1 else "a" for n in range(len(rests))]


def bounds(rests):
    return losses_module.unbounded_loss(score(*lines(rests), metric="PerplexityHashed"))


def test_a_line_that_leaves_nearly_nothing():
    bound, greatest = bounds([0.3, 0.2] * 30 + [1e-300])
    assert bound == pytest.approx(math.log(1e300) + math.log(1024))
    assert greatest == pytest.approx(-math.log(0.2 / 1024), abs=0.01)
    assert bounds([0.3, 0.2] * 30 + [0.0])[0] == math.inf
    assert bounds([0.0] + [0.3] * 19) is not None


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_where_no_line_is_said_to_be_unbounded():
    """A rest bounds the loss, lines are few, an infinite loss says it already, and other metrics have no bound."""
    assert [bounds(rests) for rests in ([0.1, 0.3, 0.2] * 20, [0.4, 0.3, 0.2] * 20, [0.0] + [0.3] * 18)] == [None] * 3
    assert losses_module.unbounded_loss(score(["a:1"] * 20, ["a", "b"] * 10, metric="PerplexityHashed")) is None
    assert losses_module.unbounded_loss(score(["a", "b"], ["a", "a"], metric="Accuracy")) is None


def test_it_is_said_beside_intervals(tmp_path, geval, monkeypatch):
    for name, texts in zip(("out", "expected"), lines([0.3, 0.2] * 30 + [1e-300]), strict=True):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{text}\n" for text in texts))
    monkeypatch.chdir(tmp_path)
    status, _, said = geval("-o", "out.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed", "--bootstrap", "50")
    assert (status, said) == (
        0, "geval: note: the loss of a line of `out.tsv` can be up to 698 nats; the greatest so far is 8.5 nats\n"
        "  one such line would move the score far beyond its interval: give more probability to the rest\n"
        "geval: note: there is no input `in.tsv`: each line counts as a document of its own\n",
    )  # fmt: skip
    (tmp_path / "other.tsv").write_text("a:0.6 b:0.4\n" * 61)
    _, _, said = geval("compare", "out.tsv", "other.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed")
    assert "geval: note: the loss of a line of `other.tsv` can be infinite; the greatest so far is 0.9 nats\n" in said


TRIALS = 2000
SETTINGS = {  # lines, groups, documents, whether a document's lines are all of one group
    "few lines": (60, 4, None, False), "lines": (1000, 10, None, False), "documents": (800, 6, 36, False),
    "documents of one group": (800, 6, 36, True),
}  # fmt: skip


def values_and_groups(rng, lines, groups, documents, one_group):
    """Skewed values, alike in a document, and groups of which the first is small."""
    shares = np.array([0.05, *[0.95 / (groups - 1)] * (groups - 1)])
    if documents is None:
        return rng.lognormal(0, 1.5, lines), rng.choice(groups, lines, p=shares), None
    sizes = rng.lognormal(0, 0.7, documents)
    of_line = rng.choice(documents, lines, p=sizes / sizes.sum())
    values = rng.gamma(1, 2, lines) + np.exp(rng.normal(0, 0.7, documents))[of_line]
    codes = rng.choice(groups, documents, p=shares)[of_line] if one_group else rng.choice(groups, lines, p=shares)
    return values, codes, of_line


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_groups_that_do_not_differ(setting):
    rng, groups = np.random.default_rng(1), setting[1]
    false = 0
    for _ in range(TRIALS):
        values, codes, documents = values_and_groups(rng, *setting)
        q_values = group_q_values(values, Grouping("value", codes, tuple(map(str, range(groups)))), documents)
        false += np.nanmin(q_values) < 0.05
    assert false / TRIALS < 0.05 + 3 * (0.05 * 0.95 / TRIALS) ** 0.5


def test_the_worst_and_the_best_lines_are_chosen():
    assert losses_module.worst_and_best(np.arange(1000.0)).tolist() == [*range(999, 699, -1), *range(99, -1, -1)]


def test_groups_without_values():
    grouping = Grouping("value", np.array([0, 0, 1]), ("a", "b", "c"))
    assert np.isnan(group_q_values(np.full(3, np.nan), grouping)).all()
    assert np.isnan(group_q_values(np.ones(3), grouping)).all()
    infinite = group_q_values(np.array([1.0, 2.0, np.inf]), grouping)
    assert np.isnan(infinite).tolist() == [False, False, True]
