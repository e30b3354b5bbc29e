"""The probabilities of words by language models over tokens, against all ways to spell them."""

import math
import re
import subprocess
import sys
from itertools import pairwise, product

import numpy as np
import pytest
from tiny_models import PIECES, Markov, word_probability

from geval_py import UsageError, predict
from geval_py.errors import ModelError
from geval_py.modelling import predicting, word_search
from geval_py.modelling.word_search import WHITE, CheckedModel, NextTokens, TokenContext, WordSearch
from geval_py.reading.items import Item

SEEDS = range(3)


def found(model, left, count=60, **settings):
    return WordSearch(model, count, **settings).words(left)


@pytest.mark.parametrize("left", ["ab a", "", "a\n", "b. ", "c"])
@pytest.mark.parametrize("seed", SEEDS)
def test_words_have_the_probability_of_all_their_spellings(seed, left):
    model = Markov(seed)
    shares = found(model, left, count=10**6)
    leads = ("", " ") if not left or left.endswith("\n") else (" ",)
    for word in list(shares)[:100]:
        assert shares[word] == pytest.approx(
            word_probability(model, left.rstrip(" "), leads, word), rel=1e-6, abs=1e-7
        )
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert math.fsum(shares.values()) <= 1 + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_no_word_is_likelier_than_those_found(seed):
    """All words of at most four letters are tried; a few steps find the likeliest, and nearly all of their mass."""
    model = Markov(seed)
    shares = found(model, "ab a", count=20)
    words = {"".join(letters) for length in range(1, 5) for letters in product("abcd.é", repeat=length)}
    exact = {word: word_probability(model, "ab a", (" ",), word) for word in words}
    best = sorted(exact, key=lambda word: -exact[word])[:20]
    assert set(shares) >= set(best[:15])
    for word in best[:15]:
        assert 0.85 * exact[word] < shares[word] < exact[word] * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_words_have_all_of_the_probability(seed, monkeypatch):
    """What is left is that of broken letters, which alone make no text."""
    monkeypatch.setattr(word_search, "is_listable", bool)
    texts = [text for text in PIECES if text not in (b"\xc3", b"\xa9")]
    shares = found(Markov(seed, texts, going_on=0.02), "ab a", count=10**6)
    assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-5)


def test_broken_letters_are_no_words():
    """Half of a letter in UTF-8 makes no word: its probability is the rest's."""
    shares = found(Markov(1, (b"", b" ", b"a", b"\xc3")), "a")
    assert set("".join(shares)) == {"a"}
    assert math.fsum(shares.values()) < 0.99


def test_punctuation_ends_words_where_it_is_no_part_of_them():
    model = Markov(3)
    shares = found(model, "ab a", after=".", count=10**6)
    assert not any("." in word for word in shares)
    for word, share in list(shares.items())[:100]:
        assert share == pytest.approx(word_probability(model, "ab a", (" ",), word, after="."), rel=1e-6, abs=1e-7)


CHINESE = ("", "中", "国", "中国", "人", "民", "，", "\n")


@pytest.mark.parametrize("seed", range(3))
def test_without_spaces_a_word_is_the_longest_of_train(seed):
    """By all texts of three tokens: which of the words is the longest that begins one, token by token."""
    model = Markov(seed, [text.encode() for text in CHINESE], going_on=1)
    left, lexicon = "人民", ["中", "中国", "中国人", "人", "人民国", "民"]
    spelt = {tuple(model.encode(word)[1:]): word for word in lexicon}
    expected = dict.fromkeys(lexicon, 0.0)
    for tokens in product(range(len(CHINESE)), repeat=3):
        share = math.prod(model.table[last, token] for last, token in pairwise((model.encode(left)[-1], *tokens)))
        sizes = [size for size in (1, 2, 3) if tokens[:size] in spelt]
        if sizes:
            expected[spelt[tokens[: max(sizes)]]] += share
    assert WordSearch(model, 10, lexicon=lexicon).words(left) == pytest.approx(expected)
    assert expected["中国"] > expected["中国人"] > 0


def test_the_words_of_a_text_without_spaces_are_answers_of_train():
    model = Markov(1, [text.encode() for text in CHINESE], going_on=1)
    columns = {"LeftContext": "人民中国人民，" * 3, "RightContext": "，中国人民" * 3}
    train = [Item(1, columns, answer) for answer in ["中国", "人", "中国", "民"]]
    (line,) = predict(model, [Item(1, columns, None)], train=train)
    assert sorted(pair.partition(":")[0] for pair in line.split()) == ["", "中国", "人", "民"]
    gaps = predicting.GapWords(model, predicting.Asked())
    gaps.fit(train)
    assert list(gaps.notes(train[0])) == [
        "the contexts have no spaces between words: a word is one of the 1,000 most frequent answers of train"
    ]
    (judged,) = predict(model, [Item(1, columns, None)], train=train, right=3)
    assert judged != line
    both = WordSearch(model, 9, right=3, lexicon=["中国", "人"]).words("人民", "，中国人民")
    logs = {word: model.log_probabilities(model.encode("人民"), [tuple(model.encode(f"{word}，中国人")[1:])])[0].sum()
            for word in both}  # fmt: skip
    assert both["中国"] / both["人"] == pytest.approx(math.exp(logs["中国"] - logs["人"]))


