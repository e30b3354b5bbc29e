"""The pages of a team, and of those who only read: uploads, the quota, tokens, members, final submissions."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from geval_py.board.database import schema
from geval_py.board.database.schema import secrets
from geval_py.board.database.store import write_content
from geval_py.board.intake.sandbox import report_in_sandbox
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import day_of, quota_used, written
from geval_py.board.references import public_answers
from geval_py.board.server import accounts, uploads
from geval_py.board.server.accounts import Account, RefusedError
from geval_py.board.server.context import ChangeRequest, ServerContext, action, server_of
from geval_py.board.settings import BoardSettings
from geval_py.board.site.files import identity
from geval_py.board.site.rendering import render
from geval_py.board.site.submission_pages import shown_scores

MAX_IN_FEED = 50
REPORTS_AN_HOUR = 30  # of an account; one takes some seconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BY_THE_TEAM = "by its team"  # the reason of a withdrawal


def quota_of(connection: Connection, settings: BoardSettings, account: Account, now: datetime) -> dict[str, Any]:
    """Return how many submissions of a day an account's team has ``used``, of those ``allowed`` (0: any number)."""
    used = quota_used(connection, settings, account.submitter_id, now, with_uploads=True)
    day = day_of(now, settings.zone)
    return {"used": used, "allowed": settings.at(now).submissions_a_day, "day": day.name, "next_day": day.end}


def me(request: Request) -> Response:
    """Show a team's uploads, quota, tokens and members, and the phase that is open."""
    server = server_of(request)
    account, board, now = server.account(request), server.board(), server.clock()
    own_tokens = secrets.c.account_id == account.id, secrets.c.kind == accounts.TOKEN
    tokens = select(secrets).where(*own_tokens, secrets.c.expires >= now.astimezone(UTC))
    with board.reading() as connection:
        own = uploads.uploads_of(connection, account.submitter_id) if account.submitter_id else []
        return server.page(
            "my_page",
            "My page",
            account=account,
            uploads=own,
            tokens=connection.execute(tokens.order_by(secrets.c.id.desc())).all(),
            members=accounts.all_accounts(connection, schema.accounts.c.submitter_id == account.submitter_id)
            if account.submitter_id
            else [],
            quota=quota_of(connection, board.settings, account, now),
            phase=next((one for one in board.settings.phases if now <= one.until), None),
            endings=uploads.OUTPUT_ENDINGS,
        )


def who(request: Request) -> Response:
    """Return whose token a program has."""
    account = server_of(request).account(request)
    return JSONResponse({"name": account.name, "team": account.team, "role": account.role})


# Uploads


def own_upload(request: Request) -> tuple[Account, Row[Any]]:
    """Return who asks, and the upload of their team that is asked for; raises HTTPException."""
    server = server_of(request)
    account = server.account(request)
    with server.board().reading() as connection:
        number = request.path_params["number"]
        own = uploads.uploads_of(connection, account.submitter_id or 0, number=number)
    if not own:
        raise HTTPException(404, "There is no such upload of your team.")
    return account, own[0]


def upload_page(request: Request) -> Response:
    """Show what became of an upload."""
    server, (account, upload) = server_of(request), own_upload(request)
    explained = _explainable(server, upload)
    return server.page("upload", f"Upload {upload.number}", account=account, upload=upload, explained=explained)


def _explainable(server: ServerContext, upload: Row[Any]) -> list[Row[Any]]:
    """Return the outputs of an upload for tests whose answers are public."""
    settings = server.board().settings
    tests = [test.name for test in settings.tests if public_answers(settings, test.name)]
    with server.board().reading() as connection:
        return uploads.outputs_of(connection, upload, tests)


def receipt(request: Request) -> Response:
    """Return the signed receipt of an upload, as a file."""
    _, upload = own_upload(request)
    headers = {"Content-Disposition": f'attachment; filename="receipt-{upload.number}.json"'}
    return Response(upload.receipt, media_type="application/json", headers=headers)


def upload_state(request: Request) -> Response:
    """Return the state of an upload as JSON, for ``geval submit`` and the page's script.

    Of scores, it has what the site shows to everybody.
    """
    server, (account, upload) = server_of(request), own_upload(request)
    settings, now = server.board().settings, server.clock()
    with server.board().reading() as connection:
        scores = shown_scores(connection, settings, upload.code, upload.arrived, now) if upload.code else []
        quota = quota_of(connection, settings, account, now)
    names = ("number", "name", "test", "sha256", "bytes", "dry", "state", "reason", "code", "cost", "charge")
    document = {name: getattr(upload, name) for name in names}
    document |= {"settled": upload.is_settled, "arrived": written(upload.arrived), "problems": upload.problems}
    left = {name: quota[name] for name in ("used", "allowed", "day")} | {"zone": str(settings.zone)}
    return JSONResponse(document | {"scores": scores, "quota": left})


