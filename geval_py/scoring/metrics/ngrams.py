"""BLEU and GLEU as GEval has them: of words between white space, in [0, 1].

BLEU = BP (p₁ p₂ p₃ p₄)^¼ with p_n, the share of the output's n-grams that a reference has, each counted no more often
than there ("clipped"), and the brevity penalty BP = min(1, exp(1 - r/c)) of the output's length c and that of the
references closest to it, r; all summed over the lines first (Papineni and others, "BLEU: a method for automatic
evaluation of machine translation", 2002). Nothing is smoothed: without one 4-gram that is right the score is 0.

GLEU is the number of n-grams of 1 to 4 words that are right, by that of the output's or the reference's n-grams,
whichever are more; of several references the one counts that gives most (Wu and others, "Google's neural machine
translation system", 2016).

Both are written here, since no library has GEval's definition. Of the references that have an n-gram at all, its
BLEU clips at the one that has it least often, where Papineni and sacreBLEU take that which has it most often; and a
precision without n-grams, of lines all too short, is 1 there. Both are better higher. An empty line has no n-gram;
its BLEU alone is 0 where a word is expected, and 1 where none is.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from geval_py.scoring.metrics.ratios import ratio
from geval_py.text import split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 4  # words of an n-gram

NGrams: TypeAlias = "Counter[tuple[str, ...]]"


def references(expected: str) -> list[str]:
    """Split an expected line into its references, at each TAB."""
    return expected.split("\t")


def bleu_row(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count what is right of the output's n-grams of 1 to 4 words, the closest reference's words, all n-grams."""
    del line
    words = split_words(text)
    answers = [split_words(reference) for reference in references(expected)]
    right = [_clipped(_ngrams(words, n), [_ngrams(answer, n) for answer in answers]) for n in range(1, LONGEST + 1)]
    closest = min(map(len, answers), key=lambda length: (abs(length - len(words)), length))
    return (*right, closest, *(max(0, len(words) - n) for n in range(LONGEST)))


def _ngrams(words: Sequence[str], n: int) -> NGrams:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))  # the shortest ends it


def _clipped(found: NGrams, answers: Sequence[NGrams]) -> int:
    """Count the n-grams that are right; the least count of an answer that has one at all is the most."""
    limits: dict[tuple[str, ...], int] = {}
    for answer in answers:
        for one in found.keys() & answer.keys():
            limits[one] = min(limits.get(one, found[one]), answer[one])
    return sum(limits.values())


def bleu(totals: Sequence[float], lines: float) -> float:
    """Give BLEU of the sums of such counts."""
    del lines
    right, answer_words, every = totals[:LONGEST], totals[LONGEST], totals[LONGEST + 1 :]
    precisions = math.prod(map(ratio, right, every))
    return precisions ** (1 / LONGEST) * brevity_penalty(every[0], answer_words)


def brevity_penalty(words: float, answer_words: float) -> float:
    """Give exp(1 - r/c) for an output of c words where the references have more, r; else 1."""
    if words >= answer_words:
        return 1.0
    return math.exp(1 - answer_words / words) if words else 0.0


def gleu_row(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the n-grams that are right, and those of the output or the reference, of the best reference."""
    del line
    found = _all_ngrams(split_words(text))
    counts = (_gleu_counts(found, _all_ngrams(split_words(reference))) for reference in references(expected))
    return max(reversed(list(counts)), key=lambda pair: ratio(*pair))  # of equal ones GEval takes the last


def _all_ngrams(words: Sequence[str]) -> NGrams:
    every: NGrams = Counter()
    for n in range(1, LONGEST + 1):
        every.update(_ngrams(words, n))
    return every


def _gleu_counts(found: NGrams, answer: NGrams) -> tuple[int, int]:
    return (found & answer).total(), max(found.total(), answer.total())
