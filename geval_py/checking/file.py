"""What is said of an output as a whole: how it begins, how many lines it has and why, and of mixed scales."""

from __future__ import annotations

from geval_py.checking.causes import line_count_causes
from geval_py.checking.findings import Findings
from geval_py.checking.seen import Seen
from geval_py.checking.targets import Target
from geval_py.scoring.kernel.flags import ALL_ZERO, LOGARITHMS, LOOKS_LIKE_PROBABILITIES, MALFORMED, REST_ALONE
from geval_py.text import visible

UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LINES_FOR_SHIFT = 2000  # how many of the first lines are compared with the expected words, one line up and down


class NotTextError(Exception):
    """No line of the file can be read, and it is not text."""


class FileRules:
    """Looks at one output as a whole; ``lines`` counts those that were seen."""

    def __init__(self, target: Target, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self.lines = 0
        self._logarithm_lines = self._probability_lines = 0
        self._first_texts: list[str] = []
        self._first_words: list[str] = []

    def begin(self, seen: Seen) -> None:
        """Look at how the output begins, in its first block as one reader reads it; raises NotTextError."""
        data = bytes(seen.block.outputs)
        is_binary = b"\0" in data or data.startswith(UTF_16_MARKS)
        if is_binary and all(flags & MALFORMED for flags in seen.flags):
            raise NotTextError
        self._first_texts = [seen.text(index) for index in range(min(LINES_FOR_SHIFT, seen.block.lines))]
        self._first_words = seen.words()[:LINES_FOR_SHIFT]
        name = self._target.header
        field = self._first_texts[0].split("\t")[0]
        if name is not None and not self._target.header_is_skipped and field.casefold() == name.casefold():
            message = f"the first line is the header's name, `{visible(name)}`, and is read as the first item"
            self._findings.add_file("W215", message, line=1, column=1, token=field)

    def see(self, seen: Seen) -> None:
        """Look at the next block."""
        self.lines += seen.block.lines
        self._count_scales(seen)

    def _count_scales(self, seen: Seen) -> None:
        for flags, lines in seen.combinations.items():
            if flags & (MALFORMED | ALL_ZERO | LOOKS_LIKE_PROBABILITIES | REST_ALONE):
                continue
            if flags & LOGARITHMS:
                self._logarithm_lines += lines
            else:
                self._probability_lines += lines

    def later(self, findings: Findings) -> FileRules:
        """Give the same for later lines."""
        return FileRules(self._target, findings)

    def extend(self, later: FileRules) -> None:
        """Add what was seen in the next lines."""
        self.lines += later.lines
        self._logarithm_lines += later._logarithm_lines
        self._probability_lines += later._probability_lines

    def conclude(self, items: int | None) -> None:
        """Say what can be told when all lines are seen; ``items`` is how many there should be, None if unknown."""
        findings = self._findings
        if self.lines == 0:
            findings.add_file("E102", "the output has no line")
        elif items is not None and self.lines != items:
            few = self.lines < items
            message = f"the output has {self.lines} lines, there are {items} items{self._causes(items)}"
            findings.add_file("E103" if few else "E104", message, line=self.lines if few else items + 1, column=1)
        if self._logarithm_lines and self._probability_lines:
            message = f"{self._probability_lines} lines hold probabilities, {self._logarithm_lines} logarithms"
            findings.add_file("W213", message)

    def _causes(self, items: int) -> str:
        causes = line_count_causes(
            self._findings, self.lines, items, self._first_texts, self._first_words, self._target.input
        )
        return "".join(f"; {cause}" for cause in causes)
