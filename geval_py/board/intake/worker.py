"""The child process that looks into a submission, started by :mod:`geval_py.board.intake.isolation`.

It reads PLACE/job.json, limits itself before it touches anything of a stranger's, and writes PLACE/answer.json.
"""

from __future__ import annotations

import os
import sys
import time

from geval_py.board.intake.crossing import Document, read_document, write_document
from geval_py.board.values import FailedError, RejectedError

JOB_FILE, ANSWER_FILE = "job.json", "answer.json"
NICENESS = 10


def main(place: str) -> int:
    """Do the job in a place; gives the exit status, 0 wherever there is an answer."""
    document = read_document(os.path.join(place, JOB_FILE))
    limits = document["limits"]
    _limit(limits)
    write_document(os.path.join(place, ANSWER_FILE), _answer(document, limits, place))
    return 0


def _answer(document: Document, limits: Document, place: str) -> Document:
    try:
        return {"result": JOBS[document["job"]](document["arguments"], limits, place)}
    except RejectedError as error:
        return {"rejected": error.reason, "aside": error.aside}
    except FailedError as error:
        return {"failed": error.reason, "aside": error.aside}
    except MemoryError:
        return {"failed": f"it needs more than {limits['memory']} bytes of memory"}
    except OSError as error:
        return {"failed": f"a file could not be read or written: {error.strerror}"}


def _limit(limits: Document) -> None:
    """Limit memory, processor time (that of all cores together) and the size of files; no core is dumped."""
    if sys.platform == "win32":
        return  # the wall clock alone, which the parent holds
    import resource

    os.nice(NICENESS)
    seconds = limits["seconds"] * (os.cpu_count() or 1)
    for what, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["bytes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _receive(arguments: Document, limits: Document, place: str) -> Document:
    from geval_py.board.intake import receive
    from geval_py.board.intake.budget import Budget
    from geval_py.board.intake.crossing import parcel_document
    from geval_py.board.intake.outputs import Sets

    budget = Budget(bytes=limits["bytes"], files=limits["files"], ends=time.monotonic() + limits["seconds"])
    sets = Sets(tests=arguments["tests"], to_come=arguments["to_come"])
    parcel = receive(arguments["source"], place, budget, sets, arguments["transports"])
    return parcel_document(parcel)


def _look(arguments: Document, limits: Document, place: str) -> Document:
    from geval_py.board.intake.crossing import findings_document
    from geval_py.board.intake.looking import look

    del place
    return findings_document(look(arguments, limits["bytes"]))


JOBS = {"receive": _receive, "look": _look}
