"""N-gram language models: train, load, mix and save them, score texts, and predict next words.

The perplexity of a text is the one that KenLM's query computes. Each word is predicted by the longest n-gram of the
model that ends with it; each longer context that the model has adds its back-off. A word that the model does not have
is <unk>. After <s>, which is given, each word and then </s> is predicted.

    perplexity including OOVs = 10 ^ (- sum of log10 probabilities / tokens)
    perplexity excluding OOVs = the same, without the words that are <unk>

query does not count the last line of a text if its line end is missing; here it is counted.

In a mixture, a word's probability is the weighted mean of the models'. A word that only some models have has the
probability 0 in the others, and <unk> is a word that none has: so the probabilities of all words sum to 1.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial, reduce
from itertools import islice
from operator import add
from typing import Any, Protocol, Self

import numpy as np

from geval_py import errors
from geval_py.explaining import mixing, significance, statistics
from geval_py.modelling import arpa, backoff, corpus, estimation, kenlm_models
from geval_py.modelling.corpus import Doubles, Flags, Ids, Longs, TokenScores
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


def _summed(logs: Doubles, orders: Ids, lengths: Longs) -> TextScore:
    """Sum the log10 probabilities of tokens by sentence."""
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


class LanguageModel(Protocol):
    """A model that predicts the words of a text, one after another, such as an NgramModel.

    ``next_words`` returns the ``k`` most probable words behind a context with their probabilities, the most probable
    first. ``surprisals`` returns the surprisal of each word of a text in bits.
    """

    def next_words(self, context: str | Iterable[str], k: int | None = 10) -> dict[str, float]: ...

    def surprisals(self, words: str | Iterable[str]) -> list[float]: ...

    def text_surprisals(self, texts: Iterable[str | Iterable[str]]) -> Iterator[list[float]]:
        """Yield the surprisals of each sentence; a class that inherits this may be faster for many."""
        return map(self.surprisals, texts)


class NgramModel:
    """An n-gram language model, or a mixture of several; make one by ``train``, ``load`` or ``mix``.

    ``order`` is the length of its longest n-grams. ``weights`` are those of a mixture, in the order of its models.
    A text is a string or words; words are split at white space. <s> is in front of it if ``bos``, and </s> behind it
    is predicted if ``eos``.
    """

    def __init__(self, parts: Sequence[Any], weights: Sequence[float] = (1.0,)) -> None:
        self.parts: list[backoff.BackoffModel | kenlm_models.BinaryModel] = list(parts)
        self.weights = tuple(weights)
        self.order = max(part.order for part in parts)

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
            raise errors.UsageError(message="plain counts take no options of Kneser-Ney: leave out counts, or these")
        text = corpus.corpus_of(blocks_of(texts), skip_symbols=skip_symbols, marks=sentence_marks)
        return cls(
            [estimation.plain_model(text, order, counts) if counts else estimation.estimate(text, how).model()]
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an ARPA file, maybe compressed, or a binary file of KenLM.

        A binary file is opened at once and scores texts fast, but takes longer to predict next words. Tries need the
        package kenlm. Raises ModelError and MalformedLineError for a file that is no model.
        """
        name = os.fspath(path)
        if kenlm_models.is_binary(name):
            return cls([kenlm_models.BinaryModel(name)])
        return cls([arpa.read_arpa(name)])

    @classmethod
    def mix(
        cls,
        models: Iterable[NgramModel],
        weights: Sequence[float] | None = None,
        *,
        on: TextSource | None = None,
    ) -> Self:
        """Mix models linearly, by their weights or by the weights that are best on a held-out text.

        The best weights give the least perplexity of the words that any of the models has; they are found by
        expectation and maximisation. Raises UsageError for weights that do not sum to 1, and without weights or text.
        """
        models = tuple(models)
        for model in models:
            if not isinstance(model, NgramModel):
                raise errors.UsageError(message=f"a mixture is one of NgramModels, not of a {type(model).__name__}")
        if (weights is None) == (on is None):
            raise errors.UsageError(message="a mixture takes weights, or a held-out text to find them on")
        if weights is None:
            logs, unknown = _rows_of_texts(models, on or ())
            masses = np.where(unknown, 0.0, 10.0**logs)[
                :, ~unknown.all(axis=0)
            ]  # words that no model has do not count
            weights = mixing.rounded(mixing.best_weights(masses)).tolist()
        if len(weights) != len(models) or not models:
            raise errors.UsageError(message=f"{len(weights)} weights are not for {len(models)} models")
        if min(weights) < 0 or not math.isclose(math.fsum(weights), 1, abs_tol=1e-4):
            shown = " ".join(f"{weight:.6g}" for weight in weights)
            raise errors.UsageError(message=f"weights are at least 0 and sum to 1: {shown} do not")
        parts = [part for model in models for part in model.parts]
        shares = [weight / math.fsum(weights) for weight in weights]
        return cls(parts, [share * own for share, model in zip(shares, models, strict=True) for own in model.weights])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ARPA file, whole or not at all, compressed by its ending: .gz, .xz, .bz2 or .zst.

        Raises UsageError for a mixture and for a binary file, and if the file cannot be written.
        """
        (part,) = self.parts if len(self.parts) == 1 else [None]
        if not isinstance(part, backoff.BackoffModel):
            what = "a mixture has no ARPA file" if part is None else "a binary model of KenLM is not written again"
            raise errors.UsageError(message=f"{what}: keep the files that it was made of")
        name = os.fspath(path)
        arpa.check_ending(name)
        with rewriting.written_whole(name, compression=compression.compression_by_ending(name)) as file:
            arpa.write_arpa(part, file)

    def __repr__(self) -> str:
        weights = [f"@{weight:.6g}" for weight in self.weights] if len(self.parts) > 1 else [""]
        name = "+".join(part.name + weight for part, weight in zip(self.parts, weights, strict=True))
        return f"<NgramModel of order {self.order}{name and f' from {name}'}>"

    def __contains__(self, word: str) -> bool:
        """Return whether a word is in the vocabulary, as KenLM's Model says; <unk> is not."""
        return [unknown for _, _, unknown in self.full_scores(word, bos=False, eos=False)] == [False]

    @property
    def vocabulary(self) -> list[str]:
        """All words that the model predicts, with <unk> and </s>."""
        unknown, _, *others = self._words[0].tolist()
        return [unknown, *others]

    def score(self, words: str | Iterable[str], bos: bool = True, eos: bool = True) -> float:
        """Return the log10 probability of a sentence, as KenLM's ``Model.score`` does."""
        part, line = self.parts[0], line_of(words)
        if len(self.parts) == 1 and isinstance(part, backoff.BackoffModel):
            return reduce(add, array("d", part.packed_scores(line, bos, eos)[0]), 0.0)
        return reduce(add, self.token_scores(line, bos=bos, eos=eos)[0].tolist(), 0.0)

    def full_scores(
        self, words: str | Iterable[str], bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """Yield log10 of each token's probability, the length of its n-gram, and whether it is OOV, as KenLM does."""
        logs, orders, _ = self.token_scores(line_of(words), bos=bos, eos=eos)
        return ((log, order or 1, not order) for log, order in zip(logs.tolist(), orders.tolist(), strict=True))

    def surprisals(self, words: str | Iterable[str], bos: bool | None = None, eos: bool = False) -> list[float]:
        """Return the surprisal of each word in bits, -log2 of its probability; inf if that is 0.

        By default, <s> is in front of the first word if the model has it. With ``eos``, the last value is that of
        </s>. An unknown word has the surprisal of <unk>.
        """
        return next(self.text_surprisals([words], bos=bos, eos=eos))

    def text_surprisals(self, texts: TextSource, bos: bool | None = None, eos: bool = False) -> Iterator[list[float]]:
        """Yield the surprisals of each sentence, or of each line of the file at a path; fast for many."""
        for _, _, block in blocks_of(texts):
            logs, _, lengths = self.token_scores(block, bos=self._bos(bos), eos=eos)
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
        scores = [_summed(*self.token_scores(block, bos=bos, eos=eos)) for _, _, block in blocks]
        names = [field.name for field in fields(TextScore)]
        return TextScore(**{name: np.concatenate([getattr(score, name) for score in scores]) for name in names})

    def token_scores(self, text: bytes, *, bos: bool = True, eos: bool = True) -> TokenScores:
        """Score whole lines: log10 probabilities, lengths of n-grams (0: unknown words), tokens by line."""
        if len(self.parts) == 1:
            return self.parts[0].scores(text, bos=bos, eos=eos)
        scores = [part.scores(text, bos=bos, eos=eos) for part in self.parts]
        logs, orders = np.array([logs for logs, _, _ in scores]), np.array([orders for _, orders, _ in scores])
        longest: Ids = orders.max(axis=0)
        with np.errstate(divide="ignore"):
            mixed = np.log10(np.array(self.weights) @ np.where((orders == 0) & (longest > 0), 0.0, 10.0**logs))
        return np.minimum(mixed, 0.0), longest, scores[0][2]

    def _bos(self, bos: bool | None) -> bool:
        return all(b"<s>" not in part.missing for part in self.parts) if bos is None else bos

    def next_words(
        self, context: str | Iterable[str] = "", k: int | None = 10, bos: bool | None = None
    ) -> dict[str, float]:
        """Return the most probable next words with their probabilities, the most probable first.

        By default, the context begins with <s> if the model has it. All of the vocabulary is returned if ``k`` is
        None; its probabilities sum to 1. <unk> stands for all unknown words, and </s> for the end of the sentence.
        """
        if k is not None and k < 0:
            raise errors.UsageError(message=f"k is a number of words, or None for all, not {k}")
        seen = [corpus.MARKS[corpus.START]] * self._bos(bos) + line_of(context).split()
        first, (texts, places) = self.parts[0], self._words
        size = min(len(texts) if k is None else k, len(texts) - 1)  # <s> is never predicted
        if len(self.parts) == 1 and isinstance(first, backoff.BackoffModel):
            chosen, shares = first.next_words(seen, size)
        else:
            probabilities = np.zeros(len(texts))
            for part, weight, of_part in zip(self.parts, self.weights, places, strict=True):
                probabilities[of_part] += weight * part.next_probabilities(seen)
            probabilities[corpus.START] = -1.0
            chosen = backoff.most_probable(np.arange(len(texts)), probabilities, size)
            shares = probabilities[chosen]
        return dict(zip(texts[chosen].tolist(), shares.tolist(), strict=True))

    @cached_property
    def _words(self) -> tuple[backoff.Texts, list[corpus.Ids]]:
        """The words of all models, the marks first, and where each model's words stand among them."""
        numbering = corpus.Numbering()
        places = [numbering.number(part.words) for part in self.parts]
        return backoff.texts_of(numbering.words), places


def _rows_of_texts(models: Sequence[NgramModel], texts: TextSource) -> tuple[Doubles, Flags]:
    """Return log10 of the tokens of a text by several models, a row each, and whether they are unknown."""
    blocks = [[model.token_scores(block) for model in models] for _, _, block in blocks_of(texts)]
    logs = np.concatenate([[logs for logs, _, _ in block] for block in blocks], axis=1)
    return logs, np.concatenate([[orders == 0 for _, orders, _ in block] for block in blocks], axis=1)


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


def mixture_shown(
    models: Mapping[str, NgramModel], mixture: NgramModel, texts: TextSource, precision: int | None = None
) -> formats.Result:
    """Return the perplexities of models, by file, and of their mixture, with the weights: a table, and JSON.

    Shared tokens are those that all models have: only on them do models with different vocabularies compare.
    """
    weights = [f"{weight:.6f}".rstrip("0").rstrip(".") for weight in mixture.weights]
    names = [*models, "+".join(map("@".join, zip(models, weights, strict=True)))]  # the last as the commands take it
    logs, unknown = _rows_of_texts((*models.values(), mixture), texts)
    shared = np.logical_not(unknown.any(axis=0))
    rows = [
        {
            "model": name,
            "weight": weight,
            "perplexity_excluding_oov": perplexity_of(float(own[~absent].sum()), int((~absent).sum())),
            "oov": int(absent.sum()),
            "perplexity_of_shared_tokens": perplexity_of(float(own[shared].sum()), int(shared.sum())),
        }
        for name, weight, own, absent in zip(names, [*map(float, weights), None], logs, unknown, strict=True)
    ]
    document = {"tokens": len(shared), "shared_tokens": int(shared.sum()), "models": rows[:-1], "mixture": rows[-1]}
    write, figures = partial(numbers.score_text, precision=precision), partial(table.Column, alignment="right")
    columns = [
        table.Column("model"),
        figures(name="weight"),
        figures(name="perplexity excluding OOVs", write=write),
        figures(name="OOVs"),
        figures(name="of shared tokens", write=write),
    ]
    people = table.Table(columns, [tuple(row.values()) for row in rows])
    return formats.Result(document=document, people=people, as_tabs=True)


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
