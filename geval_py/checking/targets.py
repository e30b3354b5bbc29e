"""The outputs that a user's paths name, each with what is known of its test set.

The test set of an output is the one that is named, the one that its folder is called after, or the only one of the
challenge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from geval_py.checking.rules import RULES_BY_CODE, Problem, file_problem
from geval_py.errors import (
    DataError,
    MalformedLineError,
    MissingFileError,
    MissingPackageError,
    UnreadableFileError,
    UsageError,
)
from geval_py.reading import config, files, wordprobs
from geval_py.reading.files import ANSWERS_ALONE, File
from geval_py.reading.lines import LineReader, decode_lines, first_name
from geval_py.reading.outputs import OUTPUT_FILE, advice_on_names, find_outputs, output_at
from geval_py.reading.preparation import Preparation
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
from geval_py.text import named, nearest, some_of, visible

MAX_FIRST_LINES = 1000  # of an output or of answers, which show what its lines are where no option does
CANNOT_BE_READ = "what there is of its test set cannot be read"
_NO_OUTPUT = "there is no output for this test set"


class Target(NamedTuple):
    """An output to check, and what is known of its test set.

    ``expected`` and ``input`` are None if they are missing; ``without_count`` is the reason, if both are;
    ``unreadable`` holds the errors of files that cannot be read. ``header`` is the name that a header line would
    begin with; ``header_is_skipped`` if the challenge's options name the header. ``words_are_plain`` is False if the
    challenge's metric changes the lines before it compares words, as the flag ``l`` (lower case) does: the lines as
    they are do not show then whether a word is found. ``metric`` is the challenge's first metric if none is of word
    gaps: other rules apply then; ``preparation`` changes lines before that metric reads them. ``is_text``: the metric
    is not known, and lines are no distributions; not ``has_metric``: no metric is named, and the rules of word gaps
    apply. ``training`` is the file with the training set's answers.
    ``reader`` is a metric that cannot read vectors, ``pointless`` are the rules without a meaning for the metrics.
    A vector has a number for each of 2 to the power of ``bits`` buckets.
    ``challenge`` is the folder of the options, ``notes`` say what is not known of them, and what is checked instead.
    ``shown`` is the name of an output that is a copy of another one; ``lines`` replace those of a missing test set.
    """

    file: File
    challenge: str = os.curdir
    expected: File | None = None
    input: File | None = None
    without_count: str = "its test set is not known"
    unreadable: tuple[DataError, ...] = ()
    header: str | None = None
    in_header: str | None = None
    header_is_skipped: bool = False
    words_are_plain: bool = True
    metric: Metric | None = None
    training: File | None = None
    preparation: Preparation | None = None
    is_text: bool = False
    has_metric: bool = True
    reader: Metric | None = None
    pointless: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    bits: int = DEFAULT_BITS
    shown: str = ""
    lines: int | None = None

    @property
    def output(self) -> str:
        """The output as it was named."""
        return self.file.name

    @property
    def name(self) -> str:
        """The name of the output in reports."""
        return self.shown or self.output

    @property
    def is_of_words(self) -> bool:
        """Whether the rules of word gaps apply."""
        return self.metric is None and not self.is_text

    @property
    def output_header(self) -> str | None:
        """The first name of the header line to skip, in the output and in the answers."""
        return self.header if self.header_is_skipped else None


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
    from geval_py.board.intake.identity import is_archive

    for scheme in config.checked_schemes(metrics):
        find_metric(scheme.metric)
    if paths.count(files.STANDARD_INPUT) > 1:
        raise UsageError(message="standard input (-) can be read only once: give one output as -")
    if challenge is not None:
        _check_challenge(challenge, tests)
    for path in paths:
        if os.path.isdir(path) and _is_test_set(path):
            test_set = _test_set_of(os.path.abspath(path), challenge, _only_one(tests, path))
            targets = _folder_targets(path, *test_set)
        elif os.path.isdir(path) or (is_archive(path) and os.path.isfile(path)):
            targets = _submission_targets(path, challenge, tests)
        else:
            targets = _output_targets(path, challenge, tests)
        for target in targets:
            if isinstance(target, Target):
                target = with_options(target._replace(lines=lines), metrics)
            yield target


def _submission_targets(
    path: str, challenge: str | None = None, tests: Sequence[str] = ()
) -> Iterator[Target | Problem]:
    """Yield the outputs that a board takes of a folder or an archive, and a problem if it takes none of them."""
    from geval_py.board.intake.receiving import user_submission
    from geval_py.board.submission import RejectedError

    challenge, sets = challenge_and_tests(path, challenge)
    if sets:
        _check_challenge(challenge, tests)
    is_folder = os.path.isdir(path)
    try:
        with user_submission(path, tests or sets) as (selection, paths):
            notes = tuple(f"{visible(path)}: {note}" for note in selection.notes)
            for output in selection.outputs:
                shown = "" if is_folder else os.path.join(path, output.file)
                file = output_at(paths[output.file]).file
                yield _with_test_set(file, challenge, output.test)._replace(shown=shown, notes=notes)
            with_output = {output.test for output in selection.outputs}
            for test in selection.tests:
                if test not in with_output:
                    yield file_problem(RULES_BY_CODE["W107"], os.path.join(path, test, OUTPUT_FILE), _NO_OUTPUT)
    except RejectedError as error:
        yield _missing(path, error)


def _missing(path: str, reason: str | DataError) -> Problem:
    return file_problem(RULES_BY_CODE["E101"], path, _one_line(reason))


def _one_line(error: str | DataError | UsageError) -> str:
    return "; ".join(map(str.strip, str(error).splitlines()))


def _only_one(tests: Sequence[str], path: str) -> str | None:
    if len(tests) > 1:
        names = some_of(tests)
        raise UsageError(message=f"`{visible(path)}` cannot be for {len(tests)} test sets ({names}): choose one")
    return tests[0] if tests else None


def _output_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    """Yield the outputs that a path stands for or, in each of the named test sets, a name."""
    seen: set[str] = set()
    for test in tests or (None,):
        is_here = test is None or os.path.isdir(test) or os.path.lexists(path)
        base = os.curdir if is_here or challenge is None else challenge
        folder = None if test is None else os.path.join(base, test)
        try:
            outputs = outputs_named(folder or "", path)
        except DataError as error:
            is_missing = folder is None and isinstance(error, MissingFileError)
            problem = _missing(path, _no_such_file(path)) if is_missing else _missing(error.path, error)
            yield replace(problem, fix="Check the path.") if is_missing else problem
            continue
        for output in outputs:
            if output.fault is not None:
                yield _missing(output.path, output.fault)
                continue
            if output.path in seen:
                _only_one(tests, output.path)
            seen.add(output.path)
            place = None if output.file.is_in_no_folder else os.path.dirname(os.path.abspath(output.path))
            yield _with_test_set(output.file, *_test_set_of(place, challenge, test))


def _no_such_file(path: str) -> str:
    """Return the message about a path where no file is, or a pattern that no file matches, with what may be meant."""
    if not path:
        return "the path is empty"
    folder, name = os.path.dirname(path) or os.curdir, os.path.basename(path)
    is_there = os.path.isdir(folder)
    if not {*"*?["}.isdisjoint(path):
        outputs = [output.name for output in find_outputs(folder)] if is_there else []
        return "no file matches the pattern" + (f"; the outputs there are {some_of(outputs)}" if outputs else "")
    close = nearest(name, files.names_in(folder)) if is_there else None
    if close:
        return f"there is no such file; did you mean {visible(close)}?"
    if path == name and "." not in name and (sets := _test_sets(os.curdir)):
        return f"there is no such file; an output's short name needs its test set: -t {visible(sets[0])}"
    return "there is no such file"


def _folder_targets(folder: str, challenge: str, test: str | None, doubt: str) -> Iterator[Target | Problem]:
    """Yield the outputs in a folder, or a problem that names the files which only lack an output's ending."""
    try:
        outputs = find_outputs(folder)
    except DataError as error:
        yield _missing(folder, error)
        return
    if not outputs:
        advice = advice_on_names(files.names_in(folder, "file"))
        yield _missing(os.path.join(folder, OUTPUT_FILE), f"{_NO_OUTPUT}; {advice}" if advice else _NO_OUTPUT)
    for output in outputs:
        yield (
            _missing(output.path, output.fault)
            if output.fault
            else _with_test_set(output.file, challenge, test, doubt)
        )


