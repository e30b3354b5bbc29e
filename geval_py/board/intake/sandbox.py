"""The sandbox: strangers' files are opened only in a child process under limits, here or by a worker elsewhere.

    parcel = receive_in_sandbox(source, place, settings)
    findings = score_in_sandbox(parcel, place, settings, [("test-A", "test-A/out.tsv", ("LogLossHashed",))])

``place`` is an empty folder that the caller removes; it holds the copies of a parcel's files. Both functions raise
RejectedError for a fault of the submitter, FailedError for a possible fault of the board, with one sentence each, and
other GevalErrors for a fault of the caller, before any child is started. Children may run at once, also from threads,
each with its own place.
"""

from __future__ import annotations

import atexit
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from geval_py.board import submission
from geval_py.board.intake.fork_server import ForkedChild, ForkServer
from geval_py.board.intake.identity import GIT, check_source
from geval_py.board.intake.workspace import workspace
from geval_py.board.references import References, references_of
from geval_py.board.settings import Limits, Settings
from geval_py.errors import ClusterError, DataError
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.scoring.blocks import Workers


Wanted: TypeAlias = "Sequence[tuple[str, str, Sequence[str]]]"  # tests, names of files, metrics
Child: TypeAlias = "subprocess.Popen[bytes] | ForkedChild"
Scorer: TypeAlias = "Callable[[submission.Parcel, str, Settings, Wanted], submission.Findings]"

FORKS = sys.platform == "linux"
# It starts faster than with -m.
PROGRAM = (
    "import sys, geval_py.board.intake.sandbox_child as child; sys.exit(child.main(sys.argv[1], int(sys.argv[2])))"
)
STOP_SECONDS = 1  # for which an interrupt waits
GRACE_SECONDS = 5  # beyond the limit, in which a child may report itself that its time is over
MOST_KEPT = 2000  # bytes at the end of a child's standard error


def receive_in_sandbox(source: str, place: str, settings: Settings) -> submission.Parcel:
    """Copy the submission's files from a folder, an archive or ``git+URL@BRANCH`` into a place.

    ``settings`` are those of the phase in which it arrived: it needs an output for one of the phase's tests.
    Raises RejectedError and FailedError; MissingFileError for a missing source, UsageError for a source of another
    kind, and for a transport that board.yaml does not allow.
    """
    check_source(source, settings.transports)
    arguments = {
        "source": source if source.startswith(GIT) else os.path.abspath(source),
        "tests": [test.name for test in settings.tests],
        "variants": settings.variants,
        "transports": list(settings.transports),
    }
    return submission.parcel_of(run_in_sandbox("receive", arguments, limits=settings.limits, place=place))


def score_in_sandbox(
    parcel: submission.Parcel, place: str, settings: Settings, wanted: Wanted, *, check: bool = True
) -> submission.Findings:
    """Check all outputs of a parcel, by the rules that need no answers, and score the wanted ones.

    ``wanted`` are tests, each with the name of a file and metrics as in board.yaml. If a rule finds an error, nothing
    is scored. Without ``check`` the outputs count as checked. The score by the ranking metric has an interval and
    the losses of the lines. Raises RejectedError, FailedError.
    """
    arguments = {
        "parcel": submission.parcel_document(parcel),
        "wanted": [[test, file, list(metrics)] for test, file, metrics in wanted],
        "check": check,
        "challenge": settings.challenge,
        "answers": settings.answers,
        "metric": settings.metric,
        "seed": settings.seed,
    }
    findings = submission.findings_of(run_in_sandbox("score", arguments, limits=settings.limits, place=place))
    if all(one.losses is None for one in findings.scored):
        return findings
    from geval_py.board.ranking.uncertainty import with_interval

    return replace(findings, scored=tuple(with_interval(one, settings.seed) for one in findings.scored))


def report_in_sandbox(path: str, test: str, settings: Settings, place: str) -> str:
    """Explain an output of a test whose answers are public, by the ranking metric; return the path of the page.

    The hidden answers are not looked at. Raises FailedError.
    """
    arguments = {"path": path, "name": os.path.basename(path), "test": test}
    arguments |= {"challenge": settings.challenge, "metric": settings.metric}
    found = run_in_sandbox("report", arguments, limits=settings.limits, place=place)
    return os.path.join(place, str(found["page"]))


def run_in_sandbox(job: str, arguments: submission.Document, *, limits: Limits, place: str) -> submission.Document:
    """Run a job of :mod:`geval_py.board.intake.sandbox_child` in a child process; raises RejectedError, FailedError.

    The child has limits on memory, processor time and the size of files; no input, no terminal; only the variables
    of the environment that it needs; and its own session, which is killed when the time is over.
    """
    submission.write_document(
        os.path.join(place, submission.JOB_FILE), {"job": job, "arguments": arguments, "limits": asdict(limits)}
    )
    answer = os.path.join(place, submission.ANSWER_FILE)
    if os.path.exists(answer):
        os.remove(answer)
    child = start_child(place)
    with _lock:
        _running[place] = child
    error, in_time = _wait(child, place, limits.seconds + GRACE_SECONDS)
    if not in_time:
        raise submission.FailedError(path=place, reason=f"it took more than {limits.seconds} seconds")
    return _result(answer, child.returncode, error)


def start_child(place: str) -> Child:
    """Start the child that does the job in a place: fork it or, where that is not possible, start an interpreter."""
    environment = _environment(place)
    if not FORKS:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM, place, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=place,
            env=environment,
            start_new_session=True,
        )
    server = fork_server()
    try:
        return server.start(place, environment)
    except ConnectionError:  # the server was killed
        with _lock:
            _fork_servers.discard(server)  # not closed here: other threads may still find out
        return fork_server().start(place, environment)


