"""Perplexities of texts by language models over tokens, per token, word and byte, as lm-evaluation-harness has them.

A text stands behind the token that begins texts, and its end is not predicted. A text that is longer than a window is
computed in windows that follow each other. Before the first token of a later one stands one token, or more before the
last one, which is as long as the others (``loglikelihood_rolling``, https://github.com/EleutherAI/lm-evaluation-harness).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.significance import Interval
from geval_py.modelling.corpus import Doubles, Longs
from geval_py.modelling.ngram_model import perplexities_shown, perplexity_of, resampled
from geval_py.modelling.word_search import MAX_CONTEXT, CheckedModel, TokenModel
from geval_py.scoring.blocks import Progress
from geval_py.tables import formats

UNITS = ("token", "word", "byte")
MAX_WINDOW = 2048  # tokens, the harness's default


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageScores:
    """The scores of texts; the arrays have a value for each text.

    ``logs`` are log10 probabilities; ``tokens``, ``words`` and ``bytes`` are numbers of these.
    """

    logs: Doubles
    tokens: Longs
    words: Longs
    bytes: Longs

    def intervals(self, samples: int, seed: int, progress: Progress | None = None) -> list[Interval]:
        """Return 95 % intervals of the perplexities per token, word and byte, from resamples of the texts."""
        return resampled([(self.logs, getattr(self, f"{unit}s")) for unit in UNITS], samples, seed, progress)


def score_passages(model: TokenModel, texts: Iterable[str], window: int | None = None) -> PassageScores:
    """Score texts by windows of so many tokens, by default as many as the model takes, 2048 at most.

    A server takes each text whole. Raises UsageError for a window that is not possible, and ModelError if the model
    does not tell the probability of a text.
    """
    of_server = getattr(model, "text_logs", None)
    most = getattr(model, "max_length", 2 * getattr(model, "max_context", MAX_CONTEXT))
    if window is not None and (of_server or not 1 <= window <= most):
        why = "a server takes each text whole" if of_server else f"the model takes 1 to {most} tokens"
        raise UsageError(message=f"a window of {window} tokens is not possible: {why}")
    size = window or min(MAX_WINDOW, most)
    logs, counts = [], []
    for text in texts:
        of_tokens = of_server(text) if of_server else list(_rolling(CheckedModel(model), text, size))
        logs.append(math.fsum(of_tokens) / math.log(10))
        counts.append((len(of_tokens), len(text.split()), len(text.encode())))
    tokens, words, sizes = np.array(counts, np.int64).T
    return PassageScores(logs=np.array(logs), tokens=tokens, words=words, bytes=sizes)


def _rolling(model: CheckedModel, text: str, size: int) -> Iterator[float]:
    """Yield the logarithm of each token's probability."""
    start = model.encode("")
    tokens = model.encode(text)[len(start) :]
    for first in range(0, len(tokens), size):
        stop = min(first + size, len(tokens))
        before = tokens[stop - size - 1 : first] if first else start
        (logs,) = model.log_probabilities(before, [tuple(tokens[first:stop])])
        yield from logs.tolist()


def passages_shown(
    scores: PassageScores, intervals: Sequence[Interval] | None = None, precision: int | None = None
) -> formats.Shown:
    """Return the perplexities and the bits per byte of texts: a table, and JSON."""
    counts = {f"{unit}s": int(getattr(scores, f"{unit}s").sum()) for unit in UNITS}
    values = {
        f"{unit}_perplexity": (f"Perplexity per {unit}:", perplexity_of(math.fsum(scores.logs), counts[f"{unit}s"]))
        for unit in UNITS
    }
    values["bits_per_byte"] = "Bits per byte:", math.log2(values["byte_perplexity"][1])
    return perplexities_shown(values, intervals or (), counts, precision, {"texts": len(scores.logs)})