def test_candidates_are_tried_as_well():
    """A word too unlikely to be found, of which there is one spelling."""
    model = Markov(2)
    word = "d" * 8
    assert word not in found(model, "ab a", count=500)
    shares = WordSearch(model, 500).words("ab a", "", [word])
    assert shares[word] == pytest.approx(word_probability(model, "ab a", (" ",), word), rel=1e-6, abs=0)
    assert math.fsum(shares.values()) <= 1 + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_right_context_weighs_words_by_its_probability(seed, monkeypatch):
    """By Bayes' rule, over the words that are listed; those that are not tried share what the less likely ones have."""
    model = Markov(seed)
    left = "ab a"
    before = found(model, left, count=40)
    monkeypatch.setattr(word_search, "RESCORED", 40)
    after = WordSearch(model, 40, right=2).words(left, "c ab")
    gap = TokenContext(CheckedModel(model), left)
    weights = {}
    for word in before:
        tokens = gap.tokens_behind([word], " c ab", 2)[0]
        weights[word] = math.exp(model.log_probabilities(gap.prefix, [tokens])[0].sum())
    judges = list(before)[20:]
    fit = math.fsum(map(weights.__getitem__, judges)) / math.fsum(map(before.__getitem__, judges))
    total = math.fsum(weights.values()) + fit * (1 - math.fsum(before.values()))
    tried = {word: share for word, share in after.items() if word in weights}
    assert tried == pytest.approx({word: weights[word] / total for word in tried})
    assert 0 < math.fsum(after.values()) < 1


