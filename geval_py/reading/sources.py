"""Sources: paths, standard input, addresses and files in parts, found and opened.

A source is a path, ``-`` (standard input), ``http(s)://``, an address that fsspec reads
(:mod:`geval_py.reading.remote`), or a :class:`VirtualFile`. A compressed source is decompressed
(:mod:`geval_py.reading.compression`).

Jobs on many machines may write a file in parts: ``out-00003-of-00064.tsv.zst`` is the fourth of 64. Parts are
numbered from 0, with any number of digits. In the order of their numbers they are one file with the name ``out.tsv``,
and a path with a star for the number: ``out-*-of-00064.tsv.zst``.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, NamedTuple, TypeAlias

from geval_py.errors import AmbiguousFileError, PartsError, UnreadableFileError
from geval_py.reading import remote
from geval_py.reading.compression import COMPRESSED_ENDINGS, MAGIC_BYTES, Decompressed, compression_of
from geval_py.reading.items import lines_of
from geval_py.reading.remote import Kind
from geval_py.text import named, natural_order

# Device, inode, size in bytes, and modification time in ns; for a remote file, what its driver reports.
FileState: TypeAlias = tuple[object, object, int, object]

STANDARD_INPUT = "-"
JSON_ENDINGS, PARQUET_ENDINGS = (".jsonl", ".ndjson", ".json"), (".parquet", ".pq")
FORMAT_ENDINGS = (  # of outputs; an ending that ends in another one stands before it
    ".predictions.json",
    *JSON_ENDINGS,
    *PARQUET_ENDINGS,
    ".csv",
    ".words.nbest",
    ".nbest",
)
MAX_NAMED_PARTS = 5  # missing ones, in a message
CHUNK_BYTES = 1 << 16  # read at once from a pipe
ENCODED_CHARACTERS = 1 << 16  # of lines that are encoded together
_ANY_COMPRESSION = "|".join(COMPRESSED_ENDINGS).replace(".", r"\.")
_REMOTE = r"(?i)(?!https?:)[a-z][a-z0-9+.-]+://"
_PART = rf"(?s)(.*[^/\\])-([0-9]+|\*)(-of-([0-9]+)((?:\.[^-/\\]*?)?)(?:{_ANY_COMPRESSION})?)"


class VirtualFile(str):
    """What is read as lines in the place of a path: a file in another format than TSV, or lines in memory.

    Messages show the text as the path. ``read(path, *options, max_bytes=…)`` yields the lines of a file, or bytes
    of many lines, each ended by LF, as often as it is called; it raises TooLargeError for a file that unpacks to more
    than ``max_bytes``. ``options`` are what else the lines depend on. ``list_files`` returns the paths of the files
    that are read.
    :func:`memory_file` makes lines in memory.
    """

    read: Callable[..., Iterable[Any]]
    options: tuple[str, ...]
    list_files: Callable[[str], tuple[str, ...]] | None
    token: str  # what tells lines in memory from others; empty for a file

    def __new__(
        cls,
        path: str,
        read: Callable[..., Iterable[Any]],
        options: tuple[str, ...] = (),
        list_files: Callable[[str], tuple[str, ...]] | None = None,
        token: str = "",
    ) -> VirtualFile:
        self = super().__new__(cls, path)
        self.read, self.options, self.list_files = read, options, list_files
        self.token = token
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return VirtualFile, (str(self), *vars(self).values())

    def pieces(self, max_bytes: int | None = None) -> Generator[bytes]:
        """Yield the lines, encoded and ended by LF, several in a piece; raises as ``read``."""
        if self.token:
            yield from self.read()
            return
        lines: list[str] = []
        size = 0
        for line in self.read(str(self), *self.options, max_bytes=max_bytes):
            if isinstance(line, bytes):
                yield line
                continue
            lines.append(line)
            size += len(line)
            if size >= ENCODED_CHARACTERS:
                yield lines_of(lines)
                lines, size = [], 0
        yield lines_of(lines)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that are read, in order; raises as :func:`parts_of`."""
        if self.token:
            return ()
        return parts_of(str(self)) if self.list_files is None else self.list_files(str(self))

    @property
    def state(self) -> FileState:
        """A value that differs once the lines do."""
        if self.token or is_address(self):
            return self.token or (str(self), *self.options), None, 0, None
        states = tuple(map(state_at, self.files))
        if len(states) == 1 and not self.options:
            return states[0]
        return (states, *self.options), None, sum(state[2] for state in states), None


