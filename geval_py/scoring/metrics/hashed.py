"""The profiles of lines, which say more of a distribution over words than its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring.kernel.profile import COLUMNS
from geval_py.scoring.metrics.base import Array, HashedColumn, LineStatistics, Metric

if TYPE_CHECKING:
    from collections.abc import Mapping


def profiled(metric: Metric) -> Metric:
    """Return a hashed metric of the same values, whose statistics are the profiles of lines."""
    column = HashedColumn(metric.bits or DEFAULT_BITS, profile=True)
    return metric._replace(column=column, measure=metric.measure._replace(columns=COLUMNS))


def profile_of(statistics: LineStatistics) -> Mapping[str, Array]:
    """Return the columns of a profile by name; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""
    import numpy as np

    return dict(zip(COLUMNS, map(np.frombuffer, statistics.columns), strict=True))
