"""Sources of submissions: a folder or an archive, read member by member within a budget, and copied.

The values that a received submission consists of are here too, and the limits of how it describes itself.

zipfile and tarfile trust the headers of an archive. So a stranger's archive is opened in a child process alone, whose
limits on memory and time hold whatever a header claims; here the bytes of all members are counted as they come.
"""

from __future__ import annotations

import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import IO, NamedTuple, Self, TypeAlias, cast

from geval_py.board.intake.archives import ARCHIVES, TARS, bare_name
from geval_py.errors import CorruptFileError, FailedError, RejectedError, TooLargeError
from geval_py.reading.compression import open_unpacked
from geval_py.reading.files import format_ending
from geval_py.text import natural_order, shorten, visible

MAX_BYTES, MAX_FILES = 2_000_000_000, 200  # unpacked, and members of an archive, unless board.yaml has others
MAX_NAME_LENGTH = 500  # characters
MAX_DEPTH = 32  # folders in folders
FREE_BYTES = 100_000_000  # unpacked; MAX_RATIO holds only beyond them
MAX_RATIO = 1000  # unpacked bytes for each packed one; deflate reaches 1032 at most
CHUNK_BYTES = 1 << 20
HEADER_BYTES = 1 << 16  # of a member of an archive, with those for a long name and so on
LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # of the specification of Git LFS, "The pointer"
NESTED = (*ARCHIVES, ".7z", ".rar", ".tar.bz2", ".tbz2", ".txz", ".tzst", ".jar", ".whl", ".cab", ".iso")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with others zipfile unpacks any number of bytes at once
ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # APPNOTE.TXT 6.3.10, section 4.4.4: encryption, a strong one, a hidden list
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(ValueError, LookupError, RuntimeError, OverflowError),
)
DAMAGED_ARCHIVE = "; compress it again, or upload it again [E105]"  # the end of a reason: what geval check says

GONITO_FILE, MAX_GONITO_BYTES = "gonito.yaml", 1 << 16
MAX_TEXT = 5000  # characters of a description
MAX_NAME = 100  # characters of a tag, and of the name of a parameter
MAX_TAGS = 20
MAX_PARAMS = 100  # of a submission, those in the names of its outputs too: each is a column of a table

Read: TypeAlias = "Callable[[int], bytes]"  # the next bytes of a member, b"" at the end
Wanted: TypeAlias = "Callable[[str], bool]"


@dataclass(frozen=True, kw_only=True)
class ReceivedFile:
    """A file of a submission: ``name`` as it came, with / between folders; ``path`` of the board's copy.

    ``bytes`` and ``sha256`` are of the file as it came, compressed or not.
    """

    name: str
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ReceivedOutput:
    """An output: its test, the name of its file, its variant ("" or "model=a"), its parameters."""

    test: str
    file: str
    variant: str
    params: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Details:
    """How a submission describes itself: in gonito.yaml and, from git, in its last commit."""

    description: str = ""
    author: str = ""
    revision: str = ""
    tags: Sequence[str] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[tuple[str, str]] = ()  # title, URL (http or https only)
    affiliation: str = ""


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """A received submission: its files are copied, but not checked yet.

    ``name`` is the name of its folder, archive or branch, ``source`` where it came from; ``digest`` is over the names
    and digests of its files. ``notes`` say what of it was left out.
    """

    name: str
    source: str
    digest: str
    files: tuple[ReceivedFile, ...] = ()
    outputs: tuple[ReceivedOutput, ...] = ()
    details: Details = Details()
    notes: tuple[str, ...] = ()


def digest_of(files: Sequence[ReceivedFile]) -> str:
    """Compute the sha256 of the names and digests of all files, which are sorted by name."""
    return sha256("".join(f"{file.sha256}  {file.name}\n" for file in files).encode()).hexdigest()


@dataclass(kw_only=True)
class Budget:
    """The most bytes of all files, unpacked, and members of an archive, and the end in monotonic seconds.

    ``listed`` is the most entries of a folder or a git tree. ``packed`` is the size of the archive in bytes, 0 for
    other sources. Bytes and seconds are counted while a submission is read, whatever its headers claim.
    """

    bytes: int
    files: int
    listed: int = 10_000
    ends: float
    packed: int = 0
    taken: int = 0

    def take(self, count: int, name: str) -> None:
        """Count bytes of a member; raises RejectedError for too many, FailedError when the time is over."""
        self.taken += count
        if self.taken > self.bytes:
            raise RejectedError(f"its files have more than {self.bytes} bytes, unpacked: `{visible(name)}`")
        if self.packed and self.taken > FREE_BYTES + MAX_RATIO * self.packed:
            raise RejectedError(f"`{visible(name)}` unpacks to more than {MAX_RATIO} times its packed bytes")
        self.check_time()

    def check_time(self) -> None:
        """Raise FailedError once the time is over."""
        if time.monotonic() > self.ends:
            raise FailedError("it exceeded the time limit")


