"""The files of a site, one by one, rendered from what may be shown: equal values make equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from importlib import resources
from itertools import chain
from typing import Any, TypeAlias

from markupsafe import escape
from sqlalchemy import Connection

from geval_py.board.database.schema import Submissions
from geval_py.board.ranking import order
from geval_py.board.ranking.leaderboard import COLUMNS, page_columns, standings_document, standings_records
from geval_py.board.ranking.views import Entry, Standings, SubmissionView, submission_views
from geval_py.board.settings import BoardSettings, Digits, Test, metric_of, moment_text, names_of
from geval_py.board.site import files, rendering, site_charts
from geval_py.board.site.view import SiteView
from geval_py.reports.charts import Scale
from geval_py.tables.escapes import json_list_text, json_text, short
from geval_py.tables.table import Table, named_columns
from geval_py.text import words
from geval_py.version import __version__

SUBMISSIONS_OF_A_PAGE = 250
MAX_OUTPUTS = 50  # of a test, on one page
MAX_PROBLEMS = 40
MAX_STANDINGS = 20
MAX_LINE_TABLES = 5
MAX_LISTED = 250  # submissions of a submitter, on one page
MAX_COMPARED = 200  # rows, which keeps the page below 500 kB
STATIC = ("board.css", "board.js", "icon.svg")
SERVED = (*STATIC, "server.js")
ROWS_OF_A_PAGE = 200
TEXT_OF_A_PAGE = 200_000  # bytes of submitters' texts, so that a page stays below 500 kB
MAX_CHOICES = 100  # tags and parameters to filter by
MAX_TAGS = 6  # that a row shows
MAX_LINKS = 3
SUBMISSION_NAMES = words(
    "code submitter arrived state reason baseline description author affiliation tags params remark"
)
Values: TypeAlias = dict[str, Any]  # that a template shows
Pages: TypeAlias = Iterator[files.Page]
OUTPUT_NAMES = words("code submitter arrived test variant params metric score low high")
OF_RECORDS = words("arrived code submitter variant score low high")


def pages(view: SiteView, *, served: str = "", **frame: Any) -> Pages:
    """Yield all files of a site, as :func:`geval_py.board.site.build` writes them; ``frame`` is for a served one."""
    addresses = files.Addresses(view.settings, view.front())
    front = view.settings.in_phase(view.front()).tests[0].name

    def links_of(test: str) -> list[tuple[str, str, str]]:
        """Return the links to the sections, for a test; for "", that of the front page."""
        return addresses.sections(test or front, view.front(test or front))

    common = {
        "view": view,
        "settings": view.settings,
        "addresses": addresses,
        "links_of": links_of,
        "served": served,
        "updated": view.updated,
    } | frame

    def page(section: str, *, title: str, root: str = "", **values: Any) -> str:
        """Render the page of a section."""
        return rendering.render(f"{section}.html", title=title, section=section, root=root, **common, **values)

    mark = {"generator": f"geval-py {__version__}", "title": view.settings.title, "phase": view.phase}
    yield files.MARK, json_text(mark)
    for name in SERVED if served else STATIC:
        text = resources.files("geval_py.board.site").joinpath("static", name).read_text(encoding="utf-8")
        yield f"static/{name}", text
    for test in view.tests:
        yield from _pages_of_test(view, addresses, page, test)
    yield from _lists(view, addresses, page)
    body = rendering.markdown_html(view.readme)
    cite, where = (rendering.markdown_html(text) for text in (view.settings.cite, view.settings.submit))
    yield "challenge.html", page("challenge", title="Challenge", body=body, titled="<h1>" in body, cite=cite)
    yield "submit.html", page("submit", title="How to submit", where=where)
    yield from submission_pages(view, addresses, page)
    yield from submitter_pages(view, addresses, page)
    yield "feed.xml", files.feed(view)


def _pages_of_test(view: SiteView, addresses: files.Addresses, page: rendering.Render, test: Test) -> Pages:
    """Yield the pages of a test, and their data: leaderboards, progress, parameters, comparison."""
    tables, name = view.standings, test.name
    for standings in (tables[name, phase] for phase in view.settings.phase_names if (name, phase) in tables):
        phase, pager = standings.phase, partial(addresses.board, name, standings.phase)
        values: Values = {"standings": standings, "bar_width": site_charts.BAR_WIDTH, "pager": pager}
        for part in cut(standings, view):
            yield pager(part["number"]), page("leaderboard", title="Leaderboard", page=part, **values)
        data = partial(addresses.of_test, "leaderboard", name, phase)
        yield data("csv"), "".join(standings_records(standings).csv())
        yield data("json"), json_text({"title": view.settings.title, **standings_document(standings)})
    now = tables[name, view.front(name)]
    outputs = site_charts.disclosed_outputs(view.submissions, name)
    progress = site_charts.progress_of(outputs, now)
    text = page("progress", title="Best so far", standings=now, progress=progress)
    yield addresses.of_test("progress", name), text
    columns = [column for column in COLUMNS if column.name in OF_RECORDS]
    rows = [[column.value(one) for column in columns] for one in progress.records]
    data = partial(addresses.of_test, "progress", name, None)
    yield from data_files(data, {"test": name, "metric": now.metric}, [column.name for column in columns], rows)
    charts = site_charts.parameter_charts(outputs, now)
    text = page("parameters", title="Parameters", standings=now, charts_shown=charts)
    yield addresses.of_test("parameters", name), text
    later_first = [(name, phase) for phase in reversed(view.settings.phase_names) if phase != now.phase]
    compared = compared_entries(view.submissions, [now, *(tables[key] for key in later_first if key in tables)])
    shown = {"rows": compared[:MAX_COMPARED], "left_out": len(compared[MAX_COMPARED:])}
    text = page("compare", title="Compare", standings=now, columns=page_columns(now), **shown)
    yield addresses.of_test("compare", name), text


def _lists(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Pages:
    """Yield the list of all submissions, and its data; a withdrawn one is without its description of itself."""
    submissions = view.submissions
    starts = range(0, max(1, len(submissions)), SUBMISSIONS_OF_A_PAGE)
    for place, start in enumerate(starts, start=1):
        rows = listed(view, submissions[start : start + SUBMISSIONS_OF_A_PAGE])
        values = {"rows": rows, "number": place, "pages": len(starts)}
        yield addresses.submissions(place), page("submissions", title="Submissions", **values)
    told_rows, output_rows = [], []
    for one in submissions:
        told: list[Any] = [one.reason, one.baseline, one.description, one.author, one.affiliation]
        told += [list(one.tags), dict(one.params), one.remark]
        if one.withdrawn:
            told = ["", one.baseline, "", "", "", [], {}, one.remark]
        arrival = [one.code, one.submitter, moment_text(one.arrived)]
        told_rows.append([*arrival, one.status, *told])
        for output in one.outputs if one.is_ranked else ():
            own = [*arrival, output.test, output.variant, {**one.params, **output.params}]
            output_rows += [[*own, name, of.value, of.low, of.high] for name, of in output.figures.items()]
    head = {"title": view.settings.title}
    yield from data_files("data/submissions.{}".format, head, SUBMISSION_NAMES, told_rows)
    yield from data_files("data/outputs.{}".format, head, OUTPUT_NAMES, output_rows)


# Submissions and submitters


def listed(view: SiteView, submissions: Iterable[SubmissionView]) -> list[Values]:
    """Return the rows of a list: each submission, and as ``scores`` the best shown one for each test, as text."""
    rows: list[Values] = []
    for one in submissions:
        names = [test.name for test in view.listed_tests]
        scores = [_best_score(view.settings, one, name, view.digits_at(name, one.code)) for name in names]
        rows.append({"submission": one, "scores": scores})
    return rows


def _best_score(settings: BoardSettings, submission: SubmissionView, test: str, digits: Digits) -> str:
    """Write the best shown score of a submission for a test; a dash if none is shown."""
    best = submission.best(test, metric_of(settings.metric).measure.direction)
    return rendering.figure(best.shown.value if best else None, digits.score)


def shown_scores(
    connection: Connection, settings: BoardSettings, codes: Iterable[str], now: datetime
) -> dict[str, list[Values]]:
    """Return what the site shows of some submissions, by code, for each test that they have an output for.

    A ``score`` is a dash where nothing is shown; ``place`` is that of the submission in the leaderboard, if any.
    There are none for a submission that is not ranked, and while the stored disclosures are not those of now.
    """
    if not order.is_disclosed(connection, settings, now):
        return {}

    @cache
    def places(test: str, phase: str) -> dict[str, str]:
        rows = order.entries(connection, settings, test, phase, order.GROUPINGS[settings.entries])
        return {row["code"]: f"{row['place']}{'=' * row['shared']}" for row in rows if row["place"]}

    metric = names_of(settings.metrics)[0]
    shown: dict[str, list[Values]] = {}
    for one in submission_views(connection, settings, Submissions.code.in_(codes)):
        in_phase = settings.in_phase(one.phase)
        for test in in_phase.tests:
            if one.outputs_for(test.name):
                score = _best_score(settings, one, test.name, in_phase.digits_of(test, now))
                told = {"test": test.name, "metric": metric, "score": score, "ladder": test.ladder}
                told["place"] = places(test.name, one.phase).get(one.code, "")
                shown.setdefault(one.code, []).append(told)
    return shown


def submission_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Pages:
    """Yield the pages of all submissions.

    Of each entry in a leaderboard, a page has the ``leader`` and the next better entry, ``above``, if these are
    others. Of each test, it has the outputs, and the worst lines of those whose lines may be shown.
    """
    placed: dict[str, list[Values]] = {}
    for (_, phase), standings in view.standings.items():
        above: Entry | None = None
        leader = next((entry for entry in standings.entries if entry.place is not None), None)
        for entry in standings.entries:
            standing = {"standings": standings, "entry": entry, "leader": leader if leader is not entry else None}
            standing["above"] = above if above is not leader else None
            is_advised = phase == view.front() and 0 < (entry.place or 0) <= order.MAX_COMPARED
            standing["advice"] = rendering.what_it_takes(standings, entry) if is_advised else ()
            placed.setdefault(entry.code, []).append(standing)
            above = entry if entry.place is not None else above
    for submission in view.submissions:
        parts: list[Values] = []
        for test in view.settings.in_phase(submission.phase).tests:
            outputs = submission.outputs_for(test.name)
            shown, digits = outputs[:MAX_OUTPUTS], view.digits_at(test.name, submission.code)
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


def submitter_pages(view: SiteView, addresses: files.Addresses, page: rendering.Render) -> Pages:
    """Yield the pages of all submitters, in the order of their first submissions.

    A page has a chart for each test with finite scores at two moments or more.
    """
    entries: dict[str, list[tuple[Standings, Entry]]] = {}
    for table in view.standings.values():
        for entry in table.entries:
            entries.setdefault(entry.submitter, []).append((table, entry))
    for name, own in view.by_submitter.items():
        histories: list[Values] = []
        for test in view.listed_tests:
            standings = view.standings[test.name, view.front(test.name)]
            outputs = site_charts.disclosed_outputs(own, test.name)
            if len({one.submission.arrived for one in filter(site_charts.is_drawn, outputs)}) > 1:
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


# Tables for programs, as CSV and JSON


def data_files(
    path: Callable[[str], str], head: Mapping[str, Any], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Pages:
    """Yield rows as CSV and, with a head and an object per row, as JSON; ``path`` makes a path of an ending.

    In CSV, the items of lists are joined by commas, those of mappings as name=value.
    """

    def cell(value: object) -> object:
        if isinstance(value, Mapping):
            value = [f"{key}={item}" for key, item in value.items()]
        return ",".join(map(str, value)) if isinstance(value, list) else value

    rows = list(rows)
    table = Table(named_columns(names), [list(map(cell, row)) for row in rows])
    yield path("csv"), "".join(table.csv())
    yield path("json"), "".join(json_list_text(head, "rows", (dict(zip(names, row, strict=True)) for row in rows)))


# Leaderboards: rows with their bars, cut into pages; and the rows of the page that compares.


def cut(standings: Standings, view: SiteView) -> Iterator[Values]:
    """Cut a leaderboard into pages, at least one; all of them share one scale.

    Each is the ``number``-th of ``pages``, and has the rows from ``first`` to ``last`` of ``total``.
    """
    scale = site_charts.bar_scale(standings)
    parts: list[list[Values]] = [[]]
    size = 0
    for entry in standings.entries:
        row = _row(view, entry, scale)
        if len(parts[-1]) == ROWS_OF_A_PAGE or (parts[-1] and size + row["size"] > TEXT_OF_A_PAGE):
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += row["size"]
    first = 1
    for number, rows in enumerate(parts, start=1):
        page = {"number": number, "pages": len(parts), "rows": rows, "columns": page_columns(standings)}
        page |= {"first": first, "last": first + len(rows) - 1, "total": len(standings.entries)}
        for name in ("tags", "params"):  # the most common ones, in alphabetical order
            common = Counter(sorted(word for row in rows for word in row[name])).most_common(MAX_CHOICES)
            page[name] = sorted((word for word, _ in common), key=lambda word: (word.casefold(), word))
        yield page | {"ticks": [(scale.at(value), text) for value, text in scale.ticks(3)] if scale else []}
        first += len(rows)


def _row(view: SiteView, entry: Entry, scale: Scale | None) -> Values:
    """Return an entry's row: its interval bar, shortened texts, and the ``choices`` that a page's script filters by.

    ``submissions`` is how many its submitter has sent, ``size`` the bytes of its texts in a page, where the choices
    stand twice.
    """
    told, shown = entry.submission, entry.output.shown
    links = [(short(title, 40), link) for title, url in told.links if (link := rendering.link_of(url))][:MAX_LINKS]
    tags = list(map(short, told.tags[:MAX_TAGS]))
    params = [short(f"{name}={value}") for name, value in list(entry.params.items())[:MAX_TAGS]]
    choices = [*(f"tag:{tag}" for tag in tags), *(f"param:{param}" for param in params)]
    lengths = {"submitter": 60, "description": 140, "remark": 140, "affiliation": 100}
    texts = {name: short(getattr(told, name), length) for name, length in lengths.items()}
    texts["variant"] = short(entry.output.variant, 60)
    words = [*texts.values(), texts["submitter"], *chain(*links), rendering.json_of(choices), *tags, *choices]
    return {
        **texts,
        "entry": entry,
        "bar": site_charts.bar_of(scale, *shown),
        "links": links,
        "tags": tags,
        "params": params,
        "choices": choices,
        "submissions": len(view.by_submitter.get(entry.submitter, ())),
        "size": len(escape(" ".join(words)).encode("utf-8", "backslashreplace")),
    }


def compared_entries(submissions: Iterable[SubmissionView], tables: Sequence[Standings]) -> list[tuple[Entry, str]]:
    """Return the rows of the page that compares, each an entry and its phase.

    First the entries of the test's leaderboards, of which the front page's must be the first, then the best output
    of each other submission, the latest first, without a phase.
    """
    rows: dict[str, tuple[Entry, str]] = {}
    for table in tables:
        for entry in table.entries:
            if entry.score is not None:
                rows.setdefault(entry.code, (entry, table.phase))
    for submission in submissions:
        best = submission.best(tables[0].test, tables[0].direction)
        if best is not None:
            rows.setdefault(submission.code, (Entry(submission=submission, output=best), ""))
    return list(rows.values())
