"""The contents of a report: what is computed of an evaluation, when it is first asked for."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, islice, repeat

import numpy as np

from geval_py.explaining import derived, losses
from geval_py.explaining.calibration import (
    Calibration,
    calibration_of,
    calibration_schemes,
    schemes_of,
)
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.documents import (
    Documents,
    DocumentsBy,
    choose_documents,
    notes_on_columns,
    notes_on_documents,
    notes_on_intervals,
    score_interval,
)
from geval_py.explaining.features import MAX_LINES, Occurrences
from geval_py.explaining.guesses import bucket_shares, hashed_bits
from geval_py.explaining.significance import LEVEL, MIN_LINES, MIN_TESTED_LINES, Interval
from geval_py.explaining.statistics import intervals, sample_of
from geval_py.explaining.worst_features import WorstFeatures, ranked_features
from geval_py.reading import config, splits
from geval_py.reading.features import FeatureKinds, Fields
from geval_py.reading.items import ScoredItem, column_names, lines_of
from geval_py.reading.lines import read_lines
from geval_py.reading.preparation import preparation_of
from geval_py.reports.charts import ACCENT, ChartRow
from geval_py.scoring.blocks import Progress
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Array, Integers, LineStatistics, exp, extended
from geval_py.scoring.scores import Evaluation, Score, checked_evaluation
from geval_py.tables.escapes import short

MAX_COLUMNS = 8
MAX_FEATURES = 10
SAMPLED_LINES = 50_000
MIN_DOCUMENTS = 30  # of a sample
LINES_AT_ONCE = 1024
SAMPLES = 300  # of the lines of a group, for its interval
SHUFFLES = 20  # times that lines are dealt out to documents at random


class Report:
    """An evaluation by its first metric, compared with other outputs of the same lines.

    ``documents`` is as in :func:`geval_py.compare`, for all intervals, tests and folds; ``baselines`` are the scores
    of simple outputs by their names; ``progress`` is called while outputs are compared. ``of_losses`` is whether the
    metric is made from log losses of words. Then the figures of lines are losses in nats, and those of groups of
    lines perplexities; else both are scores.

    ``values`` are the losses in nats, or the scores, of all lines, NaN for a line without one; ``finite`` are the
    finite ones, ``mean`` is their mean (NaN without any), and ``infinite`` the number of infinite losses.
    ``documents`` are those of the scored lines, None if lines are taken one by one, and ``column`` the column that
    names them, or False. ``notes`` say by which other columns lines may depend on each other, and where intervals
    are not to be trusted. ``can_be_tuned`` is whether the metric is hashed and has no flags that choose or change
    lines, and has scored enough lines.

    This and the attributes raise UsageError if the texts were not kept, and the errors of :func:`geval_py.compare`
    and of :meth:`Evaluation.read_items`.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        others: Sequence[Evaluation] = (),
        *,
        documents: DocumentsBy = None,
        baselines: Mapping[str, float] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.evaluation, self.baselines = checked_evaluation(evaluation), baselines or {}
        self.outputs = [evaluation, *others]
        self._progress = progress
        self.score = evaluation.scores[0]
        metric, scheme = self.score.metric, self.score.scheme
        self.of_losses = metric.is_of_words and not self.score.statistics.classes
        self.worst_is_greatest = self.of_losses or self.score.greatest_first(worst=True)
        self.is_hashed = self.of_losses and metric.bits is not None
        is_plain = self.is_hashed and not scheme.text_flags and not scheme.selecting_flags
        self.can_be_tuned = is_plain and evaluation.line_count >= FEW_LINES
        self.unit = self.score.unit if self.of_losses else "words"  # from which figures are made
        self.value_name = "perplexity" if self.of_losses else short(self.score.name)

        self.values = np.array(evaluation.line_losses if self.of_losses else evaluation.line_scores(), np.float64)
        self.finite = self.values[np.isfinite(self.values)]
        self.mean = float(self.finite.mean()) if len(self.finite) else math.nan
        self.infinite = int(np.isinf(self.values).sum()) if self.of_losses else 0

        self._of_file = choose_documents(evaluation, documents)
        self.documents = self._of_file and self._of_file.of_score(self.score)
        self.column = False if self._of_file is None else self._of_file.column
        self.notes = (
            *notes_on_documents(self.documents),
            *notes_on_columns(evaluation, self._of_file, documents),
            *notes_on_intervals(self._of_file, [self.score]),
        )

    @cached_property
    def _prepare(self) -> Callable[[str], str]:
        """What the flags of a metric of distributions over words make of a line."""
        return (preparation_of(self.score.scheme) if self.of_losses else None) or str

    def read_items(self, places: Integers) -> Iterator[ScoredItem]:
        """Yield the texts of some scored lines, in their order.

        Those of distributions over words are as the metric's flags leave them.
        """
        inputs, expected, outputs = self.evaluation.sides(places.tolist())
        return map(ScoredItem, inputs, map(self._prepare, expected), map(self._prepare, outputs))

    @cached_property
    def expected(self) -> list[str]:
        """The answers of the scored lines, as in :meth:`read_items`."""
        return list(map(self._prepare, self.evaluation.texts("expected")))

    @property
    def is_sampled(self) -> bool:
        """Whether features, outcomes, columns and calibration are those of a sample."""
        return len(self.sample) < len(self.values)

    @cached_property
    def sample(self) -> Integers:
        """The places of the lines in the sample: all or, of more than MAX_LINES, some whole documents."""
        lines = len(self.values)
        if lines <= MAX_LINES:
            return np.arange(lines)
        of_line = np.arange(lines) if self.documents is None else self.documents.of_line
        sizes = np.bincount(of_line)
        order = np.random.default_rng(config.DEFAULT_SEED).permutation(len(sizes))
        before = np.cumsum(sizes[order]) - sizes[order]
        return np.flatnonzero(
            np.isin(of_line, order[(before < SAMPLED_LINES) | (np.arange(len(order)) < MIN_DOCUMENTS)])
        )

    @cached_property
    def interval(self) -> Interval:
        """The 95 % interval of the score."""
        return score_interval(self.score, documents=self._of_file)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison with other outputs; None without others."""
        if len(self.outputs) == 1:
            return None
        return compare(self.outputs, baseline=0, documents=self.column, progress=self._progress)

    @cached_property
    def outcomes(self) -> losses.Outcomes:
        """What became of each line of the sample, for a metric with losses."""
        if self.is_hashed:
            return losses.classify(self._read_sample[0].scores[0].statistics)
        return losses.outcomes_of(self.read_items(self.sample))

    def rows(self, grouping: losses.Grouping) -> list[ChartRow]:
        """Return the figures of groups of lines with their 95 % intervals, by documents if a group has several.

        Lines with an infinite loss are counted, but left out of a perplexity. Figures are NaN where they are not
        defined, and a single line has no interval.
        """
        rows = []
        for code, label in enumerate(grouping.labels):
            here = grouping.codes == code
            if not here.any():
                continue
            places = np.flatnonzero(here & np.isfinite(self.values) if self.of_losses else here)
            documents = self.documents and self.documents.only(places)
            of_line = documents.of_line if documents and 1 < documents.count < len(places) else None
            metric, statistics = self.score.metric, self.score.statistics.only(places.tolist())
            value, span = metric.value(statistics) if len(places) else math.nan, None
            if len(places) > 1:
                (span,) = intervals(sample_of(metric, [statistics], of_line), samples=SAMPLES)
            rows.append(score_row(label, value, self.unit, span, lines=int(here.sum())))
        return rows

    @cached_property
    def words_of_train(self) -> Counter[str]:
        """The counts of the words of the train/expected.tsv beside the test set; none without one."""
        path = splits.training_answers(self.evaluation.split.expected)
        return Counter(() if path is None else read_lines(path, header=self.evaluation.split.output_header))

    def columns(self) -> list[tuple[str, losses.Grouping]]:
        """Return the columns of the input that divide the lines of the sample, with their names; at most eight.

        The name of a column without a header is "column 2".
        """
        if self.evaluation.split.input is None:
            return []
        inputs = list(self.evaluation.texts("input", self.sample.tolist()))
        width = 1 + max(map(str.count, inputs, repeat("\t")), default=0)
        text = lines_of(inputs)
        del inputs
        columns: list[tuple[str, losses.Grouping]] = []
        for column, name in enumerate(column_names(width, self.evaluation.split.in_header, set())):
            grouping = losses.group_by_text(backends.take_column(text, column).decode().split("\n")[:-1])
            if grouping is not None and len(columns) < MAX_COLUMNS:
                codes = np.full(len(self.values), -1)
                codes[self.sample] = grouping.codes
                title = f"column {name}" if name == str(column + 1) else name
                columns.append((title, grouping._replace(codes=codes)))
        return columns

    @property
    def features(self) -> WorstFeatures:
        """At most ten words and shapes of words with a q below 0.05 in bad lines of the sample, the surest first."""
        return self._read_sample[1]

    def examples(self) -> Iterator[tuple[int, float, losses.Example | ScoredItem, losses.Outcome | None]]:
        """Yield the 300 worst lines and the 100 best, the worst first: number, figure, texts and outcome.

        Lines without a score are left out, and only distributions over words have an outcome.
        """
        numbers = self.evaluation.line_numbers or range(1, self.evaluation.line_count + 1)
        badness, of_ties = self.values if self.worst_is_greatest else -self.values, None
        if self.of_losses:  # of equally bad lines, those of the sample come first
            of_ties = losses.Outcomes(*(np.full(len(badness), value) for value in (-1, -1.0, np.inf)))
            for of_all, of_sample in zip(of_ties, self.outcomes, strict=True):
                of_all[self.sample] = of_sample
        places = losses.worst_and_best(badness, of_ties)
        items = dict(zip(places.tolist(), self.read_items(places), strict=True))
        for place in places.tolist():
            value, item = float(self.values[place]), items[place]
            if self.of_losses:
                outcome = losses.Outcome(losses.outcomes_of([item]).codes[0])
                yield numbers[place], exp(value), losses.example_of(item), outcome
            else:
                yield numbers[place], value, item, None

    @cached_property
    def calibration(self) -> Calibration | None:
        """Whether probabilities are calibrated; None for a metric that is not hashed."""
        return calibration_of(self._read_sample[0], documents=self.column) if self.is_hashed else None

    @cached_property
    def _read_sample(self) -> tuple[Evaluation, WorstFeatures]:
        """The scores of the sample that calibration needs, and the features of its lines.

        Each line keeps its number, the seed of the hash.
        """
        own, tables = self.evaluation, list[LineStatistics]()
        schemes = calibration_schemes(schemes_of(own)) if self.is_hashed else []
        occurrences = Occurrences(FeatureKinds(word_shapes=True), Fields(own.split.in_header))
        items, starts = self.read_items(self.sample), range(0, len(self.values), LINES_AT_ONCE)
        parts = np.split(self.sample, np.searchsorted(self.sample, starts[1:]))
        for start, places in zip(starts, parts, strict=True):
            within, texts = (places - start).tolist(), list(islice(items, len(places)))
            if not texts:
                continue
            expected, outputs = ([":1"] * (within[-1] + 1) for _ in range(2))
            for place, item in zip(within, texts, strict=True):
                expected[place], outputs[place] = item.expected, item.output
            scored = [
                metric.column.statistics(lines_of(outputs), lines_of(expected), start + 1).only(within)
                for _, metric in schemes
            ]
            tables = extended(tables, scored)
            if finite := list(compress(texts, np.isfinite(self.values[places]).tolist())):
                occurrences.add(finite)
        numbers = np.array(own.line_numbers or range(1, len(self.values) + 1))[self.sample]
        scores = tuple(
            Score(self.score.name, self.score.value, metric, self.score.scheme, table, array("q", numbers))
            for (_, metric), table in zip(schemes, tables, strict=True)
        )
        read = Evaluation(own.split, own.output, scores, own.file_lines)
        known = np.flatnonzero(np.isfinite(self.values[self.sample]))
        values = self.values[self.sample][known]
        features = ranked_features(
            occurrences,
            values,
            worst_is_greatest=self.worst_is_greatest,
            least=MIN_LINES,
            losses=values if self.of_losses else None,
            documents=self.documents and self.documents.only(self.sample[known]),
        )
        significant = features.at(np.flatnonzero(features.columns["q"] < LEVEL).tolist()).readable()
        _, first_places = np.unique(significant.columns["p"], return_index=True)  # of the same lines, it is one
        return read, significant.at(first_places[:MAX_FEATURES].tolist())

    @cached_property
    def unigram(self) -> float | None:
        """The perplexity of an output that has the 10,000 commonest words of train on each line, by their shares.

        The rest is the share of the others and, as Good and Turing estimate it, of unseen words: that of the words
        that occur once, by which all shares are discounted. None without a train, and for what cannot be tuned.
        """
        counts = self.words_of_train
        if not counts or not self.can_be_tuned:
            return None
        seen = 1.0 - max(1, list(counts.values()).count(1)) / counts.total()
        frequent = derived.frequent_words(counts, derived.ALL_WORDS)
        bits = hashed_bits(self.evaluation)
        shares = bucket_shares(self.evaluation.split, frequent, bits)
        masses = seen * shares + (1.0 - seen * sum(frequent.values())) / (1 << bits)
        return float(np.exp(-np.log(masses).mean()))


def as_perplexity(value: float, unit: str) -> float:
    """Convert a score to a perplexity, by its unit: nats, bits, probability, or words (as it is).

    >>> as_perplexity(0.5, "probability"), round(as_perplexity(3.0, "bits"), 9)
    (2.0, 8.0)
    """
    if unit == "probability":
        return 1 / value if value else math.inf
    return value if unit == "words" else exp(value if unit == "nats" else value * math.log(2))


def score_row(
    label: str, value: float, unit: str = "words", interval: Interval | None = None, colour: str = ACCENT,
    lines: int | None = None,
) -> ChartRow:  # fmt: skip
    """Return the row of a score, with its interval, as perplexities."""
    ends = () if interval is None else interval.ends
    low, high = sorted(as_perplexity(end, unit) for end in ends if end is not None) or (None, None)
    return ChartRow(label, as_perplexity(value, unit), low, high, lines=lines, colour=colour)


def means_of_documents(documents: Documents | None, line_losses: Array) -> tuple[Array, Array] | None:
    """Return the mean finite loss of each document, and those of documents to which lines are dealt out at random.

    None without documents, or with few.
    """
    if documents is None or documents.are_lines:
        return None
    finite = np.flatnonzero(np.isfinite(line_losses))
    kept, values = documents.only(finite), line_losses[finite]
    if kept.count < MIN_TESTED_LINES:
        return None
    sizes, rng = np.bincount(kept.of_line), np.random.default_rng(config.DEFAULT_SEED)
    dealt = [np.bincount(kept.of_line, rng.permutation(values)) / sizes for _ in range(SHUFFLES)]
    return np.bincount(kept.of_line, values) / sizes, np.concatenate(dealt)
