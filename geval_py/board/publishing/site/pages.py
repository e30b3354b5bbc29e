"""The files of a site, one by one, from what is shown: the same values make the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from typing import Any

from geval_py.board.publishing.site import data
from geval_py.board.publishing.site.addresses import Addresses
from geval_py.board.publishing.site.analyses import (
    MOST_COMPARED,
    Scored,
    parameter_charts,
    progress_of,
    scored_outputs,
    to_compare,
)
from geval_py.board.publishing.site.feed import feed
from geval_py.board.publishing.site.leaderboards import cut
from geval_py.board.publishing.site.readme import has_title, readme_html
from geval_py.board.publishing.site.rendering import render
from geval_py.board.publishing.site.submission_pages import submission_pages
from geval_py.board.publishing.site.view import SiteView
from geval_py.board.publishing.site.writing import MARK, Page
from geval_py.board.ranking.tables import standings_document, standings_records
from geval_py.board.settings import Test
from geval_py.board.values import Standings
from geval_py.showing.json import json_text
from geval_py.version import __version__

SUBMISSIONS_OF_A_PAGE = 250
STATIC = ("board.css", "board.js", "icon.svg")


def pages(view: SiteView) -> Iterator[Page]:
    """Make all files of a site."""
    site = _Site(view)
    organiser = view.likenesses is not None
    mark = {"generator": f"geval-py {__version__}", "title": view.settings.title, "phase": view.phase}
    yield MARK, json_text({**mark, "organiser": organiser})
    for name in STATIC:
        text = files("geval_py.board.publishing.site").joinpath("static", name).read_text(encoding="utf-8")
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
        rows = list(data.records(progress))
        head = {"test": standings.test, "metric": standings.metric}
        yield self.addresses.data("progress", standings.test, None, "csv"), data.csv_of(data.RECORD_NAMES, rows)
        yield (
            self.addresses.data("progress", standings.test, None, "json"),
            data.json_of(head, data.RECORD_NAMES, rows),
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
        yield "data/submissions.csv", data.csv_of(data.SUBMISSION_NAMES, data.submissions(self.view))
        yield "data/submissions.json", data.json_of(head, data.SUBMISSION_NAMES, data.submissions(self.view))
        yield "data/outputs.csv", data.csv_of(data.OUTPUT_NAMES, data.outputs(found))
        yield "data/outputs.json", data.json_of(head, data.OUTPUT_NAMES, data.outputs(found))

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
