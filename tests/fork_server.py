"""A fork server with all libraries imported, so that a command starts in milliseconds.

    commands, three descriptors -> server, which answers with the child's status -> child

Most time of a short command is its start. Where that is tested, or how a child ends, tests start a real one.
A child runs ``geval``, or the code of ``python -c``, with the arguments, folder, environment and descriptors that it
is given; all that it shares with others is what was imported before, and the seed of hashes.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from geval_py.board.intake import sandbox
from geval_py.board.submission import PASSED_VARIABLES
from geval_py.reading.compression import zstd_module

LIBRARIES = ("numpy", "pandas", "scipy.stats", "sqlalchemy.dialects.sqlite", "jinja2", "sacrebleu")
NOT_IMPORTED = ("geval_py.integrations.torchmetrics",)  # needs gigabytes of libraries
MIGRATIONS = "geval_py.board.database.migrations."  # run by Alembic alone
MAX_REQUEST = 1 << 20
CHILD = "import os, sys, geval_py.board.intake.child as child; sys.exit(child.main(sys.argv[1], os.getppid()))"
CLIENT = """\
#!{python} -IS
import json, os, signal, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = {{"words": sys.argv, "code": None, "folder": os.getcwd(), "environment": dict(os.environ), "session": False}}
socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
answers = connection.makefile()
child = int(answers.readline())
signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
status = int(answers.readline())
sys.exit(status if status >= 0 else 128 - status)
"""


class ForkServer:
    """The server, as tests use it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fork-", dir="/tmp"))  # short, as the address of a socket must be
        self.address = str(self.folder / "socket")
        self._server = subprocess.Popen([sys.executable, "-I", __file__, self.address])
        while not os.path.exists(self.address):
            assert self._server.poll() is None
            time.sleep(0.05)
        client = self.folder / "bin" / "geval"
        client.parent.mkdir()
        client.write_text(CLIENT.format(python=sys.executable, address=self.address))
        client.chmod(0o755)
        self.bin = client.parent

    def close(self):
        self._server.terminate()
        self._server.wait()
        shutil.rmtree(self.folder)


class ForkedChild:
    """A child of the sandbox, as its Popen; it is a child of the server at an address."""

    def __init__(self, address, place):
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        kept = {name: os.environ[name] for name in (*PASSED_VARIABLES, "GEVAL_PY_BACKEND") if name in os.environ}
        environment = kept | {"HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
        request = {
            "words": ["-c", place], "code": CHILD, "folder": place, "environment": environment, "session": True,
        }  # fmt: skip
        null, errors = os.open(os.devnull, os.O_RDWR), os.open(f"{place}/errors.txt", os.O_WRONLY | os.O_CREAT)
        socket.send_fds(self._connection, [json.dumps(request).encode() + b"\n"], [null, null, errors])
        for descriptor in (null, errors):
            os.close(descriptor)
        # Unbuffered: else both answers may be read at once, and wait() would wait for the second one.
        self._answers = self._connection.makefile("rb", 0)
        self.pid = int(self._answers.readline())
        self._status = None

    def wait(self, timeout=None):
        if self._status is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("child", timeout)
            self._status = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self._status


def serve(address):
    for name in LIBRARIES:
        importlib.import_module(name)
    zstd_module()
    import geval_py

    folder = Path(geval_py.__file__).parent  # __path__ of an editable installation has folders of the checkout, too
    for path in folder.rglob("*.py"):
        name = ".".join(["geval_py", *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
        if name not in NOT_IMPORTED and not name.startswith(MIGRATIONS):
            importlib.import_module(name)
    sandbox.start_child = functools.partial(ForkedChild, address)
    gc.collect()
    gc.set_threshold(100_000, 20, 100)
    gc.freeze()  # else a child's first collection visits all that was imported, and copies the pages it stands on
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(f"{address}.new")
        listener.listen(64)
        waiting.register(listener, selectors.EVENT_READ, start)
        os.rename(f"{address}.new", address)
        while True:
            for key, _ in waiting.select():
                key.data(waiting, key.fileobj)


def start(waiting, listener):
    """Run what is asked for in a child, and answer with its number; whoever asks may be killed meanwhile."""
    connection, _ = listener.accept()
    content, descriptors, *_ = socket.recv_fds(connection, MAX_REQUEST, 3)
    while content and not content.endswith(b"\n"):
        more = connection.recv(MAX_REQUEST)
        content = content + more if more else b""
    child = os.fork() if content else None
    if child == 0:
        for key in waiting.get_map().values():
            os.close(key.fd)
        waiting.close()
        connection.close()
        run(json.loads(content), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if child is None:
        connection.close()
        return
    send(connection, child)
    then = functools.partial(answer, child=child, connection=connection)
    waiting.register(os.pidfd_open(child), selectors.EVENT_READ, then)


def send(connection, number):
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"%d\n" % number)


def answer(waiting, ended, *, child, connection):
    """Answer with the status of a child that ended; its number stays its own until the end of the connection."""
    waiting.unregister(ended)
    os.close(ended)
    end = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    send(connection, end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)
    waiting.register(connection, selectors.EVENT_READ, functools.partial(forget, child=child))


def forget(waiting, connection, *, child):
    waiting.unregister(connection)
    connection.close()
    os.waitpid(child, 0)


def run(request, descriptors):
    """Be the child: take over all that is given, run, and end as the interpreter does."""
    if request["session"]:
        os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    unbuffered = "PYTHONUNBUFFERED" in os.environ
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(open(number, "wb", 0 if unbuffered else -1, closefd=False), write_through=unbuffered)
        for number in (1, 2)
    )
    status = status_of(request["code"])
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def status_of(code):
    from geval_py.__main__ import main

    try:
        if code is None:
            return main()
        exec(code, {"__name__": "__main__"})
    except SystemExit as end:
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
