"""The blocks of an output that is checked: what the kernel says of their lines, and the lines themselves."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.scoring.kernel import score_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some lines of the output, with as many expected words; words beyond ``known`` are stand-ins.

    ``outputs`` is a part of ``buffer``, which is used again.
    """

    first_line: int
    outputs: memoryview
    words: bytes
    known: int
    buffer: bytearray


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A block, scored: its losses and flags."""

    block: Block
    losses: array[float]
    flags: array[int]


class Lines:
    """The lines of a block, split and decoded only if one is asked for."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._raw: list[bytes] | None = None

    def number(self, index: int) -> int:
        """Give a line's number in the file, from 1; ``index`` counts the lines of the block from 0."""
        return self._block.first_line + index

    def raw(self, index: int) -> bytes:
        """Give a line as it is stored, without its line end."""
        if self._raw is None:
            self._raw = bytes(self._block.outputs).split(b"\n")
        return self._raw[index]

    def text(self, index: int) -> str:
        """Give a line as it is read."""
        return str(self.raw(index), "utf-8", "replace").replace("\r", "")


def score(block: Block) -> Seen:
    """Let the kernel look at a block."""
    losses, flags = score_lines(block.outputs, block.words, DEFAULT_BITS, block.first_line)
    return Seen(block=block, losses=losses, flags=flags)
