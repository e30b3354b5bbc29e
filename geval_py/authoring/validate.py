"""Validate a challenge's folder: GEval's ``--validate`` with GEval's messages, but all faults at once."""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from geval_py.errors import DataError, GevalError, MalformedLineError, MissingPackageError, UsageError
from geval_py.reading import challenge, compression, config, rewriting, splits
from geval_py.reading.answers import find_answers
from geval_py.reading.lines import LineReader, is_utf8, read_lines
from geval_py.reading.outputs import OUTPUT_FILE
from geval_py.scoring import evaluate
from geval_py.scoring.in_memory import score_lists
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.exact import is_class_line
from geval_py.tables.numbers import shortest
from geval_py.text import named

TOLERANCE = 1e-4
OLD_TRAIN_FILE = "train.tsv"
OLD_TRAIN_WARNINGS = (  # GEval's words, but for a slip of the pen
    "WARNING: Found old-style train file `train.tsv`, whereas the same convention as in",
    "WARNING: test directories is preferred (`in.tsv` and `expected.tsv`).",
    "WARNING: (Though, there might still be some cases when `train.tsv` is needed, e.g. for training LMs.)",
)
_CARRIAGE_RETURN = "Found CR (Carriage Return, 0x0D) character"
_SPACE_AT_END = "Found space at the end of line"
# The words of Haskell's text 1.2.5.0 (Data.Text.Encoding.streamDecodeUtf8With), which GEval 1.42.2 (LTS 19.25) uses.
_NO_UTF8 = "Cannot decode byte '\\x{:x}': Data.Text.Internal.Encoding.streamDecodeUtf8With: Invalid UTF-8 stream"
_HIDDEN = "hidden answers that lie in a folder of their own are validated there"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a challenge: GEval's sentence, and the path of the file unless the sentence names it.

    ``detail`` is not in GEval's message: the line, and what was found there.
    """

    message: str
    path: str = ""
    detail: str = ""

    @classmethod
    def of_files(cls, what: str, *paths: str, detail: str = "") -> Fault:
        """Make a fault whose message ends with the names of files."""
        return cls(f"{what}: {', '.join(map(named, paths))}", detail=detail)

    def __str__(self) -> str:
        place = f"in {named(self.path)}" if self.path else ""
        return "\n  ".join(filter(None, (self.message, place, self.detail)))


def text_faults(path: str, *, columns: bool = False) -> tuple[Sequence[Fault], int | None]:
    """Find faults of a text file: it is empty, or has carriage returns, spaces at line ends, or bytes not in UTF-8.

    With ``columns``, all lines must have the same number of columns. Return the number of lines too, None if the file
    cannot be read.
    """
    try:
        found = _Found()
        with LineReader(path) as reader:
            while block := reader.block():
                found.add(block, columns=columns)
        if not found.lines:
            return [Fault.of_files("Empty file", path)], 0
    except DataError as error:
        return [Fault(str(error))], None
    except OSError as error:
        return [Fault.of_files(f"Cannot read: {error.strerror}", path)], None
    return found.faults(path), found.lines


class _Found:
    """The number of lines with each fault, and the first of them."""

    def __init__(self) -> None:
        self.lines = 0
        self._first: dict[str, tuple[int, bytes]] = {}  # the number of the first line with a fault, and the line
        self._counts: Counter[str] = Counter()
        self._widths: dict[int, int] = {}  # the first line of each number of columns

    def add(self, block: bytes, *, columns: bool) -> None:
        """Check a block of whole lines."""
        suspects = b"\r" in block or b" \n" in block or not is_utf8(block)
        if suspects or columns:
            for number, line in enumerate(block.split(b"\n")[:-1], self.lines + 1):
                if suspects:
                    self._check_line(line, number)
                if columns:
                    self._widths.setdefault(line.count(b"\t") + 1, number)
        self.lines += block.count(b"\n")

    def _check_line(self, line: bytes, number: int) -> None:
        for what, is_so in (
            (_CARRIAGE_RETURN, b"\r" in line),
            (_SPACE_AT_END, line.endswith(b" ")),
            (_NO_UTF8, not is_utf8(line)),
        ):
            if is_so:
                self._first.setdefault(what, (number, line))
                self._counts[what] += 1

    def faults(self, path: str) -> list[Fault]:
        """Return the faults that were found, in GEval's order, with the first line of each."""
        faults = []
        for what in filter(self._counts.__getitem__, (_NO_UTF8, _CARRIAGE_RETURN, _SPACE_AT_END)):
            number, line = self._first[what]
            more = f", and {self._counts[what] - 1} more" if self._counts[what] > 1 else ""
            place = f"line {number}{more}"
            if what == _NO_UTF8:
                faults.append(Fault(what.format(line[_undecodable(line) or 0]), path, place))
            else:
                faults.append(Fault.of_files(what, path, detail=place))
        if len(self._widths) > 1:
            (width, first), (other, second), *_ = self._widths.items()
            detail = f"line {first} has {width}, line {second} has {other}"
            faults.append(Fault.of_files("The file contains varying number of columns", path, detail=detail))
        return faults


