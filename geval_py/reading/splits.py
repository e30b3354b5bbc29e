"""The files of a test set: its outputs, and the answers, the input and the headers beside them.

In this order: the Split that :func:`locate` finds for a task; the outputs that a task names; the answers in any
format; errors for missing files; headers, and the vocabulary.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from geval_py.errors import DataError, EmptyFileError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading.config import CONFIG_FILE, DEFAULT_TEST, Task, declared_documents
from geval_py.reading.files import (
    JSON_ENDINGS,
    JSON_NAMES,
    STANDARD_INPUT,
    File,
    absolute,
    exists,
    find_file,
    format_ending,
    join,
    matching_files,
    name_of,
    names_in,
)
from geval_py.reading.lines import first_name, read_lines
from geval_py.reading.outputs import (
    OUTPUT_FILE,
    Output,
    advice_on_names,
    by_accepted_names,
    find_output,
    find_outputs,
    output_at,
)
from geval_py.text import named, natural_order, some_of, suggestion

EXPECTED_FILE, INPUT_FILE = "expected.tsv", "in.tsv"
REFUSED_ANSWERS = {  # by their endings, with the calls of pandas that read them
    ".csv": "read_csv({!r}, dtype=str, keep_default_na=False)",
    ".parquet": "read_parquet({!r})",
    ".pq": "read_parquet({!r})",
}
OTHER_FILES = tuple(f"expected{ending}" for ending in (*JSON_ENDINGS, *REFUSED_ANSWERS))  # of answers without a TSV
IN_HEADER_FILE, OUT_HEADER_FILE = "in-header.tsv", "out-header.tsv"  # the latter looks like the name of an output
TRAINING_SET, DEV_SET, HIDDEN_SET = "train", "dev-0", DEFAULT_TEST
EXPECTED, RESULTS = "the expected results", "the test results"  # GEval's words for what is missing
NO_HEADER = "No file with header specification"
_SET = re.compile("(dev|test|train)(set)?(?![a-z])")  # not tests, which are a program's, nor development
_DEFAULT_NAMES = (EXPECTED_FILE, INPUT_FILE, OUTPUT_FILE)


class Split(NamedTuple):
    """One test set of a challenge, resolved to files; answers that are elsewhere have their path as the ``name``.

    ``outputs`` are in natural order of their names; ``input`` is None if there is none, and ``input_place`` is then
    the path where it was looked for. The headers are the names of the columns, empty if the challenge gives none.
    ``directory`` is the challenge's, "" without one.
    """

    name: str
    expected: File
    outputs: tuple[Output, ...]
    input: File | None
    in_header: tuple[str, ...] = ()
    out_header: tuple[str, ...] = ()
    input_place: str = ""
    directory: str = ""

    @property
    def output_header(self) -> str | None:
        """The first name of the header of answers and outputs."""
        return first_name(self.out_header)

    def missing_input(self, hint: str) -> DataError | UsageError:
        """Return the error for an input that is needed: that it is not there, or why it could not be found."""
        if not self.input_place:
            return UsageError(f"{hint}, and there is no input: give inputs=…")
        try:
            find_file(self.input_place)
        except DataError as error:
            return error
        return MissingFileError(what="No file with the input", path=self.input_place, hint=hint)

    @property
    def documents(self) -> str | Literal[False] | None:
        """The column that config.txt declares, False if it declares that there are none; raises ConfigError."""
        return declared_documents(self.directory) if self.directory else None


def locate(task: Task) -> Split:
    """Find the files of a task; raises MissingFileError, AmbiguousFileError, UnreadableFileError and UsageError.

    With ``""`` as its directory, a task is of no challenge: it names answers and outputs by their paths.
    """
    name = EXPECTED_FILE if task.selector is None else "expected.jsonl"
    directory = task.directory
    expected = _find(directory, task.test_name, task.expected_file, name, EXPECTED)
    beside = os.path.join(os.path.dirname(expected), INPUT_FILE)
    in_set = os.path.realpath(os.path.dirname(expected)) == os.path.realpath(os.path.join(directory, task.test_name))
    outputs = (
        _named_outputs(task)
        or find_outputs(os.path.join(task.out_directory, task.test_name))
        or (output_at(_find(task.out_directory, task.test_name, None, OUTPUT_FILE, RESULTS)),)
    )
    input_file, place = None, beside
    try:
        if task.input_file is None and task.expected_file is not None and os.path.isfile(expected):
            input_file = find_file(beside)
        if not input_file and (directory or task.input_file or task.needs_input):
            file = task.input_file or (None if directory else beside)
            input_file = _find(directory, task.test_name, file, INPUT_FILE, "the input")
    except DataError as error:  # as a link of git-annex whose content is not here
        if task.needs_input:
            raise
        place = error.path
    input_lines = File(input_file, keep=True) if input_file else None
    if input_file and task.selector and input_file.endswith(JSON_NAMES):
        input_lines = _selected(input_file, task.selector)
    split = Split(
        name=task.test_name if in_set and directory else expected,
        expected=answers_at(expected, task.selector),
        outputs=outputs,
        input=input_lines,
        input_place=place,
        in_header=read_header(directory, task.in_header),
        out_header=read_header(directory, task.out_header),
        directory=directory,
    )
    return _checked(split, task)


def _find(directory: str, test_name: str, name: str | None, default: str, what: str) -> str:
    """Find a file in DIRECTORY/TEST; a name may also be a path, and is one if the directory is ""."""
    folder = os.path.join(directory, test_name)
    find = find_answers if default == EXPECTED_FILE else find_file
    path = find(join(folder, name or default)) or (name and find(name))
    if path:
        return path
    is_path = name is not None and (not directory or os.path.isdir(os.path.dirname(name)))
    is_pair = name is not None and not os.path.isfile(join(directory, CONFIG_FILE))  # of no challenge
    if is_path or ((is_pair or default == INPUT_FILE) and not os.path.isdir(folder)):  # GEval names the file
        raise _missing_file(what, "", name or default)
    check_directory(directory, what)
    check_directory(folder, what, "test subdirectory")
    raise _missing_file(what, folder, name or default)


def locate_others(split: Split, task: Task, names: Sequence[str]) -> Split:
    """Return a split with more outputs, found like those of ``--out-file``; raises as :func:`locate`."""
    others = _named_outputs(task.replace(out_files=tuple(names)))
    return _checked(split._replace(outputs=(*split.outputs, *others)), task)


def _named_outputs(task: Task) -> tuple[Output, ...]:
    folder = os.path.join(task.out_directory, task.test_name)
    if "" in task.out_files:
        raise UsageError("an output has no name; is a variable of the shell unset?")
    outputs = [output for name in task.out_files for output in outputs_named(folder, name)]
    return tuple({output.file.name: output for output in outputs}.values())  # one that is named twice is taken once


def outputs_named(folder: str, name: str) -> tuple[Output, ...]:
    """Return the outputs that a name stands for: a file, all of a folder or pattern, or one by its short name.

    A file or folder is looked up in a test set's folder, then as a path. Raises as :func:`locate`.
    """
    for place in dict.fromkeys((join(folder, name), name)):
        if os.path.isdir(place):
            outputs = find_outputs(place)
            if not outputs:
                raise _missing_file(RESULTS, place, OUTPUT_FILE)
            return outputs
        if path := find_file(place):
            return (output_at(path),)
    outputs = find_outputs(folder)
    matching = tuple(o for o in outputs if any(fnmatchcase(n, name) for n in (o.name, os.path.basename(o.path))))
    if matching:
        return matching
    for place in dict.fromkeys((folder, "")):
        if paths := sorted(matching_files(place, name), key=natural_order):
            return tuple(map(output_at, paths))
    names = [output.name for output in outputs]
    accepted = by_accepted_names(names, outputs)
    if name not in accepted:
        raise _missing_file(RESULTS, folder, name, accepted)
    # A short name, such as bigram for out-model=bigram.tsv
    return (outputs[find_output(name, names, outputs, "of the test set")],)


def _checked(split: Split, task: Task) -> Split:
    """Return a split whose outputs know their answers; raises UsageError if standard input would be read twice."""
    files = [split.expected, split.input, *(output.file for output in split.outputs)]
    if [file.name for file in files if file is not None].count(STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read only once: give one file as -")
    outputs = split.outputs
    if task.selector is not None:
        outputs = tuple(output._replace(file=_selected(output.path, task.selector)) for output in outputs)
    for output in outputs:
        output.file.answers = split.expected
    return split._replace(outputs=outputs)


# The answers, in TSV or JSON lines


def answers_at(path: str, selector: str | None = None) -> File:
    """Return the answers at a path, whose content is kept: their lines, if they are JSON lines; raises UsageError."""
    if selector is not None:
        return _selected(path, selector)
    if path.endswith(JSON_NAMES):
        from geval_py.reading.formats import answer_lines

        return File(path, answer_lines)
    return File(path, keep=True)


def _selected(path: str, selector: str) -> File:
    """Return the parts of a file of JSON lines; raises UsageError for another file."""
    from geval_py.reading.selector import read_selected

    if not path.endswith(JSON_NAMES):
        hint = f"--selector names parts of JSON lines, in files that end in {JSON_ENDINGS[0]}"
        raise UsageError(f"selectors not handled for TSVs\n  {named(path)}: {hint}")
    return File(path, partial(read_selected, selector=selector))


def find_answers(path: str) -> str | None:
    """Complete the path of a file with answers, as :func:`geval_py.reading.files.find_file`; None for nothing.

    If there is no expected.tsv, a file with one of OTHER_FILES is taken. Raises as find_file, and UnreadableFileError
    for answers in CSV or Parquet, with the line of Python that writes them as JSON lines.
    """
    folder, name = os.path.split(path)
    others = OTHER_FILES if name == EXPECTED_FILE else ()
    place = next(filter(None, map(find_file, (path, *(os.path.join(folder, other) for other in others)))), None)
    if place and (call := REFUSED_ANSWERS.get(format_ending(place))):
        what = "answers are TSV, or JSON lines with a column expected or answer"
        read = f"pandas.{call.format(os.path.basename(place))}"
        write = ".to_json('expected.jsonl', orient='records', lines=True)"
        raise UnreadableFileError(path=place, reason=f"{what}; {read}{write} writes them")
    return place


def answers_in(folder: str) -> list[str]:
    """Return the paths of all answers in a folder with usual names: of all formats, compressed or not."""
    return [os.path.join(folder, name) for name in sorted(names_in(folder, "file")) if is_usual_name(name)]


def is_usual_name(name: str) -> bool:
    """Whether a file's name is a usual one of answers, in any format, compressed or not.

    >>> [is_usual_name(name) for name in ("expected.jsonl.xz", "expected.tsv", "out.tsv")]
    [True, True, False]
    """
    return name_of(name) in (EXPECTED_FILE, *OTHER_FILES)


# Missing files


def check_directory(path: str, what: str, kind: str = "directory") -> None:
    """Raise MissingFileError, in GEval's words, if a directory does not exist."""
    if os.path.isdir(path):
        return
    challenge = os.path.dirname(absolute(path))
    sets: list[str] = []
    if kind != "directory" and os.path.isdir(challenge):
        sets = [name for name in sets_in(challenge) if holds_data(join(challenge, name), ("expected.", "in.", "out"))]
    hint = f"there are {some_of(sets)}; choose one with" if sets else ""
    raise MissingFileError(what=f"No {kind} with {what}", path=path, hint=hint, arguments=("test",) if sets else ())


