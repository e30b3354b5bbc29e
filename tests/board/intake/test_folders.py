"""What is taken of a folder, and under which names."""

import hashlib
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile import LINE, OUT

from geval_py.board.intake.identity import fingerprint
from geval_py.board.intake.receiving import test_and_variant as tell
from geval_py.errors import RejectedError

SHA = hashlib.sha256(LINE).hexdigest()
LATER = "test-B/out.tsv"
NONE = "it has no output: test-A/out.tsv, or variants such as out-NAME.tsv"
SAME = "are the same variant; only one is allowed"
UNSHOWN = "has characters in its name that cannot be shown"


def test_files_are_copied_under_names_of_our_own(receiving, folder, tmp_path):
    source = folder({"test-A/out-model=a,k=3.tsv": LINE, "test-A/out.tsv": LINE, "README.md": "none of it"})
    parcel = receiving(source)
    names = ("test-A/out-model=a,k=3.tsv", OUT)
    assert [(file.name, file.bytes, file.sha256) for file in parcel.files] == [(one, len(LINE), SHA) for one in names]
    assert sorted(os.listdir(tmp_path / "place")) == ["000", "001"]
    assert {Path(file.path).read_bytes() for file in parcel.files} == {LINE}
    assert [(one.test, one.file, one.variant, one.params) for one in parcel.outputs] == [
        ("test-A", names[0], "model=a,k=3", {"model": "a", "k": "3"}), ("test-A", OUT, "", {}),
    ]  # fmt: skip
    assert (parcel.name, parcel.source) == ("anna", str(source))


def test_the_digest_is_of_names_and_contents_alone(receiving, folder, tmp_path):
    first = receiving(folder({"test-A/out.tsv": LINE}))
    (tmp_path / "place" / "000").unlink()
    again = receiving(folder({"test-A/out.tsv": LINE, "notes.txt": "more"}, name="other"))
    assert first.digest == again.digest == hashlib.sha256(f"{SHA}  test-A/out.tsv\n".encode()).hexdigest()


@pytest.mark.parametrize(("name", "tests", "expected"), [
    ("test-A/out.tsv", ["test-A"], ("test-A", "")), ("test-A/out-a.tsv.zst", ["test-A"], ("test-A", "a")),
    ("test-A/out-a.jsonl.xz", ["test-A"], ("test-A", "a")), ("test-A/out.parquet", ["test-A"], ("test-A", "")),
    ("test-A/out.csv", ["test-A"], ("test-A", "")), ("test-A/out-a.tsv.zip", ["test-A"], None),
    ("test-A/output.tsv", ["test-A"], None), ("test-A/more/out.tsv", ["test-A"], None),
    ("dev-0/out.tsv", ["test-A"], ("dev-0", "")), ("train/out.tsv", ["test-A"], None), ("out.tsv", ["test-A"], ("test-A", "")),
    ("out.tsv", ["test-A", "test-B"], None), ("out-header.tsv", ["test-A"], None),
    ("out-header.tsv.gz", ["test-A"], None), ("test-A/out-header.tsv", ["test-A"], ("test-A", "header")),
    ("test-A/OUT.TSV", ["test-A"], None),
])  # fmt: skip
def test_which_files_are_outputs(name, tests, expected):
    assert tell(name, tests) == expected


