"""The masses that an output's lines give to the buckets of their expected words: all that tuning needs of an output.

The mass of an expected word's bucket under parameters (:mod:`geval_py.explaining.derived`), where B is the number of
buckets, U the sum of the frequent words' shares, and U_b the sum of the shares of frequent words in the bucket:

    m = (1 - lambda) A(T) + r' (nu U_b + (1 - nu U) / B),   r' = (1 - lambda) r + lambda

Lambda and nu may depend on the line. A(T) is the listed mass of the bucket, tempered: without a search for a
temperature it is one number per line, otherwise the masses of all entries are kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import UsageError
from geval_py.reading import splits
from geval_py.reading.files import File
from geval_py.reading.lines import LineReader
from geval_py.scoring import blocks, recipes, scores
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Array, Integers
from geval_py.text import visible

MIN_LOGARITHM = -1e150  # of an entry without mass, which gets none at any temperature


class Entries(NamedTuple):
    """The masses of all entries of all lines: their logarithms, minus the logarithm of the line's greatest.

    ``lines`` has the line of each entry, ``hits`` the places of the entries in their expected word's bucket.
    """

    logarithms: Array
    lines: Integers
    hits: Integers


@dataclass(frozen=True, eq=False)
class Guesses:
    """For each line: the listed mass in the expected word's bucket (``hits``), the rest, and U_b (``shares``).

    ``greatest`` is the greatest mass of an entry, ``listed_entries`` their number. ``entries`` are kept if a
    temperature is searched for.
    """

    hits: Array
    rests: Array
    greatest: Array
    listed_entries: Integers
    shares: Array
    frequent: recipes.Shares
    bits: int
    entries: Entries | None = None

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.hits)

    def losses(self, parameters: recipes.Parameters, lines: Integers | None = None) -> Array:
        """Compute the loss of each line, or of some lines, under parameters, in nats, possibly inf."""
        chosen = slice(None) if lines is None else lines
        listed, rests = self.tempered_hits(parameters.temperature)[chosen], self.rests[chosen]
        lambda_: float | Array = parameters.lambda_
        nu: float | Array = parameters.nu
        by_line = parameters.by_line
        if by_line is not None:
            x = self.places(by_line.centres, by_line.scales, lines)
            parts = (logistic(np.array(weights) @ x) for weights in (by_line.lambda_, by_line.nu))
            lambda_, nu = (np.clip(part, recipes.MIN_PART, recipes.MAX_PART) for part in parts)
        alike, slope = self.spread()
        rest = (1.0 - lambda_) * rests + lambda_
        with np.errstate(divide="ignore"):
            return np.maximum(0.0, -np.log((1.0 - lambda_) * listed + rest * (alike + nu * slope[chosen])))

    @cached_property
    def figures(self) -> Array:
        """What lambda and nu of lines depend on, as :func:`geval_py.scoring.recipes.line_figures`: 4 x lines."""
        logs = np.log(self.rests + recipes.REST_OFFSET)
        return np.array([logs, self.greatest, np.log1p(self.listed_entries), self.listed_entries == 0])

    def places(self, centres: Sequence[float], scales: Sequence[float], lines: Integers | None = None) -> Array:
        """Return x of lines: rows of 1 and of their figures, in standard deviations from the centres."""
        figures = self.figures if lines is None else self.figures.take(lines, axis=1)
        x = np.ones((1 + len(figures), figures.shape[1]))
        apart = (figures - np.array(centres)[:, np.newaxis]) / np.array(scales)[:, np.newaxis]
        np.clip(apart, -recipes.MAX_FIGURE, recipes.MAX_FIGURE, out=x[1:])
        return x

    def spread(self) -> tuple[float, Array]:
        """Compute the bucket's part of the rest at nu 0, and its derivative by nu."""
        alike = 1.0 / (1 << self.bits)
        return alike, self.shares - sum(self.frequent.values()) * alike

    def tempered_hits(self, temperature: float) -> Array:
        """Compute A(T) of each line."""
        return self.hits if temperature == 1.0 else self.tempered(temperature)[0]

    def tempered(self, temperature: float) -> tuple[Array, Array]:
        """Compute A(T) of each line, and its derivative by ln T."""
        if self.entries is None:
            raise UsageError(message="the masses of all entries are needed, and were not kept")
        logs, lines, hits = self.entries
        logs = logs / temperature
        powers = np.exp(logs)
        moments = powers, powers * logs
        sums, mean = (np.bincount(lines, column, self.lines).astype(np.float64) for column in moments)
        hit, hit_mean = (np.bincount(lines[hits], column[hits], self.lines) for column in moments)
        sums[sums == 0.0] = np.inf
        scale = (1.0 - self.rests) / sums
        return scale * hit, scale * (hit * mean / sums - hit_mean)


