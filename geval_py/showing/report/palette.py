"""The colours of charts: in a page by the names of its style sheet, so that dark works; in a notebook as they are."""

from __future__ import annotations

from dataclasses import dataclass

from geval_py.explaining.anatomy.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """A colour for each part that a chart may have; ``legends`` tells whether charts draw their own legends."""

    ground: str
    raised: str
    ink: str
    soft: str
    line: str
    track: str
    accent: str
    good: str
    listed: str
    bad: str
    none: str
    on_fill: str
    legends: bool

    def of_outcome(self, outcome: Outcome) -> str:
        """Give the colour of what became of a line."""
        return (self.good, self.listed, self.bad, self.none)[outcome]


PAGE = Palette(
    ground="transparent",
    raised="var(--raised)",
    ink="var(--ink)",
    soft="var(--soft)",
    line="var(--line)",
    track="var(--track)",
    accent="var(--accent)",
    good="var(--good)",
    listed="var(--listed)",
    bad="var(--bad)",
    none="var(--none)",
    on_fill="var(--on-fill)",
    legends=False,
)
NOTEBOOK = Palette(
    ground="#ffffff",
    raised="#ffffff",
    ink="#17191c",
    soft="#555a61",
    line="#e2e0d8",
    track="#cfccc3",
    accent="#1c5fb0",
    good="#10765c",
    listed="#3a78bd",
    bad="#c2560c",
    none="#6b7078",
    on_fill="#ffffff",
    legends=True,
)
