"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import Row, select
from starlette.responses import RedirectResponse, Response

from geval_py.board.database.schema import Submissions, Submitters, audit, rescorings, submissions, submitters
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.extensions import extend, extensions
from geval_py.board.people import accounts
from geval_py.board.people.accounts import Invitation, RefusedError
from geval_py.board.people.schema import ROLES, account_log
from geval_py.board.people.teams import change_team, submitter_names
from geval_py.board.ranking.grades import grades
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import queue
from geval_py.board.server.context import ACCOUNTS, BOARD, Visit, download
from geval_py.board.server.delivery import undelivered
from geval_py.board.settings import moment_of, moment_text
from geval_py.board.site.view import announcements_of
from geval_py.errors import UsageError
from geval_py.tables.table import plain_table
from geval_py.text import natural_order, visible, words

HOME = "/organiser"
PEOPLE, SUBMITTED, SETTINGS = f"{HOME}/people", f"{HOME}/submissions", f"{HOME}/settings"
MAX_RESCORINGS = 5  # the latest
PAGE_ROWS = 50  # of a list
LOG_COLUMNS = words("moment who action subject detail")


def listed(visit: Visit, rows: Sequence[Any], *columns: str) -> dict[str, Any]:
    """Return a page of the rows, searched and sorted by the query parameters q, sort and page.

    It has the ``rows``, of ``total`` that have the searched ``words``, and an ``address`` of other pages.
    """
    asked = visit.request.query_params
    words, by, page = asked.get("q", "").strip(), asked.get("sort", ""), asked.get("page", "")

    def text(row: Any, name: str) -> str:
        return str(getattr(row, name) or "").casefold()

    rows = [row for row in rows if any(words.casefold() in text(row, name) for name in columns)]
    if by in columns:
        rows.sort(key=lambda row: natural_order(text(row, by)))
    parts = [rows[start : start + PAGE_ROWS] for start in range(0, len(rows), PAGE_ROWS)] or [[]]
    number = min(number_in(page) or 1, len(parts))
    told = {"rows": parts[number - 1], "total": len(rows), "words": words, "by": by, "number": number}
    return told | {
        "pages": len(parts),
        "address": lambda n=1, by=by: f"?{urlencode({'q': words, 'sort': by, 'page': n})}",
    }


def number_in(text: str) -> int | None:
    """Return a whole number that a form or an address has; None for anything else."""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def home(visit: Visit) -> Response:
    """Show the queue, the rescorings and the announcements."""
    connection = visit.connection
    asked = select(rescorings).order_by(rescorings.c.id.desc()).limit(MAX_RESCORINGS)
    return visit.server.page(
        "organiser",
        "Organiser",
        account=visit.account,
        error="\n".join(fault.error for fault in visit.server.live.faults.values()),
        queue=queue.queue_status(connection, visit.now),
        undelivered=undelivered(connection),
        rescorings=connection.execute(asked),
        announcements=announcements_of(connection),
    )


def submitted(visit: Visit) -> Response:
    """List the submissions, the latest first."""
    names = words("code arrived state withdrawn withdrawal reason remark")
    query = select(*(Submissions[name] for name in names), Submitters.name.label("submitter"))
    rows = visit.connection.execute(
        query.join_from(submissions, submitters).where(~Submissions.trial).order_by(Submissions.id.desc())
    ).all()
    shown = listed(visit, rows, "code", "submitter", "state", "reason", "withdrawal", "remark")
    return visit.server.page("organiser_submissions", "Submissions", listed=shown)


def people(visit: Visit) -> Response:
    """List the accounts."""
    everybody = accounts.all_accounts(visit.people, closed=True)
    rows = sorted(everybody, key=lambda one: natural_order(one.label.casefold()))
    shown = listed(visit, rows, "label", "team", "role", "email", "state")
    values = {"account": visit.account, "roles": ROLES, "now": visit.now, "everybody": everybody}
    return visit.server.page("organiser_people", "People", 200, listed=shown, **values)


def settings(visit: Visit) -> Response:
    """Show the phases and the extensions of teams."""
    values = {"phase": visit.board.settings.phase_of(visit.now), "team": visit.request.query_params.get("team", "")}
    return visit.server.page("organiser_settings", "Settings", 200, extensions=extensions(visit.connection), **values)


def log_lines(visit: Visit) -> list[Row[Any]]:
    """Return the lines of the audit logs of the board and of its accounts, the latest first."""
    columns = words("moment who action subject detail")
    of_board = visit.connection.execute(select(*(audit.c[name] for name in columns)).order_by(audit.c.id))
    log = account_log.c
    query = select(*(log[name] for name in columns)).where(log.board == visit.people.board)
    lines = [*of_board, *visit.people.execute(query.order_by(log.id))]
    return sorted(lines, key=lambda line: line.moment)[::-1]


