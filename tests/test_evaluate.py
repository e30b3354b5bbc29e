"""Scoring an output: what is read, what comes out, and what is refused."""

import hashlib
import inspect
import math

import pytest

import geval_py
from geval_py import Challenge, evaluate, hashed_log_losses


@pytest.fixture
def challenge(tmp_path):
    """A challenge of three items whose losses are known: ln 2, ln 4 and ln 2."""
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


def test_the_table_of_lines(challenge):
    frame = evaluate(challenge, "dev-0").to_frame()
    assert list(frame.columns) == ["line", "Left", "in<output>", "3", "expected", "output", "loss", "score"]
    assert list(frame["line"]) == [1, 2, 3]
    assert list(frame["Left"]) == ["x", "x2", "x3"]
    assert list(frame["in<output>"].fillna("none")) == ["y", "none", "y3"]
    assert list(frame["expected"]) == ["a", "b", "c"]
    assert frame["output"][1] == "a:0.25 :0.75"
    assert list(frame["score"]) == pytest.approx([2, 4, 2])


def test_the_table_without_an_input(challenge):
    (challenge / "dev-0/in.tsv").unlink()
    assert "Left" not in evaluate(challenge, "dev-0").to_frame().columns


def test_the_table_when_texts_were_not_kept(challenge):
    result = evaluate(challenge, "dev-0", keep_texts=False)
    with pytest.raises(geval_py.UsageError, match=r"^the texts were not kept: evaluate\(…, keep_texts=True\)$"):
        result.to_frame()


def test_an_input_with_another_number_of_lines(challenge):
    (challenge / "dev-0/in.tsv").write_text("x\n")
    with pytest.raises(geval_py.LineCountError) as caught:
        evaluate(challenge, "dev-0").to_frame()
    path = challenge / "dev-0"
    assert str(caught.value) == (
        f"Too few lines in the input file: `{path}/in.tsv` has 1, `{path}/expected.tsv` has 3"
    )


def test_signature(challenge):
    result = evaluate(challenge, "dev-0")
    sha = {
        name: hashlib.sha256((challenge / f"dev-0/{name}.tsv").read_bytes()).hexdigest()
        for name in ("expected", "out")
    }
    vocabulary = hashlib.sha256(b"a\nb\nc\nd").hexdigest()
    assert result.signature == (
        f"metric:Perplexity,LogLoss|bits:-,-|lines:3|expected:{sha['expected']}|output:{sha['out']}"
        f"|version:{geval_py.__version__}|vocabulary:{vocabulary}"
    )


def test_signature_of_a_compressed_output_is_the_same(challenge):
    import gzip

    before = evaluate(challenge, "dev-0").signature
    text = (challenge / "dev-0/out.tsv").read_bytes()
    (challenge / "dev-0/out.tsv").unlink()
    (challenge / "dev-0/out.tsv.gz").write_bytes(gzip.compress(text))
    assert evaluate(challenge, "dev-0").signature == before


def test_to_dict(challenge):
    result = evaluate(challenge, "dev-0", metrics="LikelihoodHashed8")
    assert result.to_dict() == {
        "file": "out.tsv",
        "parameters": {},
        "lines": 3,
        "out_of_vocabulary": 0,
        "signature": result.signature,
        "metrics": [
            {"name": "LikelihoodHashed8", "value": result.score, "unit": "probability", "direction": "higher"}
        ],
    }


def test_metrics_that_share_a_column_agree(challenge):
    """With L the mean of the line losses: L, exp(-L), exp(L), L / ln 2."""
    names = [f"{m}Hashed12" for m in ("LogLoss", "Likelihood", "Perplexity", "CrossEntropy")]
    loss, likelihood, perplexity, bits = (s.value for s in evaluate(challenge, "dev-0", metrics=names).scores)
    assert likelihood == math.exp(-loss)
    assert perplexity == math.exp(loss)
    assert bits == loss / math.log(2)


def test_several_outputs_need_a_choice(challenge):
    (challenge / "dev-0/out-x=1.tsv").write_text(":1\n:1\n:1\n")
    with pytest.raises(geval_py.UsageError) as caught:
        evaluate(challenge, "dev-0")
    assert str(caught.value) == "there are several outputs (out-x=1.tsv, out.tsv): choose one with out=…"
    chosen = evaluate(Challenge.open(challenge), "dev-0", out="out-x=1.tsv")
    assert chosen.output.parameters == {"x": "1"}


