"""The probabilities of words by a language model over tokens, whatever tokens spell them.

A word is what stands between white space. Behind a text come the space before the word (none where the text is empty
or ends in a line end), the word, and then white space or the text's end. The probability of a word is that of all
this, divided by the probability that a word follows at all. So the probabilities of all words sum to 1, and a word
that others begin with (`the`, `there`) has no more than its own. Pimentel and Meister (2024,
https://aclanthology.org/2024.emnlp-main.1020/) show why the end of a word has to be counted.

The likeliest words are found best first: the likeliest beginnings are continued by a token, many at a time, until no
beginning is as likely as the words that were found.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import ModelError
from geval_py.modelling.baselines import leaving_a_rest, likeliest
from geval_py.modelling.corpus import Doubles, Flags
from geval_py.modelling.texts import line_of
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import is_listable

Tokens: TypeAlias = "tuple[int, ...]"
Beginning: TypeAlias = "tuple[float, Tokens, bytes]"  # of a word: its probability, its tokens, and its text
Floats: TypeAlias = NDArray[np.floating[Any]]
WHITE = " \t\n\v\f\r\0"  # as KenLM splits texts
AT_A_TIME = 64  # beginnings that are continued together; the same for all, since results may depend on it
MAX_STEPS = 3  # beginnings that are continued, as a multiple of the words sought
MIN_SOUGHT = 100  # words, so that the best ones do not depend on how many are wanted
PARTIAL = b"\xff"  # the text of a token that holds a part of a character, if a server does not tell its bytes
MAX_CONTEXT = 512  # tokens before a gap: with a right context, GPT-2 has room for twice as many
MAX_WORD_LENGTH = 100  # characters of a candidate
RESCORED = 100  # of the likeliest words, by the right context
MIN_SHARE = 1e-300  # of a word's probability, before its logarithm is taken
MIN_PROBABILITY = 1e-9  # the probability of a beginning that is not worth continuing
MAX_PASSAGE = 1 << 27  # logarithms of a window, 4 bytes each
PUNCTUATION = ".,;:!?"
MAX_PUNCTUATED = 0.001  # of the answers: where no more end in punctuation, it stands after words
MAX_ANSWERS = 10_000  # of train that are looked at
MIN_JUDGES = 0.5  # the part of the words with a right context by which those without are judged


class NextTokens(NamedTuple):
    """The tokens that may come next and their probabilities. If tokens are left out, the sum is less than 1.

    ``tokens`` are the tokens' numbers, or None for all tokens in order. Both arrays have one dimension and one
    length; probabilities are in [0, 1], of any type of floats.
    """

    tokens: NDArray[np.integer[Any]] | None
    probabilities: Floats


class Expansion(NamedTuple):
    """How the beginning of a word goes on: the probability that it ends, and the likeliest tokens behind it."""

    ended: float
    tokens: NDArray[np.integer[Any]]
    probabilities: Floats


class TokenModel:
    """A causal language model over tokens, which are numbered from 0. The adapters of libraries are derived from it.

    A prefix is what ``encode`` returned, or a part of it, and a continuation is a tuple of tokens after it, possibly
    empty. ``texts`` are the tokens' texts in UTF-8, b"" for special tokens; those of a server may become more.
    ``ends`` are the tokens that end a text.
    """

    texts: list[bytes]
    ends: frozenset[int]
    max_context = MAX_CONTEXT  # tokens before a gap
    expand: Any = None  # as expansion() of next_tokens, but where the model is
    along: Any = None  # as WordSearch._along, in one pass
    infill: Any = None  # encode() of both contexts, for a model that sees both

    def notes(self) -> Iterator[str]:
        """Yield what makes the model's predictions worse or slower than need be."""
        return iter(())

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text from its beginning, after the token that begins texts, if there is one."""
        raise NotImplementedError

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[NextTokens]:
        """Return what comes next after the prefix with each continuation."""
        raise NotImplementedError

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[Doubles]:
        """Return the natural logarithm of the probability of each token of each continuation."""
        raise NotImplementedError


class _Kinds(NamedTuple):
    """What tokens do, by token: begin a word behind a space, begin it or go on with it, end it, end the text.

    Others, which have an end inside, finish a word.
    """

    begin_spaced: Flags
    go_on: Flags
    end: Flags
    stop: Flags
    finish: Flags

    def begin(self, lead: str) -> Flags:
        """Return which tokens begin a word behind a space or, without a ``lead``, a text."""
        return self.begin_spaced if lead else self.begin_spaced | self.go_on


class WordSearch:
    """The likeliest words of gaps by a language model.

    ``count`` words are wanted. With ``right``, so many tokens of the right context judge the likeliest words and the
    candidates, too. The characters ``after`` words end them as white space does: punctuation, where it
    is no part of words.
    """

    def __init__(self, model: TokenModel, count: int, *, right: int = 0, after: str = "") -> None:
        self.model, self._count, self._right = model, count, right
        self._sought = max(count, MIN_SOUGHT)
        self._end_words_at(after)

    def _end_words_at(self, after: str) -> None:
        self._after, self._end = after, re.compile(f"[{re.escape(WHITE + after)}]".encode())
        self._known: _Kinds | None = None

    def fit(self, items: Iterable[Item]) -> None:
        """Learn whether punctuation ends words."""
        _, after = learnt_answers(items)
        self._end_words_at(after)

    def notes(self) -> Iterator[str]:
        """Yield what makes the model's predictions worse or slower than need be."""
        return self.model.notes()

    def words(self, left: str, right: str = "", candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest words behind a text, or between two texts, with their probabilities.

        The likeliest word is the first; ``candidates`` are words to try as well.
        """
        right = right.strip(" ")
        if right and not right.startswith(("\n", *self._after)):
            right = f" {right}"
        gap = TokenContext(self.model, left, right)
        shares, total = self._search(gap)
        more = [word for word in dict.fromkeys(candidates) if word not in shares and 0 < len(word) <= MAX_WORD_LENGTH]
        if more and total > 0:
            spelt = {word: tokens for word in more if len(tokens := gap.tokens_of(word)) <= gap.room}
            more, spellings = list(spelt), list(spelt.values())
            logs = self.model.log_probabilities(gap.prefix, spellings)
            behind = self.model.next_tokens(gap.prefix, spellings)
            end = self._kinds().end
            for word, log, after in zip(more, logs, behind, strict=True):
                shares[word] = math.exp(log.sum()) * _mass(after, end) / total
        shares = {word: share for word, share in shares.items() if share > 0 and is_listable(word)}
        listed = math.fsum(shares.values())
        if listed > 1:  # the candidates' probabilities may be rounded up
            shares = {word: share / listed for word, share in shares.items()}
        if right.strip() and self._right and shares:
            shares = self._with_right(gap, right, shares, max(0.0, 1 - listed), more)
        return leaving_a_rest(likeliest(shares, self._count))

    def surprisals(self, words: Sequence[str]) -> list[float]:
        """Return the surprisal in bits of each word of a text behind the words before it, as the model spells them.

        In the place of a word, the text could have ended, too. A text that is longer than the model takes is computed
        in windows that overlap by half: half a window of tokens or more stands before each later word.
        """
        model, start = self.model, self.model.encode("")
        alone = [model.encode(word)[len(start) :] for word in words[:1]]
        is_spaced = any(model.texts[tokens[0]][:1] == b" " for tokens in alone)  # as SentencePiece begins a text
        later = [model.encode(word if is_spaced else f" {word}")[len(start) :] for word in words[1:]]
        tokens, bounds = [*chain(*alone, *later)], [0, *accumulate(map(len, [*alone, *later]))]
        window = max(2, min(2 * model.max_context - len(start), MAX_PASSAGE // len(model.texts)))
        surprisals: list[float] = []
        while (place := len(surprisals)) < len(words):
            first = max(0, bounds[place] - window // 2)
            stop = max(place + 1, bisect_right(bounds, first + window) - 1)
            logs, masses = self._along(start, tokens[first : bounds[stop]])
            for word in range(place, stop):
                begin, end = bounds[word] - first, bounds[word + 1] - first
                before = max(MIN_PROBABILITY, masses[begin, 1 if word or is_spaced else 2])
                share = math.exp(logs[begin:end].sum()) * masses[end, 0] / before
                surprisals.append(-math.log2(max(share, MIN_SHARE)))
        return surprisals

    def text_surprisals(self, texts: Iterable[str]) -> Iterator[list[float]]:
        """Yield the surprisals of the words of each text, between which is white space of ASCII."""
        for text in texts:
            yield self.surprisals([word.decode(errors="replace") for word in line_of(text).split()])

    def _along(self, prefix: Sequence[int], tokens: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the logarithm of each token's probability, and what follows before each and behind the last.

        A row tells the probabilities that a word ends, that one begins behind a space, and that one begins a text.
        """
        model = self.model
        answers: Sequence[NextTokens] = ()
        if model.along is None:
            (logs,) = model.log_probabilities(prefix, [tuple(tokens)])
            answers = model.next_tokens(prefix, [tuple(tokens[:size]) for size in range(len(tokens) + 1)])
        kinds = self._kinds()
        flags = (kinds.end, kinds.begin_spaced | kinds.stop, kinds.begin("") | kinds.stop)
        if model.along is not None:
            passage: tuple[Floats, Floats] = model.along(prefix, tokens, np.array(flags))
            return passage
        return logs, np.array([[_mass(after, chosen) for chosen in flags] for after in answers])

    def _kinds(self) -> _Kinds:
        """Return the kinds of the model's tokens, which may have become more."""
        texts = self.model.texts
        if self._known is None or len(self._known.stop) != len(texts):
            ended = [self._end.match(text) is not None for text in texts]
            ends = self.model.ends
            stop = np.array([token in ends for token in range(len(texts))], np.bool_)
            self._known = _Kinds(
                begin_spaced=np.array(
                    [text[:1] == b" " and not self._end.match(text, 1) for text in texts], np.bool_
                ),
                go_on=np.array([text not in (b"", PARTIAL) for text in texts], np.bool_) & ~stop & ~np.array(ended),
                end=stop | np.array(ended, np.bool_),
                stop=stop,
                finish=np.array([self._end.search(text.removeprefix(b" ")) is not None for text in texts], np.bool_),
            )
        return self._known

    def _search(self, gap: TokenContext) -> tuple[dict[str, float], float]:
        """Return the words found with their probabilities, and the probability that a word follows."""
        words: defaultdict[bytes, float] = defaultdict(float)
        steps, least, total = MAX_STEPS * self._sought + 1, MIN_PROBABILITY, 0.0
        batch: list[Beginning] = [(1.0, (), b"")]
        parents: list[Beginning] = []  # all that were continued
        pool = np.empty((3, 0))  # beginnings: their probabilities, the likeliest first, their parents and last tokens
        while batch:
            steps -= len(batch)
            if pool.shape[1] >= steps:  # only so many more are continued
                pool = pool[:, :steps]
                least = max(least, float(pool[0, -1])) if steps else 1.0
            answers = self._expand(gap, [tokens for _, tokens, _ in batch], [least / share for share, _, _ in batch])
            texts, finish, columns = self.model.texts, self._kinds().finish, [pool]
            for (share, tokens, text), after in zip(batch, answers, strict=True):
                if not tokens:
                    total = after.ended  # a word begins
                elif text:
                    words[text] += share * after.ended
                else:
                    total -= share * after.ended  # two spaces: no word follows
                shares, inside = share * after.probabilities, finish[after.tokens]
                for token, part in zip(after.tokens[inside].tolist(), shares[inside].tolist(), strict=True):
                    word = self._end.split((text + texts[token]).removeprefix(b" "), 1)[0]
                    if word:
                        words[word] += part
                if len(tokens) < gap.room:
                    parent = np.full(len(shares), len(parents))
                    columns.append(np.array([shares, parent, after.tokens])[:, ~inside])
                parents.append((share, tokens, text))
            if math.isnan(total):
                raise ModelError(
                    message="the model's probabilities are no numbers\n  its weights may need --dtype float32"
                )
            if len(words) >= self._sought:  # none is worth continuing that is not as likely as these
                best = np.partition(np.fromiter(words.values(), np.float64, len(words)), -self._sought)
                least = max(least, float(best[-self._sought]))
            pool = np.concatenate(columns, axis=1)
            pool = pool[:, np.argsort(-pool[0], kind="stable")[:steps]]
            chosen = pool[:, : min(AT_A_TIME, steps)]
            chosen = chosen[:, chosen[0] > least]
            pool, batch = pool[:, chosen.shape[1] :], []
            for share, parent, token in zip(*chosen.tolist(), strict=True):
                _, tokens, text = parents[int(parent)]
                batch.append((share, (*tokens, int(token)), (text + texts[int(token)]).removeprefix(b" ")))
        decoded = ((text.decode(errors="ignore"), text, share) for text, share in words.items())
        return {word: share / total for word, text, share in decoded if word.encode() == text}, total

    def _expand(self, gap: TokenContext, continuations: Sequence[Tokens], least: Sequence[float]) -> list[Expansion]:
        """Return how the gap's text goes on behind beginnings of words, by tokens above the least probabilities.

        Behind the text itself, a word begins.
        """
        most, model, size = 2 * self._sought, self.model, len(self.model.texts)
        answers = model.next_tokens(gap.prefix, continuations) if model.expand is None else ()
        kinds = self._kinds()  # which an answer may add to
        flags = (kinds.begin(gap.lead),) * 2 if continuations == [()] else (kinds.end, kinds.go_on)
        if not flags[1].any() and size == len(model.texts):
            message = "no token of the model begins with a space, so none begins a word"
            cause = "is its tokenizer that of another model, or are the tokenizer's files missing?"
            raise ModelError(message=f"{message}\n  {cause}")
        if model.expand is not None:
            expansions: list[Expansion] = model.expand(gap.prefix, continuations, *flags, least, most)
            return expansions
        return [expansion(after, *flags, share, most) for after, share in zip(answers, least, strict=True)]

    def _with_right(
        self, gap: TokenContext, right: str, shares: dict[str, float], rest: float, candidates: Sequence[str]
    ) -> dict[str, float]:
        """Return probabilities weighed by that of the right context behind each word; the ``rest`` counts as a word.

        The words that are not tried, and the rest, are taken to fit the right context as well as the less likely half
        of those that are.
        """
        tried = dict.fromkeys(likeliest(shares, RESCORED))
        tried |= dict.fromkeys(word for word in candidates if word in shares)
        behind = gap.tokens_behind(tried, right, min(self._right, gap.room))
        logs = np.array([log.sum() for log in self.model.log_probabilities(gap.prefix, behind)])
        joint = np.exp(logs - logs.max())
        left = np.array([shares[word] for word in tried])
        judges = np.argsort(-left, kind="stable")[int(len(tried) * MIN_JUDGES) :]
        fit = float(joint[judges].sum() / left[judges].sum())
        others = {word: share * fit for word, share in shares.items() if word not in tried}
        total = float(joint.sum()) + math.fsum(others.values()) + rest * fit
        weighed = dict(zip(tried, joint.tolist(), strict=True)) | others
        return {word: share / total for word, share in weighed.items()}


class TokenContext:
    """What stands before a word, as tokens; ``lead`` is the space between.

    For a model that sees both contexts, the prefix has the right one, too. A model that takes fewer tokens than
    others has half of their number as its ``max_context``.
    """

    def __init__(self, model: TokenModel, left: str, right: str = "") -> None:
        self._model = model
        stripped = left.rstrip(" \t")
        self.lead = " " if stripped and not stripped.endswith("\n") else ""
        self._left = stripped
        self._whole = model.encode(stripped)
        size, most = len(model.encode("")), model.max_context
        kept = self._whole[:size] + self._whole[size:][-most + size :]
        self.prefix: list[int] = model.infill(stripped, right) if model.infill else kept
        self.room = most // 2  # tokens of a word, and of the right context behind it

    def tokens_of(self, text: str) -> Tokens:
        """Return the tokens of a text behind this one."""
        tokens = self._model.encode(self._left + self.lead + text)
        size = len(self._whole)
        if tokens[:size] == self._whole:
            return tuple(tokens[size:])
        alone = self._model.encode(self.lead + text)  # the text would be spelt otherwise: a rare tokenizer
        return tuple(alone[len(self._model.encode("")) :])

    def tokens_behind(self, words: Iterable[str], right: str, count: int) -> list[Tokens]:
        """Return the tokens of each word and of the beginning of the text behind it, ``count`` tokens or words."""
        (beginning,) = re.findall(rf"\A(?:\s*\S+){{0,{count}}}", right)  # so many words have as many tokens or more
        beginning = beginning[: MAX_WORD_LENGTH * count]
        spellings = []
        for word in words:
            tokens = self.tokens_of(word + beginning)
            size, covered = 0, 0
            while size < len(tokens) and covered < len((self.lead + word).encode()):
                covered += len(self._model.texts[tokens[size]])
                size += 1
            spellings.append(tokens[: size + count][: 2 * self.room])
        return spellings


def learnt_answers(items: Iterable[Item]) -> tuple[list[str], str]:
    """Return answers of items to learn from, and the punctuation that stands after words and not in them."""
    answers = [item.expected or "" for item in islice(items, MAX_ANSWERS)]
    punctuated = sum(len(word) > 1 and word[-1] in PUNCTUATION for word in answers)
    return answers, PUNCTUATION if answers and punctuated <= MAX_PUNCTUATED * len(answers) else ""


def _mass(after: NextTokens, flags: Flags) -> float:
    """Return the share of some tokens among those that are known."""
    tokens, probabilities = after
    chosen = flags if tokens is None else flags[tokens]
    total = float(probabilities.sum())
    return float(probabilities @ chosen.astype(probabilities.dtype)) / total if total > 0 else 0.0


def expansion(after: NextTokens, end: Flags, go_on: Flags, least: float, most: int) -> Expansion:
    """Return the probability of tokens that ``end``, and the likeliest ``most`` that ``go_on``, above the least."""
    tokens, probabilities = after
    chosen = np.flatnonzero(probabilities > least)
    numbers = chosen if tokens is None else tokens[chosen]
    chosen, numbers = chosen[go_on[numbers]], numbers[go_on[numbers]]
    if len(chosen) > most:
        first = np.argsort(-probabilities[chosen], kind="stable")[:most]
        chosen, numbers = chosen[first], numbers[first]
    return Expansion(_mass(after, end), numbers, probabilities[chosen].astype(np.float64))
