"""The pages of a team, and of those who only read: uploads, the quota, tokens, members, final submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Row, select, update
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from geval_py.board.database.schema import Submissions
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import day_of, find_submission, quota_used
from geval_py.board.operations.teams import team_settings
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, RefusedError
from geval_py.board.people.schema import accounts as table
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.server import uploads
from geval_py.board.server.context import ACCOUNTS, BOARD, Visit, download
from geval_py.board.server.organiser import invited, need_answer
from geval_py.board.settings import moment_text
from geval_py.board.site.pages import public_scores
from geval_py.board.site.view import pseudonym
from geval_py.text import words

BY_THE_TEAM = "by its team"  # the reason of a withdrawal
SECRETS_AN_HOUR = 20  # tokens and invitations that an account makes


def quota_of(visit: Visit) -> dict[str, Any]:
    """Return how many submissions of a day the account's team has ``used``, of those ``allowed`` (0: any number)."""
    settings = team_settings(visit.connection, visit.board.settings, visit.team_id)
    used = quota_used(visit.connection, settings, visit.team_id, visit.now, with_uploads=True)
    day = day_of(visit.now, settings.zone)
    days = {"day": day.name, "next_day": day.end, "zone": str(settings.zone)}
    return {"used": used, "allowed": settings.at(visit.now).submissions_a_day, **days}


def me(visit: Visit) -> Response:
    """Show a team's uploads, quota, tokens and members, the phase that is open, and all by which one signs in."""
    account, settings, connection = visit.account, visit.board.settings, visit.connection
    phases = team_settings(connection, settings, visit.team_id).phases
    own = uploads.uploads_of(connection, visit.team_id)
    nameable = set()
    for one in own if settings.finals else ():
        if one.code:
            row = find_submission(connection, one.code)
            if not operations.final_problem(connection, settings, row, visit.now, undo=one.is_final):
                nameable.add(one.code)
    return visit.server.page(
        "my_page",
        "My page",
        account=account,
        uploads=own,
        scores=scores_of(visit, own),
        nameable=nameable,
        tokens=secrets.secrets_of(visit.people, account.person, secrets.TOKEN, visit.now),
        sessions=secrets.secrets_of(visit.people, account.person, secrets.SESSION, visit.now),
        session=visit.server.session_digest(visit.request),
        identities=sign_in.identities_of(visit.people, account),
        members=accounts.members_of(visit.people, account.team),
        quota=quota_of(visit),
        pseudonym=pseudonym(visit.board.key, account.team) if settings.names == "pseudonyms" and account.team else "",
        phase=next((one for one in phases if visit.now <= one.until), None),
        endings=uploads.OUTPUT_ENDINGS,
    )


