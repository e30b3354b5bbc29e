"""The probabilities of words by language models over tokens, against all ways to spell them."""

import math
from itertools import pairwise, product

import pytest
from raising import refused
from tiny_models import PIECES, Markov, word_probability

from geval_py import UsageError, predict
from geval_py.errors import ModelError
from geval_py.modelling import baselines, predicting, word_search
from geval_py.modelling.word_search import WHITE, TokenContext, WordSearch
from geval_py.reading.items import Item

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]


@pytest.fixture(autouse=True)
def _no_rest_is_kept_free(monkeypatch):
    """So that probabilities that sum to 1 are as they are."""
    monkeypatch.setattr(baselines, "MIN_REST", 0.0)


def found(model, left, count=60, **settings):
    return WordSearch(model, count, **settings).words(left)


@pytest.mark.slow
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
    monkeypatch.setattr(word_search, "is_listable", bool)
    texts = [text for text in PIECES if text not in (b"\xc3", b"\xa9")]
    shares = found(Markov(seed, texts, going_on=0.02), "ab a", count=10**6)
    assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-5)


def test_broken_letters_are_no_words():
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


def test_a_tokenizer_may_put_a_space_before_a_text():
    """As SentencePiece does: the words behind the first one are spelt as without it."""

    class Spaced(Markov):
        def encode(self, text):
            return super().encode(f" {text}" if text else "")

    spaced, plain = (WordSearch(kind(0), 1).surprisals(["a", "b", "ab", "ba", "a"]) for kind in (Spaced, Markov))
    assert spaced[2:] == pytest.approx(plain[2:], rel=1e-9)


def test_a_no_break_space_is_in_a_word():
    model = Markov(0, [*PIECES, "\xa0".encode()])
    assert [len(bits) for bits in WordSearch(model, 1).text_surprisals(["a\xa0b ab", ""])] == [2, 0]


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


def lines(model, items):
    return list(predicting.lines_of(WordSearch(model, 300, right=5), items))


NO_SPACE = (
    "no token of the model begins with a space, so none begins a word\n"
    "  is its tokenizer that of another model, or are the tokenizer's files missing?"
)
NO_WORD = (
    "the model lists no word in the first {}\n"
    "  check that the tokenizer belongs to the model, and that spaces separate the words of the text"
)


@pytest.mark.parametrize(("texts", "size", "message"), [
    ((b"", b"a", b"b", b"\n"), 5, NO_SPACE), ((b"", b"\n", b"a", b" \xc3"), 5, NO_WORD.format("3 gaps")),
    ((b"", b"\n", b"a", b" \xc3"), 1, NO_WORD.format("1 gap")),
])  # fmt: skip
def test_a_model_without_words_is_an_error(texts, size, message):
    items = [Item(line + 1, {"left": "a", "right": "a"}, None) for line in range(size)]
    with refused(message, ModelError):
        lines(Markov(0, texts, going_on=1e-9), items)
    if size == 5:  # a run that goes on has listed words already
        broken = Markov(0, (b"", b"\n", b"a", b" \xc3"), going_on=1e-9)
        assert lines(broken, items[1:]) == [":1"] * 4


class Words:
    def __init__(self, answers):
        self.answers = answers

    def words(self, left, right, candidates):
        return self.answers.pop(0)


@pytest.mark.parametrize(("model", "train", "message"), [
    (5, [], "int is no WordModel: it lacks fit, words"), (Words([]), [], "Words is no WordModel: it lacks fit"),
    (type("Learner", (), {"fit": None})(), [], "Learner is no WordModel: it lacks words"),
    (Words, None, "Words is a class: give an instance of it"),
    (Words([{}, {"the": 2}]), None,
        "Words.words, item 2: the probability of 'the' is 2.0, which is not between 0 and 1"),
])  # fmt: skip
def test_models_that_lack_what_they_need(model, train, message):
    items = [Item(line, {"left": "a", "right": "b"}, None) for line in (1, 2)]
    with pytest.raises(ModelError) as caught:
        list(predict(model, items, train=train))
    assert str(caught.value).partition("\n")[0] == message
    with pytest.raises(UsageError, match=r"^candidates are words of the items to learn from: give train=…$"):
        predict(model, items, candidates=5)
