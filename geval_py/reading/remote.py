"""Addresses: http and https by the standard library, s3://, gs://, abfs://, sftp://, hdfs://, … by fsspec.

fsspec's drivers have their own time-outs and retries; after the last one an UnreadableFileError is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from geval_py.errors import UnreadableFileError, UsageError
from geval_py.text import without_credentials
from geval_py.version import installs

HTTP_TIMEOUT_SECONDS = 30
PIECE_BYTES = 1 << 16


def read_pieces(address: str) -> Iterator[bytes]:
    """Yield the bytes at an address; raises UsageError and UnreadableFileError."""
    scheme = address.partition("://")[0]
    if scheme.lower() in ("http", "https"):
        yield from _read_http(address)
        return
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
        implementations = import_module("fsspec.registry").known_implementations
    except ModuleNotFoundError as error:
        message = f"{scheme}:// is read by fsspec, of the extra cluster: {installs('cluster')}"
        raise UsageError(message) from error
    if scheme not in implementations:
        raise UsageError(f"no file system is known as {scheme}://")
    try:
        system, place = url_to_fs(address)
        with system.open(place, "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except ImportError as error:
        raise UsageError(f"{scheme}:// needs a driver: {error}") from error
    except FileNotFoundError as error:
        raise UnreadableFileError(path=address, reason="No such file or directory") from error
    except Exception as error:  # drivers raise errors of botocore, paramiko, …, with no common base
        reason = without_credentials(" ".join(str(error).split())) or type(error).__name__
        raise UnreadableFileError(path=address, reason=reason) from error


def _read_http(url: str) -> Iterator[bytes]:
    """Yield the body of an HTTP answer, checked for its length; raises UnreadableFileError."""
    from http.client import HTTPException
    from urllib import error, request

    try:
        with request.urlopen(url, timeout=HTTP_TIMEOUT_SECONDS) as answer:
            length, received = answer.headers.get("Content-Length", ""), 0
            while piece := answer.read(PIECE_BYTES):
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
