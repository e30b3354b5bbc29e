"""``--also``: a second report of the same check, in a file."""

import json

import pytest


@pytest.fixture
def output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text("the:0,5 :0.5\n")
    return tmp_path


def test_reports_in_files_are_those_of_format(output, geval):
    status, out, _ = geval(
        "check", "out.tsv", "--format", "github", "--also", "sarif=x.sarif", "--also", "junit=x.xml"
    )
    assert (status, out.startswith("::error file=out.tsv,line=1,")) == (1, True)
    assert (output / "x.sarif").read_text() == geval("check", "out.tsv", "--format", "sarif")[1]
    assert (output / "x.xml").read_text() == geval("check", "out.tsv", "--format", "junit")[1]
    assert json.loads((output / "x.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("words", ["saarif=x", "sarif", "sarif="])
def test_what_is_no_format_and_file(words, output, geval):
    message = f"'{words}' is not FORMAT=FILE, with one of text, concise, json, github, gitlab, sarif, junit"
    assert geval("check", "out.tsv", "--also", words)[::2] == (
        2,
        f"geval: argument --also: {message}\n  geval check --help shows the options\n",
    )
