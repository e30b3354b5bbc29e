"""Receive a submission: choose its files, copy them under numbers, and read how it describes itself."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryDirectory
from typing import NamedTuple

from geval_py.board.intake.archives import GIT
from geval_py.board.intake.sources import (
    CHUNK_BYTES,
    GONITO_FILE,
    MAX_BYTES,
    MAX_FILES,
    MAX_GONITO_BYTES,
    MAX_PARAMS,
    Budget,
    Details,
    Parcel,
    ReceivedOutput,
    SubmissionSource,
    copy_members,
    digest_of,
    open_source,
    refuse_pointer,
    refused,
)
from geval_py.errors import RejectedError
from geval_py.reading.outputs import COMPANIONS, OUTPUT_NAME, advice_on_names, parse_parameters
from geval_py.reading.splits import HIDDEN_SET, OUT_HEADER_FILE, TRAINING_SET
from geval_py.text import natural_order, nearest, visible
from geval_py.version import installs

TEST_SETS = ("dev-", "test-")  # how the names of sets begin whose outputs are kept: they may be scored later
MAX_LISTED = 1_000_000  # files and folders of the user's own folder
MAX_STRAYS = 3  # outputs in wrong places that are named
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # added by archivers


class Selection(NamedTuple):
    """What a board takes of an opened submission: ``names`` maps its members to the names of the files."""

    tests: Sequence[str]
    names: Mapping[str, str]
    outputs: tuple[ReceivedOutput, ...]
    details: Details
    notes: tuple[str, ...]


def receive(
    source: str,
    place: str,
    budget: Budget,
    *,
    tests: Sequence[str],
    variants: int,
    transports: Sequence[str],
) -> Parcel:
    """Copy a submission from a folder, an archive or a git branch into an empty folder.

    It needs an output for one of the ``tests``, and may have so many ``variants`` for each. Raises RejectedError,
    whose reason names the member at fault, and FailedError.
    """
    if source.startswith(GIT):
        from geval_py.board.intake.git import branch_source  # imports subprocess, which folders do without
        from geval_py.board.intake.identity import address_of

        opened = branch_source(address_of(source, transports), place, budget)
    else:
        opened = open_source(source, budget)
    selection = select(opened, budget, tests, variants)
    files = copy_members(opened, selection.names, place, budget)
    return Parcel(
        name=opened.name,
        source=opened.address,
        digest=digest_of(files),
        files=tuple(files),
        outputs=selection.outputs,
        details=selection.details,
        notes=selection.notes,
    )


@contextmanager
def user_submission(path: str, tests: Sequence[str]) -> Iterator[tuple[Selection, dict[str, str]]]:
    """Open the user's own folder or archive as a board does; yield its selection, and the paths of the files by name.

    Files of a folder are read where they are, members of an archive in copies. Without ``tests``, these are the sets
    that the folders of its outputs are named after. Raises RejectedError.
    """
    budget = Budget(bytes=MAX_BYTES, files=MAX_FILES, listed=MAX_LISTED, ends=math.inf)
    opened = open_source(path, budget)
    selection = select(opened, budget, tests, variants=MAX_FILES)
    with TemporaryDirectory(prefix="geval-") as place:
        if os.path.isdir(path):
            for name, read in opened.members(selection.names.__contains__):
                refuse_pointer(name, read(CHUNK_BYTES))
            yield selection, {name: os.path.join(path, member) for member, name in selection.names.items()}
        else:
            yield selection, {file.name: file.path for file in copy_members(opened, selection.names, place, budget)}


def select(opened: SubmissionSource, budget: Budget, tests: Sequence[str], variants: int) -> Selection:
    """Select the files of a submission by their names, and read how it describes itself; raises RejectedError."""
    names: list[str] = []

    def is_gonito(name: str) -> bool:
        names.append(name)
        return name.rpartition("/")[2] == GONITO_FILE and name.count("/") < 2

    contents = {name: read(MAX_GONITO_BYTES + 1) for name, read in opened.members(is_gonito)}
    tops, around = {name.partition("/")[:2] for name in names if not name.startswith(LITTER)}, ""
    # Strip the only folder in which all members lie, unless it is that of a set.
    if opened.strips and len(tops) == 1:
        top, slash = tops.pop()
        around = top + slash if slash and top not in tests and not top.startswith((*TEST_SETS, TRAINING_SET)) else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    if not tests:
        sets = {output[0] for name in inner if (output := test_and_variant(name, [HIDDEN_SET]))}
        tests = sorted(sets, key=natural_order) or [HIDDEN_SET]
    outputs = {name: output for name in inner if (output := test_and_variant(name, tests))}
    if any("/" in name and test in tests for name, (test, _) in outputs.items()):  # none beside the folders counts
        outputs = {name: output for name, output in outputs.items() if "/" in name}
    strays = sorted(name for name in inner if name not in outputs or outputs[name][0] not in tests)
    if {test for test, _ in outputs.values()}.isdisjoint(tests):
        advice = filter(None, (_stray(name, tests) for name in strays))
        wanted = " or ".join(f"{test}/out.tsv" for test in tests)
        reason = f"it has no output: {visible(wanted)}, or variants such as out-NAME.tsv"
        raise RejectedError("; ".join([reason, *islice(advice, MAX_STRAYS)]))
    alone = f"is beside the folder of {visible(tests[0])}: only a board with this test set alone takes it"
    notes = [f"`{visible(name)}` {alone}" for name in outputs if "/" not in name]
    notes += islice(filter(None, (_stray(name, tests) for name in strays if name not in outputs)), MAX_STRAYS)
    kept = outputs.keys() | (inner.keys() & {GONITO_FILE})
    if len(kept) > budget.files:
        raise RejectedError(f"it has {len(kept)} files; at most {budget.files} are allowed")
    for name in sorted(kept):
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")

    received = outputs_of(sorted(kept), tests, variants)
    details = opened.details
    if data := contents.get(inner.get(GONITO_FILE, ""), b""):
        try:
            from geval_py.board.intake.gonito import described
        except ImportError:  # a user's submission, beside no board
            notes.append(f"{GONITO_FILE} is not checked: that needs the extra board: {installs('board')}")
        else:
            details, problems = described(details, data)
            notes += (f"{GONITO_FILE}, {problem}" for problem in problems)
    parameters = {name for output in received for name in output.params} | details.params.keys()
    if len(parameters) > MAX_PARAMS:
        raise RejectedError(f"it has {len(parameters)} parameters; at most {MAX_PARAMS} are allowed")
    return Selection(tests, {inner[name]: name for name in kept}, received, details, tuple(notes))


def _stray(name: str, tests: Sequence[str]) -> str:
    """Return where an output belongs that is not in its place, or what it must be called; "" for other files."""
    folder, _, file = name.rpartition("/")
    if file.startswith(OUT_HEADER_FILE) or file.endswith(COMPANIONS):
        return ""
    if folder in tests:
        advice = advice_on_names([file])
        return f"{visible(folder)}/{advice}" if advice else ""
    if not file.startswith("out") or folder.startswith(TRAINING_SET):
        return ""
    parts = reversed(folder.split("/"))
    test = next((close for part in parts if (close := nearest(part, tests))), tests[0])
    right = f"{test}/{file if re.fullmatch(OUTPUT_NAME, file) else 'out.tsv'}"
    return f"`{visible(name)}` is not in its place; did you mean `{visible(right)}`?"


def test_and_variant(name: str, tests: Sequence[str]) -> tuple[str, str] | None:
    """Return the test set and the variant of an output by its name; None for other files.

    Outputs lie in the folder of one of the ``tests``, or of another set that may be scored later. If there is only
    one test, its outputs may lie beside its folder.

    >>> test_and_variant("test-A/out-k=3.tsv.gz", ["test-A"]), test_and_variant("out.tsv", ["test-A", "test-B"])
    (('test-A', 'k=3'), None)
    """
    folder, _, file = name.rpartition("/")
    match = re.fullmatch(OUTPUT_NAME, file)
    is_beside = not folder and len(tests) == 1 and not file.startswith(OUT_HEADER_FILE)
    is_later = folder.startswith(TEST_SETS) and "/" not in folder
    if not match or not (is_beside or is_later or folder in tests):
        return None
    return folder or tests[0], match[2] or ""


def outputs_of(names: Sequence[str], tests: Sequence[str], variants: int) -> tuple[ReceivedOutput, ...]:
    """Return the outputs for some tests among files with these names, at most so many for a test.

    Raises RejectedError for more, and if two are one variant of a test.
    """
    outputs: dict[tuple[str, str], ReceivedOutput] = {}
    for name in names:
        key = test_and_variant(name, tests)
        if key is None or key[0] not in tests:
            continue
        if key in outputs:
            raise RejectedError(
                f"`{visible(outputs[key].file)}` and `{visible(name)}` are the same variant; only one is allowed"
            )
        parameters = parse_parameters(name.rpartition("/")[2])
        outputs[key] = ReceivedOutput(test=key[0], file=name, variant=key[1], params=parameters)
    for test, number in Counter(test for test, _ in outputs).items():
        if number > variants:
            only = "only one is" if variants == 1 else f"at most {variants} are"
            raise RejectedError(f"it has {number} outputs for {visible(test)}; {only} allowed")
    return tuple(outputs.values())
