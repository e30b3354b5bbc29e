"""Make the pictures of the documentation from the sample challenge, by Chromium. Usage: scripts/make_pictures.py."""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, MARGIN = 600, 8  # so narrow that a phone shows a picture large enough to read
COLUMNS = 60
STYLE = """
body { font: 16px/1.4 sans-serif; margin: 16px; color: #1f2328; background: #fff; display: flow-root }
pre { font: 15px/1.4 monospace; margin: 0 }
td, th { border: 1px solid #d1d9e0; padding: 6px 10px; text-align: left; vertical-align: top }
table { border-collapse: collapse }
h3 { margin: 0 0 16px }
"""
UPLOADS = {  # the outputs for test-A by submitter: one guess for all lines
    "ann": "the:0.06 of:0.03 and:0.03 a:0.02 :0.86",
    "bob": "the:0.06 of:0.03 :0.91",
    "cleo": "the:0.05 of:0.03 and:0.02 to:0.02 a:0.02 in:0.02 :0.84",
    "dan": "the:0,06 :0.94",
    "eve": "the:0.06 :0.94",
}


def geval(words: str, folder: Path, **environment: str) -> None:
    """Run a command of geval in a folder, whatever its exit status."""
    command = [Path(sys.executable).with_name("geval"), *words.split()]
    subprocess.run(command, cwd=folder, check=False, stdout=sys.stderr, env=os.environ | environment)


def terminal(words: str, folder: Path) -> str:
    """Return what a command of geval shows on a terminal, below the command, as HTML."""
    command = f"stty cols {COLUMNS}; {Path(sys.executable).with_name('geval')} {words}"
    run = subprocess.run(["script", "-qec", command, "/dev/null"], cwd=folder, check=True, stdout=subprocess.PIPE)
    shown = html.escape(run.stdout.decode().replace("\r", ""))
    return f"<pre>$ geval {words}\n{shown}</pre>"


def comparison(gazette: Path) -> Path:
    """Return a page with a comparison of two outputs on a terminal."""
    return written(gazette / "compare.html", terminal("compare -t dev-0 --baseline unigram", gazette))


def leaderboard(gazette: Path) -> Path:
    """Return the first page of a board with a few submissions."""
    (gazette / "hidden" / "test-A").mkdir(parents=True)
    answers = (gazette / "test-A" / "expected.tsv").rename(gazette / "hidden" / "test-A" / "expected.tsv")
    lines = len(answers.read_bytes().splitlines())
    for submitter, guess in UPLOADS.items():
        output = gazette / "uploads" / submitter / "test-A" / "out.tsv"
        output.parent.mkdir(parents=True)
        output.write_text(f"{guess}\n" * lines)
    geval("board init board --challenge . --answers hidden", gazette)
    geval("board scan board uploads --at 2025-01-20T18:00:00Z", gazette)
    geval("board site board -o public", gazette)
    return gazette / "public" / "index.html"


def check(gazette: Path) -> Path:
    """Return a page with the table of problems that a check writes in Markdown."""
    output = gazette / "submission" / "dev-0" / "out.tsv"
    output.parent.mkdir(parents=True)
    lines = (gazette / "dev-0" / "out-model=bigram.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[:3] = ["the:0.5 of:0,25 :0.25\n", "the:0.9 of:0.3\n", "and:0.2 and:0.1 :0.7\n"]
    output.write_text("".join(lines), encoding="utf-8")
    summary = gazette / "summary.md"
    geval(f"check --challenge .. -t dev-0 --output {summary}", output.parents[1])
    table = MarkdownIt().enable("table").render(summary.read_text(encoding="utf-8"))
    return written(gazette / "check.html", table)


def written(path: Path, body: str) -> Path:
    """Return the path of a page, after writing it."""
    path.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}", encoding="utf-8")
    return path


def report(gazette: Path) -> Path:
    """Return the page that explains an output."""
    geval("report -t dev-0 -o bigram --html report.html", gazette)
    return gazette / "report.html"


# Each page, and the first and the last element of it that the picture shows.
SHOWN = (
    (report, "header", "#quality"),
    (comparison, "pre", "pre"),
    (leaderboard, ".count", "table.board"),
    (check, "h3", "table"),
)


def main() -> None:
    """Make all pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=sandbox)
        for make, first, last in SHOWN:
            gazette = Path(name, make.__name__, "gazette")
            shutil.copytree(ROOT / "challenges/gazette", gazette)
            page = browser.new_page(viewport={"width": WIDTH, "height": 900})
            page.goto(make(gazette).as_uri())
            top, bottom = (page.locator(each).first.bounding_box() for each in (first, last))
            height = bottom["y"] + bottom["height"] - top["y"] + 2 * MARGIN
            clip = {"x": 0, "y": top["y"] - MARGIN, "width": WIDTH, "height": height, "scale": 1.5}
            session = page.context.new_cdp_session(page)  # Playwright itself writes no WebP
            options = {"format": "webp", "quality": 45, "clip": clip, "captureBeyondViewport": True}
            shot = session.send("Page.captureScreenshot", options)
            (PICTURES / f"{make.__name__}.webp").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
