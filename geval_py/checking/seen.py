"""What the kernel says of a block of an output, and the lines themselves."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.reading.lines import decode_lines
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import score_lines


class Seen:
    """A block that the kernel looked at: ``losses`` and ``flags`` hold a value a line.

    Lines are split and decoded only if one is asked for, by its index in the block, from 0.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.losses, self.flags = score_lines(block.outputs, block.expected, DEFAULT_BITS, block.first_line)

    @cached_property
    def combinations(self) -> Counter[int]:
        """How many lines have just these flags."""
        return Counter(self.flags)

    def has(self, flag: int) -> bool:
        """Tell whether a line has a flag, or one of several."""
        return any(flags & flag for flags in self.combinations)

    def number(self, index: int) -> int:
        """Give a line's number in the file, from 1."""
        return self.block.first_line + index

    def raw(self, index: int) -> bytes:
        """Give a line as it is stored, without its line end."""
        return self._raw[index]

    def text(self, index: int) -> str:
        """Give a line as it is read."""
        return str(self.raw(index), "utf-8", "replace").replace("\r", "")

    def words(self) -> list[str]:
        """Give the expected words, without stand-ins."""
        return decode_lines(self.block.expected)[: self.block.known]

    @cached_property
    def _raw(self) -> list[bytes]:
        return bytes(self.block.outputs).split(b"\n")
