"""``geval board scan``: what is new in a folder, in which order, and what does not stop the others."""

import os
import shutil
import zipfile
from datetime import timedelta

import pytest
from raising import refused
from samples import NOW, count, states, with_limits

from geval_py.board.database.schema import submissions
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add, scan
from geval_py.board.ranking.leaderboard import standings
from geval_py.errors import MissingFileError, UnreadableFileError, UsageError


@pytest.fixture
def uploads(submission, tmp_path):
    """Five submissions: good ones as folders and archives, one that is malformed, one that is no archive."""
    for name, skill in [("ann", 0.5), ("bob", 0.4), ("eve", 0.3)]:
        submission(name, skill)
    submission("mal", lines=3)
    folder = tmp_path / "uploads"
    shutil.make_archive(str(folder / "bob"), "zip", folder / "bob")
    shutil.rmtree(folder / "bob")
    (folder / "bad.tar.gz").write_bytes(b"no archive")
    (folder / "README.txt").write_text("no submission")
    (folder / ".hidden").mkdir()
    return folder


ALL = [("ann", "scored"), ("bad", "rejected"), ("bob", "scored"), ("eve", "scored"), ("mal", "rejected")]


def test_all_that_is_there_is_added(board, uploads):
    calls = []
    assert states(scan(board, str(uploads), now=NOW, progress=lambda *all: calls.append(all))) == ALL
    assert calls[-1] == (5, 5)
    assert [entry.submitter for entry in standings(board, now=NOW).entries] == ["ann", "bob", "eve"]
    status = status_of(board, NOW)
    assert status.states == {"scored": 3, "rejected": 2, "failed": 0, "withdrawn": 0}
    assert [line["name"] for line in status.submissions] == [name for name, _ in ALL]  # stored in their order


def test_only_what_is_new_is_looked_into(board, uploads, submission, sandbox_jobs):
    scan(board, str(uploads), now=NOW)
    sandbox_jobs.opened.clear()
    assert scan(board, str(uploads), now=NOW) == []
    assert sandbox_jobs.opened == []
    submission("new", 0.2)
    submission("eve", 0.45)
    assert states(scan(board, str(uploads), now=NOW + timedelta(hours=1))) == [("eve", "scored"), ("new", "scored")]
    assert sorted(sandbox_jobs.opened) == ["eve", "new"]
    assert len(status_of(board, NOW).submissions) == 7


def test_an_archive_that_was_replaced_is_new_though_its_time_is_the_same(sqlite_board, uploads):
    scan(sqlite_board, str(uploads), now=NOW)
    archive, before = uploads / "bob.zip", (uploads / "bob.zip").stat()
    shutil.make_archive(str(uploads / "bob"), "zip", uploads / "eve")
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("README.md", "Another")
    assert archive.stat().st_size != before.st_size
    os.utime(archive, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert states(scan(sqlite_board, str(uploads), now=NOW)) == [("bob", "scored")]


def test_odd_files_are_refused_and_the_others_go_on(sqlite_board, uploads):
    os.mkfifo(uploads / "pipe.zip")
    (uploads / "loop.zip").symlink_to("loop.zip")
    (uploads / "loop").symlink_to("loop")
    receipts = scan(sqlite_board, str(uploads), now=NOW)
    assert states(receipts) == sorted([*ALL, ("loop", "refused"), ("pipe", "refused")])
    assert [receipt.reason for receipt in receipts if receipt.state == "refused"] == [
        "`loop.zip` is a link; links are not followed",
        f"`{uploads}/pipe.zip` is not a submission: give a folder, an archive (.zip, .tar, .tar.gz, .tgz, .tar.xz, "
        ".tar.zst) or git+URL@BRANCH",
    ]


def test_a_retry_that_cannot_be_received_leaves_what_was_received(board, submission, sandbox_jobs, tmp_path):
    """Else the same content in another form would be another submission."""
    source, folder = submission("ann"), str(tmp_path / "uploads")
    sandbox_jobs.unscored.add("ann")
    (first,) = scan(board, folder, now=NOW)
    sandbox_jobs.unopened.add("ann")
    (second,) = scan(board, folder, now=NOW, again=True)
    assert (first.state, second.state, second.code) == ("failed", "failed", first.code)
    sandbox_jobs.unopened.clear()
    sandbox_jobs.unscored.clear()
    again = add(board, shutil.make_archive(str(tmp_path / "ann"), "zip", source), now=NOW + timedelta(hours=1))
    assert (again.code, again.state) == (first.code, "scored")


@pytest.mark.parametrize("packed", [True, False], ids=["archive", "folder"])
def test_what_a_limit_kept_out_is_accepted_once_it_is_larger(board, submission, tmp_path, packed):
    source, uploads = submission("ann", variants=("k=1", "k=2", "k=3")), tmp_path / "uploads"
    if packed:
        shutil.make_archive(str(source), "zip", source)
        shutil.rmtree(source)
    (first,) = scan(with_limits(board, files=1), str(uploads), now=NOW)
    assert (first.state, first.cost) == ("rejected", 0)
    assert scan(board, str(uploads), now=NOW) == []
    (second,) = scan(with_limits(board, files=2), str(uploads), now=NOW + timedelta(hours=1), again=True)
    assert (second.code, second.state, second.arrived) == (first.code, "rejected", NOW)
    (third,) = scan(board, str(uploads), now=NOW + timedelta(hours=2), again=True)
    assert (third.code, third.state, third.arrived) == (first.code, "scored", NOW)
    assert scan(board, str(uploads), now=NOW + timedelta(hours=3), again=True) == []
    assert len(status_of(board, NOW).submissions) == 1


def test_a_path_with_a_content_that_is_known_is_looked_at_once(sqlite_board, submission, tmp_path):
    source = submission("ann")
    shutil.make_archive(str(source), "zip", source)
    receipts = scan(sqlite_board, str(tmp_path / "uploads"), now=NOW)
    assert {receipt.code for receipt in receipts} == {receipts[0].code}
    assert scan(sqlite_board, str(tmp_path / "uploads"), now=NOW) == []


def test_what_cannot_be_scanned(sqlite_board, uploads, tmp_path):
    with pytest.raises(UnreadableFileError):
        scan(sqlite_board, str(tmp_path / "none"), now=NOW)
    with pytest.raises(UsageError):
        scan(sqlite_board, str(uploads), at=NOW + timedelta(1), now=NOW)
    shutil.rmtree(tmp_path / "answers")
    missing = f"No file with the expected results: `{tmp_path}/answers/test-A/expected.tsv`"
    with refused(missing, MissingFileError):
        scan(sqlite_board, str(uploads), now=NOW)
    assert count(sqlite_board, submissions) == 0
