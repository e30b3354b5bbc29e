"""The outputs that a user's paths name, each with what is known of its test set.

The test set of an output is the one that is named, the one that its folder is called after, or the only one of the
challenge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from geval_py.checking.challenge_folders import (
    GuessedSet,
    check_challenge,
    guess_test_set,
    holds_data,
    submitted_sets,
    test_sets,
)
from geval_py.checking.rules import READ_ENDINGS, RULES_BY_CODE, Place, Problem, pointless_rules
from geval_py.errors import (
    DataError,
    MalformedLineError,
    MissingPackageError,
    SchemeError,
    UnreadableFileError,
    UsageError,
)
from geval_py.reading import config, sources, splits, wordprobs
from geval_py.reading.answers import find_answers
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.outputs import OUTPUT_FILE, Output, find_outputs, output_at
from geval_py.scoring.evaluate import preparation_for, select_schemes
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import Metric
from geval_py.text import named, natural_order, nearest, some_of, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation

FIRST_LINES = 1000  # of an output or of answers, which show what its lines are where no option does
_LEADS_OUTSIDE = "a link that leads outside of the submission; it is not followed"
_NO_OUTPUT = "there is no output for this test set"
_CANNOT_BE_READ = "what there is of its test set cannot be read"


class Target(Value):
    """An output to check, and what is known of its test set.

    ``expected`` and ``input`` are None if they are missing; ``without_count`` is the reason, if both are;
    ``unreadable`` holds the errors of files that cannot be read. ``header`` is the name that a header line would
    begin with; ``header_is_skipped`` if the challenge's options name the header. ``words_are_plain`` is False if the
    challenge's metric changes the lines before it compares words, as the flag ``l`` (lower case) does: the lines as
    they are do not show then whether a word is found. ``metric`` is the challenge's first metric if none is of word
    gaps: other rules apply then; ``preparation`` changes lines before that metric reads them. ``is_text``: the metric
    is not known, and lines are no distributions. ``training`` is the file with the training set's answers.
    ``reader`` is a metric that cannot read vectors, ``pointless`` are the rules without a meaning for the metrics.
    ``challenge`` is the folder of the options, ``notes`` say what is not known of them, and what is checked instead.
    """

    output: str
    challenge: str = os.curdir
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
    is_text: bool = False
    reader: Metric | None = None
    pointless: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def is_of_words(self) -> bool:
        """Whether the rules of word gaps apply."""
        return self.metric is None and not self.is_text

    @property
    def output_header(self) -> str | None:
        """The first name of the header line to skip, in the output and in the answers."""
        return self.header if self.header_is_skipped else None

    def without(self, error: DataError) -> Target:
        """Return the target without the file of the test set that cannot be read."""
        return self.replace(
            expected=None if self.expected == error.path else self.expected,
            input=None if self.input == error.path else self.input,
            without_count=_CANNOT_BE_READ,
            unreadable=(*self.unreadable, error),
        )


def find_targets(
    paths: Sequence[str], challenge: str | None = None, tests: Sequence[str] = (), metrics: Sequence[str] = ()
) -> Iterator[Target | Problem]:
    """Yield the outputs to check, and a problem for each one that is missing.

    A path is an output, a test set's folder, or a submission's folder with dev-* and test-* folders (only those in
    ``tests``, if any are named). With ``tests``, an output is looked for in their folders first, and may have a name
    as for :func:`geval_py.reading.splits.outputs_named`. ``challenge`` is the folder with the answers and inputs: by
    default the submission's folder, or the one above an output's folder. ``metrics`` replace the challenge's.

    Raises UsageError for a folder that is no challenge, for an output of several test sets, and if standard input
    would be read twice; SchemeError for a metric.
    """
    for scheme in config.checked_schemes(metrics):
        find_metric(scheme.metric)
    for target in _targets(paths, challenge, tests):
        yield with_options(target, target.challenge, metrics) if isinstance(target, Target) else target


def _targets(paths: Sequence[str], challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    if paths.count(sources.STANDARD_INPUT) > 1:
        raise UsageError(message="standard input (-) can be read only once: give one output as -")
    if challenge is not None:
        check_challenge(challenge, tests)
    for path in paths:
        if challenge is None and os.path.isdir(path) and test_sets(path):
            check_challenge(path, tests)
        if not os.path.isdir(path):
            yield from _output_targets(path, challenge, tests)
        elif not _holds_outputs(path) or _holds_test_sets(path, tests):
            yield from _submission_targets(path, challenge or path, tests)
        else:
            guessed = guess_test_set(os.path.abspath(path), challenge, _only_one(tests, path))
            yield from _folder_targets(path, guessed, path)


def _missing(path: str, message: str) -> Problem:
    place = Place(line=0, column=0, token="", message=message)
    return Problem(rule=RULES_BY_CODE["E101"], path=path, count=1, share=1.0, summary=message, places=(place,))


def _only_one(tests: Sequence[str], path: str) -> str | None:
    if len(tests) > 1:
        names = some_of(tests)
        raise UsageError(message=f"`{visible(path)}` cannot be for {len(tests)} test sets ({names}): choose one")
    return tests[0] if tests else None


def _holds_test_sets(path: str, tests: Sequence[str]) -> bool:
    """Whether a folder holds folders of test sets; true if it cannot be read."""
    if tests:
        return any(os.path.isdir(os.path.join(path, test)) for test in tests)
    try:
        return bool(submitted_sets(path))
    except UnreadableFileError:
        return True


def _holds_outputs(folder: str) -> bool:
    """Whether a folder itself holds outputs, faulty ones too."""
    try:
        return any(output.name != splits.OUT_HEADER_FILE for output in find_outputs(folder))
    except UnreadableFileError:
        return False


def _output_targets(path: str, challenge: str | None, tests: Sequence[str]) -> Iterator[Target | Problem]:
    """Yield the outputs that a path or a name stands for, in each of the named test sets."""
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
    """Yield the outputs of a path or, if a test set is named, of a name in its folder."""
    folder = None if test is None else os.path.join(base, test)
    try:
        outputs = _outputs_at(path) if folder is None else splits.outputs_named(folder, path)
    except DataError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not outputs:
        yield _missing(path, _no_such_file(path))
    for output in outputs:
        if output.fault is not None:
            yield _missing(output.path, _one_line(output.fault))
        elif os.path.dirname(output.path) == folder and _leads_outside(output.path, base):
            yield _missing(output.path, _LEADS_OUTSIDE)
        else:
            in_no_folder = (
                output.path == sources.STANDARD_INPUT
                or sources.is_address(output.path)
                or sources.is_remote(output.path)
            )
            place = None if in_no_folder else os.path.dirname(os.path.abspath(output.path))
            target = Target(output=output.path, notes=_notes_on(output.path))
            yield _with_test_set(target, guess_test_set(place, challenge, test))


def _outputs_at(path: str) -> tuple[Output, ...]:
    found = path if path == sources.STANDARD_INPUT or sources.is_address(path) else sources.find_file(path)
    matching = sources.matching_files("", path) if found is None and _is_pattern(path) else ()
    paths = sorted(matching, key=natural_order) if found is None else [found]
    return tuple(map(output_at, paths))


def _is_pattern(path: str) -> bool:
    return not {*"*?["}.isdisjoint(path)


def _no_such_file(path: str) -> str:
    """Return the message about a path where no file is, or a pattern that no file matches, with what may be meant."""
    folder, name = os.path.dirname(path) or os.curdir, os.path.basename(path)
    is_there = sources.is_folder(folder)
    if _is_pattern(path):
        outputs = [output.name for output in find_outputs(folder)] if is_there else []
        return "no file matches the pattern" + (f"; the outputs there are {some_of(outputs)}" if outputs else "")
    close = nearest(name, sources.names_in(folder)) if is_there else None
    if close:
        return f"there is no such file; did you mean {visible(close)}?"
    if path == name and "." not in name and (known := test_sets(os.curdir)):
        return f"there is no such file; an output's short name needs its test set: -t {visible(known[0])}"
    return "there is no such file"


def _without_output(folder: str) -> str:
    """Return the message about a folder without an output; name the files that only lack an output's ending."""
    names = sources.names_in(folder, "file") if sources.is_folder(folder) else []
    alike = [name for name in names if re.match(r"out[-.]", name) and name != splits.OUT_HEADER_FILE]
    if not alike:
        return _NO_OUTPUT
    return f"{_NO_OUTPUT}; {some_of(sorted(alike, key=natural_order))} is none by its ending: {READ_ENDINGS} are read"


