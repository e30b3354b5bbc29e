"""The command line with metrics of other tasks than word gaps."""

import json
from functools import partial

import pytest
import sacrebleu
from raising import refused

import geval_py
from geval_py.errors import MissingFileError, UsageError
from geval_py.reading.lines import BLOCK_BYTES


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()
    files = {
        "config.txt": "--metric WER\n", "dev-0/in.tsv": "teh dog\nteh cat on the mat\nit ranes\n",
        "dev-0/expected.tsv": "the dog\tThe dog\nthe cat on the mat\nit rains\n",
        "dev-0/out-a.tsv": "the dog\nthe cat on a mat\nit rains\n",
        "dev-0/out-b.tsv": "dog\nthe dog on a mat\nit is rain\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


A = ("-t", "dev-0", "-o", "out-a.tsv")


def test_modes(challenge, geval):
    def scores(*words):
        status, out, _ = geval(*A, *words)
        assert status == 0
        return [line.split("\t")[0] for line in out.splitlines()]

    assert scores("--line-by-line", "--sort") == ["0.5", "0.2", "0.0"]
    assert scores("-d", "out-b.tsv") == ["-0.25", "-0.2", "-1.0"]
    assert scores("-l", "-a", "CharMatch:f<exp:rains>") == ["1.0"]
    assert geval(*A, "-a", "CharMatch", "-l", "--sort")[1].splitlines()[-1].split("\t")[1] == "it ranes"
    assert [line["loss"] for line in json.loads(geval(*A, "-l", "--format", "json")[1])["lines"]] == [None] * 3
    head, _, second, _ = geval(*A, "-l", "--format", "csv")[1].splitlines()
    assert (head, second[:7]) == ("line,score,loss,1,expected,output", "2,0.2,,")
    status, out, _ = geval("-t", "dev-0", "-o", "out-b.tsv", "-w")
    assert (status, out[:6]) == (0, "exp:it")
    # No single line has an NMI: GEval 1.42.2 takes the first output.
    assert scores("-a", "NMI", "-l") == ["NaN"] * 3
    assert scores("-a", "NMI", "-w") == []
    assert scores("-a", "NMI", "--oracle-item-based", "--alt-out-file", "out-b.tsv")[0] == "the dog"


def test_sacrebleus_signature_stands_beside_ours(challenge, geval):
    _, out, _ = geval(*A, "-a", "chrF", "-a", "WER", "--format", "json")
    (output,) = json.loads(out)["outputs"]
    theirs = f"nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}"
    assert [metric.get("signature") for metric in output["metrics"]] == [theirs, None]
    assert output["signature"].endswith("|library:" + theirs.replace("|", ";"))


def test_charmatch_needs_the_input_which_is_part_of_its_signature(challenge):
    words = {"test": "dev-0", "output": "out-a.tsv", "metric": "CharMatch"}
    first = geval_py.evaluate(str(challenge), **words).signature
    (challenge / "dev-0/in.tsv").write_text("a\nb\nc\n")
    assert geval_py.evaluate(str(challenge), **words).signature != first
    (challenge / "dev-0/in.tsv").unlink()
    sentence = f"No file with the input: `{challenge}/dev-0/in.tsv`\n  CharMatch compares its lines with the answers"
    pair = (challenge / "dev-0/out-a.tsv", challenge / "dev-0/expected.tsv")
    for score in (
        partial(geval_py.evaluate, challenge, **words),
        partial(geval_py.score_file, *pair, metric="CharMatch"),
    ):
        with refused(sentence, MissingFileError):
            score()


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Lines that differ in one word, and in what a tokenizer makes of commas."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric BLEU --metric WER --precision 6 --tokenizer 13a\n")
    (tmp_path / "dev-0/in.tsv").write_text("Ja, es regnet, sagte er.\n")
    (tmp_path / "dev-0/expected.tsv").write_text("Yes, it rains, she said.\tIt rains.\n")
    (tmp_path / "dev-0/out.tsv").write_text("Yes, it rains, he said.\n")
    return tmp_path


# Of 8 tokens, "Yes , it rains , he said .", 7 are right, of their pairs 5 of 7, of triples 3 of 6, of fours 2 of 5: a
# BLEU of (1/8)^(1/4). WER knows one answer alone, of 11 words with its TAB: GEval 1.42.2 tokenises each field of a line
# (tokenizeTabSeparatedWithSpaces in src/Text/Tokenizer.hs, called by gesPreprocess in src/GEval/Core.hs).
TOKENISED = "BLEU\t0.594604\nWER\t0.363636\n"


def test_a_tokenizer_in_the_challenge_splits_lines_before_they_are_scored(said, geval):
    assert geval("-t", "dev-0") == (0, TOKENISED, "")
    assert geval_py.evaluate(str(said), "dev-0").score == 0.125**0.25
    (said / "config.txt").write_text("--metric BLEU --metric WER --precision 6\n")
    assert geval("-t", "dev-0")[1] == "BLEU\t0.000000\nWER\t0.428571\n"
    assert geval("-t", "dev-0", "-T", "13a")[1] == TOKENISED
    pair = (said / "dev-0/out.tsv", said / "dev-0/expected.tsv")
    assert geval_py.score_file(*pair, metric="BLEU", tokenizer="13a").score == 0.125**0.25
    with pytest.raises(UsageError, match="Unknown tokenizer: 13b"):
        geval_py.score_file(*pair, metric="BLEU", tokenizer="13b")


def test_a_tokenizer_comes_behind_flags(said, geval):
    assert geval("-t", "dev-0", "-a", r"BLEU:s<\bs?he\b><they>")[1] == "1.000000\n"
    _, out, _ = geval("-t", "dev-0", "-a", "WER:l", "-l", "--show-preprocessed")
    assert out.split("\t", 2)[2] == "yes , it rains , she said .<tab>it rains .\tyes , it rains , he said .\n"


def test_a_tokenizer_is_part_of_the_signature(said, geval):
    with_tokens = geval_py.evaluate(str(said), "dev-0")
    assert "|tokenizer:13a" in str(with_tokens.signature)
    (said / "config.txt").write_text("--metric BLEU --metric WER\n")
    without = geval_py.evaluate(str(said), "dev-0")
    assert "tokenizer" not in str(without.signature)
    with pytest.raises(UsageError, match="were scored with different metrics"):
        geval_py.compare([with_tokens, without])


@pytest.mark.slow
def test_threads_change_nothing(challenge, geval):
    long = "long" * 250
    lines = "".join(f"word{n % 7} {long}{n % 5} the end\n" for n in range(2500))
    assert len(lines) > BLOCK_BYTES
    (challenge / "dev-0/expected.tsv").write_text(lines)
    (challenge / "dev-0/out-a.tsv").write_text(lines.replace("word3", "x"))
    scores = {geval(*A, "-a", "BLEU", "-a", "SacreBLEU", "--threads", threads)[1] for threads in ("1", "2")}
    assert len(scores) == 1
