"""The perplexity of a text by an n-gram model with back-off, as KenLM's query computes it.

Each word is predicted by the longest n-gram of the model that ends with it; each longer context that the model has
adds its back-off. A word that the model does not have is <unk>. After <s>, which is given, each word and then </s> is
predicted.

    perplexity including OOVs = 10 ^ (- sum of log10 probabilities / tokens)
    perplexity excluding OOVs = the same, without the words that are <unk>

query does not count the last line of a text if its line end is missing; here it is counted.
"""

from __future__ import annotations

import math
from array import array
from functools import partial
from itertools import accumulate, chain, compress, pairwise, repeat

from geval_py import errors, version
from geval_py.modelling import kenlm_models
from geval_py.reading.config import check_sampling
from geval_py.reading.lines import text_blocks
from geval_py.tables import numbers, table
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from geval_py.explaining import significance
    from geval_py.modelling import corpus, ngram_model
    from geval_py.scoring.blocks import Progress

UNKNOWN_CONVENTION = (
    "a word that the model does not have is <unk>, with the probability that the model gives to it: perplexities "
    "including OOVs compare only between models with the same vocabulary and the same convention for <unk>"
)


class TextScore(Value):
    """The scores of a text, which has at least one sentence; the arrays have a value for each sentence.

    ``logs`` are the sums of log10 probabilities, ``known_logs`` the same without words out of vocabulary, ``oov`` the
    numbers of these words; ``tokens`` are the numbers of predicted tokens: the words, and </s>.
    """

    logs: array[float]
    known_logs: array[float]
    oov: array[int]
    tokens: array[int]

    @property
    def perplexity_including_oov(self) -> float:
        """The perplexity of all tokens; NaN if there is none, inf if one has probability 0."""
        return _perplexity(math.fsum(self.logs), sum(self.tokens))

    @property
    def perplexity_excluding_oov(self) -> float:
        """The perplexity of the tokens in the vocabulary of the model."""
        return _perplexity(math.fsum(self.known_logs), sum(self.tokens) - sum(self.oov))

    def intervals(
        self, samples: int, seed: int, progress: Progress | None = None
    ) -> tuple[significance.Interval, significance.Interval]:
        """Return the 95 % intervals of both perplexities, from resamples of the sentences.

        Raises UsageError for fewer than one sample.
        """
        import numpy as np

        from geval_py.explaining import resampling, significance

        check_sampling(samples, seed)
        known = np.subtract(self.tokens, self.oov)
        columns = np.stack([self.logs, self.tokens, self.known_logs, known], axis=1)
        infinite = np.isinf(columns)
        finite = np.where(infinite, 0.0, columns)
        tables = [
            np.where(weights @ infinite > 0, -np.inf, weights @ finite)
            for weights in resampling.bootstrap_weights(len(columns), samples, seed, progress)
        ]
        logs, tokens, known_logs, known = np.concatenate(tables).T
        including, excluding = (
            [_perplexity(log, count) for log, count in zip(sums, counts, strict=True) if count > 0]
            for sums, counts in ((logs, tokens), (known_logs, known))
        )
        tail = significance.expanded_tail(len(columns))
        return (
            significance.Interval.of(including or [math.nan], samples=samples, seed=seed, tail=tail),
            significance.Interval.of(excluding or [math.nan], samples=samples, seed=seed, tail=tail),
        )


def _perplexity(log: float, tokens: float) -> float:
    """Return 10 ^ (-log / tokens).

    >>> _perplexity(-2.0, 1), _perplexity(-1e5, 1), _perplexity(0.0, 0)
    (100.0, inf, nan)
    """
    if not tokens:
        return math.nan
    try:
        return math.pow(10.0, -log / tokens)
    except OverflowError:
        return math.inf


def score_texts(model: ngram_model.NgramModel, paths: Sequence[str], *, sentence_marks: bool = True) -> TextScore:
    """Score the lines of several texts; raises EmptyFileError if there is no line, and ModelError.

    Without ``sentence_marks``, no <s> is in front of a line, and no </s> is predicted at its end.
    """
    from geval_py.modelling import corpus

    return _joined(
        [
            score_sentences(model, corpus.sentences_of(block, bytes.split), sentence_marks=sentence_marks)
            for path in paths
            for _, block in text_blocks(path)
        ],
        paths[0],
    )


def _joined(scores: Sequence[TextScore], path: str) -> TextScore:
    """Join the scores of blocks; raises EmptyFileError if there is none."""
    if not scores:
        raise errors.EmptyFileError(what="text", path=path)
    columns = (chain.from_iterable(getattr(score, name) for score in scores) for name in TextScore.fields)
    logs, known_logs, oov, tokens = map(array, "ddqq", columns)
    return TextScore(logs=logs, known_logs=known_logs, oov=oov, tokens=tokens)


def score_by_kenlm(path: str, texts: Sequence[str], *, sentence_marks: bool = True) -> TextScore:
    """Score the lines of several texts by a binary file of KenLM, as :func:`score_texts` does.

    Probing hash tables are read here, other files by the package kenlm. Both compute in single precision, so that a
    sentence differs by about 1e-6 of its log10 probability.
    """
    model = kenlm_models.open_probing(path)
    score = kenlm_models.open_other(path) if model is None else model.scores
    blocks = (block for text in texts for _, block in text_blocks(text))
    return _joined([_sums_of(*score(block, marks=sentence_marks)) for block in blocks], texts[0])


