"""Language models behind a server of the completions protocol, such as llama.cpp's, vLLM's or OpenAI's.

A server is asked for the likeliest next tokens, of which most tell 5 to 20, and gives their texts. So a token is
known by its text here, and numbered when it is first seen. The likeliest alternatives stand for all: the share of
those that end a word is taken among them. A prompt's probability is what `echo` tells; llama.cpp's server has no
echo.

An answer that lacks what it should have is tried again as one of a busy server is, and then it is an error. The
package openai would try again a used-up quota, and would not try again an answer that is cut or no JSON.
"""

from __future__ import annotations

import math
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import Doubles
from geval_py.modelling.language_models import needed
from geval_py.modelling.word_search import AT_A_TIME, PARTIAL, NextTokens, TokenModel, Tokens
from geval_py.text import counted, shorten, visible

ALTERNATIVES = (1000, 100, 20, 5)  # next tokens to ask for; a server that refuses is asked for fewer
TRIES = 6  # of a request
MAX_WAIT = 30.0  # seconds between tries, if the server names none
WAIT = 60  # seconds that a server may name
PATIENCE = 300.0  # seconds for an answer
KEYS = ("GEVAL_API_KEY", "OPENAI_API_KEY")  # variables of the environment
LOCAL = ("localhost", "127.0.0.1", "::1")
NO_ECHO = (
    "does not tell the probability of a prompt (echo)\n"
    "  it can be asked for words by the left context alone: no --right-tokens, and no --candidates"
)
SPECIAL = re.compile(rb"<[^<>\s]+>|\[/?[A-Z_]+\]")  # a text in brackets is a mark, and in no word
OPENING = "Write the word Harbor, and nothing else."
NO_LOGPROBS = "\n  without the probabilities of tokens (logprobs), chat:URL#MODEL counts answers"
EMPTY = "\n"  # in the place of an empty prompt, which servers refuse
BUSY = {408, 409, 425, 429, *range(500, 505), *range(520, 530)}  # statuses of answers that may be different later
QUOTA = "insufficient_quota"  # which no waiting mends
RENAMED = {"max_tokens": "max_completion_tokens", "seed": ""}  # fields that a server may refuse; "": left out
_Read = TypeVar("_Read")


class Server:
    """A server of models; ``address`` is URL#MODEL, as http://localhost:8000/v1#gemma; ``path`` stands behind URL.

    ``parallel`` requests are sent at once, and a server that is busy may ask to ``wait`` so many seconds. A key is
    taken from the environment, and sent to this server alone: over plain http only to this machine, except for
    GEVAL_API_KEY. Raises UsageError for an address that is none, ModelError for a server that cannot be used.
    """

    def __init__(self, kind: str, address: str, path: str, parallel: int, wait: float) -> None:
        url, _, self._model = address.partition("#")
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"`{visible(address)}` is no address of a server: {kind}:http://HOST/v1#MODEL")
        if "@" in url.partition("://")[2].partition("/")[0] or "?" in url:
            raise UsageError(f"an address is written down; put a key or a password into {KEYS[0]}")
        is_private = url.startswith("https://") or urlsplit(url).hostname in LOCAL
        keys = (os.environ.get(name) for name in KEYS[: 1 + is_private])
        key = next(filter(None, keys), None)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = needed("httpx", "openai").Client(headers=headers, timeout=PATIENCE)
        weakref.finalize(self, self._client.close)
        self._url, self._parallel, self._wait = url.rstrip("/") + path, parallel, wait
        self._renamed: dict[str, str] = {}  # fields that the server refused
        self.requests, self.usage = 0, 0  # that were answered, and the tokens that the server counted

    def ask(self, requests: Sequence[dict[str, Any]], read: Callable[[Any], _Read], what: str) -> Iterator[_Read]:
        """Yield what is read from the answer to each request, of which several are sent at once.

        An answer that cannot be read lacks ``what``. A request is sent again if the server is busy, cannot be reached
        or gives such an answer.
        """
        with ThreadPoolExecutor(self._parallel) as pool:
            yield from pool.map(lambda request: self._answer(request, read, what), requests)

    def _answer(self, request: dict[str, Any], read: Callable[[Any], _Read], what: str) -> _Read:
        for number in range(1, TRIES):
            try:
                return self._posted(request, read, what)
            except _LaterError as error:
                time.sleep(min(MAX_WAIT, 2.0**number / 4) if error.wait is None else error.wait)
        return self._posted(request, read, what)

    def _posted(self, request: dict[str, Any], read: Callable[[Any], _Read], what: str) -> _Read:
        """Return what is read from the answer to a request; raises _LaterError if the next answer may be another."""
        httpx = needed("httpx", "openai")
        fields = {self._renamed.get(name, name): value for name, value in request.items()}
        fields.pop("", None)
        try:
            response = self._client.post(self._url, json=fields | ({"model": self._model} if self._model else {}))
        except httpx.InvalidURL as error:
            raise self._failed(f"does not answer: {error}") from error
        except httpx.TransportError as error:
            raise self._failed(f"does not answer: {error or type(error).__name__}", _LaterError) from error
        text, status = response.text, response.status_code
        if status == 200:
            try:
                answer = response.json()
                value = read(answer)
                used = int((answer.get("usage") or {}).get("total_tokens") or 0)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                written = shorten(visible(text.strip()), 100)
                raise self._failed(f"gives no {what} with its answer: {written}", _LaterError) from error
            self.requests += 1
            self.usage += used
            return value
        reason = f"answers {status}: {shorten(visible(text.strip()), 200)}"
        if response.is_redirect:
            where = response.headers.get("location", "not named")
            raise self._failed(f"{reason}\n  its address is {visible(where)}")
        if status in {400, 422}:
            for name in RENAMED:
                if name in fields and re.search(rf"\b{name}\b", text):
                    self._renamed[name] = RENAMED[name]
                    return self._posted(request, read, what)
            raise self._failed(reason + NO_LOGPROBS * ("logprobs" in text), RefusedError)
        if status not in BUSY or QUOTA in text:
            raise self._failed(reason)
        wait = _retry_after(response.headers)
        if wait is not None and wait > self._wait:
            advice = f"it asks to wait {wait:.0f} seconds, which --wait {math.ceil(wait)} allows"
            raise self._failed(f"{reason}\n  {advice}")
        raise self._failed(reason, _LaterError, wait=wait)

    def _failed(self, reason: str, kind: type[ModelError] = ModelError, **values: Any) -> ModelError:
        return kind(message=f"The server {visible(self._url)} {reason}", **values)

    def report(self) -> list[str]:
        """Return how the server is asked, for people who have to decide about a long run."""
        raise NotImplementedError


