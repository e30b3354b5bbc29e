"""``geval --validate``: what is wrong with a challenge's folder."""

from __future__ import annotations

import sys

from geval_py.authoring.validate import validate_challenge
from geval_py.cli.terminal import complain
from geval_py.reading.splits import Task
from geval_py.text import named, visible

INSTRUCTIONS = """
Run:
    geval --validate --expected-directory CHALLENGE
to validate a directory CHALLENGE representing a Gonito challenge.

"""  # GEval's words


def run(task: Task) -> int:
    """Validate, and say what to do next; gives the exit status, raises GevalError."""
    directory = task.expected_directory
    if directory is None:
        sys.stdout.write(INSTRUCTIONS)
        return 2
    validation = validate_challenge(directory, task)
    sys.stdout.writelines(f"{warning}\n" for warning in validation.warnings)
    sys.stdout.flush()
    for fault in validation.faults:
        complain("\n".join(map(visible, str(fault).split("\n"))))
    if validation.faults:
        return 1
    print(
        f"geval: {named(directory)} is a valid challenge; geval challenge leaks {visible(directory)} tells what it "
        "gives away",
        file=sys.stderr,
    )
    return 0
