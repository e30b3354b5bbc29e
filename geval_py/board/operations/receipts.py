"""The quota of a submitter on a day, and the receipt of a submission, which tells whether it counts for the quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select, update

from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    WAITING,
    Files,
    Submissions,
    Submitters,
    submissions,
    submitters,
)
from geval_py.board.intake.sources import ReceivedOutput
from geval_py.board.operations.teams import team_settings
from geval_py.board.ranking.order import arrived_in
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.board.submission import attributes
from geval_py.errors import DataError
from geval_py.text import counted, visible, words

CHARGES = {
    SCORED: (1, "it was scored"),
    REJECTED: (1, "it was rejected, by rules that `geval check` also applies"),
    FAILED: (0, "it failed, through no fault of the submitter"),
}
AGAIN = "it failed through no fault of its own: `geval board add` or `scan --again` tries it again"
WITHDRAWN = "withdrawn"  # the state of a submission that the organiser has hidden, whatever it was before
SUBMISSIONS = select(submissions, Submitters.name.label("submitter")).join_from(submissions, submitters)
MIN_CODE_DIGITS = 4

# What says when a submission arrived.
NOW, AT, MTIME, MANIFEST, UPLOAD = words("now --at mtime arrivals.csv upload")
ARRIVED = (MTIME, NOW)  # the words of --arrived
WAYS = {
    NOW: "when it was added",
    AT: "as --at says",
    MTIME: "from the times of its files",
    MANIFEST: "as arrivals.csv says",
    UPLOAD: "when the server received its last byte",
}


class QuotaError(DataError):
    """A submission would exceed the quota of a day: nothing was scored or stored. ``again`` is the next day, in UTC.

    ``outputs`` are those for the hidden ``test`` with the most: the submission counts as so many.
    """

    submitter: str
    used: int
    allowed: int
    day: str
    zone: str
    again: datetime
    outputs: int = 1
    test: str = ""

    def __str__(self) -> str:
        many = counted(self.allowed, "submission")
        if self.outputs > self.allowed:
            own = counted(self.allowed, "output")
            return (
                f"The quota is {many} a day: {self.outputs} outputs for {visible(self.test)} count as {self.outputs}"
                f"\n  send at most {own} for a test set with hidden answers; nothing was scored"
            )
        more = f", and this one counts as {self.outputs}, its number of outputs for {visible(self.test)}"
        return (
            f"The quota is used up: {visible(self.submitter)} sent {self.used} of {many} on {self.day} ({self.zone})"
            f"{more if self.outputs > 1 else ''}\n  the next day begins at {moment_text(self.again)}; "
            "nothing was scored"
        )


class Day(NamedTuple):
    """A day in a zone, from its first moment up to the first of the next, both in UTC."""

    name: str
    start: datetime
    end: datetime


def day_of(moment: datetime, zone: tzinfo) -> Day:
    """Return the day of a moment; it has 23 or 25 hours when the clocks change.

    >>> from zoneinfo import ZoneInfo
    >>> day = day_of(datetime(2027, 3, 28, 0, 30, tzinfo=UTC), ZoneInfo("Europe/Warsaw"))
    >>> day.name, day.end - day.start == timedelta(hours=23)
    ('2027-03-28', True)
    """
    local = moment.astimezone(zone).date()
    start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (local, local + timedelta(1)))
    return Day(local.isoformat(), start, end)


def most_hidden(settings: BoardSettings, outputs: Iterable[ReceivedOutput]) -> tuple[int, str]:
    """Return the largest number of outputs for one test with hidden answers, and that test; (0, "") for none."""
    hidden = {test.name for test in settings.tests if not test.visible}
    ((test, most),) = Counter(output.test for output in outputs if output.test in hidden).most_common(1) or [("", 0)]
    return most, test


def charge_of(
    settings: BoardSettings, state: str, outputs: Iterable[ReceivedOutput], *, baseline: bool
) -> tuple[int, str]:
    """Return as how many a submission counts for the quota of its phase, and the reason.

    A scored one counts as often as it tries: once for each of its outputs for the same test with hidden answers.
    """
    outputs = list(outputs)
    if baseline:
        return 0, "a baseline of the organiser"
    if state == REJECTED and not outputs:
        return 0, "it was rejected before its outputs were checked"
    most, test = most_hidden(settings, outputs) if state == SCORED else (0, "")
    if most > 1:
        return most, f"it was scored, with {most} outputs for {visible(test)}"
    return CHARGES[state]


def check_quota(
    connection: Connection,
    settings: BoardSettings,
    submitter_id: int | None,
    name: str,
    arrived: datetime,
    outputs: Iterable[ReceivedOutput],
    *,
    row_id: int = 0,
    with_uploads: bool = False,
) -> None:
    """Raise QuotaError if one more submission would be too many; ``submitter_id`` is None for a new submitter.

    The quota is that of the phase in which it arrived, with the exceptions for its team. Submissions of the same day
    in another phase do not count, nor what the row ``row_id`` counted for before it was tried again. If
    ``with_uploads``, each upload that waits to become a submission counts as one.
    """
    settings = team_settings(connection, settings, submitter_id)
    in_phase = settings.at(arrived)
    allowed = in_phase.submissions_a_day
    if not allowed:
        return
    day = day_of(arrived, settings.zone)
    used = quota_used(connection, settings, submitter_id, arrived, row_id=row_id, with_uploads=with_uploads)
    most, test = most_hidden(in_phase, outputs)
    if used + max(most, 1) > allowed:
        raise QuotaError(
            submitter=name,
            used=used,
            allowed=allowed,
            day=day.name,
            zone=str(settings.zone),
            again=day.end,
            outputs=max(most, 1),
            test=test,
        )


def quota_used(
    connection: Connection,
    settings: BoardSettings,
    submitter_id: int | None,
    moment: datetime,
    *,
    row_id: int = 0,
    with_uploads: bool,
) -> int:
    """Return how many submissions of the day and phase of a moment a submitter, with these settings, has used.

    The row ``row_id`` does not count.
    """
    phase, day = settings.phase_of(moment), day_of(moment, settings.zone)
    query = select(func.sum(Submissions.cost)).where(
        Submissions.submitter_id == submitter_id,
        Submissions.id != row_id,
        Submissions.arrived >= day.start,
        Submissions.arrived < day.end,
        arrived_in(settings, phase, Submissions.arrived),
    )
    if not with_uploads:
        query = query.where(Submissions.state != WAITING)
    return int(connection.scalar(query) or 0)


class UnknownCodeError(DataError):
    """No submission, or several, have a code that begins so."""

    code: str
    codes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.codes:
            return f"Several submissions have a code that begins with `{visible(self.code)}`: {', '.join(self.codes)}"
        return f"No submission has the code `{visible(self.code)}`\n  geval board status BOARD shows all"


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The receipt of a submission: its code and digests, when it arrived, its state and the reason.

    ``files`` are the digests of its files, by name. ``arrived_by`` is what says when it arrived, one of WAYS. It
    counts for the quota as ``cost`` submissions, and ``charge`` is why. A refused one is not stored, and has no code.
    """

    code: str = ""
    state: str
    reason: str = ""
    submitter: str
    name: str
    source: str
    digest: str = ""
    arrived_by: str = ""
    cost: int = 0
    charge: str = ""
    note: str = ""
    arrived: datetime
    files: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        return asdict(self) | {"arrived": moment_text(self.arrived)}


