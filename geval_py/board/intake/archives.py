"""The names of what can be submitted: archives, outputs, and branches of git."""

import re

from geval_py.reading.outputs import OUTPUT_NAME
from geval_py.text import visible

TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst")
ARCHIVES = (".zip", *TARS)
GIT = "git+"  # before the address of a branch


def is_archive(path: str) -> bool:
    """Whether the ending of a path is one of a supported archive."""
    return path.lower().endswith(ARCHIVES)


def upload_name_problem(name: str) -> str:
    """Return why a file cannot be uploaded by its name, and what to do; "" for an archive and for an output.

    >>> upload_name_problem("out-model=a.tsv")
    ''
    """
    if is_archive(name) or re.fullmatch(OUTPUT_NAME, name):
        return ""
    kinds = f"neither an archive ({', '.join(ARCHIVES)}) nor an output such as out.tsv"
    return f"`{visible(name)}` is {kinds}: rename it to out.tsv, or out-NAME.tsv"


def bare_name(path: str) -> str:
    """Return the name of an archive without its ending.

    >>> bare_name("in/Anna.tar.gz")
    'Anna'
    """
    name = path.replace("\\", "/").rpartition("/")[2]
    ending = next((ending for ending in ARCHIVES if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)]