def memory_file(name: str, read: Callable[[], Iterable[bytes]]) -> VirtualFile:
    """Return lines in memory in the place of a path; ``read`` returns them encoded, several in a piece."""
    return VirtualFile(name, read, token=os.urandom(16).hex())


class Source:
    """One opened source: its path and its decompressed bytes as a raw stream.

    ``size`` is the number of stored bytes and ``position`` how many of them have been read; both are None for a pipe
    or an http address. ``state`` differs once a file was changed or replaced; None if it can be read only once.
    """

    stream: io.RawIOBase
    state: FileState | None = None
    size: int | None = None
    compression: str | None = None
    close: Callable[[], None]

    def __init__(self, path: str, max_bytes: int | None = None) -> None:
        self.path = path
        self._file: io.FileIO | None = None  # a regular file on this machine
        close: Callable[[], None] | None = None
        if isinstance(path, VirtualFile):
            pieces, self.state = path.pieces(max_bytes), path.state
            self.stream, self.close = _PieceStream(pieces), pieces.close
            return
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise UnreadableFileError(path=path, reason="it is closed")
            pieces = _pieces_there(sys.stdin.buffer)
        elif is_address(path):
            pieces = remote.read_http(path)
        elif is_remote(path):
            pieces, self.state = remote.read_pieces(path), remote.state_of(path)
        else:
            with naming(path):
                file = open(path, "rb", buffering=0)
            pieces, close = _pieces_there(file), file.close
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode):
                self._file, self.state = file, _state_of(status)
        self.close = close or pieces.close
        self.size = self.state[2] if self.state else None
        head = b""
        try:
            with naming(path):
                if self._file is not None:
                    head = self._file.read(MAGIC_BYTES)
                    self._file.seek(0)
                while self._file is None and len(head) < MAGIC_BYTES and (more := next(pieces, b"")):
                    head += more
        except BaseException:
            self.close()
            raise
        self._stored: io.RawIOBase = self._file or _PieceStream(chain([head], pieces))
        compression = compression_of(head)
        self.compression = compression.name if compression else None
        self.stream = Decompressed(self._stored, compression, path, max_bytes) if compression else self._stored

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the file was changed since it was opened."""
        if self.state is None:
            return
        if self.state != (state_at(self.path) if self._file is None else _state_of(os.fstat(self._file.fileno()))):
            raise changed(self.path)

    @property
    def read_at(self) -> Callable[[int, int], bytes] | None:
        """A function that reads so many bytes from an offset on, in any thread; None unless it is a plain file here.

        Systems without ``pread`` have none.
        """
        if self._file is None or self.compression is not None or not hasattr(os, "pread"):
            return None
        number = self._file.fileno()
        return lambda size, offset: os.pread(number, size, offset)

    @property
    def position(self) -> int | None:
        return None if self.size is None else self._stored.tell()


def _pieces_there(file: IO[bytes]) -> Generator[bytes]:
    """Yield the bytes of a file or pipe as they come, without waiting for more."""
    read = getattr(file, "read1", file.read)
    while piece := read(CHUNK_BYTES):
        yield piece


class _PieceStream(io.RawIOBase):
    """A stream of pieces of bytes."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = memoryview(b"")
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:  # a writable buffer; typeshed has no public name for it
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _state_of(status: os.stat_result) -> FileState:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def state_at(path: str) -> FileState:
    """Return a file's state, which differs once it was changed or replaced; raises UnreadableFileError."""
    if isinstance(path, VirtualFile):
        return path.state
    if is_remote(path):
        return remote.state_of(path)
    with naming(path):
        return _state_of(os.stat(path))


def changed(path: str) -> UnreadableFileError:
    """Return the error for a file that was changed since it was opened."""
    return UnreadableFileError(path=path, reason="it was changed while it was read")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn errors of opening or reading a file into an UnreadableFileError with its path."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: OSError | ValueError) -> UnreadableFileError:
    """Return the error for a file that could not be opened or read."""
    is_folder = isinstance(error, IsADirectoryError)
    reason = "it is a folder, not a file" if is_folder else getattr(error, "strerror", None) or str(error)
    return UnreadableFileError(path=path, reason=reason)


# Finding files.


def is_address(path: str) -> bool:
    """Whether a name is an http address rather than a path."""
    return path[:8].lower().startswith(("http://", "https://"))


