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

import heapq
import math
import operator
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import Flags
from geval_py.reading.wordprobs import is_listable
from geval_py.scoring.arrays import numbers_of
from geval_py.tables.numbers import counted
from geval_py.text import shown

Tokens: TypeAlias = "tuple[int, ...]"
Beginning: TypeAlias = "tuple[float, Tokens, bytes]"  # of a word: its probability, its tokens, and its text
Floats: TypeAlias = NDArray[np.floating[Any]]
WHITE = " \t\n\v\f\r\0"  # as KenLM splits texts
AT_A_TIME = 64  # beginnings that are continued together; the same for all, since results may depend on it
MAX_STEPS = 3  # beginnings that are continued, as a multiple of the words wanted
MAX_CONTEXT = 512  # tokens before a gap: with a right context, GPT-2 has room for twice as many
MAX_WORD_LENGTH = 100  # characters of a candidate
RESCORED = 100  # of the likeliest words, by the right context
MIN_SHARE = 1e-300  # of a word's probability, before its logarithm is taken
MIN_PROBABILITY = 1e-9  # the probability of a beginning that is not worth continuing
ROUNDING = 0.01  # by which a sum of probabilities, or the logarithm of one, may be off: half precision has 3 digits
MIN_JUDGES = 0.5  # the part of the words with a right context by which those without are judged


class NextTokens(NamedTuple):
    """The tokens that may come next and their probabilities. If tokens are left out, the sum is less than 1.

    ``tokens`` are the tokens' numbers, or None for all tokens in order. Both arrays have one dimension and one
    length; probabilities are in [0, 1], of any type of floats.
    """

    tokens: NDArray[np.integer[Any]] | None
    probabilities: Floats


