"""Validate a challenge's folder: GEval's ``--validate`` with GEval's messages, but all faults at once."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from geval_py.errors import DataError, GevalError, MissingFileError, MissingPackageError, UsageError
from geval_py.reading import challenge, compression, config, files, rewriting, splits
from geval_py.reading.lines import LineReader, is_utf8, read_lines
from geval_py.reading.outputs import OUTPUT_FILE, Output
from geval_py.scoring import evaluate
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.exact import is_class_line
from geval_py.tables.numbers import exact
from geval_py.text import named, shorten, visible

TOLERANCE = 1e-4
MAX_FIRST_LINES, MIN_NUMBERS = 1000, 5  # by which a header in the data is known
NO_VALUE = {"", "-", "?", "NA", "N/A", "null", "NULL", "None"}
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


def text_faults(path: str, *, columns: bool = False) -> tuple[Sequence[Fault], int | None]:
    """Find faults of a text file: it is empty, or has carriage returns, spaces at line ends, or bytes not in UTF-8.

    With ``columns``, all lines must have the same number of columns. Return the number of lines too, None if the file
    cannot be read. The faults are in GEval's order, with the first line of each.
    """
    lines = 0
    broken: dict[str, list[int]] = {_NO_UTF8: [], _CARRIAGE_RETURN: [], _SPACE_AT_END: []}  # the numbers of lines
    bad_byte = 0  # the first that is not UTF-8
    widths: dict[int, int] = {}  # the first line of each number of columns
    try:
        with LineReader(splits.answers_at(path)) as reader:
            while block := reader.block():
                is_suspect = b"\r" in block or b" \n" in block or not is_utf8(block)
                for number, line in enumerate(block.split(b"\n")[:-1] if is_suspect or columns else (), lines + 1):
                    widths.setdefault(line.count(b"\t") + 1, number)
                    broken[_CARRIAGE_RETURN] += [number] if b"\r" in line else []
                    broken[_SPACE_AT_END] += [number] if line.endswith(b" ") else []
                    try:
                        line.decode()
                    except UnicodeDecodeError as error:
                        broken[_NO_UTF8].append(number)
                        bad_byte = bad_byte or line[error.start]
                lines += block.count(b"\n")
    except DataError as error:
        return [Fault(str(error))], None
    if not lines:
        return [Fault.of_files("Empty file", path)], 0
    faults = []
    for what, numbers in broken.items():
        if numbers:
            place = f"line {numbers[0]}" + (f", and {len(numbers) - 1} more" if len(numbers) > 1 else "")
            if what == _NO_UTF8:
                faults.append(Fault(what.format(bad_byte), path, place))
            else:
                faults.append(Fault.of_files(what, path, detail=place))
    if columns and len(widths) > 1:
        (width, first), (other, second), *_ = widths.items()
        detail = f"line {first} has {width}, line {second} has {other}"
        faults.append(Fault.of_files("The file contains varying number of columns", path, detail=detail))
    return faults, lines


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
        except DataError as error:
            yield Fault(str(error))
        except GevalError as error:  # a missing package is of no file, so that it is said once
            yield Fault(str(error), "" if isinstance(error, MissingPackageError) else expected)
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
    found: list[Fault | str] = [
        Fault.of_files(f"No {os.path.basename(path)} file", path) for path in head if not os.path.isfile(path)
    ]
    before = len(found)
    task, schemes = _read_config(directory, options or config.Task(), found)
    is_read = os.path.isfile(head[0]) and len(found) == before
    if task.selector is not None:
        raise UsageError(
            message=f"{named(head[0])} has --selector: parts of JSON lines are not validated, only scored"
        )
    if (schemes or is_read) and not any(scheme.priority == 1 for scheme, _ in schemes):
        found.append(Fault("No metric has priority 1"))
    for path in filter(os.path.isfile, head):
        found += text_faults(path)[0]
    with os.scandir(directory) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    sets = sorted(name for name in folders if name.startswith(("dev-", "test-")))
    if not sets:
        expected = f"expected `{splits.DEV_SET}` and/or `{splits.HIDDEN_SET}` directory"
        found.append(Fault(f"No directories with test data, {expected}", directory))
    training = os.path.join(directory, splits.TRAINING_SET)
    if os.path.isdir(training):
        if files_named(training, OLD_TRAIN_FILE):
            found += OLD_TRAIN_WARNINGS
        else:
            sets.append(splits.TRAINING_SET)
    files: dict[str, list[str]] = {splits.INPUT_FILE: [], splits.EXPECTED_FILE: []}
    for name in sets:
        found += _set_faults(directory, name, task, schemes, files)
    for file, header in ((splits.INPUT_FILE, task.in_header), (splits.EXPECTED_FILE, task.out_header)):
        path = os.path.join(directory, header or "")
        if header is not None:
            found += _header_faults(path, files[file])
        for items in files[file]:
            found += _warnings_of_first_line(items, path if os.path.isfile(path) else None, file)
    faults = dict.fromkeys(one for one in found if isinstance(one, Fault))
    return list(faults), tuple(one for one in found if isinstance(one, str))


def _read_config(
    directory: str, options: config.Task, found: list[Fault | str]
) -> tuple[config.Task, Sequence[evaluate.Named]]:
    """Return the task and its metrics; a faulty config.txt adds to what was ``found``."""
    task = config.Task(out_directory=directory)
    try:
        task = config.config_task(directory)
    except DataError as error:
        found.append(Fault(str(error)))
    task = task.replace(
        metrics=(*task.metrics, *options.metrics),
        alt_metrics=(*task.alt_metrics, *options.alt_metrics),
        select_metrics=(*task.select_metrics, *options.select_metrics),
        expected_file=options.expected_file or task.expected_file,
        vocabulary=options.vocabulary or task.vocabulary,
        input_file=None,
    )
    if not (task.metrics or task.alt_metrics):
        return task, []
    try:
        return task, evaluate.select_schemes(task)
    except UsageError as error:
        if options.metrics or options.alt_metrics or options.select_metrics:
            raise
        found.append(Fault(str(error), os.path.join(directory, config.CONFIG_FILE)))
        return task, []


def files_named(folder: str, pattern: str) -> list[str]:
    """Return the files of a folder, compressed or not, whose names match a pattern, in order."""
    endings = ("", *compression.COMPRESSED_ENDINGS)
    return sorted(path for ending in endings for path in files.matching_files(folder, pattern + ending))


def _set_faults(
    directory: str, name: str, task: config.Task, schemes: Sequence[evaluate.Named], files: dict[str, list[str]]
) -> Iterator[Fault]:
    """Find the faults of a set; its inputs and answers are added to ``files``, by their usual names."""
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
        files[file] += paths
        expected = paths if kind == "expected" else []
        if not paths:
            hint = _HIDDEN if kind == "expected" and name.startswith("test-") else ""
            yield Fault.of_files(f"No file with {what}", os.path.join(folder, file), detail=hint)
        elif len(paths) > 1:
            yield Fault.of_files(f"Too many {kind} files", *paths)
        else:
            faults, counted = text_faults(paths[0], columns=columns)
            lines |= {} if counted is None else {paths[0]: counted}
            yield from faults
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


def _header_faults(path: str, files: Sequence[str]) -> Iterator[Fault | str]:
    """Yield the faults of a file with the header of some files, which GEval does not look at, and warnings.

    GEval's own ``--init`` writes more names than columns for some metrics.
    """
    if not os.path.isfile(path):
        yield Fault(str(MissingFileError(what=splits.NO_HEADER, path=path)))
        return
    faults, lines = text_faults(path)
    yield from faults
    if lines is not None and lines > 1:
        yield Fault.of_files("A header is one line, with a name for each column", path, detail=f"it has {lines}")
    width = _first_width(path)
    for items in files:
        if width is not None and (own := _first_width(items)) is not None and own != width:
            detail = f"the header has {width}, line 1 has {own}"
            fault = Fault.of_files("A header and a file differ in their columns", path, items, detail=detail)
            yield from [fault] if own > width else (f"WARNING: {line}" for line in str(fault).split("\n"))


def _warnings_of_first_line(path: str, header: str | None, file: str) -> Iterator[str]:
    """Yield warnings if the first line alone is no number in some column: it may be a header."""
    try:
        names = None if header is None else next(read_lines(header), None)
        name = names and names.split("\t")[0]
        lines = read_lines(splits.answers_at(path), header=name)
        first, *others = (line.split("\t") for line in islice(lines, MAX_FIRST_LINES))
    except (DataError, ValueError):  # there may be no line
        return
    for column, field in enumerate(first):
        fields = [line[column] for line in others if column < len(line)]
        are_numbers = len(fields) >= MIN_NUMBERS and all(map(_is_number, fields))
        if are_numbers and not _is_number(field) and field not in NO_VALUE:
            option = "--in-header in-header.tsv" if file == splits.INPUT_FILE else "--out-header out-header.tsv"
            name = f"`{visible(shorten(field))}`"
            yield f"WARNING: {named(path)}: the first line has {name} where all others have numbers"
            yield f"WARNING: If it is a header, move it to the file of a header, with {option} in config.txt"
            return


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_width(path: str) -> int | None:
    """Return the number of columns of the first line; None if there is none, or it cannot be read."""
    try:
        first = next(read_lines(splits.answers_at(path)), None)
    except DataError:
        return None
    return None if first is None else first.count("\t") + 1