def _retry_after(headers: Any) -> float | None:
    """Return the seconds that a server names, or that are left until its date (RFC 9110, 10.2.3); None for others."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def token_text(text: str, encoded: Sequence[int] | None = None) -> bytes:
    """Return the text of a token in UTF-8; PARTIAL for one that holds a part of a character.

    vLLM writes such a token as U+FFFD, as nothing, or as its bytes behind `bytes:`.
    """
    data = bytes(encoded) if encoded else text.encode(errors="replace")
    is_part = not data or text.startswith("bytes:") or "\ufffd" in text + data.decode(errors="replace")
    return PARTIAL if is_part else data


class Served(Server, TokenModel):
    """A model of a server of the completions protocol."""

    def __init__(self, address: str, parallel: int = 4, wait: float = WAIT) -> None:
        super().__init__("openai", address, "/completions", parallel, wait)
        self._numbers: dict[bytes, int] = {b"": 0}
        self.texts = [b""]  # of the tokens that were seen
        self.ends = frozenset({0})
        self._at_a_time = 1  # prompts of a request
        for number in ALTERNATIVES:
            try:
                (first,) = self._all({"max_tokens": 1, "logprobs": number}, [f"{OPENING}\nHarbor"], _alternatives_of)
                break
            except RefusedError:
                if number == ALTERNATIVES[-1]:
                    raise
        mark = max(first, key=itemgetter(1))[0].decode(errors="replace")
        self._mark = mark if is_mark(mark) else ""
        self._numbers[self._mark.encode()] = 0
        self._alternatives = max(1, min(number, len(first)))
        self._at_a_time = AT_A_TIME
        try:
            self._all({"max_tokens": 1, "logprobs": 1}, ["The", "A"], _alternatives_of)
        except ModelError:
            self._at_a_time = 1

    def report(self) -> list[str]:
        """Return how many alternatives the server returns, how many prompts it takes, and a mark that ends texts."""
        alternatives, prompts = counted(self._alternatives, "alternative"), counted(self._at_a_time, "prompt")
        mark = f"; the end mark is `{visible(self._mark)}`" if self._mark else ""
        return [f"the server returns {alternatives}, and takes {prompts} per request{mark}"]

    def encode(self, text: str) -> list[int]:
        """Return the text as one token; the server divides it."""
        return [self._number(text.encode(errors="replace"))] if text else []

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[NextTokens]:
        """Return the likeliest tokens behind a prefix with each continuation."""
        before = self._text(prefix) or EMPTY
        prompts = [before + self._text(tokens) for tokens in continuations]
        answers = []
        for listed in self._all({"max_tokens": 1, "logprobs": self._alternatives}, prompts, _alternatives_of):
            tokens = np.array([self._number(text) for text, _ in listed], np.int64)
            answers.append(NextTokens(tokens, np.exp([log for _, log in listed], dtype=np.float64)))
        return answers

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[Doubles]:
        """Return the natural logarithm of the probability of each token of each continuation."""
        before = self._text(prefix) or EMPTY
        texts = [[before, *(self._text([token]) for token in tokens)] for tokens in continuations]
        return [np.array([*map(math.fsum, parts)]) for parts in self._echoed(texts)]

    def text_logs(self, text: str) -> list[float]:
        """Return the natural logarithm of the probability of each token of a text, as the server divides it."""
        return self._echoed([[EMPTY, text]])[0][0] if text else []

    def _echoed(self, texts: Sequence[Sequence[str]]) -> list[list[list[float]]]:
        """Return the logarithms of the tokens in each part of each text, but for the first part."""
        answers, prompts = [], ["".join(parts) for parts in texts]
        echoes = self._all({"max_tokens": 1, "logprobs": 1, "echo": True}, prompts, _echo_of)
        for echo, parts in zip(echoes, texts, strict=True):
            bounds = pairwise(accumulate(map(len, parts)))
            answers.append([[log for offset, log in echo if start <= offset < stop] for start, stop in bounds])
            if not all(answers[-1]):
                raise self._failed(NO_ECHO)
        return answers

    def _number(self, text: bytes) -> int:
        if SPECIAL.fullmatch(text):
            return 0
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def _text(self, tokens: Sequence[int]) -> str:
        return b"".join(self.texts[token] for token in tokens).decode(errors="replace")

    def _all(
        self,
        settings: dict[str, Any],
        prompts: Sequence[str],
        read: Callable[[dict[str, Any]], _Read],
    ) -> list[_Read]:
        """Return what is read from the log probabilities of each prompt; many are in one request, if possible."""
        blocks = [prompts[start : start + self._at_a_time] for start in range(0, len(prompts), self._at_a_time)]
        sent = settings | {"temperature": 1.0, "seed": 0}
        requests = [sent | {"prompt": block if self._at_a_time > 1 else block[0]} for block in blocks]

        def read_all(answer: Any) -> list[_Read]:
            choices = sorted(answer["choices"], key=lambda choice: choice.get("index", 0))
            return [read(dict(choice["logprobs"])) for choice in choices]

        values: list[_Read] = []
        what = "log probabilities of alternatives (logprobs, top_logprobs)"
        for block, of_block in zip(blocks, self.ask(requests, read_all, what), strict=True):
            if len(of_block) != len(block):
                raise self._failed(f"gives {counted(len(of_block), 'answer')} to {counted(len(block), 'prompt')}")
            values += of_block
        return values


def is_mark(token: str) -> bool:
    """Return whether the likeliest token behind a whole word is a mark that ends texts, and no text."""
    return len(token) > 2 and not token[0].isalnum() and not token[0].isspace()


def _alternatives_of(logs: dict[str, Any]) -> list[tuple[bytes, float]]:
    """Return the texts of the first token's alternatives, and the logarithms of their shares.

    The protocol has a mapping; llama.cpp's server gives a list, with bytes, as for chats, and without the text of
    special tokens.
    """
    if "top_logprobs" in logs:
        pairs = [(token_text(text), log) for text, log in logs["top_logprobs"][0].items()]
    else:
        pairs = [
            (token_text(entry["token"], entry.get("bytes")) if entry["token"] else b"", entry["logprob"])
            for entry in logs["content"][0]["top_logprobs"]
        ]
    numbers = [(text, float(log)) for text, log in pairs]
    if not numbers or any(math.isnan(log) for _, log in numbers):
        raise ValueError("no numbers")
    return [(text, log) for text, log in numbers if log <= 1e-3]


def _echo_of(logs: dict[str, Any]) -> list[tuple[int, float]]:
    """Return the places and logarithms of a prompt's tokens, none from a server without echo.

    The first token of a prompt has no logarithm.
    """
    if "text_offset" not in logs:
        return []
    pairs = list(zip(logs["text_offset"], logs["token_logprobs"], strict=False))
    return [(int(offset), float(log)) for place, (offset, log) in enumerate(pairs) if place or log is not None]


class RefusedError(ModelError):
    """A request that the server does not take."""


class _LaterError(ModelError):
    """A fault that may be over ``wait`` seconds later, None if the server names no time."""

    wait: float | None = None
