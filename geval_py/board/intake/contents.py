"""Patterns of paths, as gonito.yaml has them: ``*.yaml``, ``config/*.json``, ``**/params.yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from geval_py.board.intake.gonito import EMPTY, GONITO_FILE, Gonito
from geval_py.board.intake.members import refused
from geval_py.board.submission import ReceivedFile, ReceivedOutput, RejectedError
from geval_py.reading.outputs import parse_parameters
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import visible


def matches(name: str, pattern: str) -> bool:
    """Tell whether a path is of a pattern: * and ? are within a folder, ** is any number of folders.

    >>> matches("config/a.yaml", "*.yaml"), matches("config/a.yaml", "**/*.yaml"), matches("a.yaml", "**/*.yaml")
    (False, True, True)
    """
    parts = name.split("/")
    places = {0}  # how many parts of the path may have been taken
    for glob in pattern.removeprefix("./").split("/"):
        if glob == "**":
            places = set(range(min(places, default=len(parts) + 1), len(parts) + 1))
        else:
            places = {n + 1 for n in places if n < len(parts) and fnmatchcase(parts[n], glob)}
    return len(parts) in places


# The outputs among a submission's files: test-A/out.tsv, test-A/out-model=a,k=3.tsv.xz and their like.


_OUTPUT = re.compile(r"out(?:-(.*))?\.tsv(?:\.(?:xz|gz|bz2|zst))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """The test sets whose outputs are taken: those that are scored, and those that may be one day.

    Outputs of the latter are kept for that day, and have no part in anything before.
    """

    tests: Sequence[str]
    to_come: Sequence[str] = ()

    def has(self, name: str) -> bool:
        """Tell whether a file of a submission is an output for one that is scored."""
        return test_and_variant(name, self.tests) is not None

    def comes(self, name: str) -> bool:
        """Tell whether a file is an output for one that is not scored yet, which lies in its folder."""
        return test_by_folder(name, self.to_come) is not None


def test_and_variant(name: str, tests: Sequence[str]) -> tuple[str, str] | None:
    """Tell the test and the variant that a file of a submission is an output of; None if it is none.

    Outputs lie in their test's folder or, where there is one test only, beside it.

    >>> test_and_variant("test-A/out-k=3.tsv.gz", ["test-A"]), test_and_variant("out.tsv", ["test-A", "test-B"])
    (('test-A', 'k=3'), None)
    """
    folder, _, file = name.rpartition("/")
    match = _OUTPUT.fullmatch(file)
    if match is None or (not folder and (len(tests) > 1 or file.startswith(OUT_HEADER_FILE))):
        return None
    test = folder or tests[0]
    return (test, match[1] or "") if test in tests else None


def outputs_of(files: Sequence[ReceivedFile], tests: Sequence[str]) -> tuple[ReceivedOutput, ...]:
    """Give the outputs; raises RejectedError where two are one variant of a test."""
    outputs: dict[tuple[str, str], ReceivedOutput] = {}
    for file in files:
        found = test_and_variant(file.name, tests)
        if found is None:
            continue
        if found in outputs:
            both = f"`{visible(outputs[found].file)}` and `{visible(file.name)}`"
            raise RejectedError(reason=f"{both} are the same variant; only one of them can be there")
        test, variant = found
        parameters = parse_parameters(file.name.rpartition("/")[2])
        outputs[found] = ReceivedOutput(test=test, file=file.name, variant=variant, params=parameters)
    return tuple(outputs.values())


def test_by_folder(name: str, tests: Sequence[str]) -> str | None:
    """Tell the test that a file is an output of by the folder that it lies in; None if it is none."""
    found = test_and_variant(name, tests) if "/" in name else None
    return None if found is None else found[0]


def outputs_in_folders(files: Sequence[ReceivedFile], tests: Sequence[str]) -> tuple[ReceivedOutput, ...]:
    """Give the outputs that lie in the folders of some tests; raises RejectedError where two are one variant."""
    return outputs_of([file for file in files if "/" in file.name], tests)


# Which members belong to a submission: outputs, gonito.yaml, and the files with parameters that it names.


SETS = ("dev-", "test-", "train")  # how the folders of sets begin, which are no folder around a submission
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # what archivers add


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The members to copy, each with the name that it is kept under; what gonito.yaml says; the files that it names.

    These are in the order of its patterns: of parameters of one name, the first counts. ``to_come`` are outputs for
    sets that are not scored, which are copied too if there is room for them.
    """

    names: Mapping[str, str]
    to_come: Mapping[str, str]
    gonito: Gonito
    param_files: tuple[str, ...]


def choose(names: Sequence[str], gonito: Mapping[str, bytes], sets: Sets, *, strips: bool, most: int) -> Choice:
    """Choose among all names; ``gonito`` holds the files called so that are near the top.

    Raises RejectedError for a name that cannot be kept, for more than ``most`` files, for no output that is scored,
    and for a gonito.yaml that cannot be read; never for an output of a set that is not scored.
    """
    around = _folder_around(names, sets.tests) if strips else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    outputs = [name for name in inner if sets.has(name)]
    to_come = [name for name in inner if sets.comes(name)]
    meta = _read(gonito[inner[GONITO_FILE]]) if GONITO_FILE in inner else EMPTY
    others = [name for name in inner if name not in {*outputs, *to_come, GONITO_FILE}]
    params = dict.fromkeys(name for pattern in meta.param_files for name in sorted(others) if matches(name, pattern))
    if not outputs:
        raise RejectedError(reason=_no_output(inner, sets.tests))
    chosen = [*outputs, *params, *([GONITO_FILE] if GONITO_FILE in inner else [])]
    if len(chosen) > most:
        raise RejectedError(reason=f"it has {len(chosen)} files; at most {most} are taken")
    for name in chosen:
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")
    left = [name for name in to_come if name.isprintable()][: most - len(chosen)]
    return Choice(
        names={inner[name]: name for name in chosen},
        to_come={inner[name]: name for name in left},
        gonito=meta,
        param_files=tuple(params),
    )


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
