"""The pages of a site: each is made of what may be shown, when it is asked for; equal values make equal bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from markupsafe import escape
from sqlalchemy import Connection

from geval_py.board.database.schema import Submissions
from geval_py.board.ranking import order
from geval_py.board.ranking.leaderboard import shown_columns, standings_document, standings_records
from geval_py.board.ranking.views import Entry, Standings, SubmissionView, submission_views
from geval_py.board.settings import AFTER, BoardSettings, moment_text, names_of
from geval_py.board.site import files, rendering, site_charts
from geval_py.board.site.files import Frame
from geval_py.board.site.view import SiteView
from geval_py.tables.escapes import json_list_text, json_text, short
from geval_py.tables.table import Table, named_columns
from geval_py.text import words
from geval_py.version import __version__

SUBMISSIONS_OF_A_PAGE = 250
MAX_OUTPUTS = 50  # of a test, on one page
MAX_STANDINGS = 20
MAX_LINE_TABLES = 5
MAX_LISTED = 250  # submissions of a submitter, on one page
MAX_COMPARED = 200  # rows, which keeps the page below 500 kB
STATIC = ("board.css", "board.js", "icon.svg", "server.js")
ROWS_OF_A_PAGE = 200
TEXT_OF_A_PAGE = 200_000  # characters of submitters' texts, so that a page stays below 500 kB
MAX_CHOICES = 100  # tags and parameters to filter by
MAX_TAGS = 6  # that a row shows
MAX_LINKS = 3
TEXT_LENGTHS = {"submitter": 60, "description": 140, "remark": 140, "affiliation": 100}  # in a row
SUBMISSION_NAMES = words(
    "code submitter arrived state reason baseline description author affiliation tags params remark"
)
OUTPUT_NAMES = words("code submitter arrived test variant params metric score low high")
Values: TypeAlias = dict[str, Any]  # that a template shows
Pages: TypeAlias = dict[str, Callable[[], str | bytes]]
Rows: TypeAlias = Callable[[SiteView], Iterator[list[Any]]]


def pages(view: SiteView, frame: Frame) -> Pages:
    """Return the functions that make the files of a site, by their addresses."""
    addresses = frame.addresses
    made: Pages = {
        files.MARK: partial(json_text, {"generator": f"geval-py {__version__}"}),
        "challenge.html": partial(frame.page, "challenge", "Challenge"),
        "submit.html": partial(frame.page, "submit", "How to submit"),
        "feed.xml": partial(files.feed, view),
    }
    if view.public_files:
        made["data/challenge.zip"] = partial(challenge_archive, view)
    for name in STATIC:
        path = resources.files("geval_py.board.site").joinpath("static", name)
        made[f"static/{name}"] = partial(path.read_text, encoding="utf-8")
    for standings in view.standings.values():
        made |= leaderboard_pages(frame, standings)
        address = partial(addresses.of_test, "leaderboard", standings.test, standings.phase)
        made[address("csv")] = partial(leaderboard_csv, standings)
        made[address("json")] = partial(leaderboard_json, view, standings)
    for test in view.tests:
        for kind, page in (("progress", progress_page), ("parameters", parameters_page), ("compare", compare_page)):
            made[addresses.of_test(kind, test.name)] = partial(page, view, frame, test.name)
    starts = range(0, max(len(view.submissions), 1), SUBMISSIONS_OF_A_PAGE)
    for number, start in enumerate(starts, start=1):
        listed = view.submissions[start : start + SUBMISSIONS_OF_A_PAGE]
        make = partial(frame.page, "submissions", "Submissions", submissions=listed, number=number, pages=len(starts))
        made[addresses.submissions(number)] = make
    lists = ("submissions", SUBMISSION_NAMES, submission_rows), ("outputs", OUTPUT_NAMES, output_rows)
    for name, columns, rows in lists:
        made[f"data/{name}.csv"] = partial(list_csv, view, columns, rows)
        made[f"data/{name}.json"] = partial(list_json, view, columns, rows)
    for submission in view.submissions:
        made[addresses.submission(submission.code)] = partial(submission_page, view, frame, submission)
    for name in view.by_submitter:
        made[addresses.submitter(name)] = partial(submitter_page, view, frame, name)
    return made


def challenge_archive(view: SiteView) -> bytes:
    """Pack the challenge's public files; equal files give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, path in sorted(view.public_files.items()):
            archive.writestr(zipfile.ZipInfo(name), Path(path).read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


# Leaderboards, cut into pages


def leaderboard_pages(frame: Frame, standings: Standings) -> Pages:
    """Return the functions that make the pages of a leaderboard, at least one; all of them share one scale."""
    scale = site_charts.bar_scale(standings)
    parts: list[list[Values]] = [[]]
    size = 0
    for row in map(leaderboard_row, standings.entries):
        size += row["size"]
        if len(parts[-1]) == ROWS_OF_A_PAGE or size > TEXT_OF_A_PAGE:
            parts.append([])
            size = row["size"]
        parts[-1].append(row)
    address = partial(frame.addresses.board, standings.test, standings.phase)
    pages: Pages = {}
    first = 1
    for number, rows in enumerate(parts, start=1):
        pages[address(number)] = partial(
            frame.page,
            "leaderboard",
            "Leaderboard",
            standings=standings,
            columns=[column for column in shown_columns(standings) if column.style],
            scale=scale,
            bar_width=site_charts.BAR_WIDTH,
            rows=rows,
            tags=common_words(rows, "tags"),
            params=common_words(rows, "params"),
            first=first,
            number=number,
            pages=len(parts),
            address=address,
        )
        first += len(rows)
    return pages


def leaderboard_row(entry: Entry) -> Values:
    """Return an entry and its shortened texts; ``size`` is about their length in a page."""
    submission = entry.submission
    links = [(short(title, 40), link) for title, url in submission.links if (link := rendering.link_of(url))]
    texts: Values = {name: short(getattr(submission, name), length) for name, length in TEXT_LENGTHS.items()}
    texts |= {
        "variant": short(entry.output.variant, 60),
        "links": links[:MAX_LINKS],
        "tags": list(map(short, submission.tags[:MAX_TAGS])),
        "params": [short(f"{name}={value}") for name, value in islice(entry.params.items(), MAX_TAGS)],
    }
    return {**texts, "entry": entry, "size": len(escape(ascii(texts)))}


def common_words(rows: Sequence[Values], name: str) -> list[str]:
    """Return the most common tags or parameters of rows, in alphabetical order, to filter by."""
    counts = Counter(word for row in rows for word in row[name])
    return sorted((word for word, _ in counts.most_common(MAX_CHOICES)), key=str.casefold)


# The pages of a test


def progress_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show how the best score of a test moved."""
    standings = view.front_table(test)
    progress = site_charts.progress_of(view.submissions, standings)
    return frame.page("progress", "Best so far", standings=standings, progress=progress)


def parameters_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show the scores by the values of parameters."""
    standings = view.front_table(test)
    charts = site_charts.parameter_charts(view.submissions, standings)
    return frame.page("parameters", "Parameters", standings=standings, charts=charts)


def compare_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show the figures of the submissions for a test, of which a script puts two side by side.

    First come the entries of the test's leaderboards, beginning with the one of the front page; then the best output
    of each other submission, the latest first.
    """
    front = view.front_table(test)
    tables = [front, *(table for table in view.standings.values() if table.test == test and table is not front)]
    entries = [entry for table in tables for entry in table.entries if entry.score is not None]
    codes = {entry.code for entry in entries}
    for submission in view.submissions:
        best = submission.best(test, view.settings)
        if best and submission.code not in codes:
            entries.append(Entry(submission=submission, output=best))
    return frame.page(
        "compare",
        "Compare",
        standings=front,
        columns=[column for column in shown_columns(front) if column.style],
        entries=entries,
        max_compared=MAX_COMPARED,
    )


# Submissions and submitters


def submission_page(view: SiteView, frame: Frame, submission: SubmissionView) -> str:
    """Show a submission: its places, its outputs for each test, and the worst lines of those that may be shown."""
    results = []
    for test in view.settings.in_phase(submission.phase).tests:
        if outputs := submission.outputs_for(test.name):
            lines = [(output, view.lines_of(test, output)) for output in outputs[:MAX_LINE_TABLES]]
            results.append((test, outputs, lines))
    entries = []
    for table, entry in view.entries[submission.submitter]:
        if entry.code == submission.code:
            is_advised = table.phase == view.front() and 0 < (entry.place or 0) <= order.MAX_COMPARED
            entries.append((table, entry, rendering.what_it_takes(table, entry) if is_advised else ()))
    return frame.page(
        "submission",
        f"{short(submission.submitter, 60)}, {submission.code}",
        root="../",
        submission=submission,
        entries=entries[:MAX_STANDINGS],
        results=results,
        problems=json.loads(submission.problems_json),
        max_outputs=MAX_OUTPUTS,
    )


def submitter_page(view: SiteView, frame: Frame, name: str) -> str:
    """Show a submitter's places and submissions, and a chart for each test with scores at several moments."""
    sent = view.by_submitter[name]
    tests = [test.name for test in view.listed_tests]
    return frame.page(
        "submitter",
        short(name, 60),
        root="../",
        name=name,
        submissions=sent,
        max_listed=MAX_LISTED,
        latest=next((submission for submission in sent if submission.is_ranked), None),
        entries=view.entries[name][:MAX_STANDINGS],
        histories=[(test, site_charts.progress_of(sent, view.front_table(test)).charts) for test in tests],
    )


# Tables for programs, as CSV and JSON


def leaderboard_csv(standings: Standings) -> str:
    """Write a leaderboard for programs, as CSV."""
    return "".join(standings_records(standings).csv())


def leaderboard_json(view: SiteView, standings: Standings) -> str:
    """Write a leaderboard for programs, as JSON."""
    return json_text({"title": view.settings.title, **standings_document(standings)})


def list_csv(view: SiteView, names: Sequence[str], rows: Rows) -> str:
    """Write a list as CSV: the items of lists are joined by commas, those of mappings as name=value."""

    def cell(value: object) -> object:
        if isinstance(value, Mapping):
            value = [f"{key}={item}" for key, item in value.items()]
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else value

    return "".join(Table(named_columns(names), (list(map(cell, row)) for row in rows(view))).csv())


def list_json(view: SiteView, names: Sequence[str], rows: Rows) -> str:
    """Write a list as JSON, with an object for each row."""
    table = Table(named_columns(names), rows(view))
    return "".join(json_list_text({"title": view.settings.title}, "rows", table.by_name()))


def submission_rows(view: SiteView) -> Iterator[list[Any]]:
    """Yield the submissions."""
    for one in view.submissions:
        texts = [one.status, one.reason, one.baseline, one.description, one.author, one.affiliation]
        yield [one.code, one.submitter, moment_text(one.arrived), *texts, one.tags, one.params, one.remark]


def output_rows(view: SiteView) -> Iterator[list[Any]]:
    """Yield the public figures of all outputs, a row for each metric."""
    for one in view.submissions:
        for output in one.outputs:
            params = {**one.params, **output.params}
            values = [one.code, one.submitter, moment_text(one.arrived), output.test, output.variant, params]
            yield from ([*values, metric, *figures] for metric, figures in output.figures.items())


# The scores of a team's own submissions


def public_scores(
    connection: Connection, settings: BoardSettings, codes: Iterable[str], now: datetime
) -> dict[str, list[Values]]:
    """Return what the site shows of some submissions, by code, for each test that they have an output for.

    A ``score`` is a dash where nothing is shown; ``place`` is that of the submission in the leaderboard, if any;
    ``mark`` is "late" or "extended".
    There are none for a submission that is not ranked. The disclosures must be current.
    """

    @cache
    def places(test: str, phase: str) -> dict[str, str]:
        rows = order.entries(connection, settings, test, phase, order.GROUPINGS[settings.entries])
        late = f" of {AFTER}" if phase == AFTER else ""
        return {row["code"]: f"{row['place']}{'=' * row['shared']}{late}" for row in rows if row["place"]}

    scores: dict[str, list[Values]] = {}
    for submission in submission_views(connection, settings, Submissions.code.in_(codes)):
        in_phase = settings.in_phase(submission.phase)
        is_extended = submission.arrived > order.bounds(settings, submission.phase)[1]
        for test in in_phase.tests:
            if submission.outputs_for(test.name):
                best = submission.best(test.name, settings)
                score = {
                    "test": test.name,
                    "metric": names_of(settings.metrics)[0],
                    "score": rendering.figure(
                        best.shown.value if best else None, in_phase.digits_of(test, now).score
                    ),
                    "ladder": test.ladder,
                    "place": places(test.name, submission.phase).get(submission.code, ""),
                    "mark": "late" if submission.phase == AFTER else "extended" if is_extended else "",
                }
                scores.setdefault(submission.code, []).append(score)
    return scores
