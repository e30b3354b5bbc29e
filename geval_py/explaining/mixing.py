"""Mixing: a weighted sum of distributions that is better than an output, or than each of several outputs.

The components of a mixture are

    the uniform distribution over all buckets;
    each output;
    each output with its rest given to the frequent words of train;
    the frequent words of train, by their shares, with a rest for all other words.

The mass of a bucket in the mixture is the weighted sum of its masses in the components. So the column of masses of
the expected words' buckets in each component, m, is enough to find the weights. The problem is convex, and is solved
by expectation and maximisation, which repeats

    w <- mean over the lines of (w m / sum w m)

Lines in a bin of their clarity have weights of their own, which a prior draws to the common weights
(Jelinek and Mercer, "Interpolated estimation of Markov source parameters from sparse data", 1980). The number of bins
is the best by Akaike's criterion. The mixture is tried on held-out lines; the weights, the bins, and the output with
which it is compared are chosen on the other lines.
"""

from __future__ import annotations

import math
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from geval_py import errors, version
from geval_py.explaining.derived import mixed_output
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.significance import LEVEL, TINY, dot, mean_of
from geval_py.explaining.statistics import spread_of_mean
from geval_py.reading import config, splits, wordprobs
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.outputs import output_at, short_names, unique_names
from geval_py.scoring import scores
from geval_py.scoring.evaluate import evaluate_output
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.rewriting import Mixing, Shares, rest_of
from geval_py.scoring.metrics.base import NOISE, Array, Integers, profile_of, profiled
from geval_py.tables import formats, numbers
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import counted, visible

DEFAULT_WORDS = 300  # of train; more improve little, and make long lines
FOLDS = 10
FEW_LINES = 100
MIN_GAIN = 1e-4  # nats a line: a smaller gain is not worth a file
SCORE_DIGITS = 5
MAX_STEPS = 1000
MIN_STEP = 1e-8  # the search ends when no weight changes by more
MIN_SHARE = 0.001  # of a weight, which an extrapolation leaves
MAX_FITTED_LINES = 100_000  # of more lines, every second, third … is enough to find weights
BINS = (2, 4, 8, 16, 32)
MIN_BIN_LINES = 50
PRIOR_LINES = 20  # of a bin, which count as having the common weights
MIN_WEIGHT = 1e-3  # of a component that counts as a parameter
MIN_UNIFORM = 1e-6  # so that a word which no component has on the lines at hand never costs an infinite loss
DIGITS = 6  # of a weight, and of an edge between bins
EDGE_MARGIN = 5e-7  # between an edge and a clarity that many lines share, such as 1, but for rounding errors
UNIFORM = "uniform"
TRAIN = "train"
REST_TO_TRAIN = f", rest to {TRAIN}"  # behind the name of an output


class TiedWeights(NamedTuple):
    """The weights of components, a row for each bin of lines; ``edges`` of the clarity divide the bins."""

    edges: Array
    rows: Array

    @classmethod
    def rounded(cls, edges: Array, rows: Sequence[Array]) -> TiedWeights:
        """Return the weights as they are stored, with a little for the uniform distribution, the first component."""
        weights = np.array(rows)
        weights[:, 0] = np.maximum(weights[:, 0], MIN_UNIFORM)
        return cls(edges, np.array(list(map(rounded, weights))))

    def of_lines(self, clarity: Array) -> Array:
        """Return the weights of lines, components x lines, from the clarity of each."""
        weights: Array = self.rows[np.searchsorted(self.edges, clarity, side="right")].T
        return weights

    def losses(self, masses: Array, clarity: Array) -> Array:
        """Compute the losses of the mixture on lines, in nats, from their masses, components x lines."""
        losses: Array = -np.log((self.of_lines(clarity) * masses).sum(axis=0))
        return np.maximum(0.0, losses)


