"""Error rates: how many words, or characters, must be put in, taken out or replaced to come to what was expected.

WER and CER are the edits of all lines by the length of all expected lines, in [0, ∞); WAR and CAR are 1 minus these.
In ``Mean/…`` each line counts the same, however long. An empty line lacks all that is expected; where nothing is, the
rate of a line is 0 if it is empty, and else 1. The distances (Levenshtein, "Binary codes capable of correcting
deletions, insertions and reversals", 1966) are RapidFuzz's, whose algorithm takes 64 characters at a time.

CharMatch is F_0.5 of corrections, in [0, 1]: the edits from the input to what was expected, and those of the output.
RapidFuzz rather than JiWER, which rests on it: that would split and normalise texts in its own way.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.classes import ratio
from geval_py.text import split_words

if TYPE_CHECKING:
    from collections.abc import Hashable


CHAR_MATCH_BETA = 0.5


def distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Count the least edits, of an item each, that make one sequence the other.

    >>> distance("kitten", "sitting"), distance(["a", "cat"], ["cat"])
    (3, 1)
    """
    return Levenshtein.distance(one, other)


def word_errors(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the edits of words, and the words expected."""
    del line
    answer = split_words(expected)
    return distance(split_words(text), answer), len(answer)


def character_errors(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the edits of characters, and the characters expected; white space counts, at the ends too."""
    del line
    return distance(text, expected), len(expected)


def word_error_rate(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the error rate of a line's words."""
    return (error_rate(*word_errors(text, expected, line)),)


def character_error_rate(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the error rate of a line's characters."""
    return (error_rate(*character_errors(text, expected, line)),)


def error_rate(edits: float, length: float) -> float:
    """Divide edits by a length; where nothing was expected, 0 if nothing was given, else 1."""
    return edits / length if length else float(edits > 0)


def errors(totals: Sequence[float], lines: float) -> float:
    """Give the error rate of all lines."""
    del lines
    return error_rate(*totals)


def right(totals: Sequence[float], lines: float) -> float:
    """Give 1 minus the error rate of all lines."""
    del lines
    return 1 - error_rate(*totals)


def corrections(given: str, text: str, expected: str) -> tuple[float, ...]:
    """Count the corrections of an input line that were made, those expected, and the edits of the output.

    What was made is half of what the way from the input by the output to the answer is shorter than it may be:
    GEval's definition, which no library has.
    """
    wanted, done, left = distance(given, expected), distance(given, text), distance(text, expected)
    return min(wanted, max(0, wanted + done - left) // 2), wanted, done


# BLEU and GLEU as GEval has them: of words between white space, in [0, 1].


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


# sacreBLEU's own scores: BLEU, chrF, chrF++ and TER, from 0 to 100 (TER: to infinity), with its defaults.


_KINDS: dict[str, Callable[[], Any]] = {
    "SacreBLEU": lambda: BLEU(force=True),  # the same score; unforced, it warns of lines that look tokenised
    "chrF": CHRF,
    "chrF++": lambda: CHRF(word_order=2),
    "TER": TER,
}

# They keep 65,536 lines each: half a gigabyte of long ones. Lines are forgotten when a block is done.
_WITH_MEMORY: tuple[Any, ...] = (Tokenizer13a, TokenizerRegexp, TercomTokenizer)


@lru_cache(maxsize=len(_KINDS))
def _of_sacrebleu(name: str) -> Any:
    return _KINDS[name]()


@dataclass(frozen=True, slots=True)
class SacreColumn:
    """How many references a line has, and sacreBLEU's statistics of it."""

    name: str

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        del first_line  # no line is malformed
        metric = _KINDS[self.name]()  # one of its own, since lines are scored on several threads
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        rows = [_row(metric, text, references(answer)) for text, answer in pairs]
        for tokenizer in _WITH_MEMORY:
            tokenizer.__call__.cache_clear()
        return LineStatistics(columns=tuple(array("d", column) for column in zip(*rows, strict=True)))


def sacre_column(name: str, setting: object) -> SacreColumn:
    """Make the column of one of sacreBLEU's metrics; nothing can be set."""
    del setting
    return SacreColumn(name)


def _row(metric: Any, text: str, answers: Sequence[str]) -> list[float]:
    (found,) = metric._extract_corpus_statistics([text], [[answer] for answer in answers])
    return [len(answers), *found]


def sacre_score(name: str, totals: Sequence[float], lines: float) -> float:
    """Give sacreBLEU's score of the sums of its statistics."""
    del lines
    score: float = _of_sacrebleu(name)._compute_score_from_stats(list(totals[1:])).score
    return score


def sacre_signature(name: str, statistics: LineStatistics) -> str:
    """Give sacreBLEU's signature of a score."""
    metric = _KINDS[name]()
    counts = set(statistics.columns[0])
    metric.num_refs = int(min(counts)) if len(counts) == 1 else -1
    return str(metric.get_signature())
