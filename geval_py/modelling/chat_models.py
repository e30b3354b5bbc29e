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
from geval_py.modelling.served_models import OPENING, SPECIAL, WAIT, RefusedError, Server, is_mark, token_text
from geval_py.modelling.word_search import PARTIAL, learnt_answers
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import is_listable
from geval_py.text import counted, visible

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
END = b"\n"  # in the place of an end mark
THINKING = (
    "thinks before it answers, so its first tokens are no word\n"
    "  turn thinking off: llama-server --reasoning-budget 0, /no_think in the --template for Qwen 3,\n"
    "  or choose a model that does not think"
)
Step = tuple[bytes, float, list[tuple[bytes, float]]]  # a token, its logarithm, and those of the alternatives


class Chat(Server):
    """A chat model by its address, URL#MODEL, in OpenAI's protocol.

    At most ``count`` words are listed. The ``template`` has {left} and {right} in it. With ``samples``, so many
    answers are counted. Without, SAMPLES are if the server returns no alternatives. ``method`` says which. Raises
    ModelError and UsageError as Server.
    """

    def __init__(
        self,
        address: str,
        count: int,
        parallel: int = 4,
        samples: int = 0,
        template: str | None = None,
        wait: float = WAIT,
    ) -> None:
        super().__init__("chat", address, "/chat/completions", parallel, wait)
        self._template, self._count, self._after = TEMPLATE if template is None else template, count, ""
        if "{left}" not in self._template:
            raise UsageError("the template lacks {left}, which stands for the left context")
        self._end: str | None = None  # the mark of the end of an answer, as the server spells it
        self._most, self._takes_many = 0, True  # alternatives; whether a request may ask for many answers
        for number in () if samples else ALTERNATIVES:
            try:
                (tokens,) = self.ask([self._request(OPENING, number)], self._tokens_if_any, "text")
            except RefusedError:
                continue
            if any(token.get("top_logprobs") for token in tokens):
                self._most, self._end = number, _end_mark(tokens)
                break
        self._samples = 0 if self._most else samples or SAMPLES
        self.method = "samples" if self._samples else "top_logprobs"

    def report(self) -> list[str]:
        """Return the method, and what it has from the server."""
        if self._samples:
            return [f"method samples: {counted(self._samples, 'answer')} per gap are counted"]
        end = "unknown" if self._end is None else f"`{visible(self._end)}`"
        return [f"method top_logprobs: up to {counted(self._most, 'alternative')}; the end mark is {end}"]

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
        return word.rstrip(self._after + QUOTES) or word

    def _listed(self, prompt: str) -> Iterator[tuple[str, float]]:
        """Yield the first answer, and others that part from it at a token.

        An alternative that holds a part of a character is left to the rest.
        """
        what = "alternatives (logprobs, top_logprobs)"
        (steps,) = self.ask([self._request(prompt, self._most)], self._steps, what)
        before, share = b"", 1.0
        for token, log, alternatives in steps:
            for other, log_of_other in alternatives:
                if other not in (token, PARTIAL):
                    yield (before + other).decode(errors="ignore"), share * math.exp(log_of_other)
            if token == PARTIAL:
                return
            before, share = before + token, share * math.exp(log)
            if re.search(rb"\S\s", before):
                break  # the first word is over
        yield before.decode(errors="ignore"), share

    def _sampled(self, prompt: str) -> Iterator[tuple[str, float]]:
        """Yield the words of several answers with their shares, less the rest for words that are not among them."""
        texts: list[str] = []
        if self._takes_many:
            try:
                (texts,) = self.ask([self._request(prompt, 0) | {"n": self._samples}], self._texts, "text")
            except RefusedError:
                self._takes_many = False
        more = [self._request(prompt, 0, seed) for seed in range(len(texts), self._samples)]
        texts = texts + [text for answer in self.ask(more, self._texts, "text") for text in answer]
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
        """Return the texts of an answer; raises ModelError if the model thinks, and TypeError without a text."""
        texts = []
        for choice in answer["choices"]:
            message = choice["message"]
            text = message.get("content")
            thought = message.get("reasoning") or message.get("reasoning_content")
            is_cut = not text and choice.get("finish_reason") == "length"
            if thought or is_cut or (text and text.lstrip().startswith("<think")):
                raise self._failed(THINKING)
            if text is None:
                raise ValueError("no text")
            texts.append(text)
        if not texts:
            raise ValueError("no answer")
        return texts

    def _tokens_if_any(self, answer: Any) -> list[dict[str, Any]]:
        """Return the tokens of an answer as the server writes them, none from a server that returns no tokens."""
        self._texts(answer)
        tokens = (answer["choices"][0].get("logprobs") or {}).get("content") or []
        return [dict(token) for token in tokens]

    def _steps(self, answer: Any) -> list[Step]:
        """Return the tokens of an answer with their alternatives."""
        self._texts(answer)
        steps = [
            (*self._token(step), [self._token(other) for other in step["top_logprobs"]])
            for step in answer["choices"][0]["logprobs"]["content"]
        ]
        if not any(alternatives for _, _, alternatives in steps):
            raise ValueError("no alternatives")
        return steps

    def _token(self, written: Any) -> tuple[bytes, float]:
        """Return the text of a token, END for a mark of the end, and the logarithm of its probability."""
        text, log = token_text(written["token"], written.get("bytes")), float(written["logprob"])
        if math.isnan(log):
            raise ValueError("no number")
        return END if written["token"] == self._end or SPECIAL.fullmatch(text) else text, log


def _end_mark(tokens: Sequence[dict[str, Any]]) -> str | None:
    """Return the likeliest token behind the whole word of the opening answer, and its full stop.

    Return None if that is no mark: the server leaves it out, or the answer goes on.
    """
    before = ""
    for token in tokens:
        if before.strip(f"{QUOTES} .").lower() == "harbor":
            mark = str(max(token["top_logprobs"], key=lambda entry: float(entry["logprob"]))["token"])
            if not mark or is_mark(mark):
                return mark
        before += token["token"]
    return None
