"""Which part of a challenge a document goes to: by a hash, so that a corpus may grow and none moves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate

from geval_py.authoring.folders import DEV_SET, HIDDEN_SET
from geval_py.errors import UsageError
from geval_py.reading.splits import TRAINING_SET
from geval_py.text import nearest, visible

DEFAULT_SHARES = (80, 10, 10)
DEFAULT_SALT = "set"
FEW_GROUPS = 10  # of a part: below, its score tells more of these documents than of the model


def draw(purpose: str, name: str, sides: int) -> int:
    """Throw a die whose sides are numbered from 0: by the SHA-256 of a purpose and a name, the same each time.

    >>> draw("set", "gaz-001", 100)
    17
    """
    return int.from_bytes(sha256(f"{purpose} {name}".encode("utf-8", "surrogatepass")).digest()[:8]) % sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a challenge, train first and the hidden one last, their shares, and what salts the hash."""

    shares: tuple[int, ...] = DEFAULT_SHARES
    salt: str = DEFAULT_SALT
    names: tuple[str, ...] = (TRAINING_SET, DEV_SET, HIDDEN_SET)

    def part_of(self, group: str) -> str:
        """Give the part that a group belongs to; no other group matters.

        >>> Parts().part_of("gaz-001"), Parts(salt="another").part_of("gaz-001")
        ('train', 'train')
        """
        drawn = draw(self.salt, group, sum(self.shares))
        bounds = zip(self.names, accumulate(self.shares), strict=True)
        return next(name for name, bound in bounds if drawn < bound)


def read_shares(text: str) -> tuple[int, ...]:
    """Read the shares of train, dev-0 and test-A, as ``80,10,10``; raises ValueError.

    >>> read_shares("60,25,15")
    (60, 25, 15)
    """
    if not re.fullmatch("[1-9][0-9]{0,8}(,[1-9][0-9]{0,8}){2}", text):
        raise ValueError(f"{text!r} is not three whole numbers for train, dev-0 and test-A, as 80,10,10")
    return tuple(map(int, text.split(",")))


def check_group(column: str, columns: Sequence[str]) -> None:
    """Raise UsageError for a column to group by that is none of those that there are."""
    if column not in columns:
        close = nearest(column, columns)
        advice = f"did you mean {visible(close)}? " if close else ""
        there = visible(", ".join(columns))
        raise UsageError(message=f"no column {visible(column)} to group by\n  {advice}there are {there}")


def check_parts(parts: Parts, groups: Sequence[str], filled: Sequence[str], of: str) -> None:
    """Raise UsageError for a part without an item; ``groups`` are all there are, ``of`` says what they are."""
    empty = [name for name in parts.names if name not in filled]
    if empty:
        count = len(set(groups))
        one = f"there is only one {of}" if count == 1 else f"there are only {count} of them"
        raise UsageError(
            message=f"no gap for {' and '.join(empty)}: parts are made of whole groups ({of}), and {one}\n"
            f"  give more, smaller ones, another --split or another --salt than {visible(parts.salt)}"
        )
