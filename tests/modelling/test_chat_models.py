"""Chat models behind servers of several protocols, which answer from a known distribution."""

import json
import math

import pytest
from raising import refused

from geval_py.errors import ModelError, UsageError
from geval_py.modelling import served_models
from geval_py.modelling.chat_models import Chat
from geval_py.reading.items import Item

# Each token with the tokens that may follow it; an answer ends by <|im_end|>.
FIRST = {"at": 0.5, "te": 0.3, '"eat': 0.1, "<|im_end|>": 0.02}
AFTER = {"te": {"a": 0.6, "e": 0.3, "<|im_end|>": 0.1}, "tea": {"<|im_end|>": 0.7, " time": 0.3}}
EXACT = {"at": 0.5, "tea": 0.3 * 0.6, "eat": 0.1, "tee": 0.3 * 0.3, "te": 0.3 * 0.1}
ANSWERS = ["at", '"at".', "tea", "at, I think", "**tea**", "eat", "at", "<|im_end|>", "oat", "at"]


def token(text, share):
    return {"token": text, "logprob": math.log(share), "bytes": list(text.encode())}


def steps(most):
    """Return the tokens of the answer "tea", with alternatives."""
    pairs = (("te", FIRST), ("a", AFTER["te"]), (" time", AFTER["tea"]))
    return [
        token(text, shares[text]) | {"top_logprobs": [token(*pair) for pair in [*shares.items()][:most]]}
        for text, shares in pairs
    ]


def openai(request, asked):
    assert request["messages"][0]["role"] == "user"
    most = request.get("top_logprobs")
    if most and most > 5:  # as a server that tells few
        return 400, {"error": "top_logprobs must be at most 5"}
    if most:
        choice = {"message": {"content": "tea time"}, "logprobs": {"content": steps(most)}}
        return 200, {"choices": [choice]}
    return 200, {"choices": [{"message": {"content": text}} for text in ANSWERS[: request["n"]]]}


def one_at_a_time(request, asked):
    """As a server that heeds neither n nor logprobs."""
    return 200, {"choices": [{"message": {"content": ANSWERS[request["seed"]]}, "logprobs": None}]}


def of_llama_cpp(request, asked):
    """It gives as many answers as it has slots."""
    many = {"error": "n_cmpl cannot be greater than the number of slots, please increase -np"}
    return (400, many) if request.get("n", 1) > 4 else one_at_a_time(request, asked)


def refusing(request, asked):
    return (400, {"error": "no logprobs"}) if "logprobs" in request else openai(request, asked)


@pytest.fixture
def chat(monkeypatch):
    """Open a chat model of a protocol; returns it and the requests that it sends."""
    import httpx

    plain = httpx.Client

    def start(protocol, url="http://here/v1#m", **settings):
        asked = []

        def answer(request):
            asked.append(json.loads(request.content))
            status, told = protocol(asked[-1], asked)
            return httpx.Response(status, **{"text" if isinstance(told, str) else "json": told})

        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(httpx, "Client", lambda **more: plain(transport=transport, **more))
        return Chat(url, settings.pop("count", 20), **settings), asked

    return start


def test_alternatives_of_an_answer_are_other_answers(chat):
    model, asked = chat(openai)
    shares = model.words("a", "to eat")
    assert (model.method, len(asked)) == ("top_logprobs", 4)
    assert shares == pytest.approx(EXACT)
    assert list(shares) == ["at", "tea", "eat", "tee", "te"]
    assert list(chat(openai, count=2)[0].words("a", "to eat")) == ["at", "tea"]


@pytest.mark.parametrize(("protocol", "url", "requests"), [
    (one_at_a_time, "http://here/v1", 3 + 10), (refusing, "http://here/v1#m", 3 + 1),
    (of_llama_cpp, "http://here/v1", 3 + 1 + 10),
], ids=["one at a time", "refusing", "llama.cpp"])  # fmt: skip
def test_answers_are_counted_where_there_are_no_alternatives(protocol, url, requests, chat, monkeypatch):
    monkeypatch.setattr("geval_py.modelling.chat_models.SAMPLES", 10)
    model, asked = chat(protocol, url)
    model.fit([Item(1, {}, "at")])
    shares = model.words("a", "to eat")
    assert (model.method, len(asked)) == ("samples", requests)
    rest = (3 + 0.5) / 11  # eat, oat and a mark of the end were answered once
    assert shares == pytest.approx(
        {word: count / 10 * (1 - rest) for word, count in {"at": 5, "tea": 2, "eat": 1, "oat": 1}.items()}
    )
    assert math.fsum(shares.values()) < 1 - rest  # a mark of the end is no word


