"""ARPA files: what is read, and what is wrong with one, to the letter."""

import lzma

import numpy as np
import pytest
from raising import refused

from geval_py.errors import MalformedLineError, ModelError
from geval_py.modelling.arpa import read_arpa
from geval_py.modelling.ngram_model import NgramModel

GOOD = """\
made by hand

\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1\t<unk>
0\t<s>\t-0.3
-0.5\t</s>
-0.4\ta\t-0.2

\\2-grams:
-0.1\t<s> a
-0.2\ta </s>

\\end\\
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "m.arpa").write_text(text, newline="")
        return read_arpa(str(tmp_path / "m.arpa"))

    return read


def test_rows_with_and_without_backoff(read):
    model = read(GOOD)
    assert [len(level) for level in model.levels] == [4, 2]
    assert model.levels[0].log_backoffs.tolist() == [0, -0.3, 0, -0.2]
    score = NgramModel(model).score_texts(["a", "b"])
    assert score.logs.tolist() == pytest.approx([-0.1 - 0.2, -0.3 - 1 - 0.5])
    assert score.known_logs.tolist() == pytest.approx([-0.3, -0.5])
    assert (score.oov.tolist(), score.tokens.tolist()) == ([0, 1], [2, 2])


def test_line_ends_of_windows_and_compression(read, tmp_path):
    wanted = read(GOOD).levels[1].log_probabilities
    assert np.array_equal(read(GOOD.replace("\n", "\r\n")).levels[1].log_probabilities, wanted)
    (tmp_path / "m.arpa.xz").write_bytes(lzma.compress(GOOD.encode()))
    assert np.array_equal(read_arpa(str(tmp_path / "m.arpa.xz")).levels[1].log_probabilities, wanted)


def test_minus_99_is_zero(read):
    model = read(GOOD.replace("0\t<s>\t-0.3", "-99\t<s>\t-99"))
    assert model.levels[0].log_probabilities[1] == model.levels[0].log_backoffs[1] == -np.inf


def test_a_model_without_unk_has_the_log_probability_of_kenlm(read):
    model = read(GOOD.replace("-1\t<unk>\n", "").replace("1=4", "1=3"))
    assert model.levels[0].log_probabilities[0] == -100
    assert model.missing == {b"<unk>"}
    score = NgramModel(model).score_texts(["a", "b"])
    assert score.logs.tolist() == pytest.approx([-0.1 - 0.2, -0.3 - 100 - 0.5])
    assert score.oov.tolist() == [0, 1]


def test_unk_in_capitals_is_unk(read):
    """As in KenLM's lm/vocab.cc."""
    text = GOOD.replace("<s> a", "<s> <unk>")
    small = read(text)
    capitals = read(text.replace("<unk>", "<UNK>"))
    assert capitals.words == small.words == [b"<unk>", b"<s>", b"</s>", b"a"]
    assert capitals.missing == frozenset()
    scores = [NgramModel(model).score_texts(["<UNK>", "<unk> b"]) for model in (small, capitals)]
    assert scores[0].logs.tolist() == scores[1].logs.tolist() == pytest.approx([-0.1 - 0.5, -0.1 - 1 - 0.5])
    assert scores[1].oov.tolist() == [1, 2]
    both = read(GOOD.replace("-1\t<unk>\n", "-1\t<unk>\n-0.7\t<UNK>\n").replace("1=4", "1=5"))  # the last row stands
    assert (both.words, both.levels[0].log_probabilities[0]) == (small.words, -0.7)


def test_a_model_without_marks_scores_texts_without(read, tmp_path):
    model = read("\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t<unk>\n-0.5\ta\n\n\\end\\\n")
    with refused(
        "the model has no </s> and <s>\n  it was made without the marks of sentences: score without them, too "
        f"(--no-sentence-marks, in Python bos=False, eos=False)\n  in `{tmp_path}/m.arpa`",
        ModelError,
    ):
        NgramModel(model).score_texts(["a"])
    assert NgramModel(model).score_texts(["a"], bos=False, eos=False).logs.tolist() == [-0.5]
    assert NgramModel(model).next_words("a", 1, bos=False) == {"a": 10**-0.5}
    with pytest.raises(ModelError, match=r"^the model has no <s>\n"):
        NgramModel(model).next_words("a", bos=True)
    assert NgramModel(model).next_words("a", 1) == {"a": 10**-0.5}
    assert NgramModel(model).surprisals("a") == NgramModel(model).surprisals("a", bos=False)


