"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from geval_py.board.database.schema import ORGANISER, ROLES, SUBMITTER, audit, submissions, submitters
from geval_py.board.operations import notices
from geval_py.board.operations import submissions as operations
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.context import ChangeRequest, action, server_of
from geval_py.board.server.delivery import undelivered
from geval_py.board.site.view import announcements_of

HOME = "/organiser"
MAX_LISTED = 200  # submissions, and lines of the audit log, the latest


def home(request: Request) -> Response:
    """Show the queue, the phases, announcements, submissions and accounts."""
    server = server_of(request)
    account, board, now = server.organiser(request), server.board(), server.clock()
    query = select(submissions, submitters.c.name.label("submitter")).join(submitters)
    with board.reading() as connection:
        return server.page(
            "organiser",
            "Organiser",
            account=account,
            queue=list(queue.queue_status(connection, now).lines()),
            undelivered=undelivered(connection),
            phase=board.settings.phase_of(now),
            rescorings=queue.latest_rescorings(connection),
            announcements=announcements_of(connection),
            submissions=connection.execute(query.order_by(submissions.c.id.desc()).limit(MAX_LISTED)).all(),
            accounts=accounts.all_accounts(connection),
            roles=(SUBMITTER, *(role for role in ROLES if role != SUBMITTER)),
        )


def log(request: Request) -> Response:
    """Show the latest lines of the audit log."""
    server = server_of(request)
    server.organiser(request)
    latest = select(audit).order_by(audit.c.id.desc()).limit(MAX_LISTED)
    with server.board().reading() as connection:
        return server.page("audit", "Audit log", lines=connection.execute(latest).all())


def alike(request: Request) -> Response:
    """Show the outputs of different submitters that are much alike."""
    server = server_of(request)
    server.organiser(request)
    with server.board().reading() as connection:
        pairs = list(likenesses(connection, server.board().settings))
    return server.page("alike", "Much alike", pairs=pairs)


@action(ORGANISER)
def invite(change: ChangeRequest) -> Response:
    """Invite somebody, or make a new link for an account; the link is shown this once."""
    form, name = change.form, change.form.get("name", "")
    email, role, team = form.get("email", ""), form.get("role") or SUBMITTER, form.get("team") or None
    secret = accounts.invite(change.connection, name, email=email, role=role, team=team, now=change.now)
    change.log("invited", name, form.get("role", ""))
    link = change.server.own_address(change.request, f"/invitation/{secret}")
    return change.server.page("secret", "Invitation", secret=link, kind="link", back=HOME)


@action(ORGANISER, HOME)
def announce(change: ChangeRequest) -> None:
    """Tell everybody something."""
    text = change.form.get("text", "")
    change.log("announce", str(notices.announce(change.board, text, change.now)), text)


@action(ORGANISER, HOME)
def take_back(change: ChangeRequest) -> None:
    """Remove an announcement."""
    number = change.form.get("number", "")
    notices.take_back(change.board, int(number) if number.isdecimal() and len(number) < 10 else 0)
    change.log("take-back", number)


@action(ORGANISER, HOME)
def withdraw(change: ChangeRequest) -> None:
    """Hide a submission, with a reason."""
    code, reason = change.form.get("code", ""), change.form.get("reason", "")
    operations.withdraw(change.board, code, reason, change.now)
    change.log("withdraw", code, reason)


@action(ORGANISER, HOME)
def note(change: ChangeRequest) -> None:
    """Put a remark on a submission."""
    code, remark = change.form.get("code", ""), change.form.get("remark", "")
    operations.note(change.board, code, remark)
    change.log("note", code, remark)


@action(ORGANISER, HOME)
def close(change: ChangeRequest) -> None:
    """Close an account."""
    account = accounts.account_named(change.connection, change.form.get("name", ""))
    if account.id == change.account.id:
        raise accounts.RefusedError(reason="you cannot close your own account here")
    accounts.close(change.connection, account.id, change.now)
    change.log("close", account.name)


@action(ORGANISER, HOME)
def rescore(change: ChangeRequest) -> None:
    """Ask the workers to score again what is out of date."""
    dry = change.form.get("dry") == "yes"
    number = queue.ask_to_rescore(change.connection, change.account.name, change.now, dry=dry)
    change.log("rescore", str(number), "dry run" if dry else "")