def logistic(values: Array) -> Array:
    """Compute 1 / (1 + exp(-x)) of some values, in their place."""
    np.negative(values, out=values)
    with np.errstate(over="ignore"):
        np.exp(values, out=values)
    values += 1.0
    return np.reciprocal(values, out=values)


def hashed_bits(evaluation: scores.Evaluation) -> int:
    """Return the bits of the first metric's hash; raises UsageError for a metric that is not hashed, or has flags."""
    first = evaluation.scores[0]
    if first.metric.bits is None or first.scheme.text_flags or first.scheme.selecting_flags:
        raise UsageError(
            message="tuning and mixing need a hashed metric without flags that choose or change lines, such as "
            f"PerplexityHashed, not {visible(first.scheme.text)}"
        )
    return first.metric.bits


def read_guesses(
    evaluation: scores.Evaluation,
    frequent: recipes.Shares,
    *,
    keep_entries: bool,
    threads: int | None = None,
    progress: blocks.Progress | None = None,
) -> Guesses:
    """Read a scored output again for its guesses; ``keep_entries`` is for temperatures.

    Raises UsageError for a metric that is not hashed.
    """
    bits, (words, shares) = hashed_bits(evaluation), _encoded(frequent)

    def work(block: blocks.Block) -> tuple[NDArray[Any], ...]:
        read = backends.read_guesses(block.outputs, block.expected, bits, block.first_line)
        counts, masses = np.frombuffer(read.counts, np.int64), np.frombuffer(read.masses)
        marks = np.frombuffer(read.hits, np.bool_)
        owners = np.repeat(np.arange(len(counts)), counts)
        hits, greatest = np.bincount(owners[marks], masses[marks], len(counts)), np.zeros(len(counts))
        np.maximum.at(greatest, owners, masses)
        of_bucket = backends.bucket_shares(words, shares, block.expected, bits, block.first_line)
        columns: tuple[NDArray[Any], ...]
        columns = hits, np.frombuffer(read.rests), greatest, counts, np.frombuffer(of_bucket)
        if not keep_entries:
            return columns
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(masses) - np.log(greatest)[owners]
        return *columns, np.where(masses > 0.0, logs, MIN_LOGARITHM), marks

    split = evaluation.split
    with (
        LineReader(evaluation.output.file, header=split.output_header) as outputs,
        LineReader(split.expected, header=split.output_header) as expected,
    ):
        mapped = blocks.map_blocks(outputs, expected, work, threads=threads, matched=True, progress=progress)
        parts = [columns for _, columns in mapped]
    hits, rests, greatest, counts, of_bucket, *kept = (np.concatenate(part) for part in zip(*parts, strict=True))
    entries = None
    if keep_entries:
        entries = Entries(kept[0], np.repeat(np.arange(len(counts)), counts), np.flatnonzero(kept[1]))
    return Guesses(hits, rests, greatest, counts, of_bucket, frequent, bits, entries)


def bucket_shares(split: splits.Split, frequent: recipes.Shares, bits: int) -> Array:
    """Return, for each line of the answers, the sum of the shares of the frequent words in its bucket."""
    return _bucket_shares(split.expected, split.output_header, tuple(frequent.items()), bits)


@lru_cache(maxsize=1)  # a report needs the same sums twice, which takes seconds for a million lines
def _bucket_shares(file: File, header: str | None, frequent: tuple[tuple[str, float], ...], bits: int) -> Array:
    with LineReader(file, header=header) as expected:
        answers = b"".join(iter(expected.block, b""))
    return np.frombuffer(backends.bucket_shares(*_encoded(dict(frequent)), answers, bits, 1))


def _encoded(frequent: recipes.Shares) -> tuple[bytes, array[float]]:
    return "".join(f"{word}\n" for word in frequent).encode(), array("d", frequent.values())
