"""The files of a site, one by one, rendered from what may be shown: equal values make equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import resources
from itertools import chain
from typing import Any

from markupsafe import escape

from geval_py.board.ranking.leaderboard import EntryColumn, page_columns, standings_document, standings_records
from geval_py.board.settings import Test
from geval_py.board.site import files, rendering, site_charts, submission_pages
from geval_py.board.site.view import SiteView, SubmissionView
from geval_py.board.submission import Entry, Standings
from geval_py.reports.charts import Scale, Tick
from geval_py.tables.escapes import json_list_text, json_text, short
from geval_py.tables.table import Column, Table
from geval_py.version import __version__

SUBMISSIONS_OF_A_PAGE = 250
MOST_COMPARED = 200  # rows, which keeps the page below 500 kB
STATIC = ("board.css", "board.js", "icon.svg")
ROWS_OF_A_PAGE = 200
TEXT_OF_A_PAGE = 200_000  # bytes of submitters' texts, so that a page stays below 500 kB
MOST_CHOICES = 100  # tags and parameters to filter by
MOST_TAGS = 6  # that a row shows
MOST_LINKS = 3
SUBMISSION_NAMES = (
    "code", "submitter", "arrived", "state", "reason", "baseline",
    "description", "author", "affiliation", "tags", "params", "remark",
)  # fmt: skip
OUTPUT_NAMES = ("code", "submitter", "arrived", "test", "variant", "params", "metric", "score", "low", "high")
RECORD_NAMES = ("arrived", "code", "submitter", "variant", "score", "low", "high")


def pages(view: SiteView) -> Iterator[files.Page]:
    """Yield all files of a site."""
    site = _Site(view)
    mark = {"generator": f"geval-py {__version__}", "title": view.settings.title, "phase": view.phase}
    frame: Frame = site.common["frame"]
    told = {"pages": frame.links, "submissions": frame.submissions, "has_cite": frame.has_cite}
    told["updated"] = rendering.iso(frame.updated) if frame.updated else None
    yield files.MARK, json_text({**mark, "organiser": view.likenesses is not None, **told})
    for name in STATIC:
        text = resources.files("geval_py.board.site").joinpath("static", name).read_text(encoding="utf-8")
        yield f"static/{name}", text
    for test in view.tests:
        yield from site.of_test(test)
    yield from site.lists()
    yield from site.texts()
    yield from submission_pages.submission_pages(view, site.addresses, site.common)
    yield from submission_pages.submitter_pages(view, site.addresses, site.common)
    yield "feed.xml", files.feed(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around each page: the title, the links to the sections, the last change.

    ``links`` are of the front page's test: keys, names and addresses. ``of_test`` gives those of another test.
    """

    title: str
    links: Sequence[tuple[str, str, str]]
    submissions: int
    updated: datetime | None
    has_cite: bool
    is_private: bool = False
    of_test: Callable[[str], Sequence[tuple[str, str, str]]] | None = None

    @classmethod
    def of(cls, view: SiteView, addresses: files.Addresses) -> Frame:
        """Return the frame of a site's pages."""
        front = view.settings.in_phase(view.front).tests[0].name
        of_test = partial(_links, view, addresses)
        return cls(
            title=view.settings.title,
            links=of_test(front),
            submissions=len(view.submissions),
            updated=view.updated,
            has_cite=bool(view.settings.cite),
            is_private=view.likenesses is not None,
            of_test=of_test,
        )

    def pages(self, test: str) -> Sequence[tuple[str, str, str]]:
        """Return the links of a test's pages; of the front page's for ""."""
        return self.of_test(test) if test and self.of_test else self.links


def _links(view: SiteView, addresses: files.Addresses, test: str) -> list[tuple[str, str, str]]:
    found = [
        ("leaderboard", "Leaderboard", addresses.board(test, view.front_of(test) or "")),
        ("progress", "Best so far", addresses.of_test("progress", test)),
        ("parameters", "Parameters", addresses.of_test("parameters", test)),
        ("compare", "Compare", addresses.of_test("compare", test)),
        ("submissions", "Submissions", addresses.submissions()),
        ("challenge", "Challenge", "challenge.html"),
        ("submit", "How to submit", "submit.html"),
    ]
    return found if view.likenesses is None else [*found, ("likenesses", "Much alike", "likenesses.html")]


