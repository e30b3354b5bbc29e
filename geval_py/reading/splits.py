"""What is scored: a challenge, a test set of it, its files, the metrics. How it is shown is no part of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from geval_py.errors import AmbiguousFileError, EmptyFileError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading import sources
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.lines import read_lines
from geval_py.reading.outputs import OUTPUT_FILE, Output, by_accepted_names, find_outputs, output_at
from geval_py.reading.parts import part_of, wholes_among
from geval_py.reading.schemes import EvaluationScheme, parse_schemes
from geval_py.reading.sources import (
    STANDARD_INPUT,
    absolute,
    find_file,
    is_address,
    is_file,
    is_folder,
    join,
    matching_files,
    naming,
)
from geval_py.text import named, natural_order, nearest, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.remote import Kind


class Task(Value):
    """What is scored. The fields are named as the options are; None means an option's default.

    ``metrics`` and ``alt_metrics``, which replace them, are metric arguments as written. ``tokenizer`` is for metrics
    of words, such as BLEU; others are of the lines as they are. ``needs_items`` tells that
    the input has to be there, since what is shown is about it.
    """

    test_name: str = "test-A"
    out_directory: str = "."
    expected_directory: str | None = None
    out_files: tuple[str, ...] = ()
    expected_file: str | None = None
    input_file: str | None = None
    metrics: tuple[str, ...] = ()
    alt_metrics: tuple[str, ...] = ()
    select_metrics: tuple[str, ...] = ()
    vocabulary: str | None = None
    tokenizer: str | None = None
    in_header: str | None = None
    out_header: str | None = None
    needs_items: bool = False

    @property
    def directory(self) -> str:
        """The challenge's directory: that with the answers, the headers and config.txt."""
        return self.out_directory if self.expected_directory is None else self.expected_directory

    @property
    def needs_input(self) -> bool:
        """Tell whether the input must be there: for what is shown, or for a metric's filter."""
        return self.needs_items or any(name.startswith("in") for scheme in self.schemes() for name in scheme.filters)

    def schemes(self) -> list[EvaluationScheme]:
        """Give the metrics to score with, products multiplied out; raises SchemeError."""
        return checked_schemes(self.alt_metrics or self.metrics)


def checked_schemes(texts: Iterable[str]) -> list[EvaluationScheme]:
    """Parse metric arguments; raises SchemeError, also for a regular expression that is broken."""
    schemes = [scheme for text in texts for scheme in parse_schemes(text)]
    if any(scheme.text_flags for scheme in schemes):
        from geval_py.reading.preparation import preparation_of

        for scheme in schemes:
            preparation_of(scheme)
    return schemes


# The test sets of a challenge, resolved to files.


EXPECTED_FILE, INPUT_FILE = "expected.tsv", "in.tsv"
OUT_HEADER_FILE = "out-header.tsv"  # its usual name; which looks like that of an output
_DEFAULT_NAMES = (EXPECTED_FILE, INPUT_FILE, OUTPUT_FILE)
TRAINING_SET = "train"


class Split(Value):
    """One test set of a challenge, resolved to files.

    ``outputs`` is in natural order of names; ``input`` is None where there is none. The headers are the names of
    the columns, empty where the challenge gives none.
    """

    name: str
    expected: str
    outputs: tuple[Output, ...]
    input: str | None
    in_header: tuple[str, ...]
    out_header: tuple[str, ...]

    @property
    def input_header(self) -> str | None:
        """The first name of the input's header: a file that begins with it has a header line."""
        return self.in_header[0] if self.in_header else None

    @property
    def output_header(self) -> str | None:
        """The same of the answers and outputs."""
        return self.out_header[0] if self.out_header else None


def locate(task: Task) -> Split:
    """Find the files of a task; raises MissingFileError, AmbiguousFileError, UnreadableFileError and UsageError."""
    outputs = _named_outputs(task)  # looked for first: a wrong name says more than a wrong folder
    expected = _find(task.directory, task.test_name, task.expected_file, EXPECTED_FILE, "the expected results")
    split = Split(
        name=task.test_name,
        expected=expected,
        outputs=outputs or _outputs(task),
        input=_input(task, expected),
        in_header=read_header(task.directory, task.in_header),
        out_header=read_header(task.directory, task.out_header),
    )
    check_read_once(split)
    return split


def locate_pair(task: Task) -> Split:
    """Make a split of the two files that a task names, as they are, and of the input beside the answers.

    Its name is that of the answers. Raises as :func:`locate`.
    """
    outputs = tuple(output_at(_file(path, "the test results")) for path in task.out_files)
    answers = _file(task.expected_file or EXPECTED_FILE, "the expected results")
    split = Split(
        name=answers,
        expected=answers,
        outputs=outputs,
        input=_input_beside(answers, needed=task.needs_input),
        in_header=(),
        out_header=(),
    )
    check_read_once(split)
    return split


def _input_beside(answers: str, *, needed: bool) -> str | None:
    place = os.path.join(os.path.dirname(answers), INPUT_FILE)
    if needed:
        return _file(place, "the input")
    return find_file(place) if is_file(answers) else None


