"""Statistics of losses, a metric on resamples of the lines, and the features of items."""

from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from geval_py.explaining.comparison import compare_systems
from geval_py.explaining.statistics import Estimator, bootstrap_weights, intervals, pair_tests, sample_of
from geval_py.explaining.worst_features import rank_features
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.features import FeatureKinds
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.registry import METRICS


def column(losses, classes=()):
    return LineStatistics(columns=(array("d", losses),), details=list(classes))


def bootstrap_scores(metric, statistics, *, samples=DEFAULT_SAMPLES, seed=DEFAULT_SEED):
    sample = sample_of(metric, [statistics])
    return sample.scores(sample.totals(bootstrap_weights(sample.units, samples, seed)))[:, 0]


def interval(metric, statistics, *, documents=None, **how):
    return intervals(sample_of(metric, [statistics], documents), **how)[0]


def ranked(metric, names, systems, *, samples, seed, documents=None, runs=(), paired_runs=False, **how):
    """Systems of these statistics, the best first, and their groups. The statistics are means over runs."""
    sample = sample_of(metric, systems, documents)
    of_runs = tuple(sample_of(metric, one, documents) for one in runs)
    sample = replace(sample, runs=of_runs, paired_runs=paired_runs)
    estimator = Estimator(sample, samples, seed)
    return compare_systems(estimator, list(map(metric.value, systems)), names, **how)


def paired(*columns, metric=METRICS["LogLossHashed"], classes=(), documents=None, samples=1, seed=1):
    """The test of the second of two systems, lists of losses, against the first."""
    sample = sample_of(metric, [column(losses, classes) for losses in columns], documents)
    return pair_tests(Estimator(sample, samples=samples, seed=seed), [(1, 0)])[1, 0]


def worst_features(items, scores, *, worst_is_greatest, header=(), kinds=None, losses=None, documents=False, **how):
    """The ranking of the features of items, aligned with their scores; documents have a value for each item."""
    items, scores = list(items), list(scores)
    score = SimpleNamespace(
        greatest_first=lambda worst: worst_is_greatest, line_numbers=None,
        metric=SimpleNamespace(measure=SimpleNamespace(in_nats=losses is not None)),
    )  # fmt: skip
    evaluation = SimpleNamespace(
        scores=[score], split=SimpleNamespace(in_header=header), file_lines=len(items), line_losses=losses,
        line_scores=lambda: np.array(scores, np.float64),
        sides=lambda places: [[items[place][side] for place in places] for side in range(3)],
    )  # fmt: skip
    return rank_features(evaluation, kinds or FeatureKinds(), costs=True, documents=documents, **how)
