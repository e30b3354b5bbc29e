"""Hidden answers where everyone can see them: in the public folder, or in its git history."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from geval_py.errors import DataError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.lines import LineReader
from geval_py.reading.splits import EXPECTED_FILE, names_in

HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
GIT_SECONDS = 60


def hidden_sets(directory: str) -> list[str]:
    """Give the names of the sets whose answers are hidden."""
    return sorted(name for name in names_in(directory, "directory") if name.startswith(HIDDEN_BEGINNING))


def answers_in(directory: str, expected_file: str = EXPECTED_FILE) -> list[str]:
    """Give the files with the answers of hidden sets."""
    names = [expected_file + ending for ending in ("", *COMPRESSED_ENDINGS)]
    paths = (os.path.join(directory, part, name) for part in hidden_sets(directory) for name in names)
    return [path for path in paths if os.path.isfile(path)]


def copies_in(directory: str, answers: Sequence[str]) -> list[str]:
    """Give the files below a folder, but those in git's own, that have the same text as one of some answers."""
    digests = {_digest(path) for path in answers}
    sizes = {os.path.getsize(path) for path in answers}
    found = []
    for path in _files_below(directory):
        if path.endswith(COMPRESSED_ENDINGS) or os.path.getsize(path) in sizes:
            with suppress(DataError):  # what cannot be read shows no answers
                found += [path] if _digest(path) in digests else []
    return sorted(found)


def _files_below(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield path


def _digest(path: str) -> str:
    digest = sha256()
    with LineReader(path) as reader:
        while block := reader.block():
            digest.update(block)
    return digest.hexdigest()


def answers_in_history(directory: str, expected_file: str = EXPECTED_FILE) -> list[str]:
    """Give the paths of answers of hidden sets that any commit of any branch has; none where there is no git."""
    patterns = [f":(glob){HIDDEN_BEGINNING}*/{expected_file}{ending}" for ending in ("", *COMPRESSED_ENDINGS)]
    words = [*_GIT, "-C", directory, "log", "--all", "--format=", "--name-only", "--relative", "-z", "--", *patterns]
    try:
        run = subprocess.run(words, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if run.returncode:
        return []
    names = run.stdout.decode("utf-8", "surrogateescape").split("\0")
    return sorted({name.strip("\n") for name in names if name.strip("\n")})
