"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from geval_py.board.database.schema import ORGANISER, ROLES, SUBMITTER, audit, jobs, submissions, submitters
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.context import Visit, visited
from geval_py.board.server.delivery import undelivered
from geval_py.board.site.view import announcements_of

HOME = "/organiser"
MAX_RESCORINGS = 5  # the latest
MAX_LISTED = 200  # submissions, and lines of the audit log, the latest


@visited(ORGANISER)
def home(visit: Visit) -> Response:
    """Show the queue, the phases, announcements, submissions and accounts."""
    connection = visit.connection
    query = select(submissions, submitters.c.name.label("submitter")).join(submitters)
    rescorings = select(jobs).where(jobs.c.kind == queue.RESCORING).order_by(jobs.c.id.desc()).limit(MAX_RESCORINGS)
    return visit.server.page(
        "organiser",
        "Organiser",
        account=visit.account,
        queue=list(queue.queue_status(connection, visit.now).lines()),
        undelivered=undelivered(connection),
        phase=visit.board.settings.phase_of(visit.now),
        rescorings=connection.execute(rescorings).all(),
        announcements=announcements_of(connection),
        submissions=connection.execute(query.order_by(submissions.c.id.desc()).limit(MAX_LISTED)).all(),
        accounts=accounts.all_accounts(connection),
        roles=(SUBMITTER, *(role for role in ROLES if role != SUBMITTER)),
    )


@visited(ORGANISER)
def log(visit: Visit) -> Response:
    """Show the latest lines of the audit log."""
    latest = select(audit).order_by(audit.c.id.desc()).limit(MAX_LISTED)
    return visit.server.page("audit", "Audit log", lines=visit.connection.execute(latest).all())


@visited(ORGANISER)
def alike(visit: Visit) -> Response:
    """Show the outputs of different submitters that are much alike."""
    pairs = list(likenesses(visit.connection, visit.board.settings))
    return visit.server.page("alike", "Much alike", pairs=pairs)


@visited(ORGANISER)
def invite(visit: Visit) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    form, role = visit.form, visit.form["role"] or SUBMITTER
    return invited(visit, email=form["email"], role=role, team=form["team"] or None, back=HOME)


def invited(visit: Visit, *, back: str = "", **values: Any) -> Response:
    """Invite whom a form names, and show the link on a page that leads ``back``."""
    name = visit.form["name"]
    secret = accounts.invite(visit.connection, name, now=visit.now, **values)
    visit.log("invited", name, values.get("role", ""))
    link = visit.server.own_address(visit.request, f"/invitation/{secret}")
    return visit.server.page("secret", "Invitation", secret=link, kind="link", back=back)


@visited(ORGANISER, HOME)
def announce(visit: Visit) -> None:
    """Put an announcement on the first page, and write it down for the webhooks."""
    text = visit.form["text"]
    visit.log("announce", str(notices.announce(visit.board, text, visit.now)), text)


@visited(ORGANISER, HOME)
def take_back(visit: Visit) -> None:
    """Remove an announcement."""
    number = visit.form["number"]
    notices.take_back(visit.board, int(number) if number.isdecimal() and len(number) < 10 else 0)
    visit.log("take-back", number)


@visited(ORGANISER, HOME)
def withdraw(visit: Visit) -> None:
    """Hide a submission, with a reason."""
    code, reason = visit.form["code"], visit.form["reason"]
    operations.withdraw(visit.board, code, reason, visit.now)
    visit.log("withdraw", code, reason)


@visited(ORGANISER, HOME)
def note(visit: Visit) -> None:
    """Put a remark on a submission."""
    code, remark = visit.form["code"], visit.form["remark"]
    operations.note(visit.board, code, remark)
    visit.log("note", code, remark)


@visited(ORGANISER, HOME)
def close(visit: Visit) -> None:
    """Close an account."""
    account = accounts.account_named(visit.connection, visit.form["name"])
    if account.id == visit.account.id:
        raise accounts.RefusedError(reason="you cannot close your own account here")
    accounts.close(visit.connection, account.id, visit.now)
    visit.log("close", account.name)


@visited(ORGANISER, HOME)
def rescore(visit: Visit) -> None:
    """Ask the workers to score again what is out of date."""
    dry = visit.form["dry"] == "yes"
    number = queue.ask_to_rescore(visit.connection, visit.account.name, visit.now, dry=dry)
    visit.log("rescore", str(number), "dry run" if dry else "")
