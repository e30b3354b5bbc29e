"""All rules of one output at work on its lines, block by block.

They work through the lines in one go or, elsewhere, on some blocks by themselves: what is found there, with as many
places as are wanted still, is added up in the order of the lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from geval_py.checking.answers import AnswerRules
from geval_py.checking.file import FileRules
from geval_py.checking.findings import Findings
from geval_py.checking.lines import check_lines
from geval_py.checking.others import OtherRules, SeenTexts
from geval_py.checking.seen import Seen
from geval_py.checking.targets import Target
from geval_py.scoring.blocks import Block


class Look:
    """Looks at the lines of one output, as one of word gaps or by the rules of its metric, and at it as a whole."""

    def __init__(
        self,
        findings: Findings,
        file: FileRules,
        *,
        answers: AnswerRules | None = None,
        others: OtherRules | None = None,
    ) -> None:
        self.findings, self.file = findings, file
        self._answers, self._others = answers, others

    @classmethod
    def at(cls, target: Target, findings: Findings) -> Look:
        """Make what looks at a target."""
        file = FileRules(target, findings)
        if target.metric is not None:
            return cls(findings, file, others=OtherRules.of(target, findings))
        with_answers = target.expected is not None and target.words_are_plain
        return cls(findings, file, answers=AnswerRules(findings) if with_answers else None)

    @property
    def is_of_words(self) -> bool:
        """Whether the kernel flags the lines."""
        return self._others is None

    def seen(self, block: Block) -> Seen:
        """Read a block, as the rules want it; blocks may be read in any order."""
        return Seen(block) if self.is_of_words else SeenTexts(block)

    def see(self, seen: Seen) -> None:
        """Apply the rules of lines to the next block."""
        self.file.see(seen)
        if self._others is not None:
            self._others.see(seen)
            return
        check_lines(seen, self.findings)
        if self._answers is not None:
            self._answers.see(seen)

    def later(self) -> Look:
        """Give the same for lines that come later, which finds anew, but only the places that are wanted still."""
        findings = self.findings.later()
        return Look(
            findings,
            self.file.later(findings),
            answers=None if self._answers is None else self._answers.later(findings),
            others=None if self._others is None else self._others.later(findings),
        )

    def extend(self, later: Look) -> None:
        """Add what was found in the next lines."""
        self.findings.extend(later.findings)
        self.file.extend(later.file)
        if self._answers is not None and later._answers is not None:
            self._answers.extend(later._answers)

    def conclude(self, items: int | None) -> None:
        """Say what can be told when all lines are seen; ``items`` is how many there should be, None if unknown."""
        self.file.conclude(items)
        if self._answers is not None:
            self._answers.conclude()


def look_at(blocks: Iterable[Block], look: Look) -> Look:
    """Look at some blocks in order; gives what was found in them. The look that is given stays as it is."""
    found = look.later()
    for block in blocks:
        found.see(found.seen(block))
    return found