@dataclass(frozen=True, kw_only=True)
class SubmissionSource:
    """An opened folder, archive or git branch.

    ``members`` yields the names of the regular files that are wanted, each with a function that reads it; it may be
    called again. It raises RejectedError for a member that no submission may have. If ``strips``, all members may lie
    in one more folder. ``details`` are those of the last commit of a branch.
    """

    name: str
    address: str
    members: Callable[[Wanted], Iterator[tuple[str, Read]]]
    strips: bool = False
    details: Details = field(default_factory=Details)


def refused(name: str, why: str) -> RejectedError:
    """Return the error for a member, such as "`out.tsv` is a link"."""
    return RejectedError(f"`{visible(shorten(name, 200))}` {why}")


def refuse_pointer(name: str, data: bytes) -> None:
    """Raise RejectedError for a member that begins as a pointer of Git LFS."""
    if data.startswith(LFS_POINTER):
        raise refused(name, "is a pointer of Git LFS: submit the file itself")


def checked_name(name: str) -> str:
    """Return the name of a member without ``./``; raises RejectedError if it leads out of its folder."""
    parts = [part for part in name.split("/") if part != "."]
    if name.startswith("/") or ".." in parts or name[1:2] == ":":
        raise refused(name, "leads out of its folder")
    if len(name) > MAX_NAME_LENGTH:
        raise refused(name, f"has a name of more than {MAX_NAME_LENGTH} characters")
    if len(parts) > MAX_DEPTH + 1:
        raise refused(name, f"is nested in more than {MAX_DEPTH} folders")
    return "/".join(part for part in parts if part)


def copy_members(
    source: SubmissionSource, names: Mapping[str, str], place: str, budget: Budget
) -> list[ReceivedFile]:
    """Copy some members to 000, 001.jsonl … in a place; return them sorted by the names that they are stored under.

    ``names`` maps names of members to these. Raises RejectedError, FailedError.
    """
    files = []
    for number, (name, read) in enumerate(source.members(names.__contains__)):
        path = numbered_path(place, number, names[name])
        digest, size = sha256(), 0
        with open(path, "xb") as file:
            while data := read(CHUNK_BYTES):
                if not size:
                    refuse_pointer(name, data)
                budget.take(len(data), name)
                digest.update(data)
                file.write(data)
                size += len(data)
        files.append(ReceivedFile(name=names[name], path=path, sha256=digest.hexdigest(), bytes=size))
    return sorted(files, key=lambda file: file.name)


def numbered_path(place: str, number: int, name: str) -> str:
    """Return where the file with a name is copied to: its number, and the ending of its format."""
    return os.path.join(place, f"{number:03}{format_ending(name)}")


def open_source(path: str, budget: Budget) -> SubmissionSource:
    """Open a folder or an archive; raises RejectedError."""
    return folder_source(path, budget) if os.path.isdir(path) else archive_source(path, budget)


def folder_source(path: str, budget: Budget) -> SubmissionSource:
    """Open a folder: names that begin with a dot, as .git, are left out, and links are refused."""
    top = os.path.basename(os.path.normpath(path))

    def members(wanted: Wanted) -> Iterator[tuple[str, Read]]:
        left, folders = budget.listed, [""]
        for folder in folders:  # to which the folders in them are added
            try:
                with os.scandir(os.path.join(path, folder)) as listing:
                    entries = list(islice(listing, left + 1))  # hidden ones too, and no further than allowed
            except OSError as error:
                raise refused(folder or top, f"cannot be read: {error.strerror}") from error
            budget.check_time()
            left -= len(entries)
            if left < 0:
                raise RejectedError(f"its folder has more than {budget.listed} files and folders")
            shown = {entry.name: entry for entry in entries if not entry.name.startswith(".")}
            present = {checked_name(f"{folder}{bare}"): shown[bare] for bare in sorted(shown, key=natural_order)}
            files = {name: entry.path for name, entry in present.items() if not entry.is_dir(follow_symlinks=False)}
            folders += (f"{name}/" for name in present if name not in files)
            for name in filter(wanted, files):
                with _open_regular(files[name], name) as file:
                    yield name, file.read

    return SubmissionSource(name=top, address=path, members=members)


