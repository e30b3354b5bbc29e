"""Receive a submission: choose its files, copy them under numbers, and read how it describes itself.

Its files are the outputs (test-A/out.tsv, test-A/out-model=a,k=3.tsv.xz and so on), gonito.yaml, and the files with
parameters that gonito.yaml names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from geval_py.board.intake import gonito
from geval_py.board.intake.archives import Tar, Zip
from geval_py.board.intake.identity import GIT, TARS, address_of
from geval_py.board.intake.members import Budget, Commit, Folder, Source, copy_if_possible, copy_members, refused
from geval_py.board.submission import Details, Parcel, ReceivedFile, ReceivedOutput, RejectedError, digest_of
from geval_py.reading.outputs import parse_parameters
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import visible

SETS = ("dev-", "test-", "train")  # how the names of sets begin; a folder around a submission has no such name
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # added by archivers
_OUTPUT = re.compile(r"out(?:-(.*))?\.tsv(?:\.(?:xz|gz|bz2|zst))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """The scored test sets, and the sets ``to_come``, which may be scored later.

    Outputs for the latter are kept, but change nothing before then.
    """

    tests: Sequence[str]
    to_come: Sequence[str] = ()


def receive(source: str, place: str, budget: Budget, sets: Sets, transports: Sequence[str]) -> Parcel:
    """Copy a submission into an empty folder; see :func:`geval_py.board.intake.sandbox.receive_in_sandbox`.

    Outputs for sets to come are copied if possible, and are not part of the digest. Raises RejectedError, whose
    reason names the member at fault, and FailedError.
    """
    with open_source(source, place, budget, transports) as opened:
        choice = _choose_members(opened, budget, sets)
        files = tuple(copy_members(opened, choice.names, place, budget))
        to_come = copy_if_possible(opened, choice.to_come, place, budget, len(files))
        by_name = {file.name: file for file in files}
        return Parcel(
            name=opened.name,
            source=opened.address,
            digest=digest_of(files),
            files=(*files, *to_come),
            outputs=outputs_of(files, sets.tests),
            details=_details(choice.meta, [by_name[name] for name in choice.param_files], opened.commit),
            notes=choice.meta.notes,
        )


@contextmanager
def open_source(source: str, place: str, budget: Budget, transports: Sequence[str]) -> Iterator[Source]:
    """Open a folder, an archive or a git branch, which is fetched into the place."""
    if source.startswith(GIT):
        from geval_py.board.intake.git import Branch

        yield Branch(address_of(source, transports), place, budget)
    elif os.path.isdir(source):
        yield Folder(source)
    elif source.lower().endswith(TARS):
        yield Tar(source, budget)
    else:
        with Zip(source, budget) as opened:
            yield opened


def _choose_members(source: Source, budget: Budget, sets: Sets) -> Choice:
    """List all names, and read gonito.yaml, which may name files with parameters."""
    names: list[str] = []

    def is_gonito(name: str) -> bool:
        names.append(name)
        return name.rpartition("/")[2] == gonito.GONITO_FILE and name.count("/") < 2

    found = {}
    for name, member in source.walk(is_gonito):
        data = member.read(gonito.MOST_BYTES + 1)
        if len(data) > gonito.MOST_BYTES:
            raise refused(name, f"is larger than {gonito.MOST_BYTES} bytes")
        found[name] = data
    return choose(names, found, sets, strips=source.strips, most=budget.files)


def _details(meta: gonito.Gonito, param_files: Sequence[ReceivedFile], commit: Commit | None) -> Details:
    """Combine gonito.yaml, the files with parameters and the last commit; raises RejectedError."""
    params: dict[str, str] = {}
    for param_file in param_files:
        with open(param_file.path, "rb") as file:
            params = gonito.read_params(param_file.name, file.read(gonito.MOST_BYTES + 1)) | params
    for unwanted in meta.unwanted_params:
        params.pop(unwanted, None)
    description, tags = gonito.parse_message(gonito.replace_unstorable(commit.message) if commit else "")
    return Details(
        description=meta.description or description,
        author=gonito.replace_unstorable(commit.author)[: gonito.MOST_VALUE] if commit else "",
        revision=commit.revision if commit else "",
        tags=tuple(sorted({tag for tag in (*meta.tags, *tags) if tag})),
        params=dict(meta.params) | params,
        links=meta.links,
    )


# The outputs among the files of a submission.


def test_and_variant(name: str, tests: Sequence[str]) -> tuple[str, str] | None:
    """Return the test and the variant of an output by its name; None for other files.

    Outputs lie in their test's folder or, if there is only one test, beside it.

    >>> test_and_variant("test-A/out-k=3.tsv.gz", ["test-A"]), test_and_variant("out.tsv", ["test-A", "test-B"])
    (('test-A', 'k=3'), None)
    """
    folder, _, file = name.rpartition("/")
    match = _OUTPUT.fullmatch(file)
    if match is None or (not folder and (len(tests) > 1 or file.startswith(OUT_HEADER_FILE))):
        return None
    test = folder or tests[0]
    return (test, match[1] or "") if test in tests else None


def test_by_folder(name: str, tests: Sequence[str]) -> str | None:
    """Return the test of an output that lies in the test's folder; None for other files."""
    found = test_and_variant(name, tests) if "/" in name else None
    return None if found is None else found[0]


