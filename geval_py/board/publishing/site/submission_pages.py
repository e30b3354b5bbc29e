"""A page for each submission: what it says of itself, what was found in it, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geval_py.board.publishing.site.addresses import Addresses
from geval_py.board.publishing.site.rendering import render
from geval_py.board.publishing.site.view import LineView, OutputView, SiteView, SubmissionView
from geval_py.board.publishing.site.writing import Page
from geval_py.board.settings import Test
from geval_py.board.values import Entry, Standings
from geval_py.showing.templating import short

MOST_OUTPUTS = 50  # of a test, on one page
MOST_PROBLEMS = 40
MOST_STANDINGS = 20
MOST_LINE_TABLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An entry of a submission in a leaderboard, the first one and the one before it, if they are others'."""

    standings: Standings
    entry: Entry
    leader: Entry | None
    above: Entry | None
    advice: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPart:
    """What a submission has for one test: its outputs, and the lines of those that may be shown."""

    test: Test
    digits: int
    outputs: tuple[OutputView, ...]
    left_out: int
    lines: tuple[tuple[OutputView, Sequence[LineView]], ...]


def submission_pages(view: SiteView, addresses: Addresses, common: Mapping[str, Any]) -> Iterator[Page]:
    """Make the pages of all submissions."""
    placed = _placed(view)
    values = {**common, "root": "../", "section": "submission"}
    for submission in view.submissions:
        title = f"{short(submission.submitter, 60)}, {submission.code}"
        text = render(
            "submission.html",
            **values,
            title=title,
            submission=submission,
            standings_of=placed.get(submission.code, [])[:MOST_STANDINGS] if submission.is_ranked else [],
            parts_of=_parts(view, submission) if submission.is_ranked else [],
            problems=submission.problems[:MOST_PROBLEMS],
        )
        yield addresses.submission(submission.code), text


def _placed(view: SiteView) -> dict[str, list[Standing]]:
    """Find where each submission stands now: in each test's leaderboard of the present phase, or of its own."""
    found: dict[str, list[Standing]] = {}
    for (_, phase), standings in view.standings.items():
        above: Entry | None = None
        leader = next((entry for entry in standings.entries if entry.place is not None), None)
        for entry in standings.entries:
            advice = view.advice(standings, entry) if phase == view.front and entry.place is not None else ()
            first = leader if leader is not entry else None
            nearest = above if above is not leader else None
            standing = Standing(standings=standings, entry=entry, leader=first, above=nearest, advice=advice)
            found.setdefault(entry.code, []).append(standing)
            above = entry if entry.place is not None else above
    return found


def _parts(view: SiteView, submission: SubmissionView) -> list[TestPart]:
    parts: list[TestPart] = []
    for test in view.settings.tests:
        outputs = [output for output in submission.outputs if output.test == test.name]
        shown = outputs[:MOST_OUTPUTS]
        digits = view.digits[test.name]
        lines: list[tuple[OutputView, Sequence[LineView]]] = []
        if test.visible and digits:
            lines = [(output, found) for output in shown[:MOST_LINE_TABLES] if (found := view.lines_of(test, output))]
        if outputs:
            left_out = len(outputs) - len(shown)
            parts.append(
                TestPart(test=test, digits=digits, outputs=tuple(shown), left_out=left_out, lines=tuple(lines))
            )
    return parts
