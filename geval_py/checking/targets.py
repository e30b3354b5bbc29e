"""Which test set an output is for: that of its folder, that which is named, or the only one of the challenge."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from geval_py.checking.rules import RULES_BY_CODE, Place, Problem
from geval_py.errors import DataError, SchemeError, UnreadableFileError, UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.config import CONFIG_FILE, config_task
from geval_py.reading.outputs import OUTPUT_FILE, Output, find_outputs, output_at
from geval_py.reading.remote import is_remote
from geval_py.reading.sources import STANDARD_INPUT, find_file, is_address, is_file, naming, parts_of
from geval_py.reading.splits import (
    EXPECTED_FILE,
    INPUT_FILE,
    OUT_HEADER_FILE,
    TRAINING_SET,
    Task,
    outputs_named,
    read_header,
)
from geval_py.scoring.columns import preparation_for, select_schemes
from geval_py.scoring.metrics import Metric, find_metric
from geval_py.text import natural_order, nearest, visible

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation


DATA_FILES = frozenset(name + end for name in (INPUT_FILE, EXPECTED_FILE) for end in ("", *COMPRESSED_ENDINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The test set that is meant, and its challenge; ``test`` is None where it cannot be told, as ``doubt`` says."""

    challenge: str
    test: str | None = None
    doubt: str = ""


def meant_test_set(folder: str | None, challenge: str | None = None, test: str | None = None) -> Meant:
    """Tell which test set an output in a folder (None: in none) is for; challenge and test set may be named."""
    if test is not None:
        return Meant(challenge=challenge or _challenge_with(test, folder), test=test)
    name = None if folder is None else os.path.basename(folder)
    if challenge is None:
        if folder is not None and (holds_data(folder) or not test_sets(folder)):
            return Meant(challenge=os.path.dirname(folder), test=name)
        challenge = folder or os.curdir
    known = test_sets(challenge)
    if name in known or len(known) == 1:
        return Meant(challenge=challenge, test=name if name in known else known[0])
    doubt = f"it may be for {visible(' or '.join(known))}" if known else f"`{visible(challenge)}` has no test set"
    return Meant(challenge=challenge, doubt=doubt)


def _challenge_with(test: str, folder: str | None) -> str:
    """Find the challenge with a test set: above an output's folder, the folder itself, or the current one."""
    places = [os.curdir] if folder is None else [os.path.dirname(folder), folder, os.curdir]
    return next((place for place in places if holds_data(os.path.join(place, test))), places[0])


def check_challenge(path: str, tests: Sequence[str] = ()) -> None:
    """Raise UsageError for what is no challenge, and for a challenge with test sets, but not those named."""
    if not os.path.isdir(path):
        raise _no_challenge(path, "it is a file, not a folder" if os.path.exists(path) else _not_there(path))
    try:
        names = _names_in(path)
    except OSError as error:
        raise _no_challenge(path, f"it cannot be read: {error.strerror}") from error
    known = test_sets(path)
    if not known and CONFIG_FILE not in names and not _folders(path, names, TRAINING_SET):
        if holds_data(path):
            above = os.path.normpath(os.path.join(path, os.pardir))
            raise _no_challenge(path, f"it is a test set\n  did you mean `{visible(above)}`?")
        raise _no_challenge(path, f"it has no {CONFIG_FILE}, and no folder with {INPUT_FILE} or {EXPECTED_FILE}")
    for test in tests:
        if known and not os.path.isdir(os.path.join(path, test)):
            there = visible(", ".join(known))
            raise UsageError(message=f"`{visible(path)}` has no test set `{visible(test)}`\n  there are {there}")


def _no_challenge(path: str, reason: str) -> UsageError:
    return UsageError(message=f"`{visible(path)}` is no challenge: {reason}")


