"""Training as a command, and texts that do not fit into memory."""

import os

import pytest

from geval_py.modelling import estimation

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
