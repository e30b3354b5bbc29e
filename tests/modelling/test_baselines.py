"""Baselines: the protocol, the names, and the scores that they reach."""

from pathlib import Path

import pytest
from raising import refused

from geval_py import UsageError, evaluate, predict, write_output
from geval_py.modelling.predicting import MODELS, Options, line_of, open_model
from geval_py.reading.challenge import Challenge
from geval_py.reading.items import Item
from geval_py.reading.outputs import BASELINES

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
TRAIN = [Item(1, {"left": "the big", "right": "barked"}, "dog"), Item(2, {"left": "a big", "right": "sat"}, "cat")]
TEST = [Item(1, {"left": "the big", "right": "sat"}, None), Item(2, {"left": "", "right": ""}, None)]


class Own:
    """A user's own model: two methods."""

    def fit(self, items):
        self.guesses = [item.expected for item in items]

    def words(self, left, right, candidates):
        return dict.fromkeys(self.guesses, 0.25) if left else {}


def test_a_users_own_model():
    assert list(predict(Own(), TEST, train=TRAIN)) == ["dog:0.25 cat:0.25 :0.5", ":1"]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: predict("unigram", TEST), "the baseline `unigram` has to learn from items: give train=…"),
    (lambda: open_model("ngram").words("a", "b", ()), "the model has learnt nothing yet: call fit first"),
    (lambda: predict("bigram", TEST, train=TRAIN), "there is no model `bigram`\n  did you mean unigram? a model is "
     "rest, uniform, unigram, document, ngram, ngram-both, kenlm:FILE, arpa:FILE, gguf:FILE, "
     "hf:NAME-OR-FOLDER, openai:URL#MODEL, chat:URL#MODEL"),
])  # fmt: skip
def test_what_a_model_cannot_do(call, message):
    with refused(message):
        call()


LINES = {
    "rest": ":1",
    "uniform": "big:0.125 the:0.125 dog:0.125 barked:0.125 a:0.125 cat:0.125 sat:0.125 :0.125",
    "unigram": "big:0.0625 the:0.03125 dog:0.03125 barked:0.03125 a:0.03125 cat:0.03125 sat:0.03125 :0.75",
}


@pytest.mark.parametrize(("name", "line"), LINES.items(), ids=LINES)
def test_the_line_of_a_baseline_without_context(name, line):
    assert list(predict(name, TEST, train=TRAIN)) == [line, line]


def test_a_document_gives_the_words_of_its_inputs():
    """Those of the gap's own input count half; each different word adds one to what the rest has."""
    items = [
        Item(1, {"id": "a", "left": "the dog", "right": "sat"}, None),
        Item(2, {"id": "b", "left": "a cat", "right": ""}, None),
        Item(3, {"id": "a", "left": "the", "right": "dog ran dog"}, None),
    ]
    assert list(predict("document", items, train=TRAIN)) == [
        "dog:0.263158 the:0.157895 ran:0.105263 sat:0.0526316 :0.421053", "a:0.166667 cat:0.166667 :0.666667",
        "dog:0.222222 the:0.166667 sat:0.111111 ran:0.0555556 :0.444444",
    ]  # fmt: skip


def test_n_grams_have_an_order():
    lines = [*predict("ngram", TEST, train=TRAIN)]
    unigrams = open_model("ngram", Options(order=1))
    unigrams.fit(TRAIN)
    assert unigrams.words("the big", "sat", ()) == unigrams.words("", "", ())
    bigrams = open_model("ngram", Options(order=2))
    bigrams.fit(TRAIN)
    assert [line_of(bigrams.words(*pair, ())) for pair in (("the big", "sat"), ("", ""))] != lines
    with pytest.raises(UsageError, match=r"`unigram` does not heed --order\n  it is for ngram, ngram-both$"):
        open_model("unigram", Options(order=2))


# What each scores on gazette's dev-0 with 300 words: the order is that of the literature.
def test_the_baselines_are_the_models_that_learn():
    """But for those with a file in their address; reading knows the names of outputs without the models."""
    assert tuple(name for name, model in MODELS.items() if model.learns and name != "kenlm") == BASELINES


GAZETTE_SCORES = {"rest": 1024.00, "uniform": 844.18, "unigram": 278.87, "ngram": 129.71, "ngram-both": 66.22}


@pytest.mark.parametrize(("name", "score"), GAZETTE_SCORES.items(), ids=GAZETTE_SCORES)
def test_scores_on_gazette(name, score, tmp_path):
    challenge = Challenge.open(GAZETTE)
    output = tmp_path / "out.tsv"
    write_output(output, predict(name, challenge["dev-0"], train=challenge["train"]))
    assert evaluate(GAZETTE, "dev-0", output=str(output)).score == pytest.approx(score, abs=0.01)
