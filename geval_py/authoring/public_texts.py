"""The texts that a challenge's public folder shows: its files, what is packed in them, and all objects of git.

Archives (.zip and .tar) and compressed files are unpacked within bounds, one inside another up to DEEPEST. Whatever
exceeds the bounds is named, so that nobody takes it for compared.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from geval_py.errors import DataError, TooLargeError
from geval_py.reading import compression
from geval_py.reading.sources import Source

DEEPEST = 4  # archives in archives
MOST_BYTES = 1 << 26  # of one unpacked file
MOST_BYTES_IN_ALL = 1 << 28
MOST_MEMBERS = 10_000
GIT_SECONDS = 60
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_BASE64 = re.compile(rb"[A-Za-z0-9+/_\s-]{64,}={0,2}\s*")
_HEX = re.compile(rb"(?:[0-9A-Fa-f]{2}\s*){32,}")
_BAD_ARCHIVES = (
    zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
    OverflowError, DataError,
)  # fmt: skip


@dataclass(slots=True)
class Budget:
    """How much may still be read; ``unread`` are the names of what was not."""

    left: int = MOST_BYTES_IN_ALL
    members: int = MOST_MEMBERS
    unread: list[str] = field(default_factory=list)

    def read(self, stream: compression.Readable, name: str) -> bytes | None:
        """Read a stream to its end; None if that is more than the bounds, or if it is damaged."""
        most = min(MOST_BYTES, self.left)
        pieces: list[bytes] = []
        size = 0
        while size <= most and (piece := stream.read(1 << 20)):
            pieces.append(piece)
            size += len(piece)
        self.left -= min(size, most)
        if size > most:
            self.unread.append(name)
            return None
        return b"".join(pieces)


def public_texts(directory: str, known: Collection[str], budget: Budget) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of all files below a folder, outside of .git, but for the ``known`` files."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        for path in (os.path.join(folder, name) for name in sorted(names)):
            if path in known or not os.path.isfile(path):
                continue
            try:
                source = Source(path, MOST_BYTES)
            except (DataError, OSError):
                continue  # an unreadable file shows no answers
            try:
                data = budget.read(source.stream, path)
            except TooLargeError:
                data = None
                budget.unread.append(path)
            except (DataError, OSError, EOFError):
                data = None
            finally:
                source.close()
            if data is not None:
                yield from texts_in(path, data, budget)


def texts_in(path: str, data: bytes, budget: Budget, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in some bytes: their own, that of each member of an archive, and what is encoded in them."""
    if depth > DEEPEST:
        budget.unread.append(path)
        return
    packed = compression.compression_of(data[: compression.MAGIC_BYTES])
    if packed is not None:
        try:
            stream = compression.Decompressed(io.BytesIO(data), packed, path, MOST_BYTES)
            unpacked = budget.read(stream, path)
        except TooLargeError:
            budget.unread.append(path)
            return
        except _BAD_ARCHIVES:
            return
        if unpacked is not None:
            yield from texts_in(path, unpacked, budget, depth + 1)
        return
    if data[:2] == b"PK" or data[257:262] == b"ustar":
        for name, member in _members(path, data, budget):
            yield from texts_in(f"{path}/{name}", member, budget, depth + 1)
        return
    yield path, text_of(data)
    for decoded in _decoded(data):
        yield from texts_in(path, decoded, budget, depth + 1)