class _Site:
    """A site being made, with the values that all of its pages get."""

    def __init__(self, view: SiteView) -> None:
        self.view = view
        self.addresses = files.Addresses(view.settings, view.front)
        self.common: dict[str, Any] = {
            "view": view,
            "addresses": self.addresses,
            "root": "",
            "frame": Frame.of(view, self.addresses),
        }

    def page(self, section: str, *, title: str, **values: Any) -> str:
        """Render the page of a section."""
        return rendering.render(f"{section}.html", title=title, section=section, **self.common, **values)

    def of_test(self, test: Test) -> Iterator[files.Page]:
        """Yield the pages of a test: leaderboards, progress, parameters, comparison."""
        tables = self.view.standings
        for phase in self.view.settings.phase_names:
            if (test.name, phase) in tables:
                yield from self._leaderboard(tables[test.name, phase])
        now = tables[test.name, self.view.front_of(test.name) or ""]
        outputs = site_charts.disclosed_outputs(self.view.submissions, now)
        yield from self._progress(outputs, now)
        charts = site_charts.parameter_charts(outputs, now)
        page = self.page("parameters", title="Parameters", standings=now, charts_shown=charts)
        yield self.addresses.of_test("parameters", test.name), page
        later_first = [(test.name, phase) for phase in reversed(self.view.settings.phase_names) if phase != now.phase]
        rows = compared_entries(outputs, [now, *(tables[key] for key in later_first if key in tables)])
        page = self.page(
            "compare",
            title="Compare",
            standings=now,
            columns=page_columns(now),
            rows=rows[:MOST_COMPARED],
            left_out=len(rows[MOST_COMPARED:]),
        )
        yield self.addresses.of_test("compare", test.name), page

    def _leaderboard(self, standings: Standings) -> Iterator[files.Page]:
        test, phase = standings.test, standings.phase
        values: dict[str, Any] = {"standings": standings, "bar_width": site_charts.BAR_WIDTH}
        values["pager"] = partial(self.addresses.board, test, phase)
        for page in cut(standings, self.view):
            text = self.page("leaderboard", title="Leaderboard", page=page, **values)
            yield self.addresses.board(test, phase, page.number), text
        yield self.addresses.data("leaderboard", test, phase, "csv"), "".join(standings_records(standings).csv())
        document = {"title": self.view.settings.title, **standings_document(standings)}
        yield self.addresses.data("leaderboard", test, phase, "json"), json_text(document)

    def _progress(self, outputs: list[site_charts.DisclosedOutput], standings: Standings) -> Iterator[files.Page]:
        test = standings.test
        progress = site_charts.progress_of(outputs, standings)
        page = self.page("progress", title="Best so far", standings=standings, progress=progress)
        yield self.addresses.of_test("progress", test), page
        rows = [record_row(one) for one in progress.records]
        head = {"test": test, "metric": standings.metric}
        yield self.addresses.data("progress", test, None, "csv"), csv_of(RECORD_NAMES, rows)
        yield self.addresses.data("progress", test, None, "json"), json_of(head, RECORD_NAMES, rows)

    def lists(self) -> Iterator[files.Page]:
        """Yield the list of all submissions, and its data."""
        found = self.view.submissions
        number = max(1, -(-len(found) // SUBMISSIONS_OF_A_PAGE))
        for page in range(1, number + 1):
            first = (page - 1) * SUBMISSIONS_OF_A_PAGE
            rows = found[first : first + SUBMISSIONS_OF_A_PAGE]
            values = {"rows": submission_pages.listed(self.view, rows), "number": page, "pages": number}
            text = self.page("submissions", title="Submissions", **values)
            yield self.addresses.submissions(page), text
        head = {"title": self.view.settings.title}
        yield "data/submissions.csv", csv_of(SUBMISSION_NAMES, map(submission_row, found))
        yield "data/submissions.json", json_of(head, SUBMISSION_NAMES, map(submission_row, found))
        yield "data/outputs.csv", csv_of(OUTPUT_NAMES, output_rows(found))
        yield "data/outputs.json", json_of(head, OUTPUT_NAMES, output_rows(found))

    def texts(self) -> Iterator[files.Page]:
        """Yield the challenge's README, how to submit and, for the organiser, the outputs that are much alike."""
        readme, settings = self.view.readme, self.view.settings
        body, titled = rendering.markdown_html(readme), rendering.has_title(readme)
        cite, where = rendering.markdown_html(settings.cite), rendering.markdown_html(settings.submit)
        yield "challenge.html", self.page("challenge", title="Challenge", body=body, titled=titled, cite=cite)
        yield "submit.html", self.page("submit", title="How to submit", where=where)
        if self.view.likenesses is not None:
            yield "likenesses.html", self.page("likenesses", title="Much alike")


# Tables for programs, as CSV and JSON


def submission_row(one: SubmissionView) -> list[Any]:
    """Return the row of a submission; a withdrawn one is without its description of itself."""
    head = [one.code, one.submitter, rendering.iso(one.arrived), one.status]
    if one.withdrawn:
        return [*head, "", one.baseline, "", "", "", [], {}, one.remark]
    told = [one.description, one.author, one.affiliation, list(one.tags), dict(one.params), one.remark]
    return [*head, one.reason, one.baseline, *told]


def output_rows(submissions: Iterable[SubmissionView]) -> Iterator[list[Any]]:
    """Yield a row per output and metric whose score is shown."""
    for one in submissions:
        for output in one.outputs if one.is_ranked else ():
            for metric, figures in output.figures.items():
                params = {**one.params, **output.params}
                head = [one.code, one.submitter, rendering.iso(one.arrived), output.test, output.variant]
                yield [*head, params, metric, figures.value, figures.low, figures.high]


def record_row(one: site_charts.DisclosedOutput) -> list[Any]:
    """Return the row of an output that was better than all before it."""
    submission = one.submission
    head = [rendering.iso(submission.arrived), submission.code, submission.submitter, one.output.variant]
    return [*head, one.value, one.low, one.high]


def csv_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV; the items of lists are joined by commas, those of mappings as name=value."""
    columns = [Column(name=name) for name in names]
    return "".join(Table(columns, ([_flat(value) for value in row] for row in rows)).csv())


def _flat(value: object) -> object:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def json_of(head: Mapping[str, Any], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write JSON: a head, and an object per row."""
    return "".join(json_list_text(head, "rows", (dict(zip(names, row, strict=True)) for row in rows)))


# Leaderboards: rows with their bars, cut into pages; and the rows of the page that compares.


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry, its interval bar, its shortened texts, and its tags and parameters to filter by.

    ``submissions`` is how many its submitter has sent.
    """

    entry: Entry
    bar: site_charts.Bar | None
    submitter: str
    variant: str
    told: str
    remark: str
    affiliation: str
    links: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    params: tuple[str, ...]
    submissions: int

    @property
    def choices(self) -> list[str]:
        """The tags and parameters to filter by, as a page's script compares them."""
        return [f"tag:{tag}" for tag in self.tags] + [f"param:{param}" for param in self.params]

    @property
    def size(self) -> int:
        """The bytes of its texts in a page, where the choices stand twice."""
        words = (self.submitter, self.submitter, self.variant, self.told, self.remark, self.affiliation)
        texts = [*words, *chain(*self.links), rendering.json_of(self.choices), *self.tags, *self.choices]
        return len(escape(" ".join(texts)).encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardPage:
    """Some rows of a leaderboard: the ``number``-th of ``pages`` pages, rows from ``first`` of ``total``."""

    columns: Sequence[EntryColumn]
    rows: tuple[Row, ...]
    number: int
    pages: int
    first: int
    total: int
    ticks: list[Tick]
    tags: tuple[str, ...]
    params: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + len(self.rows) - 1


def cut(standings: Standings, view: SiteView) -> Iterator[LeaderboardPage]:
    """Cut a leaderboard into pages, at least one; all of them share one scale."""
    scale = site_charts.bar_scale(standings)
    parts = _parts([_row(view, entry, scale) for entry in standings.entries])
    first = 1
    for number, rows in enumerate(parts, start=1):
        yield LeaderboardPage(
            columns=page_columns(standings),
            rows=tuple(rows),
            number=number,
            pages=len(parts),
            first=first,
            total=len(standings.entries),
            ticks=site_charts.bar_ticks(scale),
            tags=_most_common(row.tags for row in rows),
            params=_most_common(row.params for row in rows),
        )
        first += len(rows)


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    """Split rows at the greatest number of rows, or of bytes, of a page."""
    parts: list[list[Row]] = [[]]
    size = 0
    for row in rows:
        if len(parts[-1]) == ROWS_OF_A_PAGE or (parts[-1] and size + row.size > TEXT_OF_A_PAGE):
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += row.size
    return parts


def _row(view: SiteView, entry: Entry, scale: Scale | None) -> Row:
    linked = ((short(title, 40), link) for title, url in entry.links if (link := rendering.link_of(url)))
    return Row(
        entry=entry,
        bar=site_charts.bar_of(scale, entry.score, entry.low, entry.high),
        submitter=short(entry.submitter, 60),
        variant=short(entry.variant, 60),
        told=short(entry.description, 140),
        remark=short(entry.remark, 140),
        affiliation=short(entry.affiliation, 100),
        links=tuple(linked)[:MOST_LINKS],
        tags=tuple(map(short, entry.tags[:MOST_TAGS])),
        params=tuple(short(f"{name}={value}") for name, value in list(entry.params.items())[:MOST_TAGS]),
        submissions=len(view.by_submitter.get(entry.submitter, ())),
    )


def _most_common(words: Iterator[Sequence[str]]) -> tuple[str, ...]:
    """Return the most common words in alphabetical order."""
    counted = Counter(chain.from_iterable(words))
    common = sorted(counted, key=lambda word: (-counted[word], word))[:MOST_CHOICES]
    return tuple(sorted(common, key=lambda word: (word.casefold(), word)))


def compared_entries(
    outputs: Iterable[site_charts.DisclosedOutput], tables: Sequence[Standings]
) -> list[tuple[Entry, str]]:
    """Return the rows of the page that compares, each an entry and its phase.

    First the entries of the test's leaderboards, of which the front page's must be the first, then the best output
    of each other submission, the latest first, without a phase.
    """
    shown = {one.output.id: one for one in outputs}
    rows: dict[str, tuple[Entry, str]] = {}
    for table in tables:
        for entry in table.entries:
            if entry.output_id in shown:
                rows.setdefault(entry.code, (entry, table.phase))
    others: dict[str, site_charts.DisclosedOutput] = {}
    for one in reversed(shown.values()):
        code = one.submission.code
        old = others.get(code)
        if code not in rows and (old is None or site_charts.is_better(one.value, old.value, tables[0].direction)):
            others[code] = one
    return [*rows.values(), *((_without_place(one), "") for one in others.values())]


def _without_place(one: site_charts.DisclosedOutput) -> Entry:
    submission, output = one.submission, one.output
    return Entry(
        place=None,
        shared=False,
        first=None,
        last=None,
        groups=(),
        submitter=submission.submitter,
        code=submission.code,
        variant=output.variant,
        score=one.value,
        low=one.low,
        high=one.high,
        others={metric: shown.value for metric, shown in output.figures.items()},
        baseline=submission.baseline,
        arrived=submission.arrived,
        description=submission.description,
        tags=submission.tags,
        params=one.params,
        remark=submission.remark,
        links=submission.links,
        affiliation=submission.affiliation,
        output_id=output.id,
        evaluation_id=output.evaluation_id or 0,
    )
