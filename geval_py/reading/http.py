"""The body of an HTTP answer, checked for its length and limited in size."""

from __future__ import annotations

import io

from geval_py.errors import UnreadableFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

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
