"""What a submission comes as: something with members, each a name and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from geval_py.board.values import RejectedError
from geval_py.text import shorten, visible

MOST_NAMES = 100_000  # files of a folder or a git tree that are looked through
MOST_NAME = 500  # characters


class Readable(Protocol):
    """The bytes of a member."""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes, b"" at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The last commit of a branch: its id, its author's name, its message."""

    revision: str
    author: str
    message: str


class Source(Protocol):
    """Something with members.

    ``name`` and ``address`` say what it is; ``strips`` tells whether all members may lie in one folder more.
    ``commit`` is that of a branch.
    """

    name: str
    address: str
    strips: bool
    commit: Commit | None

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        """Ask of each regular file whether it is wanted, and give the bytes of those; may be done again.

        Raises RejectedError for a member that no submission may have.
        """


def refused(name: str, why: str) -> RejectedError:
    """Refuse a member by its name: "`out.tsv` is a link"."""
    return RejectedError(reason=f"`{visible(shorten(name, 200))}` {why}")


def checked_name(name: str) -> str:
    """Give the name of a member without ``./``; raises RejectedError for one that leads out of its folder."""
    parts = [part for part in name.split("/") if part != "."]
    if name.startswith("/") or ".." in parts or name[1:2] == ":":
        raise refused(name, "leads out of its folder")
    if len(name) > MOST_NAME:
        raise refused(name, f"has a name of more than {MOST_NAME} characters")
    return "/".join(part for part in parts if part)
