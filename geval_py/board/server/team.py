"""The pages of a team, and of those who only read: uploads, the quota, tokens, members, final submissions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, update
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from geval_py.board.intake.archives import ARCHIVES
from geval_py.board.operations import submissions as operations
from geval_py.board.operations.receipts import day_of, find_submission, quota_used
from geval_py.board.operations.teams import team_id, team_settings
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, RefusedError
from geval_py.board.people.schema import ORGANISER, identities
from geval_py.board.people.schema import accounts as table
from geval_py.board.people.secrets import S
from geval_py.board.server import uploads
from geval_py.board.server.context import ACCOUNTS, BOARD, Visit, download, visited
from geval_py.board.server.organiser import invited, number_in, scores_of
from geval_py.board.settings import moment_text
from geval_py.board.site.view import pseudonym
from geval_py.board.submission import attributes

BY_THE_TEAM = "by its team"  # the reason of a withdrawal
SECRETS_AN_HOUR = 20  # tokens and invitations that an account makes


def submitter(visit: Visit) -> int | None:
    """Return the id of the account's team on the board, None if it has sent nothing yet."""
    return team_id(visit.connection, visit.account.team)


def quota_of(visit: Visit) -> dict[str, Any]:
    """Return how many submissions of a day the account's team has ``used``, of those ``allowed`` (0: any number)."""
    team = submitter(visit)
    settings = team_settings(visit.connection, visit.board.settings, team)
    day = day_of(visit.now, settings.zone)
    return {
        "used": quota_used(visit.connection, settings, team, visit.now, with_uploads=True),
        "allowed": settings.at(visit.now).submissions_a_day,
        "day": day.name,
        "next_day": day.end,
        "zone": str(settings.zone),
    }


def me(visit: Visit) -> Response:
    """Show a team's uploads, quota, tokens and members, the phase that is open, and all by which one signs in."""
    account, settings, connection = visit.account, visit.board.settings, visit.connection
    phases = team_settings(connection, settings, submitter(visit)).phases
    team_uploads = uploads.uploads_of(connection, submitter(visit))
    rows = {one.code: find_submission(connection, one.code) for one in team_uploads if settings.finals and one.code}
    return visit.page(
        "my_page",
        "My page",
        uploads=team_uploads,
        scores=scores_of(visit, team_uploads),
        nameable={
            code
            for code, row in rows.items()
            if not operations.final_problem(connection, settings, row, visit.now, undo=row.final is not None)
        },
        tokens=secrets.secrets_of(visit.people, secrets.TOKEN, visit.now, S.person == account.person),
        sessions=secrets.secrets_of(visit.people, secrets.SESSION, visit.now, S.person == account.person),
        digests=[secrets.digest_of(visit.request.cookies.get(name, "")) for name in visit.server.cookies],
        identities=sign_in.identities_of(visit.people, account),
        members=accounts.members_of(visit.people, account.team),
        quota=quota_of(visit),
        pseudonym=pseudonym(visit.board.key, account.team) if settings.names == "pseudonyms" and account.team else "",
        phase=next((phase for phase in phases if visit.now <= phase.until), None),
        archives=ARCHIVES,
    )


# Uploads


def upload_of(visit: Visit) -> Row[Any]:
    """Return the upload of a team that is asked for; raises HTTPException."""
    number = visit.form["number"]
    for upload in uploads.uploads_of(visit.connection, submitter(visit), number=number):
        return upload
    raise HTTPException(404, "Your team has no such upload.")


def upload_page(visit: Visit) -> Response:
    """Show what became of an upload."""
    upload, connection = upload_of(visit), visit.connection
    kept = ""
    if upload.code:
        row = find_submission(connection, upload.code)
        kept = operations.withdrawal_problem(connection, visit.board.settings, row, visit.now)
    return visit.page(
        "upload", f"Upload {upload.number}", upload=upload, kept=kept, scores=scores_of(visit, [upload])
    )


def receipt(visit: Visit) -> Response:
    """Return the signed receipt of an upload, as a file."""
    upload = upload_of(visit)
    if not upload.receipt:
        raise HTTPException(404, "A trial has no receipt.")
    return download(upload.receipt, f"receipt-{upload.number}.jws", "application/jose")