@runtime_checkable
class TokenModel(Protocol):
    """A causal language model over tokens, which are numbered from 0. Adapters of libraries implement it.

    A prefix is what ``encode`` returned, or a part of it, and a continuation is a tuple of tokens behind it, possibly
    empty. Arrays are numpy's, of one dimension and any type of floats, or tensors. What the members return is checked
    when it is used: ModelError names the member at fault.
    """

    @property
    def texts(self) -> Sequence[bytes]:
        """The tokens' texts in UTF-8, b"" for special tokens; those of a server may become more."""

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a text."""

    def encode(self, text: str, /) -> list[int]:
        """Return the tokens of a text from its beginning, after the token that begins texts, if there is one."""

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens], /) -> Sequence[NextTokens]:
        """Return what comes next behind the prefix with each continuation, in the order of continuations."""

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens], /) -> Sequence[Floats]:
        """Return the natural logarithm of the probability of each token of each continuation, in [-inf, 0].

        There is an array for each continuation, in their order, as long as the continuation: element i is the token's
        logarithm behind the prefix and the tokens before it. Raises ModelError if the model cannot tell.
        """


class CheckedModel:
    """A TokenModel, whose answers are checked as they come; raises ModelError with the name of the member."""

    def __init__(self, model: TokenModel) -> None:
        self._model, self._checked = model, 0
        self.max_context: int = getattr(model, "max_context", MAX_CONTEXT)

    @property
    def texts(self) -> Sequence[bytes]:
        texts = self._model.texts
        for token in range(self._checked, len(texts)):
            if not isinstance(texts[token], bytes):
                raise self._fault("texts", f"has {shown(texts[token])} in place {token}, which is no bytes")
        self._checked = len(texts)
        return texts

    @property
    def ends(self) -> frozenset[int]:
        return frozenset(self._tokens("ends", self._model.ends))

    def encode(self, text: str, /) -> list[int]:
        return self._tokens("encode", self._model.encode(text))

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens], /) -> Sequence[NextTokens]:
        name, checked = "next_tokens", []
        for answer in self._answers(name, prefix, continuations):
            try:
                tokens, values = answer
            except (TypeError, ValueError):
                raise self._fault(name, f"has the answer {shown(answer)}, which is no NextTokens") from None
            if tokens is not None:
                tokens = np.array(self._tokens(name, tokens), np.int64)
            shares = self._numbers(name, values, len(self.texts if tokens is None else tokens))
            total = float(shares.sum())
            if not (shares >= 0).all() or total > 1 + ROUNDING or (tokens is None and total < 1 - ROUNDING):
                raise self._fault(name, f"has probabilities from {shares.min():.6g} that sum to {total:.6g}")
            checked.append(NextTokens(tokens, shares))
        return checked

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens], /) -> Sequence[Floats]:
        name, checked = "log_probabilities", []
        for answer, tokens in zip(self._answers(name, prefix, continuations), continuations, strict=True):
            logs = self._numbers(name, answer, len(tokens))
            if not (logs <= ROUNDING).all():
                raise self._fault(name, f"has {logs.max():.6g}, which is no logarithm of a probability")
            checked.append(logs)
        return checked

    def _answers(self, name: str, prefix: Sequence[int], continuations: Sequence[Tokens]) -> Sequence[Any]:
        answers: Sequence[Any] = getattr(self._model, name)(prefix, continuations)
        if not hasattr(answers, "__len__"):
            raise self._fault(name, f"returned {shown(answers)}, which has no answers")
        if len(answers) != len(continuations):
            to = counted(len(continuations), "continuation")
            raise self._fault(name, f"has {counted(len(answers), 'answer')} to {to}")
        return answers

    def _tokens(self, name: str, tokens: Any) -> list[int]:
        try:
            numbers = list(map(operator.index, tokens))
        except TypeError:
            raise self._fault(name, f"has {shown(tokens)}, which are no numbers of tokens") from None
        size = len(self._model.texts)
        for number in numbers:
            if not 0 <= number < size:
                raise self._fault(name, f"has the token {number}; the tokens of {size} texts are 0 to {size - 1}")
        return numbers

    def _numbers(self, name: str, values: Any, size: int) -> Floats:
        try:
            numbers = numbers_of(values, "numbers")
        except UsageError as error:
            raise self._fault(name, f"has an answer at fault: {error}") from error
        if numbers.shape != (size,):
            raise self._fault(name, f"has an array of the shape {numbers.shape}, not ({size},)")
        return numbers

    def _fault(self, name: str, what: str) -> ModelError:
        return ModelError(message=f"{type(self._model).__name__}.{name} {what}")


class _Kinds(NamedTuple):
    """What tokens do, by token: begin a word behind a space, begin it or go on with it, end it, end the text."""

    begin_spaced: Flags
    go_on: Flags
    end: Flags
    stop: Flags

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
        self._model, self._count, self._right = CheckedModel(model), count, right
        self._after, self._end = after, re.compile(f"[{re.escape(WHITE + after)}]".encode())
        self._known: _Kinds | None = None

    def words(self, left: str, right: str = "", candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest words behind a text, or between two texts, with their probabilities.

        The likeliest word is the first; ``candidates`` are words to try as well.
        """
        gap = TokenContext(self._model, left)
        shares, total = self._search(gap)
        more = [word for word in dict.fromkeys(candidates) if word not in shares and 0 < len(word) <= MAX_WORD_LENGTH]
        if more and total > 0:
            spelt = {word: tokens for word in more if len(tokens := gap.tokens_of(word)) <= gap.room}
            more, spellings = list(spelt), list(spelt.values())
            logs = self._model.log_probabilities(gap.prefix, spellings)
            behind = self._model.next_tokens(gap.prefix, spellings)
            end = self._kinds().end
            for word, log, after in zip(more, logs, behind, strict=True):
                shares[word] = math.exp(log.sum()) * _mass(after, end) / total
        shares = {word: share for word, share in shares.items() if share > 0 and is_listable(word)}
        listed = math.fsum(shares.values())
        if listed > 1:  # the candidates' probabilities may be rounded up
            shares = {word: share / listed for word, share in shares.items()}
        if right.strip() and self._right and shares:
            shares = self._with_right(gap, right, shares, max(0.0, 1 - listed), more)
        return dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))[: self._count])

    def surprisals(self, words: Sequence[str]) -> list[float]:
        """Return the surprisal in bits of each word of a text behind the words before it, as the model spells them.

        In the place of a word, the text could have ended, too.
        """
        surprisals = []
        for place, word in enumerate(words):
            gap = TokenContext(self._model, " ".join(words[:place]))
            tokens = gap.tokens_of(word)
            (logs,) = self._model.log_probabilities(gap.prefix, [tokens])
            before, behind = self._model.next_tokens(gap.prefix, [(), tokens])
            kinds = self._kinds()
            begin = kinds.begin(gap.lead) | kinds.stop
            parts = (math.exp(logs.sum()), _mass(behind, kinds.end), 1 / max(MIN_PROBABILITY, _mass(before, begin)))
            surprisals.append(-math.log2(max(math.prod(parts), MIN_SHARE)))
        return surprisals

    def _kinds(self) -> _Kinds:
        """Return the kinds of the model's tokens, which may have become more."""
        texts = self._model.texts
        if self._known is None or len(self._known.stop) != len(texts):
            ended = [self._end.match(text) is not None for text in texts]
            ends = self._model.ends
            stop = np.array([token in ends for token in range(len(texts))], np.bool_)
            self._known = _Kinds(
                begin_spaced=np.array(
                    [text[:1] == b" " and not self._end.match(text, 1) for text in texts], np.bool_
                ),
                go_on=np.array([text != b"" and not flag for text, flag in zip(texts, ended, strict=True)], np.bool_),
                end=stop | np.array(ended, np.bool_),
                stop=stop,
            )
        return self._known

    def _search(self, gap: TokenContext) -> tuple[dict[str, float], float]:
        """Return the words found with their probabilities, and the probability that a word follows."""
        words: defaultdict[bytes, float] = defaultdict(float)
        beginnings: list[Beginning] = []  # a heap; the likeliest is the first
        steps, most, least = MAX_STEPS * self._count, 2 * self._count, MIN_PROBABILITY

        def add(share: float, tokens: Tokens, text: bytes) -> None:  # white space behind a word ends the word
            end = self._end.search(text)
            if end is None and len(tokens) < gap.room:
                heapq.heappush(beginnings, (-share, tokens, text))
            elif end and end.start():
                words[text[: end.start()]] += share

        start = self._model.next_tokens(gap.prefix, [()])[0]
        kinds = self._kinds()
        begin = kinds.begin(gap.lead)
        if start.tokens is None and not begin.any():
            message = "no token of the model begins with a space, so none begins a word"
            cause = "is its tokenizer that of another model, or are the tokenizer's files missing?"
            raise ModelError(message=f"{message}\n  {cause}")
        total = _mass(start, begin)
        for token, share in _likeliest(start, begin, MIN_PROBABILITY, most):
            add(share, (token,), self._model.texts[token].removeprefix(b" "))
        while True:
            if len(words) >= self._count:  # none is worth continuing that is not as likely as these
                shares = np.fromiter(words.values(), np.float64, len(words))
                least = max(MIN_PROBABILITY, float(np.partition(shares, len(shares) - self._count)[-self._count]))
            batch: list[Beginning] = []
            while beginnings and len(batch) < min(AT_A_TIME, steps) and -beginnings[0][0] > least:
                share, tokens, text = heapq.heappop(beginnings)
                batch.append((-share, tokens, text))
            steps -= len(batch)
            if not batch:
                break
            answers = self._model.next_tokens(gap.prefix, [tokens for _, tokens, _ in batch])
            kinds, texts = self._kinds(), self._model.texts
            for (share, tokens, text), after in zip(batch, answers, strict=True):
                ended = share * _mass(after, kinds.end)
                if text:
                    words[text] += ended
                else:
                    total -= ended  # two spaces: no word follows
                for token, part in _likeliest(after, kinds.go_on, least / share, most):
                    add(share * part, (*tokens, token), text + texts[token])
        decoded = ((text.decode(errors="ignore"), text, share) for text, share in words.items())
        return {word: share / total for word, text, share in decoded if word.encode() == text}, total

    def _with_right(
        self, gap: TokenContext, right: str, shares: dict[str, float], rest: float, candidates: Sequence[str]
    ) -> dict[str, float]:
        """Return probabilities weighed by that of the right context behind each word; the ``rest`` counts as a word.

        The words that are not tried, and the rest, are taken to fit the right context as well as the less likely half
        of those that are.
        """
        tried = dict.fromkeys(sorted(shares, key=lambda word: (-shares[word], word))[:RESCORED])
        tried |= dict.fromkeys(word for word in candidates if word in shares)
        words = list(tried)
        text = right.strip(" ")
        space = "" if text.startswith(("\n", *self._after)) else " "
        behind = gap.tokens_behind(words, space + text, min(self._right, gap.room))
        logs = np.array([log.sum() for log in self._model.log_probabilities(gap.prefix, behind)])
        joint = np.exp(logs - logs.max())
        left = np.array([shares[word] for word in words])
        judges = np.argsort(-left, kind="stable")[int(len(words) * MIN_JUDGES) :]
        fit = float(joint[judges].sum() / left[judges].sum())
        others = {word: share * fit for word, share in shares.items() if word not in tried}
        total = float(joint.sum()) + math.fsum(others.values()) + rest * fit
        weighed = dict(zip(words, joint.tolist(), strict=True)) | others
        return {word: share / total for word, share in weighed.items()}


