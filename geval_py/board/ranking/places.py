"""Places: which of them an entry may as well have, and what it would take to have another.

Two entries can be told apart where approximate randomisation says so, with Holm's correction over all pairs of the
ranked entries, at 5 %, as in ``geval compare``; this is of exact losses. Two shown scores are told apart where all
pairs of their entries are: so entries of one shown score have one range and the same groups, which tell nothing of
the digits that are not disclosed. What it would take to change places is said from what a leaderboard shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from geval_py.board.ranking.disclosure import difference, figure
from geval_py.board.submission import Entry, Standings
from geval_py.explaining.significance import LEVEL, undistinguished_groups


@dataclass(frozen=True, slots=True)
class Position:
    """The first and last place that cannot be told apart from an entry's, and the numbers of its groups."""

    first: int
    last: int
    groups: tuple[int, ...]


def positions(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[tuple[int, int, float]], *, of: int
) -> list[Position]:
    """Place entries, in order, by their shown scores and evaluations, among ``of`` that are ranked.

    ``p_values`` are those of pairs of evaluations, from the least on; of a pair that is not there it is 1.
    """
    distinct = frozenset(_alike(ranked, frozenset(told_apart(ranked, p_values))))
    better, worse = [0] * len(ranked), [0] * len(ranked)
    for one, other in distinct:
        worse[one] += 1
        better[other] += 1
    groups: list[list[int]] = [[] for _ in ranked]
    together = undistinguished_groups(len(ranked), distinct) if distinct else [tuple(range(len(ranked)))]
    for number, group in enumerate(together):
        for one in group:
            groups[one].append(number)
    return [Position(1 + better[n], of - worse[n], tuple(groups[n])) for n in range(len(ranked))]


def told_apart(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[tuple[int, int, float]]
) -> Iterator[tuple[int, int]]:
    """Give the pairs of entries, by their numbers in order, that can be told apart.

    Holm's correction, from the least p-value on: it is multiplied by the number of pairs that are left, and where
    that reaches the level, it and all that follow are too great. So no more of them are looked at.
    """
    left = len(ranked) * (len(ranked) - 1) // 2
    by_evaluation: dict[int, list[int]] = {}
    for number, (_, evaluation) in enumerate(ranked):
        by_evaluation.setdefault(evaluation, []).append(number)
    for one, other, p_value in p_values:
        for a, b in product(by_evaluation.get(one, ()), by_evaluation.get(other, ())):
            if ranked[a][0] != ranked[b][0]:
                if left * p_value >= LEVEL:
                    return
                yield min(a, b), max(a, b)
                left -= 1


def _alike(
    ranked: Sequence[tuple[float | None, int]], distinct: frozenset[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Give, of the pairs that can be told apart, those of two shown scores of which all pairs can."""
    sizes = Counter(score for score, _ in ranked)
    found = Counter((ranked[one][0], ranked[other][0]) for one, other in distinct)
    for one, other in distinct:
        scores = ranked[one][0], ranked[other][0]
        if found[scores] == sizes[scores[0]] * sizes[scores[1]]:
            yield one, other


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