def can_be_reread(path: str) -> bool:
    """Whether a source can be read a second time: a file can, a pipe or an http address cannot."""
    return isinstance(path, VirtualFile) or (path != STANDARD_INPUT and not is_address(path) and is_file(path))


def is_file(path: str) -> bool:
    """Whether a path is that of a regular file or of a file in parts."""
    part = part_of(path)
    return is_regular(path) or (part is not None and part.number is None)


def find_file(path: str) -> str | None:
    """Complete a path: return it if it exists, else its one compressed file, or the file in parts; None for nothing.

    Raises AmbiguousFileError for several files, PartsError for parts that are incomplete, and UnreadableFileError for
    a file in a folder that may not be entered, or behind a broken link.
    """
    if exists(path):
        return path
    candidates = tuple(path + ending for ending in COMPRESSED_ENDINGS if exists(path + ending))
    folder, name = os.path.split(path)
    wholes = wholes_among(_names_beside(path))
    pattern = name if name in wholes.values() else wholes.get(name)
    if pattern is not None:
        candidates = (*candidates, os.path.join(folder, pattern))
    if len(candidates) > 1:
        raise AmbiguousFileError(path=path, candidates=candidates)
    if pattern is not None:
        parts_of(candidates[0])
    return candidates[0] if candidates else None


def _names_beside(path: str) -> list[str]:
    try:
        return names_in(os.path.dirname(path) or os.curdir)
    except UnreadableFileError:
        return []


def exists(path: str) -> bool:
    """Whether anything exists at a path.

    Raises UnreadableFileError for a broken link, in a folder that may not be entered, and if a remote file system
    does not answer.
    """
    if is_remote(path):
        return remote.kind_at(path) is not None
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            reason = f"it is a link to {named(os.readlink(path))}, which is not there"
            raise UnreadableFileError(path=path, reason=reason) from None
        return False
    except ValueError:  # a name that no file can have
        return False
    except OSError as error:
        raise unreadable(path, error) from error
    return True


def is_remote(path: str) -> bool:
    """Whether a path has a scheme for fsspec: any but http(s).

    >>> is_remote("s3://runs/out.tsv"), is_remote("https://example.org/out.tsv"), is_remote("out.tsv")
    (True, False, False)
    """
    return "://" in path and re.match(_REMOTE, path) is not None


def join(folder: str, path: str) -> str:
    """Join a folder and a path; a path with a scheme, also http(s), stays as it is.

    >>> join("dev-0", "out.tsv"), join("dev-0", "s3://runs/out.tsv")
    ('dev-0/out.tsv', 's3://runs/out.tsv')
    """
    return path if is_address(path) or is_remote(path) else os.path.join(folder, path)


def absolute(path: str) -> str:
    """Return a path that does not depend on the current folder; one with a scheme, also http(s), stays as it is."""
    if isinstance(path, VirtualFile):
        return path if path.token else VirtualFile(absolute(str(path)), *vars(path).values())
    return path if is_address(path) or is_remote(path) else os.path.abspath(path)


def is_folder(path: str) -> bool:
    """Whether a folder exists; raises UnreadableFileError if a remote file system does not answer."""
    return remote.kind_at(path) == "directory" if is_remote(path) else os.path.isdir(path)


def is_regular(path: str) -> bool:
    """Whether a regular file exists; raises as :func:`is_folder`."""
    return remote.kind_at(path) == "file" if is_remote(path) else os.path.isfile(path)


def names_in(folder: str, kind: Kind | None = None) -> list[str]:
    """Return the names in a folder: all, or only files or folders; raises UnreadableFileError."""
    if is_remote(folder):
        return remote.names_in(folder, kind)
    with naming(folder):
        if kind is None:
            return os.listdir(folder)
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if (entry.is_dir() if kind == "directory" else entry.is_file())]


def matching_files(folder: str, pattern: str) -> list[str]:
    """Return the files that match a pattern relative to a folder, such as ``runs/out-*.tsv``.

    In a remote path only the last part may be a pattern.
    """
    from fnmatch import filter as matching
    from glob import escape, glob

    if not is_remote(join(folder, pattern)):
        return [path for path in glob(os.path.join(escape(folder), pattern)) if os.path.isfile(path)]
    place, last = os.path.split(join(folder, pattern))
    if not is_folder(place):
        return []
    return [os.path.join(place, name) for name in matching(names_in(place, "file"), last)]


# Files in parts.


