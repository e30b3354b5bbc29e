"""Copy members under names of our own, and digest them; bytes are counted as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.members import Readable, Source, refused
from geval_py.board.values import FailedError, ReceivedFile, RejectedError

CHUNK_BYTES = 1 << 20
LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # of the specification of Git LFS, "The pointer"


def copy_members(source: Source, names: Mapping[str, str], place: str, budget: Budget) -> list[ReceivedFile]:
    """Copy some members to 000, 001 … in a place; gives them in the order of the names that they are kept under."""
    return sorted(_copies(source, names, place, budget, 0), key=lambda file: file.name)


def copy_if_possible(
    source: Source, names: Mapping[str, str], place: str, budget: Budget, start: int
) -> list[ReceivedFile]:
    """Copy more members, to numbers from a start, until one cannot be: it and what follows it are left out."""
    files: list[ReceivedFile] = []
    if names:
        with suppress(RejectedError, FailedError):
            files.extend(_copies(source, names, place, budget, start))
    return sorted(files, key=lambda file: file.name)


def _copies(
    source: Source, names: Mapping[str, str], place: str, budget: Budget, start: int
) -> Iterator[ReceivedFile]:
    for number, (name, member) in enumerate(source.walk(names.__contains__), start):
        path = os.path.join(place, f"{number:03}")
        digest, size = _copy(name, member, path, budget)
        yield ReceivedFile(name=names[name], path=path, sha256=digest, bytes=size)


def _copy(name: str, member: Readable, path: str, budget: Budget) -> tuple[str, int]:
    digest, size = sha256(), 0
    with open(path, "xb") as file:
        while data := member.read(CHUNK_BYTES):
            if not size and data.startswith(LFS_POINTER):
                raise refused(name, "is a pointer of Git LFS, not the file itself: add that to the submission")
            budget.take(len(data), name)
            digest.update(data)
            file.write(data)
            size += len(data)
    return digest.hexdigest(), size
