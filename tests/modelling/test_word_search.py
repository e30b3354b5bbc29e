"""The probabilities of words by language models over tokens, against all ways to spell them."""

import math
from itertools import product

import pytest
from tiny_models import PIECES, Markov, word_probability

from geval_py.modelling import word_search
from geval_py.modelling.word_search import TokenContext, WordSearch

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
    gap = TokenContext(model, left)
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


def test_a_right_context_takes_as_many_tokens_behind_each_word():
    model = Markov(0)
    gap = TokenContext(model, "ab")
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
    assert max(asked) <= word_search.MAX_BEHIND + word_search.MAX_WORD_LENGTH + 1


def test_a_long_context_is_cut():
    gap = TokenContext(Markov(0), "a " * 3000 + "b")
    assert len(gap.prefix) == word_search.MAX_CONTEXT + 1
    assert gap.tokens_of("a") == (1,)
