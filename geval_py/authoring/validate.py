"""Validate a challenge's folder: GEval's ``--validate`` with GEval's messages, but all faults at once."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from geval_py.errors import DataError, GevalError, MissingFileError, MissingPackageError, UsageError
from geval_py.reading import challenge, compression, config, files, rewriting, splits
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.outputs import OUTPUT_FILE, Output
from geval_py.scoring import evaluate
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.exact import is_class_line
from geval_py.tables.numbers import exact
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


class Fault(NamedTuple):
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


class Text(NamedTuple):
    """The faults of a text file in GEval's order, its lines (None for an unreadable one), and the first's columns."""

    faults: Sequence[Fault]
    lines: int | None = None
    width: int = 0


def check_text(path: str, *, columns: bool = False) -> Text:
    """Find faults of a text file: it is empty, or has carriage returns, spaces at line ends, or bytes not in UTF-8.

    With ``columns``, all lines must have the same number of columns. A fault names the first line that has it.
    """
    lines = 0
    broken: dict[str, list[int]] = {_NO_UTF8: [], _CARRIAGE_RETURN: [], _SPACE_AT_END: []}  # the numbers of lines
    bad_byte = 0  # the first that is not UTF-8
    widths: dict[int, int] = {}  # the first line of each number of columns
    try:
        with LineReader(splits.answers_at(path)) as reader:
            while block := reader.block():
                for line in block.split(b"\n")[:-1]:
                    lines += 1
                    widths.setdefault(line.count(b"\t") + 1, lines)
                    broken[_CARRIAGE_RETURN] += [lines] if b"\r" in line else []
                    broken[_SPACE_AT_END] += [lines] if line.endswith(b" ") else []
                    try:
                        line.decode()
                    except UnicodeDecodeError as error:
                        broken[_NO_UTF8].append(lines)
                        bad_byte = bad_byte or line[error.start]
    except DataError as error:
        return Text([Fault(str(error))])
    if not lines:
        return Text([Fault.of_files("Empty file", path)], 0)
    faults = []
    for what, numbers in broken.items():
        if numbers:
            place = f"line {numbers[0]}" + (f", and {len(numbers) - 1} more" if len(numbers) > 1 else "")
            if what == _NO_UTF8:
                faults.append(Fault(what.format(bad_byte), path, place))
            else:
                faults.append(Fault.of_files(what, path, detail=place))
    (width, first), *others = widths.items()
    if columns and others:
        other, second = others[0]
        detail = f"line {first} has {width}, line {second} has {other}"
        faults.append(Fault.of_files("The file contains varying number of columns", path, detail=detail))
    return Text(faults, lines, width)


def _score_faults(
    task: config.Task, test_name: str, expected: str, schemes: Sequence[evaluate.Named]
) -> Iterator[Fault]:
    """Score the answers of a set as a perfect output with each metric; less than the best score is a fault."""
    task = task.replace(test_name=test_name, expected_directory=task.directory, out_files=(files.STANDARD_INPUT,))
    for scheme in schemes:
        metric = scheme[1]
        try:
            split = splits.locate(task)
            header = split.output_header
            perfect = files.File.of_pieces(expected, _perfect_output(splits.answers_at(expected), header, metric))
            output = Output(perfect, OUTPUT_FILE, {})
            vocabulary = evaluate.vocabulary_for([scheme], task)
            evaluation = evaluate.evaluate_output(split, output, [scheme], vocabulary)
        except GevalError as error:  # a missing package is of no file, so that it is said once
            yield Fault(str(error), "" if isinstance(error, DataError | MissingPackageError) else expected)
        else:
            value, best = evaluation.scores[0].value, metric.measure.best
            is_reachable = math.isfinite(best) and metric.answers != "shares"
            if is_reachable and not math.isclose(best, value, rel_tol=0, abs_tol=TOLERANCE):
                yield Fault(
                    "The best possible value was not obtained with the expected data, "
                    f"expected: {exact(best)} , obtained: {exact(value)}",
                    split.expected.name,
                    f"with {evaluation.scores[0].name}",
                )


def _perfect_output(expected: files.File, header: str | None, metric: Metric) -> Iterator[bytes]:
    """Yield the lines that are certain of the answers, in a metric's format: ``the:1.0`` or the answer itself."""
    for word in read_lines(expected, header=header):
        plain = not metric.is_of_words or (metric.bits is None and is_class_line(word))
        if metric.perfect is not None:
            line = metric.perfect(word)
        elif metric.answers == "any":
            line = word.partition("\t")[0]
        elif metric.answers == "shares" if metric.has_entries else plain:
            line = word
        else:
            line = f"{word}:1.0"
        yield f"{line}\n".encode()


