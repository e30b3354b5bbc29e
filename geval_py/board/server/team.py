"""The pages of a team, and of those who only read: uploads, the quota, tokens, members, final submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from geval_py.board.database import schema
from geval_py.board.database.schema import Submissions, secrets
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import day_of, find_submission, quota_used
from geval_py.board.operations.teams import team_settings
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.server import accounts, uploads
from geval_py.board.server.accounts import Account, RefusedError
from geval_py.board.server.context import NOT_FOUND, Visit, download
from geval_py.board.server.organiser import invited
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.board.site.pages import shown_scores
from geval_py.text import words

BY_THE_TEAM = "by its team"  # the reason of a withdrawal
CHANGES_OF_TEAM = words("leave remove hand-over")


def quota_of(connection: Connection, settings: BoardSettings, account: Account, now: datetime) -> dict[str, Any]:
    """Return how many submissions of a day an account's team has ``used``, of those ``allowed`` (0: any number)."""
    settings = team_settings(connection, settings, account.submitter_id)
    used = quota_used(connection, settings, account.submitter_id, now, with_uploads=True)
    day = day_of(now, settings.zone)
    days = {"day": day.name, "next_day": day.end, "zone": str(settings.zone)}
    return {"used": used, "allowed": settings.at(now).submissions_a_day, **days}


def me(visit: Visit) -> Response:
    """Show a team's uploads, quota, tokens and members, and the phase that is open."""
    account, settings, connection = visit.account, visit.board.settings, visit.connection
    phases = team_settings(connection, settings, account.submitter_id).phases
    own = uploads.uploads_of(connection, account.submitter_id)
    nameable = set()
    for one in own if settings.finals else ():
        if one.code:
            row = find_submission(connection, one.code)
            if not operations.final_problem(connection, settings, row, visit.now, undo=one.is_final):
                nameable.add(one.code)
    own_tokens = accounts.S.account_id == account.id, accounts.S.kind == accounts.TOKEN
    tokens = select(secrets).where(*own_tokens, accounts.S.expires >= visit.now)
    return visit.server.page(
        "my_page",
        "My page",
        account=account,
        uploads=own,
        scores=scores_of(visit, own),
        nameable=nameable,
        tokens=visit.shared.execute(tokens.order_by(accounts.S.id.desc())),
        members=accounts.members_of(visit.shared, visit.person.submitter_id),
        quota=quota_of(connection, settings, account, visit.now),
        phase=next((one for one in phases if visit.now <= one.until), None),
        endings=uploads.OUTPUT_ENDINGS,
    )


