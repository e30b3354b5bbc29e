"""Remote files: http and https by the standard library, s3://, gs://, abfs://, sftp://, hdfs://, … by fsspec.

fsspec's drivers have their own time-outs and retries; after the last one an UnreadableFileError is raised.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, TypeAlias

from geval_py.errors import GevalError, UnreadableFileError, UsageError
from geval_py.text import without_credentials
from geval_py.version import installs

Kind: TypeAlias = Literal["file", "directory"]
_STATE = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "md5Hash", "created")


class RemoteFile(io.RawIOBase):
    """A file that fsspec reads, as a seekable raw stream; raises UsageError and UnreadableFileError."""

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
    """Return a file's path, size and the properties that change with it; raises as :class:`RemoteFile`."""
    with _guarded(path) as (system, place):
        system.invalidate_cache()
        info = system.info(place)
    return "", path, int(info["size"] or 0), tuple(str(info.get(name)) for name in _STATE)


def kind_at(path: str) -> Kind | None:
    """Return whether a file or a folder is at a path; None for nothing."""
    with _guarded(path) as (system, place):
        try:
            kind: Kind = system.info(place)["type"]
        except (FileNotFoundError, NotADirectoryError):
            return None
    return kind


def names_in(folder: str, kind: Kind | None = None) -> list[str]:
    """Return the names in a folder: all, or only files or folders; raises as :class:`RemoteFile`."""
    with _guarded(folder) as (system, place):
        entries = system.ls(place, detail=True)
    names = ((entry["name"].rstrip("/").rpartition("/")[2], entry["type"]) for entry in entries)
    return [name for name, entry_kind in names if name and kind in (None, entry_kind)]


def read_bytes(path: str, start: int, stop: int) -> bytes:
    """Read a range of a file's bytes; several threads may do so at once; raises as :class:`RemoteFile`."""
    with _guarded(path) as (system, place):
        data: bytes = system.cat_file(place, start=start, end=stop)
    return data


@contextmanager
def _guarded(path: str) -> Iterator[tuple[Any, str]]:
    """Yield the driver's file system and the path in it; turn the driver's errors into UnreadableFileError."""
    scheme = path.partition("://")[0]
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
        implementations = import_module("fsspec.registry").known_implementations
    except ModuleNotFoundError as error:
        message = f"{scheme}:// is read by fsspec, of the extra cluster: {installs('cluster')}"
        raise UsageError(message=message) from error
    if scheme not in implementations:
        raise UsageError(message=f"no file system is known as {scheme}://")
    try:
        try:
            system, place = url_to_fs(path)
        except ImportError as error:
            package = _PACKAGES.get(scheme) or (error.name or "").partition(".")[0] or str(error)
            raise UsageError(message=f"{scheme}:// needs a driver: pip install {package}") from error
        yield system, place
    except GevalError:
        raise
    except FileNotFoundError as error:
        raise UnreadableFileError(path=path, reason="No such file or directory") from error
    except Exception as error:  # drivers raise errors of botocore, paramiko, …, with no common base
        reason = without_credentials(" ".join(str(error).split())) or type(error).__name__
        raise UnreadableFileError(path=path, reason=reason) from error


# The packages with fsspec's drivers, by scheme (fsspec's documentation, "Other known implementations").
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "hdfs": "pyarrow",
    "hf": "huggingface_hub",
}
HTTP_TIMEOUT_SECONDS = 30
HTTP_MAX_BYTES = 4 << 30


class HttpBody(io.RawIOBase):
    """The body of an HTTP answer, checked for its length and limited in size.

    It needs only the standard library. fsspec's driver for http needs aiohttp, which takes 0.3 s to import, asks the
    server twice (HEAD and GET) and does not limit the size.
    """

    def __init__(self, url: str) -> None:
        self._url, self._received = url, 0
        with self._guarded():
            self._answer = _http_opener().open(url, timeout=HTTP_TIMEOUT_SECONDS)
        length = self._answer.headers.get("Content-Length", "")
        self._length = int(length) if length.isdecimal() and len(length) < 19 else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._guarded():
            data: bytes = self._answer.read(len(buffer))
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

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        from http.client import HTTPException
        from urllib.error import HTTPError

        try:
            yield
        except HTTPError as error:
            error.close()
            raise self._failed(f"the server answered {error.code} {error.reason}") from error
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._failed(str(reason) or type(error).__name__) from error

    def _failed(self, reason: str) -> UnreadableFileError:
        return UnreadableFileError(path=self._url, reason=reason)


def _http_opener() -> Any:
    """Return an opener for http and https only: urllib's default one follows redirections to ftp."""
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