class Part(NamedTuple):
    """The meaning of a part's name: the name of the whole file, the part's number, and the number of parts.

    ``pattern`` is the name with a star for the number; the ``number`` of the pattern itself is None.
    """

    whole: str
    number: int | None
    total: int
    pattern: str


def part_of(name: str) -> Part | None:
    """Parse the name, or the path, of a part; None for another name.

    >>> part_of("out-lr=0.1-03-of-64.tsv.xz")
    Part(whole='out-lr=0.1.tsv', number=3, total=64, pattern='out-lr=0.1-*-of-64.tsv.xz')
    """
    match = re.fullmatch(_PART, name) if "-of-" in name else None
    if match is None:
        return None
    return Part(
        whole=match[1] + match[5],
        number=None if match[2] == "*" else int(match[2]),
        total=int(match[4]),
        pattern=f"{match[1]}-*{match[3]}",
    )


def is_part_of(path: str, whole: str) -> bool:
    """Whether one path is that of a part of the file in parts at another path."""
    part, parts = (part_of(os.path.normpath(one)) for one in (path, whole))
    return part is not None and parts is not None and parts.number is None and part.whole == parts.whole


def name_of(name: str) -> str:
    """Return a file's name without the ending of a compression and without the number of its parts.

    >>> name_of("out-lr=0.1-*-of-64.tsv.xz"), name_of("out.tsv.gz")
    ('out-lr=0.1.tsv', 'out.tsv')
    """
    part = part_of(name)
    if part is not None and part.number is None:
        return part.whole
    return next((name.removesuffix(ending) for ending in COMPRESSED_ENDINGS if name.endswith(ending)), name)


def format_ending(path: str) -> str:
    """Return the ending of a file's format, other than TSV, without that of a compression; "" for any other file.

    >>> format_ending("out-lr=0.1.jsonl.xz"), format_ending("out.tsv")
    ('.jsonl', '')
    """
    name = name_of(path)
    return next((ending for ending in FORMAT_ENDINGS if name.endswith(ending)), "")


def wholes_among(names: Iterable[str]) -> dict[str, str]:
    """Map the name of each file in parts, of which there are some among the names, to its name with a star.

    If the parts differ in compression or count, the first part decides.
    """
    return {part.whole: part.pattern for part, _ in reversed(_numbered_parts(names))}


def _numbered_parts(names: Iterable[str]) -> list[tuple[Part, str]]:
    named_parts = ((part_of(name), name) for name in names)
    parts = [(part, name) for part, name in named_parts if part is not None and part.number is not None]
    return sorted(parts, key=lambda part: natural_order(part[1]))


def parts_of(path: str) -> tuple[str, ...]:
    """Return the paths of the parts of a file in order; the path itself if it is not in parts.

    Raises PartsError for parts that are missing or duplicated, or that differ in the number of parts.
    """
    folder, name = os.path.split(path)
    whole = part_of(name)
    if isinstance(path, VirtualFile) or whole is None or whole.number is not None or exists(path):
        return (path,)
    parts = [(part, other) for part, other in _numbered_parts(_names_beside(path)) if part.whole == whole.whole]
    counts = {part.total: other for part, other in parts}
    count = next(iter(counts), whole.total)
    by_number: dict[int, list[str]] = {}
    for part, other in parts:
        by_number.setdefault(part.number or 0, []).append(other)
    faults = [(number, same) for number, same in sorted(by_number.items()) if number >= count or len(same) > 1]
    missing = count - len(by_number)
    if len(counts) > 1:
        *others, last = sorted(counts)
        reason, names = f"some are numbered of {', '.join(map(str, others))}, others of {last}", list(counts.values())
    elif faults:
        number, names = faults[0]
        reason = f"there is more than one part {number} of {count}"
        if number >= count:
            reason = f"there is a part {number} of {count}, but parts are numbered from 0"
    elif missing:
        first = range(min(count, len(by_number) + MAX_NAMED_PARTS))  # a stranger's file name may give any count
        numbers = [str(number) for number in first if number not in by_number][:MAX_NAMED_PARTS]
        more = f" and {missing - MAX_NAMED_PARTS} more" if missing > MAX_NAMED_PARTS else ""
        which = f"part {numbers[0]}" if missing == 1 else f"parts {', '.join(numbers)}{more}"
        reason, names = f"{which} of {count} {'is' if missing == 1 else 'are'} missing", []
    else:
        return tuple(os.path.join(folder, by_number[number][0]) for number in sorted(by_number))
    raise PartsError(path=path, reason=reason, names=tuple(names))