def _with_test_set(output: File, challenge: str, test: str | None, doubt: str = "") -> Target:
    """Return the target of an output, with the answers and the input of its test set, or why that is unknown."""
    target = Target(output, challenge)
    if test is None:
        return target._replace(without_count=doubt)
    folder = os.path.join(challenge, test)
    paths: dict[str, File | None] = {EXPECTED_FILE: None, INPUT_FILE: None}
    unreadable: list[DataError] = []
    for name in paths:
        try:
            path = find_answers(os.path.join(folder, name))
            if path is not None and not os.path.isfile(path):  # it might never end
                raise UnreadableFileError(path=path, reason="it is not a regular file")
            paths[name] = None if path is None else answers_at(path)
        except DataError as error:
            unreadable.append(error)
    nothing = f"there is no {INPUT_FILE} and no {EXPECTED_FILE} in `{visible(folder)}`"
    expected, inputs = paths.values()
    output.answers = expected
    return target._replace(
        expected=expected,
        input=inputs,
        without_count=CANNOT_BE_READ if unreadable else nothing,
        unreadable=tuple(unreadable),
        notes=(f"{named(output.name)}: {doubt}",) if doubt else (),
    )


# The folders of challenges and submissions


def challenge_and_tests(path: str, challenge: str | None = None) -> tuple[str, list[str]]:
    """Return the challenge of a submission, if none is named itself or the current folder, and its test sets."""
    challenge = challenge or next((place for place in (path, os.curdir) if _test_sets(place)), path)
    return challenge, _test_sets(challenge)


