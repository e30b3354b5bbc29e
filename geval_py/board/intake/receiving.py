"""Receive a submission: choose its files, copy them under numbers, and read how it describes itself."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence

from geval_py.board.intake import identity
from geval_py.board.intake.git import branch_source
from geval_py.board.intake.sources import (
    Budget,
    archive_source,
    copy_members,
    folder_source,
    refused,
)
from geval_py.board.submission import (
    GONITO_FILE,
    MAX_GONITO_BYTES,
    MAX_PARAMS,
    Parcel,
    ReceivedFile,
    ReceivedOutput,
    RejectedError,
    digest_of,
)
from geval_py.reading.outputs import OUTPUT_NAME, parse_parameters
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import nearest, visible

TEST_SETS = ("dev-", "test-")  # how the names of sets begin whose outputs are kept: they may be scored later
MAX_STRAYS = 3  # outputs in wrong places that are named
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # added by archivers


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
    if source.startswith(identity.GIT):
        opened = branch_source(identity.address_of(source, transports), place, budget)
    else:
        opened = folder_source(source, budget) if os.path.isdir(source) else archive_source(source, budget)
    names: list[str] = []

    def is_gonito(name: str) -> bool:
        names.append(name)
        return name.rpartition("/")[2] == GONITO_FILE and name.count("/") < 2

    contents = {name: read(MAX_GONITO_BYTES + 1) for name, read in opened.members(is_gonito)}
    tops, around = {name.partition("/")[:2] for name in names if not name.startswith(LITTER)}, ""
    # Strip the only folder in which all members lie, unless it is that of a set.
    if opened.strips and len(tops) == 1:
        top, slash = tops.pop()
        around = top + slash if slash and top not in tests and not top.startswith((*TEST_SETS, "train")) else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    sets = {name: output[0] for name in inner if (output := test_and_variant(name, tests))}
    strays = sorted(
        name for name in inner if name.rpartition("/")[2].startswith("out") and sets.get(name) not in tests
    )
    if set(tests).isdisjoint(sets.values()):
        wanted = " or ".join(f"{test}/out.tsv" for test in tests)
        reason = f"it has no output: {visible(wanted)}, or variants such as out-NAME.tsv"
        raise RejectedError("; ".join([reason, *(_stray(name, tests) for name in strays[:MAX_STRAYS])]))
    notes = [_stray(name, tests) for name in strays if name not in sets][:MAX_STRAYS]
    kept = sets.keys() | (inner.keys() & {GONITO_FILE})
    if len(kept) > budget.files:
        raise RejectedError(f"it has {len(kept)} files; at most {budget.files} are allowed")
    for name in sorted(kept):
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")

    files = copy_members(opened, {inner[name]: name for name in kept}, place, budget)
    outputs = outputs_of(files, tests, variants)
    details = opened.details
    if data := contents.get(inner.get(GONITO_FILE, ""), b""):
        from geval_py.board.intake.gonito import described

        details, problems = described(details, data)
        notes += (f"{GONITO_FILE}, {problem}" for problem in problems)
    parameters = {name for output in outputs for name in output.params} | details.params.keys()
    if len(parameters) > MAX_PARAMS:
        raise RejectedError(f"it has {len(parameters)} parameters; at most {MAX_PARAMS} are allowed")
    return Parcel(
        name=opened.name,
        source=opened.address,
        digest=digest_of(files),
        files=tuple(files),
        outputs=outputs,
        details=details,
        notes=tuple(notes),
    )


def _stray(name: str, tests: Sequence[str]) -> str:
    """Return where an output belongs that lies in no folder of a test set."""
    folder, _, file = name.rpartition("/")
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
    if match is None or not (is_beside or is_later or folder in tests):
        return None
    return folder or tests[0], match[2] or ""


def outputs_of(files: Sequence[ReceivedFile], tests: Sequence[str], variants: int) -> tuple[ReceivedOutput, ...]:
    """Return the outputs for some tests among files, at most so many for a test.

    Raises RejectedError for more, and if two are one variant of a test.
    """
    outputs: dict[tuple[str, str], ReceivedOutput] = {}
    for file in files:
        key = test_and_variant(file.name, tests)
        if key is None or key[0] not in tests:
            continue
        if key in outputs:
            both = f"`{visible(outputs[key].file)}` and `{visible(file.name)}`"
            raise RejectedError(f"{both} are the same variant; only one is allowed")
        parameters = parse_parameters(file.name.rpartition("/")[2])
        outputs[key] = ReceivedOutput(test=key[0], file=file.name, variant=key[1], params=parameters)
    for test, number in Counter(test for test, _ in outputs).items():
        if number > variants:
            only = "only one is" if variants == 1 else f"at most {variants} are"
            raise RejectedError(f"it has {number} outputs for {visible(test)}; {only} allowed")
    return tuple(outputs.values())
