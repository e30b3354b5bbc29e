"""Signatures: what they print, and when two are equal. tests/scoring/test_evaluate.py has those of real files."""

import pytest

from geval_py.scoring.scores import Signature

SIGNATURE = Signature(
    metrics=("PerplexityHashed", "LogLossHashed8:l", "LogLoss"),
    bits=(10, 8, None),
    lines=3,
    expected="ee",
    output="0f",
    version="1.2",
)
PRINTED = "metric:PerplexityHashed,LogLossHashed8:l,LogLoss|bits:10,8,-|lines:3|expected:ee|output:0f"


def test_what_is_printed():
    assert str(SIGNATURE) == f"{PRINTED}|version:1.2"
    whole = SIGNATURE._replace(input="1d", header="ad", vocabulary="5d")
    assert str(whole) == f"{PRINTED}|input:1d|header:ad|version:1.2|vocabulary:5d"


CHANGES = {
    "metrics": ("LogLoss",), "bits": (10, 8, 7), "lines": 4, "expected": "ef", "output": "0e", "input": "1d",
    "header": "ad", "vocabulary": "5d", "version": "1.3",
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CHANGES.items(), ids=CHANGES)
def test_two_equal_signatures_mean_the_same_scores(name, value):
    same, other = (SIGNATURE._replace(), SIGNATURE._replace(**{name: value}))
    assert (same, hash(same)) == (SIGNATURE, hash(SIGNATURE))
    assert other != SIGNATURE
    assert str(other) != str(SIGNATURE)
