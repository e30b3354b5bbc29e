"""``--format csv``: a header row, numbers with all their digits, the input's columns apart."""

import csv
import io
import math

import pandas as pd
import pytest
from five_items import write

from geval_py import evaluate

WORDS = ["a", "b", "a", "c"]
OUT = ["a:0.5 :0.5", "b:0.25 d:0.75", "a:1", "a:1"]  # perplexities 2, 4, 1, inf
OTHER = ["a:0.25 d:0.75", "b:0.25 c:0.75", "a:0.5 d:0.5", "c:0.5 b:0.5"]  # 4, 4, 2, 2
INPUT = ['1901\tNew "York", 5', "1901\t=1+1", "1902\tnew\ttown", "1903"]


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of four items and two outputs; its input has a column more than its header, called as a figure is."""
    write(tmp_path, "config.txt", ["--metric Perplexity --metric LogLoss -p 1 --in-header in-header.tsv"])
    write(tmp_path, "in-header.tsv", ["score\tText"])
    for name in ("train", "test-A"):
        (tmp_path / name).mkdir()
    write(tmp_path / "train", "expected.tsv", ["a", "b", "c", "d"])
    write(tmp_path / "test-A", "in.tsv", INPUT)
    write(tmp_path / "test-A", "expected.tsv", WORDS)
    write(tmp_path / "test-A", "out-n=1.tsv", OUT)
    write(tmp_path / "test-A", "out-n=2.tsv", OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rows(geval):
    """Run the command, which must succeed; gives the rows of its table, as a program reads them."""

    def run(*words):
        status, out, _ = geval(*words, "--format", "csv")
        assert status == 0
        return list(csv.reader(io.StringIO(out), strict=True))

    return run


def test_lines(challenge, rows):
    found = rows("-l", "-o", "out-n=1.tsv")
    assert found == [
        ["line", "score", "loss", "in<score>", "Text", "3", "expected", "output"],
        ["1", "2.0", str(math.log(2)), "1901", 'New "York", 5', "", "a", OUT[0]],
        ["2", "4.0", str(math.log(4)), "1901", "'=1+1", "", "b", OUT[1]],
        ["3", "1.0", "0.0", "1902", "new", "town", "a", OUT[2]],
        ["4", "Infinity", "Infinity", "1903", "", "", "c", OUT[3]],
    ]


@pytest.mark.filterwarnings("ignore:.*the loss of 1 of 4 lines is infinite")
def test_lines_have_the_columns_of_python(challenge, geval):
    _, out, _ = geval("-l", "-o", "out-n=1.tsv", "--format", "csv")
    frame = evaluate(challenge, output="n=1").to_frame()
    assert set(pd.read_csv(io.StringIO(out)).columns) == set(frame.columns)


def test_an_input_of_empty_lines(challenge, rows):
    write(challenge / "test-A", "in.tsv", [""] * 4)
    assert rows("-l", "-o", "out-n=1.tsv")[0] == ["line", "score", "loss", "in<score>", "expected", "output"]


def test_it_is_the_same_on_a_terminal(challenge, geval):
    for words in ([], ["-l", "-o", "out-n=1.tsv"], ["-w", "-o", "out-n=2.tsv"], ["compare", "--samples", "9"]):
        piped = geval(*words, "--format", "csv")
        assert geval(*words, "--format", "csv", terminal=True) == piped