def _file(path: str, what: str) -> str:
    """Find a file by its path, which need not be one on this machine; raises MissingFileError."""
    if path == STANDARD_INPUT or is_address(path):
        return path
    found = find_file(path)
    if found is None:
        raise _not_there(what, "", path)
    return found


def locate_others(split: Split, task: Task, names: Sequence[str]) -> Split:
    """Give a split with more outputs, which are looked for as ``--out-file`` is; raises as :func:`locate`."""
    split = split.replace(outputs=(*split.outputs, *_named_outputs(task.replace(out_files=tuple(names)))))
    check_read_once(split)
    return split


def _outputs(task: Task) -> tuple[Output, ...]:
    """Find the outputs of a test set where none is named."""
    directory = os.path.join(task.out_directory, task.test_name)
    variants = find_outputs(directory) if is_folder(directory) else ()
    return variants or (output_at(_find(task.out_directory, task.test_name, None, OUTPUT_FILE, "the test results")),)


def _named_outputs(task: Task) -> tuple[Output, ...]:
    folder = os.path.join(task.out_directory, task.test_name)
    if "" in task.out_files:
        raise UsageError(message="an output has no name; is a variable of the shell unset?")
    found = [output for name in task.out_files for output in outputs_named(folder, name)]
    # One that is named twice is taken once, but for standard input, which is an error of its own.
    once = {(o.path, place if o.path == STANDARD_INPUT else 0): o for place, o in enumerate(found)}
    return tuple(once.values())


def outputs_named(folder: str, name: str) -> tuple[Output, ...]:
    """Find the outputs that a name means: a file, a folder's, those of a pattern, or one called so for short.

    A file or folder is looked for in a test set's folder, then as a path. Raises as :func:`locate`.
    """
    if name == STANDARD_INPUT or is_address(name):
        return (output_at(name),)
    for place in dict.fromkeys((join(folder, name), name)):
        if is_folder(place):
            outputs = find_outputs(place)
            if not outputs:
                raise _not_there("the test results", place, OUTPUT_FILE)
            return outputs
        path = find_file(place)
        if path is not None:
            return (output_at(path),)
    return _matching(folder, name) or _called(folder, name)


def _matching(folder: str, pattern: str) -> tuple[Output, ...]:
    """Give the outputs that a pattern such as ``out-*.tsv`` matches, in natural order; none for another name.

    They are those of the test set or, if it has none such, any files.
    """
    from fnmatch import fnmatchcase

    outputs = find_outputs(folder) if is_folder(folder) else ()
    matching = tuple(o for o in outputs if any(fnmatchcase(n, pattern) for n in (o.name, os.path.basename(o.path))))
    if matching:
        return matching
    for place in dict.fromkeys((folder, "")):
        if found := matching_files(place, pattern):
            return tuple(map(output_at, sorted(_joined(found), key=natural_order)))
    return ()


def _joined(paths: Sequence[str]) -> set[str]:
    """Put the file in parts in the place of its parts; raises PartsError where they do not make a whole."""
    alone = {path for path in paths if part_of(os.path.basename(path)) is None}
    of_folders: dict[str, list[str]] = {}
    for folder, name in map(os.path.split, paths):
        of_folders.setdefault(folder, []).append(name)
    wholes = {os.path.join(folder, name) for folder, names in of_folders.items() for name in wholes_among(names)}
    return alone | {find_file(whole) or whole for whole in wholes}


def _called(folder: str, name: str) -> tuple[Output, ...]:
    """Give the output of a folder that is called so for short, as ``bigram`` for out-model=bigram.tsv."""
    outputs = find_outputs(folder) if is_folder(folder) else ()
    called = by_accepted_names([output.name for output in outputs], outputs)
    found = called.get(name, [])
    if len(found) > 1:
        several = visible(", ".join(outputs[n].name for n in found))
        raise UsageError(message=f"`{visible(name)}` names {len(found)} outputs\n  {several}")
    if not found:
        raise _not_there("the test results", folder, name, called)
    return (outputs[found[0]],)


def _input(task: Task, expected: str) -> str | None:
    """Find the input: the one named; beside answers that were named; in DIRECTORY/TEST. None if it may be missing."""
    if task.input_file is None and task.expected_file is not None and is_file(expected):
        beside = find_file(os.path.join(os.path.dirname(expected), INPUT_FILE))
        if beside is not None:
            return beside
    try:
        return _find(task.directory, task.test_name, task.input_file, INPUT_FILE, "the input")
    except (MissingFileError, AmbiguousFileError):
        if task.needs_input:
            raise
        return None


def other_test_set(split: Split, output: Output) -> str | None:
    """Give the name of the test set in whose folder an output lies, if it has answers, and others were taken."""
    folder = os.path.dirname(absolute(output.path))
    if not is_file(output.path) or os.path.realpath(folder) == os.path.realpath(os.path.dirname(split.expected)):
        return None
    answers = (os.path.join(folder, EXPECTED_FILE + ending) for ending in ("", *COMPRESSED_ENDINGS))
    return os.path.basename(folder) if any(map(os.path.isfile, answers)) else None


