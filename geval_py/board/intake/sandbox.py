"""The sandbox: strangers' files are opened only in a child process under limits.

    result = process_source(source, place, settings, settings.metrics)
    result = process_parcel(parcel, place, settings, [("test-A", "test-A/out.tsv", ("LogLossHashed",))])

``place`` is an empty folder that the caller removes; it holds the copies of a parcel's files. Children may run at
once, also from threads, each with its own place.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter

from geval_py.board.intake.archives import GIT
from geval_py.board.intake.sources import Parcel
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import (
    ANSWER_FILE,
    FAILED,
    JOB_FILE,
    PARCEL_FILE,
    PASSED_VARIABLES,
    REJECTED,
    JsonDocument,
    Outputs,
    Result,
    attributes,
    write_document,
)
from geval_py.text import visible, words

PARCEL, RESULT = TypeAdapter(Parcel), TypeAdapter(Result)
# It starts faster than with -m.
PROGRAM = "import sys, geval_py.board.intake.child as child; sys.exit(child.main(sys.argv[1], int(sys.argv[2])))"
ERROR_FILE = "errors.txt"  # in its place, what a child writes to standard error
STOP_SECONDS = 1  # for which an interrupt waits
GRACE_SECONDS = 5  # beyond the limit, in which a child may report itself that its time is over
MAX_ERROR_BYTES = 2000  # at the end of a child's standard error
SETTINGS = "challenge answers metric seed variants transports"  # that a child gets, beside the tests' and limits
CRASHES = words("SIGABRT SIGBUS SIGFPE SIGILL SIGSEGV SIGSYS SIGTRAP")  # a program dies by itself


def process_source(source: str, place: str, settings: BoardSettings, metrics: Sequence[str]) -> Result:
    """Copy a submission's files from a folder, an archive or git+URL@BRANCH into a place, check and score them.

    ``settings`` are those of the phase in which it arrived: it needs an output for one of the phase's tests.
    """
    arguments = {
        "source": source if source.startswith(GIT) else os.path.abspath(source),
        "metrics": list(metrics),
    }
    result = run_in_sandbox(arguments, settings, place)
    with contextlib.suppress(FileNotFoundError), open(os.path.join(place, PARCEL_FILE), "rb") as file:
        return replace(result, parcel=PARCEL.validate_python(json.load(file)))  # names may be no UTF-8
    return result


def process_parcel(parcel: Parcel, place: str, settings: BoardSettings, outputs: Outputs) -> Result:
    """Check outputs of a parcel, by the rules that need no answers, and score them by their metrics.

    If a rule finds an error, nothing is scored. The score by the ranking metric has an interval and the losses of the
    lines.
    """
    arguments = {"parcel": asdict(parcel), "outputs": list(outputs)}
    return replace(run_in_sandbox(arguments, settings, place), parcel=parcel)


def run_in_sandbox(arguments: JsonDocument, settings: BoardSettings, place: str) -> Result:
    """Run :func:`geval_py.board.intake.child.process` in a child process.

    The child has limits on memory, processor time and the size of files; no input, no terminal; only the variables
    of the environment that it needs; and its own session, which is killed when the time is over.
    """
    arguments |= attributes(settings, SETTINGS)
    arguments |= {"limits": asdict(settings.limits), "tests": {test.name: asdict(test) for test in settings.tests}}
    write_document(os.path.join(place, JOB_FILE), arguments)
    answer = os.path.join(place, ANSWER_FILE)
    with contextlib.suppress(FileNotFoundError):
        os.remove(answer)
    process = start_child(place)
    _running.append(process)
    try:
        status = process.wait(settings.limits.seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return Result(state=FAILED, reason=f"it took more than {settings.limits.seconds} seconds")
    finally:
        _running.remove(process)
        _kill(process)
        process.wait()
    try:
        with open(answer, "rb") as file:
            return RESULT.validate_json(file.read())
    except (OSError, ValueError):
        return _death(status, place)


def _death(status: int, place: str) -> Result:
    """Describe how a child died; only the organiser sees its last error, which may quote the answers.

    A crash is the submission's fault: our own code is Python, which raises errors.
    """
    if status >= 0:
        with open(os.path.join(place, ERROR_FILE), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_ERROR_BYTES))
            errors = visible(file.read(MAX_ERROR_BYTES).decode("utf-8", "replace").rstrip().rpartition("\n")[2])
        return Result(state=FAILED, reason=f"the sandbox process ended with status {status}", aside=errors)
    name = next((one.name for one in signal.Signals if one == -status), str(-status))
    if name == "SIGXCPU":
        return Result(state=FAILED, reason="it exceeded the limit of processor time")
    state = REJECTED if name in CRASHES else FAILED
    return Result(state=state, reason=f"the sandbox process was killed ({name})")


# Children, each a process of its own


_running: list[subprocess.Popen[bytes]] = []


def start_child(place: str) -> subprocess.Popen[bytes]:
    """Start the child of a place, in a home without settings, and with one thread for products of matrices."""
    kept = {name: os.environ[name] for name in (*PASSED_VARIABLES, "GEVAL_PY_BACKEND") if name in os.environ}
    with open(os.path.join(place, ERROR_FILE), "wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM, place, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=place,
            env=kept | {"HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a child with its own children, which may have outlived it."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def end_children(waiting: Iterable[Future[Any]]) -> None:
    """Kill all children until nobody waits for one.

    A thread may be at work between two children, or wait for the database: it is left behind after a second.
    """
    ends, left = time.monotonic() + STOP_SECONDS, set(waiting)
    while left := {one for one in left if not one.done()}:
        for process in _running:
            _kill(process)
        if time.monotonic() > ends:
            return
        wait(left, timeout=STOP_SECONDS / 20)
