"""What an organiser does with a board, command by command, and all that the commands print."""

import contextlib
import io
import json
from dataclasses import asdict

from geval_py.board.intake import sandbox_child
from geval_py.board.submission import FailedError, RejectedError
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
    document = json.loads(json.dumps({"job": job, "arguments": arguments}))
    answer = sandbox_child._answer(document, asdict(limits), place)
    if "result" in answer:
        return json.loads(json.dumps(answer["result"]))
    kind = FailedError if "failed" in answer else RejectedError
    raise kind(path=place, reason=answer[kind.__name__.removesuffix("Error").lower()], aside=answer.get("aside", ""))


def set_clock(patch, moment):
    """Run all later commands at a moment."""
    for module in (pages, submissions, transfer):
        patch.setattr(module, "now", lambda: moment)
