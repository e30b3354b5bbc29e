"""Metrics of numbers: one number a line, or a longitude and a latitude.

MSE is the mean of the squared errors, RMSE its square root, MAE the mean of the absolute errors, SMAPE the mean of
|e - o| / (|e| + |o|) in percent, with 0 for 0/0 (Armstrong, "Long-range forecasting", 1985; without his factor 2, so
that it is from 0 to 100). All are best at 0. An empty line is an error.

Pearson's and Spearman's correlations cannot be computed from sums in doubles, but need all lines at once. numpy
computes both; Spearman's is the correlation of ranks, where tied numbers share their mean rank. The correlation of
fewer than two lines, or of equal numbers, is NaN, and so is that of each line alone.

Against an interval, `low,high`, the error of a number is its distance to the interval, 0 inside of it.

Improvement@T is for outputs that select lines, by a quality of at least T: the mean of the expected numbers of these
lines, minus the mean of all. Without any such line it is NaN.

Haversine is the mean distance on a sphere of 6371 km, by GEval's formula: it squares the cosine of the difference of
the latitudes, where the haversine formula multiplies the cosines of both. Near the equator, and for points of one
longitude, both give the same. The formula may leave the domain of the arcsine. There GEval gives NaN, and here points
are half a circumference apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.base import Array, LineScore, LineStatistics, Number, Places, Row, joined_columns
from geval_py.scoring.metrics.columns import Partial, malformed, number_of

EARTH_KM = 6371.0  # GEval's


def squared_error(number: float, answer: float) -> float:
    """Compute the square of a number's error."""
    return (number - answer) * (number - answer)


def absolute_error(number: float, answer: float) -> float:
    """Compute the absolute error of a number."""
    return abs(number - answer)


def relative_error(number: float, answer: float) -> float:
    """Divide the absolute error by the sizes of both numbers; 0 where both are 0."""
    size = abs(answer) + abs(number)
    return abs(number - answer) / size if size else 0.0


def both_numbers(number: float, answer: float) -> Row:
    """Return the expected and the given number."""
    return answer, number


def against_interval(error: Callable[[float, float], float], number: float, interval: Sequence[float]) -> float:
    """Compute the error of a number against the nearest number of an interval."""
    low, high = interval
    return error(number, low if number < low else min(number, high))


def read_pair(
    separator: str, whole: str, parts: tuple[str, str], hint: str, text: str, line: int
) -> tuple[float, float]:
    """Read two numbers; raises MalformedLineError with a message on the ``whole`` line or on one of its ``parts``."""
    fields, numbers, column = text.split(separator), [], 1
    if len(fields) != 2:
        raise malformed(whole, text, line, hint)
    for part, field in zip(parts, fields, strict=True):
        try:
            numbers.append(number_of(field, line))
        except MalformedLineError as error:
            error.reason, error.hint, error.text, error.column = part, hint, text, column + error.column - 1
            raise
        column += len(field) + 1
    return numbers[0], numbers[1]


NO_INTERVAL = "cannot parse interval"  # these messages are GEval's own
read_interval = Partial(
    read_pair,
    ",",
    NO_INTERVAL,
    (NO_INTERVAL, NO_INTERVAL),
    "an interval is two numbers with a comma between them: `1592,1593.5`",
)
read_point = Partial(
    read_pair,
    "\t",
    "cannot parse line with longitude and latitude of sphere",
    ("cannot parse line with longitude of sphere", "cannot parse line with latitude of sphere"),
    "a longitude and a latitude, in degrees, are written with a TAB between them: `19.94<TAB>50.06`",
)


def lower_bound(expected: str) -> str:
    """Return a number that is right for an expected interval."""
    return expected.partition(",")[0]


def improvement(threshold: float, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that computes by how much the selected lines are better than all, in the mean."""
    import numpy as np

    expected, quality = joined_columns(systems)

    def score(lines: Places) -> float:
        numbers = expected[lines]
        selected = numbers[quality[lines] >= threshold]
        with np.errstate(over="ignore", invalid="ignore"):  # numbers of 1e308 overflow
            return float(selected.mean() - numbers.mean()) if len(selected) else math.nan

    return score


def root_mean(totals: Sequence[Number], lines: Number) -> Number:
    """Compute the square root of the mean, of floats or arrays, as the power that GEval computes."""
    square: Any = totals[0] / lines
    root: Number = square**0.5 if isinstance(square, float) else (square.astype(object) ** 0.5).astype(float)
    return root  # numpy's own power of an array may differ in the last bit


def percent(totals: Sequence[Number], lines: Number) -> Number:
    """Compute the mean in percent, of floats or arrays."""
    return 100 * totals[0] / lines


def ranks(numbers: Array) -> Array:
    """Return the ranks of numbers, from 1; equal numbers share the mean of theirs. SciPy's takes a second to import.

    >>> ranks([7.0, 5.0, 7.0, 9.0]).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    import numpy as np

    _, places, ties = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(ties) - (ties - 1) / 2)[places]


def correlation(prepare: Callable[[Array], Array] | None, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that correlates the numbers of some lines, as ``prepare`` changes them, if it is given."""
    import numpy as np

    table = joined_columns(systems)

    def score(lines: Places) -> float:
        chosen = table[:, lines]
        # Powers of two, which change no digit, bring each row to at most 1, so that no square overflows or vanishes.
        chosen = np.ldexp(chosen, -np.frexp(np.abs(chosen).max(axis=1, keepdims=True))[1])
        if not np.ptp(chosen, axis=1).all():
            return math.nan
        rows = chosen if prepare is None else np.array(list(map(prepare, chosen)))
        return float(np.asarray(np.corrcoef(rows))[0, 1])

    return score


def haversine(point: Sequence[float], answer: Sequence[float]) -> float:
    """Compute the distance of two points in kilometres."""
    longitude, latitude = (math.radians(a) - math.radians(b) for a, b in zip(point, answer, strict=True))
    h = math.sin(longitude / 2) ** 2 + math.cos(latitude) ** 2 * math.sin(latitude / 2) ** 2
    return 2 * math.asin(min(1.0, math.sqrt(h))) * EARTH_KM
