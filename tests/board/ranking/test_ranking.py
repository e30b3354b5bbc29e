"""Leaderboards: one query decides the order, from nothing but what is disclosed."""

import math
import tempfile
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from rows import NOW, START, Rows, others_of

from geval_py.board.database.schema import FAILED, REJECTED, SCORED
from geval_py.board.ranking.leaderboard import standings


def deadline(hours):
    return (START + timedelta(hours=hours)).isoformat()


def test_what_is_withdrawn_is_gone_before_anything_is_disclosed_anew(rows):
    rows.submit("one", 100.0)
    code = rows.submit("two", 1.5)
    rows.refresh()
    rows.withdraw(code)
    assert [entry.submitter for entry in standings(rows.board, now=NOW).entries] == ["one"]


def test_what_has_no_score_stands_last_without_a_place(rows):
    """Not as in codalab/codabench#1284, where NULL came first on PostgreSQL."""
    rows.submit("none", None)
    rows.submit("infinite", math.inf, at=1)
    rows.submit("one", 100.0, at=2)
    assert rows.table() == [(1, "one", 100.0), (2, "infinite", math.inf), (None, "none", None)]


@pytest.mark.parametrize(("entries", "by"), [("best", "submitter"), ("all", "submission")])
def test_board_yaml_says_of_whom_an_entry_is_shown(rows, entries, by):
    rows.edit(entries=entries)
    rows.submit("one", 70.0)
    assert rows.standings().by == by


PHASES = f"[{{name: warm-up, until: {deadline(10)}}}, {{name: main, until: {deadline(20)}}}]"


def test_each_phase_has_a_table_of_its_own_up_to_and_with_its_deadline(rows):
    rows.edit(phases=PHASES)
    for name, score, at in [("one", 100.0, 1), ("two", 200.0, 10), ("three", 80.0, 10.001), ("one", 90.0, 20)]:
        rows.submit(name, score, at=at)
    rows.submit("four", 10.0, at=20.001)
    for phase, ranked in {"warm-up": ["one", "two"], "main": ["three", "one"], "post-deadline": ["four"]}.items():
        assert [name for _, name, _ in rows.table(phase=phase)] == ranked


@pytest.mark.parametrize(("hours", "phase"), [(9, "warm-up"), (10, "warm-up"), (11, "main"), (21, "main")])
def test_the_phase_of_the_moment_is_shown_where_none_is_asked_for(rows, hours, phase):
    rows.edit(phases=PHASES)
    assert rows.standings(now=START + timedelta(hours=hours)).phase == phase


def test_after_the_last_deadline_the_last_phase_is_shown_also_if_something_comes(rows):
    rows.edit(phases=PHASES)
    rows.submit("one", 90.0, at=20)
    late = START + timedelta(hours=21)
    for _ in range(2):
        shown = rows.standings(now=late)
        assert (shown.phase, [entry.submitter for entry in shown.entries]) == ("main", ["one"])
        assert shown.notes == ("this is the final table of main; later submissions are in post-deadline",)
        rows.submit("two", 10.0, at=20.5)
    assert [entry.submitter for entry in rows.standings(phase="post-deadline", now=late).entries] == ["two"]


def test_no_score_place_or_order_is_shown_of_a_test_with_no_digits(rows):
    rows.edit(tests="{test-A: {disclosed: 0}}", phases=PHASES, also="[LogLossHashed]")
    rows.submit("late", {"PerplexityHashed": 50.0, "LogLossHashed": 3.9}, at=2)
    rows.submit("early", 100.0, at=1)
    rows.submit("late", 25.0, at=3)
    shown = rows.standings(now=START + timedelta(hours=4))
    shown_hours = [(entry.submitter, entry.submission.arrived.hour) for entry in shown.entries]
    assert shown_hours == [("early", 13), ("late", 14)]
    for entry in shown.entries:
        figures = entry.place, entry.score, *entry.output.shown[1:], entry.first, entry.last
        assert figures == (None,) * 6
        assert (entry.shared, entry.groups, others_of(entry, "LogLossHashed")) == (False, (), {"LogLossHashed": None})
    assert shown.notes == ()


