"""What an organiser does with a board, command by command, and all that the commands print."""

import contextlib
import io
import json
import os
from base64 import b64encode
from dataclasses import asdict

from geval_py.board.intake import child
from geval_py.board.submission import PARCEL_FILE, FailedError, RejectedError
from geval_py.cli import main
from geval_py.cli.board import pages, submissions, transfer


class Story:
    """Commands that are run in this process; ``said`` keeps all that they print."""

    def __init__(self, folder):
        self.folder, self.said = folder, []

    def __call__(self, *words):
        """Run ``geval board``; gives its exit status, standard output and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["board", *map(str, words)])
        self.said += [out.getvalue(), err.getvalue()]
        return status, out.getvalue(), err.getvalue()

    def fine(self, *words):
        """Run ``geval board`` where nothing goes wrong; gives its standard output."""
        status, out, err = self(*words)
        assert status == 0, err
        return out

    def edit(self, **keys):
        """Change keys of board.yaml, each of one line."""
        path = self.folder / "board/board.yaml"
        lines = path.read_text(encoding="utf-8").splitlines()
        for key, value in keys.items():
            (number,) = (n for n, line in enumerate(lines) if line.startswith(f"{key}:"))
            lines[number] = f"{key}: {value}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_here(job, arguments, *, limits, place):
    """Run a job of the sandbox in this process."""
    document = json.loads(json.dumps({"job": job, "arguments": arguments, "limits": asdict(limits)}))
    answer = child.answer(document, place)
    if "result" in answer:
        return json.loads(json.dumps(answer["result"], default=lambda data: b64encode(data).decode()))
    kind = FailedError if "failed" in answer else RejectedError
    raise kind(path=place, reason=answer[kind.__name__.removesuffix("Error").lower()], aside=answer.get("aside", ""))


TOO_LONG = "it took more than 600 seconds"


class Jobs:
    """The sandbox as tests see it: ``opened`` and ``scored`` are the names of submissions that it was asked to do.

    Those in ``unopened`` cannot be received, those in ``unscored`` not be scored: their children take too long.
    """

    def __init__(self, run):
        self._run = run
        self.opened, self.scored = [], []
        self.unopened, self.unscored = set(), set()

    def run(self, job, arguments, *, limits, place):
        """Run a job as :func:`run_here` does, or fail."""
        parcel = arguments.get("parcel")
        source = arguments.get("source", "")
        name = parcel["name"] if parcel else os.path.basename(source)
        if not parcel:
            self.opened.append(name)
            if name in self.unopened:
                raise FailedError(path=place, reason=TOO_LONG)
        if name in self.unscored:
            if will_be_scored(self._run, job, arguments, limits=limits, place=place):
                self.scored.append(name)
                raise FailedError(path=place, reason=TOO_LONG)
            return UNSCORED
        answer = self._run(job, arguments, limits=limits, place=place)
        self.scored += [name] if answer.get("scored") else []
        return answer


UNSCORED = {"problems": [], "reason": "", "scored": []}


def will_be_scored(run, job, arguments, *, limits, place):
    """Receive a submission, and return the digest of its files if a child would score it, else None."""
    if "parcel" in arguments:
        return arguments["parcel"]["digest"]
    run(job, arguments | {"left": 0}, limits=limits, place=place)
    with open(os.path.join(place, PARCEL_FILE), encoding="ascii") as file:
        parcel = json.load(file)
    tests = [output["test"] for output in parcel["outputs"]]
    cost = max((tests.count(test) for test in arguments["hidden"]), default=1)
    is_left = arguments["left"] is None or max(cost, 1) <= arguments["left"]
    return parcel["digest"] if is_left and parcel["digest"] not in arguments["earlier"] else None


def set_clock(patch, moment):
    """Run all later commands at a moment."""
    for module in (pages, submissions, transfer):
        patch.setattr(module, "now", lambda: moment)
