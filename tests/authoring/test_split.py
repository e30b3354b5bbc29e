"""Items that are there already, split by groups."""

import lzma

import pytest
from answer_formats import WRITE, in_another_format
from raising import refused

from geval_py import UsageError
from geval_py.authoring.corpora import Parts
from geval_py.authoring.make import Recipe, read_items, split_items
from geval_py.authoring.validate import validate_challenge
from geval_py.errors import EmptyFileError, LineCountError, MissingFileError, UnreadableFileError

ITEMS = [(f"doc-{n % 60}\tpaper-{n % 6}\tleft {n}\tright {n}", f"word{n}") for n in range(240)]


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "old/train"
    folder.mkdir(parents=True)
    (tmp_path / "old/in-header.tsv").write_text("Doc\tPaper\tLeftContext\tRightContext\n")
    (folder / "in.tsv").write_text("".join(f"{line}\n" for line, _ in ITEMS))
    (folder / "expected.tsv").write_text("".join(f"{word}\n" for _, word in ITEMS))
    return folder


def split(**settings):
    pool = read_items("old/train", group=settings.pop("group", None))
    return split_items(pool, Recipe(metrics=("LogLossHashed",), **settings), "new", "new-answers")


def parts_in(tmp_path):
    for name, answers in (("train", "new"), ("dev-0", "new"), ("test-A", "new-answers")):
        inputs = lzma.decompress((tmp_path / "new" / name / "in.tsv.xz").read_bytes()).decode().splitlines()
        words = (tmp_path / answers / name / "expected.tsv").read_text().splitlines()
        yield [*zip(inputs, words, strict=True)]


def test_all_items_are_dealt_group_by_group(pool, tmp_path):
    sizes = split()
    parts = [*parts_in(tmp_path)]
    assert sorted(item for part in parts for item in part) == sorted(ITEMS)
    groups = [{line.split("\t")[0] for line, _ in part} for part in parts]
    assert sum(map(len, groups)) == 60
    names = Parts().names
    assert sizes == [(name, len(part), len(group)) for name, part, group in zip(names, parts, groups, strict=True)]
    assert all(Parts().part_of(group) == name for name, of in zip(names, groups, strict=True) for group in of)
    assert not (tmp_path / "new/test-A/expected.tsv").exists()
    assert (tmp_path / "new/in-header.tsv").read_text() == "Doc\tPaper\tLeftContext\tRightContext\n"
    assert validate_challenge("new-answers") == ([], ())
    assert "All items with the same `Doc` are in one part only" in (tmp_path / "new/README.md").read_text()


FEW, MANY = (80, 10, 10), (30, 35, 35)  # documents in dev-0 and test-A


@pytest.mark.parametrize(("columns", "group", "shares", "declared"), [
    ("Doc,Paper,Left,Right", "Doc", MANY, "--documents Doc"),
    ("Doc Name,Paper,Left,Right", None, MANY, r"--documents Doc\ Name"),
    ("Doc,Paper,Left,Right", "Doc", FEW, ""),
    ("Doc,Paper,Left,Right", "Left", MANY, ""),  # which is another one on each line
])  # fmt: skip
def test_the_column_of_the_documents_is_declared(columns, group, shares, declared, pool, tmp_path):
    items = read_items("old/train", columns=columns.split(","), group=group)
    split_items(items, Recipe(metrics=("LogLossHashed",), parts=Parts(shares=shares)), "new", "new-answers")
    options = "--metric LogLossHashed --precision 2 --in-header in-header.tsv --out-header out-header.tsv"
    for folder in ("new", "new-answers"):
        assert (tmp_path / folder / "config.txt").read_text() == f"{options} {declared}".strip() + "\n"
    assert validate_challenge("new-answers") == ([], ())


def test_a_config_for_geval_declares_no_documents(pool, geval, tmp_path):
    words = ["--columns", "Doc,Paper,Left,Right", "--split", "30,35,35", "--geval"]
    assert geval("challenge", "split", "old/train", "-o", "new", *words)[0] == 0
    assert "--documents" not in (tmp_path / "new/config.txt").read_text()


def test_a_wider_group(pool, tmp_path):
    message = r"^no gap for .*: parts are made of whole groups \(Paper\), and none of the 6 has a gap there\n"
    with pytest.raises(
        UsageError, match=message + "  give another --salt, another --split, or more and smaller groups$"
    ):
        split(group="Paper")
    assert not (tmp_path / "new").exists()


def test_header_rows_are_no_items(pool):
    for name, row in (("in.tsv", "Doc\tPaper\tLeftContext\tRightContext\n"), ("expected.tsv", "Word\n")):
        (pool / name).write_text(row + (pool / name).read_text())
    (pool.parent / "out-header.tsv").write_text("Word\n")
    items = read_items("old/train")
    assert [(line, answer) for line, answer, _ in items.items] == ITEMS


def test_named_columns(pool):
    (pool.parent / "in-header.tsv").unlink()
    assert read_items("old/train", columns=["A", "B", "C", "D"], group="B").items[7][2] == "paper-1"
    with refused("the columns of in.tsv have no names: there is no in-header.tsv\n  --columns FileId,… names them"):
        read_items("old/train")


@pytest.mark.parametrize("name", WRITE)
def test_answers_in_other_formats(name, pool):
    items = read_items("old/train")
    in_another_format(pool, name)
    assert read_items("old/train") == items


BAD = {
    "empty files": ("", "", EmptyFileError, "The input file is empty: `old/train/in.tsv`"),
    "no input": ("in.tsv", None, MissingFileError, "No file with the input: `old/train/in.tsv`"),
    "no answers": ("expected.tsv", None, MissingFileError,
     "No file with the expected results: `old/train/expected.tsv`"),
    "empty": ("in.tsv", "", LineCountError, "Too few lines in the input file: `old/train/in.tsv` has 0, "),
    "too few": ("in.tsv", "a\tb\tc\td\n", LineCountError,
     "Too few lines in the input file: `old/train/in.tsv` has 1, "),
    "columns": ("in.tsv", "a\tb\n" * 240, UnreadableFileError,
     "Cannot read `old/train/in.tsv`: line 1 has 2 columns, and 4 have names"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "kind", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_read(name, content, kind, message, pool):
    for file in [name] if name else ["in.tsv", "expected.tsv"]:
        (pool / file).unlink()
        if content is not None:
            (pool / file).write_text(content)
    with pytest.raises(kind) as caught:
        read_items("old/train")
    assert str(caught.value).startswith(message)
