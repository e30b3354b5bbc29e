"""Receipts: what a submitter, or the organiser, has in hand when a submission was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.database.schema import FAILED, SCORED, files, submissions, submitters
from geval_py.board.operations.quota import written
from geval_py.errors import DataError
from geval_py.text import visible

if TYPE_CHECKING:
    from sqlalchemy import Connection


REFUSED = "refused"  # the state of what was not stored
WITHDRAWN = "withdrawn"  # and that of what the organiser has hidden, whatever it was before
CODE_DIGITS, LEAST_DIGITS = 12, 4


class UnknownCodeError(DataError):
    """No submission has a code that begins so, or several have."""

    code: str
    codes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.codes:
            return f"Several submissions have a code that begins with `{visible(self.code)}`: {', '.join(self.codes)}"
        return f"No submission has the code `{visible(self.code)}`\n  geval board status BOARD shows all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a submission: its code and digests, when it arrived, its state and why.

    ``digests`` are of its files, by name. ``charge`` says why it counts for the quota, or not. ``note`` is what to
    know beside. What was refused has no code: it is not stored.
    """

    code: str
    submitter: str
    name: str
    source: str
    digest: str
    digests: tuple[tuple[str, str], ...] = ()
    arrived: datetime
    state: str
    reason: str = ""
    charged: bool = False
    charge: str = ""
    note: str = ""

    @property
    def is_fine(self) -> bool:
        """Tell whether it was scored, and stands."""
        return self.state == SCORED

    def __str__(self) -> str:
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.code or '-'}  {self.state}{f': {visible(self.reason)}' if self.reason else ''}\n"
        yield f"  submitter   {visible(self.submitter)}\n"
        yield f"  submission  {visible(self.name)}\n"
        yield f"  arrived     {written(self.arrived)}\n"
        if self.digest:
            yield f"  digest      {self.digest}\n"
        for name, digest in self.digests:
            yield f"  file        {digest}  {visible(name)}\n"
        if self.charge:
            yield f"  quota       {'counts' if self.charged else 'does not count'}: {self.charge}\n"
        if self.note:
            yield f"  note        {self.note}\n"

    def document(self) -> dict[str, Any]:
        """Give it as it stands in a JSON document."""
        names = ("code", "state", "reason", "submitter", "name", "source", "digest", "charged", "charge", "note")
        fields = {name: getattr(self, name) for name in names}
        return fields | {"arrived": written(self.arrived), "files": dict(self.digests)}


def code_of(key: str, digest: str, arrived: datetime) -> str:
    """Make a submission's code of its submitter, content and arrival, so that a rebuilt board has the same."""
    moment = arrived.astimezone(UTC).isoformat(timespec="microseconds")
    return sha256(f"{key}\n{digest}\n{moment}".encode()).hexdigest()[:CODE_DIGITS]


def receipt_of(connection: Connection, submission_id: int, note: str = "") -> Receipt:
    """Make the receipt of a submission that is stored; why one was withdrawn is not in it, but for the organiser."""
    row = connection.execute(
        select(submissions, submitters.c.name.label("submitter"))
        .join_from(submissions, submitters)
        .where(submissions.c.id == submission_id)
    ).one()
    stored = select(files.c.name, files.c.sha256).where(files.c.submission_id == submission_id).order_by(files.c.id)
    return Receipt(
        code=row.code,
        submitter=row.submitter,
        name=row.name,
        source=row.source,
        digest=row.digest,
        digests=tuple((name, digest) for name, digest in connection.execute(stored)),
        arrived=row.arrived,
        state=row.state if row.withdrawn is None else WITHDRAWN,
        reason=row.reason if row.withdrawn is None else "",
        charged=row.charged,
        charge=row.charge,
        note=note or ("add it again: it failed for no fault of its own" if row.state == FAILED else ""),
    )


def id_of(connection: Connection, code: str) -> int:
    """Find a submission by its code, or a beginning of it that no other has; raises UnknownCodeError."""
    begins = submissions.c.code.startswith(code, autoescape=True)
    least = len(code) >= LEAST_DIGITS
    rows = (
        connection.execute(select(submissions.c.id, submissions.c.code).where(begins).limit(9)).all() if least else []
    )
    exact = [row for row in rows if row.code == code]
    if len(exact or rows) != 1:
        raise UnknownCodeError(code=code, codes=tuple(sorted(row.code for row in rows)))
    return int((exact or rows)[0].id)
