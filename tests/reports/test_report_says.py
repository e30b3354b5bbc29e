"""All that a report says: text, tables and descriptions of charts, compared with pages that were read once."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from geval_py.version import __version__, build_version

EXPECTED = Path(__file__).parent / "expected"
SILENT = {"script", "style", "title"}
LINES = {"h1", "h2", "h3", "p", "li", "tr", "article", "section", "summary", "dt", "dd", "caption", "svg", "div"}
CELLS = {"td", "th"}


class _Words(HTMLParser):
    """Collects what a page says, an element a line, cells with bars between, points of charts by their descriptions."""

    def __init__(self):
        super().__init__()
        self.words, self.silent, self.drawing, self.described = [], 0, 0, False

    def handle_starttag(self, tag, attrs):
        self.silent += tag in SILENT
        self.drawing += tag == "svg"
        if tag in LINES:
            self.words.append("\n")
        if tag in CELLS:
            self.words.append(" | ")
        label = dict(attrs).get("aria-label")
        if tag == "svg":
            self.words.append(f"\n    {label}")
        self.described = self.drawing and tag == "title"

    def handle_endtag(self, tag):
        self.silent -= tag in SILENT
        self.described = False
        self.drawing -= tag == "svg"

    def handle_data(self, data):
        if self.described:
            self.words.append(f"\n    {data}")
        elif not self.silent and not self.drawing:
            self.words.append(re.sub(r"\s+", " ", data))


def said(text):
    parser = _Words()
    parser.feed(text)
    lines = (line.rstrip().removeprefix(" | ") for line in "".join(parser.words).split("\n"))
    return "".join(f"{line}\n" for line in lines if line.strip())


def without_version(text):
    return text.replace(build_version(), "VERSION").replace(__version__, "VERSION")


def test_on_the_gazette(gazette):
    text = without_version(said(gazette))
    assert text == (EXPECTED / "gazette.txt").read_text()


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_on_translations(page_of, metric):
    text = without_version(said(page_of(metric, "middling", "good", "bad")))
    assert text == (EXPECTED / f"translations-{metric}.txt").read_text()
