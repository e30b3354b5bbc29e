"""The columns of a word gap's contexts: one list of exact names, for models and for the search for leaks."""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.errors import UsageError
from geval_py.text import suggestion, visible

LEFT_NAMES = ("LeftContext", "leftcontext", "left_context", "left context", "Left", "left")
RIGHT_NAMES = ("RightContext", "rightcontext", "right_context", "right context", "Right", "right")


def find_contexts(names: Sequence[str], left: str = "", right: str = "") -> tuple[str, str]:
    """Return the names of the left and of the right context, "" for one that does not exist.

    ``left`` and ``right`` are the names given by the user. Else the columns have a name of LEFT_NAMES and of
    RIGHT_NAMES. Columns without names, which are numbered, have the contexts last; a single one is the left context.
    Raises UsageError if nothing names the contexts, and for two columns that could be the same one.

    >>> find_contexts(["FileId", "copyright", "LeftContext", "RightContext"])
    ('LeftContext', 'RightContext')
    """
    there = f"there are {visible(', '.join(names))}"
    for name, option in ((left, "--left"), (right, "--right")):
        if name and name not in names:
            raise UsageError(f"no column {visible(name)} ({option})\n  {suggestion(name, names)}{there}")
    if left or right:
        if left == right:
            raise UsageError(f"--left and --right are both {visible(left)}")
        return left, right
    lefts, rights = ([name for name in names if name in usual] for usual in (LEFT_NAMES, RIGHT_NAMES))
    for several in (lefts, rights):
        if len(several) > 1:
            message = f"both {visible(several[0])} and {visible(several[1])} are names of a context"
            raise UsageError(f"{message}\n  --left and --right name the columns of the contexts")
    if lefts or rights:
        return "".join(lefts), "".join(rights)
    if len(names) > 1 and not all(name.isdigit() for name in names):
        message = "no column has a name of a context, such as LeftContext and RightContext"
        raise UsageError(f"{message}\n  --left and --right name the columns; {there}")
    return (names[-2], names[-1]) if len(names) > 1 else ("".join(names), "")
