"""Check outputs: read each once, let threads check its blocks, and sum up what they found."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from geval_py.checking.file_rules import CheckedOutput, problems_of
from geval_py.checking.rules import READ_FORMATS, RULES_BY_CODE, Problem, Report, file_problem, select_rules
from geval_py.checking.targets import Target, find_targets
from geval_py.checking.word_checks import LineFindings, check_words
from geval_py.errors import (
    CorruptFileError,
    DataError,
    MissingPackageError,
    TooLargeError,
    UnreadableFileError,
    UnsupportedEncodingError,
)
from geval_py.reading import files, lines
from geval_py.scoring.blocks import Progress, ProgressOf, map_blocks, no_progress
from geval_py.text import named, visible

DEFAULT_MAX_PLACES = 20


def check(
    path: str | os.PathLike[str] = ".",
    *,
    challenge: str | os.PathLike[str] | None = None,
    tests: Sequence[str] = (),
    metrics: Sequence[str] = (),
    rules: Iterable[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> Report:
    """Find the problems of a submission; ``path`` is an output, a test set's folder, or the submission's folder.

    ``challenge`` is the folder with the answers, inputs and headers (by default the submission's); ``tests`` are the
    names of the only test sets to check; ``metrics`` replace the challenge's; ``rules`` are the codes or names of the
    only rules; rules about unreadable files always apply. ``max_places`` places are kept of each rule and output
    (0: all). A compressed output that unpacks to more than ``max_bytes`` is a problem. ``progress`` is called after
    each block with the number of bytes read of one output, and its size.

    No output makes this fail. Raises UsageError for an unknown rule, for a folder that is no challenge, and as
    ``find_targets``.
    """
    tests = (tests,) if isinstance(tests, str) else tests
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    rules = (rules,) if isinstance(rules, str) else rules
    return check_targets(
        find_targets([os.fspath(path)], None if challenge is None else os.fspath(challenge), tests, metrics),
        select_rules(rules),
        max_places=max_places,
        max_bytes=max_bytes,
        progress_of=lambda _: nullcontext(progress),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
    **limits: int,
) -> Report:
    """Check outputs with the rules of some codes; report missing outputs too.

    ``progress_of(path)`` returns a context manager with the function that is called after each block of that output.
    The ``limits`` are those of :func:`check_output`.
    """
    files: list[str] = []
    problems: list[Problem] = []
    unreadable: list[DataError] = []
    notes: list[str] = []
    for target in targets:
        if isinstance(target, Problem):
            files.append(target.path)
            problems += [target] if target.rule.code in rules else []
            continue
        files.append(target.name)
        with progress_of(target.output) as progress:
            problems += check_output(target, rules, progress=progress, **limits)
        notes += [*target.notes, *(f"{named(target.name)}: {note}" for note in target.file.notes)]
        unreadable += target.unreadable
    return Report(
        files=tuple(files),
        problems=tuple(problems),
        unreadable=tuple(unreadable),
        notes=tuple(dict.fromkeys(notes)),
        strict=strict,
    )


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> list[Problem]:
    """Check one output with the rules of some codes; return the problems in the order of the table of rules.

    An output that cannot be read, even for want of a package, is a problem, not an error.
    """
    codes = frozenset(rules) - target.pointless
    check_lines = check_words
    if not target.is_of_words:
        from geval_py.checking.text_checks import check_texts as check_lines
    work: Any = partial(check_lines, target=target, max_places=max_places or 1 << 62)
    total: LineFindings | None = None
    try:
        with (
            lines.LineReader(target.file, header=target.header, max_bytes=max_bytes) as outputs,
            lines.LineReader(target.expected, header=target.header) if target.expected else nullcontext() as expected,
        ):
            for _, findings in map_blocks(outputs, expected, work, progress=progress):
                total = total.extended(findings) if total else findings
                if total.counts["binary"]:
                    reason = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
                    raise UnsupportedEncodingError(path=target.output, reason=reason)
    except (CorruptFileError, TooLargeError, UnreadableFileError, MissingPackageError) as error:
        code = "E101"
        is_opened = files.format_ending(target.output) and getattr(error.__cause__, "errno", None) is None
        match error:
            case UnsupportedEncodingError():
                code = "E106"
            case CorruptFileError() | TooLargeError():
                code = "E105"
            case UnreadableFileError() if is_opened:
                code = "E108"
        reason = str(getattr(error, "reason", error))
        message = f"the output cannot be read: {visible(reason)}"
        fix = READ_FORMATS if code == "E101" else ""
        return [file_problem(RULES_BY_CODE[code], target.name, message, fix)]
    if total is None:
        empty = file_problem(RULES_BY_CODE["E102"], target.name, "the output has no line")
        return [empty] if "E102" in codes else []
    return problems_of(CheckedOutput(target, total, codes, outputs.has_byte_order_mark))
