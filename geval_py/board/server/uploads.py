"""Uploads: a file becomes a job and a signed receipt in one transaction, or nothing at all.

    received    the file is on the disk: every byte, hashed, with the moment of the last one
    accept      its content and job are stored with the receipt, if the quota allows it
    place_of    a worker writes the content into a folder, to be received like any other submission
    settle      the worker stores what came of it

The content stands in the database until the upload is done, so that workers on other machines have it, and no upload
is ever without its file. That of one that failed is kept, to be tried again.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from typing import Any

from joserfc.jwk import OKPKey
from sqlalchemy import Connection, Row, Select, case, delete, exists, func, select

from geval_py.board.database.schema import (
    Blobs,
    Files,
    Jobs,
    Submissions,
    Submitters,
    blobs,
    jobs,
    pick,
    submissions,
    submitters,
)
from geval_py.board.database.store import Board, pack_file, store_content, write_content
from geval_py.board.intake.identity import is_archive, upload_name_problem
from geval_py.board.operations.receipts import OPEN, WAITING, WITHDRAWN, check_quota
from geval_py.board.operations.teams import submitter_id
from geval_py.board.people.accounts import Account, RefusedError
from geval_py.board.server import queue, signed_receipts
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.files import FORMAT_ENDINGS
from geval_py.text import visible

MAX_FAILED = 10  # failed uploads of a team whose contents are kept
MAX_NAME_LENGTH = 200  # characters of a file's name
OUTPUT_ENDINGS = tuple(
    f"{kind}{ending}" for kind in (".tsv", *FORMAT_ENDINGS) for ending in ("", *COMPRESSED_ENDINGS)
)
KNOWN = "the same file was uploaded before: this is its receipt"


def file_name(name: str, test: str, settings: BoardSettings) -> str:
    """Check the name of an uploaded file, without its folders, and return it; raises RefusedError.

    A file that is no archive is an output, which needs a test set.
    """
    name = name.replace("\\", "/").rpartition("/")[2]
    if not name or name.startswith(".") or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise RefusedError("the file's name needs visible characters, and must not begin with a dot")
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
) -> dict[str, str]:
    """Store an upload with its content, its job and its receipt; return its ``number``, ``receipt`` and a ``note``.

    A trial has no receipt, "".

    The ``values`` are columns of its job: its name; the test set of a single output, "" for an archive; its sha256
    and bytes; whether it is dry. A file that waits already, or became a submission, is not stored again: the note
    says so, and its receipt is returned. Raises QuotaError, StoreError.
    """
    packed = pack_file(path)
    with board.writing() as connection:
        own = submitter_id(connection, account.team)
        if not values["dry"]:
            same = connection.execute(
                select(jobs)
                .where(Jobs.submitter_id == own, ~Jobs.dry, Jobs.state.in_((*OPEN, queue.DONE)))
                .where(*(Jobs[name] == values[name] for name in ("name", "test", "sha256")))
                .order_by(Jobs.id)
            ).first()
            if same is not None:  # one that failed or was refused is tried again
                known = {"number": same.number, "arrived": moment_text(same.arrived), "receipt": same.receipt}
                return known | {"note": KNOWN}
            check_quota(connection, board.settings, own, account.team, arrived, (), with_uploads=True)
        store_content(connection, values["sha256"], packed)
        number, arrived = secrets.token_hex(queue.NUMBER_BYTES), arrived.astimezone(UTC)
        values |= {"number": number, "receipt": ""}
        if not values["dry"]:
            signed = {name: values[name] for name in ("number", "test", "sha256", "bytes")}
            signed |= {"board": board.settings.title, "submitter": account.team, "file": values["name"]}
            signed["arrived"] = arrived.isoformat(timespec="microseconds")
            values["receipt"] = signed_receipts.sign(key, signed)
        queue.enqueue(connection, queue.UPLOAD, arrived, account=account.id, submitter_id=own, **values)
    return {"number": number, "arrived": moment_text(arrived), "receipt": values["receipt"], "note": ""}


# What a worker does with an upload.


def upload(connection: Connection, job_id: int) -> Row[Any]:
    """Return an upload, with the name of its team."""
    query = select(jobs, Submitters.name.label("team")).join(submitters)
    return connection.execute(query.where(Jobs.id == job_id)).one()


def place_of(connection: Connection, row: Row[Any], folder: str) -> str:
    """Write an upload's content into an empty folder; return the path of the archive, or of the submission's folder.

    Raises StoreError if it is damaged, OSError.
    """
    top = os.path.join(folder, "upload")
    path = os.path.join(top, row.test, row.name)
    os.makedirs(os.path.dirname(path))
    write_content(connection, row.sha256, path)
    return top if row.test else path


def remove_content(connection: Connection, row: Row[Any]) -> None:
    """Delete the content of an upload that is done, unless a submission or another upload has the same.

    The contents of the last MAX_FAILED failed uploads of each team are kept, and earlier ones of this team deleted.
    """
    has_failed = Jobs.state == queue.FAILED, Jobs.kind == queue.UPLOAD, ~Jobs.dry
    failed = select(Jobs.sha256).where(*has_failed, Jobs.submitter_id == row.submitter_id)
    is_needed = (
        exists().where(Files.sha256 == Blobs.sha256),
        exists().where(Jobs.sha256 == Blobs.sha256, Jobs.state.in_(OPEN)),
        exists().where(Jobs.sha256 == Blobs.sha256, *has_failed, Jobs.submitter_id != row.submitter_id),
        Blobs.sha256.in_(failed.order_by(Jobs.id.desc()).limit(MAX_FAILED)),
    )
    is_done = (Blobs.sha256 == row.sha256) | Blobs.sha256.in_(failed)
    connection.execute(delete(blobs).where(is_done, *(~one for one in is_needed)))


# What a team sees of its uploads.


def uploads_of(
    connection: Connection, submitter_id: int | None, *, number: str | None = None, most: int = 200
) -> list[Row[Any]]:
    """Return a team's uploads, the latest first; with a ``number`` that one alone.

    ``state``, ``reason`` and ``problems`` are those of the submission, once there is one. If it ``is_settled``,
    nothing changes any more by itself.
    """
    is_stored, is_withdrawn, has_ended = (
        Submissions.id.is_not(None),
        Submissions.withdrawn.is_not(None),
        Jobs.ended.is_not(None),
    )
    query: Select[Any] = select(
        *pick(Jobs, "number name test arrived ended dry receipt sha256 bytes"),
        case((is_withdrawn, WITHDRAWN), (is_stored, Submissions.state), (has_ended, Jobs.state), else_=WAITING).label(
            "state"
        ),
        case((is_withdrawn, ""), (is_stored, Submissions.reason), (has_ended, Jobs.reason), else_="").label("reason"),
        case((is_stored, Submissions.problems), else_=Jobs.problems).label("problems"),
        func.coalesce(Submissions.code, "").label("code"),
        func.coalesce(Submissions.cost, 0).label("cost"),
        func.coalesce(Submissions.charge, "").label("charge"),
        Submissions.final.is_not(None).label("is_final"),
        has_ended.label("is_settled"),
    )
    query = query.join_from(jobs, submissions, Submissions.id == Jobs.submission_id, isouter=True)
    query = query.where(Jobs.submitter_id == submitter_id, Jobs.kind == queue.UPLOAD)
    if number is not None:
        query = query.where(Jobs.number == number)
    return list(connection.execute(query.order_by(Jobs.id.desc()).limit(most)))