def _not_there(path: str) -> str:
    folder, name = os.path.split(os.path.normpath(path))
    close = nearest(name, _folders_in(folder or os.curdir))
    return "there is no such folder" + (
        f"\n  did you mean `{visible(os.path.join(folder, close))}`?" if close else ""
    )


def test_sets(challenge: str) -> list[str]:
    """Give the folders with answers or inputs, but those to train with, in natural order; none where nothing is."""
    names = (name for name in _folders_in(challenge) if not name.startswith(TRAINING_SET))
    return sorted((name for name in names if holds_data(os.path.join(challenge, name))), key=natural_order)


def holds_data(folder: str) -> bool:
    """Tell whether a folder has answers or inputs, be they links that lead nowhere.

    Where it may not be looked into, its name tells.
    """
    try:
        return not DATA_FILES.isdisjoint(os.listdir(folder))
    except PermissionError:
        return _is_called_test_set(os.path.basename(folder))
    except OSError:
        return False


def submitted_sets(submission: str) -> list[str]:
    """Give the folders of a submission that are called as test sets are; raises UnreadableFileError."""
    with naming(submission):
        names = _names_in(submission)
    return [name for name in _folders(submission, names) if _is_called_test_set(name)]


def _is_called_test_set(name: str) -> bool:
    return name.startswith(("dev-", "test-"))


def _names_in(folder: str) -> list[str]:
    """List a folder; raises OSError, also where it may be listed, but not entered."""
    os.stat(os.path.join(folder, os.curdir))
    return os.listdir(folder)


def _folders_in(folder: str) -> list[str]:
    try:
        return _folders(folder, _names_in(folder))
    except OSError:
        return []


def _folders(folder: str, names: Sequence[str], beginning: str = "") -> list[str]:
    return [name for name in names if name.startswith(beginning) and os.path.isdir(os.path.join(folder, name))]


# From the paths that a user names to the outputs to check, each with what is known of its test set.


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An output to check, and what is known of its test set.

    ``expected`` and ``input`` are None where there is none; ``without_count`` says why, if there is neither, and
    ``unreadable`` holds the errors of those that are there. ``header`` is the name that a header line would begin
    with, and ``header_is_skipped`` tells whether the challenge's options name it. ``words_are_plain`` is False where
    the challenge's metric changes the lines before it compares words, as ``l`` for lower case does: whether a word
    is found can then not be told from the lines as they are. ``metric`` is the challenge's first one where none is of
    word gaps: other rules hold then; ``training`` are the training set's answers, where they are, and ``preparation``
    what that metric does to lines before it reads them.
    """

    output: str
    expected: str | None = None
    input: str | None = None
    without_count: str = "its test set is not known"
    unreadable: tuple[DataError, ...] = ()
    header: str | None = None
    in_header: str | None = None
    header_is_skipped: bool = False
    words_are_plain: bool = True
    metric: Metric | None = None
    training: str | None = None
    preparation: Preparation | None = None

    @property
    def output_header(self) -> str | None:
        """The first name of the header line to skip, in the output and in the answers."""
        return self.header if self.header_is_skipped else None

    def without(self, error: DataError) -> Target:
        """Leave out the file of the test set that cannot be read."""
        return replace(
            self,
            expected=None if self.expected == error.path else self.expected,
            input=None if self.input == error.path else self.input,
            without_count=_CANNOT_BE_READ,
            unreadable=(*self.unreadable, error),
        )


_LEADS_OUTSIDE = "a link that leads outside of the submission; it is not followed"
_CANNOT_BE_READ = "what there is of its test set cannot be read"


def find_targets(
    paths: Sequence[str], challenge: str | None = None, tests: Sequence[str] = ()
) -> Iterator[Target | Problem]:
    """Give the outputs to check; where one is missing, the problem.

    A path is an output, a test set's folder, or a submission's folder with dev-* and test-* folders (only those named
    in ``tests``, if any are). With ``tests``, an output is looked for in their folders first, and may be named as
    :func:`geval_py.reading.splits.outputs_named` says. ``challenge`` is the folder with the answers and inputs: by
    default the submission's folder, or the one above an output's folder.

    Raises UsageError for what is no challenge, for an output of several test sets, and where standard input would be
    read twice.
    """
    if paths.count(STANDARD_INPUT) > 1:
        raise UsageError(message="standard input (-) can be read only once: give one output as -")
    if challenge is not None:
        check_challenge(challenge, tests)
    for path in paths:
        if challenge is None and os.path.isdir(path) and test_sets(path):
            check_challenge(path, tests)
        if not os.path.isdir(path):
            yield from _output_targets(path, challenge, tests)
        elif _is_submission(path, tests):
            yield from _submission_targets(path, challenge or path, tests)
        else:
            meant = meant_test_set(os.path.abspath(path), challenge, _only_one(tests, path))
            yield from _folder_targets(path, meant, path)


def _missing(path: str, message: str) -> Problem:
    place = Place(line=0, column=0, token="", message=message)
    return Problem(rule=RULES_BY_CODE["E101"], path=path, count=1, share=1.0, summary=message, places=(place,))


def _only_one(tests: Sequence[str], path: str) -> str | None:
    if len(tests) > 1:
        names = visible(", ".join(tests))
        raise UsageError(message=f"`{visible(path)}` cannot be for {len(tests)} test sets ({names}): choose one")
    return tests[0] if tests else None


def _is_submission(path: str, tests: Sequence[str]) -> bool:
    """Tell whether a folder holds test sets' folders, rather than outputs; if it cannot be told, it is one."""
    if not _holds_outputs(path):
        return True
    if tests:
        return any(os.path.isdir(os.path.join(path, test)) for test in tests)
    try:
        return bool(submitted_sets(path))
    except UnreadableFileError:
        return True


