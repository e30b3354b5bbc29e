"""Receive a submission: choose its files, copy them under numbers, and read how it describes itself."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence

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
MAX_GONITO_BYTES = 1 << 16
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
    max_bytes: Callable[[str], int],
) -> Parcel:
    """Copy a submission from a folder, an archive or a git branch into an empty folder.

    It needs an output for one of the ``tests``, and may have so many ``variants`` for each; ``max_bytes`` returns the
    most bytes of an output for a test. Raises RejectedError, whose reason names the member at fault, and FailedError.
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
    kept = inner.keys() & {GONITO_FILE}
    limited: dict[str, int] = {}
    for name in inner:
        if output := test_and_variant(name, tests):
            limited[inner[name]] = max_bytes(output[0])
        folder = name.rpartition("/")[0]  # of a test set, perhaps, whose outputs may be scored later
        if test_and_variant(name, [*tests, folder] if folder.startswith(TEST_SETS) else tests):
            kept.add(name)
    outside = sorted(
        name for name in inner if name.rpartition("/")[2].startswith("out") and inner[name] not in limited
    )
    if not limited:
        wanted = " or ".join(f"{test}/out.tsv" for test in tests)
        reason = f"it has no output: {visible(wanted)}, or variants such as out-NAME.tsv"
        raise RejectedError("; ".join([reason, *(_stray(name, tests) for name in outside[:MAX_STRAYS])]))
    notes = [_stray(name, tests) for name in outside if name not in kept][:MAX_STRAYS]
    if len(kept) > budget.files:
        raise RejectedError(f"it has {len(kept)} files; at most {budget.files} are allowed")
    for name in sorted(kept):
        if not name.isprintable():
            raise refused(name, "has characters in its name that cannot be shown")

    files = copy_members(opened, {inner[name]: name for name in kept}, place, budget, limited)
    outputs = outputs_of(files, tests, variants)
    details, data = opened.details, contents.get(inner.get(GONITO_FILE, ""), b"")
    if len(data) > MAX_GONITO_BYTES:
        notes.append(f"{GONITO_FILE} was not read: it is larger than {MAX_GONITO_BYTES} bytes")
    elif data:
        from geval_py.board.intake.gonito import described

        details, wrong = described(details, data)
        notes += (f"{GONITO_FILE}, {one}" for one in wrong)
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
    parts = [part for part in folder.split("/") if part in tests]
    test = parts[-1] if parts else nearest(folder.rpartition("/")[2], tests) or tests[0]
    right = f"{test}/{file if re.fullmatch(OUTPUT_NAME, file) else 'out.tsv'}"
    return f"`{visible(name)}` is not in its place; did you mean `{visible(right)}`?"


def test_and_variant(name: str, tests: Sequence[str]) -> tuple[str, str] | None:
    """Return the test and the variant of an output by its name; None for other files.

    Outputs lie in their test's folder or, if there is only one test, beside it.

    >>> test_and_variant("test-A/out-k=3.tsv.gz", ["test-A"]), test_and_variant("out.tsv", ["test-A", "test-B"])
    (('test-A', 'k=3'), None)
    """
    folder, _, file = name.rpartition("/")
    match = re.fullmatch(OUTPUT_NAME, file)
    if match is None or (not folder and (len(tests) > 1 or file.startswith(OUT_HEADER_FILE))):
        return None
    test = folder or tests[0]
    return (test, match[2] or "") if test in tests else None


def outputs_of(files: Sequence[ReceivedFile], tests: Sequence[str], variants: int) -> tuple[ReceivedOutput, ...]:
    """Return the outputs for some tests among files, at most so many for a test.

    Raises RejectedError for more, and if two are one variant of a test.
    """
    outputs: dict[tuple[str, str], ReceivedOutput] = {}
    for file in files:
        key = test_and_variant(file.name, tests)
        if key is None:
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
