"""All errors that geval-py raises on purpose.

    GevalError
    ├── UsageError              the command line is at fault (exit status 2)
    │   ├── SchemeError         a metric or its flags are unknown or malformed
    │   └── MissingPackageError a package that is not installed is needed
    ├── ClusterError            a cluster does not answer, has no worker, or went away (exit status 1)
    └── DataError               the data are at fault (exit status 1)
        ├── MissingFileError    a file or folder does not exist
        ├── UnreadableFileError a file exists but cannot be read: a folder, no permission, no answer
        │   └── UnsupportedEncodingError  it is in UTF-16 or UTF-32, or a zip archive
        ├── CorruptFileError    a compressed file is truncated or damaged
        ├── TooLargeError       a compressed file, or a line, exceeds the limit
        ├── AmbiguousFileError  several compressed files instead of one
        ├── ExistingFileError   a file or folder exists where a new one should be written
        ├── ConfigError         config.txt is malformed
        ├── ModelError          a language model cannot be trained, read or used
        ├── EmptyFileError      a file has no lines
        ├── LineCountError      two files differ in their number of lines
        ├── MalformedLineError  a line is not in the format, with its line and column
        └── ReasonError         a board does not do something, and says why
            └── SubmissionError a board does not take a submission, which is rejected or failed

Errors hold data; ``str(error)`` makes the sentence. Sentences begin with GEval's own words, so that a search for them
finds the old answers too. Arguments are named as the caller knows them: ``output=…`` in Python, ``-o`` on the command
line, which calls :meth:`GevalError.sentence`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, dataclass_transform

from geval_py.text import excerpt, named, visible


@dataclass_transform(kw_only_default=True, eq_default=False)
class GevalError(Exception):
    """Base class of all errors that geval-py raises on purpose.

    Arguments are named, but for the message of a :class:`UsageError`, and become attributes.
    """

    exit_status = 1  # of the command that it ends

    def __init_subclass__(cls, *, kw_only: bool = True) -> None:
        """Let type checkers know whether the arguments are named."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        vars(self).update(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Set what follows from the arguments."""

    def sentence(self, call: Callable[[str], str]) -> str:
        """Return the message, with each Python argument named by ``call``."""
        del call  # most messages name no argument
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **vars(self)), ()


def _with_arguments(text: str, arguments: tuple[str, ...], call: Callable[[str], str]) -> str:
    return f"{text} {' or '.join(map(call, arguments))}" if arguments else text


class UsageError(GevalError, kw_only=False):
    """The command line or a call's arguments are wrong. Changing one of ``arguments`` corrects the call."""

    message: str
    arguments: tuple[str, ...] = ()

    exit_status = 2

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message=message, **values)

    def __str__(self) -> str:
        return self.sentence("{}=…".format)

    def sentence(self, call: Callable[[str], str]) -> str:
        return _with_arguments(self.message, self.arguments, call)


class SchemeError(UsageError):
    """A metric's name or flags are malformed, or its filter selects no line; ``scheme`` is the text as given.

    ``path`` is the output's if the filter depends on the output: the filter may select lines of another output.
    """

    scheme: str
    path: str = ""

    def __post_init__(self) -> None:
        if self.path:
            self.exit_status = 1

    def sentence(self, call: Callable[[str], str]) -> str:
        return super().sentence(call) + (f"\n  in {named(self.path)}" if self.path else "")


class MissingPackageError(UsageError):
    """A ``package`` that is not installed is needed; the message has the command that installs it."""

    package: str


class ClusterError(GevalError):
    """A cluster does not respond, has no suitable workers, or has disconnected."""

    address: str
    reason: str

    def __str__(self) -> str:
        return f"The cluster at {named(self.address)}: {visible(self.reason)}"


class DataError(GevalError):
    """A file or folder is at fault: the one at ``path``."""

    path: str = ""


class MissingFileError(DataError):
    """A file or folder does not exist; ``what`` is GEval's message, ``hint`` and ``arguments`` suggest a fix."""

    what: str
    hint: str = ""
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.sentence("{}=…".format)

    def sentence(self, call: Callable[[str], str]) -> str:
        hint = _with_arguments(self.hint, self.arguments, call)
        return f"{self.what}: {named(self.path)}" + (f"\n  {hint}" if hint else "")


class UnreadableFileError(DataError):
    """A file exists but cannot be read; ``reason`` is the cause, ``what`` the step that failed."""

    reason: str
    what: str = "Cannot read"

    def __str__(self) -> str:
        return f"{self.what} {named(self.path)}: {visible(self.reason)}"


class UnsupportedEncodingError(UnreadableFileError):
    """A file holds no text in UTF-8, but UTF-16 or UTF-32, or it is an archive, a pointer or the like."""

    what = "Line 1: Unexpected data in"


