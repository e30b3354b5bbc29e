"""Scoring an output: what is read, what comes out, and what is refused."""

import copy
import math
import pickle
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from raising import refused

import geval_py
from geval_py import evaluate, evaluate_all
from geval_py.version import build_version


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "config.txt").write_text("--metric Perplexity --metric LogLoss --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("Left\toutput\n")
    for name in ("train", "dev-0"):
        (tmp_path / name).mkdir()
    (tmp_path / "train/expected.tsv").write_text("a\nb\nc\nd\n")
    (tmp_path / "dev-0/in.tsv").write_text("x\ty\nx2\nx3\ty3\tz3\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\nc\n")
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\na:0.25 :0.75\nc:0.5 d:0.5\n")
    return tmp_path


def test_scores_and_losses(challenge):
    result = evaluate(challenge, "dev-0")
    assert [s.name for s in result.scores] == ["Perplexity", "LogLoss"]
    assert list(result.line_losses) == pytest.approx([math.log(2), math.log(4), math.log(2)])
    assert result.score == pytest.approx(math.exp(4 / 3 * math.log(2)))
    assert (result.scores[1].unit, result.scores[1].direction) == ("nats", "lower")
    assert result.line_count == 3
    assert result.line_scores() == pytest.approx([2, 4, 2])


@pytest.mark.parametrize("test", [Path("dev-0"), PurePosixPath("dev-0"), "dev-0"])
def test_a_test_set_is_named_by_a_text_or_a_path(test, challenge):
    result = evaluate(Path(challenge), test)
    assert (result.split.name, result.signature) == ("dev-0", evaluate(str(challenge), "dev-0").signature)
    assert [one.signature for one in evaluate_all(challenge, test)] == [result.signature]


def test_intervals_by_documents(challenge):
    (challenge / "in-header.tsv").write_text("FileId\tText\n")
    (challenge / "dev-0/in.tsv").write_text("x\tu\nx\tv\ny\tw\n")
    result = evaluate(challenge, "dev-0")
    for score in result.scores:
        by_name, *others = (score.interval(documents=by) for by in ("FileId", 1, ["x", "x", "y"], [7, 7, 8]))
        assert by_name.documents == 2
        assert others == [by_name] * 3
        assert score.interval(documents=False).documents is None
    assert result.interval(documents="FileId") == result.scores[0].interval(documents="FileId")
    with refused("Unknown column `File'\n  did you mean FileId? the columns are FileId, Text"):
        result.scores[0].interval(documents="File")


@pytest.mark.parametrize(("config", "shown"), [("", "1.0397207708399179"), ("--precision 3", "1.040")])
def test_latex_has_the_precision_of_config_txt(config, shown, challenge):
    rows = {"out": ['{"id": 2, "words": ["b", ""], "probabilities": [0.25, 0.75]}', '{"id": 1, "words": ["a", ""], "probabilities": [0.5, 0.5]}'],
            "expected": ['{"id": 1, "answer": "a"}', '{"id": 2, "answer": "b"}']}  # fmt: skip
    (challenge / "config.txt").write_text(f"--metric LogLoss {config}\n")
    for name, lines in rows.items():
        (challenge / f"dev-0/{name}.tsv").unlink()
        (challenge / f"dev-0/{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    evaluations = evaluate_all(challenge, "dev-0")
    assert f"out & {shown} " in evaluations.to_latex()
    assert f"| out | {shown} |" in evaluations.to_markdown()


def test_the_table_of_lines(challenge):
    frame = evaluate(challenge, "dev-0").to_frame()
    assert list(frame.columns) == ["line", "Left", "in<output>", "3", "expected", "output", "loss", "score"]
    assert list(frame["line"]) == [1, 2, 3]
    assert list(frame["Left"]) == ["x", "x2", "x3"]
    assert list(frame["in<output>"].fillna("none")) == ["y", "none", "y3"]
    assert list(frame["expected"]) == ["a", "b", "c"]
    assert frame["output"][1] == "a:0.25 :0.75"
    assert list(frame["score"]) == pytest.approx([2, 4, 2])


@pytest.mark.parametrize(("arguments", "lines"), [
    ({}, [1, 2, 3]), ({"sort": "worst"}, [2, 1, 3]), ({"sort": "best"}, [1, 3, 2]), ({"filter": "exp:b"}, [2]),
    ({"filter": ["out:0.5"]}, [1, 3]), ({"filter": ["out:0.5", "in<Left>:x3"]}, [3]), ({"filter": "in<2>:y"}, [1]),
    ({"filter": ()}, [1, 2, 3]), ({"filter": "out:a", "sort": "worst"}, [2, 1]),
    ({"filter": "in<Left>:=#2", "numerical_features": True}, [2, 3]),
], ids=str)  # fmt: skip
def test_lines(arguments, lines, challenge):
    frame = evaluate(challenge, "dev-0").lines(**arguments)
    assert list(frame["line"]) == lines
    assert list(frame.index) == [line - 1 for line in lines]
    assert list(frame.columns) == list(evaluate(challenge, "dev-0").to_frame().columns)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"filter": "exp:B"}, "No item has the feature `exp:B'\n  did you mean exp:b?"),
    ({"sort": "loss"}, "lines are sorted by the worst or the best first, not by 'loss'"),
], ids=str)  # fmt: skip
def test_lines_that_cannot_be_chosen(arguments, message, challenge):
    with refused(message):
        evaluate(challenge, "dev-0").lines(**arguments)