def _notes_on(path: str) -> tuple[str, ...]:
    """Return a note on an output whose name says that it is JSON, but whose lines are read as they are."""
    name = sources.name_of(path)
    if not name.endswith(".json") or name.endswith(sources.FORMAT_ENDINGS):
        return ()
    return (
        f"{named(path)} is read as text, a line an item; the formats {READ_ENDINGS} are known by their endings, and "
        "geval convert writes each",
    )


def _submission_targets(path: str, challenge: str, tests: Sequence[str]) -> Iterator[Target | Problem]:
    try:
        names = tests or sorted({*submitted_sets(path), *submitted_sets(challenge)}, key=natural_order)
    except UnreadableFileError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not names:
        yield _missing(os.path.join(path, OUTPUT_FILE), "there is no output here, and no dev-* or test-* folder")
    missing = []
    for name in names:
        folder = os.path.join(path, name)
        for target in _folder_targets(folder, GuessedSet(challenge=challenge, test=name), path):
            missing += [name] if isinstance(target, Problem) and target.summary.startswith(_NO_OUTPUT) else []
            yield target
    yield from _misplaced(path, missing)


def _misplaced(submission: str, tests: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each output that lies beside the folders of test sets without one."""
    if not tests or not _holds_outputs(submission) or holds_data(submission):
        return
    for output in find_outputs(submission):
        if output.name == splits.OUT_HEADER_FILE:
            continue
        folders = "the folders" if len(tests) > 1 else "the folder"
        lack = "which have no output" if len(tests) > 1 else "which has no output"
        message = f"it lies beside {folders} {visible(' and '.join(tests))}, {lack}, and is not scored"
        place = Place(line=0, column=0, token="", message=message)
        yield Problem(
            rule=RULES_BY_CODE["E107"], path=output.path, count=1, share=1.0, summary=message, places=(place,)
        )


def _folder_targets(folder: str, guessed: GuessedSet, submission: str) -> Iterator[Target | Problem]:
    try:
        outputs = find_outputs(folder) if sources.find_file(folder) == folder else ()
    except DataError as error:
        yield _missing(error.path, _one_line(error))
        return
    if not outputs:
        yield _missing(os.path.join(folder, OUTPUT_FILE), _without_output(folder))
    for output in outputs:
        if output.fault is not None:
            yield _missing(output.path, _one_line(output.fault))
        elif _leads_outside(output.path, submission):
            yield _missing(output.path, _LEADS_OUTSIDE)
        elif not sources.is_file(output.path):
            yield _missing(output.path, "it is not a file")
        else:
            yield _with_test_set(Target(output=output.path), guessed)


def _leads_outside(path: str, folder: str) -> bool:
    if sources.is_remote(path):
        return False
    root = os.path.realpath(folder)
    return any(os.path.commonpath([os.path.realpath(part), root]) != root for part in sources.parts_of(path))


def _with_test_set(target: Target, guessed: GuessedSet) -> Target:
    """Add the challenge, and the answers and the input of a test set, to a target."""
    if guessed.test is None:
        return target.replace(without_count=guessed.doubt, challenge=guessed.challenge)
    folder = os.path.join(guessed.challenge, guessed.test)
    found: dict[str, str | None] = {}
    unreadable: list[DataError] = []
    for name in (splits.EXPECTED_FILE, splits.INPUT_FILE):
        try:
            found[name] = _find_regular(os.path.join(folder, name))
        except DataError as error:
            unreadable.append(error)
    nothing = f"there is no {splits.INPUT_FILE} and no {splits.EXPECTED_FILE} in `{visible(folder)}`"
    return target.replace(
        expected=found.get(splits.EXPECTED_FILE),
        input=found.get(splits.INPUT_FILE),
        without_count=_CANNOT_BE_READ if unreadable else nothing,
        unreadable=tuple(unreadable),
        challenge=guessed.challenge,
    )


def _find_regular(path: str) -> str | None:
    """Find a file of a test set; raises DataError, also if it is not a regular file, which might never end."""
    found = find_answers(path)
    if found is not None and not sources.can_be_reread(found):
        raise UnreadableFileError(path=found, reason="it is not a regular file")
    return found


def _one_line(error: DataError | UsageError) -> str:
    return "; ".join(map(str.strip, str(error).splitlines()))


def with_options(target: Target, challenge: str, metrics: Sequence[str] = ()) -> Target:
    """Add what a challenge's options tell: the headers, the rules that apply, and notes on what cannot be known.

    ``metrics`` replace the challenge's.
    """
    notes = list(target.notes)
    try:
        options, broken = config.config_task(challenge), None
    except (DataError, SchemeError) as error:  # a challenge that is broken is not the submission's fault
        options, broken = config.Task(), error
    if metrics:
        options, broken = replace(options, alt_metrics=tuple(metrics), select_metrics=()), None
    has_header = os.path.isfile(os.path.join(challenge, splits.OUT_HEADER_FILE))
    out_header = options.out_header or (splits.OUT_HEADER_FILE if has_header else None)
    names, inputs = (_header(challenge, name, notes) for name in (out_header, options.in_header))
    training = find_answers(os.path.join(challenge, splits.TRAINING_SET, splits.EXPECTED_FILE))
    target = target.replace(
        header=names[0] if names else None,
        in_header=inputs[0] if inputs else None,
        header_is_skipped=options.out_header is not None,
        training=training,
    )
    target = _with_metric(target, options, challenge, broken, notes)
    return target.replace(notes=tuple(notes))


def _header(challenge: str, name: str | None, notes: list[str]) -> tuple[str, ...]:
    try:
        return splits.read_header(challenge, name)
    except DataError as error:
        notes.append(f"{_one_line(error)}; so no line is taken for a header")
        return ()


def _with_metric(
    target: Target, options: config.Task, challenge: str, broken: DataError | SchemeError | None, notes: list[str]
) -> Target:
    """Choose the rules by the metrics or, with a note, where these are not known, by the output's first lines."""
    path = os.path.join(challenge, config.CONFIG_FILE)
    if options.selector is not None:
        raise UsageError(message=f"{named(path)} has --selector: parts of JSON lines are not checked, only scored")
    metrics: list[Metric] = []
    try:
        if broken is not None:
            raise broken
        schemes = options.schemes()
        metrics = [find_metric(scheme.metric) for scheme in schemes]
        if not schemes:
            reason = "names no metric" if sources.exists(path) else "is not there"
            notes.append(f"{named(path)} {reason}; so the rules of word gaps apply")
            return target
        of_shares = any(metric.answers == "shares" for metric in metrics)
        target = target.replace(
            words_are_plain=not (schemes[0].text_flags or of_shares),
            reader=next((metric for metric in metrics if metric.has_entries), None),
        )
        if all(metric.needs_vocabulary or not metric.is_of_words for metric in metrics) and _has_classes(target):
            metrics = [_of_classes(metric) for metric in metrics]
        if any(metric.is_of_words for metric in metrics):
            return target
        if any(metric.has_entries and not metric.has_classes for metric in metrics):
            return target.replace(pointless=pointless_rules(metrics))
        (scheme, _), *_ = select_schemes(replace(options, select_metrics=()))
        return target.replace(metric=metrics[0], preparation=preparation_for(scheme))
    except (DataError, SchemeError, UsageError) as error:
        is_text = not _looks_like_words(target)
        what = "only the rules of any text apply" if is_text else "the rules of word gaps apply"
        place = "" if isinstance(error, DataError) else f"; in {named(path)}"
        notes.append(f"{_one_line(error)}{place}; so {what}")
        return target.replace(is_text=is_text)


def _of_classes(metric: Metric) -> Metric:
    """Return a metric on exact words as it is where a line is the probability of the class 1."""
    if not metric.is_of_words:
        return metric
    from dataclasses import replace

    from geval_py.scoring.metrics.exact import class_or_entries

    return replace(metric, is_of_words=False, parse=class_or_entries)


def _has_classes(target: Target) -> bool:
    """Whether 0 and 1 are expected, and not words: by the answers, else by those of train, else by the output."""
    from geval_py.scoring.metrics.exact import is_class_line

    outputs = _first_lines(target.output, target.output_header)
    if any(":" in text and not is_class_line(text) for text in outputs):
        return False
    for path in (target.expected, target.training):
        answers = [] if path is None else _first_lines(path, target.output_header)
        if answers:
            return all(map(is_class_line, answers))
    return any(map(is_class_line, outputs))


def _looks_like_words(target: Target) -> bool:
    """Whether a first line of the output is a distribution over words, or there is no telling."""
    texts = _first_lines(target.output, target.output_header)
    return not texts or any(map(_is_distribution, texts))


def _is_distribution(text: str) -> bool:
    try:
        return ":" in text and bool(wordprobs.parse_entries(text, 1))
    except MalformedLineError:
        return False


def _first_lines(path: str, header: str | None) -> list[str]:
    """Read the first lines of a file; none if it cannot be read, or only once."""
    if not sources.can_be_reread(path):
        return []
    try:
        with LineReader(path, header=header) as reader:
            return decode_lines(reader.block())[:FIRST_LINES]
    except (DataError, MissingPackageError):
        return []
