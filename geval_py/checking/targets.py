"""From the paths that a user names to the outputs to check, each with what is known of its test set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from geval_py.checking.rules import RULES_BY_CODE, Place, Problem
from geval_py.errors import AmbiguousFileError, DataError, UsageError
from geval_py.reading.config import config_task
from geval_py.reading.outputs import OUTPUT_FILE, find_outputs
from geval_py.reading.sources import STANDARD_INPUT, find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, read_header
from geval_py.text import natural_order

OUT_HEADER_FILE = "out-header.tsv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An output to check, and what is known of its test set.

    ``expected`` and ``input`` are None where there is none; ``header`` is the name that a header line would begin
    with, and ``header_is_skipped`` tells whether the challenge's options name it. ``words_are_plain`` is False where
    the challenge's metric changes the lines before it compares words, as ``l`` for lower case does: whether a word
    is found can then not be told from the lines as they are.
    """

    output: str
    expected: str | None = None
    input: str | None = None
    header: str | None = None
    in_header: str | None = None
    header_is_skipped: bool = False
    words_are_plain: bool = True

    @property
    def output_header(self) -> str | None:
        """The first name of the header line to skip, in the output and in the answers."""
        return self.header if self.header_is_skipped else None

    def without(self, path: str) -> Target:
        """Leave out a file of the test set that cannot be read."""
        return replace(
            self,
            expected=None if self.expected == path else self.expected,
            input=None if self.input == path else self.input,
        )


def find_targets(
    paths: Sequence[str], challenge: str | None = None, tests: Sequence[str] = ()
) -> Iterator[Target | Problem]:
    """Give the outputs to check; where one is missing, the problem.

    A path is an output file, a test set's folder, or a submission's folder with dev-* and test-* folders (only those
    named in ``tests``, if any are). ``challenge`` is the folder with the answers and inputs: by default the
    submission's folder, or the one above an output's folder.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield from _file_targets(path, challenge, tests)
        elif tests or _test_sets(path) or not _holds_outputs(path):
            yield from _submission_targets(path, challenge or path, tests)
        else:
            yield from _folder_targets(path, challenge or os.path.dirname(os.path.abspath(path)), path)


def _missing(path: str, message: str) -> Problem:
    place = Place(line=0, column=0, token="", message=message)
    return Problem(rule=RULES_BY_CODE["E101"], path=path, count=1, share=1.0, summary=message, places=(place,))


def _file_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    if path == STANDARD_INPUT:
        raise UsageError(message="give the output as a file: standard input has no test set")
    try:
        found = find_file(path)
    except DataError as error:
        yield _missing(path, _one_line(error))
        return
    if found is None:
        yield _missing(path, "there is no such file")
        return
    folder = os.path.dirname(os.path.abspath(found))
    test = tests[0] if tests else os.path.basename(folder)
    yield _with_test_set(Target(output=found), challenge or os.path.dirname(folder), test)


def _submission_targets(path: str, challenge: str, tests: Sequence[str]) -> Iterator[Target | Problem]:
    names = tests or sorted({*_test_sets(path), *_test_sets(challenge)}, key=natural_order)
    if not names:
        yield _missing(os.path.join(path, OUTPUT_FILE), "there is no output here, and no dev-* or test-* folder")
    for name in names:
        yield from _folder_targets(os.path.join(path, name), challenge, path)


def _test_sets(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [n for n in names if n.startswith(("dev-", "test-")) and os.path.isdir(os.path.join(folder, n))]


def _folder_targets(folder: str, challenge: str, submission: str) -> Iterator[Target | Problem]:
    try:
        outputs = find_outputs(folder) if os.path.isdir(folder) else ()
    except DataError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not outputs:
        yield _missing(os.path.join(folder, OUTPUT_FILE), "there is no output for this test set")
    for output in outputs:
        if _leads_outside(output.path, submission):
            yield _missing(output.path, "a link that leads outside of the submission; it is not followed")
        elif not os.path.isfile(output.path):
            yield _missing(output.path, "it is not a file")
        else:
            test = os.path.basename(os.path.abspath(folder))
            yield _with_test_set(Target(output=output.path), challenge, test)


def _holds_outputs(folder: str) -> bool:
    """Tell whether a folder itself holds outputs, be they ambiguous."""
    try:
        return bool(find_outputs(folder))
    except DataError:
        return True


def _leads_outside(path: str, folder: str) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, root]) != root


def _with_test_set(target: Target, challenge: str, test: str) -> Target:
    """Add what the challenge has of a test set: answers, input and headers."""
    folder = os.path.join(challenge, test)
    return replace(
        _with_options(target, challenge),
        expected=_find_regular(os.path.join(folder, EXPECTED_FILE)),
        input=_find_regular(os.path.join(folder, INPUT_FILE)),
    )


def _find_regular(path: str) -> str | None:
    """Find one of the test set's files; none if it is no regular file, which might never end, or cannot be told."""
    if path == STANDARD_INPUT:
        raise UsageError(message="give the output as a file: standard input has no test set")
    try:
        found = find_file(path)
    except AmbiguousFileError:
        return None
    return found if found is not None and os.path.isfile(found) else None


def _one_line(error: DataError) -> str:
    return "; ".join(map(str.strip, str(error).splitlines()))


def _with_options(target: Target, challenge: str) -> Target:
    """Add what the challenge's options say: the headers, and whether its main metric changes the lines."""
    try:
        options = config_task(challenge)
        if options.out_header is not None:
            names = read_header(challenge, options.out_header)
        elif os.path.isfile(os.path.join(challenge, OUT_HEADER_FILE)):
            names = read_header(challenge, OUT_HEADER_FILE)
        else:
            names = ()
        inputs = read_header(challenge, options.in_header)
    except DataError:
        return target  # a challenge that is broken is not the submission's fault
    return replace(
        target,
        header=names[0] if names else None,
        in_header=inputs[0] if inputs else None,
        header_is_skipped=options.out_header is not None,
        words_are_plain=not any(scheme.text_flags for scheme in options.schemes()[:1]),
    )
