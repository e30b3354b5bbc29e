"""Submissions that would hold up others: each is limited, and fails only once."""

import os
import shutil
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from samples import NOW

from geval_py.board.intake import sandbox
from geval_py.board.intake.sources import HEADER_BYTES
from geval_py.board.operations import submissions as scanning
from geval_py.board.operations.submissions import add, scan

pytestmark = pytest.mark.usefixtures("children")


def limited(board, **limits):
    return replace(board, settings=replace(board.settings, limits=replace(board.settings.limits, **limits)))


def states(receipts):
    return [(receipt.submitter, receipt.state) for receipt in receipts]


def mapping(count, name):
    return "{" + ", ".join(f"{name}{number}: {number}" for number in range(count)) + "}\n"


@pytest.fixture
def uploads(submission, tmp_path):
    """A folder with a good submission, and what makes another one of files."""
    submission("good")
    folder = tmp_path / "uploads"

    def make(name, files):
        submission(name, seed=1)
        for path, content in files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_text(content)
        return folder / name

    make.folder = str(folder)
    return make


def test_what_is_just_within_the_limits_is_scored(sqlite_board, uploads):
    tags = ", ".join(f"t{number}" for number in range(20))
    gonito = f"tags: [{tags}]\nparams: {mapping(98, 'p')}links: [url: http://x]\n"
    uploads("ann", {"gonito.yaml": gonito, "test-A/out-r=1,s=2.tsv": ""})
    source = uploads("ann", {})
    shutil.copy(source / "test-A" / "out.tsv", source / "test-A" / "out-r=1,s=2.tsv")
    assert states(scan(sqlite_board, uploads.folder, now=NOW)) == [("ann", "scored"), ("good", "scored")]


def test_a_sparse_archive_and_a_sparse_output_are_not_read_to_the_end(sqlite_board, uploads):
    terabyte = 1 << 40
    for path in (f"{uploads.folder}/bad.zip", f"{uploads.folder}/bad2.tar", uploads("large", {}) / "test-A/out.tsv"):
        with open(path, "ab") as file:
            try:
                file.truncate(terabyte)
            except OSError:  # the file system has no files as large
                file.truncate(terabyte >> 8)
    receipts = scan(limited(sqlite_board, bytes=1_000_000), uploads.folder, now=NOW)
    most = 1_000_000 + 201 * (512 + HEADER_BYTES)
    assert [(one.submitter, one.state, one.reason) for one in receipts] == [
        ("bad2", "rejected", f"the archive has more than {most} bytes"),
        ("bad", "rejected", f"the archive has more than {most} bytes"),
        ("good", "scored", ""),
        ("large", "rejected", "its files have more than 1000000 bytes, unpacked: `test-A/out.tsv`"),
    ]


def test_a_folder_that_vanishes_does_not_stop_the_others(sqlite_board, uploads, monkeypatch):
    gone, look = uploads("gone", {}), scanning.fingerprint

    def fingerprint(source, most):
        if source.endswith("gone"):
            shutil.rmtree(gone)
        return look(source, most)

    monkeypatch.setattr(scanning, "fingerprint", fingerprint)
    receipts = scan(sqlite_board, uploads.folder, now=NOW)
    assert states(receipts) == [("gone", "refused"), ("good", "scored")]
    assert receipts[0].reason == f"No submission: `{gone}`"


def test_a_submission_waits_for_an_earlier_one_of_its_submitter(sqlite_board, submission, tmp_path, monkeypatch):
    """So that the earlier one has the quota, though it takes longer."""
    run = sandbox.run_in_sandbox

    def slow_for_ann(arguments, settings, place):
        time.sleep(1.5 * arguments["source"].endswith("ann"))
        return run(arguments, settings, place)

    monkeypatch.setattr(sandbox, "run_in_sandbox", slow_for_ann)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    board = replace(sqlite_board, settings=replace(sqlite_board.settings, submissions_a_day=1))
    submission("ann")
    shutil.make_archive(str(tmp_path / "uploads" / "ann"), "zip", submission("ann", seed=1, folder="packed"))
    receipts = scan(board, str(tmp_path / "uploads"), now=NOW)
    assert states(receipts) == [("ann", "scored"), ("ann", "refused")]
    assert receipts[1].reason == (
        "The quota is used up: ann sent 1 of 1 submission on 2027-01-10 (UTC); the next day begins at "
        "2027-01-11T00:00:00Z; nothing was scored"
    )


@pytest.fixture
def failing(sandbox_jobs):
    """Let what scores submissions fail; gives how often it was asked."""
    sandbox_jobs.unscored |= {"ann", "bob", "cyd", "cyd.zip"}
    return sandbox_jobs.scored


@pytest.mark.parametrize("change", ["content", "again", "add"])
def test_what_failed_is_tried_again_when_asked(sqlite_board, submission, tmp_path, failing, change):
    board, folder = sqlite_board, str(tmp_path / "uploads")
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
    assert failing == ["ann", "ann"]
    assert scan(board, folder, now=later) == []
