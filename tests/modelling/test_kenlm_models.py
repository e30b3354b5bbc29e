"""KenLM's binary files: their heads, and the scores of texts where the package kenlm is installed."""

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from geval_py.errors import ModelError
from geval_py.modelling.kenlm_models import BinaryHead, is_binary, read_head
from geval_py.modelling.ngram_model import NgramModel

# Made of model.arpa by KenLM's build_binary at 4cb443e: build_binary [trie] model.arpa FILE.
DATA = Path(__file__).parents[1] / "data" / "kenlm-binary"
PROBING, TRIE = DATA / "probing.bin", DATA / "trie.bin"
DAMAGED = "This binary model of KenLM is damaged\n  build it again from its ARPA file"


def test_the_head_tells_the_counts():
    assert read_head(str(PROBING)) == BinaryHead(kind="probing hash tables", counts=(5, 4))
    assert read_head(str(TRIE)) == BinaryHead(kind="trie", counts=(5, 4))


def test_what_is_binary(tmp_path):
    (tmp_path / "short").write_bytes(b"mmap lm")
    assert [is_binary(str(path)) for path in (PROBING, DATA / "model.arpa", tmp_path / "short", tmp_path, tmp_path / "x")] == [
        True, False, False, False, False,
    ]  # fmt: skip


def test_a_file_that_was_cut_off(tmp_path):
    head = PROBING.read_bytes()[:200]
    whole = 88 + 20 + 2 * 8
    for length in range(40, whole):
        (tmp_path / "cut").write_bytes(head[:length])
        with pytest.raises(ModelError, match=r"^This binary model of KenLM is "):
            read_head(str(tmp_path / "cut"))
    (tmp_path / "cut").write_bytes(head[: whole - 1])
    with pytest.raises(ModelError) as raised:
        read_head(str(tmp_path / "cut"))
    assert raised.value.message == DAMAGED


@pytest.mark.parametrize(("place", "data", "reason"), [
    (PROBING.read_bytes().index(b"version 5"), b"version 4", "unfinished, or of another version"),
    (PROBING.read_bytes().index(b"format version 5"), b"incomplete\n     ", "unfinished, or of another version"),
    (PROBING.read_bytes().index(struct.pack("<f", -0.5)), struct.pack(">f", -0.5),
     "from another kind of machine, or damaged"),
    (88 + 8, struct.pack("<i", 6), "damaged"),  # another kind of tables
])  # fmt: skip
def test_what_cannot_be_used(place, data, reason, tmp_path):
    whole = PROBING.read_bytes()
    (tmp_path / "other").write_bytes(whole[:place] + data + whole[place + len(data) :])
    with pytest.raises(ModelError) as raised:
        read_head(str(tmp_path / "other"))
    assert raised.value.message == f"This binary model of KenLM is {reason}\n  build it again from its ARPA file"


def test_info(geval):
    assert geval("lm", "info", str(TRIE)) == (0, "order    2\n1-grams  5\n2-grams  4\nbinary   trie\n", "")
    status, out, err = geval("lm", "info", str(PROBING), "--format", "json")
    document = json.loads(out)
    del document["version"]
    assert document == {"order": 2, "ngrams": [5, 4], "binary": "probing hash tables"}
    assert (status, err) == (0, "")


def test_perplexity_without_kenlm(geval, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("a b\n")
    monkeypatch.setitem(sys.modules, "kenlm", None)
    status, out, err = geval("lm", "perplexity", str(TRIE), str(tmp_path / "text"))
    assert (status, out) == (2, "")
    assert err == (
        f"geval: `{TRIE}` is a binary model of KenLM: it needs the package kenlm, which cmake and a C++ compiler build in "
        "minutes:\n  pip install 'kenlm>=0.3'\n  or load the ARPA file that it was made from\n"
    )


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("name", ["probing.bin", "trie.bin"])
@pytest.mark.long
def test_the_scores_are_those_of_the_arpa_file(name, marks, tmp_path):
    (tmp_path / "text").write_bytes(b"a b\nb unknown a\n\n a  b\tb a \n\xff a\nb")
    wanted = NgramModel.load(DATA / "model.arpa").score_texts(tmp_path / "text", bos=marks, eos=marks)
    score = NgramModel.load(DATA / name).score_texts(tmp_path / "text", bos=marks, eos=marks)
    for one in ("logs", "known_logs"):
        assert np.allclose(getattr(score, one), getattr(wanted, one), atol=1e-5, rtol=0)
    assert score.oov.tolist() == wanted.oov.tolist()
    assert score.tokens.tolist() == wanted.tokens.tolist()


@pytest.mark.long
def test_a_binary_file_that_kenlm_refuses(geval, tmp_path):
    shutil.copy(TRIE, tmp_path / "cut.bin")
    with open(tmp_path / "cut.bin", "r+b") as file:
        file.truncate(300)
    (tmp_path / "text").write_text("a b\n")
    status, out, err = geval("lm", "perplexity", str(tmp_path / "cut.bin"), str(tmp_path / "text"))
    assert (status, out) == (1, "")
    assert err.startswith("geval: ")
    assert "KenLM cannot read this model" in err


# The model is one of the first 24 verses of the King James Bible, without punctuation and in small letters:
# lmplz -o 4 --prune 0 0 1 --discount_fallback, then build_binary. The scores are those of query -v word, each token's
# log10 and whether it is unknown.
GOLDEN = json.loads((DATA / "order-4.json").read_text())
MODEL = DATA / "order-4.bin"


@pytest.mark.long
@pytest.mark.parametrize("marks", [True, False], ids=["query", "query -n"])
def test_query_of_each_word(marks):
    logs, orders, lengths = NgramModel.load(MODEL).token_scores(GOLDEN["text"].encode(), bos=marks, eos=marks)
    wanted = GOLDEN["query" if marks else "query -n"]
    assert logs.tolist() == pytest.approx([log for log, _ in wanted], rel=1e-6)
    assert (orders == 0).tolist() == [is_unknown for _, is_unknown in wanted]
    lines = GOLDEN["text"].split("\n")[:-1]
    assert lengths.tolist() == [len(line.split()) + marks for line in lines]
