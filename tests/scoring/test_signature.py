"""Signatures: what they print; tests/scoring/test_evaluate.py has those of files, test_evaluation.py equal ones."""

from geval_py.scoring.scores import Signature

PRINTED = "metric:PerplexityHashed,LogLossHashed8:l,LogLoss|bits:10,8,-|lines:3|expected:ee|output:0f"


def test_what_is_printed():
    metrics = "PerplexityHashed", "LogLossHashed8:l", "LogLoss"
    one = Signature(metrics=metrics, bits=(10, 8, None), lines=3, expected="ee", output="0f", version="1.2")
    assert str(one) == f"{PRINTED}|version:1.2"
    whole = one._replace(input="1d", header="ad", vocabulary="5d", tokenizer="13a", filters="raw", library="a;b")
    more = "vocabulary:5d|tokenizer:13a|filters:raw|library:a;b"
    assert str(whole) == f"{PRINTED}|input:1d|header:ad|version:1.2|{more}"
