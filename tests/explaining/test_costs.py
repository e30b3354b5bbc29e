"""What features cost, and how many documents they are on: against formulas written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resampled import worst_features

from geval_py.reading.features import FeatureKinds

PROPERTY = settings(deadline=None, derandomize=True)


def ranked(words, losses, *, kinds=None, least=1, **wanted):
    """Rank the words of expected lines by perplexities."""
    return worst_features(
        [("", line, "") for line in words],
        [math.exp(loss) for loss in losses],
        worst_is_greatest=True,
        kinds=kinds,
        least=least,
        losses=losses,
        **wanted,
    )


def table(features):
    rows = zip(*(column.tolist() for column in features.columns.values()), strict=True)
    return {
        name: dict(zip(features.columns, row, strict=True)) for name, row in zip(features.names, rows, strict=True)
    }


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "a b"]), st.floats(0, 20)), min_size=2, max_size=30))
def test_perplexity_and_gain(lines):
    """exp of the mean loss; 1 - exp(-n_f/n (mean loss with - mean loss without))."""
    words, losses = zip(*lines, strict=True)
    for name, row in table(ranked(words, losses)).items():
        on, off = (
            [loss for word, loss in lines if (name.removeprefix("exp:") in word.split()) is has]
            for has in (True, False)
        )
        gain = len(on) / len(lines) * (np.mean(on) - np.mean(off))
        assert row["perplexity"] == pytest.approx(math.exp(np.mean(on)))
        assert row["gain"] == pytest.approx(1 - math.exp(-gain), abs=1e-9)
        has = np.array([name.removeprefix("exp:") in word.split() for word in words])
        apart = np.array(losses) - np.mean(off)
        influences = np.where(has, apart, apart * -len(on) / len(off)) - gain  # of a line on the gain
        half = 1.959964 * math.sqrt(np.sum(influences**2) / (len(lines) - 1) / len(lines))
        assert row["gain_low"] == pytest.approx(1 - math.exp(half - gain), rel=1e-5, abs=1e-5)
        assert row["gain_high"] == pytest.approx(1 - math.exp(-half - gain), rel=1e-5, abs=1e-5)


def test_infinite_losses():
    rows = table(ranked(["a", "b", "a", "b"], [math.inf, 1.0, 2.0, 3.0]))
    assert (rows["exp:a"]["perplexity"], rows["exp:b"]["perplexity"]) == (math.inf, pytest.approx(math.exp(2)))
    assert all(math.isnan(row["gain"]) for row in rows.values())


def test_documents():
    """On how many documents a feature is: of a pair it is not known."""
    documents = ["x", "x", "y", "z", "z"]
    rows = table(
        ranked(
            ["a b", "a", "a b", "b", "c"], [5.0, 1, 6, 2, 3], documents=documents, kinds=FeatureKinds(cartesian=True)
        )
    )
    assert {name: row["documents"] for name, row in rows.items() if "~~" not in name} == {
        "exp:a": 2, "exp:b": 3, "exp:c": 1,
    }  # fmt: skip
    assert [math.isnan(row["documents"]) for name, row in rows.items() if "~~" in name] == [True]


# From outside
