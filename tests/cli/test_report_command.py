"""``geval report`` and ``--plot-graph``: what they write, and what they refuse."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import norm

from geval_py.scoring.evaluate import column_of, find_metric
from geval_py.scoring.metrics.labels import calibration_curve

GAZETTE = str(Path(__file__).parents[2] / "challenges" / "gazette")
WORDS = ("report", "--out-directory", GAZETTE, "-t", "dev-0")


def test_a_page_and_the_charts(geval, tmp_path):
    html, svg = tmp_path / "report.html", tmp_path / "new" / "charts"
    status, out, err = geval(*WORDS, "-o", "bigram", "-m", "LogLossHashed", "--html", str(html), "--svg", str(svg))
    assert (status, err) == (0, "")
    names = sorted(path.name for path in svg.iterdir())
    assert "losses.svg" not in names
    assert {"quality.svg", "spread.svg", "costs.svg", "words.svg", "help.svg"} <= set(names)
    assert "comparison.svg" not in names  # there is one output
    drawn = [f"wrote `{svg / name}`" for name in order_of(out)]
    assert out.splitlines() == [f"wrote `{html}`: out-model=bigram.tsv, dev-0", *drawn]
    assert sorted(order_of(out)) == names
    assert all("var(--" not in path.read_text(encoding="utf-8") for path in svg.iterdir())
    text = html.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert "Gazette: guess the missing word of an old newspaper · dev-0 · LogLossHashed, lower is better" in text
    assert "<strong>5.16</strong> <span>nats," in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "report.html"]


def order_of(out):
    return [os.path.basename(line.removesuffix("`")) for line in out.splitlines()[1:]]


@pytest.mark.parametrize("outputs", [["-o", "unigram"], []])
def test_the_next_step_runs_as_printed(geval, tmp_path, monkeypatch, outputs):
    monkeypatch.chdir(tmp_path)
    assert geval(*WORDS, *outputs, "-m", "LogLossHashed8")[0] == 0
    (command,) = re.findall(r"Next:.* held out \(geval (.*?)\)\.", Path("report.html").read_text(encoding="utf-8"))
    bigram, unigram = (f"{GAZETTE}/dev-0/out-model={name}.tsv" for name in ("bigram", "unigram"))
    path = unigram if outputs else bigram
    assert command == f"tune --out-directory {GAZETTE} -t dev-0 -a LogLossHashed8 -o {path}"
    status, _, err = geval(*command.split())
    assert (status, err) == (0, "geval: note: add --apply NAME to write the mixture for the test set NAME\n")


@pytest.mark.slow
def test_the_page_is_report_html_unless_another_is_named(geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, words = tmp_path / "report.html", (*WORDS, "-o", "bigram")
    assert geval(*words) == (0, "wrote `report.html`: out-model=bigram.tsv, dev-0\n", "")
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("bigram", ""), encoding="utf-8")
    assert geval(*words) == (0, "wrote `report.html`: out-model=bigram.tsv, dev-0\n", "")
    assert page.read_text(encoding="utf-8") == text
    page.write_text("<!doctype html>\n<title>My report</title>\n")
    message = (
        "`report.html` is not a page of geval report, and so is not overwritten\n  name another file with --html FILE"
    )
    assert geval(*words) == (2, "", f"geval: {message}\n")
    assert page.read_text() == "<!doctype html>\n<title>My report</title>\n"
    assert geval(*words, "--svg", "charts")[0] == 0  # the charts alone
    assert sorted(path.name for path in tmp_path.iterdir()) == ["charts", "report.html"]
    assert geval(*words, "--html", "report.html") == (0, "wrote `report.html`: out-model=bigram.tsv, dev-0\n", "")


REFUSED = {
    "--html missing/report.html": "Cannot write `missing/report.html`: No such file or directory",
    "--html .": "Cannot write `.`: it is a folder, not a file", "--html -": "Cannot write `-`: it is not a file",
    "--html x.pdf": "Cannot write `x.pdf`: a report is HTML\n  name a file that ends in .html",
    "--output x.html": "unrecognized arguments: --output x.html\n  did you mean --html?",
    "--svg file/charts": "Cannot write `file/charts/quality.svg`: Not a directory",
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(geval, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("geval_py.reports.page.page", lambda *_: "")
    monkeypatch.setattr("geval_py.reports.page.charts", lambda *_: [("quality", "")])
    (tmp_path / "file").touch()
    assert geval(*WORDS, "-o", "bigram", *words.split()) == (2, "", f"geval: {REFUSED[words]}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# --plot-graph: GEval.OptionsParser.calibrationPlot and loessGraph of GEval.Core, of GEval 1.42.2

LABELS = {
    "dev-0/expected.tsv": "rain travel\nfood\n\nrain\n",
    "dev-0/out-a.tsv": "rain:0.75 food:0.25\nfood:0.875\ntravel:0.375\nrain:0.3\n",
    "dev-0/out-<b>.tsv": "rain:0.5\nfood:0.5\n\nrain:0.5\n",
}
PROBABILISTIC = "Probabilistic-MultiLabel-F"


@pytest.fixture
def labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()
    for name, text in LABELS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_points_of_a_calibration_curve_are_gevals():
    name = f"{PROBABILISTIC}1"
    column = column_of(find_metric(name), frozenset())
    expected, output = LABELS["dev-0/expected.tsv"].encode(), LABELS["dev-0/out-a.tsv"].encode()
    curve = calibration_curve(column.statistics(output, expected, 1))
    given, true = np.array([(0.75, 1), (0.25, 0), (0.875, 1), (0.375, 0), (0.3, 1)]).T
    assert [at for at, _ in curve] == pytest.approx([0.01 * n for n in range(26, 88)])
    for at, height in curve:
        line = np.polyfit(given, true, 1, w=8 * norm.pdf(8 * (at - given)))
        assert height == pytest.approx(np.clip(np.polyval(line, at), 0, 1), abs=1e-9)
    for outputs in (b"a:0.5\nb:0.5\n", b"\n\n"):  # of one probability or none
        assert calibration_curve(column.statistics(outputs, b"a\na\n", 1)) == []


def test_a_graph_for_each_metric_that_has_one(geval, labels):
    words = ("-t", "dev-0", "-a", f"{PROBABILISTIC}1", "-a", "MultiLabel-F1", "-a", f"{PROBABILISTIC}2:N<a&b>")
    scores = geval(*words)
    assert geval(*words, "--plot-graph", "graph.svg") == scores
    assert {path.name for path in labels.iterdir()} == {"dev-0", "graph.svg", "graph-1.svg"}
    graph = (labels / "graph.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(graph)
    assert f"calibration, {PROBABILISTIC}1<" in graph
    assert "calibration, a&amp;b<" in (labels / "graph-1.svg").read_text(encoding="utf-8")
    assert graph.count('role="graphics-symbol"') == 1  # the second output has one probability, and so no curve
    assert all(f">{name}</text>" in graph for name in ("perfect", "out-a.tsv", "out-&lt;b&gt;.tsv"))


NO_GRAPH = {
    "a metric of word gaps": (("-a", "LogLossHashed", "--plot-graph", "g.svg"),
        "--plot-graph draws the curve of Probabilistic-MultiLabel-F1 and the like; no metric here has one\n"
        "  geval report draws the calibration of distributions over words"),
    "another ending": (("--plot-graph", "g.png"),
        "--plot-graph draws SVG: name a file that ends in .svg, not `g.png`"),
    "another mode": (("-l", "--plot-graph", "g.svg"), "--plot-graph goes with scores"),
    "several challenges": (("--challenge", ".", "--plot-graph", "g.svg"),
        "--plot-graph is of one challenge: leave --challenge out"),
    "no such folder": (("-a", f"{PROBABILISTIC}1", "--plot-graph", "x/g.svg"),
        "Cannot write `x/g.svg`: No such file or directory"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), NO_GRAPH.values(), ids=NO_GRAPH)
def test_no_graph(words, message, geval, labels):
    status, out, err = geval("-t", "dev-0", *words)
    assert (status, err) == (2, f"geval: {message}\n")
    assert out == "" or "Cannot write" in message
    assert {path.name for path in labels.iterdir()} == {"dev-0"}


def test_config_txt_draws_no_graph(geval, labels):
    """GEval 1.42.2 would write the file that a stranger's config.txt names."""
    (labels / "config.txt").write_text(f"-m {PROBABILISTIC}1 --plot-graph graph.png")
    status, _, err = geval("-t", "dev-0")
    assert (status, err) == (0, "geval: note: `./config.txt`: --plot-graph ignored; no score depends on it\n")
    assert {path.name for path in labels.iterdir()} == {"dev-0", "config.txt"}