@pytest.mark.parametrize(("files", "reason"), [
    ({}, NONE), ({"test-A/output.tsv": LINE}, f"{NONE}; test-A/output.tsv is not scored; rename it to out-NAME.tsv"),
    ({LATER: LINE}, f"{NONE}; `test-B/out.tsv` is not in its place; did you mean `test-A/out.tsv`?"),
    ({OUT: LINE, f"{OUT}.gz": LINE}, f"`{OUT}` and `{OUT}.gz` {SAME}"),
    ({"test-A/out-\x1b[31m.tsv": LINE}, f"`test-A/out-\\x1b[31m.tsv` {UNSHOWN}"),
    ({"test-A/out-\u202egpj.tsv": LINE}, f"`test-A/out-\\u202egpj.tsv` {UNSHOWN}"),
    ({"test-A/out-\udcff.tsv": LINE}, f"`test-A/out-\\udcff.tsv` {UNSHOWN}"),
    ({OUT: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"},
     f"`{OUT}` is a pointer of Git LFS: submit the file itself"),
], ids=["empty", "misspelt", "other-set", "same-variant", "escape", "right-to-left", "not-utf-8", "lfs"])  # fmt: skip
def test_what_is_rejected(refusal, folder, files, reason):
    assert refusal(folder(files)) == reason


def test_outputs_beside_the_folder_of_the_only_test_set_count_if_it_has_none(receiving, folder, tmp_path):
    parcel = receiving(folder({OUT: LINE, "out.tsv": LINE}))
    assert [output.file for output in parcel.outputs] == [OUT]
    assert parcel.notes == (f"`out.tsv` is not in its place; did you mean `{OUT}`?",)
    (tmp_path / "place" / "000").unlink()
    parcel = receiving(folder({"out.tsv": LINE}, name="other"))
    assert [(output.test, output.file) for output in parcel.outputs] == [("test-A", "out.tsv")]
    (note,) = parcel.notes
    assert note == "`out.tsv` is beside the folder of test-A: only a board with this test set alone takes it"


def test_links_are_not_followed(refusal, folder):
    elsewhere = folder({"out.tsv": LINE}, name="elsewhere")
    root = folder({"test-A/out-a.tsv": LINE})
    os.symlink(elsewhere / "out.tsv", root / "test-A" / "out.tsv")
    assert refusal(root) == "`test-A/out.tsv` is a link; links are not followed"
    root = folder({"README.md": ""}, name="bob")
    os.symlink(elsewhere, root / "test-A")
    assert refusal(root) == NONE


def test_a_pipe_is_not_waited_for(refusal, folder):
    root = folder({"test-A/out-a.tsv": LINE})
    os.mkfifo(root / "test-A" / "out.tsv")
    assert refusal(root) == "`test-A/out.tsv` is not a regular file"


@pytest.mark.parametrize(("other", "limits", "reason"), [
    ("test-A/out-a.tsv", {"bytes": 20}, f"its files have more than 20 bytes, unpacked: `{OUT}`"),
    ("test-A/out-a.tsv", {"files": 1}, "it has 2 files; at most 1 are allowed"),
    ("test-B/out.tsv", {"files": 1}, "it has 2 files; at most 1 are allowed"),
], ids=["bytes", "files", "files of a set that is not scored"])  # fmt: skip
def test_limits(refusal, folder, other, limits, reason):
    assert refusal(folder({other: LINE, OUT: LINE}), **limits) == reason


@pytest.fixture
def seen(monkeypatch):
    """The names of all entries of folders that are looked at."""
    names, scandir = [], os.scandir

    @contextmanager
    def collecting(path):
        with scandir(path) as entries:
            yield (names.append(entry.name) or entry for entry in entries)

    monkeypatch.setattr(os, "scandir", collecting)
    return names


@pytest.mark.parametrize("crowd", ["{}", ".{}", "test-A/{}", "x/y/z/{}", ".git/{}", "{}/x"])
def test_a_folder_has_no_end_of_names(receiving, folder, crowd, seen):
    """Hidden files and folders count, but for what is in them, and nothing is listed beyond the limit."""
    source = folder({"test-A/out.tsv": LINE} | {crowd.format(number): "" for number in range(40)})
    fingerprint(str(source), 10)
    assert len(seen) <= 11
    seen.clear()
    if crowd.startswith(".git/"):
        assert len(receiving(source, listed=10).files) == 1
    else:
        with pytest.raises(RejectedError, match="its folder has more than 10 files and folders"):
            receiving(source, listed=10)
        assert len(seen) <= 11


def test_folders_in_folders_have_an_end(receiving, refusal, folder):
    source = folder({"test-A/out.tsv": LINE, f"{'a/' * 32}b": ""})
    assert len(receiving(source).files) == 1
    (source / ("a/" * 32) / "c").mkdir()
    (source / ("a/" * 32) / "c" / "d").write_bytes(b"")
    assert refusal(source) == f"`{'a/' * 32}c/d` is nested in more than 32 folders"


def test_a_folder_that_cannot_be_listed_is_rejected(refusal, folder, monkeypatch):
    source, scandir = folder({"test-A/out.tsv": LINE}), os.scandir

    def denied(path):
        if str(path).endswith("test-A/"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    assert refusal(source) == "`test-A/` cannot be read: Permission denied"
