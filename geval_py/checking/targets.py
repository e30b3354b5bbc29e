"""The outputs that a user's paths name, each with what is known of its test set.

The test set of an output is the one that is named, the one that its folder is called after, or the only one of the
challenge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from geval_py.checking.rules import RULES_BY_CODE, Problem, file_problem
from geval_py.errors import DataError, MalformedLineError, MissingPackageError, UnreadableFileError, UsageError
from geval_py.reading import config, files
from geval_py.reading.files import ANSWERS_ALONE, File
from geval_py.reading.lines import LineReader, count_lines, decode_lines, first_name
from geval_py.reading.outputs import OUTPUT_FILE, output_at
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.reading.splits import (
    DEV_SET,
    EXPECTED_FILE,
    INPUT_FILE,
    OUT_HEADER_FILE,
    TRAINING_SET,
    answers_at,
    find_answers,
    holds_data,
    is_set_name,
    outputs_named,
    read_header,
    sets_in,
)
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.base import Metric
from geval_py.text import named, nearest, some_of, visible, words

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation

NO_OPTIONS = config.Task()
SHARED_FIELDS = words(
    "task config_fault expected input training unreadable lines header unread_header"
)  # by outputs of a set
MAX_FIRST_LINES = 1000  # of an output or of answers, which show what its lines are where no option does


@dataclass
class Target:
    """An output to check, and what is known of its test set, which functions add.

    ``test`` is the test set in the folder ``challenge``; where it is None, ``doubt`` says why. ``task`` has the
    options of the challenge; if it cannot be read, ``config_fault`` says why. ``expected``, ``input`` and
    ``training`` (the answers of train) are None if they are missing or cannot be read; ``unreadable`` holds the
    errors of the former two. ``lines`` is the number of lines that the output should have. The output and the answers
    begin with a line named ``header``; outputs may not begin with ``unread_header``, whose file no option names.
    ``shown`` is the name of an output that is a copy of another one. ``notes`` say what is not known, and what is
    checked instead.

    The rules follow from the metrics. ``is_of_words``: those of word gaps apply. Otherwise those of ``metric`` do,
    the challenge's first; it is None if it is not known. ``preparation`` changes lines before that metric reads them.
    ``words_are_plain`` is False if the metric changes the lines before it compares words, as the flag ``l`` (lower
    case) does: the lines as they are do not show then whether a word is found. ``reader`` is a metric that cannot
    read vectors, ``pointless`` are the rules without a meaning for the metrics. A vector has a number for each of 2
    to the power of ``bits`` buckets.
    """

    file: File
    challenge: str = os.curdir
    test: str | None = None
    doubt: str = "its test set is not known"
    task: config.Task = NO_OPTIONS
    config_fault: str = ""
    expected: File | None = None
    input: File | None = None
    training: File | None = None
    unreadable: list[DataError] = field(default_factory=list)
    lines: int | None = None
    header: str | None = None
    unread_header: str | None = None
    shown: str = ""
    notes: list[str] = field(default_factory=list)
    is_of_words: bool = True
    metric: Metric | None = None
    preparation: Preparation | None = None
    words_are_plain: bool = True
    reader: Metric | None = None
    pointless: frozenset[str] = frozenset()
    bits: int = DEFAULT_BITS

    @property
    def output(self) -> str:
        """The output as it was named."""
        return self.file.name

    @property
    def name(self) -> str:
        """The name of the output in reports."""
        return self.shown or self.output


def find_targets(
    paths: Sequence[str],
    challenge: str | None = None,
    tests: Sequence[str] = (),
    metrics: Sequence[str] = (),
    lines: int | None = None,
) -> Iterator[Target | Problem]:
    """Yield the outputs to check, and a problem for each one that is missing.

    A path is an output, a test set's folder, or a submission: a folder or an archive, in which only the test sets
    ``tests`` count, if any are named. With ``tests``, an output is looked for in their folders first, and may have a
    name as for :func:`geval_py.reading.splits.outputs_named`. ``challenge`` is the folder with the answers and
    inputs: by default the submission's, the one above an output's folder, or the current one. ``metrics`` replace the
    challenge's. ``lines`` is the number of lines of outputs for which there are no answers and no input. The copies
    of an archive's members are removed when the next path is asked for.

    Raises UsageError for a folder that is no challenge, for an output of several test sets, and if standard input
    would be read twice; SchemeError for a metric.
    """
    from geval_py.board.intake.archives import is_archive

    for scheme in config.checked_schemes(metrics):
        find_metric(scheme.metric)
    if paths.count(files.STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read only once: give one output as -")
    if challenge is not None:
        _check_challenge(challenge, tests)
    before = None
    for path in paths:
        is_submission = os.path.isfile(path) and is_archive(path)
        if os.path.isdir(path):  # also that of a test set, by its name or by its files
            is_set = is_set_name(os.path.basename(os.path.abspath(path))) or holds_data(path)
            is_submission = not is_set or bool(_test_sets(path))
        for target in (_submission_targets if is_submission else _output_targets)(path, challenge, tests):
            if isinstance(target, Target):
                target.lines = lines
                with_options(target, metrics, before)
                before = target
            yield target


def _submission_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    """Yield the outputs that a board takes of a folder or an archive, and a problem if it takes none of them."""
    from geval_py.board.intake.receiving import user_submission
    from geval_py.board.intake.sources import DAMAGED_ARCHIVE
    from geval_py.errors import RejectedError

    challenge, sets = challenge_and_tests(path, challenge)
    if sets:
        _check_challenge(challenge, tests)
    try:
        with user_submission(path, tests or sets) as (selection, paths):
            for output in selection.outputs:
                target = Target(output_at(paths[output.file]).file, challenge, output.test)
                target.shown = "" if os.path.isdir(path) else os.path.join(path, output.file)
                target.notes += (f"{visible(path)}: {note}" for note in selection.notes)
                yield target
            for test in selection.tests:
                if all(output.test != test for output in selection.outputs):
                    missing = os.path.join(path, test, OUTPUT_FILE)
                    yield file_problem(RULES_BY_CODE["W107"], missing, "there is no output for this test set")
    except RejectedError as error:
        reason, is_damaged, _ = _one_line(error).partition(DAMAGED_ARCHIVE)
        yield file_problem(RULES_BY_CODE["E105" if is_damaged else "E101"], path, reason)


def _one_line(error: DataError | UsageError) -> str:
    return "; ".join(map(str.strip, str(error).splitlines()))


def _output_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    """Yield the outputs that a path stands for or, in each of the named test sets, a name."""
    seen: set[str] = set()
    for test in tests or (None,):
        is_here = test is None or os.path.isdir(test) or os.path.lexists(path)
        base = os.curdir if is_here or challenge is None else challenge
        try:
            outputs = outputs_named("" if test is None else os.path.join(base, test), path)
        except DataError as error:
            outputs = (output_at(error.path)._replace(fault=error),)
        for output in outputs:
            if output.fault is not None:
                yield file_problem(RULES_BY_CODE["E101"], output.path, _one_line(output.fault))
                continue
            if output.path in seen:
                raise UsageError(
                    f"`{visible(output.path)}` cannot be for {len(tests)} test sets ({some_of(tests)}): choose one"
                )
            seen.add(output.path)
            is_file = not output.file.is_in_no_folder
            folder = os.path.dirname(os.path.abspath(output.path)) if is_file else os.curdir
            place, name, doubt = _test_set_of(folder, challenge, test)
            if challenge is None and is_file and not os.path.isabs(output.path):  # messages name all files in one way
                place = os.path.relpath(place)
            target = Target(output.file, place, name, doubt)
            if name is not None and doubt:
                target.notes.append(f"{named(output.path)}: {doubt}")
            yield target


# The folders of challenges and submissions


def challenge_and_tests(path: str, challenge: str | None) -> tuple[str, list[str]]:
    """Return the challenge of a submission, if none is named itself or the current folder, and its test sets."""
    for place in (challenge,) if challenge else (path, os.curdir):
        if sets := _test_sets(place):
            return place, sets
    return challenge or path, []


def _test_sets(challenge: str) -> list[str]:
    """Return the names of the sets that a board scores, first those with hidden answers."""
    try:
        names = [name for name in sets_in(challenge) if not name.startswith(TRAINING_SET)]
    except UnreadableFileError:
        return []
    return sorted(names, key=lambda name: not name.startswith("test"))


def _test_set_of(folder: str, challenge: str | None, test: str | None) -> tuple[str, str | None, str]:
    """Return the challenge and the test set that an output in a folder is for.

    The challenge and the test set may be named. The last value says why the test set is not known, None, or how it
    was chosen.
    """
    parent, name = os.path.split(folder)
    if test is not None:
        places = (parent, folder, os.curdir)
        with_test = (place for place in places if holds_data(os.path.join(place, test)))
        return challenge or next(with_test, os.curdir), test, ""
    sets = _test_sets(challenge or folder)
    if challenge is None and not sets:
        return parent, name, ""
    challenge = challenge or folder
    if name in sets:
        return challenge, name, ""
    if len(sets) == 1:
        return challenge, sets[0], f"compared with {named(os.path.join(challenge, sets[0]))}, the only test set"
    doubt = f"it may belong to {visible(' or '.join(sets))}" if sets else f"`{visible(challenge)}` has no test set"
    return challenge, None, doubt


def _check_challenge(path: str, tests: Sequence[str]) -> None:
    """Raise UsageError if a folder is no challenge, or has test sets, but not all of ``tests``."""
    reason = close = ""  # the path that may be meant
    try:
        sets = sets_in(path)
        if not sets and not files.exists(os.path.join(path, config.CONFIG_FILE)):
            reason = f"it has no {config.CONFIG_FILE}, and no test set such as {DEV_SET}"
            if holds_data(path):
                close = os.path.join(path, os.pardir)
    except UnreadableFileError as error:
        sets, reason = [], f"it cannot be read: {error.reason}"
        folder, name = os.path.split(os.path.normpath(path))
        with suppress(UnreadableFileError):
            name = nearest(name, files.names_in(folder or os.curdir, "directory")) or ""
            close = name and os.path.join(folder, name)
    if reason:
        advice = f"\n  did you mean `{visible(os.path.normpath(close))}`?" if close not in ("", path) else ""
        raise UsageError(f"`{visible(path)}` is no challenge: {reason}{advice}")
    for test in tests:
        if sets and not os.path.isdir(os.path.join(path, test)):
            names = some_of(_test_sets(path))
            raise UsageError(f"`{visible(path)}` has no test set `{visible(test)}`\n  there are {names}")


# The options of a challenge


def with_options(target: Target, metric_names: Sequence[str] = (), before: Target | None = None) -> None:
    """Add what the options of the target's challenge tell, and the rules that apply.

    The metrics, those of some ``metric_names`` or else the challenge's, choose the rules or, with a note, where they
    are not known, the output's first lines. What is known of the test set is not read again if it is that of the
    output ``before``. Raises UsageError where parts of JSON lines are scored.
    """
    if before and (before.challenge, before.test) == (target.challenge, target.test):
        vars(target).update((name, getattr(before, name)) for name in SHARED_FIELDS)
    else:
        _add_files(target)
    path, task, unknown = os.path.join(target.challenge, config.CONFIG_FILE), target.task, target.config_fault
    if task.selector is not None:
        raise UsageError(f"{named(path)} has --selector: parts of JSON lines are not checked, only scored")
    if metric_names:
        task, unknown = task.replace(alt_metrics=tuple(metric_names), select_metrics=()), ""
    target.file.answers = target.expected
    try:
        if not unknown and task.schemes():
            _add_rules(target, task)
            return
    except UsageError as error:
        unknown = f"{_one_line(error)}; in {named(path)}"
    if not unknown:
        reason = "names no metric" if files.exists(path) else "is not there"
        target.notes.append(
            f"the rules of word gaps apply, since {named(path)} {reason}; "
            "for another task, add --metric NAME or --challenge DIR"
        )
        return
    from geval_py.reading.wordprobs import parse_entries

    texts = first_lines(target.file, target.header)
    target.is_of_words = not texts
    for text in (text for text in texts if ":" in text):
        with suppress(MalformedLineError):
            parse_entries(text, 1)
            target.is_of_words = True
    what = "the rules of word gaps apply" if target.is_of_words else "only the rules of any text apply"
    target.notes.append(f"{unknown}; so {what}")


def _add_files(target: Target) -> None:
    """Add the challenge's options, headers, answers, input and number of lines; leave out what cannot be read."""
    try:
        target.task = config.config_task(target.challenge)
    except DataError as error:  # a challenge that is broken is not the submission's fault
        target.config_fault = _one_line(error)
    task = target.task
    headers = list[str | None]()
    out_header = os.path.isfile(os.path.join(target.challenge, OUT_HEADER_FILE))
    for name in (task.out_header or (OUT_HEADER_FILE if out_header else None), task.in_header):
        try:
            headers.append(first_name(read_header(target.challenge, name)))
        except DataError as error:
            headers.append(None)
            target.notes.append(f"{_one_line(error)}; so no line is taken for a header")
    target.header, target.unread_header = (headers[0], None) if task.out_header else (None, headers[0])
    for attribute, name, header in (("expected", EXPECTED_FILE, target.header), ("input", INPUT_FILE, headers[1])):
        file = getattr(target, attribute)
        try:
            if target.test is not None and (path := find_answers(os.path.join(target.challenge, target.test, name))):
                if not os.path.isfile(path):  # it might never end
                    raise UnreadableFileError(path=path, reason="it is not a regular file")
                file = answers_at(path)
            if file is not None and target.expected in (None, file):  # the input where there are no answers
                target.lines = count_lines(file, header=header)
        except DataError as error:
            target.unreadable.append(error)
            file = None
        setattr(target, attribute, file)
    training = find_answers(os.path.join(target.challenge, TRAINING_SET, EXPECTED_FILE))
    target.training = answers_at(training) if training else None


