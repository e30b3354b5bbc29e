"""The texts that a challenge is cut from: what is read, and what cannot be."""

import json

import pytest
from raising import refused

from geval_py.authoring.corpora import Document, read_documents
from geval_py.errors import EmptyFileError, MissingFileError, UnreadableFileError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ids(documents):
    return [document.id for document in documents]


def test_a_file_is_a_document(here):
    (here / "letter.2.txt").write_bytes("\ufeffone\r\ntwo\n".encode())
    document = Document(id="letter.2", text="one\ntwo", columns={"FileId": "letter.2"}, path="letter.2.txt")
    assert read_documents(["letter.2.txt"]) == [document]


def test_a_folder_is_all_its_files_in_natural_order(here):
    for name in ("texts/b-10.txt", "texts/b-2.txt", "texts/.hidden", "texts/.git/x", "texts/old/a.txt"):
        (here / name).parent.mkdir(exist_ok=True, parents=True)
        (here / name).write_text("word\n")
    assert ids(read_documents(["texts"])) == ["b-2", "b-10", "old/a"]


def test_json(here):
    rows = [
        {"id": "a", "text": "one\ntwo", "year": 1884, "paper": "The\tSun"}, {"id": "b", "text": "x", "note": None},
    ]  # fmt: skip
    (here / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    first, second = read_documents(["news.jsonl"])
    assert first.text == "one\ntwo"
    assert first.columns == {"id": "a", "year": "1884", "paper": "The Sun", "note": ""}
    assert second.columns == {"id": "b", "year": "", "paper": "", "note": ""}


def test_tsv(here):
    (here / "news.tsv").write_text("Year\tName\tText\n1884\ta\tone\\ntwo\n")
    (document,) = read_documents(["news.tsv"], id="Name", text="Text")
    assert document == Document(id="a", text="one\ntwo", columns={"Name": "a", "Year": "1884"}, path="news.tsv")


BAD = {
    "not JSON": (("a.jsonl", b'{"id": 1'), UnreadableFileError,
     "Cannot read `a.jsonl`: a line is not JSON (Expecting ',' delimiter: line 1 column 9 (char 8)), line 1"),
    "too deep": (("a.jsonl", b'{"text": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"), UnreadableFileError,
     "Cannot read `a.jsonl`: a line is not JSON (maximum recursion depth exceeded while decoding a JSON array from a "
     "unicode string), line 1"),
    "two columns of a name": (("a.tsv", b"id\ttext\tyear\tyear\n"), UnreadableFileError,
     "Cannot read `a.tsv`: two columns have the name year, line 1"),
    "no object": (("a.jsonl", b"[1]"), UnreadableFileError,
     "Cannot read `a.jsonl`: a line is not an object with a text, line 1"),
    "no id": (("a.jsonl", b'\n{"name": "a", "text": "b"}'), UnreadableFileError,
     "Cannot read `a.jsonl`: there is no id (there are name, text; --id and --text name them), line 2"),
    "an empty text": (("a.jsonl", b'{"id": "a", "text": ""}'), UnreadableFileError,
     "Cannot read `a.jsonl`: there is no text (there are id, text; --id and --text name them), line 1"),
    "columns": (("a.tsv", b"id\ttext\na\n"), UnreadableFileError,
     "Cannot read `a.tsv`: 1 column, where the first line names 2, line 2"),
    "Latin-1": (("a.txt", b"one\ncaf\xe9\n"), UnreadableFileError,
     "Cannot read `a.txt`: it is not UTF-8 (byte 0xE9), line 2"),
    "UTF-16": (("a.txt", "one".encode("utf-16")), UnreadableFileError,
     "Line 1: Unexpected data in `a.txt`: it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding "
     "utf8`)"),
    "empty": (("a.txt", b""), EmptyFileError, "The text file is empty: `a.txt`"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "kind", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_read(file, kind, message, here):
    name, content = file
    (here / name).write_bytes(content)
    with refused(message, kind):
        read_documents([name])


def test_a_file_that_is_not_there():
    with refused("No file with a text: `none`", MissingFileError):
        read_documents(["none"])


def test_an_id_given_twice(here):
    for name in ("x/a.txt", "y/a.txt"):
        (here / name).parent.mkdir()
        (here / name).write_text("word")
    with refused("two documents have the id a\n  in `x/a.txt` and `y/a.txt`"):
        read_documents(["x", "y"])
