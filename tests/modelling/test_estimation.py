"""Models estimated in many chunks are those estimated in one, byte for byte."""

import io
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kenlm_golden import RUNS, estimation_of

from geval_py.errors import ModelError
from geval_py.modelling.arpa import write_arpa
from geval_py.modelling.columns import NumberColumn, Sizes
from geval_py.modelling.corpus import Corpus, corpus_of
from geval_py.modelling.estimation import Estimation, estimate
from geval_py.modelling.texts import blocks_of_files

SMALL = Sizes(tokens=2000, rows=1500, picked=700)


def in_one_chunk(path, how):
    estimated = estimate(corpus_of(blocks_of_files([path])), how)
    return written(estimated.model()), estimated.counts, estimated.kept, estimated.discounts


def in_chunks(path, how, sizes=SMALL):
    whole = corpus_of(blocks_of_files([path]))
    corpus, tokens = Corpus(whole.words, sizes, path), whole.tokens.read()
    for sentence in np.split(tokens, np.flatnonzero(tokens == 1)[1:]):
        corpus.add(sentence)
    estimated = estimate(corpus, how)
    return written(estimated), estimated.counts, estimated.kept, estimated.discounts


def written(model):
    file = io.BytesIO()
    write_arpa(model, file)
    return file.getvalue()


def answer(function, *arguments):
    try:
        return function(*arguments)
    except ModelError as error:
        return str(error)


@pytest.mark.parametrize(("text", "run"), RUNS)
def test_the_models_of_lmplz(text, run, tmp_path):
    (tmp_path / "text").write_bytes(text["train"].encode())
    path, how = str(tmp_path / "text"), estimation_of(text, run)
    assert answer(in_chunks, path, how) == answer(in_one_chunk, path, how)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("text") / "text"


LINES = st.lists(st.lists(st.sampled_from("aaaabbbcde"), max_size=8).map(" ".join), min_size=1, max_size=30)
SIZES = st.builds(Sizes, tokens=st.integers(1, 60), rows=st.integers(1, 40), picked=st.integers(1, 40))
HOW = st.builds(
    Estimation,
    order=st.integers(1, 5),
    prune=st.sampled_from([(), (0,), (1,)]),
    vocabulary=st.none() | st.just((b"a", b"b")),
    fallback=st.just((0.5, 1.0, 1.5)) | st.none(),
    interpolate_unigrams=st.booleans(),
    exact_discounts=st.booleans(),
)


@given(LINES, HOW, SIZES)
def test_any_text_and_any_sizes(path, lines, how, sizes):
    path.write_text("\n".join(lines) + "\n")
    assert answer(in_chunks, str(path), how, sizes) == answer(in_one_chunk, str(path), how)


def test_a_column():
    column = NumberColumn(np.int32)
    assert column.read(0, 5).tolist() == []
    for values in ([3, 1, 4], [], [1, 5]):
        column.append(np.array(values))
    assert (len(column), column.read(1, 4).tolist(), column.read(4, 9).tolist()) == (5, [1, 4, 1], [5])
    assert [block.tolist() for block in column.blocks(2)] == [[3, 1], [4, 1], [5]]
    assert column.pick(np.array([4, 0, 4, 2]), 2).tolist() == [5, 3, 5, 4]


def test_the_command(geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("a b c\na b\nb c a\n" * 3 + "c\nd\ne f\n")
    words = ["lm", "train", "-o", "3", "--discount-fallback", "--arpa"]
    status, out, err = geval(*words, "memory.arpa", "text")
    assert geval(*words, "disk.arpa", "--memory", "300M", "text") == (status, out, err)
    assert (tmp_path / "disk.arpa").read_bytes() == (tmp_path / "memory.arpa").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["disk.arpa", "memory.arpa", "text"]


@pytest.mark.parametrize("size", ["2", "G", "255M", "-1G", "1.5G", "9999999G"])
def test_a_size_that_is_none(geval, size):
    status, _, err = geval("lm", "train", "text", "--arpa", "x", f"--memory={size}")
    assert status == 2
    assert err == (
        f"geval: argument --memory: {size!r} is not a size of 256M or more, such as 500M or 2G\n"
        "  geval lm train --help shows the options\n"
    )


def test_a_folder_that_is_not_there(geval, tmp_path):
    (tmp_path / "text").write_text("a\n")
    status, _, err = geval("lm", "train", str(tmp_path / "text"), "--arpa", str(tmp_path / "no/x"), "--memory", "1G")
    assert status == 2
    assert err.startswith(f"geval: cannot write temporary files into `{tmp_path / 'no'}`: ")
