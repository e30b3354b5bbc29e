"""The tables of the pages for programs: each as CSV and as JSON, with disclosed figures only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

from geval_py.board.ranking.leaderboard import standings_document, standings_records
from geval_py.board.settings import Test
from geval_py.board.site.analyses import (
    MOST_COMPARED,
    Progress,
    Scored,
    parameter_charts,
    progress_of,
    scored_outputs,
    to_compare,
)
from geval_py.board.site.files import MARK, Addresses, Page, feed
from geval_py.board.site.leaderboard_pages import cut
from geval_py.board.site.rendering import has_title, iso, readme_html, render
from geval_py.board.site.view import LineView, OutputView, SiteView, SubmissionView
from geval_py.board.submission import Entry, Standings
from geval_py.tables.escapes import json_list_text, json_text, short
from geval_py.tables.table import Column, Table
from geval_py.version import __version__

_NAMES = tuple[str, ...]
SUBMISSION_NAMES: _NAMES = (
    "code", "submitter", "arrived", "state", "reason", "baseline",
    "description", "author", "tags", "params", "remark",
)  # fmt: skip
OUTPUT_NAMES: _NAMES = (
    "code", "submitter", "arrived", "test", "variant", "params", "metric", "score", "low", "high",
)  # fmt: skip
RECORD_NAMES: _NAMES = ("arrived", "code", "submitter", "variant", "score", "low", "high")


def submissions(view: SiteView) -> Iterator[list[Any]]:
    """Give a row a submission; of one that was withdrawn, only that."""
    for one in view.submissions:
        head = [one.code, one.submitter, iso(one.arrived), one.status]
        if one.withdrawn:
            yield [*head, "", one.baseline, "", "", [], {}, one.remark]
        else:
            told = [one.description, one.author, list(one.tags), dict(one.params), one.remark]
            yield [*head, one.reason, one.baseline, *told]


def outputs(submissions: Iterable[SubmissionView]) -> Iterator[list[Any]]:
    """Give a row an output and metric whose score is shown."""
    for one in submissions:
        for output in one.outputs if one.is_ranked else ():
            for metric, figures in output.figures.items():
                params = {**one.params, **output.params}
                head = [one.code, one.submitter, iso(one.arrived), output.test, output.variant, params, metric]
                yield [*head, figures.value, figures.low, figures.high]


def records(progress: Progress) -> Iterator[list[Any]]:
    """Give a row an output that was better than all before it."""
    for one in progress.records:
        submission = one.submission
        named = [iso(submission.arrived), submission.code, submission.submitter, one.output.variant]
        yield [*named, one.value, one.low, one.high]


def csv_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV; lists are joined by commas, mappings written as name=value."""
    columns = [Column(name=name) for name in names]
    return "".join(Table(columns, ([_flat(value) for value in row] for row in rows)).csv())


