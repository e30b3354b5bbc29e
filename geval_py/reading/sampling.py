"""How many random samples are drawn, and from which seed, where nothing else is said."""

from __future__ import annotations

from geval_py.errors import UsageError

DEFAULT_SAMPLES = 10_000  # a p-value of 0.05 is then right to about 0.004, an interval's end to a third of a percent
MOST_SAMPLES = 1_000_000
DEFAULT_SEED = 12345


def check_sampling(samples: int, seed: int = DEFAULT_SEED) -> None:
    """Raise UsageError for a number of samples that is not from 1 to MOST_SAMPLES, or a seed below 0."""
    if samples < 1:
        raise UsageError(message="the number of bootstrap samples is at least 1")
    if samples > MOST_SAMPLES:
        raise UsageError(message=f"the number of samples is at most {MOST_SAMPLES}, not {samples}")
    if seed < 0:
        raise UsageError(message="the seed is a whole number from 0 on")
