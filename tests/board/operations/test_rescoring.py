"""``geval board rescore``: what is out of date, whose place changes, and what becomes of what was."""

from datetime import timedelta

import pytest
from samples import (
    NOW,
    ON_BOTH,
    WORDS,
    count,
    output,
    rows_of,
    with_settings,
    words_of,
    write,
    write_answers,
    write_set,
)
from sqlalchemy import select

from geval_py.board import site
from geval_py.board.database.schema import FAILED, REJECTED, evaluations, outputs, scores, submissions
from geval_py.board.operations.rescoring import PlaceChange, rescore
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.board.ranking.leaderboard import standings
from geval_py.board.server import queue
from geval_py.board.server.worker import Worker
from geval_py.board.settings import Test
from geval_py.version import __version__

LATER = NOW + timedelta(days=1)
CHANGED = "the challenge, its answers or the seed changed"


def places(board):
    return [(entry.place, entry.submitter, entry.score) for entry in standings(board, now=LATER).entries]


@pytest.fixture
def ranked(board, submission):
    """A board with two submissions, the first of which is the better one not in the first half of the lines."""
    for name, skill in (("ann", 0.5), ("bob", 0.4)):
        add(board, str(submission(name, skill)), now=NOW)
    return board


def changed_answers():
    return [WORDS[(WORDS.index(word) + 1) % len(WORDS)] for word in words_of("test-A")]


def try_again(board):
    with board.writing() as connection:
        assert queue.try_again(connection, LATER, submissions.c.state.in_((REJECTED, FAILED))) == 2
    Worker(board.folder, clock=lambda: LATER).run(until_idle=True)
    assert status_of(board, NOW).states == {"scored": 2, "rejected": 0, "failed": 0, "withdrawn": 0}


@ON_BOTH
def test_new_answers_change_places_of_which_a_dry_run_tells(ranked, tmp_path, submission, sandbox_jobs):
    folder = submission("eve", 0.1)
    pairs = zip(changed_answers(), words_of("test-A"), strict=True)
    write(folder / "test-A" / "out.tsv", "".join(f"{new}:0.6 {old}:0.05 :0.35\n" for new, old in pairs))
    add(ranked, str(folder), now=NOW)
    assert [entry[1] for entry in places(ranked)] == ["ann", "bob", "eve"]
    write_answers(tmp_path / "answers", changed_answers())
    add(ranked, str(submission("late", 0.2)), now=NOW)
    before = places(ranked)
    dry = rescore(ranked, now=LATER, dry_run=True)
    moved = [("eve", 3, 1), ("ann", 1, 2), ("late", 4, 2)]  # Ann is beside Bob: both are worse than knowing nothing
    assert set(dry.changes) == {PlaceChange("test-A", "", name, "", *ranks) for name, *ranks in moved}
    assert (places(ranked), status_of(ranked, NOW).outdated) == (before, {CHANGED: 6})
    sandbox_jobs.scored.clear()
    assert rescore(ranked, now=LATER) == dry
    assert sandbox_jobs.scored == []  # what the dry run scored is not scored again
    assert [entry[1] for entry in places(ranked)] == ["eve", "ann", "bob", "late"]
    assert status_of(ranked, NOW).outdated == {}
    corrected = rows_of(ranked, select(submissions.c.name, submissions.c.corrected))
    assert dict(map(tuple, corrected)) == {"ann": LATER, "bob": LATER, "eve": LATER, "late": None}


def test_a_new_metric(ranked):
    board = with_settings(ranked, also=(*ranked.settings.also, "LogLossHashed"))
    assert status_of(board, NOW).outdated == {"it was not scored by this metric": 2}
    rescore(board, now=LATER)
    for entry in standings(board, now=NOW).entries:
        assert entry.output.figures.keys() == {"PerplexityHashed", "LikelihoodHashed", "LogLossHashed"}


def test_a_metric_that_was_shown_and_ranks_now_is_scored_with_its_losses(ranked):
    board = with_settings(ranked, metric="LikelihoodHashed", also=())
    rescore(board, now=LATER)
    query = select(evaluations.c.losses).join(scores).where(scores.c.metric == "LikelihoodHashed")
    assert all(rows_of(board, query))
    assert [entry.first for entry in standings(board, now=NOW).entries] == [1, 2]


