"""All that a report says: text, tables and descriptions of charts, compared with pages that were read once."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from translations import write

from geval_py import __version__, evaluate, evaluate_all
from geval_py.reports.contents import overview, report
from geval_py.reports.page import page

EXPECTED = Path(__file__).parent / "expected"
GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
SILENT = {"script", "style", "title"}
AXIS = re.compile("[XY]-axis|(Symbol|Gradient) legend")  # described by Vega
LINES = {"h1", "h2", "h3", "p", "li", "tr", "article", "section", "summary", "dt", "dd", "caption", "svg", "div"}
CELLS = {"td", "th"}


class _Words(HTMLParser):
    """Collects what a page says, an element a line, cells with bars between, points of charts by their descriptions."""

    def __init__(self):
        super().__init__()
        self.words, self.silent, self.drawing = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.silent += tag in SILENT
        self.drawing += tag == "svg"
        if tag in LINES:
            self.words.append("\n")
        if tag in CELLS:
            self.words.append(" | ")
        label = dict(attrs).get("aria-label")
        if self.drawing and label and not AXIS.match(label):
            self.words.append(f"\n    {label}")

    def handle_endtag(self, tag):
        self.silent -= tag in SILENT
        self.drawing -= tag == "svg"

    def handle_data(self, data):
        if not self.silent and not self.drawing:
            self.words.append(re.sub(r"\s+", " ", data))


def said(text):
    """What a page says, as lines."""
    parser = _Words()
    parser.feed(text)
    lines = (line.rstrip().removeprefix(" | ") for line in "".join(parser.words).split("\n"))
    return "".join(f"{line}\n" for line in lines if line.strip())


def test_on_the_gazette():
    first, *others = evaluate_all(GAZETTE, "dev-0")
    text = said(page(report(first, others), "Gazette")).replace(__version__, "VERSION")
    assert text == (EXPECTED / "gazette.txt").read_text()


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_on_translations(tmp_path, metric):
    folder = write(tmp_path / "sayings")
    first, *others = [
        evaluate(folder, "dev-0", out=f"out-{name}.tsv", metrics=metric) for name in ("middling", "good", "bad")
    ]
    text = said(page(overview(first, others), "Sayings")).replace(__version__, "VERSION")
    assert text == (EXPECTED / f"translations-{metric}.txt").read_text()
