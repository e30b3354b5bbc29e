"""When submissions arrived: by the times of files, by arrivals.csv; and what cannot be."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from raising import refused
from samples import rows_of, states, with_settings, write
from sqlalchemy import select

from geval_py.board.database import schema
from geval_py.board.database.schema import submissions
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add, scan
from geval_py.board.settings import moment_text
from geval_py.cli.board.boards import receipt_text
from geval_py.errors import ConfigError

MADE = datetime(2027, 1, 1, tzinfo=UTC)
EVENING = datetime(2027, 1, 9, 22, 55, tzinfo=UTC)  # 23:55 in Warsaw
MIDNIGHT = EVENING + timedelta(minutes=5)


@pytest.fixture
def board(sqlite_board):
    """A board made at the beginning of 2027, in Warsaw."""
    with sqlite_board.writing() as connection:
        connection.execute(schema.board.update().values(created=MADE))
    return with_settings(sqlite_board, submissions_a_day=1, zone=ZoneInfo("Europe/Warsaw"))


def stamp(folder, moment):
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment.timestamp(), moment.timestamp()))


def told(receipts):
    return [(one.submitter, one.state, one.arrived_by, one.arrived) for one in receipts]


def test_what_was_uploaded_before_midnight_counts_for_the_day_before(board, submission, tmp_path):
    add(board, str(submission("ann", 0.3, folder="earlier")), submitter="ann", at=MIDNIGHT, now=MIDNIGHT)
    stamp(submission("ann", 0.4), EVENING)
    (refused,) = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT)
    assert refused.reason.startswith("The quota is used up: ann sent 1")
    receipts = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT, arrived="mtime")
    assert told(receipts) == [("ann", "scored", "mtime", EVENING)]
    assert "\n  arrived     2027-01-09T22:55:00Z, from the times of its files\n" in receipt_text(receipts[0])
    assert receipts[0].document()["arrived_by"] == "mtime"
    days = [(line["arrived_by"], line["day"]) for line in status_of(board, MIDNIGHT).submissions]
    assert days == [("mtime", "2027-01-09"), ("--at", "2027-01-10")]


def test_the_time_of_a_folder_is_that_of_its_latest_file(board, submission, tmp_path):
    source = submission("ann", tests=("test-A", "dev-0"))
    stamp(source, EVENING)
    stamp(source / "dev-0", EVENING - timedelta(days=3))
    shutil.make_archive(str(tmp_path / "uploads" / "bob"), "zip", source)
    stamp(tmp_path / "uploads" / "bob.zip", EVENING - timedelta(hours=1))
    receipts = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT, arrived="mtime")
    expected = [("bob", "scored", "mtime", EVENING - timedelta(hours=1)), ("ann", "scored", "mtime", EVENING)]
    assert told(receipts) == expected


def test_the_first_to_arrive_is_stored_first_and_uses_the_quota(board, submission, tmp_path):
    stamp(submission("Ann", 0.3), EVENING)
    stamp(submission("ann", 0.4), EVENING - timedelta(minutes=1))
    receipts = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT, arrived="mtime")
    expected = [("ann", "scored", "mtime", EVENING - timedelta(minutes=1)), ("Ann", "refused", "mtime", EVENING)]
    assert told(receipts) == expected


def test_a_moment_that_cannot_be_is_refused_and_the_others_go_on(board, submission, tmp_path):
    stamp(submission("ann"), MIDNIGHT + timedelta(seconds=1))
    stamp(submission("bob", 0.4), MADE - timedelta(seconds=1))
    stamp(submission("cyd", 0.3), MADE)
    receipts = {one.submitter: one for one in scan(board, str(tmp_path / "uploads"), now=MIDNIGHT, arrived="mtime")}
    assert [receipts[name].state for name in ("ann", "bob", "cyd")] == ["refused", "refused", "scored"]
    early, late = "2026-12-31T23:59:59Z", "2027-01-09T23:00:01Z"
    by_files = "from the times of its files"
    assert receipts["ann"].reason == f"`ann` arrived at {late}, {by_files}, but it is 2027-01-09T23:00:00Z"
    assert receipts["bob"].reason == (
        f"`bob` arrived at {early}, {by_files}, before the board was made, at 2027-01-01T00:00:00Z; if that is "
        "right, add it with geval board add --at"
    )
    later = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT + timedelta(minutes=1), arrived="mtime")
    assert {one.submitter: one.state for one in later} == {"ann": "scored", "bob": "refused"}


@pytest.mark.parametrize("bob", ["bob", "bob.zip"])
def test_the_manifest_of_the_organiser(bob, board, submission, tmp_path):
    stamp(submission("ann"), MADE)
    source = submission("bob", 0.4)
    shutil.make_archive(str(source), "zip", source)
    shutil.rmtree(source)
    stamp(submission("cyd", 0.3), EVENING)
    text = f"\ufeffname,moment\nann,2027-01-09 23:55 Europe/Warsaw\n\n{bob}, 2027-01-09T22:50:00Z\ngone,2027-01-09T00:00Z\n"
    write(tmp_path / "uploads" / "arrivals.csv", text)
    receipts = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT, arrived="mtime")
    assert told(receipts) == [
        ("bob", "scored", "arrivals.csv", EVENING - timedelta(minutes=5)),
        ("ann", "scored", "arrivals.csv", EVENING), ("cyd", "scored", "mtime", EVENING),
    ]  # fmt: skip


def test_all_that_is_wrong_in_a_manifest(board, submission, tmp_path):
    submission("ann")
    path = tmp_path / "uploads" / "arrivals.csv"
    write(path, "name,moment\nann,2027-01-09 23:55\nbob\nann,2027-01-09T00:00Z\nann,2027-01-09T00:00Z\n")
    with pytest.raises(ConfigError) as caught:
        scan(board, str(tmp_path / "uploads"), now=MIDNIGHT)
    assert str(caught.value).splitlines()[:3] == [
        "line 2: `2027-01-09 23:55` is not a time with one time zone; write it as 2027-01-31T23:59:00+01:00, 2027-01-31T22:59:00Z or "
        "2027-01-31 23:59 Europe/Warsaw",
        "line 3: expected a name and a time, with a comma between them",
        "line 5: `ann` is listed twice",
    ]
    assert status_of(board, MIDNIGHT).submissions == ()


def test_a_manifest_that_is_a_link(board, submission, tmp_path):
    submission("ann")
    write(tmp_path / "other.csv", "ann,2027-01-09T00:00Z\n")
    (tmp_path / "uploads" / "arrivals.csv").symlink_to(tmp_path / "other.csv")
    with refused(f"`{tmp_path}/uploads/arrivals.csv` is a link; links are not followed"):
        scan(board, str(tmp_path / "uploads"), now=MIDNIGHT)


def test_one_moment_for_all_goes_before_the_manifest(board, submission, tmp_path):
    submission("ann")
    write(tmp_path / "uploads" / "arrivals.csv", "ann,2027-01-09T00:00Z\n")
    receipts = scan(board, str(tmp_path / "uploads"), at=EVENING, now=MIDNIGHT)
    assert told(receipts) == [("ann", "scored", "--at", EVENING)]


def test_no_link_is_followed_to_the_folder_of_another(board, submission, tmp_path):
    private = submission("private", folder="elsewhere")
    shutil.make_archive(str(private), "zip", private)
    submission("ann", 0.4)
    (tmp_path / "uploads" / "mallory").symlink_to(private)
    (tmp_path / "uploads" / "mallory.zip").symlink_to(f"{private}.zip")
    receipts = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT)
    assert [(one.source.rpartition("/")[2], one.state, one.reason) for one in receipts] == [
        ("ann", "scored", ""),
        *((name, "refused", f"`{name}` is a link; links are not followed") for name in ("mallory", "mallory.zip")),
    ]
    assert rows_of(board, select(submissions.c.name)) == ["ann"]


def test_folders_whose_names_look_alike_are_two_submitters(board, submission, tmp_path):
    submission("Kamal")
    submission("Karnal", 0.4)
    assert states(scan(board, str(tmp_path / "uploads"), now=EVENING)) == [("Kamal", "scored"), ("Karnal", "scored")]
    assert status_of(board, EVENING).submitters == 2


def test_a_folder_that_is_written_like_a_submitter_is_refused(board, submission, tmp_path):
    first = add(board, str(submission("ann", folder="earlier")), now=EVENING)
    submission("Ann", 0.4)
    (refused,) = scan(board, str(tmp_path / "uploads"), now=MIDNIGHT)
    assert (refused.state, refused.reason) == ("refused", "`Ann` is written like the submitter `ann`; rename it")
    again = add(board, str(tmp_path / "earlier" / "ann"), submitter="Ann ", now=MIDNIGHT)
    note = f"this is the submission {first.code} of {moment_text(EVENING)} again"
    assert (again.code, again.note) == (first.code, note)
    assert status_of(board, MIDNIGHT).submitters == 1
