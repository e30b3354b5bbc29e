"""Signatures: what they print; tests/scoring/test_evaluate.py has those of files, test_evaluation.py equal ones."""

from hashlib import sha256

import pytest

from geval_py import evaluate
from geval_py.version import build_version


def digest(text):
    return sha256(text.encode()).hexdigest()


def test_what_is_printed(tmp_path):
    """The parts in their order, of all metrics; a part that no score depends on is left out."""
    files = {"in.tsv": "x\ty\nz\ty\n", "expected.tsv": "a\nb\n", "out.tsv": "a:0.5 :0.5\nb:0.5 :0.5\n"}
    (tmp_path / "test-A").mkdir()
    (tmp_path / "config.txt").write_text("--metric LogLoss --in-header header.tsv\n")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "expected.tsv").write_text("a\nb\n")
    (tmp_path / "header.tsv").write_text("Left\tRight\n")
    for name, text in files.items():
        (tmp_path / "test-A" / name).write_text(text)
    hashed = evaluate(tmp_path, "test-A", metric=["PerplexityHashed", "LogLossHashed8:l"])
    answers, output = digest(files["expected.tsv"]), digest(files["out.tsv"])
    first = f"bits:10,8|lines:2|expected:{answers}|output:{output}|version:{build_version()}"
    assert str(hashed.signature) == f"metric:PerplexityHashed,LogLossHashed8:l|{first}"
    metrics = ["LogLossHashed", "LogLoss", "LogLoss:f<in[Left]:x>", "BLEU", "SacreBLEU"]
    with pytest.warns(UserWarning, match="does not change SacreBLEU"):
        every = evaluate(tmp_path, "test-A", metric=metrics, tokenizer="13a")
    keys = "metric bits lines expected output input header version vocabulary tokenizer library"
    assert [part.partition(":")[0] for part in str(every.signature).split("|")] == keys.split()
    parts = every.signature.parts
    assert parts["bits"] == "10,-,-,-,-"
    assert (parts["input"], parts["header"]) == (digest(files["in.tsv"]), digest("Left\tRight"))
    assert (parts["vocabulary"], parts["tokenizer"]) == (digest("a\nb"), "13a")
    assert "|" not in parts["library"]
