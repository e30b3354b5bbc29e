"""Disclosed figures as text: the digits that are disclosed, no more and no fewer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from geval_py.board.figures import figure as plain
from geval_py.board.ranking.tables import group_label

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def figure(value: float | None, digits: int) -> str:
    """Write a number with significant digits, a dash for none.

    >>> figure(174.6, 4), figure(170.0, 4), figure(1235000.0, 4), figure(0.0123, 4), figure(None, 4)
    ('174.6', '170.0', '1235000', '0.01230', '–')
    """
    if value is None or not digits:
        return "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return plain(value, digits).replace("-", "−")


def span(low: float | None, high: float | None, digits: int) -> str:
    """Write an interval, "" for none.

    >>> span(168.1, 181.24, 4)
    '168.1–181.2'
    """
    return "" if low is None or high is None else f"{figure(low, digits)}–{figure(high, digits)}"


def place(number: int | None, *, shared: bool, ties: str) -> str:
    """Write a place, with = where others share it and the board says so; a dash for none."""
    return "–" if number is None else f"{number}=" if shared and ties == "shared" else str(number)


def places(first: int | None, last: int | None) -> str:
    """Write a range of places."""
    if first is None or last is None:
        return "–"
    return str(first) if first == last else f"{first}–{last}"


def letters(groups: Sequence[int]) -> str:
    """Write the numbers of clusters, from 0, as compact letters.

    >>> letters((0, 1))
    'ab'
    """
    return "".join(map(group_label, groups))


def moment(when: datetime) -> str:
    """Write a moment for people, to the minute.

    >>> moment(datetime(2027, 1, 31, 23, 5, tzinfo=UTC))
    '31 Jan 2027, 23:05 UTC'
    """
    utc = when.astimezone(UTC)
    return f"{day(utc)}, {utc:%H:%M} UTC"


def day(when: datetime) -> str:
    """Write the day of a moment, in UTC."""
    utc = when.astimezone(UTC)
    return f"{utc.day} {_MONTHS[utc.month - 1]} {utc.year}"


def short_day(when: datetime) -> str:
    """Write the day of a moment, in UTC, without its year."""
    utc = when.astimezone(UTC)
    return f"{utc.day} {_MONTHS[utc.month - 1]}"


def iso(when: datetime) -> str:
    """Write a moment for machines, to the second.

    >>> iso(datetime(2027, 1, 31, 23, 5, tzinfo=UTC))
    '2027-01-31T23:05:00Z'
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def count(number: int, noun: str, plural: str = "") -> str:
    """Write a number of things.

    >>> count(1, "entry", "entries"), count(10519, "line")
    ('1 entry', '10,519 lines')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """Write a number of bytes.

    >>> size(999), size(1_500_000)
    ('999 B', '1.5 MB')
    """
    amount = float(number)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