def log(visit: Visit) -> Response:
    """Show the audit log, the latest lines first."""
    return visit.server.page("organiser_log", "Audit log", listed=listed(visit, log_lines(visit), *LOG_COLUMNS[1:]))


def log_file(visit: Visit) -> Response:
    """Return the whole audit log as CSV."""
    lines = ((moment_text(line.moment), *line[1:]) for line in log_lines(visit))
    return download(plain_table(LOG_COLUMNS, lines), "log.csv")


def grades_file(visit: Visit) -> Response:
    """Return the grades of a test and phase as CSV."""
    asked = visit.request.query_params
    table = grades(visit.board, asked.get("test") or None, phase=asked.get("phase") or None, now=visit.now)
    return download(table, "grades.csv")


def alike(visit: Visit) -> Response:
    """Show the outputs of different submitters that are much alike."""
    return visit.server.page("alike", "Much alike", pairs=list(likenesses(visit.connection, visit.board.settings)))


def invite(visit: Visit) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    if label := visit.form["again"]:
        person = accounts.account_named(visit.people, label)
        secret = accounts.new_link(visit.people, person, visit.now, made_by=visit.account.id)
        return invited(visit, Invitation(secret, person, "again"), PEOPLE)
    values: dict[str, Any] = {key: visit.form[key] for key in words("name email role team")}
    others = submitter_names(visit.connection)
    made = accounts.invite(visit.people, now=visit.now, by=visit.account, others=others, **values)
    return invited(visit, made, PEOPLE)


def pending_people(visit: Visit) -> list[accounts.Account]:
    """Return those who were invited and never signed in, or the one that the form names."""
    label = visit.form["name"]
    return [one for one in accounts.all_accounts(visit.people) if one.state == "invited" and label in ("", one.label)]


def mail_again(visit: Visit) -> None:
    """Let the worker mail new links to a person, or to all who never signed in."""
    people = [one for one in pending_people(visit) if one.email and visit.board.settings.server.mail]
    if not people:
        raise RefusedError("no pending invitation has an e-mail address")
    address = visit.server.own_address(visit.request, "")
    for one in people:
        visit.log("invited", one.label, "again, by mail")
        notices.mail_invitation(visit.connection, one.id, visit.account.id, address, visit.now)


def links_file(visit: Visit) -> Response:
    """Return new links for all who never signed in as a CSV file."""
    links = []
    for one in pending_people(visit):
        visit.log("invited", one.label, "again")
        secret = accounts.new_link(visit.people, one, visit.now, made_by=visit.account.id)
        links.append(Invitation(secret, one))
    return download(accounts.links_table(links, visit.server.own_address(visit.request, "")), "links.csv")


def invited(visit: Visit, made: Invitation, back: str = "") -> Response:
    """Show the link of an invitation on a page that leads ``back``."""
    visit.log("invited", made.account.label, made.detail)
    link = visit.server.own_address(visit.request, f"/invitation/{made.secret}")
    note = made.note.replace("\n ", ";") if back else ""
    return visit.server.page("secret", "Invitation", secret=link, kind="link", back=back.removeprefix("/"), note=note)


# Changes: each returns the subject and the detail of its line in the audit log.


def need_answer(form: Mapping[str, str]) -> None:
    """Raise UsageError unless the box beside the button is checked."""
    if form["sure"] != "yes":
        raise UsageError(message="check the box beside the button, to confirm what you change")


def announce(visit: Visit) -> tuple[str, str]:
    """Announce something to everybody, and mail it to all members if the box is checked."""
    members = [one.id for one in accounts.all_accounts(visit.people)] if visit.form["mail"] == "yes" else []
    return str(notices.announce(visit.connection, visit.form["text"], visit.now, members)), visit.form["text"]


def take_back(visit: Visit) -> tuple[str, str]:
    """Take back an announcement."""
    notices.take_back(visit.connection, number_in(visit.form["number"]) or 0)
    return visit.form["number"], ""


def withdraw(visit: Visit) -> tuple[str, str]:
    """Withdraw a submission."""
    code, reason = visit.form["code"], visit.form["reason"]
    operations.withdraw(visit.connection, visit.board.settings, code, reason, visit.now)
    return code, reason


def restore(visit: Visit) -> tuple[str, str]:
    """Undo the withdrawal of a submission."""
    operations.restore(visit.connection, visit.form["code"])
    return visit.form["code"], ""


