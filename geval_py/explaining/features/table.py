"""Features and their figures, a row a feature."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFeatures:
    """Features, each with the number of its items, their mean score, its p and q, and more columns; all aligned.

    ``q_values`` are p, corrected for ties and, by Benjamini and Hochberg, for the number of these features. Pairs of
    features, which are only here if their p is small, were more than are counted by it: their q is too small.

    ``more`` are further columns by their names: ``perplexity``, ``gain``, ``gain_low`` and ``gain_high`` where there
    are losses in nats (:mod:`geval_py.explaining.features.gain`), ``documents`` where these were asked for, and
    ``explained`` of distinct features (:mod:`geval_py.explaining.features.distinct`). What is not known is NaN.
    """

    names: list[str]
    counts: Integers
    means: Floats
    p_values: Floats
    q_values: Floats
    more: dict[str, Floats | Integers]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of figures by their names, as JSON, CSV and Python show them."""
        own = {"count": self.counts, "score": self.means, "p": self.p_values, "q": self.q_values}
        return own | self.more

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a feature: ``feature``, ``count``, ``score`` (the mean), ``p``, ``q``, and more."""
        import pandas as pd

        return pd.DataFrame({"feature": pd.Series(self.names, dtype=object)} | self.columns)

    def only(self, wanted: Truths) -> WorstFeatures:
        """Give some of the features."""
        return self._taken(list(compress(self.names, wanted.tolist())), wanted)

    def reordered(self, order: Integers) -> WorstFeatures:
        """Give features in another order, by their places."""
        return self._taken([self.names[index] for index in order.tolist()], order)

    def with_column(self, name: str, values: Floats) -> WorstFeatures:
        """Add a column."""
        return WorstFeatures(
            names=self.names,
            counts=self.counts,
            means=self.means,
            p_values=self.p_values,
            q_values=self.q_values,
            more=self.more | {name: values},
        )

    def _taken(self, names: list[str], which: Truths | Integers) -> WorstFeatures:
        return WorstFeatures(
            names=names,
            counts=self.counts[which],
            means=self.means[which],
            p_values=self.p_values[which],
            q_values=self.q_values[which],
            more={name: column[which] for name, column in self.more.items()},
        )
