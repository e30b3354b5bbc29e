"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from starlette.exceptions import HTTPException
from starlette.responses import Response

from geval_py.board.database.schema import ROLES, audit, jobs, submissions
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import SUBMISSIONS
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.accounts import Invitation
from geval_py.board.server.context import NOT_FOUND, Visit
from geval_py.board.server.delivery import undelivered
from geval_py.board.site.view import announcements_of

HOME = "/organiser"
MAX_RESCORINGS = 5  # the latest
MAX_LISTED = 200  # submissions, and lines of the audit log, the latest


def home(visit: Visit) -> Response:
    """Show the queue, the phases, announcements, submissions and accounts."""
    connection = visit.connection
    rescorings = select(jobs).where(jobs.c.kind == queue.RESCORING).order_by(jobs.c.id.desc()).limit(MAX_RESCORINGS)
    latest = SUBMISSIONS.order_by(submissions.c.id.desc()).limit(MAX_LISTED)
    return visit.server.page(
        "organiser",
        "Organiser",
        account=visit.account,
        queue=list(queue.queue_status(connection, visit.now).lines()),
        undelivered=undelivered(connection),
        phase=visit.board.settings.phase_of(visit.now),
        rescorings=connection.execute(rescorings).all(),
        announcements=announcements_of(connection),
        submissions=connection.execute(latest).all(),
        accounts=accounts.all_accounts(connection, closed=True),
        roles=ROLES,
    )


def log(visit: Visit) -> Response:
    """Show the latest lines of the audit log."""
    latest = select(audit).order_by(audit.c.id.desc()).limit(MAX_LISTED)
    return visit.server.page("audit", "Audit log", lines=visit.connection.execute(latest).all())


def alike(visit: Visit) -> Response:
    """Show the outputs of different submitters that are much alike."""
    pairs = list(likenesses(visit.connection, visit.board.settings))
    return visit.server.page("alike", "Much alike", pairs=pairs)


def invite(visit: Visit) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    values: dict[str, Any] = {key: visit.form[key] for key in ("name", "email", "role", "team")}
    values |= {"by": visit.account, "change": visit.form["update"] == "yes"}
    return invited(visit, accounts.invite(visit.connection, now=visit.now, **values), HOME)


def invited(visit: Visit, made: Invitation, back: str = "") -> Response:
    """Show the link of an invitation on a page that leads ``back``."""
    visit.log("invited", made.account.label, made.detail)
    link = visit.server.own_address(visit.request, f"/invitation/{made.secret}")
    note = made.note.replace("\n ", ";") if back else ""
    return visit.server.page("secret", "Invitation", secret=link, kind="link", back=back.removeprefix("/"), note=note)


def change(visit: Visit) -> Response | None:
    """Change what a form of the organiser's page asks for; its line of the audit log has a subject and a detail."""
    board, connection, form, now = visit.board, visit.connection, visit.form, visit.now
    subject, detail = form["code"], ""
    match name := visit.request.path_params["change"]:
        case "announce":
            subject, detail = str(notices.announce(board, form["text"], now)), form["text"]
        case "take-back":
            subject = form["number"]
            notices.take_back(board, int(subject) if subject.isdecimal() and len(subject) < 10 else 0)
        case "withdraw":
            detail = form["reason"]
            operations.withdraw(board, subject, detail, now)
        case "note":
            detail = form["remark"]
            operations.note(board, subject, detail)
        case "close":
            account = accounts.account_named(connection, form["name"])
            if account.id == visit.account.id:
                raise accounts.RefusedError(reason="you cannot close your own account here")
            if form["sure"] != "yes":
                return visit.server.page("close", "Close an account", account=account)
            accounts.close(connection, account.id, now)
            subject = account.label
        case "open":
            subject = accounts.reopen(connection, form["name"])
        case "try-again":
            subject = str(queue.try_again(connection, now))
        case "rescore":
            dry = form["dry"] == "yes"
            subject = str(queue.ask_to_rescore(connection, visit.account.name, now, dry=dry))
            detail = "dry run" if dry else ""
        case _:
            raise HTTPException(404, NOT_FOUND)
    visit.log(name, subject, detail)
    return None
