"""What tuning takes from scipy, which is imported where it is first used: an extra adds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError

Array = npt.NDArray[np.float64]


def students_quantile(probability: float, freedom: int) -> float:
    """Give the quantile of Student's t distribution with so many degrees of freedom."""
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise _missing() from error
    return float(stdtrit(freedom, probability))


def minimum(
    function: Callable[[Array], tuple[float, Array]], start: Sequence[float], bounds: Sequence[tuple[float, float]]
) -> list[float]:
    """Find where a function, given with its gradient, is least inside of bounds: by L-BFGS-B.

    Byrd, Lu, Nocedal and Zhu, "A Limited Memory Algorithm for Bound Constrained Optimization", 1995.
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise _missing() from error
    options = {"ftol": 1e-12, "gtol": 1e-7}
    found = minimize(function, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return [float(value) for value in found.x]


def _missing() -> UsageError:
    return UsageError(message="tuning and mixing need scipy\n  pip install ./geval-py[report]")
