"""The documents of lines: what a column of the input says."""

import pytest
from raising import refused

from geval_py import evaluate, score
from geval_py.errors import MissingFileError
from geval_py.explaining.documents import documents_in

INPUT = "one\tx\ntwo\ty\none\tx\nthree\n"


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --in-header in-header.tsv\n")
    (tmp_path / "in-header.tsv").write_text("FileId\tText\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text(INPUT)
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\na\na\n")
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\nb:1\n:1\n:1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("column", "name", "of_line", "count"),
    [("FileId", "FileId", [0, 1, 0, 2], 3), ("1", "FileId", [0, 1, 0, 2], 3), ("2", "Text", [0, 1, 0, 2], 3)],
)
def test_a_column_tells_the_documents(column, name, of_line, count, challenge):
    found = documents_in(evaluate(challenge, "dev-0"), column)
    assert (found.column, found.of_line.tolist(), found.count) == (name, of_line, count)


@pytest.mark.parametrize(("column", "message"), [
    ("fileid", "Unknown column `fileid'\n  did you mean FileId? the columns are FileId, Text"),
    ("3", "Unknown column `3'\n  the columns are FileId, Text"),
    ("0", "Unknown column `0'\n  the columns are FileId, Text"),
    ("\x1b[31m", "Unknown column `\\x1b[31m'\n  the columns are FileId, Text"),
])  # fmt: skip
def test_what_is_no_column(column, message, challenge):
    with refused(message):
        documents_in(evaluate(challenge, "dev-0"), column)


def test_there_has_to_be_an_input(challenge):
    (challenge / "dev-0/in.tsv").unlink()
    with refused(
        f"No file with the input: `{challenge}/dev-0/in.tsv`\n"
        "  documents are given by a column of the input: put the file there, or name no documents",
        MissingFileError,
    ):
        documents_in(evaluate(challenge, "dev-0"), "FileId")
    in_memory = score(["a:0.5 :0.5"], ["a"], metric="LogLossHashed")
    with refused("documents are given by a column of the input, and there is none: score(…, inputs=…)"):
        documents_in(in_memory, "FileId")
