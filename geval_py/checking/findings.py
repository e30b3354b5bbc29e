"""What the rules found in one file, as it is found: counts, and the first places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cached_property

from geval_py.checking.rules import RULES, Place, Problem
from geval_py.reading.lines import decode_lines
from geval_py.reading.wordprobs import DEFAULT_BITS
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel.backends import score_lines


class Findings:
    """Counts the lines of each rule and keeps the first ``max_places`` places (all, for 0)."""

    def __init__(self, path: str, rules: Collection[str], max_places: int) -> None:
        self.path = path
        self._rules = frozenset(rules)
        self._max_places = max_places
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[Place]] = {}
        self._places_before: dict[str, int] = {}  # how many earlier lines have, which others looked at
        self._summaries: dict[str, str] = {}

    def asks_for(self, code: str) -> bool:
        """Tell whether a rule is asked for."""
        return code in self._rules

    def most_places(self, code: str) -> int:
        """How many places of a rule are kept at most."""
        if not self.asks_for(code):
            return 0
        return self._max_places or 1 << 62

    def wants_places(self, code: str) -> int:
        """How many more places of a rule are wanted."""
        return max(0, self.most_places(code) - self._known_places(code))

    def _known_places(self, code: str) -> int:
        return self._places_before.get(code, 0) + len(self._places.get(code, ()))

    def count(self, code: str, lines: int) -> None:
        """Count lines of a rule, asked for or not: one may be the cause of another."""
        if lines:
            self._counts[code] = self._counts.get(code, 0) + lines

    def show(self, code: str, place: Callable[[], Place]) -> None:
        """Keep a place, if one more is wanted."""
        if self.wants_places(code):
            self._places.setdefault(code, []).append(place())

    def add(self, code: str, place: Callable[[], Place]) -> None:
        """Count a line, and keep its place if one more is wanted."""
        self.count(code, 1)
        self.show(code, place)

    def add_file(self, code: str, message: str, *, line: int = 0, column: int = 0, token: str = "") -> None:
        """Note a problem of the file as a whole."""
        self._summaries[code] = message
        self.add(code, lambda: Place(line=line, column=column, token=token, message=message))

    def replace(self, code: str, lines: int, message: str, places: Iterable[Callable[[], Place]]) -> None:
        """Say something of the whole file instead of what was found line by line."""
        self._counts.pop(code, None)
        self._places.pop(code, None)
        self.count(code, lines)
        self._summaries[code] = message
        for place in places:
            self.show(code, place)

    def later(self) -> Findings:
        """Give findings for later lines: without any, and of the places only those that are wanted still."""
        found = Findings(self.path, self._rules, self._max_places)
        found._places_before = {code: self._known_places(code) for code in {*self._places_before, *self._places}}
        return found

    def extend(self, later: Findings) -> None:
        """Add what was found in the next lines."""
        for code, lines in later._counts.items():
            self.count(code, lines)
        for code, places in later._places.items():
            self._places.setdefault(code, []).extend(places[: self.wants_places(code)])

    def forget(self) -> None:
        """Drop all that was found: something is wrong with the whole file."""
        self._counts.clear()
        self._places.clear()
        self._summaries.clear()

    def counted(self, code: str) -> int:
        """How many lines of a rule were counted."""
        return self._counts.get(code, 0)

    def problems(self, lines: int) -> list[Problem]:
        """Give a problem a rule, in the order of the table."""
        return [
            Problem(
                rule=rule,
                path=self.path,
                count=self._counts[rule.code],
                share=min(1.0, self._counts[rule.code] / lines) if lines else 1.0,
                summary=self._summaries.get(rule.code, rule.summary),
                places=tuple(self._places.get(rule.code, ())),
            )
            for rule in RULES
            if rule.code in self._counts and self.asks_for(rule.code)
        ]


# What the kernel says of a block of an output, and the lines themselves.


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
