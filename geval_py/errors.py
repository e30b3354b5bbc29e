"""Everything that can be wrong with what a user gave us.

    GevalError
    ├── UsageError              the command line is at fault (exit status 2)
    │   └── SchemeError         a metric, or its flags, cannot be read or is not known
    ├── ClusterError            a cluster does not answer, has no worker, or went away (exit status 1)
    └── DataError               the data is at fault (exit status 1)
        ├── MissingFileError    a file or a folder is not there
        ├── UnreadableFileError a file is there but cannot be read: a folder, no permission, no answer
        ├── CorruptFileError    a compressed file is truncated or damaged
        ├── TooLargeError       a compressed file, or a line, is larger than is allowed
        ├── AmbiguousFileError  two compressed files where one was expected
        ├── PartsError          the parts of a file (out-3-of-64.tsv) do not make a whole
        ├── ExistingFileError   a file or a folder is there, where a new one was to be written
        ├── ConfigError         config.txt cannot be understood
        ├── ModelError          a language model cannot be made of a text, or read, or used
        ├── EmptyFileError      a file without a line
        ├── LineCountError      files that should have the same number of lines do not
        └── MalformedLineError  a line that is not in the format, at its line and column

Errors hold data; ``str(error)`` makes the sentence. Sentences begin with GEval's own words, so that whoever
searches for them finds the old answers too. What a caller should give is said in the caller's words: ``out=…`` in
Python, ``-o`` on the command line, which makes its sentences by :meth:`GevalError.said`.
"""

from __future__ import annotations

from geval_py.text import excerpt, named, visible
from geval_py.values import Fields, dataclass_transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal


@dataclass_transform(kw_only_default=True, eq_default=False)
class GevalError(Fields, Exception):
    """The root of all errors that geval-py raises on purpose."""

    exit_status = 1

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._fill(values)

    def said(self, call: Callable[[str], str]) -> str:
        """Make the sentence for those who know Python's arguments by the names that ``call`` gives to them."""
        del call  # most errors name none
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {name: getattr(self, name) for name in self.fields})


def _in_python(argument: str) -> str:
    return f"{argument}=…"


def _naming(text: str, arguments: tuple[str, ...], call: Callable[[str], str]) -> str:
    """End a sentence with the arguments that would mend it, any of which will do."""
    return f"{text} {' or '.join(map(call, arguments))}" if arguments else text


def _rebuild(kind: type[GevalError], values: dict[str, Any]) -> GevalError:
    return kind(**values)


class UsageError(GevalError):
    """The command line, or a call's arguments, cannot be understood; ``arguments`` are those that mend it."""

    message: str
    arguments: tuple[str, ...] = ()

    exit_status = 2

    def __str__(self) -> str:
        return self.said(_in_python)

    def said(self, call: Callable[[str], str]) -> str:
        return _naming(self.message, self.arguments, call)


class SchemeError(UsageError):
    """A metric's name or flags cannot be read, or no line has what its filter asks for; ``scheme`` is what was given.

    ``path`` is that of the output where the filter speaks of outputs: of another one, it may select lines.
    """

    scheme: str
    path: str = ""

    def _fill(self, values: dict[str, Any]) -> None:
        super()._fill(values)
        if self.path:
            self.exit_status = 1

    def said(self, call: Callable[[str], str]) -> str:
        return super().said(call) + (f"\n  in {named(self.path)}" if self.path else "")


class ClusterError(GevalError):
    """A cluster of workers does not answer, has no workers or others than are wanted, or went away."""

    address: str
    reason: str

    def __str__(self) -> str:
        return f"The cluster at {named(self.address)}: {visible(self.reason)}"


class DataError(GevalError):
    """A file or a folder is at fault; ``path`` says which."""

    path: str = ""


class MissingFileError(DataError):
    """A file or folder is not there; ``what`` is GEval's sentence for it, ``hint`` and ``arguments`` what helps."""

    what: str
    hint: str = ""
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.said(_in_python)

    def said(self, call: Callable[[str], str]) -> str:
        hint = _naming(self.hint, self.arguments, call)
        return f"{self.what}: {named(self.path)}" + (f"\n  {hint}" if hint else "")