def _add_rules(target: Target, task: config.Task) -> None:
    """Add the rules that the metrics choose; raises UsageError for a metric."""
    schemes = task.schemes()
    metrics = [find_metric(scheme.metric) for scheme in schemes]
    needing = [metric.name for metric in metrics if metric.needs_candidates]
    if needing and first_lines(target.file, target.header) and target.file.lists_answers_alone:
        target.notes.append(f"{named(target.output)}: {some_of(needing)} cannot be computed, since {ANSWERS_ALONE}")
    of_shares = any(metric.answers == "shares" for metric in metrics)
    target.words_are_plain = not (schemes[0].text_flags or of_shares)
    target.reader = next((metric for metric in metrics if metric.has_entries or metric.needs_vocabulary), None)
    target.bits = next((metric.bits for metric in metrics if metric.bits), DEFAULT_BITS)
    if all(metric.needs_vocabulary or not metric.is_of_words for metric in metrics) and _has_classes(target):
        from geval_py.scoring.metrics.exact import class_or_entries  # as where a line is the probability of 1

        metrics = [
            metric._replace(is_of_words=False, parse=class_or_entries) if metric.is_of_words else metric
            for metric in metrics
        ]
    if any(metric.is_of_words for metric in metrics):
        return
    if any(metric.has_entries and not metric.has_classes for metric in metrics):
        # Choices need no rest, since the options have all mass; a loss is infinite where the answer has none.
        pointless = {"W304"} if of_shares else {"W204", "W214", "W304"}
        if not any(metric.measure.in_nats for metric in metrics):
            pointless = {"E119", "W204", "W214", "W301", "W304"}
        target.pointless = frozenset(pointless)
        return
    from geval_py.scoring.evaluate import preparation_for, select_schemes  # which word gaps need not

    (scheme, _), *_ = select_schemes(task.replace(select_metrics=()))
    target.is_of_words, target.metric, target.preparation = False, metrics[0], preparation_for(scheme)


def _has_classes(target: Target) -> bool:
    """Whether 0 and 1 are expected, and not words: by the answers, else by those of train, else by the output."""
    from geval_py.scoring.metrics.exact import is_class_line

    for file in filter(None, (target.expected, target.training)):
        if answers := first_lines(file, target.header):
            return all(map(is_class_line, answers))
    return any(map(is_class_line, first_lines(target.file, target.header)))


def first_lines(file: File, header: str | None) -> list[str]:
    """Read the first lines of a file; none if it cannot be read."""
    file.keep = True
    try:
        with LineReader(file, header=header) as reader:
            return decode_lines(reader.block())[:MAX_FIRST_LINES]
    except (DataError, MissingPackageError):
        return []
