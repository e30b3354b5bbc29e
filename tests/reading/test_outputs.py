"""An output's lines, read one by one."""

import gzip
import io
import sys
from types import SimpleNamespace

import pytest

from geval_py.errors import AmbiguousFileError, MalformedLineError, MissingFileError
from geval_py.reading.other_formats import read_output
from geval_py.reading.splits import by_accepted_names, output_at
from geval_py.reading.wordprobs import parse_line

TEXT = "the:0.5 :0.5\n-1 -2\r\n:1"
LINES = [parse_line("the:0.5 :0.5"), parse_line("-1 -2"), parse_line(":1")]


def test_read_output(tmp_path):
    (tmp_path / "out.tsv").write_text(TEXT)
    assert list(read_output(tmp_path / "out.tsv")) == LINES


def test_a_compressed_output_is_found_by_its_plain_name(tmp_path):
    (tmp_path / "out.tsv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert list(read_output(str(tmp_path / "out.tsv"))) == LINES


def test_two_compressed_outputs_of_a_name_are_an_error(tmp_path):
    for ending in (".gz", ".xz"):
        (tmp_path / f"out.tsv{ending}").write_bytes(b"")
    with pytest.raises(AmbiguousFileError):
        next(read_output(tmp_path / "out.tsv"))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    assert list(read_output("-")) == LINES


def test_a_header_is_skipped_where_it_is_named(tmp_path):
    (tmp_path / "out.tsv").write_text("Word\tmore\n:1\nWord:1\n")
    assert list(read_output(tmp_path / "out.tsv", header="Word")) == [parse_line(":1"), parse_line("Word:1")]


def test_an_empty_output_has_no_lines(tmp_path):
    (tmp_path / "out.tsv").write_text("")
    assert list(read_output(tmp_path / "out.tsv")) == []


def test_an_output_that_is_not_there(tmp_path):
    lines = read_output(tmp_path / "out.tsv")  # nothing is opened yet
    with pytest.raises(MissingFileError) as caught:
        next(lines)
    assert str(caught.value) == f"No file with the test results: `{tmp_path}/out.tsv`"


def test_a_malformed_line_is_named_with_its_path(tmp_path):
    path = tmp_path / "out.tsv"
    path.write_text(":1\nthe:0,5 :0.5\n:1\n")
    lines = read_output(path)
    assert next(lines) == parse_line(":1")
    with pytest.raises(MalformedLineError) as caught:
        next(lines)
    assert str(caught.value) == (
        "Line 2: Unexpected data [number text found after a number]\n"
        f"  `{path}`, line 2, column 5: `0,5` is not a number; write a decimal point, not a comma\n"
        "    the:0,5 :0.5\n"
        "        ^"
    )


def test_all_parameters_of_one_name_it_before_some_of_another_do():
    outputs = [output_at(f"out-{name}.tsv") for name in ("model=a", "model=a,tuned=nu", "model=b,tuned=nu")]
    called = by_accepted_names([output.name for output in outputs], outputs)
    assert called["a"] == called["model=a"] == [0]
    assert called["a,nu"] == called["model=a,tuned=nu"] == [1]
    assert called["nu"] == called["tuned=nu"] == [1, 2]
