"""The pages of a site: each is made of what may be shown, when it is asked for; equal values make equal bytes."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from markupsafe import escape
from sqlalchemy import Connection

from geval_py.board.database.schema import Submissions
from geval_py.board.ranking import order
from geval_py.board.ranking.leaderboard import COLUMNS, page_columns, standings_document, standings_records
from geval_py.board.ranking.views import Entry, Standings, SubmissionView, submission_views
from geval_py.board.settings import BoardSettings, Digits, metric_of, moment_text, names_of
from geval_py.board.site import files, rendering, site_charts
from geval_py.board.site.files import Frame
from geval_py.board.site.view import SiteView
from geval_py.reports.charts import Scale
from geval_py.tables.escapes import json_list_text, json_text, short
from geval_py.tables.table import Table, named_columns
from geval_py.text import words
from geval_py.version import REPOSITORY, __version__

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
OUTPUT_NAMES = words("code submitter arrived test variant params metric score low high")
OF_RECORDS = [
    column for column in COLUMNS if column.name in ("submitter", "code", "variant", "score", "low", "high", "arrived")
]
Values: TypeAlias = dict[str, Any]  # that a template shows
Pages: TypeAlias = dict[str, Callable[[], str | bytes]]
DOWNLOAD = "data/challenge.zip"


def pages(view: SiteView, frame: Frame) -> Pages:
    """Return the functions that make the files of a site, by their addresses."""
    addresses, settings = frame.addresses, view.settings
    mark = {"generator": f"geval-py {__version__}", "title": settings.title, "phase": view.phase}
    made: Pages = {
        files.MARK: partial(json_text, mark),
        "challenge.html": partial(challenge_page, view, frame),
        "submit.html": partial(submit_page, view, frame),
        "feed.xml": partial(files.feed, view),
    }
    if view.public_files:
        made[DOWNLOAD] = partial(challenge_archive, view)
    for name in SERVED if frame.served else STATIC:
        made[f"static/{name}"] = partial(static_text, name)
    for standings in view.standings.values():
        key = standings.test, standings.phase
        for part in cut(standings, view):
            made[addresses.board(*key, part["number"])] = partial(leaderboard_page, view, frame, standings, part)
        data = partial(addresses.of_test, "leaderboard", *key)
        made[data("csv")] = partial(leaderboard_csv, standings)
        made[data("json")] = partial(leaderboard_json, view, standings)
    for test in view.tests:
        for kind, page in (("progress", progress_page), ("parameters", parameters_page), ("compare", compare_page)):
            made[addresses.of_test(kind, test.name)] = partial(page, view, frame, test.name)
        data = partial(addresses.of_test, "progress", test.name, None)
        head = {"test": test.name, "metric": view.metrics[0]}
        names = [column.name for column in OF_RECORDS]
        made |= data_files(data, head, names, partial(record_rows, view, test.name))
    number = -(-len(view.submissions) // SUBMISSIONS_OF_A_PAGE) or 1
    for place in range(1, number + 1):
        made[addresses.submissions(place)] = partial(submissions_page, view, frame, place, number)
    head = {"title": settings.title}
    made |= data_files("data/submissions.{}".format, head, SUBMISSION_NAMES, partial(submission_rows, view))
    made |= data_files("data/outputs.{}".format, head, OUTPUT_NAMES, partial(output_rows, view))
    for submission in view.submissions:
        made[addresses.submission(submission.code)] = partial(submission_page, view, frame, submission)
    for name in view.by_submitter:
        made[addresses.submitter(name)] = partial(submitter_page, view, frame, name)
    return made


def static_text(name: str) -> str:
    """Return a file that pages load."""
    return resources.files("geval_py.board.site").joinpath("static", name).read_text(encoding="utf-8")


def challenge_archive(view: SiteView) -> bytes:
    """Pack the challenge's public files; equal files give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(view.public_files.items()):
            archive.writestr(zipfile.ZipInfo(name), Path(path).read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def challenge_page(view: SiteView, frame: Frame) -> str:
    """Show the challenge's README, and how to cite it."""
    body, cite = (rendering.markdown_html(text) for text in (view.readme, view.settings.cite))
    download = DOWNLOAD if view.public_files else ""
    return frame.page(
        "challenge", "Challenge", view=view, body=body, titled="<h1>" in body, cite=cite, download=download
    )


def submit_page(view: SiteView, frame: Frame) -> str:
    """Make the page on where and how to submit, and what."""
    where, download = rendering.markdown_html(view.settings.submit), DOWNLOAD if view.public_files else ""
    return frame.page("submit", "How to submit", view=view, where=where, download=download, repository=REPOSITORY)


# The pages of a test, and their data


def leaderboard_page(view: SiteView, frame: Frame, standings: Standings, part: Values) -> str:
    """Show a part of a leaderboard."""
    pager = partial(frame.addresses.board, standings.test, standings.phase)
    values: Values = {"standings": standings, "bar_width": site_charts.BAR_WIDTH, "pager": pager, "page": part}
    return frame.page("leaderboard", "Leaderboard", view=view, **values)


def progress_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show how the best score of a test moved."""
    return frame.page(
        "progress", "Best so far", view=view, standings=view.front_table(test), progress=progress_of(view, test)
    )


def progress_of(view: SiteView, test: str) -> site_charts.Progress:
    """Return how the best score of a test moved."""
    outputs = site_charts.disclosed_outputs(view.submissions, test)
    return site_charts.progress_of(outputs, view.front_table(test))


def parameters_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show the scores by the values of parameters."""
    standings = view.front_table(test)
    charts = site_charts.parameter_charts(site_charts.disclosed_outputs(view.submissions, test), standings)
    return frame.page("parameters", "Parameters", view=view, standings=standings, charts_shown=charts)


def compare_page(view: SiteView, frame: Frame, test: str) -> str:
    """Show the figures of the submissions for a test, of which a script puts two side by side."""
    standings = view.front_table(test)
    rows = compared_entries(view, standings)
    return frame.page(
        "compare",
        "Compare",
        view=view,
        standings=standings,
        columns=page_columns(standings),
        rows=rows[:MAX_COMPARED],
        left_out=len(rows[MAX_COMPARED:]),
    )


def compared_entries(view: SiteView, first: Standings) -> list[tuple[Entry, str]]:
    """Return the rows of the page that compares, each an entry and its phase.

    First the entries of a test's leaderboards, the given one and then the later ones first; then the best output of
    each other submission, the latest first, without a phase.
    """
    phases = [first.phase, *(phase for phase in reversed(view.settings.phase_names) if phase != first.phase)]
    tables = [view.standings[first.test, phase] for phase in phases if (first.test, phase) in view.standings]
    rows: dict[str, tuple[Entry, str]] = {}
    for table in tables:
        for entry in table.entries:
            if entry.score is not None:
                rows.setdefault(entry.code, (entry, table.phase))
    for submission in view.submissions:
        best = submission.best(first.test, first.direction)
        if best is not None:
            rows.setdefault(submission.code, (Entry(submission=submission, output=best), ""))
    return list(rows.values())


# Lists of submissions


def submissions_page(view: SiteView, frame: Frame, number: int, pages: int) -> str:
    """Show a page of the list of all submissions."""
    start = (number - 1) * SUBMISSIONS_OF_A_PAGE
    rows = listed(view, view.submissions[start : start + SUBMISSIONS_OF_A_PAGE])
    return frame.page("submissions", "Submissions", view=view, rows=rows, number=number, pages=pages)


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
    There are none for a submission that is not ranked. The scores must be disclosed already.
    """

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


# Submissions and submitters


def submission_page(view: SiteView, frame: Frame, submission: SubmissionView) -> str:
    """Show a submission: its places, its outputs for each test, and the worst lines of those that may be shown."""
    parts: list[Values] = []
    for test in view.settings.in_phase(submission.phase).tests:
        outputs = submission.outputs_for(test.name)
        shown, digits = outputs[:MAX_OUTPUTS], view.digits_at(test.name, submission.code)
        with_lines = shown[:MAX_LINE_TABLES] if test.visible and digits.score else ()
        lines = [(output, worst) for output in with_lines if (worst := view.lines_of(test, output))]
        if outputs:
            part = {"test": test, "digits": digits, "outputs": shown, "lines": lines}
            parts.append(part | {"left_out": len(outputs) - len(shown)})
    return frame.page(
        "submission",
        f"{short(submission.submitter, 60)}, {submission.code}",
        view=view,
        root="../",
        submission=submission,
        standings_of=[
            _standing(view, standings, number)
            for standings, number in view.placed.get(submission.submitter, ())
            if standings.entries[number].code == submission.code
        ][:MAX_STANDINGS],
        parts_of=parts,
        problems=submission.problems[:MAX_PROBLEMS],
    )


def _standing(view: SiteView, standings: Standings, number: int) -> Values:
    """Return an entry with the ``leader`` and the next better entry, ``above``, if these are others; and advice."""
    entry, placed = standings.entries[number], [one for one in standings.entries if one.place is not None]
    leader = placed[0] if placed and placed[0] is not entry else None
    above = next((one for one in reversed(standings.entries[:number]) if one.place is not None), None)
    is_advised = standings.phase == view.front() and 0 < (entry.place or 0) <= order.MAX_COMPARED
    return {
        "standings": standings,
        "entry": entry,
        "leader": leader,
        "above": above if above is not leader else None,
        "advice": rendering.what_it_takes(standings, entry) if is_advised else (),
    }


def submitter_page(view: SiteView, frame: Frame, name: str) -> str:
    """Show a submitter's places and submissions.

    There is a chart for each test with finite scores at two moments or more.
    """
    own, histories = view.by_submitter[name], list[Values]()
    for test in view.listed_tests:
        standings = view.front_table(test.name)
        outputs = site_charts.disclosed_outputs(own, test.name)
        if len({one.submission.arrived for one in filter(site_charts.is_drawn, outputs)}) > 1:
            histories.append({"test": test.name, "charts": site_charts.progress_of(outputs, standings).charts})
    entries = [(table, table.entries[number]) for table, number in view.placed.get(name, ())]
    return frame.page(
        "submitter",
        short(name, 60),
        view=view,
        root="../",
        name=name,
        number=len(own),
        latest=next((one for one in own if one.is_ranked), None),
        entries=entries[:MAX_STANDINGS],
        histories=histories,
        rows=listed(view, own[:MAX_LISTED]),
    )


# Tables for programs, as CSV and JSON


def data_files(
    path: Callable[[str], str],
    head: Mapping[str, Any],
    names: Sequence[str],
    rows: Callable[[], Iterable[Sequence[Any]]],
) -> Pages:
    """Return the functions that write rows as CSV and, with a head and an object per row, as JSON.

    ``path`` makes a path of an ending. In CSV, the items of lists are joined by commas, those of mappings as
    name=value.
    """

    def cell(value: object) -> object:
        if isinstance(value, Mapping):
            value = [f"{key}={item}" for key, item in value.items()]
        return ",".join(map(str, value)) if isinstance(value, list) else value

    def csv_text() -> str:
        return "".join(Table(named_columns(names), [list(map(cell, row)) for row in rows()]).csv())

    def json_text() -> str:
        return "".join(json_list_text(head, "rows", (dict(zip(names, row, strict=True)) for row in rows())))

    return {path("csv"): csv_text, path("json"): json_text}


def leaderboard_csv(standings: Standings) -> str:
    """Write a leaderboard for programs, as CSV."""
    return "".join(standings_records(standings).csv())


def leaderboard_json(view: SiteView, standings: Standings) -> str:
    """Write a leaderboard for programs, as JSON."""
    return json_text({"title": view.settings.title, **standings_document(standings)})


def record_rows(view: SiteView, test: str) -> list[list[Any]]:
    """Return the outputs that were better than all before them."""
    return [[column.value(one) for column in OF_RECORDS] for one in progress_of(view, test).records]


def submission_rows(view: SiteView) -> Iterator[list[Any]]:
    """Yield the submissions; a withdrawn one is without its description of itself."""
    for one in view.submissions:
        told: list[Any] = [one.reason, one.baseline, one.description, one.author, one.affiliation]
        told += [list(one.tags), dict(one.params), one.remark]
        if one.withdrawn:
            told = ["", one.baseline, "", "", "", [], {}, one.remark]
        yield [one.code, one.submitter, moment_text(one.arrived), one.status, *told]


def output_rows(view: SiteView) -> Iterator[list[Any]]:
    """Yield the shown figures of all outputs, a row for each metric."""
    for one in view.submissions:
        for output in one.outputs if one.is_ranked else ():
            params = {**one.params, **output.params}
            values = [one.code, one.submitter, moment_text(one.arrived), output.test, output.variant, params]
            yield from ([*values, metric, *figures] for metric, figures in output.figures.items())


# Leaderboards: rows with their bars, cut into pages


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
    told = entry.submission
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
        "bar": site_charts.bar_of(scale, *entry.output.shown),
        "links": links,
        "tags": tags,
        "params": params,
        "choices": choices,
        "submissions": len(view.by_submitter.get(told.submitter, ())),
        "size": len(escape(" ".join(words)).encode("utf-8", "backslashreplace")),
    }
