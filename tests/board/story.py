"""What an organiser does with a board, command by command, and all that the commands print."""

import contextlib
import io
import json
import os
from dataclasses import asdict
from pathlib import Path

from geval_py.board.intake import child, sandbox
from geval_py.board.submission import ANSWER_FILE, FAILED, PARCEL_FILE, Result, attributes, write_document
from geval_py.cli import main
from geval_py.cli.board import boards


class Story:
    """Commands that are run in this process; ``said`` keeps all that they print."""

    def __init__(self, folder):
        self.folder, self.said = folder, []

    def __call__(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["board", *map(str, words)])
        self.said += [out.getvalue(), err.getvalue()]
        return status, out.getvalue(), err.getvalue()

    def fine(self, *words):
        status, out, err = self(*words)
        assert status == 0, err
        return out


def run_here(arguments, settings, place):
    arguments = arguments | attributes(settings, sandbox.SETTINGS)
    arguments |= {"limits": asdict(settings.limits), "tests": {test.name: asdict(test) for test in settings.tests}}
    answer = os.path.join(place, ANSWER_FILE)
    write_document(answer, asdict(child.answer(json.loads(json.dumps(arguments)), place)))
    return sandbox.RESULT.validate_json(Path(answer).read_bytes())


TOO_LONG = Result(state=FAILED, reason="it took more than 600 seconds")


class Jobs:
    """The sandbox as tests see it: ``opened`` and ``scored`` are the names of submissions that it was asked to do.

    Those in ``unopened`` cannot be received, those in ``unscored`` not be scored: their children take too long.
    """

    def __init__(self, run):
        self._run = run
        self.opened, self.scored = [], []
        self.unopened, self.unscored = set(), set()

    def run(self, arguments, settings, place):
        """Run a job as :func:`run_here` does, or fail."""
        parcel, source = arguments.get("parcel"), arguments.get("source", "")
        name = parcel["name"] if parcel else os.path.basename(source)
        if not parcel:
            self.opened.append(name)
            if name in self.unopened:
                return TOO_LONG
        if name in self.unscored:
            if will_be_scored(self._run, arguments, settings, place):
                self.scored.append(name)
                return TOO_LONG
            return Result()
        result = self._run(arguments, settings, place)
        self.scored += [name] if result.scored else []
        return result


def will_be_scored(run, arguments, settings, place):
    """Receive a submission, and return the digest of its files if a child would score it, else None."""
    if "parcel" in arguments:
        return arguments["parcel"]["digest"]
    run(arguments | {"metrics": []}, settings, place)
    if not os.path.exists(os.path.join(place, PARCEL_FILE)):
        return None
    with open(os.path.join(place, PARCEL_FILE), encoding="ascii") as file:
        return json.load(file)["digest"]


def set_clock(patch, moment):
    """Run all later commands at a moment."""
    patch.setattr(boards, "now", lambda: moment)