def _members(path: str, data: bytes, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a .zip or an unpacked .tar file; damage ends it."""
    try:
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for entry in archive.infolist():
                    if not entry.is_dir() and _counted(path, budget):
                        with archive.open(entry) as stream:
                            if (content := budget.read(stream, f"{path}/{entry.filename}")) is not None:
                                yield entry.filename, content
        else:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
                for member in tar:
                    opened = tar.extractfile(member) if member.isfile() and _counted(path, budget) else None
                    if opened and (content := budget.read(opened, f"{path}/{member.name}")) is not None:
                        yield member.name, content
    except _BAD_ARCHIVES:
        budget.unread.append(path)


def _counted(path: str, budget: Budget) -> bool:
    """Whether a member more of an archive may be read; the archive is named when none may."""
    budget.members -= 1
    if budget.members >= 0 and budget.left > 0:
        return True
    if path not in budget.unread:
        budget.unread.append(path)
    return False


def _decoded(data: bytes) -> Iterator[bytes]:
    """Yield what a file of nothing but base64 or hexadecimal digits encodes."""
    if _HEX.fullmatch(data):
        yield bytes.fromhex("".join(data.decode().split()))
    elif _BASE64.fullmatch(data):
        plain = b"".join(data.split()).translate(bytes.maketrans(b"-_", b"+/"))
        try:
            yield base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
        except binascii.Error:
            return


def text_of(data: bytes) -> str:
    """Decode bytes: UTF-16 by its mark or its NULs, else UTF-8, in which wrong bytes become U+FFFD."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if not encoding and len(data) > 3 and data[1::2].count(0) > len(data) // 4:
        encoding = "utf-16-le"
    return data.decode(encoding or "utf-8-sig", "replace")


# Git


def git_texts(directory: str, known: Iterable[str], budget: Budget) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of all blobs, and of all messages of commits and tags, of a folder's repository.

    These are all objects that git stores, also if no branch leads to them. The ``known`` files are left out.
    """
    listed = _git(directory, "cat-file", "--batch-all-objects", "--batch-check")
    if not listed:
        return
    sizes: dict[str, int] = {}
    skipped = _known_ids(directory, known)
    for line in listed.decode().splitlines():
        object_id, kind, bytes_in_it = line.split(" ")
        if kind != "tree" and object_id not in skipped:
            sizes[object_id] = int(bytes_in_it)
    names = _names_of(directory)
    wanted = []
    for object_id, size in sizes.items():
        name = f"{names.get(object_id, object_id)} (git)"
        if size > min(MOST_BYTES, budget.left):
            budget.unread.append(name)
            continue
        budget.left -= size
        wanted.append((object_id, name))
    batch = _git(directory, "cat-file", "--batch", data="".join(f"{one}\n" for one, _ in wanted).encode())
    place = 0
    for _, name in wanted:
        end = batch.find(b"\n", place)
        if end < 0:
            return
        size = int(batch[place:end].rsplit(b" ", 1)[-1])
        yield from texts_in(name, batch[end + 1 : end + 1 + size], budget)
        place = end + size + 2


def _names_of(directory: str) -> dict[str, str]:
    """Return a name for each blob that a commit holds: a path from the top of the repository."""
    listed = _git(directory, "rev-list", "--all", "--reflog", "--objects")
    pairs = (line.partition(" ") for line in listed.decode("utf-8", "surrogateescape").splitlines())
    return {object_id: name for object_id, _, name in pairs if name}


def _known_ids(directory: str, known: Iterable[str]) -> set[str]:
    paths = "".join(f"{os.path.abspath(path)}\n" for path in known)
    return set(_git(directory, "hash-object", "--stdin-paths", "--no-filters", data=paths.encode()).decode().split())


def _git(directory: str, *words: str, data: bytes = b"") -> bytes:
    """Return what git prints; nothing if it fails, as where there is no repository."""
    try:
        run = subprocess.run(
            [*GIT, "-C", directory, *words], input=data, capture_output=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return run.stdout if run.returncode == 0 else b""


def names_in_history(directory: str, patterns: Iterable[str]) -> list[str]:
    """Return the paths of files in any commit, also of the reflog; none if there is no git repository."""
    words = ("log", "--all", "--reflog", "--format=", "--name-only", "--relative", "-z", "--", *patterns)
    names = _git(directory, *words).decode("utf-8", "surrogateescape").split("\0")
    return sorted({name.strip("\n") for name in names if name.strip("\n")})
