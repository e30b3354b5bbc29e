"""Sources: paths, standard input, addresses and files in parts, found and opened.

A source is a path, ``-`` (standard input), ``http(s)://``, an address that fsspec reads
(:mod:`geval_py.reading.remote`), or lines in memory (:class:`Memory`). A compressed source is decompressed
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
from contextlib import contextmanager
from dataclasses import dataclass

from geval_py.errors import AmbiguousFileError, PartsError, UnreadableFileError
from geval_py.reading.compression import COMPRESSED_ENDINGS, MAGIC_BYTES, Decompressed, compression_of
from geval_py.text import named, natural_order
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from geval_py.reading.compression import Readable
    from geval_py.reading.remote import Kind

    # Device, inode, size in bytes, and modification time in ns; for a remote file, what its driver reports.
    FileState: TypeAlias = tuple[object, object, int, object]

STANDARD_INPUT = "-"
FORMAT_ENDINGS = (
    ".jsonl",
    ".parquet",
    ".csv",
    ".words.nbest",
    ".nbest",
    ".predictions.json",
)  # of formats.FORMATS_IN
ANY_FORMAT = "|".join((".tsv", *FORMAT_ENDINGS)).replace(".", r"\.")
# An output's name, without the ending of a compression and as a whole, and what tells it from others: model=a,k=3.
OUTPUT_NAME = rf"(?s)(out(?:-(.*))?(?:{ANY_FORMAT}))(?:\.(?:xz|gz|bz2|zst))?"
MOST_NAMED = 5  # missing parts in a message
_ANY_COMPRESSION = "|".join(COMPRESSED_ENDINGS).replace(".", r"\.")
_REMOTE = r"(?i)(?!https?:)[a-z][a-z0-9+.-]+://"
_PART = rf"(?s)(.+)-([0-9]+|\*)(-of-([0-9]+)((?:\.[^-/]*?)?)(?:{_ANY_COMPRESSION})?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRows:
    """Rows in buffers, as Arrow lays them out.

    Row i has the entries from ``offsets[i]`` to before ``offsets[i + 1]``. The word of entry k is
    ``text[starts[k] : starts[k + 1]]``, in UTF-8, and its number is ``values[k]``. The numbers in ``offsets`` and
    ``starts`` are int32 or int64, those in ``values`` float32 or float64. ``probabilities`` tells whether these are
    probabilities, or logarithms. ``lines(n)`` encodes the first n rows as lines; it raises UnreadableFileError for a
    row that is no line.
    """

    offsets: memoryview[int]
    starts: memoryview[int]
    text: bytes | memoryview
    values: memoryview[float]
    probabilities: bool
    lines: Callable[[int], bytes]


class Memory(str):
    """Lines in memory in the place of a path; messages show the text as the path.

    ``read`` returns the encoded lines, each ended by LF, as often as it is called.
    """

    read: Callable[[], Iterable[bytes]]
    _state: FileState

    def __new__(cls, name: str, read: Callable[[], Iterable[bytes]]) -> Memory:
        from uuid import uuid4

        self = super().__new__(cls, name)
        self.read = read
        self._state = (uuid4().hex, None, 0, None)
        return self

    def pieces(self, max_bytes: int | None) -> Iterable[bytes]:
        """Read the lines; raises TooLargeError if they are unpacked from a file, to more than ``max_bytes``."""
        del max_bytes
        return self.read()

    def rows(self) -> Iterator[ListedRows | bytes] | None:
        """Read the lines as rows in buffers, or as text where they are in another form; None if there are no rows."""
        return None

    def absolute(self) -> Memory:
        """Return the same lines, in the place of a path that does not depend on the current folder."""
        return self

    @property
    def state(self) -> FileState:
        """A value that differs once the lines do."""
        return self._state

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, (str(self), self.read), {"_state": self._state}


class Source:
    """One opened source: its path and its decompressed bytes as a raw stream.

    ``size`` is the number of stored bytes and ``position`` how many of them have been read; both are None for a pipe
    or an http address. ``state`` differs once a file was changed or replaced; None if it can be read only once.
    """

    stream: io.RawIOBase
    state: FileState | None

    def __init__(self, path: str, max_bytes: int | None = None) -> None:
        self.path = path
        if isinstance(path, Memory):
            self.stream = self._file = _Pieces(path.pieces(max_bytes))
            self.is_here, self.state, self.size, self.compression = False, path.state, None, None
            return
        self._file, regular = _open_raw(path)
        self.is_here = regular and not is_remote(path)
        self.state = self._state_now() if regular else None
        self.size = self.state[2] if self.state else None
        try:
            head = b""
            with naming(path):
                while len(head) < MAGIC_BYTES and (more := self._file.read(MAGIC_BYTES - len(head))):
                    head += more
        except BaseException:
            self.close()
            raise
        if regular:
            self._file.seek(0)
        raw = self._file if regular else _Chained(head, self._file)
        compression = compression_of(head)
        self.compression = compression.name if compression else None
        self.stream = Decompressed(raw, compression, path, max_bytes) if compression else raw

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the file was changed since it was opened."""
        if self.state is not None and self._state_now() != self.state:
            raise changed(self.path)

    def _state_now(self) -> FileState:
        return _state_of(os.fstat(self._file.fileno())) if self.is_here else state_at(self.path)

    @property
    def descriptor(self) -> int:
        """The operating system's number of the opened file."""
        number: int = self._file.fileno()
        return number

    @property
    def position(self) -> int | None:
        return None if self.size is None else self._file.tell()

    def close(self) -> None:
        if self.path != STANDARD_INPUT:
            self._file.close()


