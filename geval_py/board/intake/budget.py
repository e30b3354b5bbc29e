"""What one submission may take; counted while it is read, whatever it says of itself."""

from __future__ import annotations

import time
from dataclasses import dataclass

from geval_py.board.values import FailedError, RejectedError
from geval_py.text import visible

FREE_BYTES = 100_000_000  # unpacked, below which nobody minds how well they were packed
MOST_RATIO = 1000  # unpacked bytes for each packed one beyond them; deflate comes to 1032 at most


@dataclass(slots=True, kw_only=True)
class Budget:
    """Bytes of all files together, unpacked; members of an archive; the moment of the monotonic clock when it ends.

    ``packed`` are the bytes of the archive, 0 for what is none.
    """

    bytes: int
    files: int
    ends: float
    packed: int = 0
    taken: int = 0

    def take(self, count: int, name: str) -> None:
        """Count bytes of a member; raises RejectedError where they are too many, FailedError for time."""
        self.taken += count
        if self.taken > self.bytes:
            raise RejectedError(reason=f"its files have more than {self.bytes} bytes, unpacked: `{visible(name)}`")
        if self.packed and self.taken > FREE_BYTES + MOST_RATIO * self.packed:
            raise RejectedError(reason=f"`{visible(name)}` unpacks to more than {MOST_RATIO} times its packed bytes")
        self.check_time()

    def check_time(self) -> None:
        """Raise FailedError once the time is over."""
        if time.monotonic() > self.ends:
            raise FailedError(reason="it took more time than is allowed")

    @property
    def seconds_left(self) -> float:
        """How much time is left."""
        return self.ends - time.monotonic()
