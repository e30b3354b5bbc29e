"""``geval report``: what it writes, and what it refuses."""

import os
from pathlib import Path

import pytest

GAZETTE = str(Path(__file__).parents[2] / "challenges" / "gazette")
WORDS = ("report", "--out-directory", GAZETTE, "-t", "dev-0")


def test_a_page_and_the_charts(geval, tmp_path):
    html, svg = tmp_path / "report.html", tmp_path / "new" / "charts"
    status, out, err = geval(*WORDS, "-o", "bigram", "-m", "LogLossHashed", "--html", str(html), "--svg", str(svg))
    assert (status, err) == (0, "")
    names = sorted(path.name for path in svg.iterdir())
    assert "losses.svg" not in names
    assert {"quality.svg", "spread.svg", "costs.svg", "honest.svg", "help.svg", "luck.svg"} <= set(names)
    assert "comparison.svg" not in names  # there is one output
    assert out.splitlines() == [f"wrote `{html}`", *(f"wrote `{svg / name}`" for name in order_of(out))]
    assert sorted(order_of(out)) == names
    assert all("var(--" not in path.read_text(encoding="utf-8") for path in svg.iterdir())
    text = html.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert "Gazette: guess the missing word of an old newspaper · dev-0 · LogLossHashed, lower is better" in text
    assert "<strong>5.16</strong> <span>nats," in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "report.html"]


def order_of(out):
    return [os.path.basename(line.removesuffix("`")) for line in out.splitlines()[1:]]


def test_the_first_output_is_compared_with_the_others(geval, tmp_path):
    html = tmp_path / "report.html"
    assert geval(*WORDS, "-o", "unigram", "-o", "bigram", "--html", str(html))[0] == 0
    text = html.read_text(encoding="utf-8")
    assert "<h1>out-model=unigram.tsv</h1>" in text
    assert "Is model=bigram better?" in text
    assert "model=bigram is better by 153 words (p &lt;0.001)" in text


def test_losses_that_are_all_infinite(geval, tmp_path):
    """A warning would be an error here."""
    (tmp_path / "expected.tsv").write_text("a\n" * 150)
    (tmp_path / "out.tsv").write_text("x:1 :0\n" * 150)
    html = str(tmp_path / "report.html")
    words = ("-o", str(tmp_path / "out.tsv"), "-e", str(tmp_path / "expected.tsv"), "-m", "PerplexityHashed")
    assert geval("report", *words, "--html", html) == (0, f"wrote `{html}`\n", "")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 2, "geval: nothing is written: name the page with --html FILE, or a folder with --svg DIR\n"),
        (
            ("--html", "missing/report.html"),
            2,
            "geval: Cannot write `missing/report.html`: No such file or directory\n",
        ),
        (("--html", "."), 2, "geval: Cannot write `.`: it is a folder, not a file\n"),
        (("--html", "-"), 2, "geval: Cannot write `-`: it is not a file\n"),
        (("--svg", "file/charts"), 2, "geval: Cannot write `file/charts`: Not a directory\n"),
        (
            ("--html", "r.html", "--htm"),
            2,
            "geval: unrecognized arguments: --htm\n  did you mean --html?\n",
        ),
    ],
    ids=["nowhere", "missing", "folder", "standard output", "below a file", "misspelt"],
)
def test_what_is_refused(geval, tmp_path, monkeypatch, words, status, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("geval_py.reports.contents.report", lambda *_, **__: None)
    monkeypatch.setattr("geval_py.reports.page.page", lambda *_: "")
    (tmp_path / "file").touch()
    assert geval(*WORDS, "-o", "bigram", *words) == (status, "", message)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_output_at_fault_is_said_and_nothing_is_written(geval, tmp_path):
    (tmp_path / "out.tsv").write_text("the:0.5 of:0,25 :0.25\n" * 212)
    html = tmp_path / "report.html"
    status, out, err = geval(*WORDS, "-o", str(tmp_path / "out.tsv"), "--html", str(html))
    assert (status, out) == (1, "")
    assert "`0,25` is not a number" in err
    assert not html.exists()


def test_help_has_an_example(geval):
    status, out, _ = geval("report", "--help")
    assert status == 0
    assert "geval report -t dev-0 --html report.html" in out
