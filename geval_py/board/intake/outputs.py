"""The outputs among a submission's files: test-A/out.tsv, test-A/out-model=a,k=3.tsv.xz and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geval_py.board.values import ReceivedFile, ReceivedOutput, RejectedError
from geval_py.reading.outputs import parse_parameters
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import visible

_OUTPUT = re.compile(r"out(?:-(.*))?\.tsv(?:\.(?:xz|gz|bz2|zst))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """The test sets whose outputs are taken: those that are scored, and those that may be one day."""

    tests: Sequence[str]
    to_come: Sequence[str] = ()

    def has(self, name: str) -> bool:
        """Tell whether a file of a submission is an output for one of them."""
        return test_and_variant(name, self.tests) is not None or self.comes(name)

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
