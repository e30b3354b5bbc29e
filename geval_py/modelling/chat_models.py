"""Chat models behind a server, which are asked for the word in a gap as a person would be.

The answer's tokens come with their likeliest alternatives (``top_logprobs``), if the server returns them. Each
alternative begins another answer, whose probability is that of its tokens. It is taken for a whole word, so a word
gets the probability of all that begin with it. A server that returns no alternatives is asked several times, and the
rest is estimated from the words that it answered once, as Good and Turing do (Good, 1953,
https://doi.org/10.2307/2333344).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from geval_py.errors import UsageError
from geval_py.modelling.baselines import leaving_a_rest, likeliest
from geval_py.modelling.served_models import SPECIAL, RefusedError, Server
from geval_py.modelling.word_search import learnt_answers
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import is_listable

TEMPLATE = """\
One word is missing from this text. The mark [...] stands in its place.

{left} [...] {right}

Answer with the missing word alone, in the form in which it stands in the text.
"""
ALTERNATIVES = (100, 20, 5)  # next tokens to ask for: 20 is OpenAI's limit
SAMPLES = 20  # answers of a server without alternatives
MAX_TOKENS = 16  # of an answer
MAX_AROUND = 3000  # characters of a context
QUOTES = "\"'`*“”‘’«»"  # around an answer
Step = tuple[bytes, float, list[tuple[bytes, float]]]  # a token, its logarithm, and those of the alternatives


class Chat(Server):
    """A chat model by its address, URL#MODEL, in OpenAI's protocol.

    At most ``count`` words are listed. The ``template`` has {left} and {right} in it. With ``samples``, so many
    answers are counted. Without, SAMPLES are if the server returns no alternatives. ``method`` says which. Raises
    ModelError and UsageError as Server.
    """

    def __init__(
        self, address: str, count: int, parallel: int = 4, samples: int = 0, template: str | None = None
    ) -> None:
        super().__init__("chat", address, "/chat/completions", parallel)
        self._template, self._count, self._after = TEMPLATE if template is None else template, count, ""
        if "{left}" not in self._template:
            raise UsageError(message="the template lacks {left}, which stands for the left context")
        self._samples, self._most, self._takes_many = samples, 0, True  # many answers to a request
        for number in () if samples else ALTERNATIVES:
            try:
                (answer,) = self._post([self._request("Say hello.", number)])
            except RefusedError:
                continue
            if any(alternatives for _, _, alternatives in self._steps(answer)):
                self._most = number
                break
        self._samples = 0 if self._most else samples or SAMPLES
        self.method = "samples" if self._samples else "top_logprobs"

    def fit(self, items: Iterable[Item]) -> None:
        """Learn whether punctuation stands after words, not in them."""
        _, self._after = learnt_answers(items)

    def words(self, left: str, right: str = "", _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the words that the model answers between two texts, with their probabilities."""
        contexts = {"left": left[-MAX_AROUND:], "right": right[:MAX_AROUND]}
        prompt = re.sub(r"\{(left|right)\}", lambda match: contexts[match[1]], self._template)
        shares: defaultdict[str, float] = defaultdict(float)
        for text, share in self._sampled(prompt) if self._samples else self._listed(prompt):
            word = self._word(text)
            if is_listable(word) and not SPECIAL.fullmatch(word.encode()):
                shares[word] += share
        return leaving_a_rest(likeliest(shares, self._count))

    def _word(self, text: str) -> str:
        """Return the first word of an answer, without quotation marks and punctuation."""
        word = (text.split() or [""])[0].strip(QUOTES)
        return word.rstrip(self._after) or word

    def _listed(self, prompt: str) -> Iterator[tuple[str, float]]:
        """Yield the first answer, and others that part from it at a token."""
        (answer,) = self._post([self._request(prompt, self._most)])
        before, share = b"", 1.0
        for token, log, alternatives in self._steps(answer):
            for other, log_of_other in alternatives:
                if other != token:
                    yield (before + other).decode(errors="ignore"), share * math.exp(log_of_other)
            before, share = before + token, share * math.exp(log)
            if re.search(rb"\S\s", before):
                break  # the first word is over
        yield before.decode(errors="ignore"), share

    def _sampled(self, prompt: str) -> Iterator[tuple[str, float]]:
        """Yield the words of several answers with their shares, less the rest for words that are not among them."""
        texts: list[str] = []
        if self._takes_many:
            try:
                (first,) = self._post([self._request(prompt, 0) | {"n": self._samples}])
                texts = self._texts(first)
            except RefusedError:
                self._takes_many = False
        more = [self._request(prompt, 0, seed) for seed in range(len(texts), self._samples)]
        texts += [text for answer in self._post(more) for text in self._texts(answer)]
        counts = Counter(map(self._word, texts))
        rest = (sum(count == 1 for count in counts.values()) + 0.5) / (len(texts) + 1)
        for text, count in counts.items():
            yield text, count / len(texts) * (1 - rest)

    def _request(self, prompt: str, alternatives: int, seed: int = 0) -> dict[str, Any]:
        """Return a request for an answer."""
        settings = {"logprobs": True, "top_logprobs": alternatives} if alternatives else {}
        messages = [{"role": "user", "content": prompt}]
        return {"messages": messages, "max_tokens": MAX_TOKENS, "temperature": 1.0, "seed": seed, **settings}

    def _texts(self, answer: Any) -> list[str]:
        try:
            return [choice["message"]["content"] or "" for choice in answer["choices"]]
        except (LookupError, TypeError, AttributeError) as error:
            raise self._failed("gives no text with its answer") from error

    def _steps(self, answer: Any) -> list[Step]:
        """Return the tokens of an answer with their alternatives, none if it does not tell any."""
        try:
            steps = answer["choices"][0]["logprobs"]["content"]
            return [(*_token(step), [_token(other) for other in step["top_logprobs"]]) for step in steps]
        except (LookupError, TypeError, ValueError, AttributeError):
            return []


def _token(told: Any) -> tuple[bytes, float]:
    """Return the text of a token, a line end for special tokens, and the logarithm of its probability."""
    text = bytes(told.get("bytes") or (told.get("token") or "").encode())
    return b"\n" if not text or SPECIAL.fullmatch(text) else text, float(told["logprob"])
