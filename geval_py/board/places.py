"""Places: which of them an entry may as well have, and what it would take to have another.

Two entries can be told apart where approximate randomisation says so, with Holm's correction over all pairs of the
ranked entries, at 5 %, as in ``geval compare``. Those whose shown scores are equal cannot: nothing is told of them
that the disclosed digits do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from geval_py.explaining.statistics.corrections import holm
from geval_py.explaining.statistics.groups import LEVEL, undistinguished_groups


@dataclass(frozen=True, slots=True)
class Position:
    """The first and last place that cannot be told apart from an entry's, and the numbers of its groups."""

    first: int
    last: int
    groups: tuple[int, ...]


def positions(
    ranked: Sequence[tuple[float | None, int]], p_values: Mapping[tuple[int, int], float], *, of: int
) -> list[Position]:
    """Place entries, in order, by their shown scores and evaluations, among ``of`` that are ranked.

    ``p_values`` are by two evaluations, the lesser first; a pair that is not there has one of 1.
    """
    distinct = frozenset(told_apart(ranked, p_values))
    better, worse = [0] * len(ranked), [0] * len(ranked)
    for one, other in distinct:
        worse[one] += 1
        better[other] += 1
    groups: list[list[int]] = [[] for _ in ranked]
    for number, group in enumerate(undistinguished_groups(len(ranked), distinct)):
        for one in group:
            groups[one].append(number)
    return [Position(1 + better[n], of - worse[n], tuple(groups[n])) for n in range(len(ranked))]


def told_apart(
    ranked: Sequence[tuple[float | None, int]], p_values: Mapping[tuple[int, int], float]
) -> Iterator[tuple[int, int]]:
    """Give the pairs of entries, by their numbers in order, that can be told apart."""
    by_evaluation: dict[int, list[int]] = {}
    for number, (_, evaluation) in enumerate(ranked):
        by_evaluation.setdefault(evaluation, []).append(number)
    pairs: list[tuple[int, int]] = []
    small: list[float] = []
    for (one, other), p_value in p_values.items():
        for a in by_evaluation.get(one, ()):
            for b in by_evaluation.get(other, ()):
                if ranked[a][0] != ranked[b][0]:
                    pairs.append((min(a, b), max(a, b)))
                    small.append(p_value)
    family = len(ranked) * (len(ranked) - 1) // 2
    corrected = holm([*small, *[1.0] * (family - len(small))])
    return (pair for pair, p_value in zip(pairs, corrected, strict=False) if p_value < LEVEL)
