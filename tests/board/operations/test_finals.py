"""Final submissions: a submitter names some, and by the private part these alone are ranked."""

from datetime import timedelta

import pytest
from raising import refused
from rows import START, losses_by_part, rows_in_parts
from samples import change
from sqlalchemy import update

from geval_py.board.database.schema import REJECTED, submissions
from geval_py.board.operations.receipts import UnknownCodeError
from geval_py.board.operations.submissions import name_final

PHASES = "[{name: dev, until: 2027-01-02T12:00:00Z}, {name: last, until: 2027-01-03T12:00:00Z}]"
OPEN = START.replace(day=3)
OVER = OPEN + timedelta(seconds=1)


@pytest.fixture
def rows(tmp_path, database):
    return rows_in_parts(tmp_path, phases=PHASES, finals="2", database=database)


@pytest.fixture
def four(rows):
    """Four submissions of Ann, ever better on the public part, ever worse on the private one; one of Bob's."""
    codes = [rows.submit("ann", losses_by_part(5 - number, 2 + number), at=30 + number) for number in range(4)]
    rows.submit("bob", losses_by_part(4.5, 4.2), at=40)
    return codes


def final(rows, *codes, now=OPEN, undo=False):
    def named(connection):
        return [name_final(connection, rows.board.settings, code, now, undo=undo) for code in codes]

    return change(rows.board, named, moment=now)


def ranked(rows, now=OVER):
    """The places, submitters and codes of all submissions of the last phase that are ranked."""
    entries = rows.standings(phase="last", by="submission", now=now).entries
    return [(entry.place, entry.submitter, entry.code) for entry in entries]


def test_the_named_submissions_decide(rows, four):
    receipts = [(receipt.code, receipt.note) for receipt in final(rows, four[0], four[3])]
    assert receipts == [(four[0], "a final submission"), (four[3], "a final submission")]
    assert [code for _, name, code in ranked(rows) if name == "ann"] == [four[0], four[3]]
    assert rows.table(now=OVER) == [(1, "ann", 7.39), (2, "bob", 66.7)]
    assert "only final submissions are ranked, at most 2 of a submitter" in rows.standings(now=OVER).notes


def test_without_any_named_the_best_by_the_public_part_decide(rows, four):
    assert [code for _, name, code in ranked(rows) if name == "ann"] == [four[2], four[3]]


def test_of_equal_ones_the_earlier_decide(rows):
    codes = [rows.submit("ann", losses_by_part(3, 3 - number), at=30 + number) for number in range(3)]
    assert {code for _, _, code in ranked(rows)} == set(codes[:2])


def test_a_withdrawn_one_does_not_count(rows, four):
    final(rows, four[0], four[1])
    rows.withdraw(four[0])
    final(rows, four[2])
    assert [code for _, name, code in ranked(rows) if name == "ann"] == [four[1], four[2]]


def test_without_finals_all_decide(rows, four):
    rows.edit(finals="0")
    assert len(ranked(rows)) == 5
    with refused("this board has no final submissions\n  to allow two, write `finals: 2` into board.yaml"):
        final(rows, four[0])


def test_too_many_are_refused_and_none_of_them_is_named(rows, four):
    final(rows, four[0])
    too_many = f"ann may name 2 final submissions for test-A: {', '.join(four[:3])} are 3"
    with refused(f"{too_many}\n  take one back first"):
        final(rows, four[1], four[2])
    assert [row.code for row in rows.rows(submissions) if row.final] == [four[0]]
    final(rows, four[0], four[1])  # one that is named counts once


def test_if_board_yaml_allows_fewer_the_first_ones_count(rows, four):
    final(rows, four[3], now=OPEN - timedelta(hours=1))
    final(rows, four[0])
    final(rows, four[3])  # its first moment counts
    rows.edit(finals="1")
    assert [code for _, name, code in ranked(rows) if name == "ann"] == [four[3]]


def test_what_cannot_be_final(rows, four):
    early = rows.submit("ann", losses_by_part(1, 1), at=0)
    base = rows.submit("base", losses_by_part(6, 6), at=30, baseline=True)
    without = rows.submit("ann", losses_by_part(1, 1), at=30, test="dev-0")
    gone, bad = rows.submit("ann", losses_by_part(1, 1), at=30), rows.submit("ann", losses_by_part(1, 1), at=30)
    rows.withdraw(gone)
    rows.run(update(submissions).where(submissions.c.code == bad).values(state=REJECTED))
    no_output = "cannot be final: it has no output for test-A in its last phase"
    messages = dict.fromkeys((early, without), no_output) | {
        code: f"is {state}: only a scored submission can be final"
        for code, state in ((base, "a baseline"), (gone, "withdrawn"), (bad, "rejected"))
    }
    for code, message in messages.items():
        with refused(f"{code} {message}"):
            final(rows, code)
    with pytest.raises(UnknownCodeError):
        final(rows, "ffffffffffff")


@pytest.mark.parametrize("undo", [False, True])
def test_after_the_deadline_they_stay_as_they_are(rows, four, undo):
    final(rows, four[0])
    with refused("the deadline of test-A has passed, at 2027-01-03T12:00:00Z: final submissions cannot be changed"):
        final(rows, four[0], now=OVER, undo=undo)
