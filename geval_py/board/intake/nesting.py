"""Archives are told by their endings; what none may hold: other archives, and two members of one name."""

from __future__ import annotations

from geval_py.board.intake.members import refused

TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst")
ARCHIVES = (".zip", *TARS)
NESTED = (*ARCHIVES, ".7z", ".rar", ".tar.bz2", ".tbz2", ".txz", ".tzst", ".jar", ".whl", ".cab", ".iso")


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
