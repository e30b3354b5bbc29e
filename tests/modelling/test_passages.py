"""The perplexity of texts by language models over tokens, and what lm-evaluation-harness says."""

import json
import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from letters_server import letters
from servers import free_port, served

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.passages import passages_shown, score_passages
from geval_py.modelling.served_models import Served
from geval_py.modelling.word_search import NextTokens, TokenModel

TEXTS = ["at tea to eat a toe. ", "", "a", "oat", "tea\ntoe"]


class Counting(TokenModel):
    """Letters whose probability depends on all the letters that the model sees, of which it takes eight."""

    max_length = 8
    texts = (b"", *(bytes([letter]) for letter in b" \nateo."))
    ends = frozenset({0})

    def encode(self, text):
        return [0, *(self.texts.index(letter.encode()) for letter in text)]

    def next_tokens(self, prefix, continuations):
        return [NextTokens(None, self.shares([*prefix, *tokens])) for tokens in continuations]

    def log_probabilities(self, prefix, continuations):
        return [
            np.log([self.shares([*prefix, *tokens[:n]])[token] for n, token in enumerate(tokens)])
            for tokens in continuations
        ]

    def shares(self, seen):
        assert 1 <= len(seen) <= self.max_length
        weights = np.array([1 + seen.count(token) for token in range(len(self.texts))])
        return weights / weights.sum()


def windows(tokens, size):
    done = 0
    while done < len(tokens):
        if done == 0:
            stop = min(size, len(tokens))
            yield [0, *tokens[: stop - 1]], tokens[:stop]
        else:
            stop = min(done + size, len(tokens))
            yield tokens[stop - size - 1 : stop - 1], tokens[done:stop]
        done = stop


@pytest.mark.parametrize("size", [None, 8, 3, 1])
def test_windows_are_those_of_the_harness(size):
    model = Counting()
    scores = score_passages(model, TEXTS, size)
    for text, log, tokens in zip(TEXTS, *scores[:, :2].T, strict=True):
        of_text = model.encode(text)[1:]
        shares = [
            model.shares(seen[: len(seen) - len(predicted) + place + 1])[token]
            for seen, predicted in windows(of_text, size or 8)
            for place, token in enumerate(predicted)
        ]
        assert (len(shares), math.fsum(map(math.log10, shares))) == (tokens, pytest.approx(log))
    assert scores[:, 2:].T.tolist() == [[6, 0, 1, 1, 2], [21, 0, 1, 3, 7]]


@pytest.mark.parametrize("size", [0, 9])
def test_a_window_that_is_not_possible(size):
    with pytest.raises(
        UsageError, match=rf"^a window of {size} tokens is not possible: the model takes 1 to 8 tokens$"
    ):
        score_passages(Counting(), TEXTS, size)


def test_perplexities_are_those_of_their_definitions():
    model, text = letters(), "a tea to eat"
    document = passages_shown(score_passages(model, [text])).document
    tokens = model.encode(text)
    nats = -math.fsum(math.log(model.table[pair]) for pair in pairwise(tokens))
    assert document == {
        "token_perplexity": pytest.approx(math.exp(nats / 12)),
        "word_perplexity": pytest.approx(math.exp(nats / 4)),
        "byte_perplexity": pytest.approx(math.exp(nats / 12)),
        "bits_per_byte": pytest.approx(nats / 12 / math.log(2)),
        "tokens": 12, "words": 4, "bytes": 12, "texts": 1,
    }  # fmt: skip
    assert math.isnan(passages_shown(score_passages(model, [""])).document["bits_per_byte"])


@pytest.fixture(scope="module")
def addresses():
    """The addresses of two servers of the model of letters: one that echoes prompts, and one that does not."""
    server, ports = Path(__file__).parent / "letters_server.py", [free_port(), free_port()]
    with (
        served([sys.executable, str(server), str(ports[0])], ports[0]),
        served([sys.executable, str(server), str(ports[1]), "--chat"], ports[1]),
    ):
        yield [f"openai:http://127.0.0.1:{port}/v1#letters" for port in ports]


def test_a_server_tells_the_tokens_of_a_text(addresses):
    echoing, silent = (Served(address.partition(":")[2]) for address in addresses)
    scores = score_passages(echoing, ["", "a tea"])
    model, tokens = letters(), letters().encode("\na tea")[1:]  # an empty prompt is a line end
    expected = math.fsum(math.log10(model.table[pair]) for pair in pairwise(tokens))
    assert scores[:, :2].T.tolist() == [[0, pytest.approx(expected)], [0, 5]]
    with pytest.raises(ModelError, match="does not tell the probability of a prompt"):
        score_passages(silent, ["a tea"])
    with pytest.raises(UsageError, match=r"^a window of 9 tokens is not possible: a server takes each text whole$"):
        score_passages(echoing, ["a tea"], 9)


def test_the_command(addresses, geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(b"a tea\r\nto eat\n")
    Path("b.txt").write_text("oat")
    perplexity = ("lm", "perplexity", addresses[0])
    status, out, err = geval(*perplexity, "a.txt", "b.txt")
    assert (status, err) == (0, "")
    labels, figures = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
    per = [f"{unit} perplexity:" for unit in ("Token", "Word", "Byte")]
    assert labels == (*per, "Bits per byte:", "Tokens:", "Words:", "Bytes:")
    assert figures[4:] == ("14", "5", "14")
    whole = json.loads(geval(*perplexity, "a.txt", "b.txt", "--whole-texts", "--format", "json")[1])
    assert [whole[name] for name in ("tokens", "words", "bytes", "texts")] == [18, 5, 18, 2]
    assert "±" in geval(*perplexity, "a.txt", "b.txt", "-B", "20")[1]
    assert [line.partition("\t")[2] for line in geval(*perplexity, "a.txt", "--sentences")[1].splitlines()] == [
        "5",
        "6",
    ]


def test_the_texts_of_a_challenge(addresses, geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("dev-0").mkdir()
    Path("config.txt").write_text("--metric PerplexityHashed\n")
    Path("dev-0/in.tsv").write_text("a\teat\noat\tto a\n")
    Path("dev-0/expected.tsv").write_text("tea\ntoe\n")
    Path("text.txt").write_text("a tea eat\noat toe to a\n")
    perplexity = ("lm", "perplexity", addresses[0])
    assert geval(*perplexity, "--challenge", ".", "-t", "dev-0") == geval(*perplexity, "text.txt")


def test_what_does_not_go_together(addresses, geval, tmp_path):
    (tmp_path / "text").write_text("a tea\n")
    text, chat = str(tmp_path / "text"), "chat:http://localhost/v1#gemma"
    is_a_chat_model = (
        f"geval: `{chat}` is a chat model, which does not tell the probabilities of a text\n"
        "  geval predict takes it; choose gguf, hf, openai here\n"
    )
    for command in ("perplexity", "surprisal"):
        assert geval("lm", command, chat, text) == (2, "", is_a_chat_model)
    assert geval("lm", "perplexity", addresses[0], text, "--no-sentence-marks") == (
        2, "", "geval: --no-sentence-marks is for n-gram models\n"
    )  # fmt: skip
    arpa = str(tmp_path / "a.arpa")
    assert geval("lm", "train", "-o", "1", text, "--arpa", arpa, "--counts", "add-one")[0] == 0
    for option in (("--window", "3"), ("--whole-texts",)):
        assert geval("lm", "perplexity", arpa, text, *option) == (
            2, "", "geval: --window and --whole-texts are for gguf:FILE, hf:NAME and openai:URL#MODEL\n"
        )  # fmt: skip
