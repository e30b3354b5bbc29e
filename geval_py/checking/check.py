"""All rules of one output at work on its lines, block by block.

They work through the lines in one go or, elsewhere, on some blocks by themselves: what is found there, with as many
places as are wanted still, is added up in the order of the lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from geval_py.checking.findings import Findings, Seen
from geval_py.checking.line_rules import FileRules, NotTextError, check_lines
from geval_py.checking.rules import COUNTED, UNREADABLE, Problem, Report, Uncounted, select_rules
from geval_py.checking.targets import Target, find_targets
from geval_py.checking.task_rules import AnswerRules, OtherRules, SeenTexts
from geval_py.errors import CorruptFileError, DataError, TooLargeError, UnreadableFileError
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import is_part_of
from geval_py.scoring.blocks import Block, BlockReader, Threads
from geval_py.scoring.parallel import Progress, ProgressOf, ThreadPool, no_progress
from geval_py.text import named, visible
from geval_py.version import __version__

if TYPE_CHECKING:
    import distributed

    from geval_py.scoring.blocks import Workers


class Look:
    """Looks at the lines of one output, as one of word gaps or by the rules of its metric, and at it as a whole."""

    def __init__(
        self,
        findings: Findings,
        file: FileRules,
        *,
        answers: AnswerRules | None = None,
        others: OtherRules | None = None,
    ) -> None:
        self.findings, self.file = findings, file
        self._answers, self._others = answers, others

    @classmethod
    def at(cls, target: Target, findings: Findings) -> Look:
        """Make what looks at a target."""
        file = FileRules(target, findings)
        if target.metric is not None:
            return cls(findings, file, others=OtherRules.of(target, findings))
        with_answers = target.expected is not None and target.words_are_plain
        return cls(findings, file, answers=AnswerRules(findings) if with_answers else None)

    @property
    def is_of_words(self) -> bool:
        """Whether the kernel flags the lines."""
        return self._others is None

    def seen(self, block: Block) -> Seen:
        """Read a block, as the rules want it; blocks may be read in any order."""
        return Seen(block) if self.is_of_words else SeenTexts(block)

    def see(self, seen: Seen) -> None:
        """Apply the rules of lines to the next block."""
        self.file.see(seen)
        if self._others is not None:
            self._others.see(seen)
            return
        check_lines(seen, self.findings)
        if self._answers is not None:
            self._answers.see(seen)

    def later(self) -> Look:
        """Give the same for lines that come later, which finds anew, but only the places that are wanted still."""
        findings = self.findings.later()
        return Look(
            findings,
            self.file.later(findings),
            answers=None if self._answers is None else self._answers.later(findings),
            others=None if self._others is None else self._others.later(findings),
        )

    def extend(self, later: Look) -> None:
        """Add what was found in the next lines."""
        self.findings.extend(later.findings)
        self.file.extend(later.file)
        if self._answers is not None and later._answers is not None:
            self._answers.extend(later._answers)

    def conclude(self, items: int | None) -> None:
        """Say what can be told when all lines are seen; ``items`` is how many there should be, None if unknown."""
        self.file.conclude(items)
        if self._answers is not None:
            self._answers.conclude()


def look_at(blocks: Iterable[Block], look: Look) -> Look:
    """Look at some blocks in order; gives what was found in them. The look that is given stays as it is."""
    found = look.later()
    for block in blocks:
        found.see(found.seen(block))
    return found


# Check outputs: read each once, let the kernel flag its lines, and look again at those that deserve it.


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
    cluster: distributed.Client | None = None,
) -> Report:
    """Find the problems of a submission: of an output, of a test set's folder, or of all in a submission's folder.

    ``challenge`` is the folder with the answers, inputs and headers (by default the submission's); ``tests`` are the
    names of the only test sets to check; ``rules`` the codes or names of the only rules, beside those of a file that
    cannot be read. Of each rule and output ``max_places`` places are kept (0: all). A compressed output that unpacks
    to more than ``max_bytes`` is a problem. ``progress`` is called after each block with the bytes read of one
    output, and its size. ``cluster`` is the client of a Dask cluster, whose workers look at the lines then.

    Whatever the outputs are, this does not fail. Raises UsageError for a rule that there is not, for a challenge that
    is none, for what the workers of a cluster cannot read, and as :func:`find_targets`; DataError for what is wrong
    with the test set of standard input; ClusterError.
    """
    from geval_py.scoring.cluster import workers_of

    tests = (tests,) if isinstance(tests, str) else tests
    rules = (rules,) if isinstance(rules, str) else rules
    return check_targets(
        find_targets([os.fspath(path)], None if challenge is None else os.fspath(challenge), tests),
        select_rules(rules),
        max_places=max_places,
        max_bytes=max_bytes,
        progress_of=lambda _: nullcontext(progress),
        workers=workers_of(cluster),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
    workers: Workers | None = None,
) -> Report:
    """Check some outputs with some rules (by code), and add the problems of those that are not there.

    ``progress_of`` gives what is called after each block of the output at a path, for as long as it is checked. What
    cannot be read of an output's test set is left out. The other arguments are those of :func:`check_output`.
    """
    check = partial(check_output, rules=rules, max_places=max_places, max_bytes=max_bytes, workers=workers)
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
            found, left = _check_what_can_be_read(target, partial(check, progress=progress))
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


def _check_what_can_be_read(target: Target, check: Callable[[Target], list[Problem]]) -> tuple[list[Problem], Target]:
    """Check one output without those files of its test set that cannot be read; gives the target without them too."""
    while True:
        try:
            problems = check(target)
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
    workers: Workers | None = None,
) -> list[Problem]:
    """Check one output with some rules (by code); return the problems in the order of the table of rules.

    Whatever the output is, this does not fail: what cannot be read is a problem too. Raises DataError only for the
    test set's own files (expected, input), and what ``workers`` elsewhere raise: ClusterError, and UsageError for an
    output that can be read only once.
    """
    findings = Findings(target.output, rules, max_places)
    look = Look.at(target, findings)
    try:
        with LineReader(target.output, header=target.output_header, max_bytes=max_bytes) as outputs:
            _look_through(look, outputs, target, workers or Threads(), progress)
    except NotTextError:
        findings.forget()
        message = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
        findings.add_file("E106", message, line=1, column=1)
    except (CorruptFileError, TooLargeError, UnreadableFileError) as error:
        is_part = is_part_of(error.path, target.output)
        if error.path != target.output and not is_part:
            raise
        code, message = _fault_of(error)
        findings.forget()
        findings.add_file(code, f"{named(error.path)}: {message}" if is_part else message)
    return findings.problems(look.file.lines)


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


def _look_through(
    look: Look, outputs: LineReader, target: Target, workers: Workers, progress: Progress | None
) -> None:
    """Look at the lines of an output, beside the answers if there are any, and at it as a whole."""
    if outputs.has_byte_order_mark:
        message = "the file begins with a byte order mark"
        look.findings.add_file("W211", message, line=1, column=1, token="\ufeff")
    with _open_expected(target) as expected:
        reader = workers.reader(outputs, expected)
        if workers.are_here:
            _look_in_order(look, reader, progress)
        else:
            _look_at_beginning(look, target, outputs.max_bytes)
            for _, found in reader.map_pieces(look_at, lambda _: (look.later(),), progress=progress):
                look.extend(found)
        items = _count_input(target) if expected is None else reader.count_expected()
    look.conclude(items)


def _look_in_order(look: Look, reader: BlockReader, progress: Progress | None) -> None:
    """Look at the lines in order; threads have read them and, for word gaps, let the kernel flag them."""
    for block, seen in reader.map(look.seen, threads=None if look.is_of_words else 0, progress=progress):
        if block.first_line == 1:
            look.file.begin(seen)
        look.see(seen)


def _look_at_beginning(look: Look, target: Target, max_bytes: int | None) -> None:
    with (
        LineReader(target.output, header=target.output_header, max_bytes=max_bytes) as outputs,
        _open_expected(target) as expected,
    ):
        for block in islice(BlockReader(outputs, expected).blocks(ThreadPool(0)), 1):
            look.file.begin(look.seen(block))


def _open_expected(target: Target) -> AbstractContextManager[LineReader | None]:
    return nullcontext() if target.expected is None else LineReader(target.expected, header=target.output_header)


def _count_input(target: Target) -> int | None:
    if target.input is None:
        return None
    with LineReader(target.input, header=target.in_header) as inputs:
        return inputs.count_rest()