def outputs_of(files: Sequence[ReceivedFile], tests: Sequence[str]) -> tuple[ReceivedOutput, ...]:
    """Find the outputs for some tests among files; raises RejectedError if two are one variant of a test."""
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


# The choice of members.


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The members to copy: ``names`` maps the name of a member to the name that it is stored under.

    ``to_come`` are outputs for sets to come, copied if there is room. ``param_files`` are in the order of the
    patterns in gonito.yaml: if two files set a parameter, the first one counts.
    """

    names: Mapping[str, str]
    to_come: Mapping[str, str]
    meta: gonito.Gonito
    param_files: tuple[str, ...]


def choose(names: Sequence[str], gonitos: Mapping[str, bytes], sets: Sets, *, strips: bool, most: int) -> Choice:
    """Choose among all names; ``gonitos`` holds the files named gonito.yaml near the top.

    Raises RejectedError for a name that cannot be stored, for more than ``most`` files, without an output for a
    scored test, and for a malformed gonito.yaml; never because of an output for a set to come.
    """
    around = _folder_around(names, sets.tests) if strips else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    has_gonito = gonito.GONITO_FILE in inner
    meta = gonito.read_gonito(gonitos[inner[gonito.GONITO_FILE]]) if has_gonito else gonito.EMPTY
    outputs = [name for name in inner if test_and_variant(name, sets.tests)]
    to_come = [name for name in inner if test_by_folder(name, sets.to_come)]
    others = [name for name in inner if name not in {*outputs, *to_come, gonito.GONITO_FILE}]
    params = dict.fromkeys(name for pattern in meta.param_files for name in sorted(others) if matches(name, pattern))
    if not outputs:
        raise RejectedError(reason=_no_output(inner, sets.tests))
    chosen = [*outputs, *params, *([gonito.GONITO_FILE] if has_gonito else [])]
    if len(chosen) > most:
        raise RejectedError(reason=f"it has {len(chosen)} files; at most {most} are taken")
    for name in chosen:
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")
    left = [name for name in to_come if name.isprintable()][: most - len(chosen)]
    return Choice(
        names={inner[name]: name for name in chosen},
        to_come={inner[name]: name for name in left},
        meta=meta,
        param_files=tuple(params),
    )


def _folder_around(names: Sequence[str], tests: Sequence[str]) -> str:
    """Return the only folder, with its slash, that all members lie in, unless it is the folder of a set; else ""."""
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


def matches(name: str, pattern: str) -> bool:
    """Whether a path matches a pattern of gonito.yaml: * and ? stay within a folder, ** is any number of folders.

    >>> matches("config/a.yaml", "*.yaml"), matches("config/a.yaml", "**/*.yaml"), matches("a.yaml", "**/*.yaml")
    (False, True, True)
    """
    parts = name.split("/")
    matched = {0}  # how many parts of the path the pattern may have matched so far
    for glob in pattern.removeprefix("./").split("/"):
        if glob == "**":
            matched = set(range(min(matched, default=len(parts) + 1), len(parts) + 1))
        else:
            matched = {n + 1 for n in matched if n < len(parts) and fnmatchcase(parts[n], glob)}
    return len(parts) in matched