def receipt_of(connection: Connection, submission_id: int, note: str = "") -> Receipt:
    """Read the receipt of a stored submission, without the reason of a withdrawal, which is the organiser's."""
    row = connection.execute(SUBMISSIONS.where(Submissions.id == submission_id)).one()
    stored = select(Files.name, Files.sha256).where(Files.submission_id == submission_id).order_by(Files.id)
    return Receipt(
        **attributes(row, "code submitter name source digest arrived arrived_by cost charge"),
        files={row.name: row.sha256 for row in connection.execute(stored)},
        state=WITHDRAWN if row.withdrawn else row.state,
        reason="" if row.withdrawn else row.reason,
        note=note or (AGAIN if row.state == FAILED else ""),
    )


def change_submission(connection: Connection, submission_id: int, **values: Any) -> None:
    """Change columns of a submission."""
    connection.execute(update(submissions).where(Submissions.id == submission_id).values(values))


def find_submission(connection: Connection, code: str) -> Row[Any]:
    """Find a submission by its code, or by the beginning of its code alone; raises UnknownCodeError."""
    query = select(submissions).where(Submissions.code.startswith(code, autoescape=True)).limit(9)
    rows = connection.execute(query).all() if len(code) >= MIN_CODE_DIGITS else []
    if len(rows) != 1:
        raise UnknownCodeError(code=code, codes=tuple(sorted(row.code for row in rows)))
    return rows[0]
