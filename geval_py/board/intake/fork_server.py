"""A process that has loaded what the sandbox's children need, and forks one for each place: it is there at once.

    seconds place  ──>  fork server  ──fork──>  child
    id, status     <──

It is started as a child would be, with nothing of the board's environment. It opens no stranger's file, and ends
with the process that started it. It works on Linux only. The fork server of :mod:`multiprocessing` does not fit: it
hands on the whole environment, which may hold the database's password, and its children import the main module.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from typing import IO, NoReturn, cast

from geval_py.reading.compression import zstd_module

PROGRAM = "import geval_py.board.intake.fork_server as server; server.main()"
LOADED = (
    "geval_py.board.intake.child",
    "geval_py.board.intake.receiving",
    "geval_py.checking.check",
    "geval_py.explaining.statistics",
)
ERROR_FILE = "errors.txt"  # in its place, what a child writes to standard error
KILL = b"kill\n"


class ForkServer:
    """The server, as the process that starts it sees it; it runs one child at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it, without waiting until it has loaded anything."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
        )

    def run(self, place: str, seconds: float) -> int:
        """Do the job in a place, in a child that is killed after some seconds; return the status as Popen does.

        Raises OSError if the child cannot be forked, ConnectionError if the server was killed before.
        """
        requests, answers = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        requests.write(f"{seconds} {place}\n".encode("utf-8", "surrogateescape"))
        forked = answers.readline()
        if not forked:
            raise ConnectionResetError
        if int(forked) < 0:
            raise OSError(-int(forked), os.strerror(-int(forked)))
        status = answers.readline()
        return int(status) if status else -signal.SIGKILL  # the server was killed, and so is its child

    def kill(self) -> None:
        """Kill the child that runs, with its own children."""
        with contextlib.suppress(OSError):
            cast(IO[bytes], self._process.stdin).write(KILL)

    def close(self) -> None:
        """End the server, and with it the child that runs."""
        cast(IO[bytes], self._process.stdin).close()
        self._process.wait()
        cast(IO[bytes], self._process.stdout).close()


def main() -> None:
    """Fork a child for each request on standard input, until that is closed, and answer with its id and status.

    A child and all that it has started are killed when its time is over, when that is asked for, and when it has
    ended. It is not waited for before, so no other process can have its id.
    """
    for name in LOADED:
        importlib.import_module(name)
    zstd_module()
    gc.collect()
    gc.freeze()  # else a child's first collection would visit all that was loaded, and copy its pages
    requests, parent = open(0, "rb", buffering=0, closefd=False), os.getpid()
    while request := requests.readline():
        if request == KILL:  # the child had ended
            continue
        seconds, _, place = request.decode("utf-8", "surrogateescape").rstrip("\n").partition(" ")
        try:
            pid = os.fork()
        except OSError as error:
            os.write(1, b"%d\n" % -(error.errno or 1))
            continue
        if pid == 0:
            _be_child(place, parent)
        os.write(1, b"%d\n" % pid)
        ended = os.pidfd_open(pid)
        select.select([ended, 0], [], [], float(seconds))
        os.close(ended)
        for kill in (os.killpg, os.kill):  # its session may not have begun
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(BrokenPipeError):
            os.write(1, b"%d\n" % status)


def _be_child(place: str, parent: int) -> NoReturn:
    """Do the job as a process of its own would, and end without a look back."""
    from geval_py.board.intake import child

    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        errors = os.open(os.path.join(place, ERROR_FILE), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number, descriptor in enumerate((null, null, errors)):
            os.dup2(descriptor, number)
        os.close(null)
        os.close(errors)
        os.chdir(place)
        os.environ.update(HOME=place, TMPDIR=place)
        status = child.main(place, parent)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
