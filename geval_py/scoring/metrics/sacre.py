"""sacreBLEU's own scores: BLEU, chrF, chrF++ and TER, from 0 to 100 (TER: to infinity), with its defaults.

What differs from GEval's BLEU is said in sacreBLEU's signature: lines are tokenised as mteval-v13a.pl does, counts of
0 are smoothed, and of several references an n-gram's greatest count is the limit (Post, "A call for clarity in
reporting BLEU scores", 2018). chrF is an F-score of character n-grams (Popović, "chrF", 2015; "chrF++", 2017), TER
the edits of words, where moving a block of them is one (Snover and others, "A study of translation edit rate with
targeted human annotation", 2006).

The statistics of a line, and the score of their sums, are sacreBLEU's; its own tests of significance go the same way.
An empty line is one without words.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.ngrams import references

if TYPE_CHECKING:
    from collections.abc import Sequence

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
