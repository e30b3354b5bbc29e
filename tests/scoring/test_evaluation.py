"""An evaluation as a value: printed, pickled and copied; its signature."""

import copy
import pickle
from hashlib import sha256
from pathlib import PurePosixPath

import pytest
from raising import refused

from geval_py import evaluate
from geval_py.version import build_version


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric LogLossHashed8\n")
    (tmp_path / "dev-0/in.tsv").write_text("x\ny\nz\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\nc\n")
    (tmp_path / "dev-0/out-one.tsv").write_text("a:1\nb:1\nc:1\n")
    (tmp_path / "dev-0/out-copy.tsv").write_text("a:1\nb:1\nc:1\n")
    (tmp_path / "dev-0/out-two.tsv").write_text("a:1\nb:1\n:1\n")
    return tmp_path


@pytest.mark.parametrize(("metrics", "text"), [
    ((), "PerplexityHashed  1.0\nLogLossHashed8    0.0"),
    ("LikelihoodHashed", "LikelihoodHashed  1.0"),
    ("LogLossHashed:N<a\tb>", r"a\tb  0.0"),
], ids=["two metrics", "one metric", "a hostile name"])  # fmt: skip
def test_printed_it_is_a_line_a_score(metrics, text, challenge):
    assert str(evaluate(challenge, "dev-0", output="one", metric=metrics)) == text


def test_equal_scores_have_equal_signatures(challenge):
    one, two, copied = (evaluate(challenge, "dev-0", output=name).signature for name in ("one", "two", "copy"))
    assert one == evaluate(challenge, "dev-0", output="one").signature
    assert one == copied  # the same lines under another name
    assert one not in (two, evaluate(challenge, "dev-0", output="one", metric="LogLossHashed8").signature)


@pytest.mark.filterwarnings("ignore:3 of 3 expected words are not", "ignore:.*the loss of 1 of 3 lines is infinite")
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize(
    "metrics", ["PerplexityHashed", "LogLoss:l", "Accuracy:f<in<1>:x>", "MacroAvg/Likelihood:s<^.*><1>"]
)
def test_a_copy_does_the_same(copied, metrics, challenge):
    result = evaluate(challenge, "dev-0", output="two", metric=metrics)
    other = copied(result)
    assert other.signature == result.signature
    assert other.notes == result.notes
    assert str(other) == str(result)
    assert other.to_frame().equals(result.to_frame())
    assert [score.to_dict() for score in other.scores] == [score.to_dict() for score in result.scores]


@pytest.mark.parametrize(
    ("other", "shown"),
    [("out-two.tsv", "'out-two.tsv'"), (PurePosixPath("out-two.tsv"), "PurePosixPath('out-two.tsv')"), ([], "[]")],
)
def test_only_an_evaluation_is_compared(other, shown, challenge):
    result = evaluate(challenge, "dev-0", output="one")
    with refused(f"an evaluation is wanted, as evaluate(…) gives it, not {shown}"):
        result.worst_features(other=other)


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