class CorruptFileError(DataError):
    """A compressed file is truncated or damaged."""

    compression: str
    reason: str

    def __str__(self) -> str:
        return (
            f"Corrupt {self.compression} file {named(self.path)}: {visible(self.reason)}"
            "\n  write it again, or upload it again: a part of it may be missing"
        )


class TooLargeError(DataError):
    """A compressed file, or one of its lines, has more than ``max_bytes`` when unpacked."""

    max_bytes: int
    what: Literal["file", "line"] = "file"

    @property
    def reason(self) -> str:
        """What is too large, without the name of the file."""
        return f"it {'has a line of' if self.what == 'line' else 'unpacks to'} more than {self.max_bytes} bytes"

    def __str__(self) -> str:
        return f"Too large: {named(self.path)}: {self.reason}"


class AmbiguousFileError(DataError):
    """Several compressed files match a name that should mean one file; ``newest`` was written last."""

    candidates: tuple[str, ...]
    newest: str

    def __str__(self) -> str:
        names = " and ".join(f"`{visible(c)}`" for c in self.candidates)
        newest = f"; {named(self.newest)} is the newest" if self.newest else ""
        return f"More than one file could be {named(self.path)}: {names}\n  remove all but one{newest}"


class ExistingFileError(DataError):
    """A file or a folder that is not empty already exists; ``others`` are further ones."""

    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = f"\n  and {', '.join(map(named, self.others))}" if self.others else ""
        return f"File already there: {named(self.path)}{others}"


class ConfigError(DataError):
    """The options in a challenge's config.txt are malformed."""

    message: str

    def __str__(self) -> str:
        return f"{self.message}\n  in {named(self.path)}"


class ModelError(DataError):
    """A language model cannot be trained, read or used."""

    message: str

    def __str__(self) -> str:
        return self.message + (f"\n  in {named(self.path)}" if self.path else "")


class EmptyFileError(DataError):
    """A file has no lines; ``what`` is its role: output, expected, input, vocabulary, text."""

    what: str

    def __str__(self) -> str:
        return f"The {self.what} file is empty: {named(self.path)}"


class LineCountError(DataError):
    """The output or the input (``what``) has another number of lines than the answers; ``hint`` suggests a fix."""

    what: str
    lines: int
    expected_path: str
    expected_lines: int
    hint: str = ""

    def __str__(self) -> str:
        few = "few" if self.lines < self.expected_lines else "many"
        return (  # "Too few lines in the output file" are GEval's words
            f"Too {few} lines in the {self.what} file: {named(self.path)} has {self.lines}, "
            f"{named(self.expected_path)} has {self.expected_lines}" + (f"\n  {self.hint}" if self.hint else "")
        )


class MalformedLineError(DataError):
    """A line is malformed.

    ``line`` and ``column`` count from 1, the column in characters. ``reason`` is GEval's bracketed message, ``hint``
    says what was expected instead of ``token``. ``text`` is the whole line, as the flags ``prepared_by`` left it.
    Of several metrics, ``metrics`` are the names of those that cannot read it.
    GEval's message for the reason has no line number if it is not ``is_numbered``.
    """

    line: int
    column: int
    reason: str
    token: str
    hint: str
    text: str
    role: Literal["output", "expected", "input"] = "output"
    prepared_by: str = ""
    metrics: tuple[str, ...] = ()
    is_numbered: bool = True

    def __str__(self) -> str:
        where = f"{named(self.path)}, line" if self.path else "line"
        flags = visible(self.prepared_by)
        failed = f"\n  {visible(' and '.join(self.metrics))} cannot read the line" if self.metrics else ""
        note = f"\n  (the line is shown as the flags `{flags}` left it)" if flags else ""
        first = f"Line {self.line}: Unexpected data [{self.reason}]" if self.is_numbered else self.reason
        return f"{first}\n  {where} {self.line}, column {self.column}: {self.hint}\n{self.picture}{failed}{note}"

    @property
    def picture(self) -> str:
        """The part of the line around the column, and a caret below it."""
        return "    " + excerpt(self.text, self.column).replace("\n", "\n    ")


class LongLineWarning(UserWarning):
    """A line is so long that its score takes very long, or very much memory."""


class ReasonError(DataError, kw_only=False):
    """A board does not do something; ``reason`` is one public sentence, ``aside`` is for the organiser alone."""

    reason: str
    aside: str = ""

    def __init__(self, reason: str, aside: str = "") -> None:
        GevalError.__init__(self, reason=reason, aside=aside)

    def __str__(self) -> str:
        return self.reason


class SubmissionError(ReasonError):
    """A submission cannot be taken, and has this ``state``."""

    state: ClassVar[str]


class RejectedError(SubmissionError):
    """A submission at which its submitter is at fault."""

    state = "rejected"


class FailedError(SubmissionError):
    """A submission that could not be received or scored, for want of time or memory, say."""

    state = "failed"