def sets_in(directory: str) -> list[str]:
    """Return the names of a challenge's sets, such as dev-0, in natural order; raises UnreadableFileError."""
    return sorted(filter(is_set_name, names_in(directory, "directory")), key=natural_order)


def is_set_name(name: str) -> bool:
    """Whether a folder of this name is a set of a challenge, such as train, dev-0 or test-A."""
    return _SET.match(name) is not None


def holds_data(folder: str, beginnings: tuple[str, ...] = ("expected.", "in.")) -> bool:
    """Whether a folder has answers or an input by their names, unlike the folder test of a program."""
    try:
        return any(name.startswith(beginnings) for name in names_in(folder))
    except UnreadableFileError:
        return False


def _missing_file(what: str, folder: str, name: str, accepted: Iterable[str] = ()) -> MissingFileError:
    """Return the error for a file that is neither in a folder nor at its own path, with a hint.

    The error names the own path only if its folder exists. ``accepted`` are the names to suggest, by default those of
    the files in the folder.
    """
    place, suggested = join(folder, name), list(accepted)
    if not os.path.isdir(os.path.dirname(place)) and os.path.isdir(os.path.dirname(name) or "."):
        place, suggested = name, []
    directory, name = os.path.split(place)
    missing = partial(MissingFileError, what=f"No file with {what}", path=place)
    if not os.path.isdir(directory):
        return missing(hint=suggestion(name, suggested).rstrip())
    names = sorted(names_in(directory, "file"), key=natural_order)
    close = suggestion(name, suggested or ([] if name in _DEFAULT_NAMES else names))  # nobody misspelt the default
    advice = advice_on_names(names) if what == RESULTS and not accepted and not find_outputs(directory) else ""
    close += f"{advice}\n  " if advice else ""
    hint, above = f"{close}{named(directory)} holds {some_of(names) or 'no file'}", os.path.join(directory, os.pardir)
    if name == EXPECTED_FILE:  # the answers of other sets may be there
        sets = [one for one in sets_in(above) if one != TRAINING_SET and find_answers(os.path.join(above, one, name))]
        hint += f"; there are answers in {some_of(sets)}" if sets else ""
    return missing(hint=hint)


