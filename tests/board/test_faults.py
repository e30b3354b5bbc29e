"""Kill -9 at random moments, several processes at once, a full disk: nothing is lost, doubled, or half there.

What takes long is marked so: fifty kills of each action.
"""

import functools
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from samples import NOW, ON_BOTH, change, count
from sqlalchemy import func, select, text

from geval_py.board import site
from geval_py.board.database.schema import blobs as stored_blobs
from geval_py.board.database.schema import (
    disclosures,
    evaluations,
    files,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.database.store import Board, StoreError
from geval_py.board.operations.receipts import find_submission
from geval_py.board.operations.submissions import add, note
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.ranking.leaderboard import standings

QUICK, LONG = 2, 50
KILLS = [pytest.param(QUICK, id="quick"), pytest.param(LONG, id="long", marks=pytest.mark.long)]
RUN = "import sys; from geval_py.__main__ import main; sys.exit(main())"


def start(*words, command=(sys.executable, "-I", "-c", RUN)):
    """Start the command in a process of its own."""
    words = [*command, *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def start_forked(fork_server):
    """Return a function that starts the command in a process of its own, with all imported before."""
    return functools.partial(start, command=(fork_server.bin / "geval",))


class Killing:
    """Run a command again and again, and kill it at a random moment, until it was still running so many times.

    The span from which the moment is chosen follows the command: it grows after each kill, and shrinks after each run
    that was done before, so that about one in six is.
    """

    def __init__(self, kills):
        self.kills, self.killed, self.tried = kills, 0, 0
        self._chance, self._span = random.Random(kills), 1.0

    def __iter__(self):
        """Yield numbers, from 0, as long as there is something to kill."""
        while self.killed < self.kills:
            yield self.tried
            self.tried += 1

    def __call__(self, *words):
        """Run the command; tells whether it was killed."""
        process = start(*words)
        try:
            process.wait(self._chance.uniform(0, self._span if self.tried else self._span / 4))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.stderr.close()
        killed = process.wait() == -signal.SIGKILL
        self.killed += killed
        self._span *= 1.1 if killed else 0.6
        return killed

    def report(self, what, landed):
        print(f"{what}: killed {self.killed} times in {self.tried} runs; {landed}")


def check_whole(folder):
    """Open a board, and look whether each submission is there with all that belongs to it; gives the board."""
    board = Board.open(folder)
    with disclosed(board, status_now()) as connection:  # a scan that was killed has not disclosed what it stored
        if connection.dialect.name == "sqlite":
            assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
        of = connection.execute(select(submissions.c.id, submissions.c.state)).all()
        for number, state in of:
            own = select(files.c.sha256, stored_blobs.c.part).where(files.c.submission_id == number)
            stored = connection.execute(own.outerjoin(stored_blobs, stored_blobs.c.sha256 == files.c.sha256)).all()
            assert stored
            assert all(part is not None for _, part in stored)
            outs = connection.execute(select(outputs.c.id).where(outputs.c.submission_id == number)).scalars().all()
            for table in (scores, disclosures):
                rows = select(func.count()).select_from(table).where(table.c.output_id.in_(outs))
                assert connection.execute(rows).scalar_one() == (2 * len(outs) if state == "scored" else 0)
            assert bool(outs) == (state == "scored")
    return board


@pytest.mark.slow
@pytest.mark.parametrize("command", ["add", "scan"])
@pytest.mark.parametrize("kills", KILLS)
def test_add_is_killed(kills, command, board, submission):
    kill, done = Killing(kills), 0
    for number in kill:
        source = submission(f"s{number}", 0.3, seed=number)
        killed = kill("board", command, board.folder, source if command == "add" else source.parent)
        stored = count(check_whole(board.folder), submissions)
        assert stored in (number, number + 1)
        done += killed and stored > number
        add(board, str(source), now=status_now())
        assert count(check_whole(board.folder), submissions) == number + 1
    kill.report(command, f"after {done} kills the submission was stored")


def status_now():
    from datetime import UTC, datetime

    return datetime.now(UTC)


def built(board, folder):
    """Build the site in this process; gives its files."""
    site.build(board, str(folder), now=NOW)
    return files_of(folder)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("kills", KILLS)
def test_site_is_killed(kills, board, submission, tmp_path):
    codes = [add(board, str(submission(f"s{number}", seed=number)), now=NOW).code for number in range(3)]
    public = tmp_path / "public"
    kill, exchanged, before = Killing(kills), 0, built(board, public)
    for number in kill:
        change(board, note, codes[number % 3], f"remark {number}")
        after = built(board, tmp_path / "other")
        killed = kill("board", "site", board.folder, "-o", public)
        found = files_of(public)
        assert found in (before, after)
        exchanged += killed and found == after
        for left in tmp_path.glob(".geval-board-*"):
            os.utime(left, (0, 0))  # long ago
        before = built(board, public)
        assert before == after
        assert not list(tmp_path.glob(".geval-board-*"))
    kill.report("site", f"after {exchanged} kills the new site was in place")


def add_at_once(start, board, submissions_of):
    """Let processes add submissions at once, each of its own or what others add, too."""
    running = [start("board", "add", board.folder, *sources) for sources in submissions_of]
    for process in running:
        assert process.wait() == 0, process.stderr.read()
        process.stderr.close()
    names = {source.name for sources in submissions_of for source in sources}
    opened = check_whole(board.folder)
    with opened.reading() as connection:
        found = connection.execute(select(submissions.c.name)).scalars().all()
        assert sorted(found) == sorted(names)
        keys = connection.execute(select(submitters.c.key)).scalars().all()
        assert sorted(keys) == sorted(names)
    assert count(opened, evaluations) == 2 * len(names)
    assert len(standings(opened, now=status_now()).entries) == len(names)


@pytest.mark.slow
def test_two_processes_add_at_once(start_forked, board, submission):
    one, other, shared = (submission(name, 0.3, seed=n) for n, name in enumerate(["one", "other", "shared"]))
    add_at_once(start_forked, board, [[one, shared], [other, shared]])


@pytest.mark.slow
@ON_BOTH
def test_a_quota_holds_for_processes_that_add_at_once(start_forked, board, submission):
    path = Path(board.folder) / "board.yaml"
    path.write_text(path.read_text().replace("submissions_a_day: 0", "submissions_a_day: 1"))
    running = [
        start_forked("board", "add", board.folder, submission(f"ann{number}", seed=number), "--submitter", "Ann")
        for number in range(3)
    ]
    said = [process.communicate()[1] for process in running]
    assert sorted(process.returncode for process in running) == [0, 1, 1]
    assert sum("The quota is used up: Ann sent 1 of 1 submission" in one for one in said) == 2
    assert count(check_whole(board.folder), submissions) == 1


def add_all(board, sources):
    for source in sources:
        add(board, source, now=NOW)


def test_a_full_disk_is_an_error_and_the_board_still_opens(small_disk, challenge, tmp_path, submission):
    from geval_py.board.operations import creation as creating

    board = creating.create(small_disk / "board", challenge=challenge, answers=tmp_path / "answers")
    receipt = add(board, str(submission("first")), now=NOW)
    (small_disk / "filler").write_bytes(os.urandom(os.statvfs(small_disk).f_bavail * 4096 - 8192))
    sources = [str(submission(f"s{number}", seed=number)) for number in range(20)]
    with pytest.raises(StoreError) as caught:
        add_all(board, sources)
    assert str(caught.value) in (
        f"Cannot use the board's database `{small_disk}/board/board.sqlite`: database or disk is full",
        f"Cannot use the board's database `{small_disk}/board/board.sqlite`: "
        "it cannot be written, as its folder is read-only or the disk is full",
        f"Cannot use the board's database `{small_disk}/board/board.sqlite`: disk I/O error",
    )
    with Board.open(board.folder).reading() as connection:
        assert find_submission(connection, receipt.code)
    (small_disk / "filler").unlink()
    again = check_whole(board.folder)
    assert add(again, str(submission("last", seed=77)), now=NOW).state == "scored"
    assert count(again, stored_blobs) >= 2
