"""The contents of a report, computed once.

First the report by a metric that is made from log losses of words (:func:`report`), then the report by any other
metric, from its line statistics: translations, classes, labels, numbers, tags (:func:`overview`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining import cross_validation, losses, mixing, reliability, resampling, worst_features
from geval_py.explaining.calibration import Calibration, calibration_of, calibration_schemes
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.documents import Dependence, DocumentsBy, choose_documents, notes_on_intervals
from geval_py.explaining.guesses import bucket_shares, hashed_bits
from geval_py.explaining.luck import DEFAULT_SEEDS, Luck, luck_of, luck_schemes
from geval_py.explaining.reliability import profile_of
from geval_py.explaining.significance import LEAST_TESTED, Interval
from geval_py.explaining.spread import Documents
from geval_py.explaining.tuning import Tuning, tune
from geval_py.reading import config, derived, splits
from geval_py.reading.items import ItemColumns, column_names, lines_of
from geval_py.reading.lines import read_lines
from geval_py.scoring.kernel import backends
from geval_py.scoring.scores import MetricScore, ScoredOutput, checked_evaluation
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.significance import Array
    from geval_py.scoring.blocks import Progress


MOST_COLUMNS = 8
MOST_BINS = 20
SAMPLES = 300  # of the lines of a part, for its interval
EXPECTED = "expected"
DEALT = 20  # times that lines are dealt out to documents at random
_STEPS = tuple(factor * 10.0**power for power in range(-6, 12) for factor in (1.0, 2.0, 5.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentSpread:
    """How documents differ: the mean loss of each in nats, and quartiles, also of lines dealt out at random."""

    column: str
    means: Array
    quartiles: tuple[float, float]
    by_chance: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The contents of a report by log losses; ``line_losses``, in nats, are of the lines that the metric scored.

    ``comparison`` and ``mixture`` are with other outputs of the same lines; None without others. The ``notes`` say
    whether the ``interval`` and the comparison are by documents, and where they are not to be trusted.
    ``by_frequency`` is empty without a train/expected.tsv beside the test set, and ``unigram``, the perplexity of an
    output that gives the words of train by their shares on each line, is None; also for a metric that does not hash
    words, or has flags. ``by_document`` is None without documents, or with few. ``calibration`` is None for a metric
    that does not hash words, and so are the next three; ``luck`` is also None for lines of buckets, ``tuning`` and
    ``mixture`` also if flags choose or change lines, and for fewer than a hundred lines.
    """

    evaluation: ScoredOutput
    interval: Interval
    notes: tuple[str, ...]
    line_losses: Array
    outcomes: losses.Outcomes
    shares: tuple[losses.OutcomeShare, ...]
    bins: tuple[losses.Bin, ...]
    by_length: tuple[losses.Part, ...]
    by_frequency: tuple[losses.Part, ...]
    by_column: tuple[losses.Parts, ...]
    by_document: DocumentSpread | None
    unigram: float | None
    culprits: tuple[worst_features.Culprit, ...]
    examples: tuple[losses.Example, ...]
    comparison: Comparison | None
    calibration: Calibration | None
    luck: Luck | None
    tuning: Tuning | None
    mixture: mixing.Mixture | None

    @property
    def mean_loss(self) -> float:
        """The mean of the finite losses, in nats; NaN without any."""
        return mean_of(self.line_losses)

    @property
    def infinite(self) -> int:
        """The number of lines with an infinite loss."""
        return int(np.isinf(self.line_losses).sum())


def report(
    evaluation: ScoredOutput,
    others: Sequence[ScoredOutput] = (),
    *,
    documents: DocumentsBy = None,
    progress: Progress | None = None,
) -> Report:
    """Compute a report by log losses; ``progress`` is called while outputs are compared.

    ``documents`` is as in :func:`geval_py.compare`, for all intervals, tests and folds.

    Raises UsageError for a metric that is not made from log losses of words, and if the texts were not kept; the
    errors of :func:`compare` and of :meth:`ScoredOutput.read_items`.
    """
    line_losses = log_losses(evaluation)
    items = losses.prepared_items(evaluation)
    again = _profiled(evaluation, items) if evaluation.scores[0].metric.bits is not None else None
    outcomes = losses.outcomes_of(items) if again is None else losses.outcomes_in(profile_of(again).column)
    words = items.expected
    of_file, dependence = choose_documents([evaluation, *others], documents)
    by = False if of_file is None else of_file.column
    grouped = of_file and of_file.of_score(evaluation.scores[0])
    honesty = None if again is None else calibration_of(again, documents=by)
    counts = counts_of_train(evaluation)
    tunable = honesty is not None and can_be_tuned(evaluation)
    return Report(
        evaluation=evaluation,
        interval=resampling.score_interval(evaluation.scores[0], documents=of_file),
        notes=(*_on_documents(dependence), *notes_on_intervals(of_file, evaluation.scores[:1])),
        line_losses=line_losses,
        outcomes=outcomes,
        shares=tuple(losses.outcome_shares(line_losses, outcomes)),
        bins=tuple(losses.loss_bins(line_losses, outcomes)),
        by_length=losses.by_length(line_losses, words),
        by_frequency=losses.by_frequency(line_losses, words, counts) if counts else (),
        by_column=columns_of(evaluation, line_losses, items),
        by_document=spread_of_documents(grouped, line_losses),
        unigram=unigram_perplexity(evaluation, counts) if tunable and counts else None,
        culprits=tuple(worst_features.culprits_of(items, line_losses, evaluation.split.in_header, grouped)),
        examples=tuple(losses.examples_of(items, _numbers_of(evaluation), line_losses, outcomes)),
        comparison=compare([evaluation, *others], documents=by, progress=progress) if others else None,
        calibration=honesty,
        luck=None if again is None else _luck_or_none(again, honesty),
        tuning=tune(evaluation, documents=by) if tunable else None,
        mixture=mixing.mix([evaluation, *others], documents=by) if tunable and others else None,
    )


