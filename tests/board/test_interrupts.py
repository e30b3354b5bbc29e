"""SIGTERM and SIGINT end ``add``, ``scan`` and ``rescore``: at once, with their children, and what is done is stored."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from processes import is_alive
from samples import NOW, ON_BOTH, rows_of, words_of, write_answers
from sqlalchemy import select

from geval_py.board.database.schema import submissions
from geval_py.board.database.store import LOCK
from geval_py.board.operations.rescoring import rescore
from geval_py.board.operations.submissions import add

pytestmark = pytest.mark.slow

# The command, whose children that see a name with "stall" start one of their own and sleep for ten minutes: at once, or
# if all are slow, when they have begun.
RUN = """
import sys
from geval_py.board.intake import sandbox
sandbox.PROGRAM = '''
import os, subprocess, time
from geval_py.board.intake import child
def sleep(*_):
    sleeper = subprocess.Popen(["sleep", "600"])
    with open({pids!r} + "/" + str(os.getpid()), "w") as file:
        file.write(f"{{os.getpid()}} {{sleeper.pid}}")
    time.sleep(600)
if {slow}:
    child.process = sleep
elif "stall" in open("job.json").read():
    sleep()
''' + sandbox.PROGRAM
from geval_py.__main__ import main
sys.exit(main())
"""


class Command:
    """A command in a process of its own, and what it leaves."""

    def __init__(self, folder, words, *, slow=False):
        self.pids, self.temporary = folder / "pids", folder / "temporary"
        for path in (self.pids, self.temporary):
            path.mkdir(exist_ok=True)
        code = RUN.format(pids=str(self.pids), slow=slow)
        words, environment = ["board", *map(str, words)], os.environ | {"TMPDIR": str(self.temporary)}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-I", "-c", code, *words], env=environment, **streams)

    def wait_until(self, condition):
        ends = time.monotonic() + 120
        while not condition():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < ends
            time.sleep(0.05)

    def stalled(self):
        """Return the ids of all children and grandchildren that sleep."""
        return [int(pid) for path in self.pids.iterdir() for pid in path.read_text().split()]

    def end(self, number):
        """Send a signal, and look at how the command ends; a stalling child would hold it for ten minutes."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)[1]
        assert (self.process.returncode, said) == (-number, b"")
        assert list(self.temporary.iterdir()) == []
        assert [pid for pid in self.stalled() if is_alive(pid)] == []


def stored(board):
    return dict(map(tuple, rows_of(board, select(submissions.c.name, submissions.c.state))))


def add_two(command, board, submission, folder):
    return command(folder, ["add", board.folder, submission("ann"), submission("stall", seed=1)])


def scan_four(command, board, submission, folder):
    for position, name in enumerate(["ann", "stall-a", "stall-b", "zoe"]):
        submission(name, seed=position)
    return command(folder, ["scan", board.folder, folder / "uploads"])


def rescore_two(command, board, submission, folder):
    for position, name in enumerate(["ann", "stall"]):
        add(board, str(submission(name, seed=position)), now=NOW)
    write_answers(folder / "answers", words_of("test-A")[::-1])
    return command(folder, ["rescore", board.folder])


@pytest.mark.parametrize(("start", "stalled", "number"), [
    pytest.param(scan_four, 4, signal.SIGTERM, id="scan SIGTERM"),
    pytest.param(scan_four, 4, signal.SIGINT, id="scan SIGINT", marks=pytest.mark.long),
    pytest.param(add_two, 2, signal.SIGINT, id="add SIGINT"),
    pytest.param(rescore_two, 2, signal.SIGTERM, id="rescore SIGTERM", marks=pytest.mark.long),
])  # fmt: skip
def test_a_command_ends_and_what_was_finished_is_stored(start, stalled, number, sqlite_board, submission, tmp_path):
    command = start(Command, sqlite_board, submission, tmp_path)
    command.wait_until(lambda: "ann" in stored(sqlite_board) and len(command.stalled()) >= stalled)
    command.end(number)
    states = stored(sqlite_board)
    assert states["ann"] == "scored"
    if start is rescore_two:
        assert len(rescore(sqlite_board, now=NOW).outdated) == 4
    else:
        assert not [name for name in states if name.startswith("stall")]


def test_children_of_a_killed_command_end(sqlite_board, submission, tmp_path):
    """No signal tells them; they look whether their parent lives."""
    command = Command(tmp_path, ["add", sqlite_board.folder, submission("slow")], slow=True)
    command.wait_until(command.stalled)
    command.process.kill()
    command.process.communicate()
    assert [pid for pid in command.stalled() if is_alive(pid)] == []


@ON_BOTH
def test_a_command_that_waits_for_another_to_write_ends(board, submission, tmp_path):
    """SQLite would wait for a minute, and handle no signal."""
    source = submission("ann")
    with board.engine.connect() as other:
        if other.dialect.name == "sqlite":
            writer = sqlite3.connect(f"{board.folder}/board.sqlite", isolation_level=None)
            writer.execute("BEGIN IMMEDIATE")
        else:
            writer = None
            other.exec_driver_sql(f"SELECT pg_advisory_lock({LOCK})")
        command = Command(tmp_path, ["add", board.folder, source])
        command.wait_until(lambda: list(command.temporary.glob("*/000*")))
        time.sleep(3)
        command.end(signal.SIGTERM)
        if writer is not None:
            writer.close()
    assert stored(board) == {}
