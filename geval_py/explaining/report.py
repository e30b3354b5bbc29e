"""All that a report tells of an output, computed once, from its texts and its column of line losses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.anatomy.culprits import Culprit, culprits_of
from geval_py.explaining.anatomy.examples import Example, examples_of
from geval_py.explaining.anatomy.outcomes import (
    Floats,
    Outcomes,
    OutcomeShare,
    outcome_shares,
    outcomes_of,
    prepared_items,
)
from geval_py.explaining.anatomy.parts import Part, Parts, by_column, by_frequency, by_length
from geval_py.explaining.anatomy.spread import Bin, loss_bins
from geval_py.explaining.calibration.calibration import Calibration, calibration
from geval_py.explaining.calibration.luck import Luck, luck
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.dependence import Dependence, find_dependence
from geval_py.explaining.tuning.inputs import FEW_LINES
from geval_py.explaining.tuning.mixing import Mixture, mix
from geval_py.explaining.tuning.tune import Tuning, tune
from geval_py.reading.inputs import column_names
from geval_py.reading.sampling import DEFAULT_SEED
from geval_py.reading.splits import training_words
from geval_py.scoring.evaluation import Evaluation, checked_evaluation
from geval_py.scoring.metrics.base import CROSS_ENTROPY, LIKELIHOOD, LOG_LOSS, PERPLEXITY
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.scoring.parallel import Progress
    from geval_py.scoring.score import Score

MOST_COLUMNS = 8
_OF_LOG_LOSSES = (LOG_LOSS, LIKELIHOOD, PERPLEXITY, CROSS_ENTROPY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is told of an output; its losses, in nats, are of the lines that the first metric scored, in order.

    ``comparison`` and ``mixture`` are with other outputs of the same lines; None where there are none.
    Where ``dependence`` says that the lines of some documents are alike, the ``interval`` and the comparison are by
    these. ``by_frequency`` is empty where there is no train/expected.tsv beside the test set. ``calibration`` and
    ``luck`` are None for a metric that is not on hashed words, and luck for lines of buckets, too; ``tuning`` and
    ``mixture`` also where flags choose or change lines, and where there are fewer than a hundred.
    """

    evaluation: Evaluation
    interval: Interval
    dependence: Dependence | None
    losses: Floats
    outcomes: Outcomes
    shares: tuple[OutcomeShare, ...]
    bins: tuple[Bin, ...]
    by_length: tuple[Part, ...]
    by_frequency: tuple[Part, ...]
    by_column: tuple[Parts, ...]
    culprits: tuple[Culprit, ...]
    examples: tuple[Example, ...]
    comparison: Comparison | None
    calibration: Calibration | None
    luck: Luck | None
    tuning: Tuning | None
    mixture: Mixture | None

    @property
    def mean_loss(self) -> float:
        """The mean of the finite losses, in nats; NaN where there is none."""
        return mean_of(self.losses)

    @property
    def infinite(self) -> int:
        """The number of lines with an infinite loss."""
        return int(np.isinf(self.losses).sum())


def report(
    evaluation: Evaluation,
    others: Sequence[Evaluation] = (),
    *,
    progress: Progress | None = None,
) -> Report:
    """Compute what a report tells; ``progress`` is called while outputs are compared.

    Raises UsageError for a metric that is not made from log losses of words, and where the texts were not kept; the
    errors of :func:`compare` and of :meth:`Evaluation.read_items`.
    """
    losses = log_losses(evaluation)
    items = list(prepared_items(evaluation))
    outcomes = outcomes_of(items)
    words = [item.expected for item in items]
    dependence = find_dependence([evaluation], seed=DEFAULT_SEED)
    documents = None if dependence is None else dependence.column
    together = False if documents is None else documents  # as it says, rather than as the others' losses would
    honesty = calibration(evaluation) if evaluation.scores[0].metric.bits is not None else None
    tunable = honesty is not None and can_be_tuned(evaluation)
    return Report(
        evaluation=evaluation,
        interval=evaluation.interval(documents=documents),
        dependence=dependence,
        losses=losses,
        outcomes=outcomes,
        shares=tuple(outcome_shares(losses, outcomes)),
        bins=tuple(loss_bins(losses, outcomes)),
        by_length=by_length(losses, words),
        by_frequency=frequencies_of(evaluation, losses, words),
        by_column=columns_of(evaluation, losses),
        culprits=tuple(culprits_of(items, losses, evaluation.split.in_header)),
        examples=tuple(examples_of(evaluation, losses, outcomes)),
        comparison=compare([evaluation, *others], documents=documents, progress=progress) if others else None,
        calibration=honesty,
        luck=_luck(evaluation, honesty),
        tuning=tune(evaluation, documents=together) if tunable else None,
        mixture=mix([evaluation, *others], documents=together) if tunable and others else None,
    )


def log_losses(evaluation: Evaluation) -> Floats:
    """Give the line losses, in nats; raises UsageError for a metric that is not made from log losses of words."""
    score = checked_evaluation(evaluation).scores[0]
    if not has_log_losses(score):
        message = f"this is told of log losses of words, and {visible(score.metric.name)} has none; take another"
        raise UsageError(message=message, arguments=("metrics",))
    return np.array(evaluation.line_losses, np.float64)


def has_log_losses(score: Score) -> bool:
    """Tell whether a score is made from log losses of words."""
    metric = score.metric
    return metric.is_of_words and metric.measure in _OF_LOG_LOSSES and not score.statistics.classes


def mean_of(losses: Floats) -> float:
    """Give the mean of the finite losses; NaN where there is none."""
    finite = losses[np.isfinite(losses)]
    return float(finite.mean()) if len(finite) else float("nan")


def _luck(evaluation: Evaluation, honesty: Calibration | None) -> Luck | None:
    """Tell what hashing gave; None for lines of buckets, which hold for one seed, and where no line is finite."""
    if honesty is None or honesty.vectors or not honesty.claim.lines:
        return None
    found = luck(evaluation)
    return found if found.lines else None


def can_be_tuned(evaluation: Evaluation) -> bool:
    """Tell whether an output scored by a hashed metric can be tuned: by a metric without flags, on lines enough."""
    scheme = evaluation.scores[0].scheme
    return not scheme.text_flags and not scheme.selecting_flags and evaluation.line_count >= FEW_LINES


def frequencies_of(evaluation: Evaluation, losses: Floats, words: Sequence[str]) -> tuple[Part, ...]:
    """Give the parts by how often the train/expected.tsv beside a test set has the words; none without one."""
    split = evaluation.split
    folder = os.path.join(os.path.dirname(split.expected), os.pardir)
    counts = Counter(training_words(folder, split.output_header))
    return by_frequency(losses, words, counts) if counts else ()


def columns_of(evaluation: Evaluation, losses: Floats) -> tuple[Parts, ...]:
    """Give the parts by each column of the input that parts the lines, at most eight; none without an input."""
    found = (by_column(losses, name, texts) for name, texts in input_columns(evaluation))
    return tuple(parts for parts in found if parts is not None)[:MOST_COLUMNS]


def input_columns(evaluation: Evaluation) -> Iterator[tuple[str, list[str]]]:
    """Give the name and the texts of each column of the input, a text each scored line; none without an input.

    A column that no header names is "column 2".
    """
    if evaluation.split.input is None:
        return
    rows = [item.input.split("\t") for item in evaluation.read_items()]
    width = max(map(len, rows), default=0)
    for column, name in enumerate(column_names(width, evaluation.split.in_header, set())):
        shown = f"column {name}" if name == str(column + 1) else name
        yield shown, [row[column] if column < len(row) else "" for row in rows]
