"""Places: which other places an entry might as well have, and what it would take to reach a better one.

Approximate randomisation of exact losses, with Holm's correction over all pairs of the ranked entries, tells two
entries apart at 5 %, as in ``geval compare``. Two shown scores are told apart if all pairs of their entries are: so
entries with the same shown score have the same range and groups, which reveal nothing of the undisclosed digits.
The advice on changing places uses nothing but what a leaderboard shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from geval_py.board.submission import Entry, Standings
from geval_py.explaining.significance import LEVEL, undistinguished_groups
from geval_py.tables.numbers import difference, figure


@dataclass(frozen=True, slots=True)
class Position:
    """The first and last place that cannot be told apart from an entry's, and the numbers of its groups."""

    first: int
    last: int
    groups: tuple[int, ...]


def positions(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[Sequence[Any]], *, of: int
) -> list[Position]:
    """Compute the positions of the first entries of a ranking of ``of`` entries, given as (shown score, evaluation).

    ``p_values`` of pairs of evaluations come in ascending order; a missing pair has p = 1.
    """
    distinct = frozenset(_by_shown_scores(ranked, frozenset(told_apart(ranked, p_values))))
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
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[Sequence[Any]]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of entries, as indexes, that can be told apart.

    Holm's correction multiplies each p-value, in ascending order, by the number of pairs left; when the product
    reaches the level, this pair and all later ones cannot be told apart, so the loop ends.
    """
    left = len(ranked) * (len(ranked) - 1) // 2
    by_evaluation: dict[int, list[int]] = {}
    for number, (_, evaluation) in enumerate(ranked):
        by_evaluation.setdefault(evaluation, []).append(number)
    for one, other, p_value in p_values:
        for a in by_evaluation.get(one, ()):
            for b in by_evaluation.get(other, ()):
                if ranked[a][0] != ranked[b][0]:
                    if left * p_value >= LEVEL:
                        return
                    yield (a, b) if a < b else (b, a)
                    left -= 1


def _by_shown_scores(
    ranked: Sequence[tuple[float | None, int]], distinct: frozenset[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Keep a pair only if all pairs with the same two shown scores can be told apart."""
    sizes = Counter(score for score, _ in ranked)
    told = Counter((ranked[one][0], ranked[other][0]) for one, other in distinct)
    for one, other in distinct:
        scores = ranked[one][0], ranked[other][0]
        if told[scores] == sizes[scores[0]] * sizes[scores[1]]:
            yield one, other


def what_it_takes(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Return sentences: how far an entry is from the places around it, and which of these differ only by chance."""
    if not standings.digits:
        return ("No score or place is shown before the last deadline.",)
    if entry.baseline:
        return ("A baseline stands in the table without a place.",)
    ranked = [
        _Place(output=other.output_id, number=other.place, score=other.score, groups=frozenset(other.groups))
        for other in standings.entries
        if other.place is not None and other.score is not None
    ]
    this = next((at for at in ranked if at.output == entry.output_id), None)
    if this is None:
        return ("An entry without a score has no place.",)
    return tuple(_sentences(standings, entry, this, ranked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The place of an entry, its shown score and its groups."""

    output: int
    number: int
    score: float
    groups: frozenset[int]


def _sentences(standings: Standings, entry: Entry, this: _Place, ranked: list[_Place]) -> Iterator[str]:
    ahead = [other for other in ranked if other.number < this.number]
    behind = [other for other in ranked if other.number > this.number]
    equal = len(ranked) - len(ahead) - len(behind) - 1
    if math.isinf(this.score):
        worse = f"worse than {figure(standings.floor, standings.digits)}, which an output without any knowledge has"
        infinite = "infinite: some expected word was given no probability at all"
        yield f"The score is {infinite if standings.floor is None else worse}."
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
    """Return the score needed to overtake an entry."""
    than = "below" if standings.direction == "lower" else "above"
    score = f"a {standings.metric} {than} {figure(other.score, standings.digits)}"
    now = "" if math.isinf(this.score) else f", {_apart(standings, this, other)} better than now"
    return f"Place {other.number} needs {score}{now}."


def _apart(standings: Standings, one: _Place, other: _Place) -> str:
    if math.isinf(one.score) or math.isinf(other.score):
        return "infinitely"
    return difference(one.score, other.score, standings.digits)


def _by_chance(
    standings: Standings, entry: Entry, this: _Place, others: tuple[list[_Place], list[_Place]]
) -> Iterator[str]:
    """Name the places that cannot be told apart from this one, and the distance of the nearest that can."""
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