def test_words_outside_the_vocabulary_are_counted(challenge):
    (challenge / "dev-0/expected.tsv").write_text("a\nzebra\nc\n")
    result = evaluate(challenge, "dev-0", metrics=["LogLossHashed", "Perplexity"])
    assert result.out_of_vocabulary == 1
    assert result.scores[1].value == math.inf


def test_unknown_metric(challenge):
    with pytest.raises(geval_py.SchemeError) as caught:
        evaluate(challenge, "dev-0", metrics=["LikelihoodHashd"])
    assert str(caught.value) == (
        "Unknown or broken metric definition: LikelihoodHashd\n  did you mean LikelihoodHashed?"
    )


def test_blocks_are_cut_anywhere_without_a_difference(challenge, monkeypatch):
    from geval_py import sources

    want = evaluate(challenge, "dev-0", metrics="LogLossHashed").line_losses
    read = sources.LineReader.read_block
    for size in range(1, 40):
        monkeypatch.setattr(
            sources.LineReader, "read_block", lambda self, buffer, _=0, size=size: read(self, buffer, size)
        )
        assert evaluate(challenge, "dev-0", metrics="LogLossHashed").line_losses == want


def test_hashed_log_losses():
    assert list(hashed_log_losses(["a:1", ":1"], ["a", "b"], bits=3)) == pytest.approx([0, math.log(8)])
    assert list(hashed_log_losses([], [])) == []
    both = hashed_log_losses(["a:0.9"] * 20, ["b"] * 20, bits=2, first_line=5)
    assert list(both[10:]) == list(hashed_log_losses(["a:0.9"] * 10, ["b"] * 10, bits=2, first_line=15))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(outputs=[":1"], expected=[]), "1 outputs, but 0 expected words"),
        (dict(outputs=[":1\n"], expected=["a"]), "outputs[0] contains a line end; give one line an item"),
        (dict(outputs=[":1"], expected=["a\nb"]), "expected[0] contains a line end; give one line an item"),
        (dict(outputs=[":1"], expected=["a"], bits=0), "bits is 0; it is from 1 to 24"),
        (dict(outputs=[":1"], expected=["a"], bits=25), "bits is 25; it is from 1 to 24"),
        (dict(outputs=[":1"], expected=["a"], first_line=0), "first_line is 0; lines are counted from 1"),
    ],
)
def test_hashed_log_losses_refuses(arguments, message):
    with pytest.raises(geval_py.UsageError) as caught:
        hashed_log_losses(**arguments)
    assert str(caught.value) == message


def test_the_api_is_frozen():
    """Names and signatures that users' code depends on."""
    assert set(geval_py.__all__) == {
        "AmbiguousFileError", "Challenge", "Comparison", "ConfigError", "CorruptFileError", "DataError", "EmptyFileError",
        "Evaluation", "GevalError", "Interval", "LineCountError", "MalformedLineError", "MissingFileError", "SchemeError",
        "Score", "TooLargeError", "UnreadableFileError", "UsageError", "__version__", "compare", "evaluate", "format_line",
        "hashed_log_losses",
    }  # fmt: skip
    signatures = {
        "compare": "(evaluations, *, baseline=None, samples=10000, seed=12345)",
        "evaluate": "(challenge, test='test-A', *, out=None, metrics=(), keep_texts=True)",
        "format_line": "(probabilities, rest=None)",
        "hashed_log_losses": "(outputs, expected, bits=10, first_line=1)",
    }
    for name, want in signatures.items():
        signature = inspect.signature(getattr(geval_py, name))
        bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        assert str(inspect.Signature(bare)) == want
    public = {name for name in dir(geval_py.Evaluation) if not name.startswith("_")}
    assert public >= {"scores", "score", "line_losses", "signature", "to_frame", "to_dict", "lines"}
    assert {name for name in dir(Challenge) if not name.startswith("_")} >= {
        "open",
        "title",
        "description",
        "split",
    }
