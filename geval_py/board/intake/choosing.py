"""Which members belong to a submission: outputs, gonito.yaml, and the files with parameters that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from geval_py.board.intake.details import EMPTY, GONITO_FILE, Gonito
from geval_py.board.intake.globs import matches
from geval_py.board.intake.members import refused
from geval_py.board.intake.outputs import Sets
from geval_py.board.values import RejectedError
from geval_py.text import visible

SETS = ("dev-", "test-", "train")  # how the folders of sets begin, which are no folder around a submission
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # what archivers add


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The members to copy, each with the name that it is kept under; what gonito.yaml says; the files that it names.

    These are in the order of its patterns: of parameters of one name, the first counts.
    """

    names: Mapping[str, str]
    gonito: Gonito
    param_files: tuple[str, ...]


def choose(names: Sequence[str], gonito: Mapping[str, bytes], sets: Sets, *, strips: bool, most: int) -> Choice:
    """Choose among all names; ``gonito`` holds the files called so that are near the top.

    Raises RejectedError for a name that cannot be kept, for more than ``most`` files, for no output at all, and for a
    gonito.yaml that cannot be read.
    """
    around = _folder_around(names, sets.tests) if strips else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    outputs = [name for name in inner if sets.has(name)]
    meta = _read(gonito[inner[GONITO_FILE]]) if GONITO_FILE in inner else EMPTY
    others = [name for name in inner if name not in outputs and name != GONITO_FILE]
    params = dict.fromkeys(name for pattern in meta.param_files for name in sorted(others) if matches(name, pattern))
    if all(map(sets.comes, outputs)):
        raise RejectedError(reason=_no_output(inner, sets.tests))
    chosen = [*outputs, *params, *([GONITO_FILE] if GONITO_FILE in inner else [])]
    if len(chosen) > most:
        raise RejectedError(reason=f"it has {len(chosen)} files; at most {most} are taken")
    for name in chosen:
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")
    return Choice(names={inner[name]: name for name in chosen}, gonito=meta, param_files=tuple(params))


def _read(data: bytes) -> Gonito:
    from geval_py.board.intake.gonito import read_gonito

    return read_gonito(data)


def _folder_around(names: Sequence[str], tests: Sequence[str]) -> str:
    """Give the one folder, with its slash, that all members lie in, if it is none of a set; else ""."""
    tops = {name.partition("/")[:2] for name in names if not name.startswith(LITTER)}
    if len(tops) != 1:
        return ""
    top, slash = tops.pop()
    return top + slash if slash and top not in tests and not top.startswith(SETS) else ""


def _no_output(names: Mapping[str, str], tests: Sequence[str]) -> str:
    wanted = " or ".join(f"{test}/out.tsv" for test in tests)
    like = [name for name in names if name.rpartition("/")[2].startswith("out")][:3]
    found = f"; there are {', '.join(f'`{visible(name)}`' for name in like)}" if like else ""
    return f"it has no output: {visible(wanted)}, or variants as out-NAME.tsv{found}"
