"""Texts as lmplz reads them."""

import gzip
import os
from itertools import pairwise

import pytest
from raising import refused

from geval_py.errors import EmptyFileError, MalformedLineError, ModelError, UnreadableFileError
from geval_py.modelling import estimation
from geval_py.modelling.corpus import corpus_of
from geval_py.modelling.estimation import Estimation, estimate
from geval_py.modelling.texts import blocks_of_files


def read(tmp_path, data, **options):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    return corpus_of(blocks_of_files([str(path)]), **options)


def words_of(corpus):
    words = [corpus.words[token] for token in corpus.tokens.tolist()]
    starts = [place for place, word in enumerate(words) if word == b"<s>"]
    return [words[start + 1 : stop - 1] for start, stop in pairwise([*starts, len(words)])]


TEXTS = {
    "a line a sentence": (b"a b\nc\n", [[b"a", b"b"], [b"c"]]),
    "the last line end may be missing": (b"a b\nc", [[b"a", b"b"], [b"c"]]),
    "an empty line is a sentence": (b"a\n\nb\n", [[b"a"], [], [b"b"]]),
    "NUL, TAB, CR and runs of spaces split": (b"a\0b\tc  d\r\n", [[b"a", b"b", b"c", b"d"]]),
    "a form feed does not": (b"a\fb c\n", [[b"a\fb", b"c"]]),
    "other white space does not": ("a\vb\fc\u00a0d\u2028e\x85\n".encode(), [["a\vb\fc\u00a0d\u2028e\x85".encode()]]),
    "a byte order mark is dropped": (b"\xef\xbb\xbfa\n", [[b"a"]]),
    "what is not UTF-8 is words too": (b"caf\xe9 b\n", [[b"caf\xe9", b"b"]]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "wanted"), TEXTS.values(), ids=TEXTS)
def test_words(data, wanted, tmp_path):
    assert words_of(read(tmp_path, data)) == wanted


def test_words_are_numbered_as_they_appear(tmp_path):
    (tmp_path / "one.txt").write_bytes(b"b a")
    (tmp_path / "two.txt.gz").write_bytes(gzip.compress(b"a c\n"))
    corpus = corpus_of(blocks_of_files([str(tmp_path / "one.txt"), str(tmp_path / "two.txt.gz")]))
    assert corpus.words == [b"<unk>", b"<s>", b"</s>", b"b", b"a", b"c"]
    assert corpus.tokens.tolist() == [1, 3, 4, 2, 1, 4, 5, 2]
    assert corpus.name == str(tmp_path / "one.txt")


@pytest.mark.parametrize("mark", ["<s>", "</s>", "<unk>"])
def test_a_mark_in_the_text_is_an_error_that_names_the_line(mark, tmp_path):
    """Lmplz: an error, or white space with --skip_symbols."""
    data = f"a b\nc {mark} d\n".encode()
    with refused(
        f"Line 2: Unexpected data [{mark} in the text]\n"
        f"  `{tmp_path}/text.txt`, line 2, column 3: {mark} is a mark that models add themselves; take it out, or read "
        f"it as white space (--skip-symbols)\n    c {mark} d\n      ^",
        MalformedLineError,
    ):
        read(tmp_path, data)
    corpus = read(tmp_path, data, skip_symbols=True)
    assert corpus.tokens.tolist() == [1, 3, 4, 2, 1, 5, 6, 2]


@pytest.mark.parametrize(("data", "kind", "message"), [
    (b"", EmptyFileError, "The text file is empty: `{}`"),
    ("a b\n".encode("utf-16"), UnreadableFileError, "Line 1: Unexpected data in `{}`: it is UTF-16 or UTF-32 text; write it as "
     "UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)"),
])  # fmt: skip
def test_what_is_no_text(data, kind, message, tmp_path):
    with refused(message.format(tmp_path / "text.txt"), kind):
        read(tmp_path, data)


def test_what_is_not_utf8_is_remembered(tmp_path):
    assert read(tmp_path, b"a\nb\xff\nc\xff\n").not_utf8 == (f"{tmp_path}/text.txt", 2)
    assert read(tmp_path, "ą\n".encode()).not_utf8 is None


def test_an_empty_vocabulary_is_one(tmp_path):
    how = Estimation(order=2, vocabulary=frozenset(), fallback=(0.5, 1.0, 1.5))
    model = estimate(read(tmp_path, b"a b\nb a\n"), how).model
    assert (model.words, len(model.levels[1])) == ([b"<unk>", b"<s>", b"</s>"], 0)


def test_a_text_too_small_for_kneser_ney(tmp_path):
    with refused(
        "Kneser-Ney has no discounts for this text: no 1-gram has the adjusted count 1\n"
        "  is it small or made up? sentences that are there many times over are best left out\n"
        "  or take the fall-back discounts: --discount-fallback, in Python discount_fallback=True\n"
        f"  in `{tmp_path}/text.txt`",
        ModelError,
    ):
        estimate(read(tmp_path, b"a b\nb a\n"), Estimation(order=2))


WRONG = {
    "order": ({"order": 0}, "the order is a whole number from 1 to 100, not 0"),
    "a higher order": ({"order": 101}, "the order is a whole number from 1 to 100, not 101"),
    "thresholds": ({"order": 1, "prune": (0, 1)}, "2 thresholds to prune by, for 1 orders"),
    "falling": ({"prune": (1, 0)},
     "the thresholds to prune by fall: 1 0\n  an n-gram cannot be kept where the shorter one in it goes"),
}  # fmt: skip


@pytest.mark.parametrize(("how", "message"), WRONG.values(), ids=WRONG)
def test_wrong_options(how, message):
    assert [Estimation(order=order).order for order in (1, 100)] == [1, 100]
    with refused(message):
        Estimation(**how)


TEXT = "a b c\na b\nb c a\n" * 3 + "c\nd\ne f\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize("kind", ["add-one", "maximum-likelihood", None])
def test_a_text_that_does_not_fit(geval, folder, monkeypatch, kind):
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 1_000_000_000}.get)
    monkeypatch.setattr(estimation, "TOKEN_BYTES", 10**8)
    words = ("lm", "train", "text", "-o", "2", "--arpa", "x.arpa", *(("--counts", kind) if kind else ()))
    assert geval(*words) == (
        2, "", "geval: training needs about 5.2 GB of memory for 52 tokens, and there are 3.0 GB\n"
        "  KenLM's lmplz trains on disk: lmplz -o 2 <text.txt >text.arpa\n",
    )  # fmt: skip
    assert os.listdir(folder) == ["text"]


def test_a_text_that_does_not_fit_into_a_container(geval, folder, monkeypatch):
    (folder / "memory.max").write_text("2000000000\n")
    (folder / "unlimited").write_text("max\n")
    limits = [str(folder / name) for name in ("no", "unlimited", "memory.max")]
    monkeypatch.setattr(estimation, "CONTAINER_LIMITS", limits)
    monkeypatch.setattr(estimation, "TOKEN_BYTES", 10**8)
    assert geval("lm", "train", "text", "-o", "2", "--arpa", "x.arpa")[2].splitlines()[0] == (
        "geval: training needs about 5.2 GB of memory for 52 tokens, and there are 2.0 GB"
    )
