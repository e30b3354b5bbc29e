"""Make the pictures of the documentation from the sample challenge, by Chromium. Usage: scripts/make_pictures.py."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1000, "height": 710}


def geval(*words: str, folder: Path) -> None:
    """Run a command of geval in a folder."""
    subprocess.run([Path(sys.executable).with_name("geval"), *words], cwd=folder, check=True, stdout=sys.stderr)


def main() -> None:
    """Make all pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    options = ["--no-sandbox"] if os.getuid() == 0 else []
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        gazette = Path(name, "gazette")
        shutil.copytree(ROOT / "challenges/gazette", gazette)
        geval("report", "-t", "dev-0", "-o", "bigram", "--html", "report.html", folder=gazette)
        pages = {"report": gazette / "report.html"}
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        for picture, path in pages.items():
            page = browser.new_page(viewport=SIZE)
            page.goto(path.as_uri())
            session = page.context.new_cdp_session(page)  # Playwright itself writes no WebP
            shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
            (PICTURES / f"{picture}.webp").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