def get_ready() -> None:
    """Start what makes the start of the first child quick, and do not wait for it."""
    if FORKS:
        fork_server()


def fork_server() -> ForkServer:
    """Return the server that forks children, which a first call starts; it is ready a little later."""
    with _lock:
        if not _fork_servers:
            server = ForkServer(_environment("/"))
            atexit.register(server.close)
            _fork_servers.add(server)
        (server,) = _fork_servers
        return server


def _environment(place: str) -> dict[str, str]:
    """Return the environment of a child: a home without settings, and one thread for products of matrices."""
    kept = {
        name: os.environ[name] for name in (*submission.PASSED_VARIABLES, "GEVAL_PY_BACKEND") if name in os.environ
    }
    return kept | {"HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}


def _wait(process: Child, place: str, seconds: float) -> tuple[str, bool]:
    """Wait for a child, at most some seconds, and kill what is left of its session.

    Return the last line of its standard error, and whether it ended by itself.
    """
    deadline = time.monotonic() + seconds
    try:
        if process.stderr is None:
            raise AssertionError("a child's standard error is a pipe")
        with process.stderr:
            last, ended = _last_bytes(process.stderr, deadline)
    finally:
        with _lock:
            del _running[place]
            _kill_session(process)
        process.wait()
    lines = last.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), ""), ended


def _last_bytes(pipe: IO[bytes], deadline: float) -> tuple[bytes, bool]:
    """Read a pipe until its writers close it or the deadline; return its last bytes, and whether it was closed."""
    last = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    return last, True
                last = (last + data)[-MOST_KEPT:]
    return last, False


_lock = threading.Lock()
_fork_servers: set[ForkServer] = set()  # at most one
_running: dict[str, Child] = {}  # children that are not waited for yet, by their places


def end_children(folder: str, waiting: Iterable[Future[Any]]) -> None:
    """Kill the children whose places are in a folder, with their own children, until nobody waits for one.

    A thread may be at work between two children, or wait for the database: it is left behind after a second.
    """
    ends, left = time.monotonic() + STOP_SECONDS, set(waiting)
    while left := {one for one in left if not one.done()}:
        with _lock:
            for place, process in _running.items():
                if os.path.dirname(place) == folder:
                    _kill_session(process)
        if time.monotonic() > ends:
            return
        wait(left, timeout=STOP_SECONDS / 20)


def _kill_session(process: Child) -> None:
    """Kill a child and its children. The child is not waited for yet, so no other process can have its id."""
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # its session has not begun yet, or it is gone
        process.kill()


def _result(answer: str, status: int, error: str) -> submission.Document:
    """Read a child's answer; raise the error that it raised."""
    try:
        document = submission.read_document(answer)
        kind, value = next(iter(document.items()))
        aside = str(document.get("aside", ""))
    except (OSError, ValueError, StopIteration):
        raise submission.FailedError(path=answer, reason=_death(status, error)) from None
    if kind == "rejected":
        raise submission.RejectedError(path=answer, reason=str(value), aside=aside)
    if kind == "failed" or not isinstance(value, dict):
        raise submission.FailedError(path=answer, reason=str(value), aside=aside)
    return value


def _death(status: int, error: str) -> str:
    """Describe how a child died, by the type of its error only: the message may quote the answers."""
    if status < 0:
        if -status == getattr(signal, "SIGXCPU", None):
            return "it took more processor time than is allowed"
        name = next((one.name for one in signal.Signals if one == -status), str(-status))
        return f"the sandbox process was killed ({name})"
    kind = re.match(r"[\w.]*(?:Error|Exception|Exit)\b", error)
    return f"the sandbox process ended with status {status}" + (f" ({kind[0]})" if kind else "")


# Workers elsewhere run the sandbox on their machines.


def scorer_on(workers: Workers, references: References) -> Scorer:
    """Return a :func:`score_in_sandbox` that runs on a worker; several threads may call it at once.

    It also raises ClusterError, for one if a worker's files do not have the board's ``references``.
    """

    def score(parcel: submission.Parcel, _: str, settings: Settings, wanted: Wanted) -> submission.Findings:
        known = replace(settings, database="")  # it may hold a password
        found = workers.call(score_on_worker, parcel, known, list(wanted), dict(references))
        if isinstance(found, str):
            raise ClusterError(address=workers.address, reason=found)
        if isinstance(found, submission.SubmissionError):
            raise found
        findings: submission.Findings = found
        return findings

    return score


def score_on_worker(
    parcel: submission.Parcel, settings: Settings, wanted: Wanted, references: References
) -> submission.Findings | submission.SubmissionError | str:
    """Score a parcel on this machine.

    Errors are returned, since Dask would try again after a raised one; a string tells what this worker lacks.
    """
    fault = _worker_fault(parcel, settings, references)
    if fault:
        return fault
    try:
        with workspace() as place:
            return score_in_sandbox(parcel, place, settings, wanted)
    except submission.SubmissionError as error:
        return error
    except OSError as error:
        return f"a worker cannot score a submission: {error.strerror or error}"


def _worker_fault(parcel: submission.Parcel, settings: Settings, references: References) -> str:
    """Describe what a worker lacks: a submitted file, or the board's version of the challenge; "" for nothing."""
    names = {output.file for output in parcel.outputs}
    for file in parcel.files:
        if file.name in names and not os.path.isfile(file.path):
            return f"a worker has no {named(file.path)}: TMPDIR has to be a folder that all share"
    try:
        is_same = references_of(settings) == references
    except DataError as error:
        return f"a worker has not all files of the challenge: {str(error).partition(chr(10))[0]}"
    return "" if is_same else f"a worker has another challenge in {named(settings.challenge)}, or other answers"