def log_losses(evaluation: ScoredOutput) -> Array:
    """Return the line losses, in nats; raises UsageError for a metric that is not made from log losses of words."""
    score = checked_evaluation(evaluation).scores[0]
    if not has_log_losses(score):
        message = (
            f"this needs log losses of words, which {visible(score.metric.name)} does not have; choose another metric"
        )
        raise UsageError(message=message, arguments=("metrics",))
    return np.array(evaluation.line_losses, np.float64)


def explained(
    evaluation: ScoredOutput,
    others: Sequence[ScoredOutput] = (),
    *,
    documents: DocumentsBy = None,
    progress: Progress | None = None,
) -> Report | Overview:
    """Compute the report that fits the metric: :func:`report` for log losses, else :func:`overview`."""
    explain = report if has_log_losses(evaluation.scores[0]) else overview
    return explain(evaluation, others, documents=documents, progress=progress)


def has_log_losses(score: MetricScore) -> bool:
    """Whether a score is made from log losses of words."""
    return score.metric.is_of_words and not score.statistics.classes


def mean_of(line_losses: Array) -> float:
    """Return the mean of the finite losses; NaN without any."""
    finite = line_losses[np.isfinite(line_losses)]
    return float(finite.mean()) if len(finite) else float("nan")


def _profiled(evaluation: ScoredOutput, items: ItemColumns) -> ScoredOutput:
    """Score an output of hashed words again, once for all that takes profiles of lines.

    Lines of buckets hold for one seed of the hash: no other is tried if there are any.
    """
    named = reliability.hashed_scheme(reliability.schemes_of(evaluation))
    of_luck = (
        luck_schemes(named, DEFAULT_SEEDS, exact=False)[1:] if all(":" in output for output in items.outputs) else []
    )
    return reliability.reread(evaluation, [*calibration_schemes(named), *of_luck])


def _luck_or_none(again: ScoredOutput, honesty: Calibration | None) -> Luck | None:
    """Compute the luck of the hash; None for lines of buckets, which hold for one seed, and without a finite line."""
    if honesty is None or honesty.vectors or not honesty.claim.lines:
        return None
    found = luck_of(again, DEFAULT_SEEDS, 0)
    return found if found.lines else None


def _numbers_of(evaluation: ScoredOutput) -> Sequence[int]:
    """Return the numbers of the scored lines in the file."""
    return evaluation.line_numbers or range(1, evaluation.line_count + 1)


def can_be_tuned(evaluation: ScoredOutput) -> bool:
    """Whether an output scored by a hashed metric can be tuned: if the metric has no flags, and on enough lines."""
    scheme = evaluation.scores[0].scheme
    is_plain = not scheme.text_flags and not scheme.selecting_flags
    return is_plain and evaluation.line_count >= cross_validation.FEW_LINES


def counts_of_train(evaluation: ScoredOutput) -> Counter[str]:
    """Count the words of the train/expected.tsv beside the test set; none without one."""
    split = evaluation.split
    path = splits.training_answers(split)
    return Counter(() if path is None else read_lines(path, header=split.output_header))


def unigram_perplexity(evaluation: ScoredOutput, counts: Counter[str]) -> float:
    """Compute the perplexity of an output that has the 10,000 commonest words of train on each line, by their shares.

    The rest is the share of the others and, as Good and Turing estimate it, of unseen words: that of the words that
    occur once, by which all shares are discounted.
    """
    once = max(1, sum(1 for count in counts.values() if count == 1))
    seen = 1.0 - once / counts.total()
    commonest = counts.most_common(derived.ALL_WORDS)
    shares = tuple(count / counts.total() * seen for _, count in commonest)
    frequent = derived.FrequentWords(words=tuple(word for word, _ in commonest), shares=shares)
    bits = hashed_bits(evaluation)
    masses = bucket_shares(evaluation.split, frequent, bits) + (1.0 - frequent.total) / (1 << bits)
    return float(np.exp(-np.log(masses).mean()))


