"""``geval --init``: a new challenge with sample data."""

from __future__ import annotations

import sys

from geval_py.authoring.init import init_challenge
from geval_py.cli.settings import Settings
from geval_py.reading.splits import Task
from geval_py.text import named, visible

INSTRUCTIONS = """
Run:
    geval --init --expected-directory CHALLENGE --metric METRIC-NAME --precision NUMBER-OF-DIGITS
to create a directory CHALLENGE representing a Gonito challenge.

(Note that `--out-directory` option is not taken into account with `--init` option.)

"""  # GEval's words


def run(task: Task, settings: Settings) -> int:
    """Write the challenge, and say what to do next; gives the exit status, raises GevalError."""
    if task.expected_directory is None:
        sys.stdout.write(INSTRUCTIONS)
        return 2
    init_challenge(task, precision=settings.precision, percentage=settings.percentage)
    print(_what_next(task.expected_directory), file=sys.stderr)
    return 0


def _what_next(directory: str) -> str:
    return (
        f"geval: {named(directory)} holds a challenge with sample data. Replace the data and the README, and then\n"
        f"  geval --validate --expected-directory {visible(directory)}  # tells whether all fits together\n"
        f"  geval challenge leaks {visible(directory)}                  # and what it gives away\n"
        "To cut a challenge from texts of your own there is geval challenge make."
    )
