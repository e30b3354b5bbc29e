"""``geval board add``: what is stored of a submission; what is rejected, failed, refused; and what is the same."""

import hashlib
import shutil
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from raising import refused
from samples import NOW, ON_BOTH, change, count, files_in, rows_of, with_settings
from sqlalchemy import select

from geval_py.board import site
from geval_py.board.backups import back_up
from geval_py.board.database import store as blobs
from geval_py.board.database.schema import blobs as stored_blobs
from geval_py.board.database.schema import comparisons, disclosures, evaluations, files, outputs, scores, submissions
from geval_py.board.intake.identity import unopened_digest
from geval_py.board.operations import submissions as moderating
from geval_py.board.operations.receipts import QuotaError, UnknownCodeError
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.board.ranking import disclosure
from geval_py.board.ranking.leaderboard import standings
from geval_py.errors import MissingFileError, RejectedError
from geval_py.version import __version__

GONITO = """\
description: A bigram model
tags: [bigram, neural]
links: [{title: code, url: "https://example.org/code"}]
"""


def stored(board):
    return rows_of(board, select(submissions).order_by(submissions.c.id))


def test_an_added_submission_does_not_compare_all_pairs(sqlite_board, submission, monkeypatch):
    """Where many comparisons are missing, the next reader makes them."""
    board = with_settings(sqlite_board, seed=7)
    monkeypatch.setattr(disclosure, "MAX_PAIRS", 0)
    for number, name in enumerate(("Ann", "Bob", "Cid")):
        add(board, str(submission(name, 0.2 + 0.2 * number)), now=NOW)
        assert count(board, comparisons) == 0
    assert [entry.place for entry in standings(board, now=NOW).entries] == [1, 2, 3]
    assert count(board, comparisons) == 3


@ON_BOTH
def test_all_of_a_submission_is_stored(board, submission):
    source = submission("Ann", tests=("test-A", "dev-0"), variants=("k=1", "k=2"), gonito=GONITO)
    receipt = add(board, str(source), now=NOW)
    (row,) = stored(board)
    assert (row.code, row.state, row.reason, row.scorer) == (receipt.code, "scored", "", __version__)
    assert (row.description, row.tags, row.arrived, row.added) == ("A bigram model", ["bigram", "neural"], NOW, NOW)
    assert (row.cost, row.charge) == (2, "it was scored, with 2 outputs for test-A")
    assert [count(board, table) for table in (files, outputs, scores, evaluations)] == [5, 4, 8, 8]
    ranking = evaluations.c.metric == "PerplexityHashed"
    kept = rows_of(board, select(evaluations.c.losses, evaluations.c.low).where(ranking))
    assert [bool(losses and low) for losses, low in kept] == [True] * 4
    assert set(rows_of(board, select(evaluations.c.losses).where(~ranking))) == {None}


@ON_BOTH
def test_what_no_database_holds_is_stored_escaped(board, submission):
    gonito = 'description: "a\\0b"\ntags: ["\\0"]\nparams: {"\\0": "\\0"}\n'
    add(board, str(submission("Ann", gonito=gonito)), now=NOW)
    (row,) = stored(board)
    assert (row.description, row.tags, row.params) == (r"a\x00b", [r"\x00"], {r"\x00": r"\x00"})
    folder = submission("x").rename(submission("y").parent / "\udc80")
    assert add(board, str(folder), now=NOW).submitter == "\\udc80"


