"""``--also``: a second report of the same check, in a file."""

import json

import pytest


@pytest.fixture
def output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.tsv").write_text("the:0,5 :0.5\n")
    return tmp_path


@pytest.mark.parametrize("name", ["sarif", "junit", "markdown", "csv"])
def test_reports_in_files_are_those_of_format(name, output, geval):
    status, out, _ = geval("check", "out.tsv", "--format", "github", "--also", f"{name}=x", "--also", "json=y.json")
    assert (status, out.startswith("::error file=out.tsv,line=1,")) == (1, True)
    assert (output / "x").read_text() == geval("check", "out.tsv", "--format", name)[1]
    assert json.loads((output / "y.json").read_text())["status"] == 1


@pytest.mark.parametrize("words", ["saarif=x", "sarif", "sarif="])
def test_what_is_no_format_and_file(words, output, geval):
    formats = "text, json, csv, markdown, latex, html, concise, github, gitlab, sarif, junit"
    assert geval("check", "out.tsv", "--also", words)[::2] == (
        2,
        f"geval: argument --also: '{words}' is not FORMAT=FILE, with one of {formats}\n"
        "  geval check --help shows the options\n",
    )


OF_A_MODEL = """\
geval: Cannot write results to `{0}`: it may hold the output of a model
  -o {0} scores it; remove it first if you do not need it
"""


@pytest.mark.parametrize(("words", "message"), [
    (["--also", "json=out.tsv"], OF_A_MODEL.format("out.tsv")),
    (["--also", "sarif=out-a.jsonl.gz"], OF_A_MODEL.format("out-a.jsonl.gz")),
    *(
        (words, "geval: Cannot write two reports to `x.json`: give each a file of its own\n")
        for words in (
            ["--output", "x.json", "--also", "sarif=x.json"], ["--also", "json=x.json", "--also", "sarif=x.json"],
        )
    ),
])  # fmt: skip
@pytest.mark.parametrize("command", [["check", "out.tsv"], ["challenge", "leaks", "."]])
def test_no_report_replaces_an_output_or_another_report(command, words, message, output, geval):
    (output / "out-a.jsonl.gz").write_text("")
    assert geval(*command, *words) == (2, "", message)
    assert sorted((path.name, path.read_text()) for path in output.iterdir()) == [
        ("out-a.jsonl.gz", ""), ("out.tsv", "the:0,5 :0.5\n"),
    ]  # fmt: skip
