"""Luck: how much hash collisions changed a score.

The expected word shares its bucket with a part of the rest and, by chance, with other words. Seeds are line numbers,
so a file has one score; if its lines began further down, it would have another. The scatter of such scores is
measured by scoring again with shifted seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.calibration import hashed_scheme, schemes_of
from geval_py.explaining.significance import t_quantile
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.outputs import output_at, short_names
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import LineStatistics, total
from geval_py.scoring.metrics.columns import malformed
from geval_py.tables import formats, numbers
from geval_py.tables.table import Column, Table, named_columns, plain_table
from geval_py.text import counted, visible

DEFAULT_SEEDS, MIN_SEEDS, MAX_SEEDS = 25, 2, 1000
VECTOR = "a line of buckets holds for one seed of the hash"


@dataclass(frozen=True, kw_only=True, repr=False)
class Luck(formats.Tabular):
    """How much hash collisions changed an output's score. Printed as a table.

    ``score`` is by ``metric`` on the ``lines`` that are finite under all seeds; ``left_out`` lines are not.
    ``scores`` are those under as many other ``seeds``; ``mean`` is the score of their mean loss, and ``sd`` the
    standard deviation of their losses, in nats. A seed that was not tried gives a score between ``low`` and ``high``
    with a probability of 95 %.
    """

    test: str
    file: str
    metric: str
    unit: str
    direction: str
    lines: int
    left_out: int
    score: float
    seeds: int
    scores: tuple[float, ...]
    mean: float
    sd: float
    low: float
    high: float
    signature: str

    def table(self) -> Table:
        return HashCollisionReport((self,), self._shown_names).table()

    def legend(self) -> Iterator[str]:
        return HashCollisionReport((self,), self._shown_names).legend()

    @property
    def _shown_names(self) -> tuple[str, ...]:
        return tuple(short_names([output_at(self.file)]))


@dataclass(frozen=True, repr=False)
class HashCollisionReport(formats.Tabular):
    """The luck of several outputs of one test set, at least one; ``names`` are shown to people, one an output."""

    outputs: tuple[Luck, ...]
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return formats.json_fields(self, "names")

    def table(self) -> Table:
        columns = [Column("system"), *named_columns(("score", "mean", "95 % of seeds", "sd", "lines"), "right")]
        rows = []
        for name, luck in zip(self.names, self.outputs, strict=True):
            figures = (luck.score, luck.mean, luck.low, luck.high)
            score, mean, low, high = (numbers.significant(value, 5) for value in figures)
            rows.append((name, score, mean, f"[{low}, {high}]", numbers.fixed(luck.sd, 4), str(luck.lines)))
        return Table(columns, rows)

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines((luck.file, luck.signature) for luck in self.outputs)

    def records(self) -> Table:
        names = ["score", "mean", "low", "high", "sd", "lines", "signature"]
        rows = ([luck.file, *(getattr(luck, name) for name in names)] for luck in self.outputs)
        return plain_table(["system", *names], rows)

    def legend(self) -> Iterator[str]:
        first = self.outputs[0]
        yield f"{visible(first.metric)} ({first.unit}, {first.direction} is better) of {visible(first.test)}"
        yield f"mean: the score under {first.seeds} other seeds of the hash, on average"
        yield "95 % of seeds: the range of their scores; a score outside of it was lucky or unlucky"
        yield "sd: the standard deviation of the loss between seeds, in nats a word"
        for name, luck in zip(self.names, self.outputs, strict=True):
            if luck.left_out:
                lines = counted(luck.left_out, "line")
                yield f"{visible(name)}: without {lines} that some seeds make infinite"


def luck(evaluation: scores.Evaluation, *, seeds: int = DEFAULT_SEEDS) -> Luck:
    """Measure how much hash collisions changed an output's score.

    The output is scored again, with the flags and bits of the evaluation's first metric on hashed words, and with as
    many other ``seeds``.

    Raises UsageError if there is no such metric, and for a number of seeds out of range; DataError for lines of
    buckets, which hold for one seed, and if the files have changed and are malformed.
    """
    schemes = luck_schemes(schemes_of(evaluation), seeds)
    return luck_of(evaluate.evaluate_output(evaluation.split, evaluation.output, schemes, frozenset()))


class SeedsColumn(NamedTuple):
    """The losses that a line would have 0, 1, … ``seeds`` lines down the file: line numbers seed the hash."""

    bits: int
    seeds: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        shifted = range(first_line, first_line + self.seeds + 1)
        losses = tuple(backends.bounded_losses(outputs, expected, self.bits, line)[0] for line in shifted)
        for line, text in enumerate(decode_lines(outputs), first_line):
            if ":" not in text:
                raise malformed(VECTOR, text, line, "luck is measured on lines of words with probabilities")
        return LineStatistics(losses)


def luck_schemes(schemes: Sequence[evaluate.Named], seeds: int) -> list[evaluate.Named]:
    """Return the metric that :func:`luck_of` needs, made from the first one on hashed words.

    Raises UsageError if there is no such metric, and for a number of seeds out of range.
    """
    scheme, metric = hashed_scheme(schemes)
    if not MIN_SEEDS <= seeds <= MAX_SEEDS:
        raise UsageError(f"the number of seeds is from {MIN_SEEDS} to {MAX_SEEDS}, not {seeds}")
    names = tuple(f"seed_{seed}" for seed in range(seeds + 1))
    column = SeedsColumn(metric.bits or DEFAULT_BITS, seeds)
    return [(scheme, metric._replace(column=column, measure=metric.measure._replace(columns=names)))]


def luck_of(evaluation: scores.Evaluation) -> Luck:
    """Compute the luck of an output that was scored with :func:`luck_schemes`.

    With n seeds whose losses have the mean m and the standard deviation s, another seed's loss is within
    m ± t s sqrt(1 + 1 / n) with a probability of 95 %: the prediction interval, with Student's t of n - 1 degrees.
    """
    score = evaluation.scores[0]
    losses = np.array(score.statistics.columns)
    kept = np.isfinite(losses).all(axis=0)
    lines = int(kept.sum())
    loss, *others = (total(of_seed) / lines if lines else math.nan for of_seed in losses[:, kept].tolist())
    mean, sd = float(np.mean(others)), float(np.std(others, ddof=1))
    half = t_quantile(len(others) - 1) * sd * math.sqrt(1 + 1 / len(others))
    low, high = sorted(score.metric.of_line(end) for end in (mean - half, mean + half))
    return Luck(
        **scores.head_of(evaluation),
        file=evaluation.output.name,
        lines=lines,
        left_out=len(kept) - lines,
        score=score.metric.of_line(loss),
        seeds=len(others),
        scores=tuple(map(score.metric.of_line, others)),
        mean=score.metric.of_line(mean),
        sd=sd,
        low=low,
        high=high,
        signature=evaluation.signature,
    )