@dataclass(frozen=True)
class Component:
    """A component of a mixture: its mean weight over lines, its score alone, and its number of infinite losses."""

    name: str
    weight: float
    score: float
    infinite: int
    signature: scores.Signature | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        values = formats.json_fields(self)
        return values | {"infinite_losses": values.pop("infinite")}


@dataclass(frozen=True, kw_only=True, repr=False)
class Mixture(formats.Tabular):
    """The improvement of the score by mixing. Printed as a table of the components.

    ``test`` is the name of the test set, which has ``lines`` lines. They were held out in ``folds`` folds, dealt with
    ``seed``; ``documents`` is the number of documents that were kept together, None if lines were dealt one by one.
    ``words`` is the number of frequent words of train, 0 without them. ``held_out`` is the score of the mixture on
    held-out lines, ``score`` that of the output that is best alone on the other lines; ``best`` is its name if all
    lines decide. ``change`` is the change of the mean loss, in nats; ``taken`` is whether it is for the better by
    more than chance. ``predicted`` is the score on the lines on which the weights were found, slightly better than on
    other lines; ``mixing`` has these weights and makes the mixed lines. ``notes`` are warnings, for people;
    ``header`` is the first name of the header line that an output may begin with; ``names`` replace those of
    components for people.
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
    change: Change
    taken: bool
    predicted: float
    mixing: Mixing
    notes: tuple[str, ...]
    header: str | None
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def bins(self) -> int:
        """The number of bins of lines that have weights of their own."""
        return len(self.mixing.weights)

    def to_dict(self) -> dict[str, Any]:
        values = formats.json_fields(self, "mixing", "header", "names") | {"bins": self.bins}
        rounded_names = ("score", "held_out", "predicted")
        return values | {name: ten_digits(values[name]) for name in rounded_names}

    def shown_names(self) -> dict[str, str]:
        """Return the names of the components for people: an output's is short, or the one that a user gave."""
        own = [component.name for component in self.components if component.signature]
        short = {**dict(zip(own, short_names(list(map(output_at, own))), strict=True)), **self.names}
        names = {}
        for component in self.components:
            output, to_train, _ = component.name.partition(REST_TO_TRAIN)
            names[component.name] = short.get(output, output) + to_train
        return names

    def table(self) -> Table:
        names = self.shown_names()
        rows = [
            (
                names[component.name],
                numbers.significant(component.score, SCORE_DIGITS),
                component.infinite,
                numbers.fixed(component.weight, 4),
            )
            for component in self.components
        ]
        columns = [Column("component"), *named_columns(("score", "infinite", "weight"), "right")]
        infinite = any(component.infinite for component in self.components)
        return Table(columns, rows).without(() if infinite else ("infinite",))

    def records(self) -> Table:
        return replace(self, names={component.name: component.name for component in self.components}).table()

    def legend(self) -> Iterator[str]:
        what = f"{self.metric} ({self.unit}, {self.direction} is better)"
        kept = "lines" if self.documents is None else f"{self.documents} documents"
        how = f"held out in {self.folds} folds of {kept}, seed {self.seed}"
        yield visible(f"{what} of {self.lines} lines of {self.test}; {how}.")
        if self.bins > 1:
            yield f"The weights depend on how sure a line is, in {self.bins} bins; these are their means."
        change, ends, p = self.change.cells()
        best = visible(self.shown_names()[self.best])
        held_out, alone = (numbers.significant(score, SCORE_DIGITS) for score in (self.held_out, self.score))
        yield (
            f"Mixed, {held_out}; {best} alone, {alone}: a change of {change} nats{ends and ' '}{ends}, p {p}: "
            f"{self.change.verdict(taken=self.taken)}."
        )

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines((component.name, component.signature) for component in self.components)

    def kept(self) -> dict[str, Any]:
        """Return the contents of ``.mixing.json`` beside a mixture."""
        return {
            "version": version.__version__,
            "test": self.test,
            "metric": self.metric,
            "components": [component.to_dict() for component in self.components],
            "mixing": self.mixing.to_dict(),
        }

    def apply(
        self,
        outputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        folder: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> str:
        """Mix outputs of the same models, in the same order; return the path of the file written.

        A single output may be given without a list. The file ``out-mix=….tsv`` is written beside the first output or
        into a ``folder``, with a ``.mixing.json`` that has the weights. Raises UsageError for another number of
        outputs, ExistingFileError if a file would be overwritten without ``force``, LineCountError for outputs with
        different numbers of lines, MalformedLineError and the other DataErrors of a file.
        """
        paths = [outputs] if isinstance(outputs, (str, os.PathLike)) else outputs
        sources = [output_at(os.fspath(path)) for path in paths]
        mixed = len(self.mixing.weights[0]) // 2 - 1
        if len(sources) != mixed:
            raise errors.UsageError(f"the mixture is of {counted(mixed, 'output')}, not of {len(sources)}")
        where = os.fspath(folder or os.path.dirname(sources[0].path))
        derived = mixed_output(sources, TRAIN if self.words else UNIFORM, where, self.header)
        derived.check_free(force)
        derived.check_lines()
        derived.write(self.mixing, self.kept())
        return derived.path


def improve(
    *outputs: scores.Evaluation | Iterable[scores.Evaluation],
    words: int | None = None,
    documents: DocumentsBy = None,
    seed: int = config.DEFAULT_SEED,
    force: bool = False,
    threads: int | None = None,
) -> Mixture:
    """Find the best mixture of one or more outputs of a set with known answers, given one by one or as a list.

    The components are described in this module. ``words`` is the number of frequent words of the challenge's train
    (default: 300, or 0 without a train; 0: none). Lines of a document are held out together: ``documents`` is a
    column of the input (its name, or its number from 1) or one value per line; False holds out each line by itself.
    ``seed`` is for the random folds; outputs are read with so many ``threads`` (default: one per core).

    Raises UsageError for a metric that is not hashed or has flags that choose or change lines, for different answers
    or metrics, for fewer than a hundred lines without ``force``, and for words without a train; LineCountError for
    different numbers of lines.
    """
    values = outputs[0] if len(outputs) == 1 else outputs
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    evaluations = [scores.checked_evaluation(value) for value in listed]
    if not evaluations:
        raise errors.UsageError("a mixture takes one output or more; there is none")
    scores.check_comparable(evaluations)
    config.check_sampling(1, seed)
    first, score = evaluations[0], evaluations[0].scores[0]
    bits = hashed_bits(first)
    groups, notes = groups_of(first, documents, force=force)
    fold_of_line = fold_of_lines(groups, seed)
    folds, held_together = int(fold_of_line.max()) + 1, int(groups.max()) + 1
    wanted = DEFAULT_WORDS if words is None else words
    answers = splits.training_answers(first.split.expected)
    frequent: Shares = {}
    if wanted and answers is not None:
        frequent = frequent_words(read_lines(answers, header=first.split.output_header), wanted)
    if wanted and not frequent:
        missing = "there is no train/expected.tsv, whose frequent words would be mixed in"
        if words is not None:
            raise errors.UsageError(missing)
        notes.append(f"{missing}: they are left out")

    masses, clarity = component_masses(evaluations, frequent, threads)
    alone = np.array([evaluation.line_losses for evaluation in evaluations])
    base, tried = np.empty(len(clarity)), np.empty(len(clarity))
    for held_out in (fold_of_line == fold for fold in range(folds)):
        kept = ~held_out
        base[held_out] = alone[alone[:, kept].mean(axis=1).argmin(), held_out]
        fit = fit_weights(masses[:, kept], clarity[kept])
        tried[held_out] = fit.losses(masses[:, held_out], clarity[held_out])
    change = change_of(tried, base, groups)
    weights = fit_weights(masses, clarity)

    names = unique_names([evaluation.output for evaluation in evaluations])
    component_names = [UNIFORM, *names]
    if frequent:
        component_names += [*(name + REST_TO_TRAIN for name in names), TRAIN]
    with np.errstate(divide="ignore"):
        losses = -np.log(masses)
    component_scores = [score.metric.of_line(mean_of(row)) for row in losses]
    component_scores[1 : 1 + len(names)] = [evaluation.score for evaluation in evaluations]
    mean_weights = weights.of_lines(clarity).mean(axis=1).tolist()
    infinite = np.isinf(losses).sum(axis=1).tolist()
    signatures = {name: evaluation.signature for name, evaluation in zip(names, evaluations, strict=True)}
    uniform, *components = (
        Component(name, weight, value, count, signatures.get(name))
        for name, weight, value, count in zip(component_names, mean_weights, component_scores, infinite, strict=True)
    )
    columns = 2 * len(names) + 2
    rows = [(*row, *[0.0] * (columns - len(row))) for row in weights.rows.tolist()]
    return Mixture(
        **scores.head_of(first),
        lines=len(groups),
        folds=folds,
        documents=None if held_together == len(groups) else held_together,
        seed=seed,
        header=first.split.output_header,
        words=len(frequent),
        components=(*components, uniform),
        best=names[alone.mean(axis=1).argmin()],
        score=score.metric.of_line(mean_of(base)),
        held_out=score.metric.of_line(mean_of(tried)),
        change=change,
        taken=change.is_better,
        predicted=score.metric.of_line(mean_of(weights.losses(masses, clarity))),
        mixing=Mixing(
            weights=tuple(rows),
            edges=tuple(weights.edges.tolist()),
            frequent=frequent,
            bits=bits,
        ),
        notes=tuple(notes),
    )


def hashed_bits(evaluation: scores.Evaluation) -> int:
    """Return the bits of the first metric's hash; raises UsageError for a metric that is not hashed, or has flags."""
    first = evaluation.scores[0]
    if first.metric.bits is None or first.scheme.text_flags or first.scheme.selecting_flags:
        raise errors.UsageError(
            "mixing needs a hashed metric without flags that choose or change lines, such as "
            f"PerplexityHashed, not {visible(first.scheme.text)}"
        )
    return first.metric.bits


def component_masses(
    evaluations: Sequence[scores.Evaluation], frequent: Shares, threads: int | None = None
) -> tuple[Array, Array]:
    """Return the masses of the expected words' buckets, components x lines, and the clarity of each line.

    The outputs are read again. :class:`geval_py.scoring.kernel.rewriting.Mixing` says what clarity is.
    """
    profiles = []
    for evaluation in evaluations:
        score = evaluation.scores[0]
        schemes = [(score.scheme, profiled(score.metric))]
        again = evaluate_output(evaluation.split, evaluation.output, schemes, frozenset(), threads=threads)
        profiles.append(profile_of(again.scores[0].statistics))
    outputs = [np.exp(-np.array(evaluation.line_losses)) for evaluation in evaluations]
    bits = hashed_bits(evaluations[0])
    uniform = 1 / (1 << bits)
    rows = [np.full(len(outputs[0]), uniform), *outputs]
    if frequent:
        shares = bucket_shares(evaluations[0].split, frequent, bits)
        of_train = shares + rest_of(frequent) * uniform
        for masses, profile in zip(outputs, profiles, strict=True):
            with_train = masses + profile["rest"] * (of_train - uniform)
            rows.append(np.where(with_train > NOISE * masses, with_train, 0.0))  # less is rounding
        rows.append(of_train)
    clarities = [profile["guess_mass"] + profile["rest"] for profile in profiles]
    return np.array(rows), np.mean(clarities, axis=0)


def fit_weights(masses: Array, clarity: Array) -> TiedWeights:
    """Find the weights with the least loss on lines, for as many bins of the clarity as are worth it.

    By Akaike's criterion ("A new look at the statistical model identification", 1974), more bins must lower the loss
    of all lines together by one nat for each weight that they add.
    """
    step = 1 + (len(clarity) - 1) // MAX_FITTED_LINES
    masses, clarity = masses[:, ::step], clarity[::step]
    common = best_weights(masses)
    free = np.count_nonzero(common > MIN_WEIGHT) - 1
    fits = [TiedWeights.rounded(np.empty(0), [common])]
    for count in BINS:
        if count * MIN_BIN_LINES > len(clarity):
            break
        quantiles = np.quantile(clarity, np.arange(1, count) / count).round(DIGITS)
        edges = np.unique(quantiles) - EDGE_MARGIN
        edges = edges[edges > clarity.min()]
        bin_of = np.searchsorted(edges, clarity, side="right")
        bins = (masses[:, bin_of == number] for number in range(len(edges) + 1))
        fits.append(TiedWeights.rounded(edges, [best_weights(lines, PRIOR_LINES * common) for lines in bins]))
    return min(fits, key=lambda fit: float(fit.losses(masses, clarity).sum()) + free * len(fit.edges))


def best_weights(masses: Array, prior: Array | float = 0.0) -> Array:
    """Find the weights, with sum 1, of the mixture with the least loss; ``masses`` are components x lines.

    Each line has a mass in some component. The ``prior`` is in lines, which count as those of each component. Steps
    of EM are extrapolated (Varadhan and Roland, "Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm", 2008), which takes a tenth of them.
    """
    prior_lines = np.broadcast_to(prior, len(masses))
    total = masses.shape[1] + prior_lines.sum()

    def step(weights: Array) -> Array:
        shares: Array = weights * (masses @ np.reciprocal(weights @ masses))
        shares += prior_lines
        shares /= total
        return shares

    weights = np.full(len(masses), 1 / len(masses))
    for _ in range(MAX_STEPS if total else 0):
        first = step(weights)
        second = step(first)
        change, bend = first - weights, second - 2 * first + weights
        if np.abs(change).max() < MIN_STEP:
            return second
        reach = max(1.0, math.sqrt(dot(change, change) / max(dot(bend, bend), TINY)))
        extrapolated = weights + 2 * reach * change + reach**2 * bend
        further = np.maximum(extrapolated, MIN_SHARE * second)
        weights = step(further / further.sum())
    return weights


def rounded(weights: Array) -> Array:
    """Round weights to a few digits; their sum stays 1."""
    short: Array = weights.round(DIGITS)
    short[short.argmax()] += 1.0 - short.sum()
    return short


# The change on held-out lines


def fold_of_lines(groups: Integers, seed: int) -> Integers:
    """Deal documents (two or more) at random into ten folds, or one fold a document if there are fewer."""
    documents = int(groups.max()) + 1
    folds: Integers = np.random.default_rng(seed).permutation(documents) % min(FOLDS, documents)
    return folds[groups]


def groups_of(
    evaluation: scores.Evaluation, documents: DocumentsBy, *, force: bool = False
) -> tuple[Integers, list[str]]:
    """Return the number of the group that each line is held out with, its document's or its own, and notes.

    Raises UsageError for few lines without ``force``, for one line or one document, and for another number of
    documents than lines, and the errors of :func:`geval_py.explaining.documents.documents_in` for a column.
    """
    lines, notes = evaluation.line_count, []
    if lines < FEW_LINES:
        notes.append(f"the result of mixing on {counted(lines, 'line')} may be due to chance")
        if not force:
            raise errors.UsageError(f"{notes[0]}; take {FEW_LINES} lines or more, or give", arguments=("force",))
    if lines < 2:
        raise errors.UsageError("there is one line, and it cannot be held out: take two lines or more")
    of_file = choose_documents(evaluation, documents)
    notes += notes_on_documents(of_file)
    several = of_file and of_file.several()
    return np.arange(lines) if several is None else several.of_line, notes


class Change(NamedTuple):
    """A mean difference of losses in nats, negative if the score improves, and its 95 % interval; may be infinite.

    The ends are NaN if all lines change alike: nothing then shows how far the true change may be.
    ``p_value`` is a bound of how often lines would change so much for the better by luck, in (0, 1].
    """

    mean: float
    low: float
    high: float
    p_value: float

    @property
    def is_better(self) -> bool:
        """Whether the change is for the better, by the p-value or by the interval, and matters."""
        return (self.p_value <= LEVEL or self.high < 0.0) and self.mean <= -MIN_GAIN

    def verdict(self, *, taken: bool) -> str:
        """Return what to do. Of simulated changes whose interval holds 0, every tenth or so was for the worse."""
        return "leave it" if not taken else "take it" if self.high < 0.0 else "probably better"

    def to_dict(self) -> dict[str, float]:
        return {name: ten_digits(value) for name, value in self._asdict().items()}

    def cells(self) -> tuple[str, str, str]:
        """Return the mean, the interval and the p-value as text."""
        ends = "" if math.isnan(self.low) else f"[{numbers.fixed(self.low, 4)}, {numbers.fixed(self.high, 4)}]"
        return numbers.fixed(self.mean, 4), ends, numbers.p_value(self.p_value)


def change_of(losses: Array, base: Array, groups: Integers) -> Change:
    """Compute the mean difference of two columns of losses on the same lines, and its interval by documents.

    Let the new losses be G nats less in all. If the old probabilities were right, answers that the new ones make
    exp(G) times likelier or more would be drawn with a probability of exp(-G) at most (Markov's inequality). This is
    the p-value, with G divided by how much the variance of the change is greater by documents than by lines. The
    interval alone would refuse most changes that few lines profit from.

    If an infinite loss becomes finite, or the other way round, the change is infinite; lines that are infinite in
    both columns count as no change.
    """
    infinite, was_infinite = np.isinf(losses), np.isinf(base)
    fixed, broken = was_infinite & ~infinite, infinite & ~was_infinite
    if fixed.any() or broken.any():
        end = math.inf if broken.any() else -math.inf
        return Change(end, low=-math.inf if fixed.any() else end, high=end, p_value=math.exp(min(0.0, end)))
    differences = np.subtract(losses, base, out=np.zeros(len(base)), where=~infinite)
    mean, lines = mean_of(differences), len(differences)
    spread, by_line = spread_of_mean(differences, groups), float(differences.var(ddof=1)) / lines
    more = max(1.0, spread.deviation**2 / by_line) if by_line > 0.0 else 1.0
    half = spread.half_width
    # The same NaN, so that equal changes compare equal.
    low, high = (math.nan, math.nan) if half <= NOISE * abs(mean) else (mean - half, mean + half)
    return Change(mean, low, high, p_value=math.exp(min(0.0, mean * lines / more)))


def ten_digits(value: float) -> float:
    """Round a figure to ten digits: later digits depend on the processor."""
    return float(f"{value:.10g}")


# The frequent words of train


def frequent_words(answers: Iterable[str], count: int) -> Shares:
    """Return the shares of the ``count`` most frequent answers that an output can list.

    In case of ties they are the first by code points. Answers that an output cannot list, such as those with a space,
    count in the total but are left out.
    """
    counts = Counter(answers)
    total = counts.total()
    words = sorted(filter(wordprobs.is_listable, counts), key=lambda word: (-counts[word], word))[:count]
    return {word: counts[word] / total for word in words}


def bucket_shares(split: splits.Split, frequent: Shares, bits: int) -> Array:
    """Return, for each line of the answers, the sum of the shares of the frequent words in its bucket."""
    with LineReader(split.expected, header=split.output_header) as expected:
        answers = b"".join(iter(expected.block, b""))
    words = "".join(f"{word}\n" for word in frequent).encode()
    return np.frombuffer(backends.bucket_shares(words, array("d", frequent.values()), answers, bits, 1))
