"""Language models behind a server, and what it may do wrong."""

import json
import math
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from letters_server import letters
from raising import refused
from servers import free_port, served

from geval_py.errors import ModelError
from geval_py.modelling import served_models
from geval_py.modelling.served_models import Served
from geval_py.modelling.word_search import WordSearch

SERVER = Path(__file__).parent / "letters_server.py"


@pytest.fixture(scope="module")
def server():
    with ExitStack() as stack:

        @cache
        def start(*options):
            port = free_port()
            stack.enter_context(served([sys.executable, str(SERVER), str(port), *options], port))
            return f"http://127.0.0.1:{port}/v1#letters"

        yield start


def words_of(model, left="a tea", **settings):
    return WordSearch(model, 20, **settings).words(left, "to eat" if settings else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), ("--chat",), ("--single",)], ids=["protocol", "llama.cpp", "no lists, as Ollama"]
)
def test_a_server_that_tells_all_tokens_gives_the_words_of_its_model(options, server):
    assert words_of(Served(server(*options))) == pytest.approx(words_of(letters()), rel=1e-9)


@pytest.mark.slow
def test_a_gap_takes_few_requests(server):
    import httpx

    address = server()
    asked = address.partition("/v1")[0] + "/asked"
    model = Served(address)
    before = httpx.get(asked).json()
    WordSearch(model, 300, right=10).words("a tea", "to eat", [f"t{word}" for word in ("oat", "eat", "tote", "a")])
    assert httpx.get(asked).json() - before <= 20


@pytest.mark.slow
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


@pytest.mark.slow
def test_faults_are_got_over(server, monkeypatch):
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.01)
    assert words_of(Served(server("--drop", "5"), parallel=3)) == pytest.approx(words_of(letters()), rel=1e-9)


@pytest.mark.slow
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
    with refused(message):
        Served(address)


@pytest.fixture
def replies(monkeypatch):
    import httpx

    plain, asked = httpx.Client, []
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.001)

    def start(*answers):
        def answer(request):
            asked.append(request)
            status, body, *headers = answers[min(len(asked), len(answers)) - 1]
            kind = "text" if isinstance(body, str) else "json"
            return httpx.Response(status, headers=dict(*headers), **{kind: body})

        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(httpx, "Client", lambda **settings: plain(transport=transport, **settings))
        return asked

    return start


def completion(logs):
    return {"choices": [{"logprobs": logs}], "usage": {"total_tokens": 7}}


GOOD = completion({"top_logprobs": [{" a": -0.5, " b": -2.0}]})
URL = "http://localhost/v1"
LACKS = "gives no log probabilities of alternatives (logprobs, top_logprobs) with its answer: "


@pytest.mark.parametrize("body", [
    "<html>an error</html>", '{"choices": [{"logp', {"error": {"message": "no GPU is left"}}, completion("x"), completion(None),
    completion({}), completion({"top_logprobs": None}), completion({"top_logprobs": [["x"]]}),
    completion({"top_logprobs": [{"a": "much"}]}), completion({"top_logprobs": [{"a": None, "b": -1}]}),
    completion({"content": [{"top_logprobs": [{"token": 5}]}]}), completion({"top_logprobs": [{}]}), GOOD | {"usage": "much"},
])  # fmt: skip
def test_an_answer_that_is_none_is_tried_again_and_then_an_error(body, replies):
    asked = replies((200, body))
    with pytest.raises(ModelError) as caught:
        Served(URL)
    message = str(caught.value)
    assert message.startswith(f"The server {URL}/completions {LACKS}")
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    assert message.removeprefix(f"The server {URL}/completions {LACKS}")[:60] == text[:60]
    assert len(asked) == served_models.TRIES
    asked = replies((200, body), (200, GOOD))
    asked.clear()
    assert Served(URL).next_tokens([], [()])[0].probabilities == pytest.approx([math.exp(-0.5), math.exp(-2)])


def test_as_many_answers_as_prompts(replies):
    replies((200, {"choices": [{"logprobs": {"top_logprobs": [{" a": -1}]}}] * 2}))
    with pytest.raises(ModelError, match=r"completions gives 2 answers to 1 prompt$"):
        Served(URL)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503, 520, 529])