def scores_of(visit: Visit, own: Sequence[Row[Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what the site shows of uploads, by the codes of their submissions: scores, and places in a table."""
    with disclosed(visit.board, visit.now) as connection:
        return public_scores(connection, visit.board.settings, [one.code for one in own if one.code], visit.now)


def who(visit: Visit) -> Response:
    """Return whose token a program has."""
    account = visit.account
    return JSONResponse({"name": account.name, "team": account.team, "role": account.role})


# Uploads


def own_upload(visit: Visit) -> Row[Any]:
    """Return the upload of a team that is asked for; raises HTTPException."""
    number = visit.request.path_params["number"]
    own = uploads.uploads_of(visit.connection, visit.team_id, number=number)
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
    quota = quota_of(visit)
    names = words("number name test sha256 bytes dry state reason code cost charge")
    document = {name: getattr(upload, name) for name in names}
    document |= {"settled": upload.is_settled, "arrived": moment_text(upload.arrived), "problems": upload.problems}
    del quota["next_day"]
    return JSONResponse(document | {"scores": scores_of(visit, [upload]).get(upload.code, []), "quota": quota})


# Changes


def count_secret(visit: Visit) -> None:
    """Count a token or an invitation that an account makes; raises TooOftenError."""
    visit.server.rates.count(f"secrets of {visit.account.id}", SECRETS_AN_HOUR)


def new_token(visit: Visit) -> Response:
    """Make a token, and show it this once."""
    scope = visit.form["scope"] or secrets.SUBMIT
    count_secret(visit)
    secret = sign_in.make_token(visit.people, visit.account, now=visit.now, name=visit.form["name"], scope=scope)
    visit.log("made a token")
    return visit.server.page("secret", "Token", secret=secret, kind=scope)


def end_secret(visit: Visit) -> None:
    """End a token or a session."""
    number = visit.request.path_params["number"]
    if secrets.end_secrets(visit.people, visit.account.person, secrets.TOKEN, secrets.SESSION, number=number):
        visit.log("ended a token or session")


def end_identity(visit: Visit) -> None:
    """End signing in by an account of another site."""
    sign_in.disconnect(visit.people, visit.account, visit.request.path_params["number"])
    visit.log("disconnected")


def invite(visit: Visit) -> Response:
    """Invite somebody into a team, by its owner; the link is shown this once."""
    visit.need_team()
    count_secret(visit)
    return invited(visit, accounts.invite_member(visit.people, visit.account, visit.form["name"], visit.now))


def change_mail(visit: Visit) -> None:
    """Turn mail about uploads on or off."""
    is_mailed = visit.form["on"] == "yes"
    visit.people.execute(update(table).where(A.id == visit.account.id).values(mailed=is_mailed))
    visit.log("turned mail " + ("on" if is_mailed else "off"))


def leave(visit: Visit) -> None:
    """Leave the team."""
    visit.need_team()
    need_answer(visit.form)
    accounts.move(visit.people, visit.account, "", visit.now)
    visit.log("leave", visit.account.label, visit.account.team)


def remove(visit: Visit) -> None:
    """Remove a member from the team, by its owner."""
    member = chosen_member(visit)
    accounts.move(visit.people, member, "", visit.now)
    visit.log("remove", member.label, visit.account.team)


def hand_over(visit: Visit) -> None:
    """Hand the team over to a member, by its owner."""
    member = chosen_member(visit)
    accounts.hand_over(visit.people, member, visit.account)
    visit.log("hand-over", member.label, visit.account.team)


def chosen_member(visit: Visit) -> Account:
    """Return the member that an owner chose; raises RefusedError."""
    members = accounts.members_of(visit.people, visit.account.team) if visit.account.may_submit else []
    member = next((one for one in members if one.id == visit.form["member"] and not one.owner), None)
    if member is None or not visit.account.owner:
        raise RefusedError("only the owner of a team can do this, to a member who does not own it")
    need_answer(visit.form)
    return member


def team_code(visit: Visit) -> str:
    """Return the code in the form, of a submission of the team; raises RefusedError."""
    visit.need_team()
    is_own = Submissions.code == visit.form["code"], Submissions.submitter_id == visit.team_id
    if visit.connection.execute(select(Submissions.id).where(*is_own)).first() is None:
        raise RefusedError("this submission does not belong to your team")
    return visit.form["code"]


def name_final(visit: Visit) -> None:
    """Name a submission as final, or no longer."""
    code, undo = team_code(visit), visit.form["undo"] == "yes"
    operations.name_final(visit.connection, visit.board.settings, [code], visit.now, undo=undo)
    visit.log("took back as final" if undo else "named as final", code)


def withdraw(visit: Visit) -> None:
    """Withdraw a submission, by its team."""
    code = team_code(visit)
    operations.withdraw(visit.connection, visit.board.settings, code, BY_THE_TEAM, visit.now, by_team=True)
    visit.log("withdrew", code)


PAGES = {"": me, "/uploads/{number}": upload_page, "/uploads/{number}/receipt": receipt}
CHANGES: dict[str, tuple[Callable[[Visit], Response | None], str]] = {
    "/tokens": (new_token, ACCOUNTS),
    "/secrets/{number:row}": (end_secret, ACCOUNTS),
    "/identities/{number:row}": (end_identity, ACCOUNTS),
    "/invitations": (invite, ACCOUNTS),
    "/mail": (change_mail, ACCOUNTS),
    "/leave": (leave, ACCOUNTS),
    "/remove": (remove, ACCOUNTS),
    "/hand-over": (hand_over, ACCOUNTS),
    "/final": (name_final, BOARD),
    "/withdraw": (withdraw, BOARD),
}