def _holds_outputs(folder: str) -> bool:
    """Tell whether a folder itself holds outputs, be they at fault."""
    try:
        return any(output.name != OUT_HEADER_FILE for output in find_outputs(folder))
    except UnreadableFileError:
        return False


def _output_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    """Give the outputs that a path or a name means, of each of the test sets if some are named."""
    if not tests:
        yield from _named_targets(path, challenge, None, os.curdir)
    seen: set[str] = set()
    for test in tests:
        is_here = os.path.isdir(test) or os.path.lexists(path)
        base = os.curdir if is_here or challenge is None else challenge
        for target in _named_targets(path, challenge, test, base):
            if isinstance(target, Target) and target.output in seen:
                _only_one(tests, target.output)
            yield target
            seen |= {target.output} if isinstance(target, Target) else set()


def _named_targets(path: str, challenge: str | None, test: str | None, base: str) -> Iterator[Target | Problem]:
    """Give the outputs that a path means or, in a test set's folder if one is named, a name."""
    folder = None if test is None else os.path.join(base, test)
    try:
        outputs = _outputs_at(path) if folder is None else outputs_named(folder, path)
    except DataError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not outputs:
        yield _missing(path, "there is no such file")
    for output in outputs:
        if output.fault is not None:
            yield _missing(output.path, _one_line(output.fault))
        elif os.path.dirname(output.path) == folder and _leads_outside(output.path, base):
            yield _missing(output.path, _LEADS_OUTSIDE)
        else:
            yield _output_target(output, challenge, test)


def _outputs_at(path: str) -> tuple[Output, ...]:
    found = path if path == STANDARD_INPUT or is_address(path) else find_file(path)
    return () if found is None else (output_at(found),)


def _output_target(output: Output, challenge: str | None, test: str | None) -> Target:
    in_no_folder = output.path == STANDARD_INPUT or is_address(output.path) or is_remote(output.path)
    folder = None if in_no_folder else os.path.dirname(os.path.abspath(output.path))
    return _with_test_set(Target(output=output.path), meant_test_set(folder, challenge, test))


