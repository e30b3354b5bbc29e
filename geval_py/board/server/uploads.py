"""Uploads: a file becomes a job and a signed receipt in one transaction, or nothing at all.

    received    the file is on the disk: every byte, hashed, with the moment of the last one
    accept      its content and job are stored with the receipt, if the quota allows it
    place_of    a worker writes the content into a folder, to be received like any other submission
    settle      the worker stores what came of it

The content stands in the database until the upload is done, so that workers on other machines have it, and no upload
is ever without its file.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, exists, select

from geval_py.board.database.schema import SCORED, blobs, files, jobs, outputs, submissions, submitters
from geval_py.board.database.store import Board, pack_file, store_content, write_content
from geval_py.board.intake.identity import is_archive, upload_name_problem
from geval_py.board.operations.receipts import OPEN, WAITING, check_quota
from geval_py.board.server import accounts, queue, signed_receipts
from geval_py.board.server.accounts import Account, RefusedError
from geval_py.board.settings import BoardSettings
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.sources import FORMAT_ENDINGS
from geval_py.text import visible

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_NAME_LENGTH = 200  # characters of a file's name
OUTPUT_ENDINGS = tuple(
    f"{kind}{ending}" for kind in (".tsv", *FORMAT_ENDINGS) for ending in ("", *COMPRESSED_ENDINGS)
)
KNOWN = "the same file was uploaded before: this is its receipt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file on the disk, as it was uploaded; ``test`` is the test set of a single output, "" for an archive."""

    path: str
    name: str
    test: str
    sha256: str
    bytes: int
    arrived: datetime
    dry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An upload that is stored: its number, its receipt as JSON; ``note`` if it was uploaded before."""

    number: str
    receipt: str
    note: str = ""


def file_name(name: str, test: str, settings: BoardSettings) -> str:
    """Check the name of an uploaded file, without its folders, and return it; raises RefusedError.

    A file that is no archive is an output, which needs a test set.
    """
    name = name.replace("\\", "/").rpartition("/")[2]
    if not name or name.startswith(".") or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise RefusedError(reason="the file needs a name of visible characters that does not begin with a dot")
    if is_archive(name):
        if test:
            raise RefusedError(reason=f"`{visible(name)}` is an archive: its folders name the test sets")
        return name
    if problem := upload_name_problem(name):
        raise RefusedError(reason=problem)
    names = [one.name for one in settings.tests]
    if test not in names:
        wrong = f"there is no test set `{visible(test)}`" if test else "an output needs its test set"
        raise RefusedError(reason=f"{wrong}: {', '.join(names)}")
    return name


def accept(board: Board, account: Account, received: Received, key: Ed25519PrivateKey, most: int) -> Accepted:
    """Store an upload with its content, its job and its receipt; ``most`` uploads of a team may come in an hour.

    A file that waits already, or became a submission, is not stored again: its receipt is returned. Raises
    RefusedError for an account that was closed meanwhile or may not submit, TooOftenError, QuotaError, StoreError.
    """
    packed = pack_file(received.path)
    with board.writing() as connection:
        known = accounts.account(connection, account.id)
        if known is None or not known.may_submit or known.submitter_id is None:
            raise RefusedError(reason="this account may not submit; ask the organiser")
        accounts.count_try(connection, f"uploads {known.submitter_id}", most, received.arrived)
        own = known.submitter_id
        if not received.dry:
            same = connection.execute(
                select(jobs)
                .where(jobs.c.submitter_id == own, ~jobs.c.dry, jobs.c.state.in_((*OPEN, queue.DONE)))
                .where(*(jobs.c[name] == getattr(received, name) for name in ("name", "test", "sha256")))
                .order_by(jobs.c.id)
            ).first()
            if same is not None:  # one that failed or was refused is tried again
                return Accepted(number=same.number, receipt=same.receipt, note=KNOWN)
            check_quota(connection, board.settings, own, known.team, received.arrived, (), with_uploads=True)
        store_content(connection, received.sha256, packed)
        number, arrived = secrets.token_hex(queue.NUMBER_BYTES), received.arrived.astimezone(UTC)
        values = {name: getattr(received, name) for name in ("test", "sha256", "bytes")}
        receipt = signed_receipts.sign(
            key,
            values
            | {
                "number": number,
                "board": board.settings.title,
                "submitter": known.team,
                "file": received.name,
                "arrived": arrived.isoformat(timespec="microseconds"),
            },
        )
        values |= {"number": number, "name": received.name, "dry": received.dry, "receipt": receipt}
        queue.enqueue(connection, queue.UPLOAD, arrived, account_id=known.id, submitter_id=own, **values)
    return Accepted(number=number, receipt=receipt)


# What a worker does with an upload.


def upload(connection: Connection, job_id: int) -> Row[Any]:
    """Return an upload, with the name of its team."""
    query = select(jobs, submitters.c.name.label("team")).join(submitters)
    return connection.execute(query.where(jobs.c.id == job_id)).one()


def place_of(connection: Connection, row: Row[Any], folder: str) -> str:
    """Write an upload's content into an empty folder; return the path of the archive, or of the submission's folder.

    Raises StoreError if it is damaged, OSError.
    """
    if not row.test:
        path = os.path.join(folder, row.name)
        write_content(connection, row.sha256, path)
        return path
    top = os.path.join(folder, "upload")
    os.makedirs(os.path.join(top, row.test))
    write_content(connection, row.sha256, os.path.join(top, row.test, row.name))
    return top


def remove_content(connection: Connection, row: Row[Any]) -> None:
    """Delete the content of an upload that is done, unless a submission or another upload has the same."""
    is_needed = (
        exists().where(files.c.sha256 == row.sha256),
        exists().where(jobs.c.sha256 == row.sha256, jobs.c.state.in_(OPEN)),
    )
    connection.execute(delete(blobs).where(blobs.c.sha256 == row.sha256, *(~one for one in is_needed)))


# What a team sees of its uploads.


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadView:
    """An upload and what became of it: ``state`` is that of the submission, once there is one."""

    number: str
    name: str
    test: str
    arrived: datetime
    ended: datetime | None
    dry: bool
    state: str
    reason: str
    code: str
    cost: int
    charge: str
    is_final: bool
    problems: Sequence[Mapping[str, Any]]
    receipt: str
    sha256: str
    bytes: int

    @property
    def is_settled(self) -> bool:
        """Whether nothing changes any more by itself."""
        return self.state != WAITING


def uploads_of(
    connection: Connection, submitter_id: int, *, number: str | None = None, most: int = 200
) -> list[UploadView]:
    """Return a team's uploads, the latest first; with a ``number`` that one alone."""
    names = ("code", "state", "reason", "problems", "withdrawn", "cost", "charge", "final")
    own = [submissions.c[name].label(f"own_{name}") for name in names]
    query = select(jobs, *own).outerjoin(submissions, submissions.c.id == jobs.c.submission_id)
    query = query.where(jobs.c.submitter_id == submitter_id, jobs.c.kind == queue.UPLOAD)
    if number is not None:
        query = query.where(jobs.c.number == number)
    views = []
    for row in connection.execute(query.order_by(jobs.c.id.desc()).limit(most)):
        is_known = row.submission_id is not None
        state = row.own_state if is_known else row.state if row.ended else WAITING
        state = "withdrawn" if is_known and row.own_withdrawn is not None else state
        reason = row.own_reason if is_known else row.reason
        told = ("number", "name", "test", "arrived", "ended", "dry", "receipt", "sha256", "bytes")
        view = UploadView(
            **{name: getattr(row, name) for name in told},
            state=state,
            reason=reason if state not in ("withdrawn", WAITING) else "",
            code=row.own_code if is_known else "",
            cost=row.own_cost if is_known else 0,
            charge=row.own_charge if is_known else "",
            is_final=is_known and row.own_final is not None,
            problems=row.own_problems if is_known else row.problems,
        )
        views.append(view)
    return views


def outputs_of(connection: Connection, one: UploadView, tests: Sequence[str]) -> list[Row[Any]]:
    """Return the outputs for some tests that an upload was scored with: ``id``, ``test``, ``name``, ``sha256``."""
    query = select(outputs.c.id, outputs.c.test, files.c.name, files.c.sha256).join_from(outputs, files)
    query = query.join(submissions, submissions.c.id == outputs.c.submission_id)
    own = submissions.c.code == one.code, submissions.c.state == SCORED, submissions.c.withdrawn.is_(None)
    return list(connection.execute(query.where(*own, outputs.c.test.in_(tests)).order_by(outputs.c.id)))


def is_own(connection: Connection, submitter_id: int | None, code: str) -> bool:
    """Whether a submission is a team's, by its whole code."""
    query = select(submissions.c.id).where(submissions.c.code == code, submissions.c.submitter_id == submitter_id)
    return connection.execute(query).first() is not None
