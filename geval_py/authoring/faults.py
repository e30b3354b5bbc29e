"""What can be wrong with a challenge's files, in GEval's words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from geval_py.errors import DataError
from geval_py.reading.lines import LineReader
from geval_py.text import named


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong: GEval's sentence, in which a file may be named already; else ``path`` names it.

    ``detail`` is what GEval does not say: where, and what was found.
    """

    message: str
    path: str = ""
    detail: str = ""

    @classmethod
    def of_file(cls, what: str, path: str, detail: str = "") -> Fault:
        """Make a fault that names a file behind a colon."""
        return cls(f"{what}: {named(path)}", detail=detail)

    @classmethod
    def of_files(cls, what: str, paths: Iterable[str]) -> Fault:
        """Make a fault that names several files behind a colon."""
        return cls(f"{what}: {', '.join(map(named, paths))}")

    def __str__(self) -> str:
        place = f"in {named(self.path)}" if self.path else ""
        return "\n  ".join(filter(None, (self.message, place, self.detail)))


def fault_of(error: DataError) -> Fault:
    """Make a fault of an error in the data, whose sentence names its file."""
    return Fault(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """How many lines a file has."""

    path: str
    count: int


def text_faults(path: str, *, columns: bool = False) -> tuple[Sequence[Fault], Lines | None]:
    """Look for what no file of a challenge may have: no byte, carriage returns, spaces at line ends, no UTF-8.

    With ``columns``, all lines must have as many. Gives how many lines there are too, None where that is not known.
    """
    try:
        if os.path.getsize(path) == 0:
            return [Fault.of_file("Empty file", path)], Lines(path=path, count=0)
        found = _Found()
        with LineReader(path) as reader:
            while block := reader.block():
                found.add(block, columns=columns)
    except DataError as error:
        return [fault_of(error)], None
    except OSError as error:
        return [Fault.of_file(f"Cannot read: {error.strerror}", path)], None
    return found.faults(path), Lines(path=path, count=found.lines)


class _Found:
    """The lines on which something was found: how many, and the first."""

    def __init__(self) -> None:
        self.lines = 0
        self._first: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._widths: dict[int, int] = {}  # the first line of each number of columns

    def add(self, block: bytes, *, columns: bool) -> None:
        """Look at a block of whole lines."""
        suspects = b"\r" in block or b" \n" in block or not _is_utf8(block)
        if suspects or columns:
            for number, line in enumerate(block.split(b"\n")[:-1], self.lines + 1):
                if suspects:
                    self._look_at(line, number)
                if columns:
                    self._widths.setdefault(line.count(b"\t") + 1, number)
        self.lines += block.count(b"\n")

    def _look_at(self, line: bytes, number: int) -> None:
        for what, is_so in (
            ("Found CR (Carriage Return, 0x0D) character", b"\r" in line),
            ("Found space at the end of line", line.endswith(b" ")),
            ("Cannot decode as UTF-8", not _is_utf8(line)),
        ):
            if is_so:
                self._first.setdefault(what, number)
                self._counts[what] += 1

    def faults(self, path: str) -> list[Fault]:
        """Say what was found, with the first line of each."""
        faults = [Fault.of_file(what, path, _lines(self._first[what], count)) for what, count in self._counts.items()]
        if len(self._widths) > 1:
            (width, first), (other, second), *_ = self._widths.items()
            detail = f"line {first} has {width}, line {second} has {other}"
            faults.append(Fault.of_file("The file contains varying number of columns", path, detail))
        return faults


def _lines(first: int, count: int) -> str:
    return f"line {first}" if count == 1 else f"line {first}, and {count - 1} more"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