def test_a_busy_server_is_asked_again(status, replies):
    replies((status, "busy"), (status, "busy", {"retry-after": "0.001"}), (200, GOOD))
    assert Served(URL)


@pytest.mark.parametrize(("status", "body", "headers", "message"), [
    (401, "who are you?", {}, "answers 401: who are you?"), (404, "no such model", {}, "answers 404: no such model"),
    (429, {"error": {"code": "insufficient_quota"}}, {}, 'answers 429: {"error":{"code":"insufficient_quota"}}'),
    (307, "", {"location": "https://there/v1"}, "answers 307: \n  its address is https://there/v1"),
    (307, "", {}, "answers 307: \n  its address is not named"),
    (429, "slow", {"retry-after": "90"}, "answers 429: slow\n  it asks to wait 90 seconds, which --wait 90 allows"),
])  # fmt: skip
def test_what_no_waiting_mends_is_an_error_at_once(status, body, headers, message, replies):
    asked = replies((status, body, headers))
    with pytest.raises(ModelError) as caught:
        Served(URL)
    assert (str(caught.value), len(asked)) == (f"The server {URL}/completions {message}", 1)


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2015 07:28:00 GMT", "-5", "nan", "inf", "soon"])
def test_a_server_may_name_a_date_or_nonsense(value, replies):
    replies((503, "later", {"retry-after": value}), (200, GOOD))
    assert Served(URL)


def test_a_field_that_the_server_refuses_is_renamed_or_left_out(replies):
    asked = replies(
        (400, "'max_tokens' is not supported: use 'max_completion_tokens'"), (422, "seed: extra field"), (200, GOOD)
    )
    model = Served(URL)
    model.next_tokens([], [()])
    fields = json.loads(asked[-1].content)
    assert fields["max_completion_tokens"] == 1
    assert fields.keys().isdisjoint({"max_tokens", "seed"})


def test_a_server_without_log_probabilities_is_an_error_that_names_another_way(replies):
    asked = replies((400, "unknown field: logprobs"))
    with pytest.raises(ModelError) as caught:
        Served(URL)
    advice = "without the probabilities of tokens (logprobs), chat:URL#MODEL counts answers"
    assert str(caught.value) == f"The server {URL}/completions answers 400: unknown field: logprobs\n  {advice}"
    assert len(asked) == len(served_models.ALTERNATIVES)


def test_the_likeliest_token_behind_a_whole_word_ends_words(replies):
    """Whatever its spelling is; here " a" may follow as well."""
    asked = replies((200, completion({"top_logprobs": [{" a": -2.0, "~~over~~": -0.2}]})))
    model = Served(URL)
    assert json.loads(asked[0].content)["prompt"].endswith("Harbor")
    end = "the end mark is `~~over~~`"
    assert model.report() == [f"the server returns 2 alternatives, and takes 1 prompt per request; {end}"]
    assert WordSearch(model, 5).words("the") == pytest.approx({"a": math.exp(-2) + math.exp(-0.2)})


@pytest.mark.parametrize(("variable", "url", "is_sent"), [
    ("OPENAI_API_KEY", "http://localhost:8000/v1", True), ("OPENAI_API_KEY", "https://far/v1", True),
    ("OPENAI_API_KEY", "http://far/v1", False), ("GEVAL_API_KEY", "http://far/v1", True),
])  # fmt: skip
def test_a_key_goes_over_plain_http_to_this_machine_alone(variable, url, is_sent, replies, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv(variable, "secret")
    asked = replies((200, GOOD))
    Served(url)
    assert ("authorization" in asked[0].headers) == is_sent


def test_tokens_with_a_part_of_a_character_are_left_to_the_rest(replies):
    """They neither end a word nor begin one: a space and </s> do."""
    logs = {" a": -1.0, "": -2.0, "\ufffd": -2.5, "bytes:\\xe2": -3.0, "</s>": -4.0}
    replies((200, completion({"top_logprobs": [logs]})))
    shares = WordSearch(Served(URL), 5).words("the")
    assert shares == pytest.approx({"a": math.exp(-1) * (math.exp(-1) + math.exp(-4)) / math.exp(-1)})
