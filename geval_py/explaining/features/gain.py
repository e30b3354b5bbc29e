"""What a feature costs: how much better the score would be if its lines were no worse than the others.

With the mean loss m1 of the share f of the lines that have the feature, and m0 of the others, the mean loss would
fall by g = f (m1 - m0), and the perplexity by the share 1 - exp(-g). The variance of g is that of its influence
function (Hampel, "The influence curve and its role in robust estimation", 1974):

    L - m0 - g on a line with the feature,    -f / (1 - f) (L - m0) - g on another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geval_py.explaining.statistics.distributions import NORMAL_QUANTILE

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of all items, in nats, and what is summed over those of a feature to know its gain.

    Losses are taken from their mean, so that squares lose no digits; infinite ones as they are.
    """

    losses: Floats

    @property
    def centre(self) -> float:
        """What the sums take the losses from."""
        mean = float(self.losses.mean()) if len(self.losses) else 0.0
        return mean if np.isfinite(mean) else 0.0

    @property
    def weights(self) -> Floats:
        """Give the two rows to be summed: the losses, and their squares, by the number of items."""
        apart = self.losses - self.centre
        return np.array([apart, apart**2]) / max(len(apart), 1)

    def columns(self, counts: Floats, sums: Floats) -> dict[str, Floats]:
        """Give of features their perplexity, exp of the mean loss, and their gain with its 95 % interval.

        ``sums`` are those of the weights. A gain is NaN where a loss is infinite.
        """
        items = len(self.losses)
        share = counts / items
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            perplexity = np.exp(self.centre + sums[0] / share)
            gain, error = self._gain(share, sums)
            ends = (gain, gain - NORMAL_QUANTILE * error, gain + NORMAL_QUANTILE * error)
            falls = [np.where(np.isfinite(gain) & np.isfinite(error), -np.expm1(-end), np.nan) for end in ends]
        return {"perplexity": perplexity} | dict(zip(("gain", "gain_low", "gain_high"), falls, strict=True))

    def _gain(self, share: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Give g and its standard error."""
        others = 1 - share
        total, squares = self.weights.sum(axis=1)
        mean_of_others = (total - sums[0]) / others
        gain: Floats = sums[0] - share * mean_of_others
        on = mean_of_others + gain
        variance_on = sums[1] - 2 * on * sums[0] + share * on**2
        spread_of_others = squares - sums[1] - others * mean_of_others**2
        variance = variance_on + (share / others) ** 2 * spread_of_others + others * gain**2
        return gain, np.sqrt(np.maximum(variance, 0) / len(self.losses))
