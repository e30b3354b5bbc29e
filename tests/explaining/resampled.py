"""A metric on resamples of the lines."""

from geval_py.explaining.statistics import bootstrap_weights, sample_of
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED


def bootstrap_scores(metric, statistics, *, samples=DEFAULT_SAMPLES, seed=DEFAULT_SEED):
    """The score on each resample."""
    sample = sample_of(metric, [statistics])
    return sample.scores(sample.totals(bootstrap_weights(sample.units, samples, seed)))[:, 0]
