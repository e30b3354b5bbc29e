"""Strangers' files are opened in a child process alone, under limits; one that blows up takes nothing with it.

    parcel = receive_isolated(source, place, settings)
    findings = look_into(parcel, place, settings, [("test-A", "test-A/out.tsv", ("LogLossHashed",))])

``place`` is an empty folder of the caller's, who removes it; the copies of a parcel's files lie there until then.
Both raise RejectedError for what is the submitter's fault and FailedError for what may be the board's, with one
sentence each, and GevalErrors for what is the caller's, before any child is started. Children may run at once, each
with a place of its own, from threads too.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, TypeAlias

from geval_py.board.answers import references_of, sets_to_come
from geval_py.board.intake.git import PASSED
from geval_py.board.intake.receiving import check_source
from geval_py.board.intake.worker import ANSWER_FILE, JOB_FILE
from geval_py.board.settings import Limits, Settings
from geval_py.board.submission import (
    Document,
    FailedError,
    Findings,
    Parcel,
    RejectedError,
    findings_of,
    parcel_document,
    parcel_of,
    read_document,
    write_document,
)
from geval_py.errors import ClusterError, DataError
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.board.answers import References
    from geval_py.scoring.blocks import Workers


# It starts faster than -m does.
PROGRAM = "import sys, geval_py.board.intake.worker as worker; sys.exit(worker.main(sys.argv[1]))"
GRACE_SECONDS = 5  # beyond the limit, in which a child may say itself that its time is over
MOST_SAID = 2000  # bytes at the end of a child's standard error that are kept


def receive_isolated(source: str, place: str, settings: Settings) -> Parcel:
    """Receive a folder, an archive or ``git+URL@BRANCH`` into a place: the submission's own files, copied.

    Raises RejectedError and FailedError; MissingFileError for a source that is not there, UsageError for one that is
    nothing of these, or comes by a transport that board.yaml does not allow.
    """
    check_source(source, settings.transports)
    arguments = {
        "source": source if source.startswith("git+") else os.path.abspath(source),
        "tests": [test.name for test in settings.tests],
        "to_come": sets_to_come(settings),
        "transports": list(settings.transports),
    }
    return parcel_of(run_isolated("receive", arguments, limits=settings.limits, place=place))


def look_into(
    parcel: Parcel,
    place: str,
    settings: Settings,
    wanted: Sequence[tuple[str, str, Sequence[str]]],
    *,
    check: bool = True,
) -> Findings:
    """Check all outputs of a parcel, without the rules that need the answers, and score those that are wanted.

    What is ``wanted`` is a test, the name of a file for it, and metrics as in board.yaml; nothing is scored where a
    rule finds an error. Without ``check`` all is taken to be checked already. The metric that ranks has the losses
    of the lines and an interval too. Raises RejectedError, FailedError.
    """
    arguments = {
        "parcel": parcel_document(parcel),
        "wanted": [[test, file, list(metrics)] for test, file, metrics in wanted],
        "check": check,
        "challenge": settings.challenge,
        "answers": settings.answers,
        "metric": settings.metric,
        "seed": settings.seed,
    }
    findings = findings_of(run_isolated("look", arguments, limits=settings.limits, place=place))
    if all(one.losses is None for one in findings.scored):
        return findings
    from geval_py.board.ranking.uncertainty import with_interval

    return replace(findings, scored=tuple(with_interval(one, settings.seed) for one in findings.scored))


def run_isolated(job: str, arguments: Document, *, limits: Limits, place: str) -> Document:
    """Do a job of :mod:`geval_py.board.intake.worker` in a child process; raises RejectedError, FailedError.

    The child has limits on memory, processor time and the size of files, no input, no terminal, a session of its
    own, which is killed whole when time is over, and none of the environment but what it needs.
    """
    write_document(os.path.join(place, JOB_FILE), {"job": job, "arguments": arguments, "limits": asdict(limits)})
    answer = os.path.join(place, ANSWER_FILE)
    if os.path.exists(answer):
        os.remove(answer)
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM, place],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=place,
        env=_environment(place),
        start_new_session=True,
    )
    said, in_time = _wait(process, limits.seconds + GRACE_SECONDS)
    if not in_time:
        raise FailedError(path=place, reason=f"it took more than {limits.seconds} seconds")
    return _result(answer, process.returncode, said)


def _environment(place: str) -> dict[str, str]:
    """Give the environment of a child; a home where no one has put any settings, one thread for a product."""
    kept = {name: os.environ[name] for name in (*PASSED, "GEVAL_PY_BACKEND") if name in os.environ}
    return kept | {"HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[str, bool]:
    """Wait for the end of a child, at most some seconds, and end what is left of its session.

    Gives the last line that it said, and whether it ended by itself.
    """
    deadline = time.monotonic() + seconds
    try:
        if process.stderr is None:
            raise AssertionError("a child's standard error is a pipe")
        with process.stderr:
            said, ended = _last_bytes(process.stderr, deadline)
    finally:
        _kill_session(process)
        process.wait()
    lines = said.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), ""), ended


def _last_bytes(pipe: IO[bytes], deadline: float) -> tuple[bytes, bool]:
    """Read a pipe until its writers are gone or a moment has come; gives its last bytes, and whether they are."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    return said, True
                said = (said + data)[-MOST_SAID:]
    return said, False


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and all that it started. It is not waited for yet, so that no one else has its number."""
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has not come to its session yet, or is gone
        process.kill()


def _result(answer: str, status: int, said: str) -> Document:
    """Read what a child answered, and raise what it raised."""
    try:
        document = read_document(answer)
        kind, value = next(iter(document.items()))
        aside = str(document.get("aside", ""))
    except (OSError, ValueError, StopIteration):
        raise FailedError(path=answer, reason=_death(status, said)) from None
    if kind == "rejected":
        raise RejectedError(path=answer, reason=str(value), aside=aside)
    if kind == "failed" or not isinstance(value, dict):
        raise FailedError(path=answer, reason=str(value), aside=aside)
    return value


def _death(status: int, said: str) -> str:
    """Say in one sentence how a child died: by which error, but not what that said, which may be of the answers."""
    if status < 0:
        if -status == getattr(signal, "SIGXCPU", None):
            return "it took more processor time than is allowed"
        name = next((one.name for one in signal.Signals if one == -status), str(-status))
        return f"the process that looked into it was killed ({name})"
    error = re.match(r"[\w.]*(?:Error|Exception|Exit)\b", said)
    return f"the process that looked into it ended with status {status}" + (f" ({error[0]})" if error else "")


# Workers elsewhere look into submissions, each in a child process there, as on one machine.


Wanted: TypeAlias = "Sequence[tuple[str, str, Sequence[str]]]"
LookInto: TypeAlias = "Callable[[Parcel, str, Settings, Wanted], Findings]"


def looking_on(workers: Workers, references: References) -> LookInto:
    """Return a function that does as :func:`look_into` on a worker; several threads may call it at once.

    ``references`` are the board's. It raises ClusterError too, also for a worker that has not the same files.
    """
    return partial(_look_on, workers, references)


def _look_on(
    workers: Workers, references: References, parcel: Parcel, _: str, settings: Settings, wanted: Wanted
) -> Findings:
    known = replace(settings, database="")  # which workers need not, and which may have a password in it
    found = workers.call(look_there, parcel, known, list(wanted), dict(references))
    if isinstance(found, str):
        raise ClusterError(address=workers.address, reason=found)
    if isinstance(found, RejectedError | FailedError):
        raise found
    findings: Findings = found
    return findings


def look_there(
    parcel: Parcel, settings: Settings, wanted: Wanted, references: References
) -> Findings | RejectedError | FailedError | str:
    """Look into a parcel in a place of this machine; gives the errors too, since trying again would not help.

    Of a machine that has not the board's files it says so.
    """
    fault = _fault(parcel, settings, references)
    if fault:
        return fault
    try:
        with TemporaryDirectory(prefix="geval-board-") as place:
            return look_into(parcel, place, settings, wanted)
    except (RejectedError, FailedError) as error:
        return error
    except OSError as error:
        return f"a worker cannot look into a submission: {error.strerror or error}"


def _fault(parcel: Parcel, settings: Settings, references: References) -> str:
    """Say what a machine lacks: a file that is to be looked into, or the challenge as the board has it."""
    names = {output.file for output in parcel.outputs}
    for file in parcel.files:
        if file.name in names and not os.path.isfile(file.path):
            return f"a worker has no {named(file.path)}: TMPDIR has to be a folder that all share"
    try:
        is_same = references_of(settings) == references
    except DataError as error:
        return f"a worker has not all files of the challenge: {str(error).partition(chr(10))[0]}"
    return "" if is_same else f"a worker has another challenge in {named(settings.challenge)}, or other answers"
