"""Where a test's answers are: in the folder of hidden ones or, for a public set, in the challenge."""

from __future__ import annotations

import os

from geval_py.errors import MissingFileError
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE


def expected_of(challenge: str, answers: str, test: str) -> str:
    """Give the path of a test's answers; raises MissingFileError, and what find_file raises."""
    for folder in (answers, challenge):
        found = find_file(os.path.join(folder, test, EXPECTED_FILE))
        if found is not None:
            return found
    raise MissingFileError(what="No file with the expected results", path=os.path.join(answers, test, EXPECTED_FILE))


def input_of(challenge: str, test: str) -> str | None:
    """Give the path of a test's input; None where there is none."""
    return find_file(os.path.join(challenge, test, INPUT_FILE))
