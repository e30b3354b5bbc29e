"""The pages of each submission and of each submitter, and the rows of the tables that list submissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from geval_py.board.ranking import order, place_ranges
from geval_py.board.settings import BoardSettings, Digits, measure_of, names_of
from geval_py.board.site import files, rendering, site_charts
from geval_py.board.site.view import OutputView, SiteView, SubmissionView, shown_outputs
from geval_py.board.submission import Entry, Standings
from geval_py.tables.escapes import short

MAX_OUTPUTS = 50  # of a test, on one page
MAX_PROBLEMS = 40
MAX_STANDINGS = 20
MAX_LINE_TABLES = 5
MAX_LISTED = 250  # submissions of a submitter, on one page


def listed(view: SiteView, submissions: Iterable[SubmissionView]) -> list[dict[str, Any]]:
    """Return the rows of a list: each submission, and as ``scores`` the best shown one for each test, as text."""
    rows: list[dict[str, Any]] = []
    for one in submissions:
        outputs, names = one.outputs if one.is_ranked else (), [test.name for test in view.listed_tests]
        scores = [_best_score(view.settings, outputs, name, view.digits_at(name, one.arrived)) for name in names]
        rows.append({"submission": one, "scores": scores})
    return rows


def _best_score(settings: BoardSettings, outputs: Iterable[OutputView], test: str, digits: Digits) -> str:
    """Return the best shown score of a submission's outputs for a test; a dash if none is shown."""
    best = min if measure_of(settings.metric).direction == "lower" else max
    metric = names_of(settings.metrics)[0]
    shown = (output.figures.get(metric) for output in outputs if output.test == test)
    values = [figures.value for figures in shown if figures and figures.value is not None]
    return rendering.figure(best(values, default=None), digits.score)


def shown_scores(
    connection: Connection, settings: BoardSettings, code: str, arrived: datetime, now: datetime
) -> list[dict[str, Any]]:
    """Return what the lists of submissions show of one, for each test that it has an output for.

    A ``score`` is a dash where nothing is shown. There are none for a submission that is not ranked, and while the
    stored disclosures are not those of now.
    """
    if not order.is_disclosed(connection, settings, now):
        return []
    outputs, settings_then = shown_outputs(connection, settings, code), settings.at(arrived)
    metric = names_of(settings.metrics)[0]
    shown: list[dict[str, Any]] = []
    for test in settings_then.tests:
        if any(output.test == test.name for output in outputs):
            score = _best_score(settings, outputs, test.name, settings_then.digits_of(test, now))
            shown.append({"test": test.name, "metric": metric, "score": score, "ladder": test.ladder})
    return shown


def submission_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Iterator[files.Page]:
    """Yield the pages of all submissions.

    Of each entry in a leaderboard, a page has the ``leader`` and the next better entry, ``above``, if these are
    others. Of each test, it has the outputs, and the worst lines of those whose lines may be shown.
    """
    placed: dict[str, list[dict[str, Any]]] = {}
    for (_, phase), standings in view.standings.items():
        above: Entry | None = None
        leader = next((entry for entry in standings.entries if entry.place is not None), None)
        for entry in standings.entries:
            standing = {"standings": standings, "entry": entry, "leader": leader if leader is not entry else None}
            standing["above"] = above if above is not leader else None
            is_advised = phase == view.front and 0 < (entry.place or 0) <= order.MAX_COMPARED
            standing["advice"] = place_ranges.what_it_takes(standings, entry) if is_advised else ()
            placed.setdefault(entry.code, []).append(standing)
            above = entry if entry.place is not None else above
    for submission in view.submissions:
        parts: list[dict[str, Any]] = []
        for test in view.settings.at(submission.arrived).tests if submission.is_ranked else ():
            outputs = [output for output in submission.outputs if output.test == test.name]
            shown, digits = outputs[:MAX_OUTPUTS], view.digits_at(test.name, submission.arrived)
            with_lines = shown[:MAX_LINE_TABLES] if test.visible and digits.score else ()
            lines = [(output, worst) for output in with_lines if (worst := view.lines_of(test, output))]
            if outputs:
                part = {"test": test, "digits": digits, "outputs": shown, "lines": lines}
                parts.append(part | {"left_out": len(outputs) - len(shown)})
        yield (
            addresses.submission(submission.code),
            page(
                "submission",
                title=f"{short(submission.submitter, 60)}, {submission.code}",
                root="../",
                submission=submission,
                standings_of=placed.get(submission.code, [])[:MAX_STANDINGS] if submission.is_ranked else [],
                parts_of=parts,
                problems=submission.problems[:MAX_PROBLEMS],
            ),
        )


def submitter_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Iterator[files.Page]:
    """Yield the pages of all submitters, in the order of their first submissions.

    A page has a chart for each test with finite scores at two moments or more.
    """
    entries: dict[str, list[tuple[Standings, Entry]]] = {}
    for table in view.standings.values():
        for entry in table.entries:
            entries.setdefault(entry.submitter, []).append((table, entry))
    for name, own in view.by_submitter.items():
        histories: list[dict[str, Any]] = []
        for test in view.listed_tests:
            standings = view.standings[test.name, view.front_of(test.name) or ""]
            outputs = site_charts.disclosed_outputs(own, standings)
            if len({one.arrived for one in filter(site_charts.is_drawn, outputs)}) > 1:
                histories.append({"test": test.name, "charts": site_charts.progress_of(outputs, standings).charts})
        yield (
            addresses.submitter(name),
            page(
                "submitter",
                title=short(name, 60),
                root="../",
                name=name,
                number=len(own),
                latest=next((one for one in own if one.is_ranked), None),
                entries=entries.get(name, [])[:MAX_STANDINGS],
                histories=histories,
                rows=listed(view, own[:MAX_LISTED]),
            ),
        )
