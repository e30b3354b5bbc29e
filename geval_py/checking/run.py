"""Check outputs: read each once, let the kernel flag its lines, and look again at those that deserve it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from geval_py.checking.answers import AnswerRules
from geval_py.checking.file import FileRules, NotTextError
from geval_py.checking.findings import Findings
from geval_py.checking.lines import check_lines
from geval_py.checking.others import OtherRules, SeenTexts
from geval_py.checking.rules import COUNTED, UNREADABLE, Problem, Report, Uncounted, select_rules
from geval_py.checking.seen import Seen
from geval_py.checking.targets import Target, find_targets
from geval_py.errors import CorruptFileError, DataError, TooLargeError, UnreadableFileError
from geval_py.reading.lines import LineReader
from geval_py.scoring.blocks import BlockReader
from geval_py.scoring.parallel import Progress, ProgressOf, no_progress
from geval_py.text import visible
from geval_py.version import __version__

DEFAULT_MAX_BYTES = 20 * 10**9
DEFAULT_MAX_PLACES = 20


def check_submission(
    path: str | os.PathLike[str] = ".",
    *,
    challenge: str | os.PathLike[str] | None = None,
    tests: Sequence[str] = (),
    rules: Iterable[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> Report:
    """Find the problems of a submission: of an output, of a test set's folder, or of all in a submission's folder.

    ``challenge`` is the folder with the answers, inputs and headers (by default the submission's); ``tests`` are the
    names of the only test sets to check; ``rules`` the codes or names of the only rules, beside those of a file that
    cannot be read. Of each rule and output ``max_places`` places are kept (0: all). A compressed output that unpacks
    to more than ``max_bytes`` is a problem. ``progress`` is called after each block with the bytes read of one
    output, and its size.

    Whatever the outputs are, this does not fail. Raises UsageError for a rule that there is not, for a challenge that
    is none, and as :func:`find_targets`; DataError for what is wrong with the test set of standard input.
    """
    tests = (tests,) if isinstance(tests, str) else tests
    rules = (rules,) if isinstance(rules, str) else rules
    return check_targets(
        find_targets([os.fspath(path)], None if challenge is None else os.fspath(challenge), tests),
        select_rules(rules),
        max_places=max_places,
        max_bytes=max_bytes,
        progress_of=lambda _: nullcontext(progress),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
) -> Report:
    """Check some outputs with some rules (by code), and add the problems of those that are not there.

    ``progress_of`` gives what is called after each block of the output at a path, for as long as it is checked. What
    cannot be read of an output's test set is left out.
    """
    files: list[str] = []
    problems: list[Problem] = []
    unreadable: list[DataError] = []
    uncounted: list[Uncounted] = []
    for target in targets:
        if isinstance(target, Problem):
            files.append(target.path)
            problems += [target] if target.rule.code in rules else []
            continue
        files.append(target.output)
        with progress_of(target.output) as progress:
            found, left = _check_what_can_be_read(target, rules, max_places, max_bytes, progress)
        problems += found
        unreadable += left.unreadable
        uncounted += _uncounted(left, rules, found)
    return Report(
        version=__version__,
        files=tuple(files),
        problems=tuple(problems),
        unreadable=tuple(unreadable),
        uncounted=tuple(uncounted),
        strict=strict,
    )


def _check_what_can_be_read(
    target: Target, rules: Collection[str], max_places: int, max_bytes: int, progress: Progress | None
) -> tuple[list[Problem], Target]:
    """Check one output without those files of its test set that cannot be read; gives the target without them too."""
    while True:
        try:
            problems = check_output(target, rules, max_places=max_places, max_bytes=max_bytes, progress=progress)
        except DataError as error:
            rest = target.without(error)
            if (rest.expected, rest.input) == (target.expected, target.input) or not os.path.isfile(target.output):
                raise  # what can be read only once is not looked at again
            target = rest
        else:
            return problems, target


def _uncounted(target: Target, rules: Collection[str], problems: Iterable[Problem]) -> list[Uncounted]:
    """Tell of an output whose lines were to be counted, but could not be compared with any number."""
    if target.expected is not None or target.input is not None or COUNTED.isdisjoint(rules):
        return []
    if any(problem.rule.code in {*UNREADABLE, "E102"} for problem in problems):
        return []
    return [Uncounted(path=target.output, reason=target.without_count)]


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> list[Problem]:
    """Check one output with some rules (by code); gives the problems in the order of the table.

    Whatever the output is, this does not fail: what cannot be read is a problem too. Raises DataError only for the
    test set's own files (expected, input).
    """
    findings = Findings(target.output, rules, max_places)
    file = FileRules(target, findings)
    try:
        with LineReader(target.output, header=target.output_header, max_bytes=max_bytes) as outputs:
            _look_at(outputs, target, file, findings, progress)
    except NotTextError:
        findings.forget()
        message = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
        findings.add_file("E106", message, line=1, column=1)
    except (CorruptFileError, TooLargeError, UnreadableFileError) as error:
        if error.path != target.output:
            raise
        findings.forget()
        findings.add_file(*_fault_of(error))
    return findings.problems(file.lines)


def unreadable_output(path: str, max_bytes: int = DEFAULT_MAX_BYTES) -> Problem | None:
    """Give the problem of an output that is no text, or cannot be read as a whole; None if it can be."""
    problems = check_output(Target(output=path), UNREADABLE, max_places=1, max_bytes=max_bytes)
    return problems[0] if problems else None


def _fault_of(error: CorruptFileError | TooLargeError | UnreadableFileError) -> tuple[str, str]:
    """Give the rule and the message for an output that cannot be read."""
    if isinstance(error, CorruptFileError):
        return "E105", f"corrupt {error.compression} file: {visible(error.reason)}"
    if isinstance(error, TooLargeError):
        is_larger = "a line has" if error.what == "line" else "it unpacks to"
        return "E105", f"{is_larger} more than {error.max_bytes} bytes"
    return "E101", f"the output cannot be read: {visible(error.reason)}"


def _look_at(
    outputs: LineReader, target: Target, file: FileRules, findings: Findings, progress: Progress | None
) -> None:
    """Look at the lines of an output, beside the answers if there are any, and at it as a whole."""
    if outputs.has_byte_order_mark:
        findings.add_file("W211", "the file begins with a byte order mark", line=1, column=1, token="\ufeff")
    if target.metric is not None:
        _look_at_others(outputs, target, file, findings, progress)
        return
    answers = AnswerRules(findings) if target.expected is not None and target.words_are_plain else None
    with _open_expected(target) as expected:
        reader = BlockReader(outputs, expected)
        for _, seen in reader.map(Seen, progress=progress):
            file.see(seen)
            check_lines(seen, findings)
            if answers is not None:
                answers.see(seen)
        items = _count_input(target) if expected is None else reader.count_expected()
    file.conclude(items)
    if answers is not None:
        answers.conclude()


def _look_at_others(
    outputs: LineReader, target: Target, file: FileRules, findings: Findings, progress: Progress | None
) -> None:
    """Look at the lines of an output that is no distributions over words, and at it as a whole."""
    rules = OtherRules(target, findings)
    with _open_expected(target) as expected:
        reader = BlockReader(outputs, expected)
        for _, seen in reader.map(SeenTexts, threads=0, progress=progress):
            file.see(seen)
            rules.see(seen)
        items = _count_input(target) if expected is None else reader.count_expected()
    file.conclude(items)


def _open_expected(target: Target) -> AbstractContextManager[LineReader | None]:
    return nullcontext() if target.expected is None else LineReader(target.expected, header=target.output_header)


def _count_input(target: Target) -> int | None:
    if target.input is None:
        return None
    with LineReader(target.input, header=target.in_header) as inputs:
        return inputs.count_rest()
