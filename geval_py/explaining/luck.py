"""Luck: how much hash collisions changed a score, or the order of two outputs.

The expected word shares its bucket with a part of the rest and, by chance, with other words. Seeds are line numbers,
so a file has one score; if its lines began further down, it would have another. The scatter of such scores is
measured by scoring again with shifted seeds. With a vocabulary, the perplexity without hashing is computed, too. At
the end are the near ties: outputs so near to each other that hashing may have decided between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.calibration import hashed_scheme, profile_of, reread, schemes_of
from geval_py.explaining.significance import NORMAL
from geval_py.reading import schemes
from geval_py.reading.outputs import unique_names
from geval_py.scoring import evaluate, scores
from geval_py.scoring.metrics import base, hashed
from geval_py.scoring.metrics.base import Array
from geval_py.scoring.metrics.columns import RowColumn
from geval_py.scoring.metrics.exact import unknown_word
from geval_py.tables import formats, numbers
from geval_py.tables.table import Column, Table, named_columns, plain_table
from geval_py.text import named, some_of, visible

if TYPE_CHECKING:
    from geval_py.explaining.comparison import Comparison


DEFAULT_SEEDS, MIN_SEEDS, MAX_SEEDS = 25, 2, 1000
NEAR = 0.05  # a pair of outputs whose order more seeds than this would reverse is too near to tell
MAX_NAMED_TIES = 3  # in a note


@dataclass(frozen=True, kw_only=True)
class Exact:
    """The perplexity on exact words, without hashing; ``vocabulary`` is the number of words of a vocabulary.

    Only lines whose word is listed or in the vocabulary count; the ``infinite`` other lines would make it infinite.
    ``listed`` is computed from the masses of the words: unlisted words share the rest evenly (listed words are taken
    for words of the vocabulary). ``from_hashed`` is estimated from the hashed losses, by ln(vocabulary / buckets) for
    each unlisted word.
    """

    vocabulary: int
    infinite: int
    listed: float
    from_hashed: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Luck(formats.Tabular):
    """How much hash collisions changed an output's score. Printed as a table and sentences.

    ``score`` is by ``metric`` on the ``lines`` that are finite under all seeds; ``left_out`` lines are not.
    ``scores`` are those under as many other ``seeds``; ``mean`` is the score of their mean loss, and ``sd`` the
    standard deviation of their losses, in nats. ``z`` is by how many sd this output's ``loss`` is above the mean:
    below 0 it was lucky. Between ``low`` and ``high`` lie the scores of 95 % of seeds. ``z`` is None without scatter,
    ``exact`` without a vocabulary.
    """

    test: str
    file: str
    metric: str
    unit: str
    direction: str
    bits: int
    lines: int
    left_out: int
    score: float
    loss: float
    seeds: int
    scores: tuple[float, ...]
    mean: float
    sd: float
    z: float | None
    low: float
    high: float
    exact: Exact | None
    signature: str | None

    def table(self) -> Table:
        return HashCollisionReport((self,), (self.file,)).table()

    def legend(self) -> Iterator[str]:
        return HashCollisionReport((self,), (self.file,)).legend()

    def sentences(self, name: str) -> Iterator[str]:
        """Yield what the row means; the output is called by a name."""
        file = visible(name)
        if not self.lines:
            yield f"{file}: there is no line that is finite under all seeds."
            return
        if self.left_out:
            yield f"{file}: without {numbers.counted(self.left_out, 'line')} that some seeds make infinite."
        usual = (
            f"{file}: 95 % of seeds give {numbers.significant(self.low, 5)} to {numbers.significant(self.high, 5)}"
        )
        if self.z is None:
            yield f"{file}: all seeds give the same score."
        elif abs(self.z) < 2:
            yield f"{usual}, and this one is among them: the hash made no notable difference."
        else:
            yield f"{usual}: it was {'lucky' if self.z < 0 else 'unlucky'} with {numbers.significant(self.score, 5)}."
        if self.exact is not None:
            exact, lines = self.exact, self.lines + self.left_out
            yield (
                f"{file}: without hashing, the perplexity is {numbers.significant(exact.listed, 5)} (estimated from "
                f"the hashed one: {numbers.significant(exact.from_hashed, 5)}) on the {lines - exact.infinite} lines "
                f"whose word is listed or in the vocabulary of {exact.vocabulary}; on the {exact.infinite} others "
                "it is infinite."
            )


@dataclass(frozen=True, repr=False)
class HashCollisionReport(formats.Tabular):
    """The luck of several outputs of one test set, at least one; ``names`` are shown to people, one an output."""

    outputs: tuple[Luck, ...]
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return formats.json_fields(self, "names")

    def table(self) -> Table:
        columns = [Column("system"), *named_columns(("score", "seeds", "sd", "z"), "right")]
        rows = []
        for name, luck in zip(self.names, self.outputs, strict=True):
            z = None if luck.z is None else numbers.fixed(luck.z, 1)
            measured = [numbers.significant(luck.mean, 5), numbers.fixed(luck.sd, 4), z] if luck.lines else [None] * 3
            rows.append((name, numbers.significant(luck.score, 5), *measured))
        return Table(columns, rows)

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines((luck.file, luck.signature) for luck in self.outputs)

    def records(self) -> Table:
        rows = [
            [luck.file, luck.score, luck.mean, luck.sd, luck.z, luck.exact and luck.exact.listed, luck.signature]
            for luck in self.outputs
        ]
        return plain_table(["system", "score", "mean", "sd", "z", "exact", "signature"], rows)

    def legend(self) -> Iterator[str]:
        first = self.outputs[0]
        what = f"{visible(first.metric)} ({first.unit}, {first.direction} is better) of {visible(first.test)}"
        yield f"{what}; seeds: the mean of {first.seeds} other seeds."
        yield (
            "sd: the standard deviation of the loss between seeds, in nats a word; "
            "z: the loss minus its mean over the other seeds, divided by sd."
        )
        yield ""
        for name, luck in zip(self.names, self.outputs, strict=True):
            yield from luck.sentences(name)


def luck(
    evaluation: scores.Evaluation, *, seeds: int = DEFAULT_SEEDS, vocabulary: frozenset[str] = frozenset()
) -> Luck:
    """Measure how much hash collisions changed an output's score.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words, and scored
    with as many other ``seeds``; ``vocabulary`` has the words for the exact perplexity.

    Raises UsageError if there is no such metric, or if the output has lines of buckets, which
    hold for one seed, and for a number of seeds out of range; DataError if the files have changed and are malformed.
    """
    schemes = luck_schemes(schemes_of(evaluation), seeds, exact=bool(vocabulary))
    return luck_of(reread(evaluation, schemes, vocabulary), len(vocabulary))


def luck_schemes(schemes: Sequence[evaluate.Named], seeds: int, *, exact: bool) -> list[evaluate.Named]:
    """Return the metrics that :func:`luck_of` needs, made from the first one on hashed words.

    ``exact`` adds the vocabulary's. Raises UsageError if there is no such metric, and for a number of seeds out of
    range.
    """
    scheme, metric = hashed_scheme(schemes)
    if not MIN_SEEDS <= seeds <= MAX_SEEDS:
        raise UsageError(message=f"the number of seeds is from {MIN_SEEDS} to {MAX_SEEDS}, not {seeds}")
    metrics = [hashed.profiled(metric), hashed.reseeded(metric, seeds)]
    if exact:  # 1 for each expected word that is not in the vocabulary
        metrics.append(metric._replace(column=RowColumn(unknown_word), needs_vocabulary=True))
    return [(scheme, one) for one in metrics]


def luck_of(evaluation: scores.Evaluation, vocabulary: int) -> Luck:
    """Compute the luck of an output that was scored with :func:`luck_schemes`; ``vocabulary`` is a number of words.

    Raises UsageError for lines of buckets.
    """
    first, profile = evaluation.scores[0], profile_of(evaluation)
    vectors = int(profile.column("vector").sum())
    if vectors:
        raise UsageError(
            message=f"{named(evaluation.output.path)} has {vectors} of {profile.lines} lines of buckets, "
            "which hold for one seed of the hash: the scores of other seeds cannot be computed"
        )
    exact, bits = None, first.metric.bits or schemes.DEFAULT_BITS
    if vocabulary:
        unknown = np.frombuffer(evaluation.scores[-1].statistics.columns[0]) > 0
        mass, rest, words = (profile.column(name) for name in ("word_mass", "rest", "words"))
        listed = profile.column("listed") > 0
        masses = np.where(listed, mass, rest / np.maximum(1, vocabulary - words))
        finite = (listed | ~unknown) & (masses > 0)
        unlisted = _mean((~listed[finite]).astype(float))
        hashed_loss = _mean(profile.column("loss")[finite])
        exact = Exact(
            vocabulary=vocabulary,
            infinite=profile.lines - int(finite.sum()),
            listed=base.exp(_mean(-np.log(masses[finite]))),
            from_hashed=base.exp(hashed_loss + unlisted * math.log(vocabulary / (1 << bits))),
        )
    losses = _losses_of_seeds(evaluation)
    kept = np.isfinite(losses).all(axis=0)
    loss, *others = (_mean(of_seed[kept]) for of_seed in losses)
    lines, mean, sd = int(kept.sum()), float(np.mean(others)), float(np.std(others, ddof=1))
    low, high = sorted(first.metric.of_line(mean + sign * NORMAL * sd) for sign in (-1, 1))
    return Luck(
        **scores.head_of(evaluation),
        file=evaluation.output.name,
        bits=bits,
        lines=lines,
        left_out=profile.lines - lines,
        score=first.metric.of_line(loss),
        loss=loss,
        seeds=len(others),
        scores=tuple(map(first.metric.of_line, others)),
        mean=first.metric.of_line(mean),
        sd=sd,
        z=(loss - mean) / sd if sd > base.NOISE else None,
        low=low,
        high=high,
        exact=exact,
        signature=str(scores.Signature(evaluation, [first])),
    )


def _losses_of_seeds(evaluation: scores.Evaluation) -> Array:
    """Return the losses of lines, by seed, its own first; inf on lines that any seed might make infinite."""
    profile, columns = profile_of(evaluation), evaluation.scores[1].statistics.columns
    losses = np.array([profile.column("loss"), *columns])
    losses[:, profile.column("word_mass") + profile.column("rest") <= 0] = np.inf
    return losses


def _mean(losses: Array) -> float:
    """Return the mean; NaN for no loss."""
    return base.total(losses.tolist()) / len(losses) if len(losses) else math.nan


# Near ties


class NearTie(NamedTuple):
    """Two outputs closer than the effect of hashing: ``turned`` is the share of seeds that would swap them."""

    first: str
    second: str
    turned: float


def notes_on_ties(ties: Sequence[NearTie]) -> Iterator[str]:
    """Yield a note on the near ties of a comparison, if there are some; it names a few of them."""
    what = "closer than the effect of hashing"
    counts = [round(tie.turned * DEFAULT_SEEDS) for tie in ties]
    if len(ties) == 1:
        pair = f"{visible(ties[0].first)} and {visible(ties[0].second)}"
        yield f"{pair} are {what}: {counts[0]} of {DEFAULT_SEEDS} other seeds reverse their order"
    elif ties:
        each = [f"{tie.first} and {tie.second} ({count})" for tie, count in zip(ties, counts, strict=True)]
        pairs = f"{len(ties)} pairs of neighbours are {what}, each with the number of {DEFAULT_SEEDS} other seeds"
        yield f"{pairs} that reverse it: {some_of(each, MAX_NAMED_TIES)}"


def near_ties(evaluations: Sequence[scores.Evaluation], comparison: Comparison) -> Iterator[NearTie]:
    """Find the neighbours in a comparison between which hashing may have decided.

    Only neighbours that cannot be told apart anyway, on a metric of hashed words, are looked at: their outputs are
    scored again with other seeds, unless they have lines of buckets.
    """
    names = unique_names([evaluation.output for evaluation in evaluations])
    by_name = dict(zip(names, evaluations, strict=True))

    @lru_cache(maxsize=2)
    def losses_of(name: str) -> Array | None:
        again = reread(by_name[name], luck_schemes(schemes_of(by_name[name]), DEFAULT_SEEDS, exact=False))
        return None if profile_of(again).column("vector").any() else _losses_of_seeds(again)

    for first, second in pairwise(system.name for system in comparison.systems):
        better, worse = by_name[first], by_name[second]
        if (
            not better.scores[0].metric.bits
            or not any({first, second} <= set(group) for group in comparison.groups)
            or better.scores[0].statistics == worse.scores[0].statistics
        ):
            continue
        losses, other_losses = losses_of(first), losses_of(second)
        if losses is None or other_losses is None:
            continue
        kept = np.isfinite(losses[0]) & np.isfinite(other_losses[0])
        means, other_means = (one[1:, kept].sum(axis=1) for one in (losses, other_losses))
        turned = float((means > other_means).mean())
        if turned > NEAR:
            yield NearTie(first, second, turned)