def spread_of_documents(documents: Documents | None, line_losses: Array) -> DocumentSpread | None:
    """Compute how the mean finite losses of documents are spread; None without documents, or with few."""
    if documents is None or documents.are_lines:
        return None
    finite = np.flatnonzero(np.isfinite(line_losses))
    kept, values = documents.only(finite), line_losses[finite]
    if kept.count < LEAST_TESTED:
        return None
    sizes, rng = np.bincount(kept.of_line), np.random.default_rng(config.DEFAULT_SEED)
    means = np.bincount(kept.of_line, values) / sizes
    dealt = [np.bincount(kept.of_line, rng.permutation(values)) / sizes for _ in range(DEALT)]
    quartiles = [np.quantile(of, (0.25, 0.75)).tolist() for of in (means, np.concatenate(dealt))]
    return DocumentSpread(
        column=kept.column,
        means=means,
        quartiles=(quartiles[0][0], quartiles[0][1]),
        by_chance=(quartiles[1][0], quartiles[1][1]),
    )


def columns_of(evaluation: ScoredOutput, line_losses: Array, items: ItemColumns) -> tuple[losses.Parts, ...]:
    """Divide the lines, ``items``, by each column of the input that divides them; at most eight columns."""
    found = (losses.by_column(line_losses, name, texts) for name, texts in input_columns(evaluation, items))
    return tuple(parts for parts in found if parts is not None)[:MOST_COLUMNS]


def input_columns(evaluation: ScoredOutput, items: ItemColumns) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each column of the input and its texts, one per item; nothing without an input.

    The name of a column without a header is "column 2".
    """
    if evaluation.split.input is None:
        return
    text = lines_of(items.inputs)
    for column, name in enumerate(column_names(items.width, evaluation.split.in_header, set())):
        shown = f"column {name}" if name == str(column + 1) else name
        yield shown, backends.take_column(text, column).decode().split("\n")[:-1]


# Reports by any metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBin:
    """The number of lines with scores from ``low`` to below ``high``; the last bin includes ``high``."""

    low: float
    high: float
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPart:
    """A part of the lines: its label, its number of lines, their score and its 95 % interval.

    Score and interval are NaN if the score of these lines is not defined; the interval is None for a single line.
    """

    label: str
    lines: int
    score: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredParts:
    """The parts of the lines by the expected answer, or by a column of the input, and what divides them."""

    column: str
    kind: losses.Kind
    parts: tuple[ScoredPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadFeature:
    """A feature of bad lines: the number of lines that have it, the mean of their scores, and its q value.

    ``explained`` is the share of the variance of the lines' ranks that this feature and those before it explain.
    """

    feature: str
    lines: int
    mean: float
    q: float
    explained: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TextExample:
    """A line: its number in the file, its score, its texts; ``input`` is "" without an input."""

    number: int
    score: float
    input: str
    expected: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The contents of a report by any metric.

    ``line_scores`` are in order, NaN for a line without a score of its own; if all are NaN, ``bins``, ``features``
    and ``examples`` are empty. ``by_expected`` is None if the answers do not divide the lines into parts.
    ``comparison`` is with other outputs; None without others.
    """

    evaluation: ScoredOutput
    interval: Interval
    notes: tuple[str, ...]
    line_scores: Array
    bins: tuple[ScoreBin, ...]
    by_expected: ScoredParts | None
    by_column: tuple[ScoredParts, ...]
    features: tuple[BadFeature, ...]
    examples: tuple[TextExample, ...]
    comparison: Comparison | None

    @property
    def known(self) -> Array:
        """The finite scores of lines."""
        return self.line_scores[np.isfinite(self.line_scores)]


def overview(
    evaluation: ScoredOutput,
    others: Sequence[ScoredOutput] = (),
    *,
    documents: DocumentsBy = None,
    progress: Progress | None = None,
) -> Overview:
    """Compute a report by any metric; ``documents`` and ``progress`` are as in :func:`report`.

    Raises UsageError if the texts were not kept; the errors of :func:`compare` and of
    :meth:`ScoredOutput.read_items`.
    """
    score = checked_evaluation(evaluation).scores[0]
    scores = np.array(evaluation.line_scores(), np.float64)
    items = evaluation.read_columns()
    of_file, dependence = choose_documents([evaluation, *others], documents)
    by = False if of_file is None else of_file.column
    return Overview(
        evaluation=evaluation,
        interval=resampling.score_interval(evaluation.scores[0], documents=of_file),
        notes=(*_on_documents(dependence), *notes_on_intervals(of_file, evaluation.scores[:1])),
        line_scores=scores,
        bins=tuple(score_bins(scores[np.isfinite(scores)])),
        by_expected=_by_expected(score, items),
        by_column=_by_columns(evaluation, items),
        features=tuple(_features(evaluation, items, scores, of_file)),
        examples=tuple(_examples(evaluation, items, scores)),
        comparison=compare([evaluation, *others], documents=by, progress=progress) if others else None,
    )


