"""Check outputs: read each once, let the kernel flag its lines, and apply the rules to them, block by block.

The lines are checked in one go or, on a cluster, by workers that check some blocks each; what they find is added up
in the order of the lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice

from geval_py.checking.findings import Findings, FlaggedBlock
from geval_py.checking.line_rules import AnswerRules, FileRules, NotTextError, check_lines
from geval_py.checking.rules import (
    COUNTED,
    MEND_FIRST,
    READ_FORMATS,
    RULES_BY_CODE,
    UNREADABLE,
    Place,
    Problem,
    Report,
    Uncounted,
    select_rules,
)
from geval_py.checking.subwords import SubwordRules
from geval_py.checking.targets import Target, find_targets
from geval_py.errors import CorruptFileError, DataError, MissingPackageError, TooLargeError, UnreadableFileError
from geval_py.reading import formats, lines, sources
from geval_py.scoring.blocks import Block, BlockReader, Progress, ProgressOf, ThreadPool, Threads, no_progress
from geval_py.text import named, visible
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import distributed

    from geval_py.checking.metric_rules import MetricRules
    from geval_py.scoring.blocks import Workers


DEFAULT_MAX_PLACES = 20


def check_submission(
    path: str | os.PathLike[str] = ".",
    *,
    challenge: str | os.PathLike[str] | None = None,
    tests: Sequence[str] = (),
    metrics: Sequence[str] = (),
    rules: Iterable[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
    cluster: distributed.Client | None = None,
) -> Report:
    """Find the problems of a submission; ``path`` is an output, a test set's folder, or the submission's folder.

    ``challenge`` is the folder with the answers, inputs and headers (by default the submission's); ``tests`` are the
    names of the only test sets to check; ``metrics`` replace the challenge's; ``rules`` are the codes or names of the
    only rules; rules about unreadable files always apply. ``max_places`` places are kept of each rule and output
    (0: all). A compressed output that unpacks to more than ``max_bytes`` is a problem. ``progress`` is called after
    each block with the number of bytes read of one output, and its size. ``cluster`` is the client of a Dask cluster
    whose workers check the lines.

    No output makes this fail. Raises UsageError for an unknown rule, for a folder that is no challenge, for a file
    that the workers of a cluster cannot read, and as ``find_targets``; DataError for a mistake in the test set of
    standard input; ClusterError.
    """
    from geval_py.scoring.cluster import workers_of

    tests = (tests,) if isinstance(tests, str) else tests
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    rules = (rules,) if isinstance(rules, str) else rules
    return check_targets(
        find_targets([os.fspath(path)], None if challenge is None else os.fspath(challenge), tests, metrics),
        select_rules(rules),
        max_places=max_places,
        max_bytes=max_bytes,
        keep_going=True,
        progress_of=lambda _: nullcontext(progress),
        workers=workers_of(cluster),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
    keep_going: bool = False,
    workers: Workers | None = None,
) -> Report:
    """Check outputs with the rules of some codes; report missing outputs too.

    ``progress_of(path)`` returns a context manager with the function that is called after each block of that output.
    Files of a test set that cannot be read are left out. ``keep_going``: an output that needs a package which is
    missing here is a problem, not a MissingPackageError. The other arguments are those of :func:`check_output`.
    """
    check = partial(check_output, rules=rules, max_places=max_places, max_bytes=max_bytes, workers=workers)
    files: list[str] = []
    problems: list[Problem] = []
    unreadable: list[DataError] = []
    uncounted: list[Uncounted] = []
    notes: list[str] = []
    for target in targets:
        if isinstance(target, Problem):
            files.append(target.path)
            problems += [target] if target.rule.code in rules else []
            continue
        files.append(target.output)
        with progress_of(target.output) as progress:
            try:
                found, target = _check_readable(target, partial(check, progress=progress))
            except MissingPackageError as error:
                if not keep_going:
                    raise
                found = [_unreadable(target.output, str(error))]
        problems += found
        notes += target.notes
        unreadable += target.unreadable
        is_counted = target.expected is not None or target.input is not None or COUNTED.isdisjoint(rules)
        if not is_counted and not any(problem.rule.code in {*UNREADABLE, "E102"} for problem in found):
            uncounted.append(Uncounted(path=target.output, reason=target.without_count))
    return Report(
        version=__version__,
        files=tuple(files),
        problems=tuple(problems),
        unreadable=tuple(unreadable),
        uncounted=tuple(uncounted),
        notes=tuple(dict.fromkeys(notes)),
        strict=strict,
    )


def _unreadable(path: str, reason: str) -> Problem:
    message = f"the output cannot be read: {visible(reason)}"
    place = Place(line=0, column=0, token="", message=message)
    rule = RULES_BY_CODE["E101"]
    return Problem(rule=rule, path=path, count=1, share=1.0, summary=message, places=(place,), mend=READ_FORMATS)


def _check_readable(target: Target, check: Callable[[Target], list[Problem]]) -> tuple[list[Problem], Target]:
    """Check one output; leave out, from the returned target too, the files of its test set that cannot be read."""
    while True:
        try:
            problems = check(target)
        except DataError as error:
            rest = target.without(error)
            if (rest.expected, rest.input) == (target.expected, target.input) or not os.path.isfile(target.output):
                raise  # a stream can be read only once
            target = rest
        else:
            return problems, target


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> list[Problem]:
    """Check one output with the rules of some codes; return the problems in the order of the table of rules.

    An output that cannot be read is a problem, not an error. Raises DataError only for the test set's own files
    (expected, input); with workers elsewhere ClusterError, and UsageError for a stream, which can be read only once.
    """
    findings = Findings(target.output, frozenset(rules) - target.pointless, max_places)
    checker = OutputChecker.of_target(target, findings)
    try:
        with lines.LineReader(target.output, header=target.output_header, max_bytes=max_bytes) as outputs:
            _check_lines(checker, outputs, target, workers or Threads(), progress)
    except NotTextError:
        findings.clear()
        message = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
        findings.add_file("E106", message, line=1, column=1)
    except (CorruptFileError, TooLargeError, UnreadableFileError) as error:
        is_part = sources.is_part_of(error.path, target.output)
        if error.path != target.output and not is_part:
            raise
        code, message = _unreadable_rule(error)
        findings.clear()
        findings.add_file(code, f"{named(error.path)}: {message}" if is_part else message)
        if code == "E101":
            is_tsv = formats.format_of(target.output) is None
            return [problem.replace(mend=READ_FORMATS if is_tsv else MEND_FIRST) for problem in findings.problems(0)]
    return findings.problems(checker.file.lines)


def unreadable_output(path: str, max_bytes: int = lines.DEFAULT_MAX_BYTES) -> Problem | None:
    """Return the problem of an output that is not text, or cannot be read to its end; None if there is none."""
    try:
        problems = check_output(Target(output=path), UNREADABLE, max_places=1, max_bytes=max_bytes)
    except MissingPackageError as error:
        return _unreadable(path, str(error))
    return problems[0] if problems else None


def _unreadable_rule(error: CorruptFileError | TooLargeError | UnreadableFileError) -> tuple[str, str]:
    """Return the rule and the message for an output that cannot be read."""
    if isinstance(error, CorruptFileError):
        return "E105", f"corrupt {error.compression} file: {visible(error.reason)}"
    if isinstance(error, TooLargeError):
        is_larger = "a line has" if error.what == "line" else "it unpacks to"
        return "E105", f"{is_larger} more than {error.max_bytes} bytes"
    return "E101", f"the output cannot be read: {visible(error.reason)}"


def _check_lines(
    checker: OutputChecker, outputs: lines.LineReader, target: Target, workers: Workers, progress: Progress | None
) -> None:
    if outputs.has_byte_order_mark:
        message = "the file begins with a byte order mark"
        checker.findings.add_file("W211", message, line=1, column=1, token="\ufeff")
    with _open_expected(target) as expected:
        reader = workers.reader(outputs, expected)
        if workers.are_here:
            _check_in_order(checker, reader, progress)
        else:
            _check_beginning(checker, target, outputs.max_bytes)
            for _, found in reader.map_pieces(
                check_blocks, lambda _: (checker.for_later_lines(),), progress=progress
            ):
                checker.extend(found)
        items = _count_input(target) if expected is None else reader.count_expected()
    checker.finish(items)


def _check_in_order(checker: OutputChecker, reader: BlockReader, progress: Progress | None) -> None:
    """Check the lines in order; threads flag them ahead."""
    for block, flagged in reader.map(checker.flag, threads=None if checker.is_of_words else 0, progress=progress):
        if block.first_line == 1:
            checker.file.begin(flagged)
        checker.check(flagged)


def _check_beginning(checker: OutputChecker, target: Target, max_bytes: int | None) -> None:
    with (
        lines.LineReader(target.output, header=target.output_header, max_bytes=max_bytes) as outputs,
        _open_expected(target) as expected,
    ):
        for block in islice(BlockReader(outputs, expected).blocks(ThreadPool(0)), 1):
            checker.file.begin(checker.flag(block))


def _count_input(target: Target) -> int | None:
    if target.input is None:
        return None
    with lines.LineReader(target.input, header=target.in_header) as inputs:
        return inputs.count_rest()


def _open_expected(target: Target) -> AbstractContextManager[lines.LineReader | None]:
    return (
        nullcontext() if target.expected is None else lines.LineReader(target.expected, header=target.output_header)
    )


class OutputChecker:
    """Applies all rules to one output: to its lines, by the kernel's flags or its metric, and to it as a whole."""

    def __init__(
        self,
        findings: Findings,
        file: FileRules,
        *,
        answers: AnswerRules | None = None,
        metric: MetricRules | None = None,
        subwords: SubwordRules | None = None,
    ) -> None:
        self.findings, self.file = findings, file
        self._answers, self._metric, self._subwords = answers, metric, subwords

    @classmethod
    def of_target(cls, target: Target, findings: Findings) -> OutputChecker:
        """Choose the rules for a target."""
        file = FileRules(target, findings)
        if not target.is_of_words:
            from geval_py.checking.metric_rules import MetricRules

            return cls(findings, file, metric=MetricRules.of_target(target, findings))
        with_answers = target.expected is not None and target.words_are_plain
        answers = AnswerRules(findings) if with_answers else None
        return cls(findings, file, answers=answers, subwords=SubwordRules(target, findings))

    @property
    def is_of_words(self) -> bool:
        """Whether the lines are distributions over words, which the kernel flags."""
        return self._metric is None

    def flag(self, block: Block) -> FlaggedBlock:
        """Flag the lines of a block; blocks may be flagged in any order."""
        if self._metric is None:
            return FlaggedBlock(block)
        from geval_py.checking.metric_rules import TextBlock

        return TextBlock(block)

    def check(self, block: FlaggedBlock) -> None:
        """Apply the rules of lines to the next block."""
        self.file.check(block)
        if self._metric is not None:
            self._metric.check(block)
            return
        check_lines(block, self.findings)
        if self._subwords is not None:
            self._subwords.check(block)
        if self._answers is not None:
            self._answers.check(block)

    def for_later_lines(self) -> OutputChecker:
        """Return a checker for later lines, without findings, which keeps only the places that are still wanted."""
        findings = self.findings.for_later_lines()
        return OutputChecker(
            findings,
            self.file.for_later_lines(findings),
            answers=None if self._answers is None else self._answers.for_later_lines(findings),
            metric=None if self._metric is None else self._metric.for_later_lines(findings),
            subwords=None if self._subwords is None else self._subwords.for_later_lines(findings),
        )

    def extend(self, later: OutputChecker) -> None:
        """Add the findings of the next lines."""
        self.findings.extend(later.findings)
        self.file.extend(later.file)
        if self._answers is not None and later._answers is not None:
            self._answers.extend(later._answers)
        if self._metric is not None and later._metric is not None:
            self._metric.extend(later._metric)
        if self._subwords is not None and later._subwords is not None:
            self._subwords.extend(later._subwords)

    def finish(self, items: int | None) -> None:
        """Apply the rules that need all lines; ``items`` is the number of lines there should be, None if unknown."""
        self.file.finish(items)
        for line_rules in (self._answers, self._metric, self._subwords):
            if line_rules is not None:
                line_rules.finish()


def check_blocks(blocks: Iterable[Block], checker: OutputChecker) -> OutputChecker:
    """Check blocks in order with a new checker, which is returned; the given one is not changed."""
    found = checker.for_later_lines()
    for block in blocks:
        found.check(found.flag(block))
    return found