def note(visit: Visit) -> tuple[str, str]:
    """Put a remark on a submission."""
    operations.note(visit.connection, visit.form["code"], visit.form["remark"])
    return visit.form["code"], visit.form["remark"]


def extend_team(visit: Visit) -> tuple[str, str]:
    """Extend a phase for a team."""
    form, more, settings = visit.form, number_in(visit.form["more"] or "0"), visit.board.settings
    if more is None:
        raise UsageError(message=f"`{visible(form['more'])}` is no number of submissions")
    try:
        until = moment_of(form["until"]) if form["until"] else None
    except ValueError as error:
        raise UsageError(message=str(error)) from None
    values: dict[str, Any] = {"phase": form["phase"], "reason": form["reason"], "confirmed": form["sure"] == "yes"}
    values["teams"] = accounts.teams_of(visit.people)
    extension = extend(visit.connection, settings, form["team"], until=until, more=more, now=visit.now, **values)
    return form["team"], str(extension)


def close(visit: Visit) -> tuple[str, str]:
    """Close an account."""
    account = accounts.account_named(visit.people, visit.form["name"])
    if account.id == visit.account.id:
        raise RefusedError("you cannot close your own account here")
    accounts.close(visit.people, account, visit.now)
    return account.label, ""


def reopen(visit: Visit) -> tuple[str, str]:
    """Open an account again."""
    return accounts.reopen(visit.people, visit.form["name"]), ""


def move(visit: Visit) -> tuple[str, str]:
    """Move an account to another team."""
    account = accounts.account_named(visit.people, visit.form["name"])
    accounts.move(visit.people, account, visit.form["team"], visit.now, submitter_names(visit.connection))
    return account.label, visit.form["team"]


def rename(visit: Visit) -> tuple[str, str]:
    """Rename a team."""
    change_team(visit.connection, visit.server.accounts, visit.form["team"], visit.form["into"])
    return visit.form["team"], visit.form["into"]


def merge(visit: Visit) -> tuple[str, str]:
    """Merge a team into another one."""
    names = visit.form["team"], visit.form["into"]
    change_team(visit.connection, visit.server.accounts, *names, merge=True)
    return names


def try_again(visit: Visit) -> tuple[str, str]:
    """Put failed uploads back into the queue."""
    return str(queue.try_again(visit.connection, visit.now)), ""


def rescore(visit: Visit) -> tuple[str, str]:
    """Rescore what is out of date, or show what would change."""
    dry = visit.form["dry"] == "yes"
    number = queue.ask_to_rescore(visit.connection, visit.account.name, visit.now, dry=dry)
    return str(number), "dry run" if dry else ""


class Action(NamedTuple):
    """What a form changes: a store, from a page that is shown again, with a box to check if it ``asks``."""

    run: Callable[[Visit], tuple[str, str]]
    changes: str
    back: str
    asks: bool = False


ACTIONS = {
    "announce": Action(announce, BOARD, HOME),
    "take-back": Action(take_back, BOARD, HOME),
    "try-again": Action(try_again, BOARD, HOME),
    "rescore": Action(rescore, BOARD, HOME),
    "withdraw": Action(withdraw, BOARD, SUBMITTED, asks=True),
    "restore": Action(restore, BOARD, SUBMITTED),
    "note": Action(note, BOARD, SUBMITTED),
    "extend": Action(extend_team, BOARD, SETTINGS),
    "close": Action(close, ACCOUNTS, PEOPLE, asks=True),
    "open": Action(reopen, ACCOUNTS, PEOPLE),
    "move": Action(move, ACCOUNTS, PEOPLE, asks=True),
    "rename": Action(rename, BOARD, PEOPLE),
    "merge": Action(merge, BOARD, PEOPLE, asks=True),
}


def act(name: str, action: Action, visit: Visit) -> Response:
    """Do what a form asks for, and write it into the audit log."""
    if action.asks:
        need_answer(visit.form)
    visit.log(name, *action.run(visit))
    return RedirectResponse(visit.server.path + action.back, 303)


PAGES = {
    HOME: home,
    SUBMITTED: submitted,
    PEOPLE: people,
    SETTINGS: settings,
    f"{HOME}/log": log,
    f"{HOME}/log.csv": log_file,
    f"{HOME}/grades.csv": grades_file,
    f"{HOME}/alike": alike,
}
CHANGES: dict[str, tuple[Callable[[Visit], Response | None], str]] = {
    f"{HOME}/invite": (invite, ACCOUNTS),
    f"{HOME}/invite-again": (mail_again, BOARD),
    f"{HOME}/links.csv": (links_file, ACCOUNTS),
}
CHANGES |= {f"{HOME}/{name}": (partial(act, name, action), action.changes) for name, action in ACTIONS.items()}