def _sums_of(logs: array[float], unknown: bytes, lengths: array[int]) -> TextScore:
    """Sum the log10 probabilities of tokens by sentence."""
    sums, known_sums, oov = array("d"), array("d"), array("q")
    known = unknown.translate(_SWAPPED)
    for start, end in pairwise(accumulate(lengths, initial=0)):
        of_words = logs[start:end]
        sums.append(math.fsum(of_words))
        oov.append(unknown.count(1, start, end))
        known_sums.append(math.fsum(compress(of_words, known[start:end])) if oov[-1] else sums[-1])
    return TextScore(logs=sums, known_logs=known_sums, oov=oov, tokens=lengths)


_SWAPPED = bytes.maketrans(b"\0\1", b"\1\0")


def score_sentences(
    model: ngram_model.NgramModel, sentences: Sequence[corpus.Sentence], *, sentence_marks: bool = True
) -> TextScore:
    """Score sentences (at least one), given as words; raises ModelError if the model lacks <s> or </s>."""
    import numpy as np

    from geval_py.modelling import corpus

    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    words = chain.from_iterable(sentences)
    ids = np.fromiter(map(model.ids.get, words, repeat(corpus.UNKNOWN)), np.int32, int(lengths.sum()))
    if sentence_marks:
        missing = sorted(model.missing & set(corpus.MARKS[1:]))
        if missing:
            raise errors.ModelError(
                path=model.name,
                message=f"the model has no {b' and '.join(missing).decode()}\n"
                "  it was made without the marks of sentences: score without them, too (--no-sentence-marks)",
            )
        tokens = corpus.with_marks(ids, lengths)
        depths = corpus.places(lengths + 2)
        lengths = lengths + 1
    else:
        tokens, depths = ids, corpus.places(lengths)
    logs, _ = token_scores(model, tokens, depths)
    predicted = depths > 0 if sentence_marks else np.ones(len(tokens), np.bool_)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    logs, unknown = logs[predicted], tokens[predicted] == corpus.UNKNOWN
    sums = partial(np.bincount, sentence, minlength=len(lengths))
    return TextScore(
        logs=array("d", sums(weights=logs).tobytes()),
        known_logs=array("d", sums(weights=np.where(unknown, 0.0, logs)).tobytes()),
        oov=array("q", np.bincount(sentence[unknown], minlength=len(lengths)).tobytes()),
        tokens=array("q", lengths.tobytes()),
    )


def token_scores(
    model: ngram_model.NgramModel, tokens: corpus.Ids, depths: corpus.Ids
) -> tuple[corpus.Doubles, corpus.Ids]:
    """Return the log10 probability of each token, and the length of the n-gram that predicts it.

    Tokens at depth 0 are predicted without a context. The length of an unknown word is 1.
    """
    import numpy as np

    rows = model.rows_of(tokens, depths)
    logs = model.levels[0].log_probabilities[tokens]
    lengths = np.ones(len(tokens), np.int32)
    for length in range(2, model.order + 1):
        found = np.flatnonzero(rows[length - 1] >= 0)
        logs[found] = model.levels[length - 1].log_probabilities[rows[length - 1][found]]
        lengths[found] = length
    for length in range(1, model.order):
        places = np.flatnonzero((depths >= length) & (lengths <= length))
        contexts = rows[length - 1][places - 1]
        places, contexts = places[contexts >= 0], contexts[contexts >= 0]
        logs[places] += model.levels[length - 1].log_backoffs[contexts]
    return logs, lengths


def perplexity_table(
    score: TextScore,
    intervals: tuple[significance.Interval, significance.Interval] | None = None,
    precision: int | None = None,
) -> table.Table:
    """Return a table of the perplexities in the words of KenLM's query, with 95 % intervals if they are given."""
    including, excluding = score.perplexity_including_oov, score.perplexity_excluding_oov
    if intervals is None:
        shown = [numbers.number(value, precision) for value in (including, excluding)]
    else:
        shown = [numbers.with_half_width(interval.middle, interval.half_width, precision) for interval in intervals]
    rows = [
        ("Perplexity including OOVs", shown[0]),
        ("Perplexity excluding OOVs", shown[1]),
        ("OOVs", sum(score.oov)),
        ("Tokens", sum(score.tokens)),
    ]
    return table.Table([table.Column(name="what"), table.Column(name="value")], rows)


def perplexity_document(
    score: TextScore, intervals: tuple[significance.Interval, significance.Interval] | None = None
) -> dict[str, Any]:
    """Return the perplexities as a JSON document, with the convention for <unk>."""
    document = {
        "version": version.__version__,
        "perplexity_including_oov": score.perplexity_including_oov,
        "perplexity_excluding_oov": score.perplexity_excluding_oov,
        "oov": sum(score.oov),
        "tokens": sum(score.tokens),
        "sentences": len(score.tokens),
        "unknown_words": UNKNOWN_CONVENTION,
    }
    names = ("interval_including_oov", "interval_excluding_oov")
    return document | {
        name: interval.to_dict() for name, interval in zip(names, intervals or (), strict=False) if interval
    }


def sentences_table(score: TextScore, precision: int | None = None) -> table.Table:
    """Return a table with a row for each sentence: log10 of its probability, and the words out of vocabulary."""
    write = partial(numbers.number, precision=precision)
    columns = [table.Column(name="log10", write=write), table.Column(name="OOVs")]
    rows = zip(score.logs.tolist(), score.oov.tolist(), strict=True)
    return table.Table(columns, rows, at_a_time=1000)
