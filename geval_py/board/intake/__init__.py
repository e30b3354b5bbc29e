"""Take a submission in: copy the files that belong to it under names of our own, and read what it says of itself.

    a folder, an archive, a git branch ──> members ──> those of allowed names ──> copies 000, 001 … and a Parcel

A source is walked twice: first for the names and gonito.yaml, which may name more files, then for the files
themselves. Nothing that a source says of sizes is believed; what is read is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.choosing import Choice, choose
from geval_py.board.intake.copying import copy_members
from geval_py.board.intake.describing import details_of
from geval_py.board.intake.details import GONITO_FILE, MOST_BYTES
from geval_py.board.intake.members import Source, refused
from geval_py.board.intake.outputs import Sets, outputs_in_folders, outputs_of
from geval_py.board.intake.sources import open_source
from geval_py.board.values import Parcel, ReceivedFile


def receive(source: str, place: str, budget: Budget, sets: Sets, transports: Sequence[str]) -> Parcel:
    """Receive a submission into an empty folder; see :func:`geval_py.board.intake.isolation.receive_isolated`.

    Raises RejectedError, whose reason names the member that is at fault, and FailedError.
    """
    with open_source(source, place, budget, transports) as opened:
        choice = _choose(opened, budget, sets)
        files = tuple(copy_members(opened, choice.names, place, budget))
        by_name = {file.name: file for file in files}
        outputs_in_folders(files, sets.to_come)  # which must be as clear once they are scored
        param_files = [by_name[name] for name in choice.param_files]
        return Parcel(
            name=opened.name,
            source=opened.address,
            digest=digest_of(files),
            files=files,
            outputs=outputs_of(files, sets.tests),
            details=details_of(choice.gonito, param_files, opened.commit, _content),
            notes=choice.gonito.notes,
        )


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


def _choose(source: Source, budget: Budget, sets: Sets) -> Choice:
    """Look through the names, and into gonito.yaml, which may name files with parameters."""
    names: list[str] = []

    def is_gonito(name: str) -> bool:
        names.append(name)
        return name.rpartition("/")[2] == GONITO_FILE and name.count("/") < 2

    gonito = {}
    for name, member in source.walk(is_gonito):
        data = member.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise refused(name, f"is larger than {MOST_BYTES} bytes")
        gonito[name] = data
    return choose(names, gonito, sets, strips=source.strips, most=budget.files)


def digest_of(files: Sequence[ReceivedFile]) -> str:
    """Digest the names and the digests of all files, in the order of the names."""
    from hashlib import sha256

    lines = "".join(f"{file.sha256}  {file.name}\n" for file in sorted(files, key=lambda file: file.name))
    return sha256(lines.encode()).hexdigest()