def _submission_targets(path: str, challenge: str, tests: Sequence[str]) -> Iterator[Target | Problem]:
    try:
        names = tests or sorted({*submitted_sets(path), *submitted_sets(challenge)}, key=natural_order)
    except UnreadableFileError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not names:
        yield _missing(os.path.join(path, OUTPUT_FILE), "there is no output here, and no dev-* or test-* folder")
    for name in names:
        yield from _folder_targets(os.path.join(path, name), Meant(challenge=challenge, test=name), path)


def _folder_targets(folder: str, meant: Meant, submission: str) -> Iterator[Target | Problem]:
    try:
        outputs = find_outputs(folder) if find_file(folder) == folder else ()
    except DataError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not outputs:
        yield _missing(os.path.join(folder, OUTPUT_FILE), "there is no output for this test set")
    for output in outputs:
        if output.fault is not None:
            yield _missing(output.path, _one_line(output.fault))
        elif _leads_outside(output.path, submission):
            yield _missing(output.path, _LEADS_OUTSIDE)
        elif not is_file(output.path):
            yield _missing(output.path, "it is not a file")
        else:
            yield _with_test_set(Target(output=output.path), meant)


def _leads_outside(path: str, folder: str) -> bool:
    if is_remote(path):
        return False
    root = os.path.realpath(folder)
    return any(os.path.commonpath([os.path.realpath(part), root]) != root for part in parts_of(path))


def _with_test_set(target: Target, meant: Meant) -> Target:
    """Add what the challenge has of a test set: answers, input and headers."""
    target = with_options(target, meant.challenge)
    if meant.test is None:
        return replace(target, without_count=meant.doubt)
    folder = os.path.join(meant.challenge, meant.test)
    found: dict[str, str | None] = {}
    unreadable: list[DataError] = []
    for name in (EXPECTED_FILE, INPUT_FILE):
        try:
            found[name] = _find_regular(os.path.join(folder, name))
        except DataError as error:
            unreadable.append(error)
    nothing = f"there is no {INPUT_FILE} and no {EXPECTED_FILE} in `{visible(folder)}`"
    return replace(
        target,
        expected=found.get(EXPECTED_FILE),
        input=found.get(INPUT_FILE),
        without_count=_CANNOT_BE_READ if unreadable else nothing,
        unreadable=tuple(unreadable),
    )


def _find_regular(path: str) -> str | None:
    """Find one of the test set's files; raises DataError, also if it is no regular file, which might never end."""
    found = find_file(path)
    if found is not None and not is_file(found):
        raise UnreadableFileError(path=found, reason="it is not a regular file")
    return found


def _one_line(error: DataError) -> str:
    return "; ".join(map(str.strip, str(error).splitlines()))


def with_options(target: Target, challenge: str) -> Target:
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
        metric = _other_metric(options)
        preparation = None if metric is None else _preparation(options)
        training = find_file(os.path.join(challenge, TRAINING_SET, EXPECTED_FILE))
    except (DataError, SchemeError):
        return target  # a challenge that is broken is not the submission's fault
    return replace(
        target,
        header=names[0] if names else None,
        in_header=inputs[0] if inputs else None,
        header_is_skipped=options.out_header is not None,
        words_are_plain=not any(scheme.text_flags for scheme in options.schemes()[:1]),
        metric=metric,
        training=training,
        preparation=preparation,
    )


def _preparation(options: Task) -> Preparation | None:
    """Give what the challenge's first metric, by its flags or a tokenizer, does to lines before it reads them."""
    (scheme, _), *_ = select_schemes(options.replace(select_metrics=()))
    return preparation_for(scheme)


def _other_metric(options: Task) -> Metric | None:
    """Give a challenge's first metric; None where one is of word gaps, or there is none."""
    metrics = [find_metric(scheme.metric) for scheme in options.schemes()]
    return None if any(metric.is_of_words for metric in metrics) else next(iter(metrics), None)
