"""Chat models behind a server, which are asked for the word in a gap as a person would be.

The answer's tokens come with their likeliest alternatives (``top_logprobs``), if the server tells them. A server that
goes on with an answer that was begun is asked for what follows each beginning of a word, as a model of texts is. Else
each alternative begins another answer, whose probability is that of its tokens. It is taken for a whole word, so a
word gets the probability of all that begin with it. A server that tells no alternatives is asked several times, and
the rest is estimated from the words that it answered once, as Good and Turing do (Good, 1953,
https://doi.org/10.2307/2333344).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from geval_py.errors import UsageError
from geval_py.modelling.corpus import Doubles
from geval_py.modelling.served_models import NO_ECHO, SPECIAL, RefusedError, Server
from geval_py.modelling.word_search import NextTokens, Tokens, WordSearch, likeliest
from geval_py.reading.wordprobs import is_listable

TEMPLATE = """\
One word is missing from this text. The mark [...] stands in its place.

{left} [...] {right}

Answer with the missing word alone, in the form in which it stands in the text.
"""
ALTERNATIVES = (100, 20, 5)  # next tokens to ask for: 20 is OpenAI's limit, 5 that of Text Generation Inference
BEGUN, ENDED = "Constantin", b"ople"  # parts of a word that is asked for
MIN_SHARE = 1e-3  # of the beginning of an answer for which a request is sent
SAMPLES = 20  # answers of a server without alternatives
MAX_TOKENS = 16  # of an answer
MAX_AROUND = 3000  # characters of a context
QUOTES = "\"'`*“”‘’«»"  # around an answer
Step = tuple[bytes, float, list[tuple[bytes, float]]]  # a token, its logarithm, and those of the alternatives


class Chat(Server):
    """A chat model by its address, URL#MODEL, in OpenAI's protocol, or in TGI's if URL ends in /generate.

    At most ``count`` words are listed. The ``template`` has {left} and {right} in it. With ``samples``, so many
    answers are counted. Without, SAMPLES are if the server tells no alternatives. ``method`` says which. Raises
    ModelError and UsageError as Server.
    """

    def __init__(
        self, address: str, count: int, parallel: int = 4, samples: int = 0, template: str | None = None
    ) -> None:
        self._is_tgi = address.partition("#")[0].endswith("/generate")
        super().__init__("chat", address, "" if self._is_tgi else "/chat/completions", parallel)
        self._template, self._count, self._after = TEMPLATE if template is None else template, count, ""
        if "{left}" not in self._template:
            raise UsageError(message="the template lacks {left}, which stands for the left context")
        self._samples, self._most, self._takes_many = samples, 0, not self._is_tgi  # many answers to a request
        for number in () if samples else ALTERNATIVES:
            try:
                (answer,) = self._post([self._request("Say hello.", number)])
            except RefusedError:
                continue
            if any(alternatives for _, _, alternatives in self._steps(answer)):
                self._most = number
                break
        self._samples = 0 if self._most else samples or SAMPLES
        self.method = "samples" if self._samples else "prefilled" if self._goes_on() else "top_logprobs"

    def fit(self, _answers: Iterable[str], after: str) -> None:
        """Learn the punctuation that stands ``after`` words, not in them."""
        self._after = after

    def words(self, left: str, right: str = "", _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the words that the model answers between two texts, with their probabilities."""
        contexts = {"left": left[-MAX_AROUND:], "right": right[:MAX_AROUND]}
        prompt = re.sub(r"\{(left|right)\}", lambda match: contexts[match[1]], self._template)
        shares: defaultdict[str, float] = defaultdict(float)
        answers = {"samples": self._sampled, "prefilled": self._searched, "top_logprobs": self._listed}[self.method]
        for text, share in answers(prompt):
            word = self._word(text)
            if is_listable(word) and not SPECIAL.fullmatch(word.encode()):
                shares[word] += share
        return likeliest(shares, self._count)

    def _word(self, text: str) -> str:
        """Return the first word of an answer, without quotation marks and punctuation."""
        word = (text.split() or [""])[0].strip(QUOTES)
        return word.rstrip(self._after) or word

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[NextTokens]:
        """Return the likeliest tokens of the answer to a prompt, behind each beginning of it."""
        prompt, answers = self._text(prefix), map(self._text, continuations)
        told = self._post([self._request(prompt, self._most, answer=answer, size=1) for answer in answers])
        steps = [self._steps(answer)[:1] for answer in told]
        if not all(steps):
            raise self._failed("lists no alternatives (top_logprobs) in its answer")
        return [self._next_tokens(alternatives) for ((_, _, alternatives),) in steps]

    def log_probabilities(self, _prefix: Sequence[int], _continuations: Sequence[Tokens]) -> list[Doubles]:
        """Raise ModelError: the protocol has no echo."""
        raise self._failed(NO_ECHO)

    def _goes_on(self) -> bool:
        """Return whether the server goes on with an answer that was begun, by a word of which the end is certain."""
        try:
            prompt = f"Write {BEGUN}{ENDED.decode()}.\n"
            (answer,) = self._post([self._request(prompt, self._most, answer=BEGUN, size=1)])
        except RefusedError:
            return False
        alternatives = [pair for _, _, pairs in self._steps(answer)[:1] for pair in pairs]
        return sum(math.exp(log) for token, log in alternatives if ENDED.startswith(token)) > 1 / 2

    def _searched(self, prompt: str) -> Iterable[tuple[str, float]]:
        search = WordSearch(self, self._count, after=self._after, least=MIN_SHARE)
        return search.words(prompt.rstrip() + "\n").items()  # no space stands before an answer

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

    def _request(
        self, prompt: str, alternatives: int, seed: int = 0, answer: str = "", size: int = MAX_TOKENS
    ) -> dict[str, Any]:
        """Return a request for an answer of a number of tokens, the rest of one that was begun."""
        if self._is_tgi:
            told = {"details": True, "top_n_tokens": alternatives} if alternatives else {}
            settings = told | {"max_new_tokens": size, "do_sample": True, "seed": seed}
            return {"inputs": prompt + answer, "parameters": settings}
        told = {"logprobs": True, "top_logprobs": alternatives} if alternatives else {}
        messages = [{"role": "user", "content": prompt}]
        if answer:
            messages.append({"role": "assistant", "content": answer})
            told |= {"continue_final_message": True, "add_generation_prompt": False}  # for vLLM and SGLang
        return {"messages": messages, "max_tokens": size, "temperature": 1.0, "seed": seed, **told}

    def _texts(self, answer: Any) -> list[str]:
        try:
            if self._is_tgi:
                return [str(answer["generated_text"])]
            return [choice["message"]["content"] or "" for choice in answer["choices"]]
        except (LookupError, TypeError, AttributeError) as error:
            raise self._failed("gives no text with its answer") from error

    def _steps(self, answer: Any) -> list[Step]:
        """Return the tokens of an answer with their alternatives, none if it does not tell any."""
        try:
            if self._is_tgi:
                steps, listed = answer["details"]["tokens"], answer["details"]["top_tokens"]
            else:
                steps = answer["choices"][0]["logprobs"]["content"]
                listed = [step["top_logprobs"] for step in steps]
            return [
                (*_token(step), [_token(other) for other in others])
                for step, others in zip(steps, listed, strict=False)
            ]
        except (LookupError, TypeError, ValueError, AttributeError):
            return []


def _token(told: Any) -> tuple[bytes, float]:
    """Return the text of a token, a line end for special tokens, and the logarithm of its probability."""
    text = bytes(told.get("bytes") or (told.get("token") or told.get("text") or "").encode())
    is_special = told.get("special") or not text or SPECIAL.fullmatch(text)
    return b"\n" if is_special else text, float(told["logprob"])
