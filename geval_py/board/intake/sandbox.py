"""The sandbox: strangers' files are opened only in a child process under limits.

    result = process_source(source, place, settings, settings.metrics)
    result = process_parcel(parcel, place, settings, [("test-A", "test-A/out.tsv", ("LogLossHashed",))])

``place`` is an empty folder that the caller removes; it holds the copies of a parcel's files. Children may run at
once, also from threads, each with its own place.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from geval_py.board.intake.identity import GIT
from geval_py.board.settings import BoardSettings, Limits
from geval_py.board.submission import (
    ANSWER_FILE,
    FAILED,
    JOB_FILE,
    PARCEL_FILE,
    PASSED_VARIABLES,
    REJECTED,
    SCORED,
    FailedError,
    JsonDocument,
    Parcel,
    RejectedError,
    Result,
    SubmissionError,
    parcel_of,
    read_document,
    scored_of,
    write_document,
)
from geval_py.text import words

Wanted: TypeAlias = "Sequence[tuple[str, str, Sequence[str]]]"  # tests, names of files, metrics

# It starts faster than with -m.
PROGRAM = "import sys, geval_py.board.intake.child as child; sys.exit(child.main(sys.argv[1], int(sys.argv[2])))"
ERROR_FILE = "errors.txt"  # in its place, what a child writes to standard error
STOP_SECONDS = 1  # for which an interrupt waits
GRACE_SECONDS = 5  # beyond the limit, in which a child may report itself that its time is over
MAX_ERROR_BYTES = 2000  # at the end of a child's standard error
CRASHES = words("SIGABRT SIGBUS SIGFPE SIGILL SIGSEGV SIGSYS SIGTRAP")  # a program dies by itself


def process_source(
    source: str,
    place: str,
    settings: BoardSettings,
    metrics: Sequence[str],
    *,
    earlier: Collection[str] = (),
    left: int | None = None,
) -> Result:
    """Copy a submission's files from a folder, an archive or git+URL@BRANCH into a place, check and score them.

    ``settings`` are those of the phase in which it arrived: it needs an output for one of the phase's tests. Nothing
    is scored if its digest is one of ``earlier``, or if it counts as more submissions than are ``left`` of a quota.
    """
    arguments = {
        "source": source if source.startswith(GIT) else os.path.abspath(source),
        "tests": [test.name for test in settings.tests],
        "hidden": [test.name for test in settings.tests if not test.visible],
        "variants": settings.variants,
        "transports": list(settings.transports),
        "metrics": list(metrics),
        "earlier": list(earlier),
        "left": left,
    }
    result = _process(arguments, place, settings)
    received = os.path.join(place, PARCEL_FILE)
    return replace(result, parcel=parcel_of(read_document(received))) if os.path.exists(received) else result


def process_parcel(parcel: Parcel, place: str, settings: BoardSettings, wanted: Wanted) -> Result:
    """Check all outputs of a parcel, by the rules that need no answers, and score the wanted ones.

    ``wanted`` are tests, each with the name of a file and metrics as in board.yaml. If a rule finds an error, nothing
    is scored. The score by the ranking metric has an interval and the losses of the lines.
    """
    arguments = {"parcel": asdict(parcel), "wanted": list(wanted)}
    return replace(_process(arguments, place, settings), parcel=parcel)


def _process(arguments: JsonDocument, place: str, settings: BoardSettings) -> Result:
    arguments |= {name: getattr(settings, name) for name in words("challenge answers metric seed")}
    arguments["documents"] = {test.name: test.documents for test in settings.tests}
    try:
        answer = run_in_sandbox("process", arguments, limits=settings.limits, place=place)
    except SubmissionError as error:
        state = REJECTED if isinstance(error, RejectedError) else FAILED
        return Result(state=state, reason=error.reason, aside=error.aside)
    scored, reason = tuple(map(scored_of, answer["scored"])), str(answer["reason"])
    state = REJECTED if reason else SCORED
    return Result(state=state, reason=reason, problems=tuple(answer["problems"]), scored=scored)


def run_in_sandbox(job: str, arguments: JsonDocument, *, limits: Limits, place: str) -> JsonDocument:
    """Run a job of :mod:`geval_py.board.intake.child` in a child process; raises RejectedError, FailedError.

    The child has limits on memory, processor time and the size of files; no input, no terminal; only the variables
    of the environment that it needs; and its own session, which is killed when the time is over.
    """
    document = {"job": job, "arguments": arguments, "limits": asdict(limits)}
    write_document(os.path.join(place, JOB_FILE), document)
    answer = os.path.join(place, ANSWER_FILE)
    if os.path.exists(answer):
        os.remove(answer)
    process = start_child(place)
    _running.append(process)
    try:
        status = process.wait(limits.seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        raise FailedError(path=place, reason=f"it took more than {limits.seconds} seconds") from None
    finally:
        _running.remove(process)
        _kill(process)
        process.wait()
    try:
        document = read_document(answer)
        kind, value = next(iter(document.items()))
    except (OSError, ValueError, StopIteration):
        raise _death(status, place) from None
    aside = str(document.get("aside", ""))
    if kind == "rejected":
        raise RejectedError(path=answer, reason=str(value), aside=aside)
    if kind == "failed" or not isinstance(value, dict):
        raise FailedError(path=answer, reason=str(value), aside=aside)
    return value


def _death(status: int, place: str) -> SubmissionError:
    """Describe how a child died, by the type of its last error only: the message may quote the answers.

    A crash is the submission's fault: our own code is Python, which raises errors.
    """
    if status >= 0:
        errors = ""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(place, ERROR_FILE), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_ERROR_BYTES))
            errors = file.read(MAX_ERROR_BYTES).decode("utf-8", "replace").rstrip()
        kind = re.match(r"[\w.]*(?:Error|Exception|Exit)\b", errors.rpartition("\n")[2])
        ended = f"the sandbox process ended with status {status}"
        return FailedError(ended + (f" ({kind[0]})" if kind else ""))
    name = next((one.name for one in signal.Signals if one == -status), str(-status))
    if name == "SIGXCPU":
        return FailedError("it exceeded the limit of processor time")
    crashed = RejectedError if name in CRASHES else FailedError
    return crashed(f"the sandbox process was killed ({name})")


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
