"""The contents of a report: what is computed of an evaluation, when it is first asked for."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

import numpy as np

from geval_py.explaining import losses
from geval_py.explaining.calibration import Calibration, calibration
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.documents import (
    DocumentsBy,
    choose_documents,
    notes_on_columns,
    notes_on_documents,
    notes_on_intervals,
    score_interval,
)
from geval_py.explaining.mixing import FEW_LINES, bucket_shares, frequent_words, hashed_bits
from geval_py.explaining.significance import LEVEL, MIN_LINES, Interval
from geval_py.explaining.statistics import intervals, sample_of
from geval_py.explaining.worst_features import WorstFeatures, rank_features
from geval_py.reading import config, splits
from geval_py.reading.features import FeatureKinds
from geval_py.reading.items import ScoredItem, column_names
from geval_py.reading.lines import read_lines
from geval_py.reading.preparation import preparation_of
from geval_py.reports.charts import ACCENT, ChartRow
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import Integers, exp
from geval_py.scoring.scores import Evaluation, Score, checked_evaluation
from geval_py.tables.escapes import short
from geval_py.tables.numbers import p_value

MAX_LINES = 100_000  # that are read again, of a file with more a sample
MAX_COLUMNS = 8
MAX_FEATURES = 10
MAX_UNIGRAMS = 10_000
SAMPLES = 300  # of the lines of a group, for its interval


class Report:
    """An evaluation by its first metric, compared with other outputs of the same lines.

    ``documents`` is as in :func:`geval_py.compare`, for all intervals, tests and folds; ``baselines`` are the scores
    of simple outputs by their names; ``options`` are those that a command on the same test set needs; ``progress`` is
    called while outputs are compared. ``of_losses`` is whether the metric is made from log losses of words. Then the
    figures of lines are losses in nats, and those of groups of lines perplexities; else both are scores.

    Score, interval, comparison, calibration and tuning are of all lines; ``sample`` has the lines that are read
    again, all or MAX_LINES drawn at random. ``values`` are their losses in nats, or their scores, NaN for a line
    without one; ``finite`` are the finite ones, ``mean`` is their mean (NaN without any), and ``infinite`` the number
    of infinite losses. ``documents`` are those of the sample's lines, None if lines are taken alone, and ``column``
    the column that names them, or False. ``notes`` say by which other columns lines may depend on each other, and
    where intervals are not to be trusted. ``can_be_tuned`` is whether the metric is hashed and has no flags that
    choose or change lines, and has scored enough lines.

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
        options: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> None:
        self.evaluation, self.baselines = checked_evaluation(evaluation), baselines or {}
        self.outputs, self.options = [evaluation, *others], options
        self._progress = progress
        self.score = evaluation.scores[0]
        metric, scheme = self.score.metric, self.score.scheme
        self.of_losses = metric.is_of_words
        self.worst_is_greatest = self.of_losses or self.score.greatest_first(worst=True)
        self.is_hashed = self.of_losses and metric.bits is not None
        is_plain = self.is_hashed and not scheme.text_flags and not scheme.selecting_flags
        self.can_be_tuned = is_plain and evaluation.line_count >= FEW_LINES
        self.unit = self.score.unit if self.of_losses else "words"  # from which figures are made
        self.value_name = "perplexity" if self.of_losses else short(self.score.name)

        self.sample = evaluation
        if evaluation.line_count > MAX_LINES:
            rng = np.random.default_rng(config.DEFAULT_SEED)
            self.sample = lines_at(evaluation, np.sort(rng.choice(evaluation.line_count, MAX_LINES, replace=False)))
        first = self.sample.scores[0]
        self.values = np.array(self.sample.line_losses if self.of_losses else self.sample.line_scores(), np.float64)
        self.finite = self.values[np.isfinite(self.values)]
        self.mean = float(self.finite.mean()) if len(self.finite) else math.nan
        self.infinite = int(np.isinf(self.values).sum()) if self.of_losses else 0

        self._of_file = choose_documents(evaluation, documents)
        self.documents = self._of_file and self._of_file.of_score(first)
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

    def read_items(self, places: Integers | None = None) -> Iterator[ScoredItem]:
        """Yield the texts of the sample's lines, or of some of them, in their order.

        Those of distributions over words are as the metric's flags leave them.
        """
        inputs, expected, outputs = self.sample.sides(places)
        return map(ScoredItem, inputs, map(self._prepare, expected), map(self._prepare, outputs))

    @cached_property
    def expected(self) -> list[str]:
        """The answers of the sample's lines, as in :meth:`read_items`."""
        return list(map(self._prepare, self.sample.texts("expected")))

    @property
    def of_sample(self) -> str:
        """What headings say of a sample; "" if all lines are read again."""
        lines = self.sample.line_count
        return "" if lines == self.evaluation.line_count else f", in a random sample of {lines:,} lines"

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
        return losses.outcomes_of(self.read_items())

    def rows(self, grouping: losses.Grouping) -> list[ChartRow]:
        """Return the figures of groups of lines with their 95 % intervals, by documents if a group has several.

        Lines with an infinite loss are counted, but left out of a perplexity. Figures are NaN where they are not
        defined, and a single line has no interval. Notes have q, where a group differs from the other lines or not.
        """
        rows = []
        q_values = losses.group_q_values(self.values, grouping, self.documents and self.documents.of_line)
        for (code, label), q in zip(enumerate(grouping.labels), q_values.tolist(), strict=True):
            here = grouping.codes == code
            if not here.any():
                continue
            places = np.flatnonzero(here & np.isfinite(self.values) if self.of_losses else here)
            documents = self.documents and self.documents.only(places)
            of_line = documents.of_line if documents and 1 < documents.count < len(places) else None
            metric, statistics = self.score.metric, self.sample.scores[0].statistics.only(places.tolist())
            value, span = metric.value(statistics) if len(places) else math.nan, None
            if len(places) > 1:
                (span,) = intervals(sample_of(metric, [statistics], of_line), samples=SAMPLES)
            row = score_row(label, value, self.unit, span, lines=int(here.sum()))
            note = f"q {p_value(q)}{'' if q < LEVEL else ', may be chance'}"
            rows.append(row if math.isnan(q) else row._replace(note=note))
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
        split = self.evaluation.split
        if split.input is None:
            return []
        columns = list(zip_longest(*(text.split("\t") for text in self.sample.texts("input")), fillvalue=""))
        groupings: list[tuple[str, losses.Grouping]] = []
        for number, name in enumerate(column_names(len(columns), split.in_header, set())):
            grouping = losses.group_by_text(columns[number])
            if grouping is not None and len(groupings) < MAX_COLUMNS:
                groupings.append((f"column {name}" if name == str(number + 1) else name, grouping))
        return groupings

    @cached_property
    def features(self) -> WorstFeatures:
        """At most ten words and shapes of words that are significantly more common in bad lines, the costliest first.

        Of those on the same lines, the first is shown; the first are the surest ones if costs are unknown.
        """
        ranked = rank_features(
            lines_at(self.sample, np.flatnonzero(np.isfinite(self.values))),
            FeatureKinds(word_shapes=True),
            least=MIN_LINES,
            costs=True,
            documents=self.column,
        )
        columns = ranked.columns
        places = np.flatnonzero(columns["q"] < LEVEL)
        if "gain" in columns:
            places = places[np.argsort(-columns["gain"][places], kind="stable")]
        figures = np.column_stack([columns["count"], columns["score"]])[places]
        _, firsts = np.unique(figures, axis=0, return_index=True)
        return ranked.at(places[np.sort(firsts)].tolist()).readable(MAX_FEATURES)

    def examples(self) -> Iterator[tuple[int, float, losses.Example | ScoredItem, losses.Outcome | None]]:
        """Yield the 300 worst lines and the 100 best, the worst first: number, figure, texts and outcome.

        Lines without a score are left out, and only distributions over words have an outcome.
        """
        numbers = self.sample.line_numbers or range(1, self.sample.line_count + 1)
        badness = self.values if self.worst_is_greatest else -self.values
        places = losses.worst_and_best(badness, self.outcomes if self.of_losses else None)
        for place, item in zip(places.tolist(), self.read_items(places), strict=True):
            value = float(self.values[place])
            if self.of_losses:
                outcome = losses.Outcome(self.outcomes.codes[place])
                yield numbers[place], exp(value), losses.example_of(item), outcome
            else:
                yield numbers[place], value, item, None

    @cached_property
    def calibration(self) -> Calibration | None:
        """Whether probabilities are calibrated; None for a metric that is not hashed."""
        return calibration(self.evaluation, documents=self.column) if self.is_hashed else None

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
        frequent = frequent_words(counts, MAX_UNIGRAMS)
        bits = hashed_bits(self.evaluation)
        shares = bucket_shares(self.evaluation.split, frequent, bits)
        masses = seen * shares + (1.0 - seen * math.fsum(frequent.values())) / (1 << bits)
        return float(np.exp(-np.log(masses).mean()))


def lines_at(evaluation: Evaluation, places: Integers) -> Evaluation:
    """Return the evaluation of the lines at some places among the scored ones, by its first metric."""
    first, chosen = evaluation.scores[0], places.tolist()
    numbers = evaluation.line_numbers or range(1, evaluation.line_count + 1)
    score = Score(
        first.name,
        first.value,
        first.metric,
        first.scheme,
        first.statistics.only(chosen),
        array("q", map(numbers.__getitem__, chosen)),
    )
    return Evaluation(evaluation.split, evaluation.output, [score], evaluation.file_lines)


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
