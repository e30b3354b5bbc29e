"""Where a test's answers are: in the folder of hidden ones or, for a public set, in the challenge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from geval_py.errors import MissingFileError
from geval_py.reading.challenge import Challenge
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET

if TYPE_CHECKING:
    from geval_py.board.settings import Settings


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


def sets_to_come(settings: Settings) -> list[str]:
    """Name the sets of the challenge that are not scored, and may be one day: those with an input, but for training.

    There is none in a challenge that is not there, which is said once something is scored. Raises OSError.
    """
    if not os.path.isdir(settings.challenge):
        return []
    names = Challenge.open(settings.challenge).split_names
    tests = {test.name for test in settings.tests}
    return [
        name
        for name in names
        if name not in tests and not name.startswith(TRAINING_SET) and input_of(settings.challenge, name) is not None
    ]
