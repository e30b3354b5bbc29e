"""Sums that are the same in whatever order, and in whatever groups, their terms are added.

A term is split into multiples of powers of two, each so great that no sum of such parts needs more bits than a double
has; so sums of parts are exact (Demmel and Nguyen, "Parallel Reproducible Summation", 2015). Terms of like size have
two parts or three; the more they differ, the more parts there are. Sums may not be too large for a double.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BITS = 52  # of a sum, beside one to be sure
LEAST = 5e-324  # of which each double is a multiple


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of some rows of terms: ``rows`` are the parts, ``of`` tells of which row each is, the greatest first.

    >>> parts = Parts.split(np.array([[0.1, 1e300, np.inf], [1, 2, 4]]))
    >>> parts.sums(parts.rows[:, ::-1].cumsum(axis=1))[:, :2]
    array([[inf, inf],
           [ 4.,  6.]])
    """

    rows: Floats
    of: tuple[int, ...]

    @classmethod
    def split(cls, terms: Floats) -> Parts:
        """Split rows of terms, some of which may be infinite: these are in the first part."""
        rows: list[Floats] = []
        of: list[int] = []
        left = terms
        while not of or left.any():
            part = _truncated(left)
            wanted = range(len(terms)) if not of else np.flatnonzero(left.any(axis=1)).tolist()
            rows.append(part[list(wanted)])
            of += wanted
            with np.errstate(invalid="ignore"):  # inf - inf
                left = np.where(np.isfinite(left), left - part, 0.0)
        return cls(np.concatenate(rows), tuple(of))

    def sums(self, of_parts: Floats) -> Floats:
        """Give the sums of terms, a row each, from those of the parts."""
        sums = np.zeros((max(self.of) + 1, of_parts.shape[1]))
        for row, part in zip(reversed(self.of), of_parts[::-1], strict=True):
            sums[row] += part
        return sums


def _truncated(terms: Floats) -> Floats:
    """Cut each row down to multiples of a power of two, such that all sums of its terms are exact."""
    finite = np.where(np.isfinite(terms), np.abs(terms), 0.0)
    _, exponents = np.frexp(finite.max(axis=1, initial=0.0))
    unit = np.maximum(np.ldexp(1.0, exponents + terms.shape[1].bit_length() - BITS), LEAST)[:, None]
    truncated: Floats = np.trunc(terms / unit) * unit  # to round might be to overflow
    return truncated
