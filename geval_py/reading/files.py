"""The door: what a user names becomes a :class:`File`, a local file of lines or lines in memory, read once.

A name is a path, ``-`` (standard input), an ``http(s)://`` address, or an address that fsspec reads. What is no
regular file on this machine is copied, and a file in another format is converted to lines, when the file is first
opened: into memory or, from MAX_KEPT_BYTES on, into a temporary file. Nothing behind the door asks what the name was.
"""

from __future__ import annotations

import io
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import IO, Literal, NamedTuple, TypeAlias

from geval_py.errors import (
    AmbiguousFileError,
    TooLargeError,
    UnreadableFileError,
    UnsupportedEncodingError,
    UsageError,
)
from geval_py.reading.compression import (
    COMPRESSED_ENDINGS,
    NO_LINES,
    READ_AHEAD_BYTES,
    foreign_content,
    unpacked,
)
from geval_py.text import named, without_credentials
from geval_py.version import installs

Convert: TypeAlias = "Callable[[File], Iterator[bytes]]"  # yields the lines, several in a piece
FileState: TypeAlias = tuple[int, int, int, int]  # device, inode, size in bytes, and modification time in ns

STANDARD_INPUT = "-"
ANSWERS_ALONE = "each row lists one candidate, the answer, with its log-likelihood"  # as the LAMBADA of harnesses
JSON_ENDINGS, PARQUET_ENDINGS = (".jsonl", ".ndjson", ".json"), (".parquet", ".pq")
JSON_NAMES = tuple(ending + packed for ending in JSON_ENDINGS for packed in ("", *COMPRESSED_ENDINGS))
FORMAT_ENDINGS = (  # of outputs; an ending that ends in another one stands before it
    ".predictions.json",
    *JSON_ENDINGS,
    *PARQUET_ENDINGS,
    ".csv",
)
MAX_KEPT_BYTES = 64 << 20  # of a file that is kept in memory
MAX_COPIED_BYTES = 20 * 10**9  # of standard input, a pipe or an address
CHUNK_BYTES = 1 << 16  # read at once from a pipe or an address
HTTP_TIMEOUT_SECONDS = 30
READ_ERRORS = OSError, ValueError
_unfinished: set[str] = set()  # temporary files that may exist


class Opened(NamedTuple):
    """A file that is open for its decompressed bytes: ``stored`` are those on the disk, or in memory."""

    stream: io.BufferedReader
    stored: io.FileIO | io.BytesIO
    size: int  # of the stored bytes
    compression: str | None


