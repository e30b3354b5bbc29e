"""Files elsewhere, read by fsspec: s3://, gs://, abfs://, sftp://, hdfs://, memory:// and whatever else has a driver.

Time-outs and retries are the driver's; what fails at last is an UnreadableFileError.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from importlib import import_module

from geval_py.errors import GevalError, UnreadableFileError, UsageError
from geval_py.text import without_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal, TypeAlias, TypeVar

    Kind: TypeAlias = Literal["file", "directory"]

    T = TypeVar("T")


_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_STATE = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "md5Hash", "created")


def is_remote(path: str) -> bool:
    """Tell whether a path has a scheme that is not http(s).

    >>> is_remote("s3://runs/out.tsv"), is_remote("https://example.org/out.tsv"), is_remote("out.tsv")
    (True, False, False)
    """
    return _SCHEME.match(path) is not None


class RemoteFile(io.RawIOBase):
    """A file elsewhere, as a raw stream that can be sought; raises UsageError and UnreadableFileError."""

    def __init__(self, path: str) -> None:
        self._path = path
        with _guarded(path) as (system, place):
            self._file = system.open(place, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _guarded(self._path):
            data: bytes = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place: int = self._file.seek(offset, whence)
        return place

    def tell(self) -> int:
        place: int = self._file.tell()
        return place

    def close(self) -> None:
        self._file.close()
        super().close()


def state_of(path: str) -> tuple[object, object, int, object]:
    """Give the file's path, its size, and what is another once it was changed; raises as :class:`RemoteFile`."""
    with _guarded(path) as (system, place):
        system.invalidate_cache()
        found = system.info(place)
    return "", path, int(found["size"] or 0), tuple(str(found.get(name)) for name in _STATE)


def kind_at(path: str) -> Kind | None:
    """Tell whether a file or a folder is at a path; None for nothing."""
    with _guarded(path) as (system, place):
        try:
            kind: Kind = system.info(place)["type"]
        except (FileNotFoundError, NotADirectoryError):
            return None
    return kind


def names_in(folder: str, kind: Kind | None = None) -> list[str]:
    """Give the names in a folder, of files or folders alone, or of all; raises as :class:`RemoteFile`."""
    with _guarded(folder) as (system, place):
        found = system.ls(place, detail=True)
    named = ((entry["name"].rstrip("/").rpartition("/")[2], entry["type"]) for entry in found)
    return [name for name, its_kind in named if name and kind in (None, its_kind)]


def read_bytes(path: str, start: int, stop: int) -> bytes:
    """Read some bytes of a file, whoever else reads it; raises as :class:`RemoteFile`."""
    with _guarded(path) as (system, place):
        data: bytes = system.cat_file(place, start=start, end=stop)
    return data


@contextmanager
def _guarded(path: str) -> Iterator[tuple[Any, str]]:
    """Give the driver's file system, and the place there; makes our errors of whatever the driver raises."""
    try:
        yield _file_system(path)
    except GevalError:
        raise
    except FileNotFoundError as error:
        raise UnreadableFileError(path=path, reason="No such file or directory") from error
    except Exception as error:  # a driver raises what its libraries do: botocore's, paramiko's, … of no common kind
        reason = without_credentials(" ".join(str(error).split())) or type(error).__name__
        raise UnreadableFileError(path=path, reason=reason) from error


def _file_system(path: str) -> tuple[Any, str]:
    scheme = path.partition("://")[0]
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
        known = import_module("fsspec.registry").known_implementations
    except ModuleNotFoundError as error:
        raise UsageError(message=f"{scheme}:// is read by fsspec: pip install ./geval-py[cluster]") from error
    if scheme not in known:
        raise UsageError(message=f"no file system is known as {scheme}://")
    try:
        found: tuple[Any, str] = url_to_fs(path)
    except ImportError as error:
        package = _PACKAGES.get(scheme) or (error.name or "").partition(".")[0] or str(error)
        raise UsageError(message=f"{scheme}:// needs a driver: pip install {package}") from error
    return found


# The packages with fsspec's drivers, by scheme (fsspec's documentation, "Other known implementations").
_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "hdfs": "pyarrow",
    "hf": "huggingface_hub",
}

# The body of an HTTP answer, checked for its length and limited in size.
HTTP_TIMEOUT_SECONDS = 30
HTTP_MAX_BYTES = 4 << 30


class HttpBody(io.RawIOBase):
    """The body of an HTTP answer, checked for its length and limited in size."""

    def __init__(self, url: str) -> None:
        self._url, self._received = url, 0
        self._answer = self._guarded(lambda: _http_opener().open(url, timeout=HTTP_TIMEOUT_SECONDS))
        length = self._answer.headers.get("Content-Length", "")
        self._length = int(length) if length.isdecimal() and len(length) < 19 else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._guarded(lambda: self._answer.read(len(buffer)))
        self._received += len(data)
        if self._received > HTTP_MAX_BYTES:
            raise self._failed(f"the answer is larger than {HTTP_MAX_BYTES >> 30} GiB")
        if not data and self._length is not None and self._received < self._length:
            raise self._failed(f"the answer ended after {self._received} of {self._length} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._answer.close()
        super().close()

    def _guarded(self, ask: Callable[[], T]) -> T:
        """Ask the server; make one kind of error of all that can go wrong."""
        from http.client import HTTPException
        from urllib.error import HTTPError

        try:
            return ask()
        except HTTPError as error:
            error.close()
            raise self._failed(f"the server answered {error.code} {error.reason}") from error
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._failed(str(reason) or type(error).__name__) from error

    def _failed(self, reason: str) -> UnreadableFileError:
        return UnreadableFileError(path=self._url, reason=reason)


def _http_opener() -> Any:
    """Make an opener of http and https only, also after a redirection."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPRedirectHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener
