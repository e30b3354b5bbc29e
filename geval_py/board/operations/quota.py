"""How many submissions a submitter may send on one day, and what each was charged for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from geval_py.board.database.schema import REJECTED, SCORED, submissions
from geval_py.errors import DataError
from geval_py.text import visible

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.settings import Settings


CHARGES = {SCORED: "it was scored", REJECTED: "it was rejected, by the rules that `geval check` knows too"}
OF_THE_BOARD = "it failed, which is not its submitter's fault"
OF_THE_ORGANISER = "a baseline of the organiser's"


class QuotaError(DataError):
    """A submitter has sent all that one day allows: nothing was scored, nothing stored. ``again`` is in UTC."""

    submitter: str
    used: int
    allowed: int
    day: str
    zone: str
    again: datetime

    def __str__(self) -> str:
        many = "submission" if self.allowed == 1 else "submissions"
        return (
            f"The quota is used up: {visible(self.submitter)} sent {self.used} of {self.allowed} {many} on "
            f"{self.day} ({self.zone})\n  the next day begins at {written(self.again)}; nothing was scored"
        )


@dataclass(frozen=True, slots=True)
class Day:
    """A day in a zone, from its first moment up to the first of the next, both in UTC."""

    name: str
    start: datetime
    end: datetime


def day_of(moment: datetime, zone: tzinfo) -> Day:
    """Give the day of a moment; it has 23 or 25 hours where clocks change.

    >>> from zoneinfo import ZoneInfo
    >>> day = day_of(datetime(2027, 3, 28, 0, 30, tzinfo=UTC), ZoneInfo("Europe/Warsaw"))
    >>> day.name, day.end - day.start == timedelta(hours=23)
    ('2027-03-28', True)
    """
    local = moment.astimezone(zone).date()
    start, end = (
        datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC) for day in (local, local + timedelta(1))
    )
    return Day(local.isoformat(), start, end)


def charge_of(state: str, *, baseline: bool) -> tuple[bool, str]:
    """Tell whether a submission in some state is charged, and why, or why not."""
    if baseline:
        return False, OF_THE_ORGANISER
    return (True, CHARGES[state]) if state in CHARGES else (False, OF_THE_BOARD)


def used(connection: Connection, submitter_id: int, day: Day) -> int:
    """Count what a submitter was charged for on a day."""
    charged = select(func.count()).where(
        submissions.c.submitter_id == submitter_id,
        submissions.c.charged,
        submissions.c.arrived >= day.start,
        submissions.c.arrived < day.end,
    )
    return connection.execute(charged).scalar_one()


def check_quota(
    connection: Connection, settings: Settings, submitter_id: int | None, name: str, arrived: datetime
) -> None:
    """Raise QuotaError where one more submission would be too many; ``submitter_id`` is None for a new submitter."""
    allowed = settings.submissions_a_day
    if not allowed or submitter_id is None:
        return
    day = day_of(arrived, settings.zone)
    sent = used(connection, submitter_id, day)
    if sent >= allowed:
        raise QuotaError(
            submitter=name, used=sent, allowed=allowed, day=day.name, zone=str(settings.zone), again=day.end
        )


def written(moment: datetime) -> str:
    """Write a moment in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