def _flat(value: object) -> object:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def json_of(head: Mapping[str, Any], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write JSON: a head, and an object a row."""
    return "".join(json_list_text(head, "rows", (dict(zip(names, row, strict=True)) for row in rows)))


# A page for each submission: what it says of itself, what was found in it, and where it stands.


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


# The files of a site, one by one, from what is shown: the same values make the same bytes.


SUBMISSIONS_OF_A_PAGE = 250
STATIC = ("board.css", "board.js", "icon.svg")


def pages(view: SiteView) -> Iterator[Page]:
    """Make all files of a site."""
    site = _Site(view)
    organiser = view.likenesses is not None
    mark = {"generator": f"geval-py {__version__}", "title": view.settings.title, "phase": view.phase}
    yield MARK, json_text({**mark, "organiser": organiser})
    for name in STATIC:
        text = files("geval_py.board.site").joinpath("static", name).read_text(encoding="utf-8")
        yield f"static/{name}", text
    for test in view.settings.tests:
        yield from site.of_test(test)
    yield from site.lists()
    yield from site.texts()
    yield from submission_pages(view, site.addresses, site.common)
    yield "feed.xml", feed(view)


class _Site:
    """A site that is being made: what all of its pages are given."""

    def __init__(self, view: SiteView) -> None:
        self.view = view
        self.addresses = Addresses(view.settings, view.front)
        self.common: dict[str, Any] = {
            "view": view,
            "addresses": self.addresses,
            "root": "",
            "updated": view.updated,  # which looks at all submissions
        }

    def page(self, template: str, *, title: str, section: str, **values: Any) -> str:
        """Fill in the template of a page in the folder of the site."""
        return render(template, title=title, section=section, **self.common, **values)

    def of_test(self, test: Test) -> Iterator[Page]:
        """Make the pages of a test: leaderboards, progress, parameters, and the one that compares."""
        for phase in self.view.settings.phase_names:
            standings = self.view.standings.get((test.name, phase))
            if standings is not None:
                yield from self._leaderboard(standings)
        now = self.view.standings[test.name, self.view.front]
        scored = scored_outputs(self.view, now)
        yield from self._progress(scored, now)
        address = self.addresses.of_test
        values: dict[str, Any] = {"standings": now, "scored": scored}
        charts = parameter_charts(scored, now)
        page = self.page("parameters.html", title="Parameters", section="parameters", charts_shown=charts, **values)
        yield address("parameters", test.name), page
        rows = to_compare(scored, [now, *self._other_tables(now)])
        values |= {"rows": rows[:MOST_COMPARED], "left_out": len(rows[MOST_COMPARED:])}
        yield address("compare", test.name), self.page("compare.html", title="Compare", section="compare", **values)

    def _other_tables(self, front: Standings) -> Iterator[Standings]:
        """Give the leaderboards of a test in other phases, the latest first."""
        for phase in reversed(self.view.settings.phase_names):
            standings = self.view.standings.get((front.test, phase))
            if standings is not None and phase != front.phase:
                yield standings

    def _leaderboard(self, standings: Standings) -> Iterator[Page]:
        test, phase = standings.test, standings.phase
        for page in cut(standings):
            address = self.addresses.board(test, phase, page.number)
            values: dict[str, Any] = {
                "page": page,
                "standings": standings,
                "pager": partial(self.addresses.board, test, phase),
            }
            yield address, self.page("leaderboard.html", title="Leaderboard", section="board", **values)
        yield self.addresses.data("leaderboard", test, phase, "csv"), "".join(standings_records(standings).csv())
        document = {"title": self.view.settings.title, **standings_document(standings)}
        yield self.addresses.data("leaderboard", test, phase, "json"), json_text(document)

    def _progress(self, scored: list[Scored], standings: Standings) -> Iterator[Page]:
        progress = progress_of(scored, standings)
        values: dict[str, Any] = {"standings": standings, "progress": progress}
        page = self.page("progress.html", title="Best so far", section="progress", **values)
        yield self.addresses.of_test("progress", standings.test), page
        rows = list(records(progress))
        head = {"test": standings.test, "metric": standings.metric}
        yield self.addresses.data("progress", standings.test, None, "csv"), csv_of(RECORD_NAMES, rows)
        yield (
            self.addresses.data("progress", standings.test, None, "json"),
            json_of(head, RECORD_NAMES, rows),
        )

    def lists(self) -> Iterator[Page]:
        """Make the list of all submissions, and its data."""
        found = self.view.submissions
        number = max(1, -(-len(found) // SUBMISSIONS_OF_A_PAGE))
        for page in range(1, number + 1):
            first = (page - 1) * SUBMISSIONS_OF_A_PAGE
            rows = found[first : first + SUBMISSIONS_OF_A_PAGE]
            values: dict[str, Any] = {"rows": rows, "number": page, "pages": number, "first": first + 1}
            text = self.page("submissions.html", title="Submissions", section="submissions", **values)
            yield self.addresses.submissions(page), text
        head = {"title": self.view.settings.title}
        yield "data/submissions.csv", csv_of(SUBMISSION_NAMES, submissions(self.view))
        yield "data/submissions.json", json_of(head, SUBMISSION_NAMES, submissions(self.view))
        yield "data/outputs.csv", csv_of(OUTPUT_NAMES, outputs(found))
        yield "data/outputs.json", json_of(head, OUTPUT_NAMES, outputs(found))

    def texts(self) -> Iterator[Page]:
        """Make the challenge's README, how to submit and, for the organiser, the outputs that are much alike."""
        readme = self.view.readme
        body, titled = readme_html(readme), has_title(readme)
        yield (
            "challenge.html",
            self.page("challenge.html", title="Challenge", section="challenge", body=body, titled=titled),
        )
        yield "submit.html", self.page("submit.html", title="How to submit", section="submit")
        if self.view.likenesses is not None:
            yield "likenesses.html", self.page("likenesses.html", title="Much alike", section="likenesses")
