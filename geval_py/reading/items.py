"""The items of a test set."""

from __future__ import annotations

from typing import NamedTuple


class ScoredItem(NamedTuple):
    """A line's texts: its input (the columns joined by TABs), the expected line, the output."""

    input: str
    expected: str
    output: str