def scores_of(visit: Visit, own: Sequence[Row[Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what the site shows of uploads, by the codes of their submissions: scores, and places in a table."""
    with disclosed(visit.board, visit.now) as connection:
        return shown_scores(connection, visit.board.settings, [one.code for one in own if one.code], visit.now)


def who(visit: Visit) -> Response:
    """Return whose token a program has."""
    account = visit.account
    return JSONResponse({"name": account.name, "team": account.team, "role": account.role})


# Uploads


def own_upload(visit: Visit) -> Row[Any]:
    """Return the upload of a team that is asked for; raises HTTPException."""
    number = visit.request.path_params["number"]
    own = uploads.uploads_of(visit.connection, visit.account.submitter_id, number=number)
    if not own:
        raise HTTPException(404, "Your team has no such upload.")
    return own[0]


def upload_page(visit: Visit) -> Response:
    """Show what became of an upload."""
    upload = own_upload(visit)
    kept = ""
    if upload.code:
        row = find_submission(visit.connection, upload.code)
        kept = operations.withdrawal_problem(visit.connection, visit.board.settings, row, visit.now)
    return visit.server.page(
        "upload",
        f"Upload {upload.number}",
        account=visit.account,
        upload=upload,
        kept=kept,
        scores=scores_of(visit, [upload]),
    )


def receipt(visit: Visit) -> Response:
    """Return the signed receipt of an upload, as a file."""
    upload = own_upload(visit)
    if not upload.receipt:
        raise HTTPException(404, "A trial has no receipt.")
    return download(upload.receipt, f"receipt-{upload.number}.jws", "application/jose")


def upload_state(visit: Visit) -> Response:
    """Return the state of an upload as JSON, for ``geval submit`` and the page's script.

    Of scores and places, it has what the site shows to everybody.
    """
    upload = own_upload(visit)
    quota = quota_of(visit.connection, visit.board.settings, visit.account, visit.now)
    names = words("number name test sha256 bytes dry state reason code cost charge")
    document = {name: getattr(upload, name) for name in names}
    document |= {"settled": upload.is_settled, "arrived": moment_text(upload.arrived), "problems": upload.problems}
    del quota["next_day"]
    return JSONResponse(document | {"scores": scores_of(visit, [upload]).get(upload.code, []), "quota": quota})


# Changes


def count_secret(visit: Visit) -> None:
    """Count a token or an invitation that an account makes; raises TooOftenError."""
    accounts.count_try(visit.shared, f"secrets of {visit.account.id}", accounts.SECRETS_AN_HOUR, visit.now)


def new_token(visit: Visit) -> Response:
    """Make a token, and show it this once."""
    scope = visit.form["scope"] or accounts.SUBMIT
    count_secret(visit)
    secret = accounts.make_token(visit.shared, visit.account.id, now=visit.now, name=visit.form["name"], scope=scope)
    visit.log("made a token")
    return visit.server.page("secret", "Token", secret=secret, kind=scope)


def end_token(visit: Visit) -> None:
    """End a token."""
    own_tokens = accounts.S.account_id == visit.account.id, accounts.S.kind == accounts.TOKEN
    visit.shared.execute(delete(secrets).where(accounts.S.id == visit.request.path_params["number"], *own_tokens))
    visit.log("ended a token")


def invite(visit: Visit) -> Response:
    """Invite somebody into a team, by its owner; the link is shown this once."""
    count_secret(visit)
    return invited(visit, accounts.invite_member(visit.shared, visit.person, visit.form["name"], visit.now))


def change_members(visit: Visit, name: str) -> Response | None:
    """Leave a team, or, by its owner, remove a member or hand the team over; after a question."""
    form, own = visit.form, visit.person
    members = accounts.members_of(visit.shared, own.submitter_id)
    chosen = str(own.id) if name == "leave" else form["member"] if own.owner else ""
    other = next((one for one in members if str(one.id) == chosen), None)
    if other is None or (name != "leave" and other.owner):
        raise RefusedError("only the owner of a team can do this, to a member who does not own it")
    if form["sure"] != "yes":
        return visit.ask(f"me/{name}", "/me", own.team if name == "leave" else other.name)
    if name == "hand-over":
        accounts.hand_over(visit.shared, other.id, own.id)
    else:
        accounts.move(visit.shared, other, "")
    visit.log(name, other.label, own.team)
    return None


def change(visit: Visit) -> Response | None:
    """Turn mail about uploads on or off, name a submission as final or not, or withdraw it, by its team."""
    code, name, is_mailed = visit.form["code"], visit.request.path_params["change"], visit.form["on"] == "yes"
    if name in CHANGES_OF_TEAM:
        return change_members(visit, name)
    if name == "mail":
        own = update(schema.accounts).where(accounts.A.id == visit.account.id)
        visit.shared.execute(own.values(mailed=is_mailed))
        visit.log("turned mail " + ("on" if is_mailed else "off"))
        return None
    is_own = Submissions.code == code, Submissions.submitter_id == visit.account.submitter_id
    if visit.connection.execute(select(Submissions.id).where(*is_own)).first() is None:
        raise RefusedError("this submission does not belong to your team")
    if name == "final":
        undo = visit.form["undo"] == "yes"
        operations.name_final(visit.board, [code], visit.now, undo=undo)
        visit.log("took back as final" if undo else "named as final", code)
    elif name == "withdraw":
        operations.withdraw(visit.board, code, BY_THE_TEAM, visit.now, by_team=True)
        visit.log("withdrew", code)
    else:
        raise HTTPException(404, NOT_FOUND)
    return None


PAGES = {"": me, "/uploads/{number}": upload_page, "/uploads/{number}/receipt": receipt}
CHANGES: dict[str, Callable[[Visit], Response | None]] = {
    "/tokens": new_token,
    "/tokens/{number:row}": end_token,
    "/invitations": invite,
    "/{change}": change,
}
