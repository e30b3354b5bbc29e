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
from typing import Any, NamedTuple

from geval_py.board.submission import Entry, Standings
from geval_py.explaining.significance import LEVEL, undistinguished_groups
from geval_py.tables.numbers import difference, figure


class Position(NamedTuple):
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
    pairs = list(told_apart(ranked, p_values))
    sizes = Counter(score for score, _ in ranked)
    told = Counter((ranked[one][0], ranked[other][0]) for one, other in pairs)
    distinct = frozenset(
        (one, other)
        for one, other in pairs
        if told[ranked[one][0], ranked[other][0]] == sizes[ranked[one][0]] * sizes[ranked[other][0]]
    )
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


def what_it_takes(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Return sentences: how far an entry is from the places around it, and which of these differ only by chance."""
    if not standings.digits:
        return ("No score or place is shown before the last deadline.",)
    if entry.baseline:
        return ("A baseline stands in the table without a place.",)
    ranked = [
        _Place(other.output_id, other.place, other.score, frozenset(other.groups))
        for other in standings.entries
        if other.place is not None and other.score is not None
    ]
    this = next((at for at in ranked if at.output == entry.output_id), None)
    if this is None:
        return ("An entry without a score has no place.",)
    return tuple(_sentences(standings, entry, this, ranked))


class _Place(NamedTuple):
    """The place of an entry, its shown score and its groups."""

    output: int
    number: int
    score: float
    groups: frozenset[int]


def _sentences(standings: Standings, entry: Entry, this: _Place, ranked: list[_Place]) -> Iterator[str]:
    def apart(other: _Place) -> str:
        if math.isinf(this.score) or math.isinf(other.score):
            return "infinitely"
        return difference(this.score, other.score, standings.digits)

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
    than = "below" if standings.direction == "lower" else "above"
    for number in sorted({other.number for other in (*ahead[:1], *ahead[-1:])}, reverse=True):
        other = next(other for other in ahead if other.number == number)
        now = "" if math.isinf(this.score) else f", {apart(other)} better than now"
        yield f"Place {number} needs a {standings.metric} {than} {figure(other.score, standings.digits)}{now}."
    if not ahead:
        yield "No entry has a better score."
    if behind:
        yield f"The entry at place {behind[0].number} is {apart(behind[0])} behind."
    if entry.first is None:
        return
    if entry.first < (entry.last or 0):
        places = f"{entry.first} to {entry.last}"
        yield f"On other lines of the same kind, the place might be any from {places}: these cannot be told apart."
    surely_ahead, surely_behind = (
        [other for other in side if other.groups and not other.groups & this.groups] for side in (ahead, behind)
    )
    for side, nearest in (("better", surely_ahead[-1:]), ("worse", surely_behind[:1])):
        for other in nearest:
            yield f"The nearest entry that is surely {side} is at place {other.number}, {apart(other)} {side}."
