"""The outputs among a submission's files: test-A/out.tsv, test-A/out-model=a,k=3.tsv.xz and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geval_py.board.values import ReceivedFile, ReceivedOutput, RejectedError
from geval_py.reading.outputs import parse_parameters
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import visible

_OUTPUT = re.compile(r"out(?:-(.*))?\.tsv(?:\.(?:xz|gz|bz2|zst))?", re.DOTALL)


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
    """Give the outputs; raises RejectedError where there is none, and where two are one variant of a test."""
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
