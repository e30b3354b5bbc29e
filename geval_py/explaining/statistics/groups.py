"""Which of many systems can be told apart, as groups of those that cannot.

The groups are those of a compact letter display (Piepho, "An algorithm for a letter-based representation of
all-pairwise comparisons", 2004): two systems can be told apart if and only if they share no group.
"""

from __future__ import annotations

LEVEL = 0.05


def samples_needed(pairs: int) -> int:
    """Give the least number of samples with which the smallest p-value of so many can pass Holm's correction.

    >>> samples_needed(1), samples_needed(1225)
    (20, 24500)
    """
    return round(pairs / LEVEL)


def undistinguished_groups(systems: int, distinct: frozenset[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Group systems, numbered in order of score, of whom ``distinct`` pairs (the lesser first) can be told apart.

    No group holds a distinct pair, to none can a system be added, and every pair that is not distinct, like every
    system, is in one. There may be more such groups, exponentially many; of those, these are the first that are
    needed, in order of score.
    """
    groups: list[tuple[int, ...]] = []
    covered: set[tuple[int, int]] = set()
    for one in range(systems):
        for other in range(one, systems):
            if (one, other) not in distinct and (one, other) not in covered:
                group = _grow({one, other}, systems, distinct)
                groups.append(group)
                covered.update((a, b) for a in group for b in group)
    return sorted(groups)


def _grow(group: set[int], systems: int, distinct: frozenset[tuple[int, int]]) -> tuple[int, ...]:
    """Add to a group every system, in order, that can be told apart from none of it."""
    for new in range(systems):
        if not any((min(new, old), max(new, old)) in distinct for old in group):
            group.add(new)
    return tuple(sorted(group))
