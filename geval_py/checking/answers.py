"""The rules that need the answers: words without mass, and words that differ from the expected one in case only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from geval_py.checking.findings import Findings
from geval_py.checking.places import case_mismatch, has_capital_word, impossible_word, lists_in_other_case_only
from geval_py.checking.rules import Place
from geval_py.checking.seen import Seen
from geval_py.scoring.kernel.flags import CAPITAL, MALFORMED, NOT_ASCII, VECTOR


class AnswerRules:
    """Compares the lines of one output with the expected words."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._output_has_capitals = False
        self._expected_capitals = 0
        self._capital_places: list[Callable[[], Place]] = []
        self._most_capital_places = findings.most_places("W302")

    def see(self, seen: Seen) -> None:
        """Compare a block."""
        words = seen.words()
        if inf in seen.losses:
            self._look_for_impossible_words(seen, words)
        self._look_for_other_case(seen, words)
        if not self._output_has_capitals and seen.has(CAPITAL | NOT_ASCII):
            self._output_has_capitals = any(
                flags & (CAPITAL | NOT_ASCII) and has_capital_word(seen.text(index))
                for index, flags in enumerate(seen.flags)
            )

    def _look_for_impossible_words(self, seen: Seen, words: list[str]) -> None:
        for index, word in enumerate(words):
            if seen.losses[index] == inf:
                self._findings.add("W301", partial(impossible_word, seen.text(index), seen.number(index), word))

    def _look_for_other_case(self, seen: Seen, words: list[str]) -> None:
        for index, word in enumerate(words):
            if word == word.lower() or seen.flags[index] & (MALFORMED | VECTOR):
                continue
            self._expected_capitals += 1
            place = partial(case_mismatch, seen.text(index), seen.number(index), word)
            if len(self._capital_places) < self._most_capital_places:
                self._capital_places.append(place)
            if lists_in_other_case_only(seen.text(index), word):
                self._findings.add("W302", place)

    def later(self, findings: Findings) -> AnswerRules:
        """Give the same for later lines."""
        later = AnswerRules(findings)
        later._output_has_capitals = self._output_has_capitals
        later._most_capital_places = self._most_capital_places - len(self._capital_places)
        return later

    def extend(self, later: AnswerRules) -> None:
        """Add what was seen in the next lines."""
        self._output_has_capitals |= later._output_has_capitals
        self._expected_capitals += later._expected_capitals
        wanted = self._most_capital_places - len(self._capital_places)
        self._capital_places += later._capital_places[:wanted]

    def conclude(self) -> None:
        """Say what can be told when all lines are seen: that the output never has capitals."""
        if self._expected_capitals and not self._output_has_capitals:
            self._findings.replace(
                "W302",
                self._expected_capitals,
                f"{self._expected_capitals} expected words have capitals, the output never has any",
                self._capital_places,
            )