UNIGRAM = "log10 probability TAB 1 word with spaces between [TAB log10 back-off]"
BIGRAM = UNIGRAM.replace("1 word", "2 words")
LOGS = "expected a log10 probability, which is 0 or less, and perhaps a log10 back-off"
THREE = "2=2\nngram 3=1\n" + GOOD.partition("2=2\n")[2].replace("\\end", "\\3-grams:\n-0.1\ta a a\n\n\\end")
LINES = {
    "count": (("ngram 2=2", "ngram 3=2"), 5, "\\data\\", "expected ngram 2=COUNT or \\1-grams:"),
    "no counts": (("ngram 1=4\nngram 2=2\n", ""), 5, "\\data\\", "expected ngram 1=COUNT"),
    "number": (("-0.5\t</s>", "x\t</s>"), 10, "\\1-grams:", LOGS),
    "NaN": (("-0.4\ta\t-0.2", "-0.4\ta\tnan"), 11, "\\1-grams:", LOGS),
    "infinity": (("-0.4\ta\t-0.2", "-0.4\ta\tinf"), 11, "\\1-grams:", LOGS),
    "positive": (("-0.5\t</s>", "0.5\t</s>"), 10, "\\1-grams:", LOGS),
    "no TAB": (("-0.5\t</s>", "-0.5 </s>"), 10, "\\1-grams:", f"expected 2 more of: {UNIGRAM}"),
    "words": (("<s> a", "a"), 14, "\\2-grams:", f"expected 2 more of: {BIGRAM}"),
    "spaces": (("<s> a", "<s>  a"), 14, "\\2-grams:", f"expected 2 more of: {BIGRAM}"),
    "too few rows": (("-0.2\ta </s>\n", ""), 15, "\\2-grams:", f"expected 1 more of: {BIGRAM}"),
    "too many rows": (("ngram 2=2", "ngram 2=1"), 15, "\\2-grams:", "expected \\end\\"),
    "the end of the file": ((GOOD[GOOD.index("-0.1\t") :], ""), 14, "\\2-grams:", f"expected 2 more of: {BIGRAM}"),
    "no end": (("\\end\\\n", ""), 17, "\\2-grams:", "expected \\end\\"),
    "no section": (("\\2-grams:", "\\3-grams:"), 13, "\\1-grams:", "expected \\2-grams:"),
    "unknown word": (("<s> a", "<s> b"), 14, "\\2-grams:", "`b` is no 1-gram"),
    "a word twice": (("</s>\n", "a\n"), 11, "\\1-grams:", "it occurs twice"),
    "an n-gram twice": (("a </s>", "<s> a"), 15, "\\2-grams:", "it occurs twice"),
    "sums": (("-0.5\t</s>", "0\t</s>"), 8, "\\1-grams:", "the probabilities sum to 1.49811, which is above 1"),
    "sums behind": (("-0.2\ta </s>", "-0.2\t<s> </s>"), 15, "\\2-grams:",
     "the probabilities behind its context sum to 1.42529, which is above 1"),
    "no context": (("2=2\n" + GOOD.partition("2=2\n")[2], THREE), 19, "\\3-grams:",
     "its first 2 words are no 2-gram of the model"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "line", "section", "cause"), LINES.values(), ids=LINES)
def test_a_wrong_line(change, line, section, cause, read):
    with pytest.raises(MalformedLineError) as caught:
        read(GOOD.replace(*change, 1))
    error = caught.value
    assert (error.line, error.reason, error.hint) == (line, section, cause)
    assert error.text in GOOD.replace(*change, 1)


MODELS = {
    "none": ((GOOD, "text\n"), "This is no ARPA file: it has no line \\data\\"),
    "binary": ((GOOD, "mmap lm http://kheafield.com/code format version 5\n"),
     "This is a binary model of KenLM\n  take the ARPA file that it was made from"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), MODELS.values(), ids=MODELS)
def test_not_a_model(change, message, read, tmp_path):
    with refused(f"{message}\n  in `{tmp_path}/m.arpa`", ModelError):
        read(GOOD.replace(*change, 1))