class TokenContext:
    """What stands before a word, as tokens; ``lead`` is the space between.

    A model that takes fewer tokens than others has half of their number as its ``max_context``.
    """

    def __init__(self, model: TokenModel, left: str) -> None:
        self._model = model
        stripped = left.rstrip(" \t")
        self.lead = "" if not stripped or stripped.endswith("\n") else " "
        self._left = stripped
        self._whole = model.encode(stripped)
        size, most = len(model.encode("")), getattr(model, "max_context", MAX_CONTEXT)
        self.prefix = self._whole[:size] + self._whole[size:][-most + size :]
        self.room = most // 2  # tokens of a word, and of the right context behind it

    def tokens_of(self, text: str) -> Tokens:
        """Return the tokens of a text behind this one."""
        tokens = self._model.encode(self._left + self.lead + text)
        size = len(self._whole)
        if tokens[:size] == self._whole:
            return tuple(tokens[size:])
        alone = self._model.encode(self.lead + text)  # the text would be spelt otherwise: a rare tokenizer
        return tuple(alone[len(self._model.encode("")) :])

    def tokens_behind(self, words: Sequence[str], right: str, count: int) -> list[Tokens]:
        """Return the tokens of each word and of the beginning of the text behind it, ``count`` tokens or words."""
        match = re.match(rf"(?:\s*\S+){{0,{count}}}", right)  # so many words have as many tokens or more
        beginning = match.group()[: MAX_WORD_LENGTH * count] if match else ""
        spellings = []
        for word in words:
            tokens = self.tokens_of(word + beginning)
            size, covered = 0, 0
            while size < len(tokens) and covered < len((self.lead + word).encode()):
                covered += len(self._model.texts[tokens[size]])
                size += 1
            spellings.append(tokens[: size + count][: 2 * self.room])
        return spellings


def _mass(after: NextTokens, flags: Flags) -> float:
    """Return the share of some tokens among those that are known."""
    tokens, probabilities = after
    chosen = flags if tokens is None else flags[tokens]
    total = float(probabilities.sum())
    return float(probabilities @ chosen.astype(probabilities.dtype)) / total if total > 0 else 0.0


def _likeliest(after: NextTokens, flags: Flags, least: float, most: int) -> Iterator[tuple[int, float]]:
    """Yield the likeliest tokens that have a flag, at most so many, and their probabilities above the least."""
    tokens, probabilities = after
    chosen = np.flatnonzero(probabilities > least)
    numbers = chosen if tokens is None else tokens[chosen]
    chosen, numbers = chosen[flags[numbers]], numbers[flags[numbers]]
    if len(chosen) > most:
        first = np.argsort(-probabilities[chosen], kind="stable")[:most]
        chosen, numbers = chosen[first], numbers[first]
    yield from zip(numbers.tolist(), probabilities[chosen].tolist(), strict=True)
