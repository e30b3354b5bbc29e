"""A metric on resamples of the lines."""

from geval_py.explaining.resampling import resample_totals, scores_on, table_of
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED


def bootstrap_scores(metric, statistics, *, samples=DEFAULT_SAMPLES, seed=DEFAULT_SEED):
    """The score on each resample."""
    table = table_of(metric, [statistics])
    return scores_on(metric, resample_totals(table, samples=samples, seed=seed))[:, 0]
