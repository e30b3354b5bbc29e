"""Submissions that would hold up others: each is limited, and fails only once."""

import os
import shutil
import time
from datetime import timedelta
from functools import partial

import pytest
from samples import NOW, states, with_limits, with_settings

from geval_py.board.intake import sandbox
from geval_py.board.intake.sources import HEADER_BYTES
from geval_py.board.operations import submissions as scanning
from geval_py.board.operations.submissions import add, scan

pytestmark = pytest.mark.usefixtures("children")


@pytest.fixture
def uploads(submission, tmp_path):
    """A folder with a good submission, and what makes another one."""
    submission("good")
    make = partial(submission, seed=1)
    make.folder = str(tmp_path / "uploads")
    return make


def test_what_is_just_within_the_limits_is_scored(sqlite_board, uploads):
    tags = ", ".join(f"t{number}" for number in range(20))
    params = ", ".join(f"p{number}: {number}" for number in range(98))
    gonito = f"tags: [{tags}]\nparams: {{{params}}}\nlinks: [url: http://x]\n"
    source = uploads("ann", gonito=gonito)
    shutil.copy(source / "test-A" / "out.tsv", source / "test-A" / "out-r=1,s=2.tsv")
    assert states(scan(sqlite_board, uploads.folder, now=NOW)) == [("ann", "scored"), ("good", "scored")]


def test_a_sparse_archive_and_a_sparse_output_are_not_read_to_the_end(sqlite_board, uploads):
    terabyte = 1 << 40
    for path in (f"{uploads.folder}/bad.zip", f"{uploads.folder}/bad2.tar", uploads("large") / "test-A/out.tsv"):
        with open(path, "ab") as file:
            try:
                file.truncate(terabyte)
            except OSError:  # the file system has no files as large
                file.truncate(terabyte >> 8)
    receipts = scan(with_limits(sqlite_board, bytes=1_000_000), uploads.folder, now=NOW)
    most = 1_000_000 + 201 * (512 + HEADER_BYTES)
    assert [(one.submitter, one.state, one.reason) for one in receipts] == [
        ("bad2", "rejected", f"the archive has more than {most} bytes"),
        ("bad", "rejected", f"the archive has more than {most} bytes"),
        ("good", "scored", ""),
        ("large", "rejected", "its files have more than 1000000 bytes, unpacked: `test-A/out.tsv`"),
    ]


def test_a_folder_that_vanishes_does_not_stop_the_others(sqlite_board, uploads, monkeypatch):
    gone, look = uploads("gone"), scanning.fingerprint

    def fingerprint(source, most):
        if source.endswith("gone"):
            shutil.rmtree(gone)
        return look(source, most)

    monkeypatch.setattr(scanning, "fingerprint", fingerprint)
    receipts = scan(sqlite_board, uploads.folder, now=NOW)
    assert states(receipts) == [("gone", "refused"), ("good", "scored")]
    assert receipts[0].reason == f"No submission: `{gone}`"


@pytest.mark.slow
def test_a_submission_waits_for_an_earlier_one_of_its_submitter(sqlite_board, submission, tmp_path, monkeypatch):
    """So that the earlier one has the quota, though it takes longer."""
    run = sandbox.run_in_sandbox

    def slow_for_ann(arguments, settings, place):
        time.sleep(1.5 * arguments["source"].endswith("ann"))
        return run(arguments, settings, place)

    monkeypatch.setattr(sandbox, "run_in_sandbox", slow_for_ann)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    board = with_settings(sqlite_board, submissions_a_day=1)
    submission("ann")
    shutil.make_archive(str(tmp_path / "uploads" / "ann"), "zip", submission("ann", seed=1, folder="packed"))
    receipts = scan(board, str(tmp_path / "uploads"), now=NOW)
    assert states(receipts) == [("ann", "scored"), ("ann", "refused")]
    used_up = "The quota is used up: ann sent 1 of 1 submission on 2027-01-10 (UTC)"
    assert receipts[1].reason == f"{used_up}; the next day begins at 2027-01-11T00:00:00Z; nothing was scored"


@pytest.mark.parametrize("change", ["content", "again", "add"])
def test_what_failed_is_tried_again_when_asked(sqlite_board, submission, tmp_path, sandbox_jobs, change):
    board, folder = sqlite_board, str(tmp_path / "uploads")
    sandbox_jobs.unscored.add("ann")
    source = submission("ann")
    scan(board, folder, now=NOW)
    assert scan(board, folder, now=NOW) == []
    later = NOW + timedelta(hours=1)
    if change == "add":
        add(board, str(source), now=later)
    elif change == "again":
        (receipt,) = scan(board, folder, now=later, again=True)
        assert receipt.arrived == NOW  # that it failed was not the submitter's fault
    else:
        submission("ann", seed=1)
        scan(board, folder, now=later)
    assert sandbox_jobs.scored == ["ann", "ann"]
    assert scan(board, folder, now=later) == []
