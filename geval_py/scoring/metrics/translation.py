"""Metrics of texts: error rates, BLEU and GLEU as GEval computes them, and sacreBLEU's scores.

An error rate counts the words or characters that must be inserted, deleted or replaced to get the expected text.

WER and CER are the edits of all lines divided by the length of all expected lines, in [0, ∞); WAR and CAR are 1 minus
these. In ``Mean/…`` each line counts the same, however long. Where nothing is expected, the rate of a line is 0 if it
is empty, else 1. RapidFuzz computes the distances (Levenshtein, "Binary codes capable of correcting deletions,
insertions and reversals", 1966), 64 characters at a time. JiWER, which is built on it, would split and normalise
texts in its own way. CharMatch is F_0.5 of corrections, in [0, 1]: the edits from the input to the expected text, and
to the output.

BLEU and GLEU are of words between white space, in [0, 1]. sacreBLEU's scores have its defaults: BLEU, chrF and chrF++
are from 0 to 100, TER from 0 to infinity.
"""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, NamedTuple

from geval_py.errors import LongLineWarning
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.metrics.base import LineStatistics, Row
from geval_py.scoring.metrics.classes import ratio
from geval_py.text import split_words

LONGEST = 4  # words of an n-gram
LONG_LINE, LONG_TER_LINE = 50_000, 16_000  # words
LONG_PAIR = 5_000_000_000  # items of one text times those of the other, which take half a second
DISTANCE_PROGRAM = """\
import pickle, signal, sys
from rapidfuzz.distance import Levenshtein
signal.signal(signal.SIGINT, signal.SIG_DFL)
one, other, limits = pickle.load(sys.stdin.buffer)
print(Levenshtein.distance(one, other, **limits))
"""


def distance(one: Sequence[Hashable], other: Sequence[Hashable], **limits: Any) -> int:
    """Count the fewest edits, of one item each, that turn one sequence into the other; ``limits`` are RapidFuzz's.

    RapidFuzz cannot be interrupted, and two books take it half a minute: it compares them in a process of its own.

    >>> distance("kitten", "sitting"), distance(["a", "cat"], ["cat"])
    (3, 1)
    """
    long = f"lines of {LONG_LINE:,} words or more take long: the time for edits grows with the square of a line"
    warn_of_long_lines(LONG_LINE, long, one, other)
    if len(one) * len(other) < LONG_PAIR:
        from rapidfuzz.distance import Levenshtein

        return int(Levenshtein.distance(one, other, **limits))
    words = [sys.executable, "-c", DISTANCE_PROGRAM]
    run = subprocess.run(words, input=pickle.dumps((one, other, limits)), stdout=subprocess.PIPE, check=True)
    return int(run.stdout)


def warn_of_long_lines(least: int, message: str, *texts: Sequence[Hashable]) -> None:
    """Warn, once for all callers, if each of some texts has as many words as the least number."""
    if min(map(len, texts)) >= least and all(
        len(split_words(text) if isinstance(text, str) else text) >= least for text in texts
    ):
        warnings.warn(message, LongLineWarning, stacklevel=1)


def word_errors(text: str, expected: str) -> Row:
    """Count the edits of words, and the expected words."""
    answer = split_words(expected)
    return distance(split_words(text), answer), len(answer)


def character_errors(text: str, expected: str) -> Row:
    """Count the edits of characters, and the expected characters; white space counts, also at the ends."""
    return distance(text, expected), len(expected)


def error_rate(edits: float, length: float) -> float:
    """Divide edits by a length; where nothing was expected, return 0 if nothing was given, else 1."""
    return edits / length if length else float(edits > 0)


def right_rate(edits: float, length: float) -> float:
    """Compute 1 minus the error rate."""
    return 1 - error_rate(edits, length)


def corrections(text: str, expected: str, source: str) -> Row:
    """Count the right corrections of an input line, the source, the expected corrections, and the edits made.

    GEval's definition, which no library has: half of the edits that the way from the input to the answer through the
    output saves, compared with the sum of the expected and the made edits, were right.
    """
    needed, done, left = distance(source, expected), distance(source, text), distance(text, expected)
    return min(needed, max(0, needed + done - left) // 2), needed, done


def bleu_row(text: str, expected: str) -> Row:
    """Count the right n-grams of 1 to 4 words, the words of the reference closest in length, and all n-grams.

    Unlike BLEU, GEval allows each n-gram the smallest non-zero count among the references.
    """
    words = split_words(text)
    answers = [split_words(reference) for reference in expected.split("\t")]
    right = []
    for n in range(1, LONGEST + 1):
        output_ngrams, limits = _ngrams(words, n), dict[tuple[str, ...], int]()
        for answer in (_ngrams(answer, n) for answer in answers):
            for one in output_ngrams.keys() & answer.keys():
                limits[one] = min(limits.get(one, output_ngrams[one]), answer[one])
        right.append(sum(limits.values()))
    closest = min(map(len, answers), key=lambda length: (abs(length - len(words)), length))
    return (*right, closest, *(max(0, len(words) - n) for n in range(LONGEST)))


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))  # the shortest ends it


