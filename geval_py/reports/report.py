"""The contents of a report: what is computed of an evaluation, when it is first asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining import derived, losses
from geval_py.explaining.calibration import (
    Calibration,
    calibration_of,
    calibration_schemes,
    hashed_scheme,
    reread,
    schemes_of,
)
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.documents import Documents, DocumentsBy, choose_documents, notes_on_intervals, score_interval
from geval_py.explaining.guesses import bucket_shares, hashed_bits
from geval_py.explaining.luck import DEFAULT_SEEDS, Luck, luck_of, luck_schemes
from geval_py.explaining.mixing import Mixture, mix
from geval_py.explaining.significance import MIN_LINES, MIN_TESTED_LINES, Interval
from geval_py.explaining.statistics import interval, interval_of_mean
from geval_py.explaining.tuning import Tuning, tune
from geval_py.explaining.worst_features import WorstFeatures, worst_features
from geval_py.reading import config, splits
from geval_py.reading.features import FeatureKinds
from geval_py.reading.items import ItemColumns, ScoredItem, column_names, lines_of
from geval_py.reading.lines import read_lines
from geval_py.reports.charts import ChartRow
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import exp
from geval_py.scoring.scores import ScoredOutput, checked_evaluation
from geval_py.tables.escapes import short

if TYPE_CHECKING:
    from geval_py.explaining.significance import Array
    from geval_py.scoring.blocks import Progress


MAX_COLUMNS = 8
MAX_FEATURES = 10
SAMPLES = 300  # of the lines of a group, for its interval
SHUFFLES = 20  # times that lines are dealt out to documents at random


class Report:
    """An evaluation by its first metric, compared with other outputs of the same lines.

    ``documents`` is as in :func:`geval_py.compare`, for all intervals, tests and folds; ``progress`` is called while
    outputs are compared. ``of_losses`` is whether the metric is made from log losses of words. Then the figures of
    lines are losses in nats, and those of groups of lines perplexities; else both are scores.

    Attributes raise UsageError if the texts were not kept, and the errors of :func:`geval_py.compare` and of
    :meth:`ScoredOutput.read_items`.
    """

    def __init__(
        self,
        evaluation: ScoredOutput,
        others: Sequence[ScoredOutput] = (),
        *,
        documents: DocumentsBy = None,
        progress: Progress | None = None,
    ) -> None:
        self.evaluation = checked_evaluation(evaluation)
        self.others = others
        self.score = evaluation.scores[0]
        self.of_losses = self.score.metric.is_of_words and not self.score.statistics.classes
        self.is_hashed = self.of_losses and self.score.metric.bits is not None
        self.value_name = "perplexity" if self.of_losses else short(self.score.name)
        self._by, self._progress = documents, progress

    @cached_property
    def values(self) -> Array:
        """The loss of each line, in nats, or its score; NaN without a score of its own."""
        evaluation = self.evaluation
        return np.array(evaluation.line_losses if self.of_losses else evaluation.line_scores(), np.float64)

    @property
    def finite(self) -> Array:
        """The finite losses or scores."""
        return self.values[np.isfinite(self.values)]

    @property
    def infinite(self) -> int:
        """The number of lines with an infinite loss."""
        return int(np.isinf(self.values).sum()) if self.of_losses else 0

    @cached_property
    def mean(self) -> float:
        """The mean of the finite losses or scores; NaN without any."""
        return float(self.finite.mean()) if len(self.finite) else math.nan

    @cached_property
    def items(self) -> ItemColumns:
        """The texts of the scored lines; those of distributions over words as the metric's flags leave them."""
        return losses.prepared_items(self.evaluation) if self.of_losses else self.evaluation.read_columns()

    # How sure it is

    @cached_property
    def _documents(self) -> tuple[Documents | None, tuple[str, ...]]:
        """The documents of all lines of the file, None if lines are taken one by one, and notes on intervals."""
        documents, dependence = choose_documents([self.evaluation, *self.others], self._by)
        widened = dependence and dependence.notes("intervals are by document, {}")
        return documents, (*(widened or ()), *notes_on_intervals(documents, [self.score]))

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the intervals and the comparison are by documents, and where they are not to be trusted."""
        return self._documents[1]

    @property
    def _column(self) -> str | bool:
        return False if self._documents[0] is None else self._documents[0].column

    @property
    def documents(self) -> Documents | None:
        """The documents of the scored lines; None if lines are taken one by one."""
        return self._documents[0] and self._documents[0].of_score(self.score)

    @cached_property
    def interval(self) -> Interval:
        """The 95 % interval of the score."""
        return score_interval(self.score, documents=self._documents[0])

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison with other outputs; None without others."""
        outputs = [self.evaluation, *self.others]
        return compare(outputs, documents=self._column, progress=self._progress) if self.others else None

    # Where the loss comes from, and which lines are hard

    @cached_property
    def outcomes(self) -> losses.Outcomes:
        """What became of each line of a metric with losses."""
        return losses.outcomes_of(self.items)

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
            grouped = documents is not None and 1 < documents.count < len(places)
            of_line = documents.of_line if documents is not None and grouped else None
            low = high = None
            if self.of_losses:
                own = self.values[places]
                value = exp(float(own.mean())) if len(own) else math.nan
                if len(own) > 1 and own.min() < own.max():
                    ends = interval_of_mean(own, of_line)
                    low, high = (exp(max(0.0, end)) for end in ends)
            else:
                statistics = self.score.statistics.only(places.tolist())
                value = self.score.metric.value(statistics)
                if len(places) > 1:
                    metric = self.score.metric
                    span = interval(metric, statistics, samples=SAMPLES, documents=of_line)
                    low, high = span.ends
            rows.append(ChartRow(label, value, low, high, lines=int(here.sum())))
        return rows

    @cached_property
    def words_of_train(self) -> Counter[str]:
        """The counts of the words of the train/expected.tsv beside the test set; none without one."""
        path = splits.training_answers(self.evaluation.split)
        return Counter(() if path is None else read_lines(path, header=self.evaluation.split.output_header))

    def columns(self) -> list[tuple[str, losses.Grouping]]:
        """Return the columns of the input that divide the lines, with their names; at most eight.

        The name of a column without a header is "column 2".
        """
        if self.evaluation.split.input is None:
            return []
        text = lines_of(self.items.inputs)
        columns: list[tuple[str, losses.Grouping]] = []
        for column, name in enumerate(column_names(self.items.width, self.evaluation.split.in_header, set())):
            grouping = losses.group_by_text(backends.take_column(text, column).decode().split("\n")[:-1])
            if grouping is not None and len(columns) < MAX_COLUMNS:
                columns.append((f"column {name}" if name == str(column + 1) else name, grouping))
        return columns

    @cached_property
    def features(self) -> WorstFeatures:
        """At most ten words and shapes of words that together explain the bad lines, the best first."""
        return worst_features(
            self.items,
            np.where(np.isfinite(self.values), self.values, np.nan),
            worst_is_greatest=self.of_losses or self.score.greatest_first(worst=True),
            header=self.evaluation.split.in_header,
            kinds=FeatureKinds(word_shapes=True),
            least=MIN_LINES,
            losses=self.values if self.of_losses else None,
            documents=self.documents,
            distinct=True,
            most=MAX_FEATURES,
        )

    def examples(self) -> Iterator[tuple[int, float, losses.Example | ScoredItem, losses.Outcome | None]]:
        """Yield the 300 worst lines and the 100 best, the worst first: number, figure, texts and outcome.

        Lines without a score are left out, and only distributions over words have an outcome.
        """
        numbers = self.evaluation.line_numbers or range(1, self.evaluation.line_count + 1)
        if self.of_losses:
            for place in losses.worst_and_best(self.values, self.outcomes).tolist():
                outcome = losses.Outcome(self.outcomes.codes[place])
                yield numbers[place], exp(self.values[place]), losses.example_of(self.items[place]), outcome
            return
        scored = np.flatnonzero(~np.isnan(self.values))
        sign = -1.0 if self.score.greatest_first(worst=True) else 1.0
        for place in losses.both_ends(scored[np.argsort(sign * self.values[scored], kind="stable")]).tolist():
            yield numbers[place], float(self.values[place]), self.items[place], None

    # Honest probabilities, and what would help; of hashed metrics alone

    @cached_property
    def _profiled(self) -> ScoredOutput:
        """The output scored again, once for all that takes profiles of lines.

        Lines of buckets hold for one seed of the hash: no other is tried if there are any.
        """
        named = hashed_scheme(schemes_of(self.evaluation))
        has_buckets = not all(":" in output for output in self.items.outputs)
        of_luck = [] if has_buckets else luck_schemes(named, DEFAULT_SEEDS, exact=False)[1:]
        return reread(self.evaluation, [*calibration_schemes(named), *of_luck])

    @cached_property
    def calibration(self) -> Calibration | None:
        """Whether probabilities come true; None for a metric that is not hashed."""
        return calibration_of(self._profiled, documents=self._column) if self.is_hashed else None

    @cached_property
    def luck(self) -> Luck | None:
        """The luck of the hash; None also for lines of buckets, and without a finite line."""
        if self.calibration is None or self.calibration.vectors or not self.calibration.claim.lines:
            return None
        luck = luck_of(self._profiled, 0)
        return luck if luck.lines else None

    @property
    def can_be_tuned(self) -> bool:
        """Whether the metric is hashed and has no flags that choose or change lines, and has scored enough lines."""
        scheme = self.score.scheme
        is_plain = self.is_hashed and not scheme.text_flags and not scheme.selecting_flags
        return is_plain and self.evaluation.line_count >= FEW_LINES

    @cached_property
    def tuning(self) -> Tuning | None:
        """What tuning would bring; None for what cannot be tuned."""
        return tune(self.evaluation, documents=self._column) if self.can_be_tuned else None

    @cached_property
    def mixture(self) -> Mixture | None:
        """What mixing with the others would bring; None without others, and for what cannot be tuned."""
        outputs = [self.evaluation, *self.others]
        return mix(outputs, documents=self._column) if self.can_be_tuned and self.others else None

    @cached_property
    def unigram(self) -> float | None:
        """The perplexity of an output that has the 10,000 commonest words of train on each line, by their shares.

        The rest is the share of the others and, as Good and Turing estimate it, of unseen words: that of the words
        that occur once, by which all shares are discounted. None without a train, and for what cannot be tuned.
        """
        counts = self.words_of_train
        if not counts or not self.can_be_tuned:
            return None
        once = max(1, sum(1 for count in counts.values() if count == 1))
        total = counts.total()
        seen = 1.0 - once / total
        commonest = counts.most_common(derived.ALL_WORDS)
        shares = tuple(count / total * seen for _, count in commonest)
        frequent = derived.FrequentWords(words=tuple(word for word, _ in commonest), shares=shares)
        bits = hashed_bits(self.evaluation)
        masses = bucket_shares(self.evaluation.split, frequent, bits) + (1.0 - frequent.total) / (1 << bits)
        return float(np.exp(-np.log(masses).mean()))


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
