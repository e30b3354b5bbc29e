"""N-gram language models: train, load and save them, score texts, and predict next words.

The perplexity of a text is the one that KenLM's query computes. Each word is predicted by the longest n-gram of the
model that ends with it; each longer context that the model has adds its back-off. A word that the model does not have
is <unk>. After <s>, which is given, each word and then </s> is predicted.

    perplexity including OOVs = 10 ^ (- sum of log10 probabilities / tokens)
    perplexity excluding OOVs = the same, without the words that are <unk>

query does not count the last line of a text if its line end is missing; here it is counted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, Self

import numpy as np

from geval_py import errors
from geval_py.explaining import significance, statistics
from geval_py.modelling import arpa, backoff, corpus, estimation
from geval_py.modelling.corpus import Doubles, Longs, TokenScores
from geval_py.modelling.texts import TextBlock, TextSource, blocks_of, line_of
from geval_py.reading import compression, rewriting
from geval_py.reading.config import check_sampling
from geval_py.scoring.blocks import Progress
from geval_py.tables import formats, numbers, table

UNKNOWN_CONVENTION = (
    "a word that is not in the vocabulary has the probability of <unk>: compare perplexities including OOVs only "
    "between models with the same vocabulary and the same convention for <unk>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """The scores of a text, which has at least one sentence; the arrays have a value for each sentence.

    ``logs`` are the sums of log10 probabilities, ``known_logs`` the same without words out of vocabulary, ``oov`` the
    numbers of these words; ``tokens`` are the numbers of predicted tokens: the words, and </s>.
    """

    logs: Doubles
    known_logs: Doubles
    oov: Longs
    tokens: Longs

    @property
    def perplexity_including_oov(self) -> float:
        """The perplexity of all tokens; NaN if there is none, inf if one has probability 0."""
        return perplexity_of(math.fsum(self.logs), int(self.tokens.sum()))

    @property
    def perplexity_excluding_oov(self) -> float:
        """The perplexity of the tokens in the vocabulary of the model."""
        return perplexity_of(math.fsum(self.known_logs), int((self.tokens - self.oov).sum()))

    def intervals(
        self, samples: int, seed: int, progress: Progress | None = None
    ) -> tuple[significance.Interval, significance.Interval]:
        """Return the 95 % intervals of both perplexities, from resamples of the sentences.

        Raises UsageError for fewer than one sample.
        """
        pairs = [(self.logs, self.tokens), (self.known_logs, self.tokens - self.oov)]
        including, excluding = resampled(pairs, samples, seed, progress)
        return including, excluding


def resampled(
    pairs: Sequence[tuple[Doubles, Longs | Doubles]], samples: int, seed: int, progress: Progress | None = None
) -> list[significance.Interval]:
    """Return 95 % intervals of perplexities, from resamples of texts: each of log10 probabilities and counts by text.

    Raises UsageError for fewer than one sample.
    """
    check_sampling(samples, seed)
    columns = np.stack([column for pair in pairs for column in pair], axis=1)
    infinite = np.isinf(columns)
    finite = np.where(infinite, 0.0, columns)
    tables = [
        np.where(weights @ infinite > 0, -np.inf, weights @ finite)
        for weights in statistics.bootstrap_weights(len(columns), samples, seed, progress)
    ]
    sums, tail = np.concatenate(tables), significance.expanded_tail(len(columns))
    perplexities = (
        [perplexity_of(log, count) for log, count in sums[:, first : first + 2] if count > 0] or [math.nan]
        for first in range(0, columns.shape[1], 2)
    )
    return [significance.Interval.of(values, samples=samples, seed=seed, tail=tail) for values in perplexities]


def perplexity_of(log: float, tokens: float) -> float:
    """Return 10 ^ (-log / tokens).

    >>> perplexity_of(-2.0, 1), perplexity_of(-1e5, 1), perplexity_of(0.0, 0)
    (100.0, inf, nan)
    """
    if not tokens:
        return math.nan
    try:
        return math.pow(10.0, -log / tokens)
    except OverflowError:
        return math.inf


def _summed(scores: TokenScores) -> TextScore:
    """Sum the log10 probabilities of tokens by sentence."""
    logs, orders, lengths = scores
    unknown = orders == 0
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    sums, known_sums = (
        np.bincount(sentence, weights=weights, minlength=len(lengths)).astype(np.float64)
        for weights in (logs, np.where(unknown, 0.0, logs))
    )
    return TextScore(
        logs=sums,
        known_logs=known_sums,
        oov=np.bincount(sentence[unknown], minlength=len(lengths)),
        tokens=lengths,
    )


class NgramModel:
    """An n-gram language model; make one by ``train`` or ``load``.

    A text is a string or words; words are split at white space. <s> is in front of it if ``bos``, and </s> behind it
    is predicted if ``eos``.
    """

    def __init__(self, model: backoff.BackoffModel) -> None:
        self.model = model

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return self.model.order

    @classmethod
    def train(
        cls,
        texts: TextSource,
        order: int = 5,
        *,
        prune: Sequence[int] = (),
        vocabulary: Collection[str] | None = None,
        discount_fallback: bool | Sequence[float] = False,
        interpolate_unigrams: bool = True,
        vocab_pad: int = 0,
        exact_discounts: bool = False,
        skip_symbols: bool = False,
        counts: str | None = None,
        sentence_marks: bool = True,
    ) -> Self:
        """Estimate a model with interpolated modified Kneser-Ney, as KenLM's lmplz does.

        With ``counts``, "add-one" or "maximum-likelihood", its probabilities are those of plain counts instead.
        ``texts`` are sentences, each a string or a list of words, or the path of a file with a sentence a line. The
        options are those of ``geval lm train``. Raises UsageError for options that are wrong, ModelError if the text
        allows no discounts, MalformedLineError for a mark such as <s> in the text, and otherwise as for any file.
        """
        fallback = estimation.FALLBACK if discount_fallback is True else discount_fallback
        how = estimation.Estimation(
            order=order,
            prune=tuple(prune),
            vocabulary=None if vocabulary is None else {word.encode(errors="surrogateescape") for word in vocabulary},
            fallback=tuple(fallback or ()),
            interpolate_unigrams=interpolate_unigrams,
            vocabulary_size=vocab_pad,
            exact_discounts=exact_discounts,
        )
        if counts and how != estimation.Estimation(order=order, fallback=()):
            raise errors.UsageError("plain counts take no options of Kneser-Ney: leave out counts, or these")
        text = corpus.corpus_of(blocks_of(texts), skip_symbols=skip_symbols, marks=sentence_marks)
        return cls(estimation.plain_model(text, order, counts) if counts else estimation.estimate(text, how).model)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an ARPA file, maybe compressed; raises ModelError and MalformedLineError if it is no model."""
        return cls(arpa.read_arpa(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ARPA file, whole or not at all, compressed by its ending: .gz, .xz, .bz2 or .zst.

        Raises UsageError if the file cannot be written.
        """
        name = os.fspath(path)
        with rewriting.written_whole(name, compression=compression.compression_by_ending(name)) as file:
            arpa.write_arpa(self.model, file)

    def __repr__(self) -> str:
        name = self.model.name
        return f"<NgramModel of order {self.order}{name and f' from {name}'}>"

    @property
    def vocabulary(self) -> list[str]:
        """All words that the model predicts, with <unk> and </s>."""
        unknown, _, *others = self.model.texts.tolist()
        return [unknown, *others]

    def score(self, words: str | Iterable[str], bos: bool = True, eos: bool = True) -> float:
        """Return the log10 probability of a sentence, as KenLM's ``Model.score`` does."""
        logs, _, _ = self.model.scores(line_of(words), bos=bos, eos=eos)
        return reduce(add, logs.tolist(), 0.0)

    def surprisals(self, words: str | Iterable[str], bos: bool | None = None, eos: bool = False) -> list[float]:
        """Return the surprisal of each word in bits, -log2 of its probability; inf if that is 0.

        By default, <s> is in front of the first word if the model has it. With ``eos``, the last value is that of
        </s>. An unknown word has the surprisal of <unk>.
        """
        return next(self.text_surprisals([words], bos=bos, eos=eos))

    def text_surprisals(self, texts: TextSource, bos: bool | None = None, eos: bool = False) -> Iterator[list[float]]:
        """Yield the surprisals of each sentence, or of each line of the file at a path; fast for many."""
        for _, _, block in blocks_of(texts):
            logs, _, lengths = self.model.scores(block, bos=self._bos(bos), eos=eos)
            values = iter([-log / math.log10(2) + 0.0 for log in logs.tolist()])
            yield from (list(islice(values, length)) for length in lengths.tolist())

    def score_texts(self, texts: TextSource, bos: bool = True, eos: bool = True) -> TextScore:
        """Score sentences, or the lines of the file at a path.

        Raises UsageError if there is no sentence, and ModelError if the model lacks <s> or </s>.
        """
        return self.score_blocks(blocks_of(texts), bos=bos, eos=eos)

    def perplexity(self, texts: TextSource, bos: bool = True, eos: bool = True) -> float:
        """Return the perplexity with unknown words as <unk>; ``score_texts`` has that without them, and intervals."""
        return self.score_texts(texts, bos=bos, eos=eos).perplexity_including_oov

    def score_blocks(self, blocks: Iterable[TextBlock], *, bos: bool = True, eos: bool = True) -> TextScore:
        """Score blocks of lines."""
        scores = [_summed(self.model.scores(block, bos=bos, eos=eos)) for _, _, block in blocks]
        names = [field.name for field in fields(TextScore)]
        return TextScore(**{name: np.concatenate([getattr(score, name) for score in scores]) for name in names})

    def _bos(self, bos: bool | None) -> bool:
        return b"<s>" not in self.model.missing if bos is None else bos

    def next_words(
        self, context: str | Iterable[str] = "", k: int | None = 10, bos: bool | None = None
    ) -> dict[str, float]:
        """Return the most probable next words with their probabilities, the most probable first.

        By default, the context begins with <s> if the model has it. All of the vocabulary is returned if ``k`` is
        None; its probabilities sum to 1. <unk> stands for all unknown words, and </s> for the end of the sentence.
        """
        if k is not None and k < 0:
            raise errors.UsageError(f"k is a number of words, or None for all, not {k}")
        seen = [corpus.MARKS[corpus.START]] * self._bos(bos) + line_of(context).split()
        texts = self.model.texts
        chosen, shares = self.model.next_words(seen, len(texts) if k is None else k)
        return dict(zip(texts[chosen].tolist(), shares.tolist(), strict=True))


def perplexity_shown(
    score: TextScore,
    intervals: tuple[significance.Interval, significance.Interval] | None = None,
    precision: int | None = None,
) -> formats.Result:
    """Return the perplexities, with 95 % intervals if they are given: a table in the words of KenLM's query.

    The JSON document also has the convention for <unk>.
    """
    values = {
        "perplexity_including_oov": score.perplexity_including_oov,
        "perplexity_excluding_oov": score.perplexity_excluding_oov,
    }
    counts = {"oov": int(score.oov.sum()), "tokens": int(score.tokens.sum())}
    more = {"sentences": len(score.tokens), "unknown_words": UNKNOWN_CONVENTION}
    return perplexities_shown(values, intervals or (), counts, precision, more)


def perplexities_shown(
    values: Mapping[str, float],
    intervals: Sequence[significance.Interval],
    counts: Mapping[str, int],
    precision: int | None,
    more: Mapping[str, object],
) -> formats.Result:
    """Return perplexities by their names, intervals of the first ones, and counts: a table, and JSON with more."""
    document: dict[str, Any] = {**values, **counts, **more}
    rows: dict[str, object] = {name: numbers.score_text(value, precision) for name, value in values.items()}
    rows |= counts
    for name, interval in zip(values, intervals, strict=False):
        document[name.replace("perplexity", "interval")] = interval.to_dict()
        if not math.isnan(interval.middle):
            rows[name] = numbers.score_text(interval.middle, precision, interval.half_width)
    labels = [name.replace("_", " ").replace("oov", "OOVs") for name in rows]
    people = [(f"{label[0].upper()}{label[1:]}:", shown) for label, shown in zip(labels, rows.values(), strict=True)]
    columns = [table.Column("what"), table.Column("value")]
    return formats.Result(document=document, people=table.Table(columns, people), as_tabs=True)


@dataclass(eq=False, repr=False)
class WordListing(formats.Tabular):
    """A table with a row a word, made one by one."""

    columns: Sequence[table.Column]
    rows: Iterable[Sequence[object]]
    list_name = "words"

    def table(self) -> table.Table:
        return table.Table(self.columns, self.rows)

    def to_dict(self) -> dict[str, Any]:
        return {}