def _open_raw(path: str) -> tuple[Any, bool]:
    """Open the stored bytes; the second value tells whether they can be sought."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise UnreadableFileError(path=path, reason="it is closed")
        return sys.stdin.buffer, False
    if is_address(path) or is_remote(path):
        from geval_py.reading import remote

        return (remote.HttpBody(path), False) if is_address(path) else (remote.RemoteFile(path), True)
    with naming(path):
        file = open(path, "rb", buffering=0)
    return file, stat.S_ISREG(os.fstat(file.fileno()).st_mode)


class _Pieces(io.RawIOBase):
    """A stream of pieces of bytes."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


class _Chained(io.RawIOBase):
    """A stream whose first bytes were already read, to find out its compression."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # a writable buffer; typeshed has no public name for it
        size = len(buffer)
        data = self._head[:size] or self._rest.read(size) or b""
        self._head = self._head[size:]
        buffer[: len(data)] = data
        return len(data)


def _state_of(found: os.stat_result) -> FileState:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def state_at(path: str) -> FileState:
    """Return a file's state, which differs once it was changed or replaced; raises UnreadableFileError."""
    if isinstance(path, Memory):
        return path.state
    if is_remote(path):
        from geval_py.reading import remote

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
    folder = isinstance(error, IsADirectoryError)
    reason = "it is a folder, not a file" if folder else getattr(error, "strerror", None) or str(error)
    return UnreadableFileError(path=path, reason=reason)


# Finding files.


def is_address(path: str) -> bool:
    """Whether a name is an http address rather than a path."""
    return path[:8].lower().startswith(("http://", "https://"))


def can_be_reread(path: str) -> bool:
    """Whether a source can be read a second time: a file can, a pipe or an http address cannot."""
    return isinstance(path, Memory) or (path != STANDARD_INPUT and not is_address(path) and is_file(path))


def is_file(path: str) -> bool:
    """Whether a path is that of a regular file or of a file in parts."""
    return is_regular(path) or _is_whole(path)


def find_file(path: str) -> str | None:
    """Complete a path: return it if it exists, else its one compressed file, or the file in parts; None for nothing.

    Raises AmbiguousFileError for several files, PartsError for parts that are incomplete, and UnreadableFileError for
    a file in a folder that may not be entered, or behind a broken link.
    """
    if _exists(path):
        return path
    candidates = tuple(path + ending for ending in COMPRESSED_ENDINGS if _exists(path + ending))
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


def _exists(path: str) -> bool:
    if is_remote(path):
        return exists(path)
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
        raise UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
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
    if isinstance(path, Memory):
        return path.absolute()
    return path if is_address(path) or is_remote(path) else os.path.abspath(path)


def is_folder(path: str) -> bool:
    """Whether a folder exists; raises UnreadableFileError if a remote file system does not answer."""
    return _remote_kind(path) == "directory" if is_remote(path) else os.path.isdir(path)


def is_regular(path: str) -> bool:
    """Whether a regular file exists; raises as :func:`is_folder`."""
    return _remote_kind(path) == "file" if is_remote(path) else os.path.isfile(path)


def exists(path: str) -> bool:
    """Whether anything exists at a path; raises as :func:`is_folder`."""
    return _remote_kind(path) is not None if is_remote(path) else os.path.exists(path)


def _remote_kind(path: str) -> Kind | None:
    from geval_py.reading import remote

    return remote.kind_at(path)


def names_in(folder: str, kind: Kind | None = None) -> list[str]:
    """Return the names in a folder: all, or only files or folders; raises UnreadableFileError."""
    if is_remote(folder):
        from geval_py.reading import remote

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
    if not is_remote(join(folder, pattern)):
        from glob import escape, glob

        return [path for path in glob(os.path.join(escape(folder), pattern)) if os.path.isfile(path)]
    from fnmatch import filter as matching

    place, last = os.path.split(join(folder, pattern))
    if not is_folder(place):
        return []
    return [os.path.join(place, name) for name in matching(names_in(place, "file"), last)]