class File:
    """A file of lines; ``name`` is what the user wrote, for messages, and may not be a path.

    ``convert`` yields the lines of a file in another format; it fills ``notes``, what a user should know of how the
    file was read, and ``ids``, those of the rows if they have some. ``answers`` is the file whose ids order the rows.
    A file that is needed again is told to ``keep`` its content: up to MAX_KEPT_BYTES it is then opened only once.
    """

    def __init__(
        self, name: str, convert: Convert | None = None, data: bytes | None = None, *, keep: bool = False
    ) -> None:
        self.name, self.convert = name, convert
        self.answers: File | None = None
        self.max_bytes: int | None = None  # that it may unpack to
        self.notes: list[str] = []
        self.ids: list[str] = []
        self.lists_answers_alone = False  # see ANSWERS_ALONE
        self.keep = keep
        self.is_utf8 = True  # as far as the first bytes show
        self.ends_in_newline = True
        self.sha256: str | None = None  # once it was computed
        self.lines: int | None = None  # as counted, without a header
        self._is_plain = data is not None or convert is not None  # the content is lines, whatever its first bytes
        self._data, self._path = data, None if self._is_plain else _regular_path(name)
        self._state: FileState | None = None

    @classmethod
    def of_pieces(cls, name: str, pieces: Iterable[bytes]) -> File:
        """Return a file with the content of all pieces, in memory or in a temporary file."""
        return cls(name, lambda _: iter(pieces))

    def __fspath__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<File {named(self.name)}>"

    @property
    def path(self) -> str | None:
        """The path of a local file of lines, perhaps compressed; None for a copy, and for lines in memory."""
        return self._path if self._path == self.name else None

    @property
    def is_in_no_folder(self) -> bool:
        """Whether the name is not that of a local file, beside which others may lie."""
        return not is_path(self.name) or (self._path is None and self.convert is None)

    def admitted(self) -> str | bytes:
        """Return the path of the local file, or its bytes, after it was copied and converted if need be.

        Raises UnreadableFileError, and TooLargeError for what unpacks to more than ``max_bytes``.
        """
        if self._data is None and self._path is None:
            pieces = _pieces(self.name) if self.convert is None else self.convert(self)
            copy = copied(pieces, self.name)
            if isinstance(copy, bytes):
                self._data = copy
            else:
                self._path = copy
                weakref.finalize(self, remove_unfinished, copy)
        return self._data if self._data is not None else self._path or self.name

    def open(self) -> Opened:
        """Open the file for its decompressed bytes, and keep them in memory if it is to keep its content.

        Raises UnreadableFileError, also if the file is not as it was when it was opened first, TooLargeError,
        CorruptFileError, and UnsupportedEncodingError for another content than lines.
        """
        opened = self._opened()
        if not self.keep or self._is_plain or opened.size > MAX_KEPT_BYTES:
            return opened
        with opened.stored, naming(self.name):
            data = opened.stream.read(MAX_KEPT_BYTES + 1)
            self.check_state(opened.stored)
        self.keep = self._is_plain = len(data) <= MAX_KEPT_BYTES
        if self.keep:
            self._data = data
        return self._opened()

    def _opened(self) -> Opened:
        source = self.admitted()
        try:
            stored = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb", buffering=0)
            with ExitStack() as on_error:
                on_error.enter_context(stored)
                self.check_state(stored)
                head = b"" if self._is_plain else stored.read(READ_AHEAD_BYTES)
                size = stored.seek(0, os.SEEK_END)
                stored.seek(0)
                if NO_LINES.match(head):
                    stream, compression = unpacked(stored, self.name, self.max_bytes)
                    if content := foreign_content(stream.peek(1)):
                        raise UnsupportedEncodingError(path=self.name, reason=f"it is {content}")
                else:
                    stream, compression = io.BufferedReader(stored, READ_AHEAD_BYTES), None
                on_error.pop_all()
        except READ_ERRORS as error:
            raise unreadable(self.name, error) from error
        return Opened(stream, stored, size, compression)

    def check_state(self, stored: io.FileIO | io.BytesIO) -> None:
        """Raise UnreadableFileError if the file is not as it was when it was opened first."""
        if isinstance(stored, io.FileIO):
            state = state_of(os.fstat(stored.fileno()))
            self._state = self._state or state
            if self._state != state:
                raise changed(self.name)

    def release(self) -> None:
        """Forget a content that can be read again."""
        if self._path is not None:
            self._data, self._is_plain = None, self.convert is not None


def _regular_path(name: str) -> str | None:
    """Return the path of a local file, also of one that is missing, whose error comes when it is opened."""
    is_other = not is_path(name) or (os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name))
    return None if is_other else name


def _pieces(name: str) -> Iterator[bytes]:
    """Yield the bytes of what is no regular file here."""
    if is_address(name):
        is_http = name.lower().startswith(("http:", "https:"))
        yield from _read_http(name) if is_http else _read_by_fsspec(name)
        return
    if name == STANDARD_INPUT and sys.stdin is None:
        raise UnreadableFileError(path=name, reason="it is closed")
    with naming(name), nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else open(name, "rb") as file:
        while piece := file.read(CHUNK_BYTES):
            yield piece