def test_another_seed(ranked):
    board = with_settings(ranked, seed=7)
    assert status_of(board, NOW).outdated == {CHANGED: 2}  # the metrics that are only shown have no interval
    assert rescore(board, now=LATER).changes == ()


def test_another_version(ranked, monkeypatch):
    old = "0.0.1"
    with ranked.writing() as connection:
        connection.execute(evaluations.update().values(version=old))
    assert status_of(ranked, NOW).outdated == {f"geval-py {old} became {__version__}": 4}
    rescore(ranked, now=LATER)
    assert (count(ranked, evaluations), status_of(ranked, NOW).outdated) == (8, {})


@pytest.mark.slow
def test_what_is_rejected_now_has_no_score_left(ranked, tmp_path):
    words = words_of("test-A")
    write_answers(tmp_path / "answers", words[:-1])
    rescored = rescore(ranked, now=LATER)
    reason = "`test-A/out.tsv`: the output has 60 lines for 59 items; the number of lines is that of dev-0: is this its output? [E104]"
    assert [(receipt.state, receipt.reason) for receipt in rescored.receipts] == [("rejected", reason)] * 2
    assert (places(ranked), count(ranked, scores)) == ([], 0)
    assert rescore(ranked, now=LATER).outdated == ()
    write_answers(tmp_path / "answers", words)
    assert rescore(ranked, now=LATER).outdated == ()
    try_again(ranked)
    assert [entry[1] for entry in places(ranked)] == ["ann", "bob"]


def test_an_output_stays_one_of_the_test_that_it_was_taken_for(sqlite_board, tmp_path, submission):
    """Where there is one test its output may lie at the top; with a second test the same name would be of none."""
    first, second = (sqlite_board.settings.test(name) for name in ("test-A", "dev-0"))
    board = with_settings(sqlite_board, tests=(first,))
    write(tmp_path / "uploads" / "bob" / "out.tsv", output("test-A", 0.4))
    add(board, str(tmp_path / "uploads" / "bob"), now=NOW)
    ((_, _, before),) = places(board)
    write_answers(tmp_path / "answers", changed_answers())
    board = with_settings(board, tests=(first, second))
    rescore(board, now=LATER)
    ((_, _, after),) = places(board)
    assert (after != before, status_of(board, NOW).outdated) == (True, {})
    assert rescore(board, now=LATER).outdated == ()


def test_what_cannot_be_scored_again_has_failed_and_no_old_score_stands(ranked, tmp_path, sandbox_jobs):
    write_answers(tmp_path / "answers", changed_answers())
    sandbox_jobs.unscored |= {"ann", "bob"}
    rescored = rescore(ranked, now=LATER)
    sandbox_jobs.unscored.clear()
    reason = "it took more than 600 seconds"
    assert [(receipt.state, receipt.reason) for receipt in rescored.receipts] == [("failed", reason)] * 2
    assert (places(ranked), count(ranked, scores)) == ([], 0)
    assert rescore(ranked, now=LATER).outdated == ()
    try_again(ranked)


def test_answers_that_change_during_a_run_are_those_that_count(ranked, tmp_path):
    before = places(ranked)
    write_answers(tmp_path / "answers", changed_answers())
    rescore(ranked, now=LATER, progress=lambda *_: write_answers(tmp_path / "answers", words_of("test-A")))
    assert (places(ranked), status_of(ranked, NOW).outdated) == (before, {})


LATER_TEST, LEFT_OUT = "test-B", "its outputs for test-B are left out: "


@pytest.fixture
def with_later_test(board, challenge):
    """A board whose challenge has the input of a set that is not scored yet."""
    write_set(challenge, LATER_TEST, answers=challenge.parent / "later")
    return board


def name_it(board, tmp_path):
    write_set(tmp_path / "challenge", LATER_TEST, answers=tmp_path / "answers")
    return with_settings(board, tests=(*board.settings.tests, Test(name=LATER_TEST)))