def _open_regular(path: str, name: str) -> IO[bytes]:
    """Open a regular file; raises RejectedError for anything else, and never waits, as for a pipe."""
    if os.path.islink(path):
        raise refused(name, "is a link; links are not followed")
    try:
        file = open(path, "rb", buffering=0, opener=open_no_link)
    except OSError as error:
        raise refused(name, f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise refused(name, "is not a regular file")
    return file


def open_no_link(path: str, flags: int) -> int:
    """Open a file that may have become a link, or a pipe, which would be waited for."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


class Member(NamedTuple):
    """A member of an archive: ``problem`` is why it is refused, "" for a file or folder that may be there."""

    name: str
    is_folder: bool
    problem: str
    open: Callable[[], IO[bytes] | None]


def archive_source(path: str, budget: Budget) -> SubmissionSource:
    """Open an archive, .zip, or .tar in all compressions; raises RejectedError if it is too large."""
    is_tar = path.lower().endswith(TARS)
    max_bytes = budget.bytes + (budget.files + 1) * (HEADER_BYTES + tarfile.BLOCKSIZE)  # packed or not, with headers
    budget.packed = os.path.getsize(path)
    if budget.packed > max_bytes:
        raise RejectedError(f"the archive has more than {max_bytes} bytes")

    @contextmanager
    def rejecting() -> Iterator[None]:
        """Raise the errors of a damaged or hostile archive as RejectedError."""
        try:
            yield
        except (MemoryError, RecursionError):  # tarfile reads a header whole, and each before a member by a call more
            raise RejectedError("a header in the archive is too large") from None
        except TooLargeError as error:
            raise RejectedError(f"the archive unpacks to more than {error.max_bytes} bytes") from None
        except (CorruptFileError, *DAMAGED) as error:
            reason = error.reason if isinstance(error, CorruptFileError) else str(error)
            if isinstance(error, ValueError | LookupError | OverflowError):  # of Python, about a header
                reason = "a header in it is malformed"
            kind = "tar" if is_tar else "zip"
            raise RejectedError(
                f"it is not a {kind} archive, or is damaged: {visible(reason)}{DAMAGED_ARCHIVE}"
            ) from error

    def members(wanted: Wanted) -> Iterator[tuple[str, Read]]:
        seen: set[str] = set()
        listed = _tar_members(path, max_bytes) if is_tar else _zip_members(path)
        with closing(listed):
            for count in range(budget.files + 1):
                with rejecting():
                    member = next(listed, None)
                if not member:
                    return
                if count == budget.files:
                    raise RejectedError(f"the archive has more than {budget.files} members")
                budget.check_time()
                name = checked_name(member.name)
                if member.is_folder:
                    continue
                if member.problem:
                    raise refused(name, member.problem)
                if name in seen:
                    raise refused(name, "is in the archive twice")
                seen.add(name)
                if name.lower().endswith(NESTED):
                    raise refused(name, "is an archive inside the archive; pack its files directly")
                if wanted(name):
                    with rejecting():
                        data = member.open()
                    if data:
                        with closing(data):
                            yield name, rejecting()(data.read)

    return SubmissionSource(name=bare_name(path), address=path, members=members, strips=True)


def _zip_members(path: str) -> Generator[Member, None, None]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind == stat.S_IFLNK:
                problem = "is a link; archives with links are not allowed"
            elif kind not in (0, stat.S_IFREG):
                problem = "is not a regular file but a device, a pipe or the like"
            elif "\0" in member.orig_filename:
                problem = "has a name with a NUL"
            elif member.flag_bits & ENCRYPTED:
                problem = "is encrypted"
            elif member.compress_type not in METHODS:
                problem = "is compressed by another method than deflate"
            else:
                problem = ""
            is_folder = member.is_dir() or member.filename.endswith("\\")
            name = member.filename.replace("\\", "/")
            yield Member(name, is_folder, problem, partial(archive.open, member))


class _StrictHeader(tarfile.TarInfo):
    """A header of a tar archive. tarfile takes a damaged one for the end, but the end is a block of zeros."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Read the next header; raises ReadError if it is damaged or missing."""
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if not archive.offset or type(error).__name__ == "EOFHeaderError":
                raise
            raise tarfile.ReadError("it ends before its end mark") from error


def _tar_members(path: str, max_bytes: int) -> Generator[Member, None, None]:
    """Yield the members of a tar archive, which is read forwards alone, one after the other."""
    with (
        open_unpacked(path, max_bytes) as stream,
        tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_StrictHeader, errorlevel=2) as archive,
    ):
        for member in archive:
            if member.issym() or member.islnk():
                problem = "is a link; archives with links are not allowed"
            elif member.issparse():
                problem = "is a sparse file; pack it as an ordinary file"
            elif not member.isreg() and not member.isdir():
                problem = "is not a regular file but a device, a pipe or the like"
            else:
                problem = ""
            if member.size < 0:
                raise tarfile.ReadError("its headers point backwards")
            yield Member(member.name, member.isdir(), problem, partial(archive.extractfile, member))