def _test_sets(challenge: str) -> list[str]:
    """Return the names of the sets that a board scores, first those with hidden answers."""
    try:
        names = [name for name in sets_in(challenge) if not name.startswith(TRAINING_SET)]
    except UnreadableFileError:
        return []
    return sorted(names, key=lambda name: not name.startswith("test"))


def _is_test_set(folder: str) -> bool:
    """Whether a folder is that of a test set, by its name or by its files, and not a challenge or a submission."""
    is_named = is_set_name(os.path.basename(os.path.abspath(folder)))
    return (is_named or holds_data(folder)) and not _test_sets(folder)


def _test_set_of(
    folder: str | None, challenge: str | None = None, test: str | None = None
) -> tuple[str, str | None, str]:
    """Return the challenge and the test set that an output in a folder (None: no folder) is for.

    The challenge and the test set may be named. The last value says why the test set is not known, None, or how it
    was chosen.
    """
    if test is not None:
        places = [os.curdir] if folder is None else [os.path.dirname(folder), folder, os.curdir]
        with_test = (place for place in places if holds_data(os.path.join(place, test)))
        return challenge or next(with_test, places[0]), test, ""
    if challenge is None and folder is not None and not _test_sets(folder):
        return os.path.dirname(folder), os.path.basename(folder), ""
    challenge = challenge or folder or os.curdir
    sets, name = _test_sets(challenge), os.path.basename(folder or "")
    if name in sets:
        return challenge, name, ""
    if len(sets) == 1:
        return challenge, sets[0], f"compared with {named(os.path.join(challenge, sets[0]))}, the only test set"
    doubt = f"it may belong to {visible(' or '.join(sets))}" if sets else f"`{visible(challenge)}` has no test set"
    return challenge, None, doubt


def _check_challenge(path: str, tests: Sequence[str] = ()) -> None:
    """Raise UsageError if a folder is no challenge, or has test sets, but not all of ``tests``."""
    reason, sets = "", list[str]()
    if not os.path.exists(path):
        folder, name = os.path.split(os.path.normpath(path))
        close = (
            nearest(name, files.names_in(folder or os.curdir, "directory")) if os.path.isdir(folder or ".") else None
        )
        advice = f"\n  did you mean `{visible(os.path.normpath(os.path.join(folder, close)))}`?" if close else ""
        reason = f"there is no such folder{advice}"
    elif not os.path.isdir(path):
        reason = "it is a file, not a folder"
    else:
        try:
            sets = sets_in(path)
            if not sets and not files.exists(os.path.join(path, config.CONFIG_FILE)):
                reason = f"it has no {config.CONFIG_FILE}, and no test set such as {DEV_SET}"
                if holds_data(path):
                    above = os.path.normpath(os.path.join(path, os.pardir))
                    reason = f"it is a test set\n  did you mean `{visible(above)}`?"
        except UnreadableFileError as error:
            reason = f"it cannot be read: {error.reason}"
    if reason:
        raise UsageError(message=f"`{visible(path)}` is no challenge: {reason}")
    for test in tests:
        if sets and not os.path.isdir(os.path.join(path, test)):
            names = some_of(name for name in sets if not name.startswith(TRAINING_SET))
            raise UsageError(message=f"`{visible(path)}` has no test set `{visible(test)}`\n  there are {names}")


# The options of a challenge


def with_options(target: Target, metric_names: Sequence[str] = ()) -> Target:
    """Add what the options of the target's challenge tell, and the rules that apply.

    The metrics, those of some ``metric_names`` or else the challenge's, choose the rules or, with a note, where they
    are not known, the output's first lines. Raises UsageError where parts of JSON lines are scored.
    """
    path, unknown = os.path.join(target.challenge, config.CONFIG_FILE), ""
    try:
        task = config.config_task(target.challenge)
    except DataError as error:  # a challenge that is broken is not the submission's fault
        task, unknown = config.Task(), _one_line(error)
    if task.selector is not None:
        raise UsageError(message=f"{named(path)} has --selector: parts of JSON lines are not checked, only scored")
    if metric_names:
        task, unknown = task.replace(alt_metrics=tuple(metric_names), select_metrics=()), ""
    target = _with_headers(target, task)
    try:
        if not unknown:
            return _with_metrics(target, task, path)
    except UsageError as error:
        unknown = f"{_one_line(error)}; in {named(path)}"
    texts = _first_lines(target.file, target.output_header)
    is_text = bool(texts)
    for text in (text for text in texts if ":" in text):
        with suppress(MalformedLineError):
            wordprobs.parse_entries(text, 1)
            is_text = False
    what = "only the rules of any text apply" if is_text else "the rules of word gaps apply"
    return target._replace(is_text=is_text, notes=(*target.notes, f"{unknown}; so {what}"))


