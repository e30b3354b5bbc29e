"""How many examples Hypothesis draws: few in every run of the tests, all of them with `pytest --long`."""

from hypothesis import HealthCheck, settings

NORMAL, LONG = "normal", "long"
MAX_EXAMPLES = 30  # of a test, in a normal run

# No test asserts a time: what else the machine does is not the code's fault.
ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(NORMAL, ANY_MACHINE, max_examples=MAX_EXAMPLES)
settings.register_profile(LONG, ANY_MACHINE, max_examples=100)
load_profile = settings.load_profile


def examples(number: int, most: int = MAX_EXAMPLES) -> int:
    """Return how many of a number of examples are drawn in this run; a slow property draws fewer than others."""
    return number if settings.get_current_profile_name() == LONG else min(number, most)
