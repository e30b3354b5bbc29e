"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import Row, select
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from geval_py.board.database.schema import ROLES, Jobs, Submissions, Submitters, audit, jobs, submissions, submitters
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import find_submission
from geval_py.board.operations.teams import extend, extensions
from geval_py.board.ranking.grades import grades
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.accounts import Invitation
from geval_py.board.server.context import NOT_FOUND, Visit, download
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
LOG = select(audit).order_by(audit.c.id.desc())
LOG_COLUMNS = words("moment who action subject detail")
ASKED = words("withdraw note close move merge")  # before the change is made
BACK = dict.fromkeys(("withdraw", "restore", "note"), SUBMITTED) | {"extend": SETTINGS}
BACK |= dict.fromkeys(words("close open move merge rename"), PEOPLE)


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
    rescorings = select(jobs).where(Jobs.kind == queue.RESCORING).order_by(Jobs.id.desc()).limit(MAX_RESCORINGS)
    return visit.server.page(
        "organiser",
        "Organiser",
        account=visit.account,
        error="\n".join(fault.error for fault in visit.server.live.faults.values()),
        queue=queue.queue_status(connection, visit.now),
        undelivered=undelivered(connection),
        rescorings=connection.execute(rescorings),
        announcements=announcements_of(connection),
    )


def submitted(visit: Visit) -> Response:
    """List the submissions, the latest first."""
    names = words("code arrived state withdrawn withdrawal reason remark")
    query = select(*(Submissions[name] for name in names), Submitters.name.label("submitter"))
    rows = visit.connection.execute(query.join_from(submissions, submitters).order_by(Submissions.id.desc())).all()
    shown = listed(visit, rows, "code", "submitter", "state", "reason", "withdrawal", "remark")
    return visit.server.page("organiser_submissions", "Submissions", listed=shown)


def people(visit: Visit) -> Response:
    """List the accounts."""
    everybody = accounts.all_accounts(visit.shared, closed=True)
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
    lines = [line for connection in {visit.connection, visit.shared} for line in connection.execute(LOG)]
    return sorted(lines, key=lambda line: line.moment, reverse=True)


def log(visit: Visit) -> Response:
    """Show the audit log, the latest lines first."""
    return visit.server.page("organiser_log", "Audit log", listed=listed(visit, log_lines(visit), *LOG_COLUMNS[1:]))


def log_file(visit: Visit) -> Response:
    """Return the whole audit log as CSV."""
    lines = ((moment_text(line.moment), *line[2:]) for line in log_lines(visit))
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
        own = accounts.account_named(visit.shared, label)
        return invited(visit, accounts.new_link(visit.shared, own.id, visit.now), PEOPLE)
    values: dict[str, Any] = {key: visit.form[key] for key in words("name email role team")}
    values |= {"by": visit.person, "change": visit.form["update"] == "yes"}
    return invited(visit, accounts.invite(visit.shared, now=visit.now, **values), PEOPLE)


def invite_again(visit: Visit) -> Response | None:
    """Send new links to a person, or to all who never signed in: by mail or, without it, as a CSV file."""
    shared, label = visit.shared, visit.form["name"]
    front = visit.server.front
    has_mail, address = front.board().settings.server.mail is not None, front.own_address(visit.request, "")
    pending = [one for one in accounts.all_accounts(shared) if one.state == "invited" and label in ("", one.label)]
    people = [one for one in pending if one.email or not has_mail]
    if not people:
        raise accounts.RefusedError("no pending invitation has an e-mail address")
    for one in people:
        visit.log("invited", one.label, "again, by mail" if has_mail else "again")
        if has_mail:
            notices.mail_invitation(shared, one.id, one.email, address, visit.now)
    if has_mail:
        return None
    links = [accounts.new_link(shared, one.id, visit.now) for one in people]
    return download(accounts.links_table(links, address), "links.csv")


def invited(visit: Visit, made: Invitation, back: str = "") -> Response:
    """Show the link of an invitation on a page that leads ``back``."""
    visit.log("invited", made.account.label, made.detail)
    link = visit.server.front.own_address(visit.request, f"/invitation/{made.secret}")
    note = made.note.replace("\n ", ";") if back else ""
    return visit.server.page("secret", "Invitation", secret=link, kind="link", back=back.removeprefix("/"), note=note)


def change(visit: Visit) -> Response:
    """Change what a form of the organiser's pages asks for; its line of the audit log has a subject and a detail.

    A change of a row is made after a question.
    """
    board, connection, form, now = visit.board, visit.connection, visit.form, visit.now
    subject, detail = form["code"], ""
    name = visit.request.path_params["change"]
    back = BACK.get(name, HOME)
    if name in ASKED and form["sure"] != "yes":
        remark = ""
        if name in ("close", "move"):
            subject = accounts.account_named(visit.shared, form["name"]).label
        elif name == "merge":
            subject = f"{form['team']} into {form['into']}"
        else:
            row = find_submission(connection, subject)
            subject, remark = row.code, row.remark
        return visit.ask(f"organiser/{name}", back, subject, remark)
    match name:
        case "announce":
            subject, detail = str(notices.announce(board, form["text"], now)), form["text"]
        case "take-back":
            subject = form["number"]
            notices.take_back(board, number_in(subject) or 0)
        case "withdraw":
            detail = form["reason"]
            operations.withdraw(board, subject, detail, now)
        case "restore":
            operations.restore(board, subject, now)
        case "extend":
            subject, more, sure = form["team"], number_in(form["more"] or "0"), form["sure"] == "yes"
            if more is None:
                raise UsageError(message=f"`{visible(form['more'])}` is no number of submissions")
            try:
                until = moment_of(form["until"]) if form["until"] else None
            except ValueError as error:
                raise UsageError(message=str(error)) from None
            values = {"phase": form["phase"], "reason": form["reason"]}
            detail = str(extend(board, subject, until=until, more=more, **values, now=now, confirmed=sure))
        case "note":
            detail = form["remark"]
            operations.note(board, subject, detail)
        case "close":
            account = accounts.account_named(visit.shared, form["name"])
            if account.id == visit.account.id:
                raise accounts.RefusedError("you cannot close your own account here")
            accounts.close(visit.shared, account.id, now)
            subject = account.label
        case "move":
            account, detail = accounts.account_named(visit.shared, form["name"]), form["team"]
            accounts.move(visit.shared, account, detail)
            subject = account.label
        case "rename" | "merge":
            subject, detail, front = form["team"], form["into"], visit.server.front
            boards = [one.board() for one in (front, *front.boards)]
            accounts.change_team(boards, subject, detail, now, merge=name == "merge")
        case "open":
            subject = accounts.reopen(visit.shared, form["name"])
        case "try-again":
            subject = str(queue.try_again(connection, now))
        case "rescore":
            dry = form["dry"] == "yes"
            subject = str(queue.ask_to_rescore(connection, visit.account.name, now, dry=dry))
            detail = "dry run" if dry else ""
        case _:
            raise HTTPException(404, NOT_FOUND)
    visit.log(name, subject, detail)
    return RedirectResponse(visit.server.path + back, 303)


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
CHANGES: dict[str, Callable[[Visit], Response | None]] = {
    f"{HOME}/invite-again": invite_again,
    f"{HOME}/invite": invite,
    f"{HOME}/{{change}}": change,
}
