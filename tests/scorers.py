"""Score lines by a metric's name: what the tests of metrics have in common."""

import pytest

from geval_py import Metric
from geval_py.errors import MalformedLineError
from geval_py.scoring.evaluate import column_of, find_metric


def block(lines):
    return "".join(line + "\n" for line in lines).encode()


def statistics_of(name, outputs, expected, inputs=(), vocabulary=()):
    metric = find_metric(name)
    more = (inputs,) if metric.needs_input else ()
    return column_of(metric, frozenset(vocabulary)).statistics(block(outputs), block(expected), 1, *more)


def score(name, outputs, expected, *beside, **more):
    return find_metric(name).value(statistics_of(name, outputs, expected, *beside, **more))


def hashed_losses(outputs, expected, bits=10, first_line=1):
    """Return the losses of output lines, in nats, as a list."""
    return Metric(f"LogLossHashed{bits}").losses(outputs, expected, lines=first_line).tolist()


def error(name, outputs, expected, inputs=()):
    with pytest.raises(MalformedLineError) as caught:
        score(name, outputs, expected, inputs)
    return caught.value


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


def perfect_line(expected, metric):
    """Return the output line that is right for an expected line, for a metric that is not of words."""
    if metric.perfect is not None:
        return metric.perfect(expected)
    if metric.has_entries and metric.answers != "shares":
        return f"{expected}:1.0"
    return expected.partition("\t")[0] if metric.answers == "any" else expected
