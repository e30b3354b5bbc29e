"""Language models behind a server of the completions protocol, such as llama.cpp's, vLLM's or OpenAI's.

A server is asked for the likeliest next tokens, of which most tell 5 to 20, and gives their texts. So a token is
known by its text here, and numbered when it is first seen. The likeliest alternatives stand for all: the share of
those that end a word is taken among them. A prompt's probability is what `echo` tells; llama.cpp's server has no
echo.
"""

from __future__ import annotations

import math
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import Doubles
from geval_py.modelling.language_models import needed
from geval_py.modelling.word_search import AT_A_TIME, NextTokens, TokenModel, Tokens
from geval_py.tables.numbers import counted
from geval_py.text import shorten, visible

ALTERNATIVES = (1000, 100, 20, 5)  # next tokens to ask for; a server that refuses is asked for fewer
TRIES = 6  # of a request
MAX_WAIT = 30.0  # seconds between tries
PATIENCE = 300.0  # seconds for an answer
KEYS = ("GEVAL_API_KEY", "OPENAI_API_KEY")  # variables of the environment
NO_ECHO = (
    "does not tell the probability of a prompt (echo)\n"
    "  it can be asked for words by the left context alone: --right 0, and no --candidates"
)
SPECIAL = re.compile(rb"</?(s|bos|eos|pad|unk)>|<\|.*\|>|\[(SEP|CLS|PAD|UNK)\]")
EMPTY = "\n"  # in the place of an empty prompt, which servers refuse
BUSY = {408, 409, 425, 429, 500, 502, 503, 504}  # statuses of answers that may be different later


class Server(TokenModel):
    """A server of models; ``address`` is URL#MODEL, as http://localhost:8000/v1#gemma; ``path`` stands behind URL.

    ``parallel`` requests are sent at once. A key is taken from the environment, and sent to this server alone. Raises
    UsageError for an address that is none, ModelError for a server that cannot be used.
    """

    def __init__(self, kind: str, address: str, path: str, parallel: int) -> None:
        url, _, self._model = address.partition("#")
        if not url.startswith(("http://", "https://")):
            raise UsageError(message=f"`{visible(address)}` is no address of a server: {kind}:http://HOST/v1#MODEL")
        if "@" in url.partition("://")[2].partition("/")[0] or "?" in url:
            raise UsageError(message=f"an address is written down; put a key or a password into {KEYS[0]}")
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = needed("httpx", "openai").Client(headers=headers, timeout=PATIENCE)
        weakref.finalize(self, self._client.close)
        self._url, self._parallel = url.rstrip("/") + path, parallel
        self._numbers: dict[bytes, int] = {b"": 0}
        self.texts: list[bytes] = [b""]  # of the tokens that were seen
        self.ends = frozenset({0})

    def encode(self, text: str) -> list[int]:
        """Return the text as one token; the server divides it."""
        return [self._number(text.encode(errors="replace"))] if text else []

    def _number(self, text: bytes) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def _text(self, tokens: Sequence[int]) -> str:
        return b"".join(self.texts[token] for token in tokens).decode(errors="replace")

    def _next_tokens(self, alternatives: Sequence[tuple[bytes, float]]) -> NextTokens:
        """Return alternatives, with the logarithms of their probabilities, as the next tokens."""
        tokens = np.array([self._number(text) for text, _ in alternatives], np.int64)
        return NextTokens(tokens, np.exp([log for _, log in alternatives], dtype=np.float64))

    def _post(self, requests: Sequence[dict[str, Any]], tries: int | None = None) -> Iterator[Any]:
        """Yield the server's answer to each request, of which several are sent at once.

        A request is sent again if the server is busy or cannot be reached.
        """
        tenacity, httpx = needed("tenacity", "openai"), needed("httpx", "openai")
        retry = tenacity.retry(
            stop=tenacity.stop_after_attempt(tries or TRIES),
            wait=tenacity.wait_exponential(multiplier=0.25, max=MAX_WAIT),
            retry=tenacity.retry_if_exception_type((httpx.TransportError, _BusyError)),
            reraise=True,
        )

        def post(request: dict[str, Any]) -> Any:
            answer = self._client.post(self._url, json=request | ({"model": self._model} if self._model else {}))
            if answer.status_code != 200:
                reason = f"answers {answer.status_code}: {shorten(visible(answer.text.strip()), 200)}"
                later = _BusyError if answer.status_code in BUSY else ModelError
                raise self._failed(reason, RefusedError if answer.status_code in {400, 422} else later)
            try:
                return answer.json()
            except ValueError:
                return None  # which has no text

        try:
            with ThreadPoolExecutor(self._parallel) as pool:
                yield from pool.map(retry(post), requests)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._failed(f"does not answer: {error or type(error).__name__}") from error

    def _failed(self, reason: str, kind: type[ModelError] = ModelError) -> ModelError:
        return kind(message=f"The server {visible(self._url)} {reason}")