def validate_challenge(directory: str, options: config.Task | None = None) -> tuple[list[Fault], tuple[str, ...]]:
    """Return the faults of a challenge's folder, in GEval's order, and the lines of warnings.

    ``options`` are those of the command line that change those of config.txt for scoring: metrics, alternative
    metrics, the name of the answers' file and a vocabulary. A file that cannot be read is a fault. Raises UsageError
    for an unknown metric of the command line.
    """
    if not os.path.isdir(directory):
        return [Fault.of_files("No challenge directory", directory)], ()
    names = (config.CONFIG_FILE, rewriting.GITIGNORE_FILE, challenge.README_FILE)
    head = [os.path.join(directory, name) for name in names]
    faults = [Fault.of_files(f"No {os.path.basename(path)} file", path) for path in head if not os.path.isfile(path)]
    task, schemes, unread = _read_config(directory, options or config.Task())
    if task.selector is not None:
        raise UsageError(f"{named(head[0])} has --selector: parts of JSON lines are not validated, only scored")
    faults += unread
    if (schemes or not unread) and os.path.isfile(head[0]) and not any(scheme.priority == 1 for scheme, _ in schemes):
        faults.append(Fault("No metric has priority 1"))
    for path in filter(os.path.isfile, head):
        faults += check_text(path).faults
    with os.scandir(directory) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    sets = sorted(name for name in folders if name.startswith(("dev-", "test-")))
    if not sets:
        expected = f"expected `{splits.DEV_SET}` and/or `{splits.HIDDEN_SET}` directory"
        faults.append(Fault(f"No directories with test data, {expected}", directory))
    training = os.path.join(directory, splits.TRAINING_SET)
    has_old_train = bool(files_named(training, OLD_TRAIN_FILE)) if os.path.isdir(training) else None
    sets += [splits.TRAINING_SET] if has_old_train is False else []
    headers: dict[str, tuple[str, int]] = {}  # by the file that they are for: the path, and the number of names
    for file, header in ((splits.INPUT_FILE, task.in_header), (splits.EXPECTED_FILE, task.out_header)):
        path = os.path.join(directory, header or "")
        if header is not None and not os.path.isfile(path):
            faults.append(Fault(str(MissingFileError(what=splits.NO_HEADER, path=path))))
        elif header is not None:
            text = check_text(path)
            faults += text.faults
            headers[file] = path, text.width
            if text.lines and text.lines > 1:
                detail = f"it has {text.lines}"
                faults.append(
                    Fault.of_files("A header is one line, with a name for each column", path, detail=detail)
                )
    for name in sets:
        faults += _set_faults(directory, name, task, schemes, headers)
    return list(dict.fromkeys(faults)), OLD_TRAIN_WARNINGS if has_old_train else ()


def _read_config(
    directory: str, options: config.Task
) -> tuple[config.Task, Sequence[evaluate.Named], Sequence[Fault]]:
    """Return the task, its metrics, and the faults of config.txt."""
    task, faults = config.Task(out_directory=directory), []
    try:
        task = config.config_task(directory)
    except DataError as error:
        faults.append(Fault(str(error)))
    task = task.replace(
        metrics=(*task.metrics, *options.metrics),
        alt_metrics=(*task.alt_metrics, *options.alt_metrics),
        select_metrics=(*task.select_metrics, *options.select_metrics),
        expected_file=options.expected_file or task.expected_file,
        vocabulary=options.vocabulary or task.vocabulary,
        input_file=None,
    )
    if not (task.metrics or task.alt_metrics):
        return task, [], faults
    try:
        return task, evaluate.select_schemes(task), faults
    except UsageError as error:
        if options.metrics or options.alt_metrics or options.select_metrics:
            raise
        return task, [], [*faults, Fault(str(error), os.path.join(directory, config.CONFIG_FILE))]


def files_named(folder: str, pattern: str) -> list[str]:
    """Return the files of a folder, compressed or not, whose names match a pattern, in order."""
    endings = ("", *compression.COMPRESSED_ENDINGS)
    return sorted(path for ending in endings for path in files.matching_files(folder, pattern + ending))


def _set_faults(
    directory: str,
    name: str,
    task: config.Task,
    schemes: Sequence[evaluate.Named],
    headers: Mapping[str, tuple[str, int]],
) -> Iterator[Fault]:
    """Find the faults of a set; ``headers`` are the path and the number of names, by the file that they are for."""
    folder = os.path.join(directory, name)
    lines: dict[str, int] = {}
    expected: list[str] = []
    is_free = any(metric.has_free_input for _, metric in schemes)
    one_answer = all(metric.answers in {"one", "shares"} for _, metric in schemes)
    for file, what, kind, columns in (
        (splits.INPUT_FILE, "the input", "input", not is_free),
        (splits.EXPECTED_FILE, "the expected results", "expected", one_answer),
    ):
        try:
            paths = files_named(folder, file)
            if not paths and kind == "expected" and (other := splits.find_answers(os.path.join(folder, file))):
                paths = [other]
        except DataError as error:
            yield Fault(str(error))
            continue
        expected = paths if kind == "expected" else []
        if not paths:
            hint = _HIDDEN if kind == "expected" and name.startswith("test-") else ""
            yield Fault.of_files(f"No file with {what}", os.path.join(folder, file), detail=hint)
        elif len(paths) > 1:
            yield Fault.of_files(f"Too many {kind} files", *paths)
        else:
            text = check_text(paths[0], columns=columns)
            lines |= {} if text.lines is None else {paths[0]: text.lines}
            yield from text.faults
            header, width = headers.get(file, ("", text.width))
            if 0 < width < text.width:  # GEval's own --init writes more names than columns for some metrics
                detail = f"the header has {width}, line 1 has {text.width}"
                yield Fault.of_files("A header and a file differ in their columns", header, paths[0], detail=detail)
    if len(set(lines.values())) == 2:
        yield Fault(
            "The number of lines in input and expected file is not the same",
            detail="; ".join(f"{named(path)} has {count}" for path, count in lines.items()),
        )
    outputs = files_named(folder, "out*.tsv")
    if outputs:
        yield Fault.of_files("Output file/s detected", *outputs)
    if len(expected) == 1:
        yield from _score_faults(task, name, expected[0], schemes)
