"""Language models behind a server, and what it may do wrong."""

import json
import math
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from letters_server import letters
from servers import free_port, served

from geval_py.errors import ModelError, UsageError
from geval_py.modelling import served_models
from geval_py.modelling.served_models import Served
from geval_py.modelling.word_search import WordSearch

SERVER = Path(__file__).parent / "letters_server.py"


@pytest.fixture
def server():
    """Start servers: a function of their options that returns an address."""
    with ExitStack() as stack:

        def start(*options):
            port = free_port()
            stack.enter_context(served([sys.executable, str(SERVER), str(port), *options], port))
            return f"http://127.0.0.1:{port}/v1#letters"

        yield start


def words_of(model, left="a tea", **settings):
    return WordSearch(model, 20, **settings).words(left, "to eat" if settings else "")


@pytest.mark.parametrize(
    "options", [(), ("--chat",), ("--single",)], ids=["protocol", "llama.cpp", "no lists, as Ollama"]
)
def test_a_server_that_tells_all_tokens_gives_the_words_of_its_model(options, server):
    assert words_of(Served(server(*options))) == pytest.approx(words_of(letters()), rel=1e-9)


def test_a_gap_takes_few_requests(server):
    """Each level of the search is one list of prompts."""
    import httpx

    address = server("--most", "100")
    asked = address.partition("/v1")[0] + "/asked"
    model = Served(address)
    before = httpx.get(asked).json()
    WordSearch(model, 300, right=10).words("a tea", "to eat", [f"t{word}" for word in ("oat", "eat", "tote", "a")])
    assert httpx.get(asked).json() - before <= 20


def test_the_right_context_is_scored_by_echo(server):
    shares = words_of(Served(server()), right=4)
    exact = words_of(letters(), right=100)  # a server is asked for the words of the text
    assert list(shares)[:5] == list(exact)[:5]
    with pytest.raises(ModelError, match="does not tell the probability of a prompt"):
        words_of(Served(server("--chat")), right=4)


def test_surprisals_of_a_server_are_those_of_its_model(server):
    words = ["a", "tea", "to", "eat", "at", "toe."]
    bits = WordSearch(Served(server()), 1).surprisals(words)
    assert bits[1:] == pytest.approx(WordSearch(letters(), 1).surprisals(words)[1:], rel=1e-9)


def test_faults_are_got_over(server, monkeypatch):
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.01)
    assert words_of(Served(server("--drop", "5"), parallel=3)) == pytest.approx(words_of(letters()), rel=1e-9)


def test_the_order_of_answers_does_not_matter(server):
    address = server()
    assert words_of(Served(address, parallel=1)) == words_of(Served(address, parallel=8))


def test_few_alternatives_are_taken_for_all(server):
    shares, exact = words_of(Served(server("--most", "5"))), words_of(letters())
    assert math.fsum(shares.values()) < math.fsum(exact.values()) <= 1 + 1e-9
    assert set(list(shares)[:3]) == set(list(exact)[:3])


def test_a_key_is_sent_to_the_server(server, monkeypatch):
    address = server("--key", "secret")
    with pytest.raises(ModelError, match=r"answers 401: .*who are you") as caught:
        Served(address)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("GEVAL_API_KEY", "secret")
    assert words_of(Served(address))


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.01)
    address = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(ModelError) as caught:
        Served(address)
    assert str(caught.value).startswith(f"The server {address}/completions does not answer: ")


@pytest.mark.parametrize(("address", "message"), [
    ("localhost:8000", "`localhost:8000` is no address of a server: openai:http://HOST/v1#MODEL"),
    *((address, "an address is written down; put a key or a password into GEVAL_API_KEY")
      for address in ("http://me:secret@host/v1#m", "https://host/v1?key=secret#m")),
])  # fmt: skip
def test_an_address_that_cannot_be_used(address, message):
    with pytest.raises(UsageError) as caught:
        Served(address)
    assert str(caught.value) == message


def test_a_text_that_begins_with_the_gap(server):
    """An empty prompt is a line end."""
    assert words_of(Served(server()), left="") == words_of(Served(server()), left="\n")


@pytest.mark.parametrize(("logs", "message"), [
    ("x", "gives no log probabilities (logprobs) with its answer"),
    (None, "gives no log probabilities (logprobs) with its answer"),
    ({}, "lists no alternatives (top_logprobs) in its answer"),
    ({"top_logprobs": None}, "lists no alternatives (top_logprobs) in its answer"),
    ({"top_logprobs": [["x"]]}, "lists no alternatives (top_logprobs) in its answer"),
    ({"top_logprobs": [{"a": "much"}]}, "lists no alternatives (top_logprobs) in its answer"),
    ([{"logprobs": {}}] * 2, "gives 2 answers to 1 prompt"),
    ({"content": [{"top_logprobs": [{"token": 5}]}]}, "lists no alternatives (top_logprobs) in its answer"),
])  # fmt: skip
def test_answers_that_are_none(logs, message, monkeypatch):
    import httpx

    text = json.dumps({"choices": [{"logprobs": logs}] if isinstance(logs, dict | str | None) else logs})
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    plain = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **settings: plain(transport=transport, **settings))
    with pytest.raises(ModelError) as caught:
        Served("http://elsewhere/v1")
    assert str(caught.value) == f"The server http://elsewhere/v1/completions {message}"