class Served(Server):
    """A model of a server of the completions protocol."""

    def __init__(self, address: str, parallel: int = 4) -> None:
        super().__init__("openai", address, "/completions", parallel)
        self._at_a_time = 1  # prompts of a request
        for number in ALTERNATIVES:
            try:
                (logs,) = self._all({"max_tokens": 1, "logprobs": number}, ["The"])
                break
            except RefusedError:
                if number == ALTERNATIVES[-1]:
                    raise
        self._alternatives = max(1, min(number, len(self._alternatives_of(logs))))
        self._at_a_time = AT_A_TIME
        try:
            self._all({"max_tokens": 1, "logprobs": 1}, ["The", "A"], tries=1)
        except ModelError:
            self._at_a_time = 1

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[NextTokens]:
        """Return the likeliest tokens behind a prefix with each continuation."""
        before = self._text(prefix) or EMPTY
        prompts = [before + self._text(tokens) for tokens in continuations]
        logs_of_prompts = self._all({"max_tokens": 1, "logprobs": self._alternatives}, prompts)
        return [self._next_tokens(self._alternatives_of(logs)) for logs in logs_of_prompts]

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[Doubles]:
        """Return the natural logarithm of the probability of each token of each continuation."""
        before = self._text(prefix) or EMPTY
        prompts = [before + self._text(tokens) for tokens in continuations]
        answers = []
        for echoed, tokens in zip(self._echoed(prompts), continuations, strict=True):
            bounds = [len(before + self._text(tokens[:size])) for size in range(len(tokens) + 1)]
            parts = [[log for offset, log in echoed if start <= offset < stop] for start, stop in pairwise(bounds)]
            if not all(parts):
                raise self._failed(NO_ECHO)
            answers.append(np.array([math.fsum(part) for part in parts]))
        return answers

    def text_logs(self, text: str) -> list[float]:
        """Return the natural logarithm of the probability of each token of a text, as the server divides it."""
        if not text:
            return []
        (echoed,) = self._echoed([EMPTY + text])
        logs = [log for offset, log in echoed if len(EMPTY) <= offset < len(EMPTY + text)]
        if not logs:
            raise self._failed(NO_ECHO)
        return logs

    def _echoed(self, prompts: Sequence[str]) -> Iterator[list[tuple[int, float]]]:
        """Yield the places and the logarithms of the tokens of each prompt."""
        for logs in self._all({"max_tokens": 1, "logprobs": 1, "echo": True}, prompts):
            try:
                pairs = zip(logs["text_offset"], logs["token_logprobs"], strict=False)
                yield [(int(offset), float(log)) for offset, log in pairs if log is not None]
            except (LookupError, TypeError, ValueError):
                yield []

    def _alternatives_of(self, logs: dict[str, Any]) -> list[tuple[bytes, float]]:
        """Return the texts of the first token's alternatives, and the logarithms of their probabilities.

        The protocol has a mapping; llama.cpp's server gives a list, with bytes, as for chats.
        """
        try:
            if "top_logprobs" in logs:
                pairs = [(text.encode(errors="replace"), float(log)) for text, log in logs["top_logprobs"][0].items()]
            else:
                listed = logs["content"][0]["top_logprobs"]
                pairs = [(bytes(one.get("bytes") or one["token"].encode()), float(one["logprob"])) for one in listed]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._failed("lists no alternatives (top_logprobs) in its answer") from error
        return [(b"" if SPECIAL.fullmatch(text) else text, log) for text, log in pairs if log <= 1e-3]

    def _all(
        self, settings: dict[str, Any], prompts: Sequence[str], tries: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the log probabilities that the server answers to each prompt; lists of prompts, if it takes them."""
        blocks = [prompts[start : start + self._at_a_time] for start in range(0, len(prompts), self._at_a_time)]
        sent = settings | {"temperature": 1.0, "seed": 0}
        requests = [sent | {"prompt": block if self._at_a_time > 1 else block[0]} for block in blocks]
        logs: list[dict[str, Any]] = []
        for block, answer in zip(blocks, self._post(requests, tries), strict=True):
            try:
                choices = sorted(answer["choices"], key=lambda choice: choice.get("index", 0))
                logs += [dict(choice["logprobs"]) for choice in choices]
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise self._failed("gives no log probabilities (logprobs) with its answer") from error
            if len(choices) != len(block):
                raise self._failed(f"gives {counted(len(choices), 'answer')} to {counted(len(block), 'prompt')}")
        return logs


class _BusyError(ModelError):
    """An answer that may be different later."""


class RefusedError(ModelError):
    """A request that the server does not take."""