def _undecodable(data: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def score_faults(
    task: config.Task, test_name: str, expected: str, schemes: Sequence[evaluate.Named]
) -> Iterator[Fault]:
    """Score the answers of a set as a perfect output with each metric; less than the best score is a fault."""
    with tempfile.TemporaryDirectory(prefix="geval-validation-") as folder:
        os.mkdir(os.path.join(folder, test_name))
        output = os.path.join(folder, test_name, OUTPUT_FILE)
        open(output, "x").close()  # the output must exist before it is written, for each metric anew
        task = replace(
            task, test_name=test_name, expected_directory=task.directory, out_directory=folder, out_files=(output,)
        )
        for scheme in schemes:
            try:
                split = splits.locate(task)
                write_perfect(output, expected, split, scheme[1])
                yield from _imperfect(task, split, scheme)
            except GevalError as error:
                yield _fault_in(error, output, expected)


def write_perfect(path: str, expected: str, split: splits.Split, metric: Metric) -> None:
    """Write the output that is certain of each answer."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        words = read_lines(expected, header=split.output_header)
        file.writelines(f"{perfect_line(word, metric)}\n" for word in words)


def perfect_line(word: str, metric: Metric) -> str:
    """Return the line that is certain of an answer, in a metric's format: ``the:1.0`` or the answer itself."""
    if metric.perfect is not None:
        return metric.perfect(word)
    if metric.answers == "any":
        return word.partition("\t")[0]
    if metric.has_entries:
        return word if metric.answers == "shares" else f"{word}:1.0"
    plain = not metric.is_of_words or (metric.bits is None and is_class_line(word))
    return word if plain else f"{word}:1.0"


def metrics_of_other_outputs(items: Sequence[Sequence[str]], metrics: Sequence[Metric]) -> list[str]:
    """Return the names of the metrics for which no output is right that is right for the first metric.

    ``items`` are pairs of an input and its answer. A metric whose library is missing is taken to suit.
    """
    first, *others = metrics
    return [
        other.name
        for other in others
        if not any(all(_is_right(items, given, metric) for metric in (first, other)) for given in (first, other))
    ]


def _is_right(items: Sequence[Sequence[str]], given: Metric, metric: Metric) -> bool:
    """Whether the output that is certain of each answer, in the format of ``given``, gets the metric's best score."""
    inputs, answers = zip(*items, strict=True)
    outputs = [perfect_line(answer, given) for answer in answers]
    try:
        scored = score_lists(outputs, answers, [metric.name], inputs=inputs, vocabulary=answers)
    except UsageError:
        return True
    except DataError:
        return False
    return _reaches_best(scored.scores[0].value, metric)


def _reaches_best(value: float, metric: Metric) -> bool:
    """Whether a perfect output's score is the metric's best, if that can be reached."""
    best = metric.measure.best
    is_reachable = math.isfinite(best) and metric.answers != "shares"
    return not is_reachable or math.isclose(best, value, rel_tol=0, abs_tol=TOLERANCE)


def _imperfect(task: config.Task, split: splits.Split, scheme: evaluate.Named) -> Iterator[Fault]:
    evaluation = evaluate.evaluate_output(split, split.outputs[0], [scheme], evaluate.vocabulary_for([scheme], task))
    value = evaluation.scores[0].value
    if not _reaches_best(value, scheme[1]):
        yield Fault(
            "The best possible value was not obtained with the expected data, "
            f"expected: {shortest(scheme[1].measure.best)} , obtained: {shortest(value)}",
            split.expected,
            f"with {evaluation.scores[0].name}",
        )


def _fault_in(error: GevalError, output: str, expected: str) -> Fault:
    """Make a fault of an error in scoring; the lines of a perfect output are those of the answers."""
    if isinstance(error, MissingPackageError):
        return Fault(str(error))  # of no file, so that it is said once
    if not isinstance(error, DataError):
        return Fault(str(error), expected)
    if isinstance(error, MalformedLineError) and error.path == output:
        error.path = expected
    return Fault(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of validating: the faults, in GEval's order, and the lines of warnings."""

    faults: tuple[Fault, ...]
    warnings: tuple[str, ...] = ()


def validate_challenge(directory: str, given: config.Task | None = None) -> Validation:
    """Find the faults of a challenge's folder.

    ``given`` holds the options of the command line that change those of config.txt for scoring: metrics, alternative
    metrics, the name of the answers' file and a vocabulary. A file that cannot be read is a fault. Raises UsageError
    for an unknown metric of the command line.
    """
    if not os.path.isdir(directory):
        return Validation(faults=(Fault.of_files("No challenge directory", directory),))
    head = [
        os.path.join(directory, name)
        for name in (config.CONFIG_FILE, rewriting.GITIGNORE_FILE, challenge.README_FILE)
    ]
    faults = [Fault.of_files(f"No {os.path.basename(path)} file", path) for path in head if not os.path.isfile(path)]
    task, schemes = _read_config(directory, given or config.Task(), faults)
    if task.selector is not None:
        path = named(os.path.join(directory, config.CONFIG_FILE))
        raise UsageError(message=f"{path} has --selector: parts of JSON lines are not validated, only scored")
    if not any(scheme.priority == 1 for scheme, _ in schemes):
        faults.append(Fault("No metric has priority 1"))
    for path in filter(os.path.isfile, head):
        faults += text_faults(path)[0]
    names = _test_sets(directory)
    if not names:
        faults.append(
            Fault(
                f"No directories with test data, expected `{splits.DEV_SET}` and/or `{splits.HIDDEN_SET}` directory",
                directory,
            )
        )
    for name in names:
        faults += _set_faults(directory, name, task, schemes)
    warnings, of_train = _check_train(directory, task, schemes)
    train = [splits.TRAINING_SET] if os.path.isdir(os.path.join(directory, splits.TRAINING_SET)) else []
    of_headers = _header_faults(directory, task, names + train)
    return Validation(faults=tuple(dict.fromkeys([*faults, *of_train, *of_headers])), warnings=warnings)


def _read_config(directory: str, given: config.Task, faults: list[Fault]) -> tuple[config.Task, list[evaluate.Named]]:
    """Return the task and its metrics; a faulty config.txt adds to ``faults``."""
    task = config.Task(out_directory=directory)
    try:
        task = config.config_task(directory)
    except DataError as error:
        faults.append(Fault(str(error)))
    task = replace(
        task,
        metrics=(*task.metrics, *given.metrics),
        alt_metrics=(*task.alt_metrics, *given.alt_metrics),
        select_metrics=(*task.select_metrics, *given.select_metrics),
        expected_file=given.expected_file or task.expected_file,
        vocabulary=given.vocabulary or task.vocabulary,
        input_file=None,
    )
    if not (task.metrics or task.alt_metrics):
        return task, []
    try:
        return task, evaluate.select_schemes(task)
    except UsageError as error:
        if given.metrics or given.alt_metrics or given.select_metrics:
            raise
        faults.append(Fault(str(error), os.path.join(directory, config.CONFIG_FILE)))
        return task, []


def _test_sets(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        names = [e.name for e in entries if e.is_dir(follow_symlinks=False) and e.name.startswith(("dev-", "test-"))]
    return sorted(names)


def files_named(folder: str, pattern: str) -> list[str]:
    """Return the files of a folder, compressed or not, whose names match a pattern, in order."""
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.is_file()
            and any(fnmatchcase(entry.name, pattern + end) for end in ("", *compression.COMPRESSED_ENDINGS))
        ]
    return [os.path.join(folder, name) for name in sorted(names)]


def _set_faults(directory: str, name: str, task: config.Task, schemes: Sequence[evaluate.Named]) -> Iterator[Fault]:
    folder = os.path.join(directory, name)
    inputs = files_named(folder, splits.INPUT_FILE)
    lines: dict[str, int] = {}
    is_free = any(metric.has_free_input for _, metric in schemes)
    yield from _file_faults(inputs, folder, splits.INPUT_FILE, "the input", "input", lines, columns=not is_free)
    one_answer = all(metric.answers in {"one", "shares"} for _, metric in schemes)
    try:
        expected = _answers_in(folder)
    except DataError as error:
        expected = []
        yield Fault(str(error))
    else:
        yield from _file_faults(
            expected, folder, splits.EXPECTED_FILE, "the expected results", "expected", lines, columns=one_answer
        )
    if len(set(lines.values())) == 2:
        yield Fault(
            "The number of lines in input and expected file is not the same",
            detail="; ".join(f"{named(path)} has {count}" for path, count in lines.items()),
        )
    outputs = files_named(folder, "out*.tsv")
    if outputs:
        yield Fault.of_files("Output file/s detected", *outputs)
    if len(expected) == 1:
        yield from score_faults(task, name, expected[0], schemes)


def _answers_in(folder: str) -> list[str]:
    """Return the files with the answers of a set, or where there is no expected.tsv those in another format."""
    found = files_named(folder, splits.EXPECTED_FILE)
    other = None if found else find_answers(os.path.join(folder, splits.EXPECTED_FILE))
    return found if other is None else [other]


def _file_faults(
    paths: Sequence[str],
    folder: str,
    name: str,
    what: str,
    kind: str,
    lines: dict[str, int],
    *,
    columns: bool = True,
) -> Iterator[Fault]:
    if not paths:
        hint = _HIDDEN if name == splits.EXPECTED_FILE and os.path.basename(folder).startswith("test-") else ""
        yield Fault.of_files(f"No file with {what}", os.path.join(folder, name), detail=hint)
    elif len(paths) > 1:
        yield Fault.of_files(f"Too many {kind} files", *paths)
    else:
        faults, counted = text_faults(paths[0], columns=columns)
        lines |= {} if counted is None else {paths[0]: counted}
        yield from faults


def _header_faults(directory: str, task: config.Task, names: Sequence[str]) -> Iterator[Fault]:
    """Find the faults of the files of headers, which GEval does not look at; a missing one is found in scoring."""
    for header, file in ((task.in_header, splits.INPUT_FILE), (task.out_header, splits.EXPECTED_FILE)):
        path = os.path.join(directory, header or "")
        if not os.path.isfile(path):
            continue
        faults, lines = text_faults(path)
        yield from faults
        if lines is not None and lines > 1:
            yield Fault.of_files("A header is one line, with a name for each column", path, detail=f"it has {lines}")
        width = _first_width(path)
        for name in names:
            for items in _files_of(os.path.join(directory, name), file):
                if width is not None and (own := _first_width(items)) is not None and own != width:
                    detail = f"the header has {width}, line 1 has {own}"
                    yield Fault.of_files("A header and a file differ in their columns", path, items, detail=detail)


def _files_of(folder: str, name: str) -> list[str]:
    with suppress(DataError):  # a fault of the set
        return _answers_in(folder) if name == splits.EXPECTED_FILE else files_named(folder, name)
    return []


def _first_width(path: str) -> int | None:
    """Return the number of columns of the first line; None if there is none, or it cannot be read."""
    try:
        first = next(read_lines(path), None)
    except DataError:
        return None
    return None if first is None else first.count("\t") + 1


def _check_train(
    directory: str, task: config.Task, schemes: Sequence[evaluate.Named]
) -> tuple[tuple[str, ...], Sequence[Fault]]:
    """Return the warnings and the faults of the training set, if there is one."""
    folder = os.path.join(directory, splits.TRAINING_SET)
    if not os.path.isdir(folder):
        return (), ()
    if files_named(folder, OLD_TRAIN_FILE):
        return OLD_TRAIN_WARNINGS, ()
    return (), list(_set_faults(directory, splits.TRAINING_SET, task, schemes))
