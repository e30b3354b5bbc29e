"""Uploads: a file becomes a waiting submission and a signed receipt in one transaction, or nothing at all.

    received    the file is on the disk: every byte, hashed, with the moment of the last one
    accept      its content and its row are stored with the receipt, if the quota allows it

The content stands in the database until a worker has received the upload like any other submission, so that workers
on other machines have it, and no upload is ever without its file. That of one that failed is kept, to be tried again.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from joserfc.jwk import OKPKey
from sqlalchemy import Connection, Row, Select, and_, case, func, insert, select

from geval_py.board.database import schema
from geval_py.board.database.schema import RECEIVED, WAITING, Submissions, pick, submissions
from geval_py.board.database.store import Board, store_content
from geval_py.board.intake.archives import bare_name, is_archive, upload_name_problem
from geval_py.board.intake.sources import Details
from geval_py.board.operations.pipeline import CODE_DIGITS, UNSCORED, sent_before
from geval_py.board.operations.receipts import UPLOAD, WITHDRAWN, check_quota
from geval_py.board.operations.teams import submitter_id, team_settings
from geval_py.board.people.accounts import Account, RefusedError
from geval_py.board.server import signed_receipts
from geval_py.board.server.queue import UPLOADED, try_again
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.text import visible

MAX_NAME_LENGTH = 200  # bytes of a file's name


def file_name(name: str, test: str, settings: BoardSettings) -> str:
    """Check the name of an uploaded file, without its folders, and return it; raises RefusedError.

    A file that is no archive is an output, which needs a test set.
    """
    name = name.replace("\\", "/").rpartition("/")[2]
    if not name or name.startswith(".") or not name.isprintable() or len(name.encode()) > MAX_NAME_LENGTH:
        raise RefusedError(
            f"the file's name needs visible characters, at most {MAX_NAME_LENGTH} bytes"
            ", and must not begin with a dot"
        )
    if is_archive(name):
        if test:
            raise RefusedError(
                f"`{visible(name)}` is an archive, whose folders name the test sets: leave the test set out"
            )
        return name
    if problem := upload_name_problem(name):
        raise RefusedError(problem)
    names = [one.name for one in settings.tests]
    if test not in names:
        wrong = f"there is no test set `{visible(test)}`" if test else "an output needs a test set"
        raise RefusedError(f"{wrong}: {', '.join(names)}; name it with geval submit -t {names[0]}")
    return name


def accept(
    board: Board,
    account: Account,
    path: str,
    key: OKPKey,
    *,
    arrived: datetime,
    **values: Any,
) -> dict[str, Any]:
    """Store an upload with its content and its receipt; return its ``number``, ``receipt`` and a ``note``.

    A trial has no receipt, "". The ``values`` are columns of its row: its name; the test set of a single output, ""
    for an archive; its sha256 and bytes; whether it is a trial. If the clock was set back, it arrives with the newest
    submission. What ``is_known``, as it waits already or became a submission, is not stored again: the note says so,
    and its receipt is returned. Raises QuotaError, StoreError.
    """
    settings, now = board.settings, arrived
    with board.writing() as connection:
        team_id, is_trial = submitter_id(connection, account.team), values["trial"]
        newest = select(func.max(Submissions.arrived)).scalar_subquery()
        moments = connection.execute(select(schema.board.c.created, newest)).one()
        arrived = max(arrived, *filter(None, moments)).astimezone(UTC)
        row, note = None, ""
        if not is_trial:
            is_content = and_(*(Submissions[name] == values[name] for name in ("test", "sha256")))
            if values["test"]:  # the name of an output has its parameters
                is_content &= Submissions.sent_name == values["sent_name"]
            team = team_settings(connection, settings, team_id)
            same, note = sent_before(connection, team, team_id, arrived, is_content)
            row = next(iter(same), None)
        is_known = row is not None
        if not row or row.state in UNSCORED:
            if not is_trial:
                row_id, moment = (row.id, row.arrived) if row else (0, arrived)
                check_quota(connection, settings, team_id, account.team, moment, (), row_id=row_id, with_uploads=True)
            store_content(connection, values["sha256"], path)
        if not row:
            code, receipt = secrets.token_hex(CODE_DIGITS // 2), ""
            if not is_trial:
                told = {name: values[name] for name in ("test", "sha256", "bytes")}
                told |= {"number": code, "board": settings.title, "submitter": account.team}
                told |= {"file": values["sent_name"], "arrived": arrived.isoformat(timespec="microseconds")}
                receipt = signed_receipts.sign(key, told)
            values |= asdict(Details()) | {"problems": [], "digest": "", "charge": "", "scorer": ""}
            values |= {"code": code, "receipt": receipt, "submitter_id": team_id, "account": account.id}
            values |= {"name": bare_name(values["sent_name"]), "source": f"upload {code}: {values['sent_name']}"}
            values |= {"state": WAITING, "cost": int(not is_trial), "arrived_by": UPLOAD}
            values |= {"arrived": arrived, "added": arrived, "due": now}
            row = connection.execute(insert(submissions).values(values).returning(submissions)).one()
        elif row.state in UNSCORED:
            try_again(connection, now, Submissions.id == row.id)
    accepted = {"number": row.code, "arrived": moment_text(row.arrived), "receipt": row.receipt}
    return accepted | {"note": note, "is_known": is_known}


# What a team sees of its uploads.


def uploads_of(
    connection: Connection, submitter_id: int | None, *, number: str | None = None, most: int = 200
) -> list[Row[Any]]:
    """Return a team's uploads, the latest first; with a ``number`` that one alone.

    The ``code`` is that of the submission, once there is one. If it ``is_settled``, nothing changes by itself.
    """
    is_withdrawn, has_ended = Submissions.withdrawn.is_not(None), Submissions.state != WAITING
    query: Select[Any] = select(
        *pick(Submissions, "test arrived ended receipt sha256 bytes problems cost charge"),
        Submissions.code.label("number"),
        Submissions.sent_name.label("name"),
        Submissions.trial.label("dry"),
        case((is_withdrawn, WITHDRAWN), else_=Submissions.state).label("state"),
        case((is_withdrawn | ~has_ended, ""), else_=Submissions.reason).label("reason"),
        case((and_(*RECEIVED), Submissions.code), else_="").label("code"),
        Submissions.final.is_not(None).label("is_final"),
        has_ended.label("is_settled"),
    )
    query = query.where(Submissions.submitter_id == submitter_id, UPLOADED)
    if number:
        query = query.where(Submissions.code == number)
    return list(connection.execute(query.order_by(Submissions.id.desc()).limit(most)))
