"""A process that has loaded what the sandbox's children need, and forks each of them: a child is there at once.

    sandbox -- a folder, its environment, two descriptors --> fork server -- fork --> child

It is started as a child would be, with nothing of the board's environment. It opens no stranger's file, and ends
with the process that started it. It works on Linux only. The fork server of :mod:`multiprocessing` does not fit: it
hands on the whole environment, which may hold the database's password, and its children import the main module.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import IO, Any, NoReturn

from geval_py.reading.compression import zstd_module

PROGRAM = "import sys, geval_py.board.intake.fork_server as server; server.main(int(sys.argv[1]))"
LOADED = ("geval_py.board.intake.sandbox_child", "geval_py.board.intake.receiving", "geval_py.checking.check")
MOST_REQUEST = 1 << 17  # bytes; an environment has a few hundred
LOOK_SECONDS = 0.01  # between two looks at whether a killed child is gone


class ForkServer:
    """The server, as the process that starts it sees it; several threads may start children."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it, without waiting until it has loaded anything."""
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def start(self, place: str, environment: Mapping[str, str]) -> ForkedChild:
        """Start a child that does the job in a place; raises OSError, ConnectionError if the server is gone."""
        request = json.dumps({"place": place, "environment": dict(environment)}).encode()
        reading, writing = os.pipe()
        stderr = open(reading, "rb", buffering=0)
        ours, theirs = socket.socketpair()
        try:
            with theirs, open(writing, "wb", buffering=0):
                socket.send_fds(self._requests, [request], [writing, theirs.fileno()])
            pid = _number(ours)
            if pid < 0:
                raise OSError(-pid, os.strerror(-pid))
        except BaseException:
            ours.close()
            stderr.close()
            raise
        return ForkedChild(pid, stderr, ours)

    def close(self) -> None:
        """End the server, and with it the children that are left."""
        self._requests.close()
        self._process.wait()


class ForkedChild:
    """A child of the server, with what the sandbox needs of a Popen."""

    def __init__(self, pid: int, stderr: IO[bytes], connection: socket.socket) -> None:
        self.pid = pid
        self.stderr = stderr
        self.returncode = 0
        self._connection = connection

    def wait(self) -> int:
        """Return the status as Popen does. Until then no other process can have the child's id."""
        with self._connection:
            try:
                self._connection.sendall(b"?")
                self.returncode = _number(self._connection)
            except ConnectionError:
                self.returncode = -signal.SIGKILL  # the server was killed, and so is its child
        return self.returncode

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)


def _number(connection: socket.socket) -> int:
    answer = connection.recv(16)
    if not answer:
        raise ConnectionResetError
    return int(answer)


# What follows runs in the server.


def main(descriptor: int) -> None:
    """Fork a child for each request, and answer with its status when asked, until the other end is closed."""
    for name in LOADED:
        importlib.import_module(name)
    zstd_module()
    gc.collect()
    gc.freeze()  # else a child's first collection would visit all that was loaded, and copy its pages
    children: dict[socket.socket, int] = {}
    asked: list[socket.socket] = []  # for the status of a child that has not ended yet
    requests = socket.socket(fileno=descriptor)
    while True:
        waiting = [requests, *(one for one in children if one not in asked)]
        for one in select.select(waiting, [], [], LOOK_SECONDS if asked else None)[0]:
            if one is not requests:
                asked.append(one)
                continue
            request, descriptors, *_ = socket.recv_fds(requests, MOST_REQUEST, 2)
            if not request:
                _kill(children.values())
                return
            _fork(request, descriptors, [requests, *children], children)
        asked = [one for one in asked if not _is_answered(one, children)]


def _fork(
    request: bytes, descriptors: list[int], inherited: list[socket.socket], children: dict[socket.socket, int]
) -> None:
    """Fork a child, and answer with its id, or with the negative number of the error."""
    stderr, connection, parent = descriptors[0], socket.socket(fileno=descriptors[1]), os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        pid = -(error.errno or 1)
    if pid == 0:
        for one in (connection, *inherited):
            one.close()
        _be_child(json.loads(request), stderr, parent)
    os.close(stderr)
    if pid > 0:
        children[connection] = pid
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"%d" % pid)
    if pid < 0:
        connection.close()


def _is_answered(connection: socket.socket, children: dict[socket.socket, int]) -> bool:
    """Answer with the status of a child if it has ended; who asked may be gone."""
    pid, status = os.waitpid(children[connection], os.WNOHANG)
    if not pid:
        return False
    del children[connection]
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))
    return True


def _kill(pids: Iterable[int]) -> None:
    """Kill children and what they have started."""
    for pid in pids:
        for kill in (os.killpg, os.kill):  # its session may not have begun
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)


def _be_child(request: dict[str, Any], stderr: int, parent: int) -> NoReturn:
    """Do the job as a process of its own would, and end without a look back."""
    from geval_py.board.intake import sandbox_child

    status = 1
    try:
        os.setsid()
        os.dup2(stderr, 2)
        os.close(stderr)
        os.chdir(request["place"])
        os.environ.clear()
        os.environ.update(request["environment"])
        status = sandbox_child.main(request["place"], parent)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