def _on_documents(dependence: Dependence | None) -> Iterator[str]:
    if dependence is not None:
        yield from dependence.notes(f"intervals are by document, {dependence.wider}")


def score_bins(scores: Array) -> list[ScoreBin]:
    """Count finite scores in at most 21 bins of equal, round width; empty bins are left out.

    >>> [(one.low, one.high, one.lines) for one in score_bins(np.array([0.0, 0.0, 0.5, 1.0]))]
    [(0.0, 0.05, 2), (0.5, 0.55, 1), (0.95, 1.0, 1)]
    """
    if not len(scores):
        return []
    low, high = float(scores.min()), float(scores.max())
    range_of_bin = high / MOST_BINS - low / MOST_BINS  # the difference of two numbers of 1e308 is infinite
    least = max(range_of_bin, max(abs(low), abs(high)) * 1e-12)  # else rounding makes bins of no width
    width = next((step for step in _STEPS if step >= least), least)
    first = math.floor(low / width)
    last = max(first, math.ceil(high / width) - 1)
    places = np.clip(np.floor(scores / width + 1e-9).astype(np.int64), first, last) - first
    return [
        ScoreBin(low=round((first + place) * width, 12), high=round((first + place + 1) * width, 12), lines=lines)
        for place, lines in enumerate(np.bincount(places).tolist())
        if lines
    ]


def _by_expected(score: MetricScore, items: ItemColumns) -> ScoredParts | None:
    """Divide the lines by their answers; if these have several columns, by the first."""
    grouping = losses.grouping_of(EXPECTED, [expected.partition("\t")[0] for expected in items.expected])
    return None if grouping is None else _scored(score, grouping)


def _by_columns(evaluation: ScoredOutput, items: ItemColumns) -> tuple[ScoredParts, ...]:
    groupings = (losses.grouping_of(name, texts) for name, texts in input_columns(evaluation, items))
    found = [grouping for grouping in groupings if grouping is not None][:MOST_COLUMNS]
    return tuple(_scored(evaluation.scores[0], grouping) for grouping in found)


def _scored(score: MetricScore, grouping: losses.Grouping) -> ScoredParts:
    places = ((label, np.flatnonzero(grouping.codes == code)) for code, label in enumerate(grouping.labels))
    parts = tuple(_part(score, label, lines.tolist()) for label, lines in places if len(lines))
    return ScoredParts(column=grouping.column, kind=grouping.kind, parts=parts)


def _part(score: MetricScore, label: str, places: list[int]) -> ScoredPart:
    statistics = score.statistics.only(places)
    value = score.metric.value(statistics)
    span = None if len(places) < 2 else resampling.interval(score.metric, statistics, samples=SAMPLES)
    return ScoredPart(label=label, lines=len(places), score=value, interval=span)


def _features(
    evaluation: ScoredOutput, items: ItemColumns, scores: Array, of_file: Documents | None
) -> list[BadFeature]:
    """Return at most ten features, words and their shapes, that together explain the bad lines, the best first."""
    if not np.isfinite(scores).any():
        return []
    found = worst_features.few_distinct(
        items,
        scores,
        worst_is_greatest=evaluation.scores[0].greatest_first(worst=True),
        header=evaluation.split.in_header,
        documents=of_file and of_file.of_score(evaluation.scores[0]),
    )
    figures = (column.tolist() for column in (found.counts, found.means, found.q_values, found.more["explained"]))
    rows = zip(found.names, *figures, strict=True)
    return [
        BadFeature(feature=name, lines=lines, mean=mean, q=q, explained=explained)
        for name, lines, mean, q, explained in rows
    ]


def _examples(evaluation: ScoredOutput, items: ItemColumns, scores: Array) -> list[TextExample]:
    """Return the 300 worst lines and the 100 best, the worst first; lines without a score are left out."""
    known = np.flatnonzero(~np.isnan(scores))
    sign = -1.0 if evaluation.scores[0].greatest_first(worst=True) else 1.0
    chosen = losses.both_ends(known[np.argsort(sign * scores[known], kind="stable")])
    numbers = _numbers_of(evaluation)
    return [
        TextExample(number=numbers[place], score=float(scores[place]), **items[place]._asdict())
        for place in chosen.tolist()
    ]
