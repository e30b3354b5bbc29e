"""Statistics of losses, and a metric on resamples of the lines."""

from array import array

from geval_py.explaining.statistics import bootstrap_weights, sample_of
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.scoring.metrics.base import LineStatistics


def column(losses, classes=()):
    """The statistics of a system with these losses."""
    return LineStatistics(columns=(array("d", losses),), classes=list(classes))


def bootstrap_scores(metric, statistics, *, samples=DEFAULT_SAMPLES, seed=DEFAULT_SEED):
    """The score on each resample."""
    sample = sample_of(metric, [statistics])
    return sample.scores(sample.totals(bootstrap_weights(sample.units, samples, seed)))[:, 0]
