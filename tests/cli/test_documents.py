"""``--format json`` and ``--format csv`` of the modes that explain a score, as programs read them."""

import csv
import io
import json

import pandas as pd
import pytest
from five_items import make_challenge, write

from geval_py import evaluate

OTHER = ["a:0.25 d:0.75", "b:0.25 c:0.75", "a:0.5 d:0.5", "c:0.5 b:0.5", "a:0.25 d:0.75"]  # 4, 4, 2, 2, 4


INFINITE = "geval: note: `./test-A/out.tsv`: the loss of 1 of 5 lines is infinite\n"
warned = pytest.mark.filterwarnings("ignore:.*the loss of 1 of 5 lines is infinite")


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of five items and two outputs, out.tsv and other; the current directory."""
    make_challenge(tmp_path, OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def document(geval):
    """Run the command, which must succeed; gives its document, read as strict parsers do."""

    def run(*words, noted=""):
        status, out, err = geval(*words, "--format", "json")
        assert (status, err.replace(INFINITE, "")) == (0, noted)
        return json.loads(out, parse_constant=lambda constant: pytest.fail(constant))

    return run


def signature(challenge, out):
    return str(evaluate(challenge, output=out).signature)


def outputs(challenge, *names):
    return [{"file": name, "signature": signature(challenge, name)} for name in names]


@warned
def test_lines_in_json_are_those_of_python(challenge, document):
    found = document("-l")
    assert found["outputs"] == outputs(challenge, "out.tsv")
    lines = found["lines"]
    assert lines[2]["input"] == {"Year": "1902", "Text": "new", "3": "town"}
    assert (lines[3]["score"], lines[3]["loss"]) == ("Infinity", "Infinity")
    for line, row in zip(lines, evaluate(challenge).to_frame().to_dict("records"), strict=True):
        assert line["input"].items() <= row.items()
        assert (line["line"], line["expected"], line["output"]) == (row["line"], row["expected"], row["output"])
        assert (float(line["score"]), float(line["loss"])) == (row["score"], row["loss"])
    write(challenge, "in-header.tsv", ["Text\tText"])
    assert document("-l")["lines"][0]["input"] == {"Text": "1901", "2": "New York"}


@warned
def test_lines_in_csv_are_those_of_python(challenge, geval):
    """A column that is called as a figure has another name; the same is written on a terminal."""
    write(challenge, "in-header.tsv", ["score\tText"])
    _, out, _ = geval("-l", "--format", "csv")
    head, *rows = csv.reader(io.StringIO(out), strict=True)
    assert head == ["line", "score", "loss", "in<score>", "Text", "3", "expected", "output"]
    assert rows[2:4] == [
        ["3", "1.0", "0.0", "1902", "new", "town", "a", "a:1"],
        ["4", "Infinity", "Infinity", "1902", "", "", "c", "a:1"],
    ]
    assert set(pd.read_csv(io.StringIO(out)).columns) == set(evaluate(challenge).to_frame().columns)
    write(challenge / "test-A", "in.tsv", [""] * 5)
    assert geval("-l", "--format", "csv")[1].startswith("line,score,loss,in<score>,expected,output\n")
    for words in (["-l"], ["-w"], ["-d", "other"]):
        assert geval(*words, "--format", "csv", terminal=True) == geval(*words, "--format", "csv")


@warned
def test_lines_keep_their_numbers_and_infinite_figures_are_words(challenge, document):
    assert [line["line"] for line in document("-l", "--filter", "in<Year>:1902", "-s")["lines"]] == [4, 3]
    differences = document("--diff", "other")
    assert differences["outputs"] == outputs(challenge, "out.tsv", "other")
    rows = [(line["line"], line["difference"]) for line in differences["lines"]]
    assert rows == [(1, -2.0), (3, -1.0), (4, "Infinity")]
    note = "geval: note: the score of 1 of 5 lines is infinite: means are infinite or NaN\n"
    features = {feature["feature"]: feature for feature in document("-w", noted=note)["features"]}
    assert (features["exp:c"]["count"], features["exp:c"]["score"]) == (1, "Infinity")


def test_the_format_of_config_txt(challenge, geval):
    wanted = geval("-l", "--format", "json")
    write(challenge, "config.txt", ["--metric Perplexity --in-header in-header.tsv --format json"])
    assert geval("-l") == wanted


def test_a_name_that_is_not_utf_8(challenge, document):
    name = b"out-\xff.tsv".decode("utf-8", "surrogateescape")
    write(challenge / "test-A", name, OTHER)
    assert document("-l", "-o", name)["outputs"][0]["file"] == "out-\\udcff.tsv"
