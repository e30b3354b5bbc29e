"""The folders of challenges and submissions: their test sets, and which of them an output is for."""

from __future__ import annotations

import os
from collections.abc import Sequence

from geval_py.errors import UsageError
from geval_py.reading import compression, config, sources, splits
from geval_py.text import natural_order, nearest, some_of, visible
from geval_py.values import Value

DATA_FILES = frozenset(
    name + end for name in (splits.INPUT_FILE, splits.EXPECTED_FILE) for end in ("", *compression.COMPRESSED_ENDINGS)
)


class GuessedSet(Value):
    """The test set that an output is for, and its challenge; ``test`` is None if unknown, ``doubt`` says why."""

    challenge: str
    test: str | None = None
    doubt: str = ""


def guess_test_set(folder: str | None, challenge: str | None = None, test: str | None = None) -> GuessedSet:
    """Find the test set that an output in a folder (None: no folder) is for; challenge and test set may be named."""
    if test is not None:
        places = [os.curdir] if folder is None else [os.path.dirname(folder), folder, os.curdir]
        with_test = (place for place in places if holds_data(os.path.join(place, test)))
        return GuessedSet(challenge=challenge or next(with_test, places[0]), test=test)
    name = None if folder is None else os.path.basename(folder)
    if challenge is None:
        if folder is not None and (holds_data(folder) or not test_sets(folder)):
            return GuessedSet(challenge=os.path.dirname(folder), test=name)
        challenge = folder or os.curdir
    known = test_sets(challenge)
    if name in known or len(known) == 1:
        return GuessedSet(challenge=challenge, test=name if name in known else known[0])
    doubt = f"it may be for {visible(' or '.join(known))}" if known else f"`{visible(challenge)}` has no test set"
    return GuessedSet(challenge=challenge, doubt=doubt)


def check_challenge(path: str, tests: Sequence[str] = ()) -> None:
    """Raise UsageError if a folder is no challenge, or has test sets, but not all of ``tests``."""
    if not os.path.isdir(path):
        if os.path.exists(path):
            raise _no_challenge(path, "it is a file, not a folder")
        folder, name = os.path.split(os.path.normpath(path))
        close = nearest(name, _folders_in(folder or os.curdir))
        advice = f"\n  did you mean `{visible(os.path.join(folder, close))}`?" if close else ""
        raise _no_challenge(path, f"there is no such folder{advice}")
    try:
        names = _names_in(path)
    except OSError as error:
        raise _no_challenge(path, f"it cannot be read: {error.strerror}") from error
    known = test_sets(path)
    if not known and config.CONFIG_FILE not in names and not _folders(path, names, splits.TRAINING_SET):
        if holds_data(path):
            above = os.path.normpath(os.path.join(path, os.pardir))
            raise _no_challenge(path, f"it is a test set\n  did you mean `{visible(above)}`?")
        raise _no_challenge(
            path, f"it has no {config.CONFIG_FILE}, and no folder with {splits.INPUT_FILE} or {splits.EXPECTED_FILE}"
        )
    for test in tests:
        if known and not os.path.isdir(os.path.join(path, test)):
            there = some_of(known)
            raise UsageError(message=f"`{visible(path)}` has no test set `{visible(test)}`\n  there are {there}")


def _no_challenge(path: str, reason: str) -> UsageError:
    return UsageError(message=f"`{visible(path)}` is no challenge: {reason}")


def test_sets(challenge: str) -> list[str]:
    """Return the names of the folders with answers or inputs, without training sets, in natural order."""
    names = (name for name in _folders_in(challenge) if not name.startswith(splits.TRAINING_SET))
    return sorted((name for name in names if holds_data(os.path.join(challenge, name))), key=natural_order)


def holds_data(folder: str) -> bool:
    """Whether a folder has answers or inputs, also as broken links; if it may not be listed, its name decides."""
    try:
        return not DATA_FILES.isdisjoint(os.listdir(folder))
    except PermissionError:
        return _is_called_test_set(os.path.basename(folder))
    except OSError:
        return False


def submitted_sets(submission: str) -> list[str]:
    """Return the folders of a submission that have names of test sets; raises UnreadableFileError."""
    with sources.naming(submission):
        names = _names_in(submission)
    return [name for name in _folders(submission, names) if _is_called_test_set(name)]


def _is_called_test_set(name: str) -> bool:
    return name.startswith(("dev-", "test-"))


def _names_in(folder: str) -> list[str]:
    """List a folder; raises OSError, also if the folder may be listed, but not entered."""
    os.stat(os.path.join(folder, os.curdir))
    return os.listdir(folder)


def _folders_in(folder: str) -> list[str]:
    try:
        return _folders(folder, _names_in(folder))
    except OSError:
        return []


def _folders(folder: str, names: Sequence[str], beginning: str = "") -> list[str]:
    return [name for name in names if name.startswith(beginning) and os.path.isdir(os.path.join(folder, name))]