def test_other_metrics_are_shown_beside_under_their_names(rows):
    rows.edit(also="[LogLossHashed, 'LikelihoodHashed:N<likelihood>']")
    rows.submit("one", {"PerplexityHashed": 100.0, "LogLossHashed": 4.60517, "LikelihoodHashed:N<likelihood>": 0.01})
    rows.submit("two", 200.0)
    shown = rows.standings()
    assert shown.others == ("LogLossHashed", "likelihood")
    one, two = (others_of(entry, *shown.others) for entry in shown.entries)
    assert (one, two) == ({"LogLossHashed": 4.605, "likelihood": 0.01}, {"LogLossHashed": None, "likelihood": None})


@pytest.mark.parametrize(("asked", "message"), [
    ({"test": "test-B"}, "the board has no test `test-B`\n  it has test-A"),
    ({"test": "x\x1b"}, "the board has no test `x\\x1b`\n  it has test-A"),
    ({"phase": "main"}, "the board has no phase `main`\n  it has none"),
], ids=["test", "visible", "phase"])  # fmt: skip
def test_what_the_board_does_not_have_is_an_error(rows, asked, message):
    with refused(message):
        rows.standings(**asked)


SCORES = st.sampled_from([1.5, 1.50001, 1.6, 2.0, 30.0, math.inf, None])
SUBMISSION = st.fixed_dictionaries({
    "name": st.sampled_from("abcd"), "variants": st.lists(SCORES, min_size=1, max_size=2), "at": st.integers(0, 5),
    "baseline": st.booleans(), "withdrawn": st.sampled_from([None, None, START]),
    "state": st.sampled_from([SCORED, SCORED, REJECTED, FAILED]),
})  # fmt: skip
SUBMISSIONS = st.lists(SUBMISSION, max_size=8)


def rounded(score):
    return None if score is None else float(f"{score:.4g}")


def ranked_by_hand(submissions, by):
    """What the query should say: submission numbers, variants, places and whether they are shared, by a plain sort."""
    pool = [
        (of["variants"][n], of["at"], number, n, of)
        for number, of in enumerate(submissions)
        for n in range(len(of["variants"]))
        if of["state"] == SCORED and of["withdrawn"] is None
    ]

    def key(one):
        shown = rounded(one[0])
        return (shown is None, shown or 0.0, *one[1:4])

    best = {}
    for one in sorted(pool, key=key):
        of, number = one[4], one[2]
        whose = (of["name"], number if of["baseline"] else None)
        best.setdefault(whose if by == "submitter" else number, one)
    chosen = sorted({one[2:4]: one for one in best.values()}.values(), key=key)
    ranked = [rounded(one[0]) for one in chosen if not one[4]["baseline"] and one[0] is not None]
    found = []
    for score, _, number, n, of in chosen:
        has_place, figure = not of["baseline"] and score is not None, rounded(score)
        place = ranked.index(figure) + 1 if has_place else None
        found.append((number, n, place, has_place and ranked.count(figure) > 1))
    return found


def check_against_a_plain_sort(folder, submissions, by, **keys):
    rows = Rows(folder, **keys)
    for of in submissions:
        rows.submit(of["name"], *of["variants"], **{k: v for k, v in of.items() if k not in ("name", "variants")})
    shown = [
        (int(entry.code, 16) - 1, int(entry.params.get("k", "0")), entry.place, entry.shared)
        for entry in rows.standings(by=by).entries
    ]
    rows.board.engine.dispose()
    assert shown == ranked_by_hand(submissions, by)


@pytest.mark.slow
@given(submissions=SUBMISSIONS, by=st.sampled_from(["submitter", "submission"]))
@hypothesis_settings(max_examples=examples(60, most=30), deadline=None)
def test_the_order_is_that_of_a_plain_sort(submissions, by):
    with tempfile.TemporaryDirectory() as folder:
        check_against_a_plain_sort(folder, submissions, by)


@pytest.mark.slow
@given(submissions=SUBMISSIONS, by=st.sampled_from(["submitter", "submission"]))
@hypothesis_settings(max_examples=examples(20, most=8), deadline=None)
def test_the_order_is_that_of_a_plain_sort_on_postgresql(submissions, by, postgresql):
    with tempfile.TemporaryDirectory() as folder:
        check_against_a_plain_sort(folder, submissions, by, database=postgresql.new_database())