def check_read_once(split: Split) -> None:
    """Raise UsageError where a file that can be read only once (standard input, a pipe) would be read twice."""
    expected = split.expected
    if len(split.outputs) > 1 and (
        expected == STANDARD_INPUT or (os.path.exists(expected) and not os.path.isfile(expected))
    ):
        raise UsageError(
            message="the answers can be read only once, and there are several outputs: choose one with",
            arguments=("out",),
        )
    if [expected, split.input, *(o.path for o in split.outputs)].count(STANDARD_INPUT) > 1:
        raise UsageError(message="standard input (-) can be read only once: give one file as -")


def _find(directory: str, test_name: str, given: str | None, default: str, what: str) -> str:
    """Find a file in DIRECTORY/TEST, then, if it was named, as a path."""
    if given is not None and (given == STANDARD_INPUT or is_address(given)):
        return given
    place = join(os.path.join(directory, test_name), given or default)
    found = find_file(place)
    if found is None and given is not None:
        found = find_file(given)
    if found is not None:
        return found
    check_directory(directory, what)
    check_directory(os.path.dirname(os.path.join(directory, test_name, "")), what, "test subdirectory")
    raise _not_there(what, os.path.join(directory, test_name), given or default)


def check_directory(path: str, what: str, kind: str = "directory") -> None:
    """Raise MissingFileError, in GEval's words, if there is no such directory."""
    if not is_folder(path):
        parent = os.path.dirname(absolute(path))
        hint, arguments = _which_sets(parent) if kind != "directory" else ("", ())
        raise MissingFileError(what=f"No {kind} with {what}", path=path, hint=hint, arguments=arguments)


def names_in(directory: str, kind: Kind) -> list[str]:
    """Give the names of the files, or of the directories, in one; raises UnreadableFileError."""
    with naming(directory):
        return sources.names_in(directory, kind)


def _which_sets(directory: str) -> tuple[str, tuple[str, ...]]:
    """Say which test sets there are to choose from, or why that cannot be told, and what chooses."""
    if not is_folder(directory):
        return "", ()
    try:
        names = sorted(names_in(directory, "directory"), key=natural_order)
    except UnreadableFileError as error:
        return str(error), ()
    sets = [name for name in names if name.startswith(("dev", "test", TRAINING_SET))]
    return (f"there are {visible(', '.join(sets))}; choose one with", ("test",)) if sets else ("", ())


def _not_there(what: str, folder: str, name: str, known: Iterable[str] = ()) -> MissingFileError:
    """Say that a file is neither in a folder nor, by its own path, elsewhere, and what there is that is like it.

    It is named as a path where only that leads to a folder. ``known`` are names in the folder that can be meant, if
    not all that are there.
    """
    inside = join(folder, name)
    here = not is_folder(os.path.dirname(inside)) and is_folder(os.path.dirname(name))
    place, known = (name, ()) if here else (inside, known)
    return MissingFileError(what=f"No file with {what}", path=place, hint=_what_is_there(place, [*known]))


def _what_is_there(place: str, known: list[str]) -> str:
    directory, name = os.path.split(place)
    if not is_folder(directory):
        return _meant(name, known).rstrip()
    try:
        names = sorted(names_in(directory, "file"), key=natural_order)
    except UnreadableFileError as error:
        return str(error)
    shown = visible(", ".join(names[:8])) + (" …" if len(names) > 8 else "")
    close = _meant(name, known or ([] if name in _DEFAULT_NAMES else names))  # nobody misspelt those
    return f"{close}{named(directory)} holds {shown or 'no file'}"


def _meant(name: str, known: list[str]) -> str:
    close = nearest(name, known)
    return f"did you mean {visible(close)}? " if close else ""


def read_header(directory: str, name: str | None) -> tuple[str, ...]:
    """Read the column names of a header file, relative to the challenge's directory; () for no file."""
    if name is None:
        return ()
    path = join(directory, name)
    if not sources.exists(path):
        raise MissingFileError(what="No file with header specification", path=path)
    first = next(read_lines(path), None)
    if first is None:
        raise EmptyFileError(what="header", path=path)
    return tuple(first.split("\t"))


def read_vocabulary(task: Task) -> frozenset[str]:
    """Read the words that metrics on exact words know: ``--vocabulary``, else those of train/expected.tsv.

    Empty if there is neither.
    """
    if task.vocabulary is not None:
        path = find_file(task.vocabulary)
        if path is None and not is_address(task.vocabulary):
            raise MissingFileError(what="No file with the vocabulary", path=task.vocabulary)
        words = frozenset(read_lines(path or task.vocabulary))
        if not words:
            raise EmptyFileError(what="vocabulary", path=task.vocabulary)
        return words
    header = read_header(task.directory, task.out_header)
    return frozenset(training_words(task.directory, header[0] if header else None))


def training_words(directory: str, header: str | None) -> Iterator[str]:
    """Give the words of a challenge's train/expected.tsv, in order; none where it has no such file.

    ``header`` is the first name of the header line to skip, if the file begins with it.
    """
    path = find_file(os.path.join(directory, TRAINING_SET, EXPECTED_FILE))
    return iter(()) if path is None else read_lines(path, header=header)