@pytest.mark.slow
def test_outputs_of_a_test_that_comes_later_are_kept_and_scored(with_later_test, submission, tmp_path):
    both, codes = ("test-A", LATER_TEST), []
    for name, skill, tests in (("ann", 0.5, both), ("bob", 0.4, both), ("eve", 0.3, ("test-A",))):
        codes.append(add(with_later_test, str(submission(name, skill, tests=tests)), now=NOW).code)
    assert status_of(with_later_test, NOW).without_output == {"dev-0": codes}
    assert rescore(with_later_test, now=NOW).outdated == ()
    board = name_it(with_later_test, tmp_path)
    status = status_of(board, NOW)
    assert status.outdated == {"it came before this test was scored": 4}
    assert status.without_output == {"dev-0": codes, LATER_TEST: codes[2:]}
    assert rescore(board, now=LATER, dry_run=True).outdated
    assert count(board, outputs) == 3
    changes = {(one.test, one.submitter, one.before, one.after) for one in rescore(board, now=LATER).changes}
    assert changes == {(LATER_TEST, "ann", None, 1), (LATER_TEST, "bob", None, 2)}
    assert [entry.submitter for entry in standings(board, LATER_TEST, now=LATER).entries] == ["ann", "bob"]
    assert status_of(board, LATER).outdated == {}
    assert rescore(board, now=LATER).outdated == ()
    assert add(board, str(tmp_path / "uploads" / "ann"), now=LATER).code == codes[0]


def kept(board, table):
    return rows_of(board, select(table).order_by(*table.primary_key))


@pytest.mark.parametrize("fails", [False, True])
def test_of_two_runs_at_once_the_slower_one_changes_nothing(ranked, tmp_path, sandbox_jobs, fails):
    write_answers(tmp_path / "answers", changed_answers())
    sandbox_jobs.unscored |= {"ann", "bob"} if fails else set()
    before = []

    def meanwhile(done, total):
        if done == total:
            sandbox_jobs.unscored.clear()
            rescore(ranked, now=LATER)
            before.extend(kept(ranked, table) for table in (scores, submissions, outputs))

    assert rescore(ranked, now=LATER, progress=meanwhile).receipts == ()
    assert [kept(ranked, table) for table in (scores, submissions, outputs)] == before
    assert status_of(ranked, NOW).states["scored"] == 2


@pytest.mark.slow
def test_a_malformed_output_of_a_test_that_comes_later_is_left_out(with_later_test, submission, tmp_path):
    """It takes no place away that was won on the first one, and is not looked into again and again."""
    source = submission("ann", tests=("test-A", LATER_TEST))
    write(source / LATER_TEST / "out.tsv", "word1:0,5\n" * 60)
    code = add(with_later_test, str(source), now=NOW).code
    add(with_later_test, str(submission("bob", 0.4, tests=("test-A", LATER_TEST))), now=NOW)
    board = name_it(with_later_test, tmp_path)
    before, old_scores = places(board), kept(board, scores)
    (receipt,) = rescore(board, now=LATER).receipts
    reason = "`test-B/out.tsv`: what follows the last colon is not a number [E114]"
    assert (receipt.code, receipt.state, receipt.reason) == (code, "scored", LEFT_OUT + reason)
    assert places(board) == before
    assert before[0][:2] == (1, "ann")
    assert set(old_scores) < set(kept(board, scores))
    assert [entry.submitter for entry in standings(board, LATER_TEST, now=LATER).entries] == ["bob"]
    status = status_of(board, LATER)
    assert [line["reason"] for line in status.submissions if line["submitter"] == "ann"] == [receipt.reason]
    assert (status.outdated, status.without_output[LATER_TEST]) == ({}, [code])
    again = rescore(board, now=LATER)
    assert (again.outdated, again.receipts) == ((), ())
    assert add(board, str(source), now=LATER).code == code
    site.build(board, str(tmp_path / "site"), now=LATER)
    page = (tmp_path / f"site/submissions/{code}.html").read_text(encoding="utf-8")
    assert ("Some outputs are not scored." in page, "E114" in page) == (True, True)


def test_two_outputs_of_one_variant_of_a_test_that_comes_later(with_later_test, submission, tmp_path):
    """They reject nothing as long as it is not scored, and then are left out."""
    source = submission("ann", tests=("test-A", LATER_TEST))
    write(source / LATER_TEST / "out.tsv.gz", "")
    code, before = add(with_later_test, str(source), now=NOW).code, places(with_later_test)
    board = name_it(with_later_test, tmp_path)
    (receipt,) = rescore(board, now=LATER).receipts
    reason = "`test-B/out.tsv` and `test-B/out.tsv.gz` are the same variant; only one is allowed"
    assert (receipt.code, receipt.state, receipt.reason) == (code, "scored", LEFT_OUT + reason)
    assert (places(board), status_of(board, LATER).outdated) == (before, {})
