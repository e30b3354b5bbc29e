"""Scoring an output: what is read, what comes out, and what is refused."""

import math
from pathlib import Path, PurePosixPath

import pytest
from raising import refused

import geval_py
from geval_py import Challenge, evaluate, evaluate_all


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
    ({}, [1, 2, 3]),
    ({"sort": "worst"}, [2, 1, 3]),
    ({"sort": "best"}, [1, 3, 2]),
    ({"filter": "exp:b"}, [2]),
    ({"filter": ["out:0.5"]}, [1, 3]),
    ({"filter": ["out:0.5", "in<Left>:x3"]}, [3]),
    ({"filter": "in<2>:y"}, [1]),
    ({"filter": ()}, [1, 2, 3]),
    ({"filter": "out:a", "sort": "worst"}, [2, 1]),
    ({"filter": "in<Left>:=#2", "numerical_features": True}, [2, 3]),
], ids=str)  # fmt: skip
def test_lines(arguments, lines, challenge):
    frame = evaluate(challenge, "dev-0").lines(**arguments)
    assert list(frame["line"]) == lines
    assert list(frame.index) == [line - 1 for line in lines]
    assert list(frame.columns) == list(evaluate(challenge, "dev-0").to_frame().columns)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"filter": "exp:B"}, "No item has the feature `exp:B'\n  did you mean exp:b?"),
    ({"filter": "in<left>:x"}, "Unknown column `left' in the feature `in<left>:x'\n"
     "  did you mean in<Left>? the columns are Left, output"),
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
    with pytest.raises(geval_py.UsageError) as caught:
        result.score_differences(evaluate(challenge, "dev-0", metric="Perplexity:f<exp:a>"))
    path = f"`{challenge}/dev-0/out.tsv`"
    assert str(caught.value) == (
        f"the metric's filter selects other lines of {path} and {path}: filter by input or answer"
    )


def test_several_outputs_need_a_choice(challenge):
    (challenge / "dev-0/out-x=1.tsv").write_text(":1\n:1\n:1\n")
    with refused("there are several outputs (out-x=1.tsv, out.tsv): choose one with output=…"):
        evaluate(challenge, "dev-0")
    chosen = evaluate(Challenge.open(challenge), "dev-0", output="out-x=1.tsv")
    assert chosen.output.parameters == {"x": "1"}