# Files in parts.


class Part(Value):
    """The meaning of a part's name: the name of the whole file, the part's number, and the number of parts.

    ``pattern`` is the name with a star for the number; the ``number`` of the pattern itself is None.
    """

    whole: str
    number: int | None
    count: int
    pattern: str


def part_of(name: str) -> Part | None:
    """Parse the name of a part; None for another name.

    >>> part_of("out-lr=0.1-03-of-64.tsv.xz")
    Part(whole='out-lr=0.1.tsv', number=3, count=64, pattern='out-lr=0.1-*-of-64.tsv.xz')
    """
    match = re.fullmatch(_PART, name) if "-of-" in name else None
    if match is None:
        return None
    return Part(
        whole=match[1] + match[5],
        number=None if match[2] == "*" else int(match[2]),
        count=int(match[4]),
        pattern=f"{match[1]}-*{match[3]}",
    )


def _is_whole(path: str) -> bool:
    part = part_of(os.path.basename(path))
    return part is not None and part.number is None


def is_part_of(path: str, whole: str) -> bool:
    """Whether one path is that of a part of the file in parts at another path."""
    (folder, name), (of_folder, of_name) = os.path.split(path), os.path.split(whole)
    part, of = part_of(name), part_of(of_name)
    if part is None or of is None or of.number is not None:
        return False
    return folder == of_folder and part.whole == of.whole


def name_of(name: str) -> str:
    """Return a file's name without the ending of a compression and without the number of its parts.

    >>> name_of("out-lr=0.1-*-of-64.tsv.xz"), name_of("out.tsv.gz")
    ('out-lr=0.1.tsv', 'out.tsv')
    """
    part = part_of(name)
    if part is not None and part.number is None:
        return part.whole
    return next((name.removesuffix(ending) for ending in COMPRESSED_ENDINGS if name.endswith(ending)), name)


def wholes_among(names: Iterable[str]) -> dict[str, str]:
    """Map the name of each file in parts, of which there are some among the names, to its name with a star.

    If the parts differ in compression or count, the first part decides.
    """
    return {part.whole: part.pattern for part, _ in reversed(_numbered_parts(names))}


def _numbered_parts(names: Iterable[str]) -> list[tuple[Part, str]]:
    found = ((part_of(name), name) for name in names)
    parts = [(part, name) for part, name in found if part is not None and part.number is not None]
    return sorted(parts, key=lambda part: natural_order(part[1]))


def parts_of(path: str) -> tuple[str, ...]:
    """Return the paths of the parts of a file in order; the path itself if it is not in parts.

    Raises PartsError for parts that are missing or duplicated, or that differ in the number of parts.
    """
    folder, name = os.path.split(path)
    wanted = part_of(name)
    if isinstance(path, Memory) or wanted is None or wanted.number is not None or _exists(path):
        return (path,)
    found = [(part, other) for part, other in _numbered_parts(_names_beside(path)) if part.whole == wanted.whole]
    counts = {part.count: other for part, other in found}
    if len(counts) > 1:
        *others, last = sorted(counts)
        reason = f"there are parts of {', '.join(map(str, others))} and of {last}"
        raise PartsError(path=path, reason=reason, names=tuple(counts.values()))
    count = next(iter(counts), wanted.count)
    by_number: dict[int, list[str]] = {}
    for part, other in found:
        by_number.setdefault(part.number or 0, []).append(other)
    for number, same in sorted(by_number.items()):
        if number >= count:
            reason = f"of {count} parts there is no part {number}: they are numbered from 0"
            raise PartsError(path=path, reason=reason, names=tuple(same))
        if len(same) > 1:
            raise PartsError(path=path, reason=f"part {number} of {count} is there twice", names=tuple(same))
    if len(by_number) < count:
        raise PartsError(path=path, reason=_missing_parts(by_number, count))
    return tuple(os.path.join(folder, by_number[number][0]) for number in sorted(by_number))


def _missing_parts(by_number: dict[int, list[str]], count: int) -> str:
    first = range(min(count, len(by_number) + MOST_NAMED))  # a stranger's file name may give any count
    numbers = [number for number in first if number not in by_number][:MOST_NAMED]
    missing = count - len(by_number)
    if missing == 1:
        return f"part {numbers[0]} of {count} is missing"
    more = f" and {missing - MOST_NAMED} more" if missing > MOST_NAMED else ""
    return f"parts {', '.join(map(str, numbers))}{more} of {count} are missing"
