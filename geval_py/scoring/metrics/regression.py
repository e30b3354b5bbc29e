"""Metrics of numbers: a number a line, or two, longitude and latitude.

MSE is the mean of the squared errors, RMSE its square root, MAE the mean of the absolute errors, SMAPE the mean of
|e - o| / (|e| + |o|) in percent, of which 0/0 is 0 (Armstrong, "Long-range forecasting", 1985; without his factor 2,
so that it is from 0 to 100). All are best at 0. An empty line is no number, and an error.

Pearson's and Spearman's correlations are no functions of sums that a double can hold: both are of all lines at once.
Both are numpy's; Spearman's is that of ranks, where tied numbers share their mean rank. Of fewer than two lines, and
of numbers that are all the same, there is none: it is NaN, and so it is of each line alone.

Haversine is the mean distance on a sphere of 6371 km. It is GEval's formula, which takes the cosine of the difference
of the latitudes, twice, where the haversine formula has the cosines of both: near the equator, and for points of one
longitude, both give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.rows import malformed, number_of, of_answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import LineStatistics


EARTH_KM = 6371.0  # GEval's
TWO_NUMBERS = "cannot parse line with longitude and latitude of sphere"  # GEval's own bracketed message


def squared_error(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the square of a number's error."""
    answer, number = numbers_of(text, expected, line)
    return ((number - answer) * (number - answer),)


def absolute_error(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the size of a number's error."""
    answer, number = numbers_of(text, expected, line)
    return (abs(number - answer),)


def relative_error(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the size of a number's error by the sizes of both numbers; 0 where both are 0."""
    answer, number = numbers_of(text, expected, line)
    size = abs(answer) + abs(number)
    return (abs(number - answer) / size if size else 0.0,)


def numbers_of(text: str, expected: str, line: int) -> tuple[float, float]:
    """Read what was expected, and what was given; raises MalformedLineError."""
    number = number_of(text, line)
    return of_answer(number_of, expected, line), number


def root_mean(totals: Sequence[float], lines: float) -> float:
    """Give the square root of a mean."""
    (squares,) = totals
    return math.sqrt(squares / lines)


def percent(totals: Sequence[float], lines: float) -> float:
    """Give a mean times 100."""
    (errors,) = totals
    return 100 * errors / lines


def pearson(systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Give what correlates the numbers of some lines."""
    return _correlations(systems, lambda numbers: numbers)


def spearman(systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Give what correlates the ranks of the numbers of some lines."""
    return _correlations(systems, _ranks)


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank each row from 1; tied numbers share their mean rank. SciPy has it too, and takes a second to import."""
    import numpy as np

    rows = []
    for row in numbers:
        _, places, tied = np.unique(row, return_inverse=True, return_counts=True)
        rows.append((np.cumsum(tied) - (tied - 1) / 2)[places])
    return np.array(rows)


def _correlations(
    systems: Sequence[LineStatistics], prepare: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Callable[[NDArray[np.intp]], float]:
    import numpy as np

    table = np.concatenate([np.array([np.array(column) for column in of.columns]) for of in systems], axis=1)

    def score(lines: NDArray[np.intp]) -> float:
        chosen = table[:, lines]
        with np.errstate(over="ignore", invalid="ignore"):  # numbers of 1e308 have no correlation that can be told
            if not np.ptp(chosen, axis=1).all():
                return math.nan
            return float(np.asarray(np.corrcoef(prepare(chosen)))[0, 1])

    return score


def haversine(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the distance of two points in kilometres."""
    point = read_point(text, line)
    answer = of_answer(read_point, expected, line)
    longitude, latitude = (math.radians(a) - math.radians(b) for a, b in zip(point, answer, strict=True))
    h = _half_versed(longitude) + math.cos(latitude) ** 2 * _half_versed(latitude)
    return (2 * math.asin(min(1.0, math.sqrt(h))) * EARTH_KM,)


def _half_versed(angle: float) -> float:
    return math.sin(angle / 2) ** 2


def read_point(text: str, line: int) -> tuple[float, float]:
    """Read a longitude, a TAB and a latitude, in degrees; raises MalformedLineError."""
    fields = text.split("\t")
    if len(fields) != 2:
        hint = "a longitude and a latitude, in degrees, are written with a TAB between them: `19.94<TAB>50.06`"
        raise malformed(TWO_NUMBERS, text, line, hint)
    numbers = []
    for field, column in zip(fields, (1, len(fields[0]) + 2), strict=True):
        try:
            numbers.append(number_of(field, line))
        except MalformedLineError as error:
            error.text, error.column = text, error.column + column - 1
            raise
    return numbers[0], numbers[1]
