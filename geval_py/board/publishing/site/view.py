"""All that a site shows, and nothing else: what is not in these values cannot leak into a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from geval_py.board.keeping.likeness import Likeness
from geval_py.board.settings import AFTER, Settings, Test
from geval_py.board.storing.schema import SCORED
from geval_py.board.values import Entry, Standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A disclosed score and the ends of its 95 % interval, rounded; None where nothing may be shown."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """An output of a submission; ``figures`` by metric, ``evaluation_id`` that of the disclosed evaluation."""

    id: int
    test: str
    variant: str
    params: Mapping[str, str]
    figures: Mapping[str, Figures]
    evaluation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """A file of a submission, as it came."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView:
    """What anyone may know of a submission; where it came from is the organiser's business alone."""

    code: str
    submitter: str
    arrived: datetime
    state: str = SCORED
    reason: str = ""
    baseline: bool = False
    description: str = ""
    author: str = ""
    revision: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    problems: tuple[Mapping[str, Any], ...] = ()
    remark: str = ""
    withdrawn: datetime | None = None
    scorer: str = ""
    files: tuple[FileView, ...] = ()
    outputs: tuple[OutputView, ...] = ()

    @property
    def is_ranked(self) -> bool:
        """Whether it may stand in a leaderboard."""
        return self.state == SCORED and self.withdrawn is None

    @property
    def status(self) -> str:
        """Say in a word what became of it."""
        return "withdrawn" if self.withdrawn else self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """A line of a test set whose answers are public: its number, from 1, its score, rounded, and its text."""

    line: int
    score: float
    expected: str
    before: str
    after: str


def no_lines(_: Test, __: OutputView) -> Sequence[LineView]:
    """Give the lines of an output that are shown: none."""
    return ()


def no_advice(_: Standings, __: Entry) -> Sequence[str]:
    """Say what it would take an entry to change places: nothing is known."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    """A site before it is written: ``standings`` by test and phase, ``submissions`` with the latest first.

    ``phase`` is the one that submissions now stand in, ``digits`` the significant digits shown of a test.
    ``metrics`` are called as in the standings. ``likenesses`` are for the organiser, None in what is published.
    """

    settings: Settings
    metrics: tuple[str, ...]
    phase: str
    digits: Mapping[str, int]
    standings: Mapping[tuple[str, str], Standings]
    submissions: tuple[SubmissionView, ...]
    readme: str = ""
    lines_of: Callable[[Test, OutputView], Sequence[LineView]] = no_lines
    advice: Callable[[Standings, Entry], Sequence[str]] = no_advice
    likenesses: tuple[Likeness, ...] | None = None

    @property
    def front(self) -> str:
        """The phase that index.html shows: that of now; the last one as long as nothing came after its deadline."""
        test, phases = self.settings.tests[0].name, self.settings.phases
        if self.phase == AFTER and phases and not self.standings[test, AFTER].entries:
            last = phases[-1].name
            return last if self.standings[test, last].entries else self.phase
        return self.phase

    @property
    def updated(self) -> datetime | None:
        """The moment of the last arrival or withdrawal; None for an empty board."""
        moments = [one.withdrawn or one.arrived for one in self.submissions]
        return max([*moments, *(one.arrived for one in self.submissions)], default=None)