def _read_http(url: str) -> Iterator[bytes]:
    """Yield the body of an HTTP answer, checked for its length; raises UnreadableFileError."""
    from http.client import HTTPException
    from urllib import error, request

    try:
        with request.urlopen(url, timeout=HTTP_TIMEOUT_SECONDS) as answer:
            length, received = answer.headers.get("Content-Length", ""), 0
            while piece := answer.read(CHUNK_BYTES):
                received += len(piece)
                yield piece
        if length.isdecimal() and received < int(length):
            raise ValueError(f"the answer ended after {received} of {length} bytes")
    except error.HTTPError as refused:
        refused.close()
        reason = f"the server answered {refused.code} {refused.reason}"
        raise UnreadableFileError(path=url, reason=reason) from refused
    except (OSError, ValueError, HTTPException) as fault:
        reason = str(getattr(fault, "reason", None) or fault) or type(fault).__name__
        raise UnreadableFileError(path=url, reason=reason) from fault


def _read_by_fsspec(address: str) -> Iterator[bytes]:
    """Yield the bytes at an address such as s3://, gs:// or sftp://; raises UsageError and UnreadableFileError.

    fsspec's drivers have their own time-outs and retries; after the last one an UnreadableFileError is raised.
    """
    scheme = address.partition("://")[0]
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ModuleNotFoundError as error:
        message = f"{scheme}:// is read by fsspec, of the extra cluster: {installs('cluster')}"
        raise UsageError(message) from error
    try:
        system, place = url_to_fs(address)
        with system.open(place, "rb") as file:
            while piece := file.read(CHUNK_BYTES):
                yield piece
    except ImportError as error:
        raise UsageError(f"{scheme}:// needs a driver: {error}") from error
    except FileNotFoundError as error:
        raise UnreadableFileError(path=address, reason="No such file or directory") from error
    except Exception as error:  # drivers raise errors of botocore, paramiko, …, with no common base
        reason = without_credentials(" ".join(str(error).split())) or type(error).__name__
        raise UnreadableFileError(path=address, reason=reason) from error


def copied(pieces: Iterable[bytes], name: str) -> bytes | str:
    """Return the bytes of all pieces or, if they are more than MAX_KEPT_BYTES, the path of a temporary file."""
    kept: list[bytes] = []
    size = 0
    file: IO[bytes] | None = None
    with naming(name):
        try:
            for piece in pieces:
                size += len(piece)
                if size > MAX_COPIED_BYTES:
                    raise TooLargeError(path=name, max_bytes=MAX_COPIED_BYTES)
                kept.append(piece)
                if size > MAX_KEPT_BYTES:
                    if file is None:
                        import tempfile

                        descriptor, path = tempfile.mkstemp(prefix="geval-")
                        _unfinished.add(path)
                        file = os.fdopen(descriptor, "wb")
                    file.writelines(kept)
                    kept.clear()
        except BaseException:
            if file is not None:
                file.close()
                remove_unfinished(path)
            raise
        if file is None:
            return b"".join(kept)
        file.close()
    return path


def remove_unfinished(*temporaries: str) -> None:
    """Remove temporary files: by default all that are left when a signal interrupts their removal."""
    for temporary in temporaries or tuple(_unfinished):
        with suppress(OSError):  # it took its place, or was never created
            os.unlink(temporary)
        _unfinished.discard(temporary)


def unfinished(path: str) -> str:
    """Return the path of a temporary file, which :func:`remove_unfinished` will remove."""
    _unfinished.add(path)
    return path


def state_of(status: os.stat_result) -> FileState:
    """Return a file's state, which differs once it was changed or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changed(path: str) -> UnreadableFileError:
    """Return the error for a file that was changed since it was opened."""
    return UnreadableFileError(path=path, reason="it was changed while it was read")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn errors of opening or reading a file into an UnreadableFileError with its path."""
    try:
        yield
    except READ_ERRORS as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> UnreadableFileError:
    """Return the error for a file that cannot be opened or read."""
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, IsADirectoryError):
        reason = "it is a folder, not a file"
    elif "\0" in path:
        reason = "the name has a NUL in it"
    return UnreadableFileError(path=path, reason=reason)


# Finding files.


def is_address(path: str) -> bool:
    """Whether a name is an address rather than a path: of http(s), or of a scheme for fsspec; nothing lies beside it.

    >>> is_address("s3://runs/out.tsv"), is_address("https://example.org/out.tsv"), is_address("out.tsv")
    (True, True, False)
    """
    return bool(re.match(r"(?i)[a-z][a-z0-9+.-]+://", path))


