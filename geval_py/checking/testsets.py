"""Which test set an output is for: that of its folder, that which is named, or the only one of the challenge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from geval_py.errors import UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.config import CONFIG_FILE
from geval_py.reading.sources import naming
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET
from geval_py.text import natural_order, nearest, visible

DATA_FILES = frozenset(name + end for name in (INPUT_FILE, EXPECTED_FILE) for end in ("", *COMPRESSED_ENDINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The test set that is meant, and its challenge; ``test`` is None where it cannot be told, as ``doubt`` says."""

    challenge: str
    test: str | None = None
    doubt: str = ""


def meant_test_set(folder: str | None, challenge: str | None = None, test: str | None = None) -> Meant:
    """Tell which test set an output in a folder (None: in none) is for; challenge and test set may be named."""
    if test is not None:
        return Meant(challenge=challenge or _challenge_with(test, folder), test=test)
    name = None if folder is None else os.path.basename(folder)
    if challenge is None:
        if folder is not None and (holds_data(folder) or not test_sets(folder)):
            return Meant(challenge=os.path.dirname(folder), test=name)
        challenge = folder or os.curdir
    known = test_sets(challenge)
    if name in known or len(known) == 1:
        return Meant(challenge=challenge, test=name if name in known else known[0])
    doubt = f"it may be for {visible(' or '.join(known))}" if known else f"`{visible(challenge)}` has no test set"
    return Meant(challenge=challenge, doubt=doubt)


def _challenge_with(test: str, folder: str | None) -> str:
    """Find the challenge with a test set: above an output's folder, the folder itself, or the current one."""
    places = [os.curdir] if folder is None else [os.path.dirname(folder), folder, os.curdir]
    return next((place for place in places if holds_data(os.path.join(place, test))), places[0])


def check_challenge(path: str, tests: Sequence[str] = ()) -> None:
    """Raise UsageError for what is no challenge, and for a challenge with test sets, but not those named."""
    if not os.path.isdir(path):
        raise _no_challenge(path, "it is a file, not a folder" if os.path.exists(path) else _not_there(path))
    try:
        names = _names_in(path)
    except OSError as error:
        raise _no_challenge(path, f"it cannot be read: {error.strerror}") from error
    known = test_sets(path)
    if not known and CONFIG_FILE not in names and not _folders(path, names, TRAINING_SET):
        if holds_data(path):
            above = os.path.normpath(os.path.join(path, os.pardir))
            raise _no_challenge(path, f"it is a test set\n  did you mean `{visible(above)}`?")
        raise _no_challenge(path, f"it has no {CONFIG_FILE}, and no folder with {INPUT_FILE} or {EXPECTED_FILE}")
    for test in tests:
        if known and not os.path.isdir(os.path.join(path, test)):
            there = visible(", ".join(known))
            raise UsageError(message=f"`{visible(path)}` has no test set `{visible(test)}`\n  there are {there}")


def _no_challenge(path: str, reason: str) -> UsageError:
    return UsageError(message=f"`{visible(path)}` is no challenge: {reason}")


def _not_there(path: str) -> str:
    folder, name = os.path.split(os.path.normpath(path))
    close = nearest(name, _folders_in(folder or os.curdir))
    return "there is no such folder" + (
        f"\n  did you mean `{visible(os.path.join(folder, close))}`?" if close else ""
    )


def test_sets(challenge: str) -> list[str]:
    """Give the folders with answers or inputs, but those to train with, in natural order; none where nothing is."""
    names = (name for name in _folders_in(challenge) if not name.startswith(TRAINING_SET))
    return sorted((name for name in names if holds_data(os.path.join(challenge, name))), key=natural_order)


def holds_data(folder: str) -> bool:
    """Tell whether a folder has answers or inputs, be they links that lead nowhere.

    Where it may not be looked into, its name tells.
    """
    try:
        return not DATA_FILES.isdisjoint(os.listdir(folder))
    except PermissionError:
        return _is_called_test_set(os.path.basename(folder))
    except OSError:
        return False


def submitted_sets(submission: str) -> list[str]:
    """Give the folders of a submission that are called as test sets are; raises UnreadableFileError."""
    with naming(submission):
        names = _names_in(submission)
    return [name for name in _folders(submission, names) if _is_called_test_set(name)]


def _is_called_test_set(name: str) -> bool:
    return name.startswith(("dev-", "test-"))


def _names_in(folder: str) -> list[str]:
    """List a folder; raises OSError, also where it may be listed, but not entered."""
    os.stat(os.path.join(folder, os.curdir))
    return os.listdir(folder)


def _folders_in(folder: str) -> list[str]:
    try:
        return _folders(folder, _names_in(folder))
    except OSError:
        return []


def _folders(folder: str, names: Sequence[str], beginning: str = "") -> list[str]:
    return [name for name in names if name.startswith(beginning) and os.path.isdir(os.path.join(folder, name))]
