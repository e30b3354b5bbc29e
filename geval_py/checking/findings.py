"""Blocks of lines as the kernel flags them, and the findings of the rules in one file: counts, and first places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

from geval_py.checking.rules import RULES, Place, Problem, Rule
from geval_py.reading.lines import decode_lines
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends


class Findings:
    """The number of lines that break each rule of a table, and the first ``max_places`` places (all, for 0).

    ``rules`` are the codes of the selected rules.
    """

    def __init__(self, path: str, rules: Collection[str], max_places: int, table: Sequence[Rule] = RULES) -> None:
        self.path = path
        self._table = table
        self._rules = frozenset(rules)
        self._max_places = max_places
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[Place]] = {}
        self._places_before: dict[str, int] = {}  # those of earlier lines, which other checkers found
        self._summaries: dict[str, str] = {}

    def selects(self, code: str) -> bool:
        """Whether a rule is selected."""
        return code in self._rules

    def most_places(self, code: str) -> int:
        """Return how many places of a rule are kept at most."""
        if not self.selects(code):
            return 0
        return self._max_places or 1 << 62

    def wants_places(self, code: str) -> int:
        """Return how many more places of a rule are wanted."""
        return max(0, self.most_places(code) - self._known_places(code))

    def _known_places(self, code: str) -> int:
        return self._places_before.get(code, 0) + len(self._places.get(code, ()))

    def count(self, code: str, lines: int) -> None:
        """Count lines that break a rule, selected or not: it may explain another problem."""
        if lines:
            self._counts[code] = self._counts.get(code, 0) + lines

    def add_place(self, code: str, place: Callable[[], Place]) -> None:
        """Keep a place, if one more is wanted."""
        if self.wants_places(code):
            self._places.setdefault(code, []).append(place())

    def add(self, code: str, place: Callable[[], Place]) -> None:
        """Count a line, and keep its place if one more is wanted."""
        self.count(code, 1)
        self.add_place(code, place)

    def add_file(self, code: str, message: str, *, line: int = 0, column: int = 0, token: str = "") -> None:
        """Add a problem of the file as a whole."""
        self._summaries[code] = message
        self.add(code, lambda: Place(line=line, column=column, token=token, message=message))

    def replace(self, code: str, lines: int, message: str, places: Iterable[Callable[[], Place]]) -> None:
        """Replace the findings of single lines by one statement on the whole file."""
        self.drop(code)
        self.count(code, lines)
        self.summarize(code, message)
        for place in places:
            self.add_place(code, place)

    def drop(self, code: str) -> None:
        """Drop the findings of a rule, which all lines together show to be none."""
        self._counts.pop(code, None)
        self._places.pop(code, None)

    def summarize(self, code: str, message: str) -> None:
        """Replace the summary of a rule by a statement on this file."""
        self._summaries[code] = message

    def for_later_lines(self) -> Findings:
        """Return empty findings for later lines, which keep only the places that are still wanted."""
        found = Findings(self.path, self._rules, self._max_places, self._table)
        found._places_before = {code: self._known_places(code) for code in {*self._places_before, *self._places}}
        return found

    def extend(self, later: Findings) -> None:
        """Add the findings of the next lines."""
        for code, lines in later._counts.items():
            self.count(code, lines)
        for code, places in later._places.items():
            self._places.setdefault(code, []).extend(places[: self.wants_places(code)])

    def clear(self) -> None:
        """Drop all findings, because the whole file cannot be read."""
        self._counts.clear()
        self._places.clear()
        self._summaries.clear()

    def counted(self, code: str) -> int:
        """Return how many lines break a rule."""
        return self._counts.get(code, 0)

    def problems(self, lines: int) -> list[Problem]:
        """Return a problem for each broken rule, in the order of the table; ``lines`` is the number of lines."""
        return [
            Problem(
                rule=rule,
                path=self.path,
                count=self._counts[rule.code],
                share=min(1.0, self._counts[rule.code] / lines) if lines else 1.0,
                summary=self._summaries.get(rule.code, rule.summary),
                places=tuple(self._places.get(rule.code, ())),
            )
            for rule in self._table
            if rule.code in self._counts and self.selects(rule.code)
        ]


class FlaggedBlock:
    """A block of lines with the kernel's ``losses`` and ``flags``, which hold a value for each line.

    Lines are split and decoded only when one is needed; ``index`` is its place in the block, from 0.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.losses, self.flags = backends.score_lines(block.outputs, block.expected, DEFAULT_BITS, block.first_line)

    @cached_property
    def combinations(self) -> Counter[int]:
        """The number of lines with each combination of flags."""
        return Counter(self.flags)

    def has(self, flag: int) -> bool:
        """Whether a line has a flag, or one of several."""
        return any(flags & flag for flags in self.combinations)

    def number(self, index: int) -> int:
        """Return the number of a line in the file, from 1."""
        return self.block.first_line + index

    def raw(self, index: int) -> bytes:
        """Return a line as it is stored, without its line end."""
        return self._raw[index]

    def text(self, index: int) -> str:
        """Return a line as it is read: decoded, without carriage returns."""
        return str(self.raw(index), "utf-8", "replace").replace("\r", "")

    def words(self) -> list[str]:
        """Return the expected words of the lines that have one."""
        return decode_lines(self.block.expected)[: self.block.known]

    @cached_property
    def _raw(self) -> list[bytes]:
        return bytes(self.block.outputs).split(b"\n")
