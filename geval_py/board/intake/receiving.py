"""What a submission comes as is told from how it is named: git+URL@BRANCH, an archive by its ending, a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from geval_py.board.intake.archives import ARCHIVES, TARS, is_archive
from geval_py.board.intake.contents import Choice, Sets, choose, outputs_of
from geval_py.board.intake.gonito import GONITO_FILE, MOST_BYTES, MOST_VALUE, Gonito, parse_message, storable
from geval_py.board.intake.identity import GIT, shown_address
from geval_py.board.intake.members import Budget, Commit, Source, copy_if_possible, copy_members, refused
from geval_py.board.submission import Details, Parcel, ReceivedFile
from geval_py.errors import MissingFileError, UsageError
from geval_py.text import visible

# An address without git+: it may hold a password, which stands between the first colon and the last @. The path of a
# file may hold these too, but behind a slash.
_ADDRESS = re.compile(r".*://|[^/]*:.*@", re.DOTALL)


def check_source(source: str, transports: Sequence[str]) -> None:
    """Raise MissingFileError for what is not there, and UsageError for what is none, before it is opened."""
    if source.startswith(GIT):
        from geval_py.board.intake.git import address_of

        address_of(source, transports)
    elif _ADDRESS.match(source) and not os.path.exists(source):
        raise UsageError(
            message=f"`{visible(shown_address(source))}` is no submission: write git+URL@BRANCH for a branch"
        )
    elif not os.path.exists(source):
        raise MissingFileError(what="No submission", path=source)
    elif not os.path.isdir(source) and not (is_archive(source) and os.path.isfile(source)):
        kinds = ", ".join(ARCHIVES)
        message = f"`{visible(source)}` is no submission: it is a folder, an archive ({kinds}) or git+URL@BRANCH"
        raise UsageError(message=message)


@contextmanager
def open_source(source: str, place: str, budget: Budget, transports: Sequence[str]) -> Iterator[Source]:
    """Open a source; of git, its branch is fetched into the place."""
    if source.startswith(GIT):
        from geval_py.board.intake.git import Branch, address_of

        yield Branch(address_of(source, transports), place, budget)
    elif os.path.isdir(source):
        from geval_py.board.intake.members import Folder

        yield Folder(source)
    elif source.lower().endswith(TARS):
        from geval_py.board.intake.archives import Tar

        yield Tar(source, budget)
    else:
        from geval_py.board.intake.archives import Zip

        with Zip(source, budget) as opened:
            yield opened


# Put together what a submission says of itself: in gonito.yaml, in files with parameters, in the last commit.


def details_of(
    gonito: Gonito, param_files: Sequence[ReceivedFile], commit: Commit | None, read: Callable[[str], bytes]
) -> Details:
    """Put together what a submission says of itself; ``read`` gives the bytes at a path.

    Raises RejectedError for a file with parameters that is none.
    """
    params: dict[str, str] = {}
    for file in param_files:
        from geval_py.board.intake.gonito import params_in

        params = params_in(file.name, read(file.path)) | params
    for unwanted in gonito.unwanted_params:
        params.pop(unwanted, None)
    message = storable(commit.message) if commit else ""
    description, tags = parse_message(message)
    return Details(
        description=gonito.description or description,
        author=storable(commit.author)[:MOST_VALUE] if commit else "",
        revision=commit.revision if commit else "",
        tags=tuple(sorted({tag for tag in (*gonito.tags, *tags) if tag})),
        params=dict(gonito.params) | params,
        links=gonito.links,
    )


# Take a submission in: copy the files that belong to it under names of our own, and read what it says of itself.


def receive(source: str, place: str, budget: Budget, sets: Sets, transports: Sequence[str]) -> Parcel:
    """Receive a submission into an empty folder; see :func:`geval_py.board.intake.sandbox.receive_isolated`.

    Outputs for sets that are not scored are kept as they are, if they can be; the digest is not of them. Raises
    RejectedError, whose reason names the member that is at fault, and FailedError.
    """
    with open_source(source, place, budget, transports) as opened:
        choice = _choose(opened, budget, sets)
        files = tuple(copy_members(opened, choice.names, place, budget))
        by_name = {file.name: file for file in files}
        to_come = copy_if_possible(opened, choice.to_come, place, budget, len(files))
        param_files = [by_name[name] for name in choice.param_files]
        return Parcel(
            name=opened.name,
            source=opened.address,
            digest=digest_of(files),
            files=(*files, *to_come),
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
