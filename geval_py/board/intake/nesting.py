"""What archives have in common: they are told by their endings, and hold no other archive, and no name twice."""

from __future__ import annotations

import os

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.members import Commit, refused
from geval_py.text import visible

TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst")
ARCHIVES = (".zip", *TARS)
NESTED = (*ARCHIVES, ".7z", ".rar", ".tar.bz2", ".tbz2", ".txz", ".tzst", ".jar", ".whl", ".cab", ".iso")


class Archive:
    """What archives have in common as sources; ``budget`` learns how many bytes one has, packed."""

    strips = True
    commit: Commit | None = None

    def __init__(self, path: str, budget: Budget) -> None:
        self.path = self.address = path
        self.name, self._shown = bare_name(path), visible(os.path.basename(path))
        self._budget = budget
        budget.packed = os.path.getsize(path)


def is_archive(path: str) -> bool:
    """Tell an archive that is taken by its ending."""
    return path.lower().endswith(ARCHIVES)


def bare_name(path: str) -> str:
    """Give the name of an archive without its ending.

    >>> bare_name("in/Anna.tar.gz")
    'Anna'
    """
    name = path.replace("\\", "/").rpartition("/")[2]
    ending = next((ending for ending in ARCHIVES if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)]


def check_regular(name: str, seen: set[str]) -> None:
    """Refuse an archive in the archive, and a name that was seen already, which is noted; raises RejectedError."""
    if name in seen:
        raise refused(name, "is in the archive twice")
    seen.add(name)
    if name.lower().endswith(NESTED):
        raise refused(name, "is an archive inside of the archive; pack its files themselves")
