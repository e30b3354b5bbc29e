"""What it would take to change places, in sentences made from nothing but what a leaderboard shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from geval_py.board.figures import difference, figure
from geval_py.board.values import Entry, Standings


def what_it_takes(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Say how far an entry of a leaderboard is from the places around it, and which of them are but chance."""
    if not standings.digits:
        return ("No score or place is shown before the last deadline.",)
    if entry.baseline:
        return ("A baseline stands in the table without a place.",)
    ranked = list(_ranked(standings))
    this = next((at for at in ranked if at.output == entry.output_id), None)
    if this is None:
        return ("An entry without a score has no place.",)
    return tuple(_sentences(standings, entry, this, ranked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The place of an entry, its shown score, its groups."""

    output: int
    number: int
    score: float
    groups: frozenset[int]


def _ranked(standings: Standings) -> Iterator[_Place]:
    for entry in standings.entries:
        if entry.place is not None and entry.score is not None:
            groups = frozenset(entry.groups)
            yield _Place(output=entry.output_id, number=entry.place, score=entry.score, groups=groups)


def _sentences(standings: Standings, entry: Entry, this: _Place, ranked: list[_Place]) -> Iterator[str]:
    ahead = [other for other in ranked if other.number < this.number]
    behind = [other for other in ranked if other.number > this.number]
    equal = len(ranked) - len(ahead) - len(behind) - 1
    if math.isinf(this.score):
        yield "The score is infinite: some expected word was given no probability at all."
    if equal:
        others = "another entry" if equal == 1 else f"{equal} other entries"
        yield f"The shown score, and so the place, is also that of {others}."
    for number in sorted({other.number for other in (*ahead[:1], *ahead[-1:])}, reverse=True):
        yield _takes(standings, this, next(other for other in ahead if other.number == number))
    if not ahead:
        yield "No entry has a better score."
    if behind:
        yield f"The entry at place {behind[0].number} is {_apart(standings, this, behind[0])} behind."
    yield from _by_chance(standings, entry, this, (ahead, behind))


def _takes(standings: Standings, this: _Place, other: _Place) -> str:
    """Say what score takes the place of one that is ahead."""
    than = "below" if standings.direction == "lower" else "above"
    score = f"a {standings.metric} {than} {figure(other.score, standings.digits)}"
    now = "" if math.isinf(this.score) else f", {_apart(standings, this, other)} better than now"
    return f"Place {other.number} takes {score}{now}."


def _apart(standings: Standings, one: _Place, other: _Place) -> str:
    if math.isinf(one.score) or math.isinf(other.score):
        return "infinitely"
    return difference(one.score, other.score, standings.digits)


def _by_chance(
    standings: Standings, entry: Entry, this: _Place, others: tuple[list[_Place], list[_Place]]
) -> Iterator[str]:
    """Say which places cannot be told apart from this one, and how far away the nearest are that can."""
    if entry.first is None:
        return
    if entry.first < (entry.last or 0):
        places = f"{entry.first} to {entry.last}"
        yield f"On other lines of the same kind, the place might be any from {places}: these cannot be told apart."
    ahead, behind = ([other for other in side if not other.groups & this.groups and other.groups] for side in others)
    for side, nearest in (("better", ahead[-1:]), ("worse", behind[:1])):
        for other in nearest:
            apart = _apart(standings, this, other)
            yield f"The nearest entry that is surely {side} is at place {other.number}, {apart} {side}."