def is_path(name: str) -> bool:
    """Whether a name is a path, and neither standard input nor an address."""
    return name != STANDARD_INPUT and not is_address(name)


def find_file(path: str) -> str | None:
    """Complete a path: return it if it exists, else its one compressed file; None for nothing.

    Raises AmbiguousFileError for several compressed files, and UnreadableFileError for a file in a folder that may
    not be entered, or behind a broken link.
    """
    if exists(path):
        return path
    candidates = tuple(path + ending for ending in COMPRESSED_ENDINGS if exists(path + ending))
    if len(candidates) > 1:
        raise AmbiguousFileError(path=path, candidates=candidates, newest=_newest(candidates))
    return candidates[0] if candidates else None


def twins_note(path: str) -> str | None:
    """Return a note on a file beside others that differ in their compression alone; None without others."""
    twins = [twin for ending in ("", *COMPRESSED_ENDINGS) if os.path.isfile(twin := name_of(path) + ending)]
    if path not in twins or len(twins) < 2:
        return None
    newest = _newest(twins)
    age = f"; {named(os.path.basename(newest))} is newer" if newest != path else ""
    beside = " or ".join(named(os.path.basename(twin)) for twin in twins if twin != path)
    return f"{named(path)} is read, and not {beside} beside it{age}"


def _newest(paths: Iterable[str]) -> str:
    with suppress(OSError):
        return max(paths, key=os.path.getmtime)
    return ""


def exists(path: str) -> bool:
    """Whether anything exists at a path, or the name is none; standard input and addresses are not looked for.

    Raises UnreadableFileError for a broken link, and in a folder that may not be entered.
    """
    if not is_path(path):
        return True
    with naming(path), suppress(FileNotFoundError, NotADirectoryError, ValueError):  # the last for a NUL in a name
        os.stat(path)
        return True
    if os.path.islink(path):
        target = os.readlink(path)
        reason = f"it is a link to {named(target)}, which is not there"
        if "/annex/objects/" in target.replace(os.sep, "/"):
            reason = f"its content is not here: run git annex get {os.path.basename(path)}"
        raise UnreadableFileError(path=path, reason=reason)
    return False


def join(folder: str, path: str) -> str:
    """Join a folder and a path; an address stays as it is.

    >>> join("dev-0", "out.tsv"), join("dev-0", "s3://runs/out.tsv")
    ('dev-0/out.tsv', 's3://runs/out.tsv')
    """
    return os.path.join(folder, path) if is_path(path) else path


def absolute(path: str) -> str:
    """Return a path that does not depend on the current folder; an address stays as it is."""
    return os.path.abspath(path) if is_path(path) else path


def names_in(folder: str, kind: Literal["file", "directory"] | None = None) -> list[str]:
    """Return the names in a folder: all, or only files or folders; raises UnreadableFileError."""
    with naming(folder):
        names = os.listdir(folder)
    if kind is None:
        return names
    is_kind = os.path.isfile if kind == "file" else os.path.isdir
    return [name for name in names if is_kind(os.path.join(folder, name))]


def matching_files(folder: str, pattern: str) -> list[str]:
    """Return the files that match a pattern relative to a folder, such as ``runs/out-*.tsv``."""
    from glob import escape, glob

    return [path for path in glob(os.path.join(escape(folder), pattern)) if os.path.isfile(path)]


def name_of(name: str) -> str:
    """Return a file's name without the ending of a compression.

    >>> name_of("out.tsv.gz")
    'out.tsv'
    """
    return next((name.removesuffix(ending) for ending in COMPRESSED_ENDINGS if name.endswith(ending)), name)


def format_ending(path: str) -> str:
    """Return the ending of a file's format, other than TSV, without that of a compression; "" for any other file.

    >>> format_ending("out-lr=0.1.jsonl.xz"), format_ending("out.tsv")
    ('.jsonl', '')
    """
    name = name_of(path)
    return next((ending for ending in FORMAT_ENDINGS if name.endswith(ending)), "")