def read_header(directory: str, name: str | None) -> tuple[str, ...]:
    """Read the column names of a header file, relative to the challenge's directory; () for no file."""
    if name is None:
        return ()
    path = join(directory, name)
    if not exists(path):
        raise MissingFileError(what=NO_HEADER, path=path)
    if (first := next(read_lines(path), None)) is None:
        raise EmptyFileError(what="header", path=path)
    return tuple(first.split("\t"))


def read_vocabulary(task: Task) -> frozenset[str]:
    """Read the words for metrics on exact words: ``--vocabulary``, else train/expected.tsv; may be empty."""
    if task.vocabulary is not None:
        path = find_file(task.vocabulary)
        if path is None:
            raise MissingFileError(what="No file with the vocabulary", path=task.vocabulary)
        words = frozenset(read_lines(path))
        if not words:
            raise EmptyFileError(what="vocabulary", path=task.vocabulary)
        return words
    path = find_answers(os.path.join(task.directory, TRAINING_SET, EXPECTED_FILE))
    header = first_name(read_header(task.directory, task.out_header))
    return frozenset(() if path is None else read_lines(answers_at(path), header=header))


@lru_cache(maxsize=1)  # a report reads them twice
def training_answers(expected: File) -> File | None:
    """Return the answers of the training set beside a test set's; None without them, or without a folder."""
    if expected.is_in_no_folder:
        return None
    path = find_answers(os.path.join(os.path.dirname(expected), os.pardir, TRAINING_SET, EXPECTED_FILE))
    return None if path is None else answers_at(path)