def test_a_template_has_the_contexts_as_they_are(chat):
    model, asked = chat(openai, template="{left} <mask> {right}?")
    model.words("a {right}", "to {left} eat")
    assert asked[-1]["messages"][0]["content"] == "a {right} <mask> to {left} eat?"
    with pytest.raises(UsageError, match=r"^the template lacks \{left\}, which stands for the left context$"):
        chat(openai, template="guess!")


GIVES_NO = "The server http://here/v1/chat/completions gives no "


def test_a_server_that_gives_no_text(chat, monkeypatch):
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.001)
    with refused(GIVES_NO + 'text with its answer: {"choices":[{}]}', ModelError):
        chat(lambda *_: (200, {"choices": [{}]}))
    with refused(GIVES_NO + 'text with its answer: {"choices": [{"mes', ModelError):
        chat(lambda *_: (200, '{"choices": [{"mes'))
    with pytest.raises(ModelError, match=r"^The server http://here/v1/chat/completions answers 401: "):
        chat(lambda *_: (401, {"error": "who are you?"}))


def test_a_server_that_stops_returning_alternatives(chat, monkeypatch):
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.001)
    lines = iter([openai] * 4)
    model, asked = chat(lambda *request: next(lines, one_at_a_time)(*request))
    model.words("a", "b")
    with pytest.raises(ModelError) as caught:
        model.words("a", "b")
    assert str(caught.value).startswith(GIVES_NO + "alternatives (logprobs, top_logprobs) with its answer: {")
    assert len(asked) == 4 + served_models.TRIES


@pytest.mark.parametrize("message", [
    {"content": "<think>The gap needs"}, {"content": None, "reasoning": "The gap"}, {"content": "", "reasoning_content": "So"},
])  # fmt: skip
def test_a_model_that_thinks_is_an_error(message, chat):
    with pytest.raises(ModelError) as caught:
        chat(lambda *_: (200, {"choices": [{"message": message}]}))
    first, second, _ = str(caught.value).splitlines()
    assert first == (
        "The server http://here/v1/chat/completions thinks before it answers, so its first tokens are no word"
    )
    assert second.startswith("  turn thinking off: llama-server --reasoning-budget 0")


@pytest.mark.parametrize("mark", ["<end_of_turn>", "<｜end▁of▁sentence｜>", ""])
@pytest.mark.parametrize("stop", ["", "."])
def test_the_end_mark_is_what_follows_a_whole_word(mark, stop, chat):
    def answer(request, _):
        is_opening = "Harbor" in request["messages"][0]["content"]
        word = "Harbor" if is_opening else "Lake"
        texts = [word, stop, mark] if stop and is_opening else [word, mark]
        tokens = [token(text, 0.9) | {"top_logprobs": [token(text, 0.9), token("s", 0.05)]} for text in texts]
        return 200, {"choices": [{"message": {"content": word}, "logprobs": {"content": tokens}}]}

    model, _ = chat(answer)
    assert model.words("the", "of") == pytest.approx({"Lake": 0.81, "Lakes": 0.045, "s": 0.05})
    (line,) = model.report()
    assert line == f"method top_logprobs: up to 100 alternatives; the end mark is `{mark}`"


def test_alternatives_with_a_part_of_a_character_are_left_to_the_rest(chat):
    def answer(*_):
        others = [token("\ufffd", 0.1), {"token": "Ã", "bytes": [195], "logprob": -2.0}, token("", 0.1)]
        step = token("at", 0.6) | {"top_logprobs": [token("at", 0.6), *others]}
        return 200, {"choices": [{"message": {"content": "at"}, "logprobs": {"content": [step]}}]}

    assert chat(answer)[0].words("a", "b") == pytest.approx({"at": 0.6})
