"""The search for parameters: those under which some lines lose least.

It goes over ln T, logit lambda and logit nu, with the gradient of the mean loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, inf, log

import numpy as np

from geval_py.explaining.tuning.folds import Array, Flags, Folds
from geval_py.explaining.tuning.guesses import Guesses
from geval_py.explaining.tuning.searching import minimum
from geval_py.reading.tuned import Parameters

LEAST_PART, MOST_PART = 1e-6, 1 - 1e-6  # of lambda and nu
MOST_TEMPERATURE = 10.0  # and its inverse is the least
LEAST_MASS = 1e-300
STARTS = {"temperature": 1.0, "lambda": 0.05, "nu": 0.3}


def fit(guesses: Guesses, names: Sequence[str], lines: Flags, start: Parameters) -> Parameters:
    """Find the parameters of these names that are best on some lines; the others stay as the start has them.

    Lines whose loss would be infinite whatever is tuned (nothing is listed, there is no rest, and no lambda) are left
    out.
    """
    if "lambda" not in names:
        lines = lines & (np.isfinite(guesses.losses(start)))
    if not lines.any():
        return start
    objective = _Objective(guesses, names, lines, start)
    begin = [_free(name, value if value != _NEUTRAL[name] else STARTS[name]) for name, value in objective.named]
    found = minimum(objective, begin, [_bounds(name) for name in names])
    return objective.with_values({name: _rounded(name, place) for name, place in zip(names, found, strict=True)})


def held_out(guesses: Guesses, names: Sequence[str], folds: Folds, start: Parameters) -> Array:
    """Give each line's loss under what was found on the other folds."""
    losses = np.empty(guesses.lines)
    for out in folds:
        losses[out] = guesses.losses(fit(guesses, names, ~out, start))[out]
    return losses


def best(guesses: Guesses, candidates: Iterable[Parameters]) -> Parameters:
    """Give those of several parameters, of equal ones the first, under which all lines lose least."""
    return min(candidates, key=lambda parameters: mean_loss(guesses.losses(parameters)))


def mean_loss(losses: Array) -> float:
    """Give the mean of losses; inf where one is."""
    return inf if np.isinf(losses).any() else float(losses.mean())


_NEUTRAL = Parameters().named


class _Objective:
    """The mean loss of some lines, and its gradient, by the free parameters."""

    def __init__(self, guesses: Guesses, names: Sequence[str], lines: Flags, start: Parameters) -> None:
        self._guesses, self._names, self._lines, self._start = guesses, names, lines, start
        self.named = [(name, start.named[name]) for name in names]

    def parameters(self, free: Sequence[float]) -> Parameters:
        """Give the parameters at a place of the search."""
        return self.with_values({name: _bound(name, place) for name, place in zip(self._names, free, strict=True)})

    def with_values(self, free: Mapping[str, float]) -> Parameters:
        """Give the parameters with the values of those that are free."""
        values = {**self._start.named, **free}
        return self._start.replace(temperature=values["temperature"], lambda_=values["lambda"], nu=values["nu"])

    def __call__(self, free: Array) -> tuple[float, Array]:
        at = self.parameters(free.tolist())
        guesses, lines = self._guesses, self._lines
        if "temperature" in self._names:
            listed, by_temperature = guesses.listed(log(at.temperature))
        else:
            listed, by_temperature = guesses.hits, guesses.hits
        spread, by_nu = guesses.spread(at.nu)
        rest = (1.0 - at.lambda_) * guesses.rests + at.lambda_
        masses = np.maximum((1.0 - at.lambda_) * listed + rest * spread, LEAST_MASS)[lines]
        slopes = {
            "temperature": (1.0 - at.lambda_) * by_temperature,
            "lambda": at.lambda_ * (1.0 - at.lambda_) * ((1.0 - guesses.rests) * spread - listed),
            "nu": at.nu * (1.0 - at.nu) * rest * by_nu,
        }
        gradient = [-float(np.mean(slopes[name][lines] / masses)) for name in self._names]
        return -float(np.mean(np.log(masses))), np.array(gradient)


def _free(name: str, value: float) -> float:
    """Give a parameter's place in the search."""
    if name == "temperature":
        return log(value)
    value = min(max(value, LEAST_PART), MOST_PART)
    return log(value / (1.0 - value))


def _bound(name: str, place: float) -> float:
    """Give the parameter at a place in the search."""
    return exp(place) if name == "temperature" else 1.0 / (1.0 + exp(-place))


def _rounded(name: str, place: float) -> float:
    """Round the parameter at a place to four digits, which lose nothing: more are noise of the search."""
    value = float(f"{_bound(name, place):.4g}")
    return value if name == "temperature" else min(max(value, LEAST_PART), MOST_PART)


def _bounds(name: str) -> tuple[float, float]:
    if name == "temperature":
        return -log(MOST_TEMPERATURE), log(MOST_TEMPERATURE)
    return _free(name, LEAST_PART), _free(name, MOST_PART)
