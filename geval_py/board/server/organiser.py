"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Row, select
from starlette.responses import Response

from geval_py.board.database.schema import FAILED, Submissions, audit, pick, rescorings
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.extensions import extend, extensions
from geval_py.board.operations.receipts import SUBMISSIONS
from geval_py.board.people import accounts, teams
from geval_py.board.people.accounts import A, Invitation, RefusedError
from geval_py.board.people.schema import ORGANISER, ROLES, account_log
from geval_py.board.people.teams import submitter_names
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.ranking.grades import grades
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import queue
from geval_py.board.server.context import ACCOUNTS, BOARD, NEITHER, Visit, download, visited
from geval_py.board.settings import moment_of, moment_text
from geval_py.board.site.pages import public_scores
from geval_py.board.site.view import announcements_of
from geval_py.errors import UsageError
from geval_py.tables.table import plain_table
from geval_py.text import natural_order, visible, words

HOME, PEOPLE, SUBMITTED, SETTINGS = words("/organiser /organiser/people /organiser/submissions /organiser/settings")
MAX_RESCORINGS = 5  # the latest
PAGE_ROWS = 50  # of a list
LOG = "moment who action subject detail"  # columns


def listed(visit: Visit, rows: Sequence[Any], *columns: str) -> dict[str, Any]:
    """Return a page of the rows that have what the query parameter q searches for.

    It has the ``rows``, of ``total`` that have the searched ``words``, and an ``address`` of other pages.
    """
    query, url = visit.request.query_params, visit.request.url
    searched = query.get("q", "").strip()
    text = searched.casefold()
    rows = [row for row in rows if any(text in str(getattr(row, name) or "").casefold() for name in columns)]
    pages = -(-len(rows) // PAGE_ROWS) or 1
    number = min(number_in(query.get("page") or "1") or 1, pages)
    return {
        "rows": rows[PAGE_ROWS * (number - 1) : PAGE_ROWS * number],
        "total": len(rows),
        "words": searched,
        "number": number,
        "pages": pages,
        "address": lambda page: f"?{url.include_query_params(page=page).query}",
    }


def number_in(text: str) -> int:
    """Return a whole number that a form or an address has; raises UsageError for anything else."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UsageError(f"`{visible(text)}` is not a whole number")
    return int(text)


def home(visit: Visit) -> Response:
    """Show the queue, the rescorings and the announcements."""
    connection = visit.connection
    query = select(rescorings).order_by(rescorings.c.id.desc()).limit(MAX_RESCORINGS)
    return visit.page(
        "organiser",
        "Organiser",
        error="\n".join(fault.error for fault in visit.server.live.faults.values()),
        queue=queue.queue_status(connection, visit.now),
        rescorings=connection.execute(query),
        announcements=announcements_of(connection),
    )


def submitted(visit: Visit) -> Response:
    """List the submissions, the latest first."""
    rows = visit.connection.execute(SUBMISSIONS.where(~Submissions.trial).order_by(Submissions.id.desc())).all()
    page = listed(visit, rows, *words("code submitter state reason withdrawal remark"))
    return visit.page("organiser_submissions", "Submissions", listed=page, scores=scores_of(visit, page["rows"]))


def scores_of(visit: Visit, rows: Sequence[Row[Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what the site shows of submissions, by their codes: scores, and places in a table."""
    codes = [row.code for row in rows if row.code]
    with disclosed(visit.board, visit.now) as connection:
        return public_scores(connection, visit.board.settings, codes, visit.now)


def people(visit: Visit) -> Response:
    """List the accounts."""
    everybody = accounts.all_accounts(visit.people, closed=True)
    by_name = sorted(everybody, key=lambda account: natural_order(account.label.casefold()))
    page = listed(visit, by_name, *words("label team role email state"))
    return visit.page("organiser_people", "People", listed=page, roles=ROLES, now=visit.now, everybody=everybody)


def log_lines(visit: Visit) -> list[Row[Any]]:
    """Return the lines of the audit logs of the board and of its accounts, the latest first."""
    board_log, people_log = (select(*pick(table.c, LOG)).order_by(table.c.id) for table in (audit, account_log))
    people_log = people_log.where(account_log.c.board == visit.people.board)
    lines = [*visit.connection.execute(board_log), *visit.people.execute(people_log)]
    return sorted(lines, key=lambda line: line.moment)[::-1]


def log_file(visit: Visit) -> Response:
    """Return the whole audit log as CSV."""
    lines = ((moment_text(line.moment), *line[1:]) for line in log_lines(visit))
    return download(plain_table(words(LOG), lines).csv(), "log.csv")


# Invitations


def invite(visit: Visit) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    if label := visit.form["again"]:
        return invited(visit, link_again(visit, accounts.account_named(visit.people, label)))
    values: dict[str, Any] = {key: visit.form[key] for key in words("name email role team")}
    others = submitter_names(visit.connection)
    made = accounts.invite(visit.people, now=visit.now, by=visit.account.id, others=others, **values)
    return invited(visit, made)


def link_again(visit: Visit, account: accounts.Account) -> Invitation:
    """Make a new link for an account."""
    secret = accounts.new_link(visit.people, visit.now, account, made_by=visit.account.id)
    return Invitation(secret, account, "again")


def invited(visit: Visit, made: Invitation) -> Response:
    """Show the link of an invitation and, to an organiser, a note on the account."""
    visit.log("invited", made.account.label, made.detail)
    note = made.note.replace("\n ", ";") if visit.account.role == ORGANISER else ""
    link = f"{visit.server.url}/invitation/{made.secret}"
    return visit.page("secret", "Invitation", secret=link, kind="link", note=note)


def mail_again(visit: Visit, name: str) -> None:
    """Let the worker mail new links to a person, or to all who never signed in."""
    pending = accounts.all_accounts(visit.people, A.joined.is_(None), A.email != "")
    chosen = [account for account in pending if name in ("", account.label)]
    if not chosen or visit.board.settings.server.mail is None:
        raise RefusedError("no pending invitation has an e-mail address")
    for account in chosen:
        event = {"by": visit.account.id, "address": visit.server.url}
        notices.notify(visit.connection, account.id, event, visit.now)


def links_file(visit: Visit) -> Response:
    """Return new links for all who never signed in as a CSV file."""
    links = [link_again(visit, account) for account in accounts.all_accounts(visit.people, A.joined.is_(None))]
    return download(accounts.links_table(links, visit.server.url).csv(), "links.csv")


# Other changes


def announce(visit: Visit, text: str) -> None:
    """Announce something to everybody, and mail it to all members if the box is checked."""
    notices.announce(visit.connection, visit.board, text, visit.now, mail=visit.form["mail"] == "yes")


def extend_team(visit: Visit) -> None:
    """Extend a phase for a team."""
    form = visit.form
    try:
        until = moment_of(form["until"]) if form["until"] else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    made = extend(
        visit.connection,
        visit.board,
        form["team"],
        phase=form["phase"],
        until=until,
        more=number_in(form["more"] or "0"),
        reason=form["reason"],
        now=visit.now,
        confirmed=form["sure"] == "yes",
    )
    visit.log("extend", form["team"], str(made))


def reopen(visit: Visit, name: str, email: str) -> None:
    """Open an account again, perhaps with another address."""
    account = accounts.account_named(visit.people, name, closed=True)
    accounts.reopen(visit.people, account, visit.now, email=email)


def rename(visit: Visit) -> None:
    """Rename a team, which writes the line of the audit log."""
    names = visit.form["team"], visit.form["into"]
    teams.rename(visit.board, visit.server.accounts, *names, visit.now, who=visit.account.label)


# What a change does with the fields of its form, which are its line in the audit log, too.
route = partial(visited, role=ORGANISER)
ROUTES = [
    route(HOME, home),
    route(SUBMITTED, submitted),
    route(PEOPLE, people),
    route(
        SETTINGS,
        lambda visit: visit.page(
            "organiser_settings",
            "Settings",
            extensions=extensions(visit.connection),
            phase=visit.board.settings.phase_of(visit.now),
            team=visit.request.query_params.get("team", ""),
        ),
    ),
    route(
        "/organiser/log",
        lambda visit: visit.page(
            "organiser_log", "Audit log", listed=listed(visit, log_lines(visit), *words(LOG)[1:])
        ),
    ),
    route("/organiser/log.csv", log_file),
    route("/organiser/grades.csv", lambda visit: download(grades(visit.board, now=visit.now).csv(), "grades.csv")),
    route(
        "/organiser/alike",
        lambda visit: visit.page(
            "alike", "Much alike", pairs=list(likenesses(visit.connection, visit.board.settings))
        ),
    ),
    route("/organiser/invite", invite, ACCOUNTS),
    route("/organiser/invite-again", mail_again, BOARD, PEOPLE, "name"),
    route("/organiser/links.csv", links_file, ACCOUNTS, fields=""),
    route("/organiser/announce", announce, BOARD, HOME, "text"),
    route(
        "/organiser/take-back",
        lambda visit, number: notices.take_back(visit.connection, number_in(number)),
        BOARD,
        HOME,
        "number",
    ),
    route(
        "/organiser/try-again",
        lambda visit: queue.try_again(visit.connection, visit.now, Submissions.state == FAILED),
        BOARD,
        HOME,
        "",
    ),
    route(
        "/organiser/rescore",
        lambda visit, dry: queue.ask_to_rescore(visit.connection, visit.account.name, visit.now, dry=dry != ""),
        BOARD,
        HOME,
        "dry",
    ),
    route(
        "/organiser/withdraw",
        lambda visit, code, reason: operations.withdraw(
            visit.connection, visit.board.settings, code, reason, visit.now
        ),
        BOARD,
        SUBMITTED,
        "code reason",
        asks=True,
    ),
    route(
        "/organiser/restore",
        lambda visit, code: operations.restore(visit.connection, code),
        BOARD,
        SUBMITTED,
        "code",
    ),
    route(
        "/organiser/note",
        lambda visit, code, remark: operations.note(visit.connection, code, remark),
        BOARD,
        SUBMITTED,
        "code remark",
    ),
    route("/organiser/extend", extend_team, BOARD, SETTINGS),
    route(
        "/organiser/close",
        lambda visit, name: accounts.close(visit.people, accounts.account_named(visit.people, name), visit.now),
        ACCOUNTS,
        PEOPLE,
        "name",
        asks=True,
    ),
    route("/organiser/open", reopen, ACCOUNTS, PEOPLE, "name email"),
    route(
        "/organiser/move",
        lambda visit, name, team: accounts.move(
            visit.people,
            accounts.account_named(visit.people, name),
            team,
            visit.now,
            submitter_names(visit.connection),
        ),
        ACCOUNTS,
        PEOPLE,
        "name team",
        asks=True,
    ),
    route("/organiser/rename", rename, NEITHER, PEOPLE),
]
