"""Language models so small that all words' probabilities are known, and these probabilities, by another method."""

import re
from functools import cache

import numpy as np

from geval_py.modelling.word_search import WHITE, NextTokens, TokenModel

# One token can be a space, a piece of a word, the end of one word with the beginning of another, or a line end.
PIECES = (
    b"", b" a", b" ab", b" ", b"a", b"b", b"ab", b"ba", b"\n", b".", b" c", b"c", b"c d", b"d", "é".encode(), b"\xc3", b"\xa9",
)  # fmt: skip
ENDS = frozenset({0})


class Markov(TokenModel):
    """Tokens that depend on the token before them, by a table drawn at random."""

    def __init__(self, seed=0, texts=PIECES, going_on=0.06):
        self.texts, self.ends = list(texts), ENDS
        self._numbers = {text: number for number, text in reversed([*enumerate(texts)])}
        self._piece = re.compile(b"|".join(map(re.escape, sorted(filter(None, texts), key=len, reverse=True))))
        draws = np.random.default_rng(seed).gamma(0.7, size=(len(texts), len(texts))) + 1e-3
        inside = np.array([text[:1] not in (b"", *(character.encode() for character in WHITE)) for text in texts])
        draws[:, inside] *= going_on  # words are short
        self.table = draws / draws.sum(axis=1, keepdims=True)

    def encode(self, text):
        """Divide a text into the longest tokens from left to right, behind the token that begins texts."""
        pieces = self._piece.findall(text.encode())
        assert b"".join(pieces) == text.encode()
        return [0, *map(self._numbers.__getitem__, pieces)]

    def next_tokens(self, prefix, continuations):
        return [NextTokens(None, self.table[[*prefix, *tokens][-1]]) for tokens in continuations]

    def log_probabilities(self, prefix, continuations):
        return [
            np.log([self.table[last, token] for last, token in zip([prefix[-1], *tokens], tokens, strict=False)])
            for tokens in continuations
        ]


def word_probability(model, left, leads, word, after=""):
    """Return the probability of a word behind a text, and behind one of the ``leads``, if a word follows."""
    ends = (WHITE + after).encode()
    start = model.encode(left)[-1]
    return sum(spelt(model, start, lead + word, ends) for lead in leads) / follows(model, start, leads, ends)


def spelt(model, start, word, ends):
    """Return the probability of a text and its end behind a token: a sum over all ways to divide it into tokens."""
    text = word.encode()

    @cache
    def behind(place, last):
        total = 0.0
        for token, piece in enumerate(model.texts):
            share = model.table[last, token]
            rest = text[place:]
            if not rest:
                total += share * (token in model.ends or (piece != b"" and piece[0] in ends))
            elif piece and rest.startswith(piece):
                total += share * behind(place + len(piece), token)
            elif piece.startswith(rest):
                total += share * (piece[len(rest)] in ends)
        return total

    return behind(0, start)


def follows(model, start, leads, ends):
    """Return the probability that behind a token comes one of the leads, and then a character that ends no word."""
    white = np.array([token in model.ends or piece[0] in ends for token, piece in enumerate(model.texts)])
    total = 0.0
    for token, piece in enumerate(model.texts):
        share = model.table[start, token]
        if piece == b" ":
            total += (" " in leads) * share * (1 - model.table[token][white].sum())
        elif piece[:1] == b" ":
            total += (" " in leads) * share * (piece[1] not in ends)
        else:
            total += ("" in leads) * share * (not white[token])
    return total
