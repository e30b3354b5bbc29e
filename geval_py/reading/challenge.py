"""A challenge's directory: where its answers, inputs and outputs are.

    my-challenge/
      README.md      first heading = title, first paragraph = short description
      config.txt     options, as on the command line
      train/  dev-0/  test-A/ …
        in.tsv       one item a line, columns split by TAB
        expected.tsv the missing word, a line an item
        out.tsv      an answer; or several: out-epochs=10,lr=0.01.tsv

Any data file may be stored compressed: ``in.tsv`` is asked for, ``in.tsv.xz`` is found. Paths are strings, since
they are shown as they were given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from geval_py.errors import AmbiguousFileError, EmptyFileError, MissingFileError, UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.dataset import DataSet
from geval_py.reading.lines import read_lines
from geval_py.reading.options import Options, config_options
from geval_py.reading.outputs import OUTPUT_FILE, Output, find_outputs, parse_parameters
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import STANDARD_INPUT, find_file, is_address
from geval_py.text import natural_order, nearest, visible

EXPECTED_FILE, INPUT_FILE = "expected.tsv", "in.tsv"
TRAINING_SET = "train"
README_FILE = "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
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


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge: its directory and the options in its config.txt."""

    path: str
    options: Options

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Challenge:
        """Open a challenge's directory; raises MissingFileError, ConfigError."""
        directory = os.fspath(path)
        _check_directory(directory, "the expected results")
        return cls(directory, config_options(directory))

    @property
    def title(self) -> str:
        """The first heading of README.md; the directory's name if there is none."""
        return self._readme()[0] or os.path.basename(os.path.abspath(self.path))

    @property
    def description(self) -> str:
        """The first paragraph below the title in README.md; may be empty."""
        return self._readme()[1]

    @property
    def split_names(self) -> tuple[str, ...]:
        """The names of the sub-directories with data: train, dev-0, test-A …, in natural order."""
        entries = _names_in(self.path, os.DirEntry.is_dir)
        return tuple(sorted((n for n in entries if re.match(r"train|dev|test", n)), key=natural_order))

    def __iter__(self) -> Iterator[str]:
        """Give the names of the sets."""
        return iter(self.split_names)

    def __getitem__(self, name: str) -> DataSet:
        """Give a set, which needs no output: train, dev-0, test-A …, or another sub-directory.

        Raises MissingFileError where there is none of that name, and AmbiguousFileError.
        """
        options = self.options
        if name not in _names_in(options.challenge_directory, os.DirEntry.is_dir):
            place = os.path.join(options.challenge_directory, name)
            raise MissingFileError(what="No such set in the challenge", path=place, hint=self._near(name))
        folder = os.path.join(options.challenge_directory, name)
        return DataSet(
            name=name,
            directory=os.path.join(options.out_directory, name),
            input=find_file(os.path.join(folder, options.input_file or INPUT_FILE)),
            expected=find_file(os.path.join(folder, options.expected_file or EXPECTED_FILE)),
            in_header=read_header(options.challenge_directory, options.in_header),
            out_header=read_header(options.challenge_directory, options.out_header),
        )

    def _near(self, name: str) -> str:
        """Say which set might have been meant, and which there are."""
        names = self.split_names
        close = nearest(name, names)
        guess = f"did you mean {visible(close)}? " if close else ""
        return guess + (f"there are {visible(', '.join(names))}" if names else "it has no sets")

    def schemes(self) -> list[EvaluationScheme]:
        """Give the challenge's metrics, the main one first."""
        return self.options.schemes()

    def split(self, test_name: str, out: str | None = None) -> Split:
        """Resolve one test set's files; ``out`` names the output, by default out.tsv and all out-*.tsv.

        Raises MissingFileError, AmbiguousFileError.
        """
        return locate(replace(self.options, test_name=test_name, out_file=out))

    def _readme(self) -> tuple[str, str]:
        path = os.path.join(self.path, README_FILE)
        return _title_and_paragraph(list(read_lines(path))) if os.path.isfile(path) else ("", "")


def locate(options: Options) -> Split:
    """Find the files that options name; raises MissingFileError, AmbiguousFileError, UsageError."""
    expected = _find(
        options.challenge_directory,
        options.test_name,
        options.expected_file,
        EXPECTED_FILE,
        "the expected results",
    )
    outputs = _outputs(options)
    input_path = _input(options, expected)
    split = Split(
        name=options.test_name,
        expected=expected,
        outputs=outputs,
        input=input_path,
        in_header=read_header(options.challenge_directory, options.in_header),
        out_header=read_header(options.challenge_directory, options.out_header),
    )
    check_read_once(split)
    return split


def locate_others(split: Split, options: Options, names: Sequence[str]) -> Split:
    """Give a split with more outputs, which are looked for as ``--out-file`` is; raises as :func:`locate`."""
    others = [output for name in names for output in _outputs(replace(options, out_file=name))]
    split = replace(split, outputs=(*split.outputs, *others))
    check_read_once(split)
    return split


