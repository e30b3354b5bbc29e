"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import select
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from geval_py.board.database.schema import ROLES, audit, jobs, submissions, submitters
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.extensions import extend, extensions
from geval_py.board.operations.receipts import find_submission
from geval_py.board.ranking.grades import grades
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.accounts import Invitation
from geval_py.board.server.context import NOT_FOUND, Visit
from geval_py.board.server.delivery import undelivered
from geval_py.board.settings import moment_of, moment_text
from geval_py.board.site.view import announcements_of
from geval_py.errors import UsageError
from geval_py.tables.table import Column, Table
from geval_py.text import natural_order, visible

HOME = "/organiser"
PEOPLE, SUBMITTED, SETTINGS = f"{HOME}/people", f"{HOME}/submissions", f"{HOME}/settings"
MAX_RESCORINGS = 5  # the latest
PAGE_ROWS = 50  # of a list
LOG = select(audit).order_by(audit.c.id.desc())
LOG_COLUMNS = ("moment", "who", "action", "subject", "detail")
# What is asked before a change of a row is made: the question, what it means, and the label of a field.
QUESTIONS = {
    "withdraw": ("Withdraw", "It disappears from the leaderboards and pages. You can undo this.", "reason"),
    "note": ("Put a remark on", "Everybody sees it; an empty one is removed.", "remark"),
    "close": (
        "Close the account",
        "Its sessions, tokens and links end at once, and so do the invitations that it made and nobody has used. "
        "Its submissions stay. You can open the account again.",
        "",
    ),
}
BACK = dict.fromkeys(("withdraw", "restore", "note"), SUBMITTED) | {
    "close": PEOPLE,
    "open": PEOPLE,
    "extend": SETTINGS,
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list: its ``rows``, of ``total`` that have the searched ``words``, sorted by a column."""

    rows: Sequence[Any]
    total: int
    words: str
    by: str
    number: int

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-self.total // PAGE_ROWS))

    def address(self, number: int = 1, by: str | None = None) -> str:
        """Return the address of another page, or of the list sorted by another column."""
        return "?" + urlencode({"q": self.words, "sort": self.by if by is None else by, "page": number})


def listed(visit: Visit, rows: Sequence[Any], *columns: str) -> Listed:
    """Cut a page out of rows that are searched in some columns, and sorted naturally by one, as the address says."""
    asked = visit.request.query_params
    words, by, page = asked.get("q", "").strip(), asked.get("sort", ""), asked.get("page", "")

    def texts(row: Any) -> list[str]:
        return [str(getattr(row, name) or "").casefold() for name in columns]

    rows = [row for row in rows if any(words.casefold() in text for text in texts(row))]
    if by in columns:
        rows = sorted(rows, key=lambda row: natural_order(texts(row)[columns.index(by)]))
    number = int(page) if page.isdecimal() and 0 < len(page) < 10 else 1
    number = max(1, min(number, -(-len(rows) // PAGE_ROWS)))
    return Listed(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], len(rows), words, by, number)


def home(visit: Visit) -> Response:
    """Show the queue, the rescorings and the announcements."""
    connection = visit.connection
    rescorings = select(jobs).where(jobs.c.kind == queue.RESCORING).order_by(jobs.c.id.desc()).limit(MAX_RESCORINGS)
    return visit.server.page(
        "organiser",
        "Organiser",
        account=visit.account,
        queue=list(queue.queue_status(connection, visit.now).lines()),
        undelivered=undelivered(connection),
        rescorings=connection.execute(rescorings).all(),
        announcements=announcements_of(connection),
    )


def submitted(visit: Visit) -> Response:
    """List the submissions, the latest first."""
    names = "code", "arrived", "state", "withdrawn", "withdrawal", "reason", "remark"
    query = select(*(submissions.c[name] for name in names), submitters.c.name.label("submitter"))
    rows = visit.connection.execute(query.join_from(submissions, submitters).order_by(submissions.c.id.desc())).all()
    shown = listed(visit, rows, "code", "submitter", "state", "reason", "withdrawal", "remark")
    return visit.server.page("organiser_submissions", "Submissions", listed=shown)


def people(visit: Visit) -> Response:
    """List the accounts."""
    everybody = accounts.all_accounts(visit.shared, closed=True)
    rows = sorted(everybody, key=lambda one: natural_order(one.label.casefold()))
    shown = listed(visit, rows, "label", "team", "role", "email", "state")
    values: dict[str, Any] = {"account": visit.account, "roles": ROLES, "now": visit.now}
    values["pending"] = sum(one.state == "invited" for one in everybody)
    return visit.server.page("organiser_people", "People", listed=shown, **values)


def settings(visit: Visit) -> Response:
    """Show the phases and the extensions of teams."""
    board, team = visit.board, visit.request.query_params.get("team", "")
    values: dict[str, Any] = {"phase": board.settings.phase_of(visit.now), "team": team}
    return visit.server.page("organiser_settings", "Settings", extensions=extensions(visit.connection), **values)


def log(visit: Visit) -> Response:
    """Show the audit log, the latest lines first."""
    shown = listed(visit, visit.connection.execute(LOG).all(), "who", "action", "subject", "detail")
    return visit.server.page("organiser_log", "Audit log", listed=shown)


def log_file(visit: Visit) -> Response:
    """Return the whole audit log as CSV."""
    rows = ((moment_text(row.moment), *row[2:]) for row in visit.connection.execute(LOG).all())
    return _download("log.csv", Table([Column(name=name) for name in LOG_COLUMNS], rows))


def grades_file(visit: Visit) -> Response:
    """Return the grades of a test and phase as CSV."""
    asked = visit.request.query_params
    table = grades(visit.board, asked.get("test") or None, phase=asked.get("phase") or None, now=visit.now)
    return _download("grades.csv", table)


def _download(name: str, table: Table) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response("".join(table.csv()), media_type="text/csv", headers=headers)


def alike(visit: Visit) -> Response:
    """Show the outputs of different submitters that are much alike."""
    pairs = list(likenesses(visit.connection, visit.board.settings))
    return visit.server.page("alike", "Much alike", pairs=pairs)


def invite(visit: Visit) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    if label := visit.form["again"]:
        own = accounts.account_named(visit.shared, label)
        return invited(visit, accounts.new_link(visit.shared, own.id, visit.now), PEOPLE)
    values: dict[str, Any] = {key: visit.form[key] for key in ("name", "email", "role", "team")}
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
        raise accounts.RefusedError(reason="no pending invitation has an e-mail address")
    for one in people:
        visit.log("invited", one.label, "again, by mail" if has_mail else "again")
        if has_mail:
            notices.mail_invitation(shared, one.id, one.email, address, visit.now)
    if has_mail:
        return None
    links = [accounts.new_link(shared, one.id, visit.now) for one in people]
    return _download("links.csv", accounts.links_table(links, address))


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
    if name in QUESTIONS and form["sure"] != "yes":
        told: dict[str, Any] = {"hidden": dict(form)}
        if name == "close":
            told["subject"] = accounts.account_named(visit.shared, form["name"]).label
        else:
            row = find_submission(connection, subject)
            told |= {"subject": row.code, "remark": row.remark}
        return visit.server.page("confirm", "Confirm", 200, change=name, question=QUESTIONS[name], back=back, **told)
    match name:
        case "announce":
            subject, detail = str(notices.announce(board, form["text"], now)), form["text"]
        case "take-back":
            subject = form["number"]
            notices.take_back(board, int(subject) if subject.isdecimal() and len(subject) < 10 else 0)
        case "withdraw":
            detail = form["reason"]
            operations.withdraw(board, subject, detail, now)
        case "restore":
            operations.restore(board, subject, now)
        case "extend":
            subject, more, sure = form["team"], form["more"] or "0", form["sure"] == "yes"
            if not more.isdecimal() or len(more) > 9:
                raise UsageError(message=f"`{visible(more)}` is no number of submissions")
            try:
                until = moment_of(form["until"]) if form["until"] else None
            except ValueError as error:
                raise UsageError(message=str(error)) from None
            values = {"phase": form["phase"], "reason": form["reason"]}
            detail = str(extend(board, subject, until=until, more=int(more), **values, now=now, confirmed=sure))
        case "note":
            detail = form["remark"]
            operations.note(board, subject, detail)
        case "close":
            account = accounts.account_named(visit.shared, form["name"])
            if account.id == visit.account.id:
                raise accounts.RefusedError(reason="you cannot close your own account here")
            accounts.close(visit.shared, account.id, now)
            subject = account.label
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