def upload_state(visit: Visit) -> Response:
    """Return the state of an upload as JSON, for ``geval submit`` and the page's script.

    Of scores and places, it has what the site shows to everybody.
    """
    upload, quota = upload_of(visit), quota_of(visit)
    document = attributes(upload, "number name test sha256 bytes dry state reason code cost charge problems")
    document |= {"settled": upload.is_settled, "arrived": moment_text(upload.arrived)}
    del quota["next_day"]
    return JSONResponse(document | {"scores": scores_of(visit, [upload]).get(upload.code, []), "quota": quota})


# Changes


def count_secret(visit: Visit) -> None:
    """Count a token or an invitation that an account makes; raises TooOftenError."""
    visit.server.rates.count(f"secrets of {visit.account.id}", SECRETS_AN_HOUR)


def new_token(visit: Visit) -> Response:
    """Make a token, and show it this once."""
    count_secret(visit)
    secret = sign_in.make_token(visit.people, visit.account, now=visit.now, name=visit.form["name"])
    visit.log("made a token")
    return visit.page("secret", "Token", secret=secret, kind="token", note="")


def invite(visit: Visit) -> Response:
    """Invite somebody into a team, by its owner; the link is shown this once."""
    count_secret(visit)
    return invited(visit, accounts.invite_member(visit.people, visit.account, visit.form["name"], visit.now))


def remove(visit: Visit) -> None:
    """Remove a member from the team, by its owner; anybody can leave it."""
    account = visit.account
    is_leaving = account.may_submit and visit.form["member"] == account.id
    member = account if is_leaving else chosen_member(visit)
    accounts.close(visit.people, member, visit.now)
    visit.log("remove", member.label, account.team)


def hand_over(visit: Visit) -> None:
    """Hand the team over to a member, by its owner."""
    member = chosen_member(visit)
    accounts.hand_over(visit.people, member, visit.account)
    visit.log("hand-over", member.label, visit.account.team)


def chosen_member(visit: Visit) -> Account:
    """Return the member that an owner chose; raises RefusedError."""
    owner = visit.account
    for member in accounts.members_of(visit.people, owner.team) if owner.owner and owner.may_submit else ():
        if member.id == visit.form["member"] and not member.owner and member.role != ORGANISER:
            return member
    raise RefusedError("only the owner of a team can do this, to a member who neither owns it nor is an organiser")


def team_code(visit: Visit, code: str) -> str:
    """Return the code of a submission of the team, by an account that may change it; raises RefusedError."""
    row = find_submission(visit.connection, code)
    if row.submitter_id != submitter(visit) or not visit.account.may_submit:
        raise RefusedError("this submission does not belong to your team")
    return str(row.code)


ROUTES = [
    visited("/me", me),
    visited("/me/uploads/{number}", upload_page),
    visited("/me/uploads/{number}/receipt", receipt),
    visited(
        "/api/me",
        lambda visit: JSONResponse(attributes(visit.account, "name team role")),
        scope=secrets.READ,
    ),
    visited("/api/uploads/{number}", upload_state, scope=secrets.READ),
    visited("/me/tokens", new_token, ACCOUNTS),
    visited(
        "/me/end",
        lambda visit, number: secrets.end_secrets(
            visit.people,
            S.id == number_in(number),
            S.person == visit.account.person,
            S.kind != secrets.INVITATION,
        ),
        ACCOUNTS,
        fields="number",
    ),
    visited(
        "/me/disconnect",
        lambda visit, number: accounts.disconnect(visit.people, visit.account, identities.c.id == number_in(number)),
        ACCOUNTS,
        fields="number",
    ),
    visited("/me/invitations", invite, ACCOUNTS),
    visited(
        "/me/mail",
        lambda visit, on: visit.people.execute(update(table).where(A.id == visit.account.id).values(mailed=on != "")),
        ACCOUNTS,
        fields="on",
    ),
    visited("/me/remove", remove, ACCOUNTS, asks=True),
    visited("/me/hand-over", hand_over, ACCOUNTS, asks=True),
    visited(
        "/me/final",
        lambda visit, code, undo: operations.name_final(
            visit.connection, visit.board.settings, team_code(visit, code), visit.now, undo=undo != ""
        ),
        BOARD,
        fields="code undo",
    ),
    visited(
        "/me/withdraw",
        lambda visit, code: operations.withdraw(
            visit.connection, visit.board.settings, team_code(visit, code), BY_THE_TEAM, visit.now, by_team=True
        ),
        BOARD,
        fields="code",
    ),
]
