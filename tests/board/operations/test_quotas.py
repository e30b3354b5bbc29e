"""The cost of a submission, the number of its variants, and the quotas and test sets of phases."""

from datetime import UTC, datetime, timedelta

import pytest
from raising import refused
from samples import NOW, ON_BOTH, count, rows_of, with_settings
from sqlalchemy import select

from geval_py.board.database.schema import files, outputs, submissions
from geval_py.board.operations.receipts import QuotaError
from geval_py.board.operations.rescoring import rescore
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.board.settings import Phase
from geval_py.cli.board.boards import receipt_text

DEADLINE = NOW - timedelta(hours=1)
FAR = datetime(2030, 1, 1, tzinfo=UTC)


def sets_with_outputs(board):
    return sorted(set(rows_of(board, select(outputs.c.test))))


@ON_BOTH
def test_each_output_for_hidden_answers_counts(board, submission):
    board = with_settings(board, submissions_a_day=4)
    source = submission("Ann", tests=("test-A", "dev-0"), variants=("k=1", "k=2", "k=3"))
    receipt = add(board, str(source), now=NOW)
    assert (receipt.cost, receipt.charge) == (3, "it was scored, with 3 outputs for test-A")
    assert "  quota       counts as 3: it was scored, with 3 outputs for test-A\n" in receipt_text(receipt)
    assert receipt.document()["cost"] == 3
    assert [(line["day"], line["cost"]) for line in status_of(board, NOW).submissions] == [("2027-01-10", 3)]
    message = (
        "The quota is used up: Ann sent 3 of 4 submissions on 2027-01-10 (UTC), and this one counts as 2, its number "
        "of outputs for test-A\n  the next day begins at 2027-01-11T00:00:00Z; nothing was scored"
    )
    with refused(message, QuotaError):
        add(board, str(submission("Ann", seed=9, variants=("a", "b"), folder="later")), now=NOW)
    assert add(board, str(submission("Ann", seed=8, folder="last")), now=NOW).cost == 1


def test_one_that_costs_more_than_a_day_allows_says_what_to_do(sqlite_board, submission):
    board = with_settings(sqlite_board, submissions_a_day=2)
    hint = "send at most 2 outputs for a test set with hidden answers; nothing was scored"
    with refused(f"The quota is 2 submissions a day: 3 outputs for test-A count as 3\n  {hint}", QuotaError):
        add(board, str(submission("Ann", variants=("a", "b", "c"))), now=NOW)
    assert count(board, submissions) == 0


def test_too_many_variants_are_rejected_before_anything_is_scored(sqlite_board, submission):
    source = submission("Ann", tests=("test-A", "dev-0"), variants=[f"k={number}" for number in range(6)])
    receipt = add(sqlite_board, str(source), now=NOW)
    assert (receipt.state, receipt.cost) == ("rejected", 0)
    assert receipt.reason == "it has 6 outputs for dev-0; at most 5 are allowed"
    board = with_settings(sqlite_board, variants=6)
    again = add(board, str(source), now=NOW)
    assert (again.code, again.state, again.cost) == (receipt.code, "scored", 6)


def in_two_phases(board):
    dev = Phase(name="dev", until=DEADLINE, tests=("dev-0",), submissions_a_day=2, variants=6)
    return with_settings(board, submissions_a_day=1, phases=(dev, Phase(name="final", until=FAR, tests=("test-A",))))


def test_outputs_that_the_phase_does_not_rank_are_stored_and_not_scored(board, submission):
    board = in_two_phases(board)
    both = str(submission("Ann", tests=("dev-0", "test-A")))
    early = add(board, both, at=DEADLINE - timedelta(minutes=5), now=NOW)
    assert (early.state, sets_with_outputs(board), count(board, files)) == ("scored", ["dev-0"], 2)
    late = add(board, both, now=NOW)
    assert (late.state, sets_with_outputs(board)) == ("scored", ["dev-0", "test-A"])
    note = "the same was sent in another phase; it is entered in phase final"
    assert (late.code != early.code, early.note, late.note) == (True, "", note)
    again = add(board, both, now=NOW)
    assert (again.code, again.note) == (
        late.code,
        f"this is the submission {late.code} of 2027-01-10T12:00:00Z again",
    )
    status = status_of(board, NOW)
    assert (status.without_output, status.outdated) == ({}, {})
    assert rescore(board, now=NOW).outdated == ()
    only_dev = add(board, str(submission("Bob", tests=("dev-0",))), now=NOW)
    assert (only_dev.state, only_dev.reason[:43]) == ("rejected", "it has no output: test-A/out.tsv, or varian")


def test_who_is_late_is_told(sqlite_board, submission):
    board = with_settings(sqlite_board, phases=(Phase(name="main", until=DEADLINE),))
    assert add(board, str(submission("Ann")), at=DEADLINE, now=NOW).note == ""
    late = add(board, str(submission("Ann", seed=1, folder="late")), now=NOW)
    assert late.note == "the last deadline has passed: it is ranked in a table of its own"


def test_each_phase_has_its_quota_and_its_variants(board, submission):
    board, early = in_two_phases(board), DEADLINE - timedelta(minutes=5)
    many = [f"k={number}" for number in range(6)]
    receipt = add(board, str(submission("Ann", tests=("dev-0",), variants=many)), at=early, now=NOW)
    assert (receipt.state, receipt.cost) == ("scored", 1)
    second = submission("Ann", tests=("dev-0",), seed=1, folder="second")
    assert add(board, str(second), at=early, now=NOW).state == "scored"
    with pytest.raises(QuotaError) as caught:
        add(board, str(submission("Ann", tests=("dev-0",), seed=2, folder="third")), at=early, now=NOW)
    assert "Ann sent 2 of 2 submissions on 2027-01-10" in str(caught.value)
    assert add(board, str(submission("Ann", seed=3, folder="fourth")), now=NOW).state == "scored"
    with pytest.raises(QuotaError) as caught:
        add(board, str(submission("Ann", seed=4, folder="fifth")), now=NOW)
    assert "Ann sent 1 of 1 submission on 2027-01-10" in str(caught.value)
