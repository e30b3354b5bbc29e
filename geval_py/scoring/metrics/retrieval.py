"""Metrics of rankings: items behind TABs, the expected ones in any order, those given by falling relevance.

The average precision of a line is the sum, over the items found, of the share of right ones up to there, by the
number of those expected; MAP is its mean (Manning, Raghavan and Schütze, "Introduction to information retrieval",
2008, chapter 8). NDCG@n is the mean of the lines' discounted gains, a right item at rank i counting 1/log2(i + 1)
among the first n, by what the best ranking gains (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
techniques", 2002). An item that is given again is passed over.

Written here, since scikit-learn ranks scores of all items, and an output lists a few of unknown ones. An empty line
is no item. Where none is expected, GEval's MAP is NaN, and the line an error here; its NDCG is 1. Both are from 0 to
1, the best.
"""

from __future__ import annotations

from math import log2

from geval_py.scoring.metrics.rows import malformed, of_answer

NOTHING_EXPECTED = "no item expected"


def items_of(text: str) -> list[str]:
    """Split a line into items, each once; none in an empty line."""
    return list(dict.fromkeys(text.split("\t"))) if text else []


def average_precision(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the average precision of a line's items."""
    wanted = of_answer(_wanted, expected, line)
    found, total = 0, 0.0
    for rank, item in enumerate(items_of(text), 1):
        if item in wanted:
            found += 1
            total += found / rank
    return (total / len(wanted),)


def _wanted(text: str, line: int) -> list[str]:
    if not text:
        raise malformed(NOTHING_EXPECTED, text, line, "an average precision takes an item that is expected")
    return text.split("\t")


def discounted_gain(first: int, text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the normalised discounted gain of a line's first items."""
    del line
    wanted = frozenset(items_of(expected))
    gained = [rank for rank, item in enumerate(items_of(text)[:first], 1) if item in wanted]
    best = range(1, min(first, len(wanted)) + 1)
    return (_discounted(gained) / _discounted(best) if wanted else 1.0,)


def _discounted(ranks: range | list[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)