def _with_headers(target: Target, task: config.Task) -> Target:
    """Add the headers of the outputs and the inputs, the training set's answers, and what to say of them."""
    headers, notes = list[str | None](), [*target.notes]
    out_header = os.path.isfile(os.path.join(target.challenge, OUT_HEADER_FILE))
    for name in (task.out_header or (OUT_HEADER_FILE if out_header else None), task.in_header):
        try:
            headers.append(first_name(read_header(target.challenge, name)))
        except DataError as error:
            headers.append(None)
            notes.append(f"{_one_line(error)}; so no line is taken for a header")
    training = find_answers(os.path.join(target.challenge, TRAINING_SET, EXPECTED_FILE))
    return target._replace(
        header=headers[0],
        in_header=headers[1],
        header_is_skipped=task.out_header is not None,
        training=None if training is None else answers_at(training),
        notes=tuple(notes),
    )


def _with_metrics(target: Target, task: config.Task, path: str) -> Target:
    """Add the rules that the metrics choose; ``path`` is that of the options. Raises UsageError for a metric."""
    schemes = task.schemes()
    metrics = [find_metric(scheme.metric) for scheme in schemes]
    if not schemes:
        reason = "names no metric" if files.exists(path) else "is not there"
        note = f"the rules of word gaps apply, since {named(path)} {reason}"
        return target._replace(notes=(*target.notes, note), has_metric=False)
    needing = [metric.name for metric in metrics if metric.needs_candidates]
    if needing and _first_lines(target.file, target.output_header) and target.file.lists_answers_alone:
        note = f"{named(target.output)}: {some_of(needing)} cannot be computed, since {ANSWERS_ALONE}"
        target = target._replace(notes=(*target.notes, note))
    of_shares = any(metric.answers == "shares" for metric in metrics)
    target = target._replace(
        words_are_plain=not (schemes[0].text_flags or of_shares),
        reader=next((metric for metric in metrics if metric.has_entries), None),
        bits=next((metric.bits for metric in metrics if metric.bits), DEFAULT_BITS),
    )
    if all(metric.needs_vocabulary or not metric.is_of_words for metric in metrics) and _has_classes(target):
        from geval_py.scoring.metrics.exact import class_or_entries  # as where a line is the probability of 1

        metrics = [
            metric._replace(is_of_words=False, parse=class_or_entries) if metric.is_of_words else metric
            for metric in metrics
        ]
    if any(metric.is_of_words for metric in metrics):
        return target
    if any(metric.has_entries and not metric.has_classes for metric in metrics):
        # Choices need no rest, since the options have all mass; a loss is infinite where the answer has none.
        pointless = {"W304"} if of_shares else {"W204", "W214", "W304"}
        if not any(metric.measure.in_nats for metric in metrics):
            pointless = {"W204", "W214", "W301", "W304"}
        return target._replace(pointless=frozenset(pointless))
    from geval_py.scoring.evaluate import preparation_for, select_schemes  # which word gaps need not

    (scheme, _), *_ = select_schemes(task.replace(select_metrics=()))
    return target._replace(metric=metrics[0], preparation=preparation_for(scheme))


def _has_classes(target: Target) -> bool:
    """Whether 0 and 1 are expected, and not words: by the answers, else by those of train, else by the output."""
    from geval_py.scoring.metrics.exact import is_class_line

    outputs = _first_lines(target.file, target.output_header)
    if outputs and all(":" in text and not is_class_line(text) for text in outputs):
        return False
    for file in (target.expected, target.training):
        answers = [] if file is None else _first_lines(file, target.output_header)
        if answers:
            return all(map(is_class_line, answers))
    return any(map(is_class_line, outputs))


def _first_lines(file: File, header: str | None) -> list[str]:
    """Read the first lines of a file; none if it cannot be read."""
    file.keep = True
    try:
        with LineReader(file, header=header) as reader:
            return decode_lines(reader.block())[:MAX_FIRST_LINES]
    except (DataError, MissingPackageError):
        return []
