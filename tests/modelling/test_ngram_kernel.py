"""The kernel's functions for n-gram models give what their twins in Python give."""

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geval_py.errors import GevalError
from geval_py.modelling import arpa, backoff
from geval_py.modelling.corpus import NativeNumbering, Numbering
from geval_py.modelling.ngram_model import NgramModel

native = pytest.importorskip("geval_py.scoring.kernel._native")
BYTES = st.sampled_from(
    [b"a", b"bc", b"<UNK>", b"<unk>", b"<s>", b"\xff", b"\0", b"\t", b"\r", b" ", b"\v", b"12345678", b"\n"]
)
TEXT = st.lists(BYTES, max_size=40).map(lambda parts: b"".join(parts) + b"\n")
DOUBLE = st.integers(0, (1 << 64) - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
LOG = (
    st.floats(-100, 0)
    | st.floats(-1e-3, 0)
    | DOUBLE
    | st.builds(lambda n, k: (n + 0.5) * 10.0**k, st.integers(10**7, 10**8), st.integers(-20, 0))
)


@given(st.lists(TEXT, max_size=4), st.lists(BYTES.filter(bytes.strip), max_size=5))
def test_numbers_of_words(blocks, words):
    twins = Numbering(b"<UNK>"), NativeNumbering(b"<UNK>")
    for block in blocks:
        (ids, lengths), (other_ids, other_lengths) = (numbering.number_lines(block) for numbering in twins)
        assert (ids.tolist(), lengths.tolist()) == (other_ids.tolist(), other_lengths.tolist())
    known, other_known = (numbering.number(words, grow=False) for numbering in twins)
    assert known.tolist() == other_known.tolist()
    assert twins[0].words == twins[1].words


def rows_of(logs, backoffs):
    columns = np.zeros(len(logs), np.int32)
    return native.write_arpa_rows(native.word_table(b"word\n", b""), columns, np.array(logs), np.array(backoffs))


@given(st.lists(st.tuples(LOG, LOG), min_size=1))
@example([(9.99999995, 99999999.5), (0.0, -0.0), (math.nan, -math.inf), (-1e-5, -1e-4), (-4.8216373e-17, 1e-14)])
def test_numbers_of_arpa_files(pairs):
    wanted = "".join(f"{log:.8g}\tword\t{backoff:.8g}\n" for log, backoff in pairs)
    assert rows_of(*zip(*pairs, strict=True)).decode() == wanted


ROW = st.lists(
    st.sampled_from(["-1", "-0.5", "0", "1", "-1e-3", "-inf", "nan", "-1_0", "-1.", "\t", "\t", " ", "a", "b", "a", "<s>", "", "\r", "\\"]),
    max_size=9,
).map("".join)  # fmt: skip
ROWS = st.lists(ROW | st.sampled_from(["-1\ta b\t-0.5", "-1\ta b", "-9\tb a"]), min_size=1, max_size=4)
HEAD = "\\data\\\nngram 1=4\nngram 2=%d\nngram 3=0\n\n\\1-grams:\n-1\t<unk>\n-1\t<s>\t-0.5\n-1\ta\t-0.5\n-1\tb\n\n\\2-grams:\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("arpa") / "model.arpa"


@given(ROWS)
@example(["-1\ta b\t-0.5", "-1\ta c"])
def test_rows_that_are_read(path, rows):
    path.write_text(HEAD % len(rows) + "\n".join(rows) + "\n\n\\3-grams:\n\n\\end\\\n", newline="")
    answers = []
    for kind in (Numbering, NativeNumbering):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arpa, "new_numbering", lambda alias, kind=kind: kind(alias))
            answers.append(model_of(path))
    assert answers[0] == answers[1]


def model_of(path):
    try:
        model = arpa.read_arpa(str(path))
    except GevalError as error:
        return str(error)
    levels = [vars(level) for level in model.levels]
    return model.words, [
        {name: array.tolist() for name, array in level.items() if name in FIELDS} for level in levels
    ]


FIELDS = ("contexts", "words", "log_probabilities", "log_backoffs")


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "bc"]), max_size=9), min_size=1),
    st.lists(TEXT, min_size=1),
    *[st.booleans()] * 3,
)
def test_scores(sentences, texts, bos, eos, pruned):
    model = NgramModel.train(sentences, 3, discount_fallback=True, prune=(0, 1) * pruned).model
    scores = model.scores(b"".join(texts), bos=bos, eos=eos)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backoff, "choose_backend", lambda: "python")
        for of_python, of_kernel in zip(model.scores(b"".join(texts), bos=bos, eos=eos), scores, strict=True):
            assert of_python.tolist() == of_kernel.tolist()
