"""The pages of each submission and of each submitter, and the rows of the tables that list submissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from geval_py.board.ranking import order
from geval_py.board.settings import Digits, Settings, Test, measure_of, names_of
from geval_py.board.site import files, rendering, site_charts
from geval_py.board.site.view import LineView, OutputView, SiteView, SubmissionView, shown_outputs
from geval_py.board.submission import Entry, Standings
from geval_py.reports.charts import Chart
from geval_py.tables.escapes import short

MAX_OUTPUTS = 50  # of a test, on one page
MAX_PROBLEMS = 40
MAX_STANDINGS = 20
MAX_LINE_TABLES = 5
MAX_LISTED = 250  # submissions of a submitter, on one page


# Lists of submissions


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A row of a list: a submission, and its best shown score for each test, as text."""

    submission: SubmissionView
    scores: tuple[str, ...]


def listed(view: SiteView, submissions: Iterable[SubmissionView]) -> list[Listed]:
    """Return the rows of a list of submissions."""
    tests = [test.name for test in view.listed_tests]

    def score(one: SubmissionView, test: str) -> str:
        outputs = one.outputs if one.is_ranked else ()
        return _best_score(view.settings, outputs, test, view.digits_at(test, one.arrived))

    return [Listed(submission=one, scores=tuple(score(one, test) for test in tests)) for one in submissions]


def _best_score(settings: Settings, outputs: Iterable[OutputView], test: str, digits: Digits) -> str:
    """Return the best shown score of a submission's outputs for a test; a dash if none is shown."""
    best = min if measure_of(settings.metric).direction == "lower" else max
    metric = names_of(settings.metrics)[0]
    found = (output.figures.get(metric) for output in outputs if output.test == test)
    values = [figures.value for figures in found if figures and figures.value is not None]
    return rendering.figure(best(values, default=None), digits.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownScore:
    """What anyone may see of a submission's score for a test; ``score`` is a dash where nothing is shown."""

    test: str
    metric: str
    score: str
    ladder: bool


def shown_scores(
    connection: Connection, settings: Settings, code: str, arrived: datetime, now: datetime
) -> list[ShownScore]:
    """Return what the lists of submissions show of one, for each test that it has an output for.

    Empty for a submission that is not ranked, and while the stored disclosures are not those of now.
    """
    if not order.is_disclosed(connection, settings, now):
        return []
    outputs, of = shown_outputs(connection, settings, code), settings.at(arrived)
    own = {output.test for output in outputs}
    return [
        ShownScore(
            test=test.name,
            metric=names_of(settings.metrics)[0],
            score=_best_score(settings, outputs, test.name, of.digits_of(test, now)),
            ladder=test.ladder,
        )
        for test in of.tests
        if test.name in own
    ]


# The page of each submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An entry of a submission in a leaderboard; the first entry and the next better one, if these are others."""

    standings: Standings
    entry: Entry
    leader: Entry | None
    above: Entry | None
    advice: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPart:
    """A submission's outputs for one test, and the worst lines of those outputs whose lines may be shown."""

    test: Test
    digits: Digits
    outputs: tuple[OutputView, ...]
    left_out: int
    lines: tuple[tuple[OutputView, Sequence[LineView]], ...]


def submission_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Iterator[files.Page]:
    """Yield the pages of all submissions."""
    placed = _standings_by_code(view)
    for submission in view.submissions:
        ranked = submission.is_ranked
        yield (
            addresses.submission(submission.code),
            page(
                "submission",
                title=f"{short(submission.submitter, 60)}, {submission.code}",
                root="../",
                submission=submission,
                standings_of=placed.get(submission.code, [])[:MAX_STANDINGS] if ranked else [],
                parts_of=list(_test_parts(view, submission)) if ranked else [],
                problems=submission.problems[:MAX_PROBLEMS],
            ),
        )


def _standings_by_code(view: SiteView) -> dict[str, list[Standing]]:
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


def _test_parts(view: SiteView, submission: SubmissionView) -> Iterator[TestPart]:
    for test in view.settings.at(submission.arrived).tests:
        outputs = tuple(output for output in submission.outputs if output.test == test.name)
        shown, digits = outputs[:MAX_OUTPUTS], view.digits_at(test.name, submission.arrived)
        with_lines = shown[:MAX_LINE_TABLES] if test.visible and digits.score else ()
        lines = ((output, view.lines_of(test, output)) for output in with_lines)
        if outputs:
            yield TestPart(
                test=test,
                digits=digits,
                outputs=shown,
                left_out=len(outputs) - len(shown),
                lines=tuple((output, worst) for output, worst in lines if worst),
            )


# The page of each submitter


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The scores of a submitter's outputs for a test over time: a wide and a narrow chart."""

    test: str
    metric: str
    charts: tuple[Chart, ...]


def submitter_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Iterator[files.Page]:
    """Yield the pages of all submitters, in the order of their first submissions."""
    entries: dict[str, list[tuple[Standings, Entry]]] = {}
    for table in view.standings.values():
        for entry in table.entries:
            entries.setdefault(entry.submitter, []).append((table, entry))
    for name, own in view.by_submitter.items():
        ranked = [one for one in own if one.is_ranked]
        yield (
            addresses.submitter(name),
            page(
                "submitter",
                title=short(name, 60),
                root="../",
                name=name,
                number=len(own),
                latest=ranked[0] if ranked else None,
                entries=entries.get(name, [])[:MAX_STANDINGS],
                histories=list(_histories(view, own)),
                rows=listed(view, own[:MAX_LISTED]),
            ),
        )


def _histories(view: SiteView, submissions: Sequence[SubmissionView]) -> Iterator[History]:
    """Yield a chart for each test with finite scores at two moments or more."""
    for test in view.listed_tests:
        standings = view.standings[test.name, view.front_of(test.name) or ""]
        outputs = site_charts.disclosed_outputs(submissions, standings)
        moments: set[datetime] = {one.submission.arrived for one in outputs if one.is_drawn}
        if len(moments) > 1:
            charts = site_charts.progress_of(outputs, standings).charts
            yield History(test=test.name, metric=standings.metric, charts=charts)