def _input(options: Options, expected: str) -> str | None:
    """Find the input: the one named; beside answers that were named; in DIRECTORY/TEST. None if it may be missing."""
    if options.input_file is None and options.expected_file is not None and os.path.isfile(expected):
        beside = find_file(os.path.join(os.path.dirname(expected), INPUT_FILE))
        if beside is not None:
            return beside
    if options.input_file is not None or options.needs_input:
        return _find(options.challenge_directory, options.test_name, options.input_file, INPUT_FILE, "the input")
    try:
        return find_file(os.path.join(options.challenge_directory, options.test_name, INPUT_FILE))
    except AmbiguousFileError:
        return None


def other_test_set(split: Split, output: Output) -> str | None:
    """Give the name of the test set in whose folder an output lies, if it has answers, and others were taken."""
    folder = os.path.dirname(os.path.abspath(output.path))
    if not os.path.isfile(output.path) or os.path.realpath(folder) == os.path.realpath(
        os.path.dirname(split.expected)
    ):
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
            message="the answers can be read only once, and there are several outputs: choose one with -o"
        )
    if [expected, split.input, *(o.path for o in split.outputs)].count(STANDARD_INPUT) > 1:
        raise UsageError(message="standard input (-) can be read only once: give one file as -")


def _find(directory: str, test_name: str, given: str | None, default: str, what: str) -> str:
    """Find a file in DIRECTORY/TEST, then, if it was named, as a path."""
    if given is not None and (given == STANDARD_INPUT or is_address(given)):
        return given
    place = os.path.join(directory, test_name, given or default)
    found = find_file(place)
    if found is None and given is not None:
        found = find_file(given)
    if found is not None:
        return found
    _check_directory(directory, what)
    _check_directory(os.path.dirname(os.path.join(directory, test_name, "")), what, "test subdirectory")
    raise MissingFileError(what=f"No file with {what}", path=place, hint=_what_is_there(place))


def _check_directory(path: str, what: str, kind: str = "directory") -> None:
    if not os.path.isdir(path):
        parent = os.path.dirname(os.path.abspath(path))
        hint = _sets_in(parent) if kind != "directory" else ""
        raise MissingFileError(what=f"No {kind} with {what}", path=path, hint=hint)


def _names_in(directory: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    """Give the names in a directory; none if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if wanted(entry)]
    except OSError:
        return []


def _sets_in(directory: str) -> str:
    if not os.path.isdir(directory):
        return ""
    names = sorted(_names_in(directory, os.DirEntry.is_dir), key=natural_order)
    sets = [name for name in names if name.startswith(("dev", "test", TRAINING_SET))]
    return f"there are {visible(', '.join(sets))}; choose one with -t" if sets else ""


def _what_is_there(place: str) -> str:
    directory = os.path.dirname(place)
    if not os.path.isdir(directory):
        return ""
    names = sorted(_names_in(directory, os.DirEntry.is_file), key=natural_order)
    shown = visible(", ".join(names[:8])) + (" …" if len(names) > 8 else "")
    return f"`{visible(directory)}` holds {shown or 'no file'}"


def _outputs(options: Options) -> tuple[Output, ...]:
    directory = os.path.join(options.out_directory, options.test_name)
    if options.out_file is None and os.path.isdir(directory):
        variants = find_outputs(directory)
        if variants:
            return variants
    path = _find(options.out_directory, options.test_name, options.out_file, OUTPUT_FILE, "the test results")
    name = os.path.basename(path)
    name = next((name.removesuffix(end) for end in COMPRESSED_ENDINGS if name.endswith(end)), name)
    return (Output(path=path, name=name, parameters=parse_parameters(name)),)


def read_header(directory: str, name: str | None) -> tuple[str, ...]:
    """Read the column names of a header file, relative to the challenge's directory; () for no file."""
    if name is None:
        return ()
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        raise MissingFileError(what="No file with the header", path=path)
    first = next(read_lines(path), None)
    if first is None:
        raise EmptyFileError(what="header", path=path)
    return tuple(first.split("\t"))


def read_vocabulary(options: Options) -> frozenset[str]:
    """Read the words that metrics on exact words know: ``--vocabulary``, else those of train/expected.tsv.

    Empty if there is neither.
    """
    if options.vocabulary is not None:
        path = find_file(options.vocabulary)
        if path is None and not is_address(options.vocabulary):
            raise MissingFileError(what="No file with the vocabulary", path=options.vocabulary)
        words = frozenset(read_lines(path or options.vocabulary))
        if not words:
            raise EmptyFileError(what="vocabulary", path=options.vocabulary)
        return words
    path = find_file(os.path.join(options.challenge_directory, TRAINING_SET, EXPECTED_FILE))
    if path is None:
        return frozenset()
    header = read_header(options.challenge_directory, options.out_header)
    return frozenset(read_lines(path, header=header[0] if header else None))


def _title_and_paragraph(lines: list[str]) -> tuple[str, str]:
    """Read the first heading (# or underlined) and the first paragraph after it."""
    title, body = "", lines
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("#"):
            title, body = re.sub(r"^#+\s*|\s+#*\s*$", "", line), lines[number + 1 :]
            break
        if line.strip() and re.fullmatch(r"(=+|-+)\s*", below):
            title, body = line.strip(), lines[number + 2 :]
            break
    paragraph: list[str] = []
    for line in body:
        if line.strip() and not line.startswith("#"):
            paragraph.append(line.strip())
        elif paragraph:
            break
    return title, " ".join(paragraph)
