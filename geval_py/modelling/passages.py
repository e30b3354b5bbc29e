"""Perplexities of texts by language models over tokens, per token, word and byte, as lm-evaluation-harness has them.

A text stands behind the token that begins texts, and its end is not predicted. A text that is longer than a window is
computed in windows that follow each other. Before the first token of a later one stands one token, or more before the
last one, which is as long as the others (``loglikelihood_rolling``, https://github.com/EleutherAI/lm-evaluation-harness).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.significance import Interval
from geval_py.modelling.corpus import Doubles
from geval_py.modelling.ngram_model import perplexities_shown, perplexity_of
from geval_py.modelling.word_search import TokenModel
from geval_py.tables import formats

UNITS = ("token", "word", "byte")
MAX_WINDOW = 2048  # tokens, the harness's default


def score_passages(model: TokenModel, texts: Iterable[str], window: int | None = None) -> Doubles:
    """Return a row for each text: log10 of its probability, and its numbers of tokens, words and bytes.

    A ``window`` has as many tokens as the model takes by default, 2048 at most. A server takes each text whole.
    Raises UsageError for a window that is not possible, and ModelError if the model tells no probability of a text.
    """
    of_server, most = getattr(model, "text_logs", None), getattr(model, "max_length", MAX_WINDOW)
    if window is not None and (of_server or not 1 <= window <= most):
        why = "a server takes each text whole" if of_server else f"the model takes 1 to {most} tokens"
        raise UsageError(f"a window of {window} tokens is not possible: {why}")
    size, rows = window or min(MAX_WINDOW, most), []
    for text in texts:
        logs = of_server(text) if of_server else _rolling(model, text, size)
        rows.append([math.fsum(logs) / math.log(10), len(logs), len(text.split()), len(text.encode())])
    return np.array(rows, np.float64)


def _rolling(model: TokenModel, text: str, size: int) -> list[float]:
    """Return the logarithm of each token's probability."""
    start = model.encode("")
    tokens, logs = model.encode(text)[len(start) :], []
    for first in range(0, len(tokens), size):
        stop = min(first + size, len(tokens))
        before = tokens[stop - size - 1 : first] if first else start
        logs += model.log_probabilities(before, [tuple(tokens[first:stop])])[0].tolist()
    return logs


def passages_shown(
    scores: Doubles, intervals: Sequence[Interval] | None = None, precision: int | None = None
) -> formats.Result:
    """Return the perplexities and the bits per byte of texts: a table, and JSON."""
    log, *sums = scores.sum(axis=0).tolist()
    values = {f"{unit}_perplexity": perplexity_of(log, size) for unit, size in zip(UNITS, sums, strict=True)}
    values["bits_per_byte"] = math.log2(values["byte_perplexity"])
    counts = {f"{unit}s": int(size) for unit, size in zip(UNITS, sums, strict=True)}
    return perplexities_shown(values, intervals or (), counts, precision, {"texts": len(scores)})