@ON_BOTH
def test_files_come_back_byte_for_byte(board, submission, tmp_path, monkeypatch):
    monkeypatch.setattr(blobs, "PART_BYTES", 100)
    source = submission("Ann")
    receipt = add(board, str(source), now=NOW)
    ((name, digest),) = receipt.files.items()
    original = (source / "test-A" / "out.tsv").read_bytes()
    assert (name, digest) == ("test-A/out.tsv", hashlib.sha256(original).hexdigest())
    assert count(board, stored_blobs) > 1
    with board.reading() as connection:
        blobs.write_content(connection, digest, str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == original


def test_a_code_is_made_of_the_submitter_the_digest_and_the_arrival(sqlite_board, submission):
    receipt = add(sqlite_board, str(submission("Ann")), at=datetime(2027, 1, 9, tzinfo=UTC), now=NOW)
    known_by = f"ann\n{receipt.digest}\n2027-01-09T00:00:00.000000+00:00"
    assert receipt.code == hashlib.sha256(known_by.encode()).hexdigest()[:12]


def test_a_malformed_one_is_rejected_and_kept_with_its_problems(board, submission):
    source = submission("Ann", lines=3)
    receipt = add(board, str(source), now=NOW)
    reason = "`test-A/out.tsv`: the output has 3 lines for 60 items [E103]"
    assert (receipt.state, receipt.reason, receipt.cost) == ("rejected", reason, 1)
    (row,) = stored(board)
    assert [problem["rule"] for problem in row.problems] == ["E103"]
    assert [count(board, table) for table in (files, outputs, evaluations)] == [1, 0, 0]


def test_what_failed_costs_nothing_and_is_tried_again(board, submission, sandbox_jobs):
    board = with_settings(board, submissions_a_day=1)
    sandbox_jobs.unscored.add("Ann")
    source = str(submission("Ann"))
    receipt = add(board, source, now=NOW)
    assert (receipt.state, receipt.reason) == ("failed", "it took more than 600 seconds")
    assert (receipt.cost, receipt.charge) == (0, "it failed, through no fault of the submitter")
    assert receipt.note == "it failed through no fault of its own: `geval board add` or `scan --again` tries it again"
    sandbox_jobs.unscored.clear()
    again = add(board, source, now=NOW + timedelta(hours=1))
    assert (again.code, again.state, again.arrived, again.cost) == (receipt.code, "scored", NOW, 1)
    assert [count(board, table) for table in (submissions, files, disclosures)] == [1, 1, 2]


def test_what_failed_is_not_tried_again_if_the_quota_was_used_up_since(board, submission, sandbox_jobs):
    board = with_settings(board, submissions_a_day=1)
    sandbox_jobs.unscored.add("Ann")
    source = str(submission("Ann"))
    code = add(board, source, now=NOW).code
    sandbox_jobs.unscored.clear()
    assert add(board, str(submission("Ann", seed=2, folder="later")), now=NOW).state == "scored"
    for now in (NOW, NOW + timedelta(days=1)):  # the quota is that of the day on which it arrived
        with pytest.raises(QuotaError):
            add(board, source, now=now)
    again = add(with_settings(board, submissions_a_day=2), source, now=NOW + timedelta(days=1))
    assert (again.code, again.state, again.reason, again.cost) == (code, "scored", "", 1)
    assert status_of(board, NOW).outdated == {}


def test_what_was_received_and_cannot_be_received_any_more_is_known(board, submission, sandbox_jobs, tmp_path):
    """Its code is from before it was received; a new submission would have the same."""
    source = shutil.make_archive(str(tmp_path / "Ann"), "zip", submission("Ann"))
    sandbox_jobs.unopened.add("Ann.zip")
    code = add(board, source, now=NOW).code
    sandbox_jobs.unopened.clear()
    assert add(board, source, now=NOW).state == "scored"
    sandbox_jobs.unopened.add("Ann.zip")
    again = add(board, source, now=NOW)
    assert (again.code, again.state) == (code, "scored")
    assert again.note == f"this is the submission {code} of 2027-01-10T12:00:00Z again"
    assert count(board, submissions) == 1


def test_what_is_over_the_quota_is_refused(board, submission):
    board = with_settings(board, submissions_a_day=2, zone=ZoneInfo("Europe/Warsaw"))
    for seed in (1, 2):
        add(board, str(submission("Ann", seed=seed)), now=NOW)
    hint = "the next day begins at 2027-01-10T23:00:00Z; nothing was scored"
    used_up = "The quota is used up: Ann sent 2 of 2 submissions on 2027-01-10 (Europe/Warsaw)"
    with refused(f"{used_up}\n  {hint}", QuotaError):
        add(board, str(submission("Ann", seed=3)), now=NOW)
    assert len(stored(board)) == 2


def test_what_is_refused(sqlite_board, submission, tmp_path):
    with refused("the arrival time 2027-01-10T13:00:00Z is in the future: it is 2027-01-10T12:00:00Z"):
        add(sqlite_board, str(submission("Ann")), at=NOW + timedelta(hours=1), now=NOW)
    with pytest.raises(MissingFileError):
        add(sqlite_board, str(tmp_path / "none"), now=NOW)
    with pytest.raises(RejectedError):
        add(sqlite_board, str(submission("Ann")), submitter="\N{ZERO WIDTH SPACE}", now=NOW)
    assert stored(sqlite_board) == []


def test_one_that_is_withdrawn_is_kept_and_not_ranked(board, submission):
    receipt = add(board, str(submission("Ann")), now=NOW)
    assert count(board, disclosures) == 2
    with refused("a withdrawal needs a reason, which `geval board status` shows"):
        change(board, moderating.withdraw, board.settings, receipt.code, " ", NOW)
    change(board, moderating.withdraw, board.settings, receipt.code[:4], "it used the answers", NOW)
    (row,) = stored(board)
    assert (row.withdrawn, row.withdrawal, row.state, row.cost) == (NOW, "it used the answers", "scored", 1)
    assert [count(board, table) for table in (disclosures, scores)] == [0, 2]
    assert status_of(board, NOW).states["withdrawn"] == 1
    with refused(f"`{receipt.code}` was already withdrawn, at 2027-01-10T12:00:00Z"):
        change(board, moderating.withdraw, board.settings, receipt.code, "again", NOW)


@pytest.mark.parametrize("code", ["", "abc", "%%%%", "ffffffffffff"])
def test_a_code_that_no_submission_has(code, sqlite_board, submission):
    add(sqlite_board, str(submission("Ann")), now=NOW)
    with refused(f"No submission has the code `{code}`\n  geval board status BOARD shows all", UnknownCodeError):
        change(sqlite_board, moderating.note, code, "x")


def test_what_was_withdrawn_and_is_sent_again_is_told_to_be_withdrawn(sqlite_board, submission):
    receipt = add(sqlite_board, str(submission("Ann")), now=NOW)
    change(sqlite_board, moderating.withdraw, sqlite_board.settings, receipt.code, "it used the answers", NOW)
    again = add(sqlite_board, str(submission("Ann")), now=NOW)
    assert (again.code, again.state, again.reason) == (receipt.code, "withdrawn", "")
    before = f"this is the submission {receipt.code} of 2027-01-10T12:00:00Z again"
    assert again.note == f"{before}, which was withdrawn: it is not ranked"
    assert "it used the answers" not in str(again)
    assert len(stored(sqlite_board)) == 1


def test_neither_a_password_nor_gits_words_are_for_everyone(sqlite_board, tmp_path):
    """Nothing listens at the address, and git's own words may have the password."""
    board = with_settings(sqlite_board, transports=("https",))
    receipt = add(board, "git+https://anna:hunter2@127.0.0.1:1/team.git@main", submitter="Team", now=NOW)
    source = "git+https://127.0.0.1:1/team.git@main"
    assert (receipt.name, receipt.source, receipt.digest) == ("team@main", source, unopened_digest(source))
    assert (receipt.state, receipt.reason) == ("failed", "the branch cannot be fetched")
    (line,) = status_of(board, NOW).submissions
    unshown = "git's reason is not shown, because the address has a login"
    assert line["reason"] == f"the branch cannot be fetched: {source}: {unshown}"
    back_up(board.folder, str(tmp_path / "board.tar"), now=NOW)
    site.build(board, str(tmp_path / "site"), now=NOW)
    written = files_in(tmp_path / "site")
    assert [path for path, content in written.items() if b"127.0.0.1" in content or b"hunter2" in content] == []
    assert b"hunter2" not in (tmp_path / "board.tar").read_bytes()


def test_the_folder_that_one_stands_in_has_a_name(sqlite_board, submission, monkeypatch):
    monkeypatch.chdir(submission("Ann.zip"))
    receipt = add(sqlite_board, ".", now=NOW)
    assert (receipt.submitter, receipt.name, receipt.state) == ("Ann.zip", "Ann.zip", "scored")
