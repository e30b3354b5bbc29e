"""Kill -9 at random moments, several processes at once, a full disk: nothing is lost, doubled, or half there.

The state machine kills each operation at each of its steps; here a process dies, with its locks and its children.
"""

import functools
import os
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from samples import NOW, ON_BOTH, count
from sqlalchemy import func, select, text

from geval_py.board.database.schema import blobs as stored_blobs
from geval_py.board.database.schema import disclosures, files, outputs, scores, submissions
from geval_py.board.database.store import Board, StoreError
from geval_py.board.operations import creation
from geval_py.board.operations.receipts import find_submission
from geval_py.board.operations.submissions import add
from geval_py.board.ranking.disclosure import disclosed

KILLS = [pytest.param(2, id="quick"), pytest.param(50, id="long", marks=pytest.mark.long)]
RUN = "import sys; from geval_py.__main__ import main; sys.exit(main())"


def start(*words, command=(sys.executable, "-I", "-c", RUN)):
    """Start the command in a process of its own."""
    words = [*command, *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def start_forked(fork_server):
    """Return a function that starts the command in a process of its own, with all imported before."""
    return functools.partial(start, command=(fork_server.bin / "geval",))


def status_now():
    return datetime.now(UTC)


def check_whole(folder):
    """Open a board, and look whether each submission is there with all that belongs to it; gives the board."""
    board = Board.open(folder)
    with disclosed(board, status_now()) as connection:  # a scan that was killed has not disclosed what it stored
        if connection.dialect.name == "sqlite":
            assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
        for number, state in connection.execute(select(submissions.c.id, submissions.c.state)).all():
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
@pytest.mark.parametrize("command", ["add", pytest.param("scan", marks=pytest.mark.long)])
@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_command_stores_all_of_a_submission_or_nothing(kills, command, board, submission):
    """The span from which the moment is chosen grows after each kill, and shrinks after each run that was done before."""
    chance, span, number = random.Random(kills), 1.0, 0
    while kills:
        source = submission(f"s{number}", 0.3, seed=number)
        process = start("board", command, board.folder, source if command == "add" else source.parent)
        try:
            process.wait(chance.uniform(0, span))
            span *= 0.6
        except subprocess.TimeoutExpired:
            process.kill()
            kills, span = kills - 1, span * 1.1
        process.communicate()
        assert count(check_whole(board.folder), submissions) in (number, number + 1)
        add(board, str(source), now=status_now())
        number += 1
        assert count(check_whole(board.folder), submissions) == number


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
    board = creation.create(small_disk / "board", challenge=challenge, answers=tmp_path / "answers")
    receipt = add(board, str(submission("first")), now=NOW)
    (small_disk / "filler").write_bytes(os.urandom(os.statvfs(small_disk).f_bavail * 4096 - 8192))
    sources = [str(submission(f"s{number}", seed=number)) for number in range(20)]
    with pytest.raises(StoreError) as caught:
        add_all(board, sources)
    reasons = (
        "database or disk is full", "disk I/O error",
        "it cannot be written, as its folder is read-only or the disk is full",
    )  # fmt: skip
    message = f"Cannot use the board's database `{small_disk}/board/board.sqlite`: "
    assert str(caught.value) in [message + reason for reason in reasons]
    with Board.open(board.folder).reading() as connection:
        assert find_submission(connection, receipt.code)
    (small_disk / "filler").unlink()
    again = check_whole(board.folder)
    assert add(again, str(submission("last", seed=77)), now=NOW).state == "scored"
    assert count(again, stored_blobs) >= 2
