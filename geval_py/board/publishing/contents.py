"""Which files of a challenge belong to a board that is to be rebuilt elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from geval_py.board.answers import expected_of
from geval_py.errors import UnreadableFileError
from geval_py.reading.challenge import README_FILE
from geval_py.reading.config import CONFIG_FILE, config_task
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.board.settings import Settings

CHALLENGE, ANSWERS = "challenge", "answers"


def files_of(settings: Settings, *, public: bool) -> dict[str, str]:
    """Give the names in an archive, in order, and the paths, of all that a board needs beside its database.

    What is for the ``public`` has the answers of visible tests alone, and nothing out of the folder of the answers.
    Raises DataError.
    """
    found = dict(_of_challenge(settings))
    for test in settings.tests:
        found |= dict(_of_test(settings, test.name))
        if test.visible or not public:
            own = find_file(os.path.join(settings.challenge, test.name, EXPECTED_FILE)) if public else None
            path = own or expected_of(settings.challenge, settings.answers, test.name)
            place = CHALLENGE if test.visible else ANSWERS
            found[f"{place}/{test.name}/{os.path.basename(path)}"] = path
    if public:
        found = {name: path for name, path in found.items() if not _is_hidden(settings, path)}
    return dict(sorted(found.items()))


def _of_challenge(settings: Settings) -> Iterator[tuple[str, str]]:
    task = config_task(settings.challenge)
    named = [name for name in (task.in_header, task.out_header) if name]
    for name in (README_FILE, CONFIG_FILE, *named):
        path = os.path.join(settings.challenge, name)
        if os.path.isfile(path):
            yield f"{CHALLENGE}/{_below(settings.challenge, path)}", path
    words = task.replace(alt_metrics=settings.metrics)
    if any(find_metric(scheme.metric).needs_vocabulary for scheme in words.schemes()):
        path = find_file(os.path.join(settings.challenge, TRAINING_SET, EXPECTED_FILE)) or ""
        if path:
            yield f"{CHALLENGE}/{TRAINING_SET}/{os.path.basename(path)}", path


def _of_test(settings: Settings, test: str) -> Iterator[tuple[str, str]]:
    for place, folder in ((CHALLENGE, settings.challenge), (ANSWERS, settings.answers)):
        path = find_file(os.path.join(folder, test, INPUT_FILE))
        if path is not None and (place == CHALLENGE or not _is_same(folder, settings.challenge)):
            yield f"{place}/{test}/{os.path.basename(path)}", path


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_hidden(settings: Settings, path: str) -> bool:
    """Tell whether a file lies in the folder of the answers, unless it is of a challenge that lies in it too."""
    holds_challenge = _is_below(settings.answers, settings.challenge)
    return _is_below(settings.answers, path) and not (holds_challenge and _is_below(settings.challenge, path))


def _is_below(folder: str, path: str) -> bool:
    folder, path = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath([folder, path]) == folder


def _below(folder: str, path: str) -> str:
    """Name a file below a folder; raises UnreadableFileError for one that is elsewhere."""
    relative = os.path.relpath(path, folder)
    if relative.startswith(os.pardir):
        raise UnreadableFileError(path=path, reason="it is not in the challenge's folder, and cannot be exported")
    return relative.replace(os.sep, "/")