class UnreadableFileError(DataError):
    """A file cannot be read; ``reason`` says why."""

    reason: str

    def __str__(self) -> str:
        return f"Cannot read {named(self.path)}: {visible(self.reason)}"


class CorruptFileError(DataError):
    """A compressed file ends too early or is damaged."""

    compression: str
    reason: str

    def __str__(self) -> str:
        return (
            f"Corrupt {self.compression} file {named(self.path)}: {visible(self.reason)}"
            "\n  write it again, or upload it again: a part of it may be missing"
        )


class TooLargeError(DataError):
    """A compressed file unpacks to more than ``max_bytes``, or a line has more; ``what`` says which."""

    max_bytes: int
    what: Literal["file", "line"] = "file"

    def __str__(self) -> str:
        is_larger = "has a line of" if self.what == "line" else "unpacks to"
        return f"Too large: {named(self.path)} {is_larger} more than {self.max_bytes} bytes"


class AmbiguousFileError(DataError):
    """Several compressed files stand where one was asked for."""

    candidates: tuple[str, ...]

    def __str__(self) -> str:
        names = " and ".join(f"`{visible(c)}`" for c in self.candidates)
        return f"More than one file could be {named(self.path)}: {names}\n  remove all but one"


class PartsError(DataError):
    """A part of a file is missing, or there twice, or one too many; ``names`` are the files that do not fit."""

    reason: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f"\n  {', '.join(map(named, self.names))}" if self.names else ""
        return f"The parts of {named(self.path)} do not make a whole: {visible(self.reason)}{names}"


class ExistingFileError(DataError):
    """A file, or a folder with something in it, is there already; ``others`` are more of them."""

    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = f"\n  and {', '.join(map(named, self.others))}" if self.others else ""
        return f"File already there: {named(self.path)}{others}"


class ConfigError(DataError):
    """The options in a challenge's config.txt cannot be understood."""

    message: str

    def __str__(self) -> str:
        return f"{self.message}\n  in {named(self.path)}"


class ModelError(DataError):
    """A language model cannot be made of a text, or read, or used for what was asked."""

    message: str

    def __str__(self) -> str:
        return self.message + (f"\n  in {named(self.path)}" if self.path else "")


class EmptyFileError(DataError):
    """A file that should have lines has none; ``what`` says which: output, expected, input, vocabulary, text."""

    what: str

    def __str__(self) -> str:
        return f"The {self.what} file is empty: {named(self.path)}"


class LineCountError(DataError):
    """``what`` (the output or the input) has another number of lines than the expected file."""

    what: str
    lines: int
    expected_path: str
    expected_lines: int

    def __str__(self) -> str:
        few = "few" if self.lines < self.expected_lines else "many"
        return (
            f"Too {few} lines in the {self.what} file: {named(self.path)} has {self.lines}, "
            f"{named(self.expected_path)} has {self.expected_lines}"
        )


class MalformedLineError(DataError):
    """A line that is not in the format.

    ``line`` and ``column`` count from 1, the column in characters; ``reason`` is GEval's bracketed message;
    ``token`` is what stands there; ``hint`` says what was expected; ``text`` is the line; ``role`` tells which
    of the files that were read together it is; ``prepared_by`` are the flags that made the line what it is, if any.
    """

    line: int
    column: int
    reason: str
    token: str
    hint: str
    text: str
    role: Literal["output", "expected"] = "output"
    prepared_by: str = ""

    def __str__(self) -> str:
        where = f"{named(self.path)}, line" if self.path else "line"
        picture = excerpt(self.text, self.column).replace("\n", "\n    ")
        flags = visible(self.prepared_by)
        note = f"\n  (the line is shown as the flags `{flags}` left it)" if flags else ""
        return (
            f"Line {self.line}: Unexpected data [{self.reason}]\n"
            f"  {where} {self.line}, column {self.column}: {self.hint}\n    {picture}{note}"
        )