async def report(request: Request) -> Response:
    """Explain an output of a test whose answers are public, on a page to be kept, as ``geval report`` does."""
    async with server_of(request).reporting:  # one at a time; others wait, in no thread that a page needs
        return await run_in_threadpool(_report, request)


def _report(request: Request) -> Response:
    server, (account, upload) = server_of(request), own_upload(request)
    output, board = request.path_params["output"], server.board()
    row = next((row for row in _explainable(server, upload) if row.id == output), None)
    if row is None:
        raise HTTPException(404, "There is no such output of a test whose answers are public.")
    with board.writing() as connection:
        accounts.count_try(connection, f"reports {account.id}", REPORTS_AN_HOUR, server.clock())
    with TemporaryDirectory(dir=server.place, prefix="report-") as place:
        path = os.path.join(place, os.path.basename(row.name))
        with board.reading() as connection:
            write_content(connection, row.sha256, path)
        with open(report_in_sandbox(path, row.test, board.settings, place), encoding="utf-8") as page:
            text = page.read()
    name = f"report-{upload.number}-{row.test}.html"
    return Response(text, media_type="text/html", headers={"Content-Disposition": f'attachment; filename="{name}"'})


def feed(request: Request) -> Response:
    """Return a team's uploads as an Atom feed; readers of feeds cannot sign in, so its address has a token."""
    server = server_of(request)
    now, board = server.clock(), server.board()
    with board.reading() as connection:
        account, _ = accounts.token_account(connection, request.path_params["token"], now)
        own = uploads.uploads_of(connection, account.submitter_id or 0, most=MAX_IN_FEED) if account else []
    if account is None:
        server.count_failure(request)
        raise HTTPException(404, "There is no such feed.")
    text = render(
        "own_feed.xml",
        title=board.settings.title,
        account=account,
        uploads=own,
        identity=f"{identity(board.settings)}/of/{account.id}",
        updated=max((one.ended or one.arrived for one in own), default=EPOCH),
        base=server.own_address(request, ""),
    )
    return Response(text, media_type="application/atom+xml")


# Changes


@action()
def new_token(change: ChangeRequest) -> Response:
    """Make a token, or the address of a feed, and show it this once."""
    scope = change.form.get("scope", accounts.SUBMIT)
    name = change.form.get("name", "")
    secret = accounts.make_token(change.connection, change.account.id, now=change.now, name=name, scope=scope)
    change.log("made a token")
    if scope == accounts.FEED:
        secret = change.server.own_address(change.request, f"/feed/{secret}")
    return change.server.page("secret", "Token", secret=secret, kind=scope)


@action()
def end_token(change: ChangeRequest) -> None:
    """End a token."""
    number, account_id = change.request.path_params["number"], change.account.id
    own = secrets.c.id == number, secrets.c.account_id == account_id, secrets.c.kind == accounts.TOKEN
    change.connection.execute(delete(secrets).where(*own))
    change.log("ended a token")


@action()
def mail(change: ChangeRequest) -> None:
    """Turn mail about uploads on or off."""
    on = change.form.get("on") == "yes"
    own = update(schema.accounts).where(schema.accounts.c.id == change.account.id)
    change.connection.execute(own.values(mailed=on))
    change.log("turned mail " + ("on" if on else "off"))


@action()
def invite(change: ChangeRequest) -> Response:
    """Invite somebody into a team, by its owner; the link is shown this once."""
    account, name = change.account, change.form.get("name", "")
    if not (account.owner and account.team):
        raise RefusedError(reason="only the owner of a team invites into it")
    accounts.refuse_taken(change.connection, name)
    secret = accounts.invite(change.connection, name, team=account.team, owner=False, now=change.now)
    change.log("invited", name)
    link = change.server.own_address(change.request, f"/invitation/{secret}")
    return change.server.page("secret", "Invitation", secret=link, kind="link")


@action()
def final(change: ChangeRequest) -> None:
    """Name a submission as final, or take that back."""
    code, undo = own_code(change), change.form.get("undo") == "yes"
    operations.name_final(change.board, [code], change.now, undo=undo)
    change.log("took back as final" if undo else "named as final", code)


@action()
def withdraw(change: ChangeRequest) -> None:
    """Withdraw a submission, by its team."""
    code = own_code(change)
    operations.withdraw(change.board, code, BY_THE_TEAM, change.now, by_team=True)
    change.log("withdrew", code)


def own_code(change: ChangeRequest) -> str:
    """Return the code of a submission that a form names; raises RefusedError if it is another team's."""
    code = change.form.get("code", "")
    if not uploads.is_own(change.connection, change.account.submitter_id, code):
        raise RefusedError(reason="this is no submission of your team")
    return code
