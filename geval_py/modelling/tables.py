"""Models and perplexities as tables and as JSON documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from geval_py.explaining.statistics.interval import Interval
from geval_py.modelling.kneser_ney import Estimated
from geval_py.modelling.model import NgramModel
from geval_py.modelling.perplexity import TextScore
from geval_py.showing.numbers import number, with_half_width
from geval_py.showing.tables import Column, Table
from geval_py.version import __version__

UNKNOWN_CONVENTION = (
    "a word that the model does not have is <unk>, with the probability that the model gives to it: perplexities "
    "including OOVs compare only between models with the same vocabulary and the same convention for <unk>"
)
_FIRST_WORDS = 3  # of the vocabulary, which are the marks


def training_table(estimated: Estimated) -> Table:
    """Make a table with a row an order: n-grams, how many were kept, the discounts."""
    columns = [Column(name=name) for name in ("order", "n-grams", "kept", "D1", "D2", "D3+")]
    rows = [
        (order, count, len(level), *(f"{amount:.6g}" for amount in discounts.amounts))
        for order, (count, level, discounts) in enumerate(
            zip(estimated.counts, estimated.model.levels, estimated.discounts, strict=True), 1
        )
    ]
    return Table(columns, rows)


def perplexity_table(
    score: TextScore, intervals: tuple[Interval, Interval] | None = None, precision: int | None = None
) -> Table:
    """Make a table of what KenLM's query says of a text, in its words; with 95 % intervals, if there are any."""
    including, excluding = score.perplexity_including_oov, score.perplexity_excluding_oov
    if intervals is None:
        shown = [number(value, precision) for value in (including, excluding)]
    else:
        shown = [with_half_width(interval, precision) for interval in intervals]
    rows = [
        ("Perplexity including OOVs", shown[0]),
        ("Perplexity excluding OOVs", shown[1]),
        ("OOVs", int(score.oov.sum())),
        ("Tokens", int(score.tokens.sum())),
    ]
    return Table([Column(name="what"), Column(name="value")], rows)


def perplexity_document(score: TextScore, intervals: tuple[Interval, Interval] | None = None) -> dict[str, Any]:
    """Give the same for programs, with the convention of <unk>."""
    document = {
        "version": __version__,
        "perplexity_including_oov": score.perplexity_including_oov,
        "perplexity_excluding_oov": score.perplexity_excluding_oov,
        "oov": int(score.oov.sum()),
        "tokens": int(score.tokens.sum()),
        "sentences": len(score.tokens),
        "unknown_words": UNKNOWN_CONVENTION,
    }
    names = ("interval_including_oov", "interval_excluding_oov")
    return document | {
        name: interval.to_dict() for name, interval in zip(names, intervals or (), strict=False) if interval
    }


def sentences_table(score: TextScore, precision: int | None = None) -> Table:
    """Make a table with a row a sentence: log10 of its probability, and its words out of vocabulary."""
    write = partial(number, precision=precision)
    columns = [Column(name="log10", write=write), Column(name="OOVs")]
    rows = zip(score.logs.tolist(), score.oov.tolist(), strict=True)
    return Table(columns, rows, at_a_time=1000)


def model_table(model: NgramModel) -> Table:
    """Make a table of what is in a model."""
    rows: list[Sequence[object]] = [("order", model.order)]
    rows += [(f"{order}-grams", count) for order, count in enumerate(_counts(model), 1)]
    rows.append(("words", len(model.words) - _FIRST_WORDS))
    if model.missing:
        rows.append(("missing", " ".join(_missing(model))))
    return Table([Column(name="what"), Column(name="value")], rows)


def model_document(model: NgramModel) -> dict[str, Any]:
    """Give the same for programs, with all words of the vocabulary."""
    return {
        "version": __version__,
        "order": model.order,
        "ngrams": _counts(model),
        "missing": _missing(model),
        "vocabulary": model.texts[_FIRST_WORDS:].tolist(),
    }


def _counts(model: NgramModel) -> list[int]:
    """Count the n-grams of each order, as the file does."""
    counts = [len(level) for level in model.levels]
    counts[0] -= len(model.missing)
    return counts


def _missing(model: NgramModel) -> list[str]:
    return sorted(mark.decode() for mark in model.missing)
