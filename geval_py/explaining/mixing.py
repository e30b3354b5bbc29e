"""Mixing: the weights of outputs whose weighted sum of distributions has the least loss.

The mass of a bucket is linear in the lines' distributions. So the columns of losses are enough to find the weights,
and the problem is convex: it is solved by expectation and maximisation (Jelinek and Mercer, "Interpolated estimation
of Markov source parameters from sparse data", 1980), which repeats, with a column m = exp(-L) for each output,

    w <- mean over the lines of (w m / sum w m)

The weights are tried on held-out lines, and compared with the output that is best alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geval_py import errors, version
from geval_py.explaining import cross_validation, guesses
from geval_py.explaining.derived import frequent_words_of_train, mixed_output
from geval_py.explaining.documents import DocumentsBy
from geval_py.explaining.significance import mean_of, slices
from geval_py.explaining.tuning import Tuning, tune
from geval_py.reading import config
from geval_py.reading.outputs import output_at, unique_names
from geval_py.scoring.metrics.base import Array, Flags
from geval_py.scoring.recipes import Mixing
from geval_py.scoring.scores import Evaluation, Signature, check_comparable, checked_evaluations, signature_lines
from geval_py.tables import formats, numbers
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import visible

MAX_STEPS = 10_000
MIN_STEP = 1e-12  # nats a line: the search ends with a step that gains less
FACTORS = 16  # whose product a double holds: a sum is hardly below one by the number of lines
DIGITS = 6  # of a weight: a component with less weight is left out
TRAIN = "train"  # the component that is the frequent words of train, the same on each line


@dataclass(frozen=True)
class Component:
    """One of the mixed outputs: its weight in [0, 1], its score alone, and its number of infinite losses."""

    name: str
    weight: float
    score: float
    infinite: int
    signature: Signature | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        values = formats.json_fields(self)
        return values | {"infinite_losses": values.pop("infinite")}


@dataclass(frozen=True, kw_only=True, repr=False)
class Mixture(formats.Tabular):
    """The improvement of the score by mixing outputs. Printed as a table.

    ``components`` are the outputs in their order, the words of train last, if they are mixed too. ``best`` is the
    name of the output that is best alone, with its ``score``. ``held_out`` is the mixture's score on held-out lines,
    ``change`` its mean loss there minus that of the best output, in nats; ``taken`` is whether it is surely below 0.
    ``predicted`` is the score with the weights, found on all lines, on the same lines; ``mixing`` makes the lines.
    ``names`` replace those of outputs for people. The other fields are the same as in
    :class:`geval_py.explaining.tuning.Tuning`.
    """

    test: str
    metric: str
    unit: str
    direction: str
    lines: int
    folds: int
    documents: int | None
    seed: int
    words: int
    components: tuple[Component, ...]
    best: str
    score: float
    held_out: float
    change: cross_validation.Change
    taken: bool
    predicted: float
    mixing: Mixing
    notes: tuple[str, ...]
    header: str | None
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def to_dict(self) -> dict[str, Any]:
        values = formats.json_fields(self, "mixing", "header", "names")
        return values | {name: cross_validation.ten_digits(values[name]) for name in ("held_out", "predicted")}

    def table(self) -> Table:
        rows = [
            (
                self.names.get(component.name, component.name),
                cross_validation.score_text(component.score),
                component.infinite,
                numbers.fixed(component.weight, 4),
            )
            for component in self.components
        ]
        columns = [Column("output"), *named_columns(("score", "infinite", "weight"), "right")]
        infinite = any(component.infinite for component in self.components)
        return Table(columns, rows).without(() if infinite else ("infinite",))

    def records(self) -> Table:
        return replace(self, names={}).table()

    def legend(self) -> Iterator[str]:
        what = f"{self.metric} ({self.unit}, {self.direction} is better)"
        how = cross_validation.folds_text(self.documents, self.folds, self.seed)
        yield visible(f"{what} of {self.lines} lines of {self.test}; {how}.")
        change, ends, p = self.change.cells()
        best = visible(self.names.get(self.best, self.best))
        yield (
            f"Mixed, {cross_validation.score_text(self.held_out)}; against {best} alone, "
            f"{cross_validation.score_text(self.score)}, a change of {change} nats{ends and ' '}{ends}, p {p}: "
            f"{self.change.verdict(taken=self.taken)}."
        )

    def signatures(self) -> Iterator[str]:
        return signature_lines((component.name, component.signature) for component in self.components)

    def kept(self) -> dict[str, Any]:
        """Return the contents of ``.tuning.json`` beside a mixture."""
        return {
            "version": version.__version__,
            "test": self.test,
            "metric": self.metric,
            "components": [component.to_dict() for component in self.components],
            "mixture": self.mixing.to_dict(),
        }

    def apply(
        self,
        outputs: Sequence[str | os.PathLike[str]],
        *,
        folder: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> str:
        """Mix outputs of the same models, in the same order; return the path of the file written.

        The file ``out-mix=….tsv`` is written beside the first output or into a ``folder``, with a ``.tuning.json``
        that has the weights. Raises UsageError for another number of outputs, ExistingFileError if a file would be
        overwritten without ``force``, LineCountError for outputs with different numbers of lines, MalformedLineError
        and the other DataErrors of a file.
        """
        sources = [output_at(os.fspath(output)) for output in outputs]
        wanted = len(self.components) - bool(self.words)
        if len(sources) != wanted:
            raise errors.UsageError(message=f"the mixture is of {wanted} outputs, not of {len(sources)}")
        where = os.fspath(folder or os.path.dirname(sources[0].path))
        derived = mixed_output(sources, where, self.header, [TRAIN] if self.words else [])
        derived.check_free(force)
        derived.check_lines()
        derived.write(self.mixing, self.kept())
        return derived.path


def improve(*outputs: Evaluation | Iterable[Evaluation], **settings: Any) -> Tuning | Mixture:
    """Improve an output, or several together, on a test set with known answers.

    One output is tuned (:func:`geval_py.explaining.tuning.tune`), several are mixed
    (:func:`geval_py.explaining.mixing.mix`); ``settings`` are the arguments of these functions.
    """
    values = outputs[0] if len(outputs) == 1 else outputs
    evaluations = [values] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
    return tune(*evaluations, **settings) if len(evaluations) == 1 else mix(*evaluations, **settings)


def mix(
    *outputs: Evaluation | Iterable[Evaluation],
    words: int = 0,
    documents: DocumentsBy = None,
    seed: int = config.DEFAULT_SEED,
    force: bool = False,
) -> Mixture:
    """Find the best weights for mixing outputs of a set with known answers, given one by one or as a list.

    ``words`` is the number of frequent words of the challenge's train that make one more component, with a rest for
    all other words; 0 for none. ``documents``, ``seed`` and ``force`` are as for
    :func:`geval_py.explaining.tuning.tune`.

    Raises UsageError for fewer than two outputs, different answers or metrics, and otherwise as tune;
    LineCountError for different numbers of lines.
    """
    evaluations = checked_evaluations(outputs, "mix")
    if len(evaluations) < 2:
        raise errors.UsageError(message=f"a mixture takes two outputs or more; there is {len(evaluations) or 'none'}")
    check_comparable(evaluations)
    config.check_sampling(1, seed)
    first, score = evaluations[0], evaluations[0].scores[0]
    bits = guesses.hashed_bits(first)
    folds, notes = cross_validation.folds_of(evaluations, documents, seed, force=force)
    frequent = frequent_words_of_train(first.split, words) if words else {}
    if words and not frequent:
        raise errors.UsageError(
            message="there is no train/expected.tsv, whose commonest words would be one more output"
        )
    columns = [np.array(evaluation.line_losses) for evaluation in evaluations]
    if frequent:
        shares = guesses.bucket_shares(first.split, frequent, bits)
        with np.errstate(divide="ignore"):
            rest = max(0.0, 1.0 - sum(frequent.values())) / (1 << bits)
            columns.append(np.maximum(0.0, -np.log(shares + rest)))
    losses = np.array(columns)  # outputs x lines, the words of train last
    least, masses = relative_masses(losses)
    alone = int(np.argmin(losses[: len(evaluations)].mean(axis=1)))
    best = best_weights(masses)
    tried = np.empty(len(least))
    for out, weights in weights_outside(folds, masses, best):
        tried[out] = mixed_losses(least[out], masses[:, out], rounded(weights))
    change = cross_validation.change_of(tried, losses[alone], folds.groups)
    single = np.eye(len(losses))[alone]  # which no mixture should lose to on the same lines
    tries = [(mixed_losses(least, masses, one), one) for one in (rounded(best), single)]
    mixed, weights = min(tries, key=lambda one: mean_of(one[0]))
    infinite = np.isinf(losses).sum(axis=1).tolist()
    names = unique_names([evaluation.output for evaluation in evaluations])
    parts: list[tuple[str, float, Signature | None]]
    parts = [(name, one.score, one.signature) for name, one in zip(names, evaluations, strict=True)]
    if frequent:
        parts.append((TRAIN, cross_validation.score_of(score, losses[-1]), None))
    components = tuple(
        Component(name, weight, value, count, signature)
        for (name, value, signature), weight, count in zip(parts, weights.tolist(), infinite, strict=True)
    )
    return Mixture(
        **cross_validation.described(first, folds, seed),
        words=len(frequent),
        components=components,
        best=names[alone],
        score=evaluations[alone].score,
        held_out=cross_validation.score_of(score, tried),
        change=change,
        taken=change.is_better,
        predicted=cross_validation.score_of(score, mixed),
        mixing=Mixing(weights=tuple(weights.tolist()), frequent=frequent, bits=bits),
        notes=tuple(notes),
    )


def best_weights(masses: Array, begin: Array | None = None) -> Array:
    """Find the weights, with sum 1, of the mixture with the least loss; ``masses`` are relative, outputs x lines.

    Lines without a mass in any output are ignored; if there are no others, all weights are equal. A search that
    begins at weights that are almost best takes fewer steps.
    """
    has_mass = masses.any(axis=0)
    masses = masses if has_mass.all() else masses[:, has_mass]
    weights: Array = np.full(len(masses), 1 / len(masses)) if begin is None else begin
    lines, before = masses.shape[1], -np.inf
    chunks = [masses[:, part] for part in slices(lines, cross_validation.CHUNK)]
    for _ in range(MAX_STEPS if lines else 0):
        gained, shares = 0.0, np.zeros(len(masses))
        for chunk in chunks:
            sums = weights @ chunk
            products = np.multiply.reduceat(sums, np.arange(0, len(sums), FACTORS))  # logarithms take most time
            gained += float(np.log(products).sum()) / lines
            shares += chunk @ np.reciprocal(sums)
        if gained - before < MIN_STEP:
            break
        weights, before = weights * shares / lines, gained
    return weights


def weights_outside(folds: Iterable[Flags], masses: Array, best: Array) -> Iterator[tuple[Flags, Array]]:
    """Yield each fold with the best weights on the lines outside; ``best`` are those on all lines.

    A step of Newton's method from there, if it keeps all weights above 0, ends so close to them that the search takes
    two steps, not dozens.
    """
    sums = best @ masses
    shares = masses / np.where(sums > 0, sums, 1.0)
    slopes, curvature = shares.sum(axis=1), shares @ shares.T
    for out in folds:
        own = shares[:, out]
        outside = slopes - own.sum(axis=1)
        step = np.linalg.lstsq(curvature - own @ own.T, outside - best @ outside, rcond=None)[0]
        begin = best + step if (best + step).min() > 0 else best
        yield out, best_weights(masses[:, ~out], begin / begin.sum())


def rounded(weights: Array) -> Array:
    """Round weights to a few digits; their sum stays 1."""
    short: Array = weights.round(DIGITS)
    short[short.argmax()] += 1.0 - short.sum()
    return short


def relative_masses(losses: Array) -> tuple[Array, Array]:
    """Return each line's least loss, 0 if it is infinite, and the masses relative to it, outputs x lines."""
    least = losses.min(axis=0)
    least[np.isinf(least)] = 0.0
    return least, np.exp(least - losses)


def mixed_losses(least: Array, masses: Array, weights: Array) -> Array:
    """Compute the loss of each line of a mixture, possibly inf, from relative masses."""
    with np.errstate(divide="ignore"):
        mixed: Array = np.maximum(0.0, least - np.log(weights @ masses))
    return mixed