def surprisal(model, before, word):
    """Return the surprisal of a word behind other words, each of which is spelt by itself."""
    spaced = [" " * (place > 0) + one for place, one in enumerate([*before, word])]
    path = [*([0] + [model.encode(one)[-1] for one in spaced[:-1]])[-1:], *model.encode(spaced[-1])[1:]]
    white = [text[:1].decode(errors="replace") in WHITE for text in model.texts]  # the end of the text, too
    begins = [
        not text or (text[:1] == b" " and (text == b" " or text[1:2] != b" ")) or (not before and not flag)
        for text, flag in zip(model.texts, white, strict=True)
    ]
    share = math.prod(model.table[pair] for pair in pairwise(path)) * model.table[path[-1]][white].sum()
    return -math.log2(share / model.table[path[0]][begins].sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("words", ["ab a c.d é ba", "c d ab", "b", ""])
def test_surprisals_of_a_text_are_those_of_its_words(seed, words):
    """In one window or in many, also where a token has parts of two words."""
    words, short = words.split() * 7, Markov(seed)
    expected = [surprisal(short, words[:place], word) for place, word in enumerate(words)]
    assert WordSearch(Markov(seed), 1).surprisals(words) == pytest.approx(expected, rel=1e-9)
    short.max_context = 4
    assert WordSearch(short, 1).surprisals(words) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_tokenizer_may_put_a_space_before_a_text(seed):
    """As SentencePiece does: the words behind the first one are spelt as without it."""

    class Spaced(Markov):
        def encode(self, text):
            return super().encode(f" {text}") if text else super().encode(text)

    words = ["a", "b", "ab", "ba", "a"]
    spaced, plain = (WordSearch(kind(seed), 1).surprisals(words) for kind in (Spaced, Markov))
    assert spaced[2:] == pytest.approx(plain[2:], rel=1e-9)


def test_a_right_context_takes_as_many_tokens_behind_each_word():
    model = Markov(0)
    gap = TokenContext(CheckedModel(model), "ab")
    for tokens, word in zip(gap.tokens_behind(["a", "abab", "b"], " a\nb c", 3), ("a", "abab", "b"), strict=True):
        assert b"".join(model.texts[token] for token in tokens).startswith(f" {word} a\nb".encode())


def test_what_is_long_is_cut():
    """No text of a challenge makes more tokens than a model can take at once."""
    asked = []

    class Watched(Markov):
        def log_probabilities(self, prefix, continuations):
            asked.extend(map(len, continuations))
            return super().log_probabilities(prefix, continuations)

    assert WordSearch(Watched(0), 10, right=10_000).words("a", "ab" * 50_000 + " a" * 50_000, ["b" * 5000, "ab"])
    assert max(asked) <= word_search.MAX_CONTEXT // 2 + word_search.MAX_WORD_LENGTH + 1


def test_a_model_that_takes_few_tokens_gets_no_more():
    class Short(Markov):
        max_context = 12

        def next_tokens(self, prefix, continuations):
            assert all(len(prefix) + len(tokens) <= 24 for tokens in continuations)
            return super().next_tokens(prefix, continuations)

        def log_probabilities(self, prefix, continuations):
            assert all(len(prefix) + len(tokens) <= 24 for tokens in continuations)
            return super().log_probabilities(prefix, continuations)

    shares = WordSearch(Short(0, going_on=1), 300, right=50).words("a " * 100, "b " * 100, ["ab" * 20, "d", "d" * 40])
    assert math.fsum(shares.values()) > 0.5


def test_a_long_context_is_cut():
    gap = TokenContext(CheckedModel(Markov(0)), "a " * 3000 + "b")
    assert len(gap.prefix) == word_search.MAX_CONTEXT
    assert gap.tokens_of("a") == (1,)


NO_SPACE = (
    "no token of the model begins with a space, so none begins a word\n"
    "  is its tokenizer that of another model, or are the tokenizer's files missing?"
)
NO_WORD = (
    "the model lists no word in the first {}\n"
    "  are its tokenizer and its weights of one model, and do spaces separate the words of the text?"
)


@pytest.mark.parametrize(
    ("texts", "size", "message"),
    [
        ((b"", b"a", b"b", b"\n"), 5, NO_SPACE),
        ((b"", b"\n", b"a", b" \xc3"), 5, NO_WORD.format("3 gaps")),
        ((b"", b"\n", b"a", b" \xc3"), 1, NO_WORD.format("1 gap")),
    ],
)
def test_a_model_without_words_is_an_error(texts, size, message):
    items = [Item(line + 1, {"left": "a", "right": "a"}, None) for line in range(size)]
    with pytest.raises(ModelError) as caught:
        list(predict(Markov(0, texts, going_on=1e-9), items, right=5))
    assert str(caught.value) == message
    if size == 5:  # a run that goes on has listed words already
        assert list(predict(Markov(0, (b"", b"\n", b"a", b" \xc3"), going_on=1e-9), items[1:], right=5)) == [":1"] * 4


def test_a_no_break_space_is_in_a_word():
    model = Markov(0, [*PIECES, "\xa0".encode()])
    assert len(predicting.NextWords(model).surprisals("a\xa0b ab")) == 2


# What a user's model returns


def answering(**members):
    """Return a model with some members of its own."""
    return type("Mine", (Markov,), members)(3)


def next_tokens(answer):
    return {"next_tokens": lambda self, prefix, continuations: [answer] * len(continuations)}


def log_probabilities(*answer):
    return {"log_probabilities": lambda self, prefix, continuations: [*answer]}


EVEN = np.full(len(PIECES), 1 / len(PIECES))
FAULTS = {
    "next_tokens returned None, which has no answers": {"next_tokens": lambda *_: None},
    "next_tokens has the answer 5, which is no NextTokens": next_tokens(5),
    "next_tokens has an array of the shape (2,), not (17,)": next_tokens(NextTokens(None, EVEN[:2])),
    "next_tokens has an array of the shape (17,), not (1,)": next_tokens(NextTokens(np.array([1]), EVEN)),
    "next_tokens has probabilities from 0.117647 that sum to 2": next_tokens(NextTokens(None, EVEN * 2)),
    "next_tokens has probabilities from 0.0294118 that sum to 0.5": next_tokens(NextTokens(None, EVEN / 2)),
    "next_tokens has probabilities from -2.83321 that sum to -48.1646": next_tokens(NextTokens(None, np.log(EVEN))),
    "next_tokens has probabilities from nan that sum to nan": next_tokens(NextTokens(None, EVEN * np.nan)),
    "next_tokens has probabilities from 1.5 that sum to 1.5": next_tokens(NextTokens([1], [1.5])),
    "next_tokens has the token 17; the tokens of 17 texts are 0 to 16": next_tokens(NextTokens([17], [1.0])),
    "next_tokens has an answer at fault: numbers are an array of <U1, not of float32 or float64": next_tokens(
        NextTokens([1], ["a"])
    ),
    "log_probabilities has 0 answers to 1 continuation": log_probabilities(),
    "log_probabilities has an array of the shape (), not (8,)": log_probabilities(-1.0),
    "log_probabilities has 0.5, which is no logarithm of a probability": log_probabilities(np.full(8, 0.5)),
    "encode has 'ab', which are no numbers of tokens": {"encode": lambda self, text: "ab"},
    "encode has the token -1; the tokens of 17 texts are 0 to 16": {"encode": lambda self, text: [-1]},
    "ends has the token 99; the tokens of 17 texts are 0 to 16": {"__init__": lambda self, seed: (
        Markov.__init__(self, seed), setattr(self, "ends", {99}))[0]},
    "texts has 'a' in place 1, which is no bytes": {"__init__": lambda self, seed: (
        Markov.__init__(self, seed), self.texts.__setitem__(1, "a"))[0]},
}  # fmt: skip


@pytest.mark.parametrize(("message", "members"), FAULTS.items(), ids=FAULTS)
def test_what_a_model_answers_is_checked(message, members):
    with pytest.raises(ModelError) as caught:
        WordSearch(answering(**members), 10).words("ab a", "", ["d" * 7])
    assert str(caught.value) == f"Mine.{message}"


def test_half_precision_and_listed_tokens_are_answers():
    half = [NextTokens(None, row.astype(np.float16)) for row in Markov(3).table]
    model = answering(next_tokens=lambda self, prefix, after: [half[[*prefix, *tokens][-1]] for tokens in after])
    assert found(model, "ab a", 5) == pytest.approx(found(Markov(3), "ab a", 5), rel=0.01)
    listed = [[np.arange(len(PIECES)), row.tolist()] for row in Markov(3).table]
    model = answering(next_tokens=lambda self, prefix, after: [listed[[*prefix, *tokens][-1]] for tokens in after])
    assert found(model, "ab a", 5) == pytest.approx(found(Markov(3), "ab a", 5))


class Words:
    def __init__(self, answers):
        self.answers = answers

    def predict(self, items):
        return self.answers


@pytest.mark.parametrize(
    ("model", "train", "message"),
    [
        (type("Half", (), {"texts": [], "next_tokens": None})(), None,
            "Half is no TokenModel: it lacks ends, encode, log_probabilities"),
        (5, None, "int is no TokenModel: it lacks texts, ends, encode, next_tokens, log_probabilities"),
        (Words([]), [], "Words is no WordModel: it lacks fit"),
        (type("Learner", (), {"fit": None})(), [], "Learner is no WordModel: it lacks predict"),
        (Words, None, "Words is a class: give an instance of it"),
        (Words(None), None, "Words.predict returned None, which has no answers"),
        (Words([":1", {"the": 2}]), None,
            "Words.predict, answer 2: the probability of 'the' is 2.0, which is not between 0 and 1"),
    ],
)  # fmt: skip
def test_models_that_lack_what_they_need(model, train, message):
    items = [Item(line, {"left": "a", "right": "b"}, None) for line in (1, 2)]
    with pytest.raises(ModelError) as caught:
        list(predict(model, items, train=train))
    assert str(caught.value).partition("\n")[0] == message
    with pytest.raises(UsageError, match=r"^candidates are words of the items to learn from: give train=…$"):
        predict(model, items, candidates=5)


PROGRAM = """
from collections.abc import Iterable, Sequence
import numpy as np
import pandas as pd
from geval_py import Item, Metric, NextTokens, predict

class Model:
    texts = [b"", b"a"]
    ends = frozenset({0})
    def encode(self, text: str) -> list[int]: return [0]
    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[tuple[int, ...]]) -> list[NextTokens]:
        return [NextTokens(None, np.ones(2, np.float32) / 2) for _ in continuations]
    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[tuple[int, ...]]) -> list[LOGS]:
        return []

predict(Model(), [])
metric = Metric("LogLoss", vocabulary={"the": 0, "a": 1})
metric(np.ones((2, 2, 2)), np.ones((2, 2), int), logits=True)
metric.losses(pd.DataFrame([[0.5, 0.5]], columns=["the", "a"]), ["the"])
metric.losses(([[0]], [[1.0]]), ["the"], rest=np.zeros(1))
"""
WRONG = """
predict(5, [])
Metric(5)
metric.predictions({"the": 0.5})
metric(["a:1"], ["a"], first_line=1)
NextTokens(None, ["a"])
"""


@pytest.mark.long
def test_mypy_shows_a_users_mistakes(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM.replace("LOGS", "np.ndarray[tuple[int], np.dtype[np.float32]]"))
    wrong.write_text(PROGRAM.replace("LOGS", "float") + WRONG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file=", right, wrong]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    lines = wrong.read_text().splitlines()
    faults = [
        int(line) for line in re.findall(r"^wrong\.py:(\d+): error", told.replace(f"{tmp_path}/", ""), re.MULTILINE)
    ]
    assert [lines[number - 1] for number in faults] == ["predict(Model(), [])", *WRONG.split("\n")[1:-1]], told
    assert "right.py" not in told