def bleu(*counts: float) -> float:
    """Compute BLEU from the sums of the counts of :func:`bleu_row`."""
    parts = bleu_details(*counts)
    score: float = math.prod(parts["precisions"]) ** (1 / LONGEST) * parts["brevity_penalty"]
    return score


def bleu_details(*counts: float) -> dict[str, Any]:
    """Return the precisions, the brevity penalty and the lengths in words that make BLEU.

    The brevity penalty is exp(1 - r/c) for an output of c words and references of r words, if r is greater; else 1.
    """
    right, answer_words, every = counts[:LONGEST], counts[LONGEST], counts[LONGEST + 1 :]
    words, penalty = every[0], 1.0
    if words < answer_words:
        penalty = math.exp(1 - answer_words / words) if words else 0.0
    lengths = {"system_length": int(words), "reference_length": int(answer_words)}
    return {"precisions": list(map(ratio, right, every)), "brevity_penalty": penalty, **lengths}


def gleu_row(text: str, expected: str) -> Row:
    """Count, for the best reference, the right n-grams and all n-grams of the longer text."""
    ngrams, *answers = (
        sum((_ngrams(split_words(one), n) for n in range(1, LONGEST + 1)), Counter[tuple[str, ...]]())
        for one in (text, *expected.split("\t"))
    )
    counts = [((ngrams & answer).total(), max(ngrams.total(), answer.total())) for answer in answers]
    return max(reversed(counts), key=lambda pair: ratio(*pair))  # GEval takes the last of equally good ones


def _new_metric(name: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name == "SacreBLEU":
        return BLEU(force=True)  # the same score; without force, it warns of lines that look tokenised
    return TER() if name == "TER" else CHRF(word_order=2 if name == "chrF++" else 0)


_metric = cache(_new_metric)


class SacreColumn(NamedTuple):
    """The number of references of a line, and sacreBLEU's statistics of it."""

    name: str

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        del first_line  # no line is malformed
        metric = _new_metric(self.name)  # a metric of its own, since several threads score lines
        rows: list[list[float]] = []
        # A carriage return, which decode_lines drops, is white space for sacreBLEU.
        texts, answer_lines = (decode_lines(bytes(block).replace(b"\r", b" ")) for block in (outputs, expected))
        for text, expected_line in zip(texts, answer_lines, strict=True):
            answers = expected_line.split("\t")
            if self.name == "TER":
                long = f"TER needs over 3 GB for a line of {LONG_TER_LINE:,} words, and four times as much for twice"
                warn_of_long_lines(LONG_TER_LINE, long, text, expected_line)
            (counts,) = metric._extract_corpus_statistics([text], [[answer] for answer in answers])
            rows.append([len(answers), *counts])
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
        from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
        from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

        tokenizers: tuple[Any, ...] = (Tokenizer13a, TokenizerRegexp, TercomTokenizer)
        for tokenizer in tokenizers:  # each keeps 65,536 lines, half a gigabyte of long lines
            tokenizer.__call__.cache_clear()
        return LineStatistics(tuple(array("d", column) for column in zip(*rows, strict=True)))


def sacre_score(name: str, references: float, *counts: float) -> float:
    """Compute sacreBLEU's score from the sums of its statistics, but for that of the number of references."""
    del references
    score: float = _metric(name)._compute_score_from_stats(list(counts)).score
    return score


def sacre_details(references: float, *counts: float) -> dict[str, Any]:
    """Return what sacreBLEU shows beside its BLEU; the precisions are smoothed, in percent."""
    del references
    score = _metric("SacreBLEU")._compute_score_from_stats(list(counts))
    lengths = {"system_length": int(score.sys_len), "reference_length": int(score.ref_len)}
    return {"precisions": score.precisions, "brevity_penalty": score.bp, **lengths}


def sacre_signature(name: str, statistics: LineStatistics) -> str:
    """Return sacreBLEU's signature of a score."""
    metric = _new_metric(name)
    counts = set(statistics.columns[0])
    metric.num_refs = int(min(counts)) if len(counts) == 1 else -1
    return str(metric.get_signature())