def test_worst_features(challenge):
    frame = evaluate(challenge, "dev-0").worst_features()
    assert list(frame.columns) == [
        "feature", "count", "score", "p", "q", "perplexity", "gain", "gain_low", "gain_high",
    ]  # fmt: skip
    assert list(frame["feature"][:5]) == ["exp:b", "out:0.25", "out:0.75", "in<Left>:x2", "out:a"]
    row = frame[frame["feature"] == "out:a"].iloc[0]
    assert (row["count"], row["score"]) == (2, pytest.approx(3))
    assert frame["p"].is_monotonic_increasing
    assert not frame["p"].isna().any()


def test_what_goes_with_being_worse_than_another(challenge):
    (challenge / "dev-0/other").write_text("a:1\na:0.5 b:0.5\nc:0.5 d:0.5\n")
    result = evaluate(challenge, "dev-0", output="out.tsv")
    other = evaluate(challenge, "dev-0", output="other")
    assert result.score_differences(other) == pytest.approx([1, 2, 0])
    assert other.score_differences(result) == pytest.approx([-1, -2, 0])
    frame = result.worst_features(other=other)
    assert (frame["feature"].iloc[0], frame["score"].iloc[0]) == ("exp:b", pytest.approx(2))
    assert result.worst_features(other=other, best=True)["feature"].iloc[0] == "exp:c"


def test_differences_of_infinite_scores(challenge):
    (challenge / "dev-0/out.tsv").write_text("b:1\nb:1\nb:1\n")
    (challenge / "dev-0/other").write_text("b:1\nc:1\nc:1\n")
    with pytest.warns(UserWarning, match="the loss of 2 of 3 lines is infinite"):
        result, other = (evaluate(challenge, "dev-0", output=name) for name in ("out.tsv", "other"))
    assert result.score_differences(other) == pytest.approx([math.nan, -math.inf, math.inf], nan_ok=True)
    frame = result.worst_features(other=other)
    assert "exp:a" not in set(frame["feature"])
    assert list(frame["feature"][:1]) == ["exp:c"]


def test_differences_to_an_output_of_other_lines(challenge):
    (challenge / "dev-1").mkdir()
    for name in ("in.tsv", "expected.tsv", "out.tsv"):
        (challenge / "dev-1" / name).write_text((challenge / "dev-0" / name).read_text() * 2)
    result, other = evaluate(challenge, "dev-0"), evaluate(challenge, "dev-1")
    with refused(
        f"Too many lines in the output file: `{challenge}/dev-1/out.tsv` has 6, `{challenge}/dev-0/out.tsv` has 3",
        geval_py.errors.LineCountError,
    ):
        result.score_differences(other)
    path = f"`{challenge}/dev-0/out.tsv`"
    with refused(f"the metric's filter selects other lines of {path} and {path}: filter by input or answer"):
        result.score_differences(evaluate(challenge, "dev-0", metric="Perplexity:f<exp:a>"))


@pytest.fixture
def outputs(tmp_path):
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --metric LogLossHashed8\n")
    (tmp_path / "dev-0/in.tsv").write_text("x\ny\nz\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\nc\n")
    (tmp_path / "dev-0/out-one.tsv").write_text("a:1\nb:1\nc:1\n")
    (tmp_path / "dev-0/out-copy.tsv").write_text("a:1\nb:1\nc:1\n")
    (tmp_path / "dev-0/out-two.tsv").write_text("a:1\nb:1\n:1\n")
    return tmp_path


@pytest.mark.parametrize(("metrics", "text"), [
    ((), "PerplexityHashed  1.0\nLogLossHashed8    0.0"), ("LikelihoodHashed", "LikelihoodHashed  1.0"),
    ("LogLossHashed:N<a\tb>", r"a\tb  0.0"),
], ids=["two metrics", "one metric", "a hostile name"])  # fmt: skip
def test_printed_it_is_a_line_a_score(metrics, text, outputs):
    assert str(evaluate(outputs, "dev-0", output="one", metric=metrics)) == text


def test_equal_scores_have_equal_signatures(outputs):
    one, two, copied = (evaluate(outputs, "dev-0", output=name).signature for name in ("one", "two", "copy"))
    assert one == evaluate(outputs, "dev-0", output="one").signature
    assert one == copied  # the same lines under another name
    assert one not in (two, evaluate(outputs, "dev-0", output="one", metric="LogLossHashed8").signature)


@pytest.mark.filterwarnings("ignore:3 of 3 expected words are not", "ignore:.*the loss of 1 of 3 lines is infinite")
@pytest.mark.parametrize("copied", [
    copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)),
], ids=["copy", "deepcopy", "pickle"])  # fmt: skip
@pytest.mark.parametrize(
    "metrics", ["PerplexityHashed", "LogLoss:l", "Accuracy:f<in<1>:x>", "MacroAvg/Likelihood:s<^.*><1>"]
)
def test_a_copy_does_the_same(copied, metrics, outputs):
    result = evaluate(outputs, "dev-0", output="two", metric=metrics)
    other = copied(result)
    assert other.signature == result.signature
    assert other.notes == result.notes
    assert str(other) == str(result)
    assert other.to_frame().equals(result.to_frame())
    assert [score.to_dict() for score in other.scores] == [score.to_dict() for score in result.scores]


@pytest.mark.parametrize(("other", "shown"), [
    ("out-two.tsv", "'out-two.tsv'"), (PurePosixPath("out-two.tsv"), "PurePosixPath('out-two.tsv')"), ([], "[]"),
])  # fmt: skip
def test_only_an_evaluation_is_compared(other, shown, outputs):
    result = evaluate(outputs, "dev-0", output="one")
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
