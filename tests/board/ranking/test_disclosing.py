"""What may be shown: rounded, of what stands, and no older than the scores and the settings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import NOW, START
from sqlalchemy import event, select

from geval_py.board.database.schema import REJECTED, board, disclosures
from geval_py.board.ranking.leaderboard import standings
from geval_py.tables.numbers import difference, interval, rounded, rounded_outward


def shown(rows):
    return [(row.output_id, row.metric, row.value, row.low, row.high) for row in rows.rows(disclosures)]


def written(rows, action):
    """The rows of disclosures that an action writes or deletes."""
    statements = []

    def note(connection, cursor, statement, parameters, context, many):
        if statement.startswith(("INSERT INTO disclosures", "DELETE FROM disclosures")) and cursor.rowcount:
            statements.append((statement[:6], cursor.rowcount))

    event.listen(rows.board.engine, "after_cursor_execute", note)
    action()
    event.remove(rows.board.engine, "after_cursor_execute", note)
    return statements


@pytest.mark.parametrize(("value", "digits", "figure"), [
    (549.9369, 4, 549.9), (549.9369, 1, 500.0), (0.00181838, 2, 0.0018), (99.96, 3, 100.0), (-0.0, 3, 0.0),
    (1e-320, 2, 1e-320), (math.inf, 4, math.inf), (math.nan, 4, None), (None, 4, None), (549.9, 0, None),
    (math.inf, 0, None),
])  # fmt: skip
def test_scores_are_rounded_to_significant_digits(value, digits, figure):
    assert rounded(value, digits) == figure


@pytest.mark.parametrize(
    ("one", "other", "apart"), [(549.9, 560.0, "10.1"), (99.99, 100.5, "0.5"), (0.0018, 0.003, "0.001200")]
)
def test_a_difference_is_as_exact_as_the_coarser_of_the_two(one, other, apart):
    assert difference(one, other, 4) == apart


def test_the_score_and_the_ends_of_its_interval_are_disclosed(rows):
    rows.submit("one", 123.456)
    rows.submit("two", None)
    rows.refresh()
    assert shown(rows) == [(1, "PerplexityHashed", 123.5, 111.1, 135.9), (2, "PerplexityHashed", None, None, None)]


def test_nothing_is_of_what_does_not_stand(rows):
    rows.submit("one", 123.456, state=REJECTED)
    rows.submit("two", 123.456, withdrawn=START)
    code = rows.submit("three", 123.456)
    rows.refresh()
    assert [output for output, *_ in shown(rows)] == [3]
    rows.withdraw(code)
    rows.refresh()
    assert shown(rows) == []


def test_what_was_scored_again_is_disclosed_anew(rows):
    """Not as in Cloud-CV/EvalAI, PR 2361, where the stale score was shown."""
    code = rows.submit("one", 123.456)
    rows.submit("two", 200.0)
    rows.refresh()
    evaluation = rows.score_again(code, 99.99)
    assert written(rows, rows.refresh) == [("DELETE", 1), ("INSERT", 1)]
    assert rows.table() == [(1, "one", 99.99), (2, "two", 200.0)]
    assert rows.run(select(disclosures.c.evaluation_id).where(disclosures.c.output_id == 1))[0][0] == evaluation


def test_only_what_is_new_is_written(rows):
    rows.submit("one", 123.456)
    rows.refresh()
    rows.submit("two", 200.0)
    assert written(rows, rows.refresh) == [("INSERT", 1)]
    assert written(rows, rows.refresh) == []


@pytest.mark.parametrize(("changed", "is_stale"), [
    ({}, False), ({"title": "Another"}, False), ({"tests": "{test-A: {disclosed: 3}}"}, True),
    ({"tests": "{test-A: {ladder: true}}"}, True), ({"also": "[LogLossHashed]"}, True), ({"seed": "1"}, True),
    ({"entries": "all"}, True), ({"phases": "[{name: main, until: 2030-01-01T00:00:00Z}]"}, True),
], ids=str)  # fmt: skip
def test_a_reader_notices_what_was_edited(rows, changed, is_stale):
    rows.submit("one", 123.456)
    rows.refresh()
    rows.edit(**changed)
    before = rows.rows(board)
    standings(rows.board, now=NOW)
    assert (rows.rows(board) != before) == is_stale


@given(score=st.floats(1e-3, 1e6), low=st.floats(0.5, 1), high=st.floats(1, 2), digits=st.integers(1, 6))
def test_an_interval_contains_its_score_to_all_digits(score, low, high, digits):
    for ends in (digits, max(1, digits - 1)):
        shown = rounded_outward(score * low, score * high, ends)
        assert shown[0] <= rounded(score, digits) <= shown[1]
        low_text, high_text = interval(*shown, ends)
        assert float(low_text) <= rounded(score, digits) <= float(high_text)
