"""KenLM's binary files: their heads, and the scores of texts where the package kenlm is installed."""

import json
import shutil
import struct
import subprocess
import sys
from array import array
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.errors import ModelError
from geval_py.modelling import kenlm_models
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


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"version 5", b"version 4", "unfinished, or of another version"),
        (b"format version 5", b"incomplete\n     ", "unfinished, or of another version"),
        (struct.pack("<f", -0.5), struct.pack(">f", -0.5), "from another kind of machine, or damaged"),
    ],
)
def test_what_cannot_be_used(old, new, reason, tmp_path):
    data = PROBING.read_bytes()
    assert old in data
    (tmp_path / "other").write_bytes(data.replace(old, new, 1))
    with pytest.raises(ModelError) as raised:
        read_head(str(tmp_path / "other"))
    assert raised.value.message == f"This binary model of KenLM is {reason}\n  build it again from its ARPA file"


def test_another_kind_of_tables(tmp_path):
    data = bytearray(PROBING.read_bytes())
    struct.pack_into("<i", data, 88 + 8, 6)
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ModelError) as raised:
        read_head(str(tmp_path / "other"))
    assert raised.value.message == DAMAGED


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
        "geval: a binary model of KenLM needs the package kenlm, of the extra models; it is built from source by cmake and a "
        "C++ compiler, in minutes:\n  pip install 'kenlm>=0.3'\n"
    )


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("name", ["probing.bin", pytest.param("trie.bin", marks=pytest.mark.long)])
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


@pytest.fixture(params=["native", "python"])
def score(request):
    if request.param == "python":
        return kenlm_models.score_probing
    return pytest.importorskip("geval_py.scoring.kernel.native").score_probing


def opened(path=MODEL):
    model = kenlm_models.open_probing(str(path))
    return model.data, array("Q", model.counts), model.buckets


@pytest.mark.parametrize("marks", [True, False], ids=["query", "query -n"])
def test_query_of_each_word(score, marks):
    logs, unknown, lengths = score(*opened(), GOLDEN["text"].encode(), marks)
    wanted = GOLDEN["query" if marks else "query -n"]
    assert logs == array("f", [log for log, _ in wanted])
    assert list(unknown) == [is_unknown for _, is_unknown in wanted]
    lines = GOLDEN["text"].split("\n")[:-1]
    assert lengths.tolist() == [len(line.split()) + marks for line in lines]


def test_query_of_a_text(tmp_path, monkeypatch):
    """The package kenlm is not needed."""
    monkeypatch.setitem(sys.modules, "kenlm", None)
    (tmp_path / "text").write_text(GOLDEN["text"], newline="")
    found = NgramModel.load(MODEL).score_texts(tmp_path / "text")
    logs = iter(GOLDEN["query"])
    of_lines = [list(islice(logs, length)) for length in found.tokens]
    assert found.logs.tolist() == pytest.approx([sum(log for log, _ in line) for line in of_lines], abs=1e-5)
    known = [sum(log for log, is_unknown in line if not is_unknown) for line in of_lines]
    assert found.known_logs.tolist() == pytest.approx(known, abs=1e-5)
    assert found.oov.tolist() == [sum(is_unknown for _, is_unknown in line) for line in of_lines]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(88, MODEL.stat().st_size - 1), st.integers(0, 255)), max_size=200), st.data())
def test_any_bytes_give_the_same_as_the_reference(changes, data):
    """Also a file that was cut off, and tables without an empty bucket."""
    native = pytest.importorskip("geval_py.scoring.kernel.native")
    broken = bytearray(MODEL.read_bytes())
    for place, byte in changes:
        broken[place] = byte
    if data.draw(st.booleans()):
        broken[150 : data.draw(st.integers(150, 8000))] = b"\1" * 8000
    del broken[data.draw(st.integers(100, len(broken))) if data.draw(st.booleans()) else len(broken) :]
    _, counts, buckets = opened()
    text = " ".join(data.draw(st.lists(st.sampled_from(GOLDEN["text"].split(" ")), max_size=40))).encode() + b"\n"
    answers = []
    for function in (native.score_probing, kenlm_models.score_probing):
        try:
            logs, unknown, lengths = function(bytes(broken), counts, buckets, text, True)
            answers.append(([*map(str, logs)], unknown, lengths))  # a NaN has no equal
        except ValueError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("counts", "buckets"),
    [([5], 1.5), ([5] * 33, 1.5), ([5, 1 << 41], 1.5), ([5, 4], 0.5), ([5, 4], float("nan")), ([5, 1 << 40], 1e6)],
)
def test_sizes_that_no_file_has(score, counts, buckets):
    with pytest.raises(ValueError, match=r"^the file is too short for its tables$"):
        score(PROBING.read_bytes(), array("Q", counts), buckets, b"a\n", True)


def test_a_probing_file_that_was_cut_off(geval, tmp_path):
    (tmp_path / "cut").write_bytes(MODEL.read_bytes()[:1000])
    (tmp_path / "text").write_text("a b\n")
    status, out, err = geval("lm", "perplexity", str(tmp_path / "cut"), str(tmp_path / "text"))
    assert (status, out) == (1, "")
    assert err == f"geval: {DAMAGED}\n  in `{tmp_path / 'cut'}`\n"


def test_binary_models_are_scored_without_numpy(tmp_path):
    """Half of the time would pass with its import."""
    (tmp_path / "text").write_text("a b\n")
    code = "import sys; from geval_py.cli import main; main(sys.argv[1:]); assert 'numpy' not in sys.modules"
    words = [sys.executable, "-I", "-c", code, "lm", "perplexity", str(PROBING), str(tmp_path / "text")]
    subprocess.run(words, capture_output=True, check=True)
