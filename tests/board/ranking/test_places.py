"""Ranges of places and groups are those that Holm's correction gives, and sentences say what would change them."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from profiles import examples
from rows import START, Rows

from geval_py.board.ranking.place_ranges import positions
from geval_py.board.ranking.views import Entry, Figures, OutputView, Standings, SubmissionView
from geval_py.board.site.rendering import what_it_takes
from geval_py.explaining.significance import holm

P_VALUES = st.sampled_from([0.0, 0.001, 0.002, 0.004, 0.005, 0.01, 0.02, 0.04, 0.05, 0.5, 1.0])


@given(
    scores=st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, math.inf]), min_size=1, max_size=7).map(sorted),
    evaluations=st.lists(st.integers(1, 6), min_size=7, max_size=7),
    chance=st.data(),
)
@hypothesis_settings(max_examples=examples(300), deadline=None)
def test_ranges_and_groups_are_those_of_all_pairs_corrected(scores, evaluations, chance):
    """1 + those surely better … all - those surely worse; two share a group if and only if they are not told apart.

    Two shown scores are told apart if all pairs of their entries are.
    """
    ranked = list(zip(scores, evaluations, strict=False))
    known = {pair: chance.draw(P_VALUES) for pair in combinations(sorted(set(evaluations[: len(scores)])), 2)}
    pairs = list(combinations(range(len(ranked)), 2))

    def p_of(a, b):
        pair = tuple(sorted((ranked[a][1], ranked[b][1])))
        return 1.0 if ranked[a][0] == ranked[b][0] else known.get(pair, 1.0)

    corrected = dict(zip(pairs, holm([p_of(*pair) for pair in pairs]), strict=True))
    apart = {(scores[a], scores[b]): True for a, b in pairs}
    for a, b in pairs:
        apart[scores[a], scores[b]] &= corrected[a, b] < 0.05
    rising = sorted(((*pair, p) for pair, p in known.items() if p < 0.05), key=lambda row: row[2])
    found = positions(ranked, iter(rising), of=len(ranked) + 2)
    for n in range(len(ranked)):
        better = sum(apart[scores[m], scores[n]] for m in range(n))
        worse = sum(apart[scores[n], scores[m]] for m in range(n + 1, len(ranked)))
        assert (found[n].first, found[n].last) == (1 + better, len(ranked) + 2 - worse)
    for a, b in pairs:
        assert bool(set(found[a].groups) & set(found[b].groups)) != apart[scores[a], scores[b]]
        if scores[a] == scores[b]:
            assert found[a] == found[b]


def test_of_entries_with_one_shown_score_none_is_told_apart_from_what_another_is_not():
    """Else its range would tell whose exact score is the better one."""
    ranked = [(1.0, 1), (1.0, 2), (2.0, 3), (3.0, 4)]
    p_values = [(1, 3, 0.0), (1, 4, 0.0), (2, 4, 0.0), (3, 4, 0.0)]
    found = positions(ranked, iter(p_values), of=4)
    assert [(at.first, at.last, at.groups) for at in found] == [(1, 3, (0,))] * 3 + [(4, 4, (1,))]


def test_no_more_p_values_are_read_than_can_matter():
    ranked = [(float(n), n) for n in range(4)]
    rest = iter([(0, 1, 0.02), (0, 2, 0.03)])
    assert {(at.first, at.last) for at in positions(ranked, rest, of=4)} == {(1, 4)}
    assert list(rest) == [(0, 2, 0.03)]


def test_equal_shown_scores_are_not_told_apart_whatever_the_exact_ones(tmp_path):
    """The range of places tells nothing that the disclosed digits do not."""
    rows = Rows(tmp_path, tests="{test-A: {disclosed: 1}}", samples="400")
    for name, mean in [("one", 3.0), ("two", 3.1), ("three", 5.0)]:
        rows.submit(name, [mean + 0.01 * random.Random(line).random() for line in range(50)])
    shown = rows.standings().entries
    found = [(entry.score, entry.first, entry.last, entry.groups) for entry in shown]
    assert found == [(20.0, 1, 2, (0,)), (20.0, 1, 2, (0,)), (100.0, 3, 3, (1,))]


def entry(n, score, place, *, groups=(0,), first=None, last=None, baseline=False):
    figures = {"PerplexityHashed": Figures(value=score, low=score, high=score)}
    return Entry(
        submission=SubmissionView(code=f"{n:012x}", submitter=f"s{n}", arrived=START, baseline=baseline),
        output=OutputView(id=n, test="test-A", variant="", params={}, figures=figures, evaluation_id=n),
        place=place, groups=groups, first=first, last=last,
    )  # fmt: skip


def table(*entries, digits=4, direction="lower"):
    return Standings(
        test="test-A", phase="", metric="PerplexityHashed", others=(), unit="words", direction=direction,
        digits=digits, end_digits=digits, by="submitter", entries=entries,
    )  # fmt: skip


TABLE = table(
    entry(1, 549.9, 1, groups=(0,), first=1, last=2), entry(9, 551.0, None, baseline=True, groups=()),
    entry(2, 560.3, 2, groups=(0, 1), first=1, last=4), entry(3, 580.0, 3, groups=(1, 2), first=2, last=4),
    entry(4, 580.0, 3, groups=(1, 2), first=2, last=4), entry(5, 700.1, 5, groups=(2,), first=3, last=5),
    entry(6, math.inf, 6, groups=(3,), first=6, last=6), entry(7, None, None, groups=()),
)  # fmt: skip
MIGHT_BE = "On similar lines, the place might be any from"
NOT_DIFFERENT = "these entries are not significantly different."
SENTENCES = {
    1: (
        "No entry has a better score.", "The entry at place 2 is 10.4 behind.",
        f"{MIGHT_BE} 1 to 2: {NOT_DIFFERENT}",
        "The nearest entry that is significantly worse is at place 3, 30.1 worse.",
    ),
    3: (
        "Another entry has the same shown score, and so the same place.",
        "Place 2 needs a PerplexityHashed below 560.3, 19.7 better than now.",
        "Place 1 needs a PerplexityHashed below 549.9, 30.1 better than now.",
        "The entry at place 5 is 120.1 behind.",
        f"{MIGHT_BE} 2 to 4: {NOT_DIFFERENT}",
        "The nearest entry that is significantly better is at place 1, 30.1 better.",
        "The nearest entry that is significantly worse is at place 6, infinitely worse.",
    ),
    6: (
        "The score is infinite: an expected word has the probability 0.",
        "Place 5 needs a PerplexityHashed below 700.1.", "Place 1 needs a PerplexityHashed below 549.9.",
        "The nearest entry that is significantly better is at place 5, infinitely better.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("number", SENTENCES)
def test_what_it_would_take_to_change_places(number):
    (of,) = (one for one in TABLE.entries if one.output.id == number)
    assert what_it_takes(TABLE, of) == SENTENCES[number]


def test_where_higher_is_better_the_score_must_be_above():
    two = table(entry(1, 0.3, 1), entry(2, 0.2, 2), direction="higher", digits=2)
    (advice,) = what_it_takes(two, two.entries[1])
    assert advice == "Place 1 needs a PerplexityHashed above 0.30, 0.10 better than now."


def test_entries_that_were_not_compared_are_not_surely_worse():
    """Only the first entries are compared with each other; those after them have no groups."""
    compared = (entry(1, 500.0, 1, first=1, last=2), entry(2, 501.0, 2, first=1, last=2))
    some = table(*compared, entry(3, 900.0, 3, groups=()))
    assert what_it_takes(some, some.entries[0])[-1] == f"{MIGHT_BE} 1 to 2: {NOT_DIFFERENT}"
    assert what_it_takes(some, some.entries[2]) == (
        "Place 2 needs a PerplexityHashed below 501.0, 399.0 better than now.",
        "Place 1 needs a PerplexityHashed below 500.0, 400.0 better than now.",
    )
