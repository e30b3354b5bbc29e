"""Write into the documentation what its examples print, and the tables that are made from the code.

It prints which pages changed. Read these changes as any other: an example that fails shows its error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from examples import PAGES, ROOT, rewritten, run_page
from tables import fill


def write(page: Path) -> bool:
    """Bring a page up to date; return whether it changed."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        new = fill(rewritten(text, run_page(page, Path(folder) / "clone")))  # examples may write beside it
    if new != text:
        page.write_text(new, encoding="utf-8", newline="\n")
    return new != text


def main() -> None:
    """Bring the pages named up to date, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="a Markdown file (default: all)")
    for page in [page.resolve() for page in parser.parse_args().pages] or PAGES:
        changed = write(page)
        print(f"{page.relative_to(ROOT)}: {'changed' if changed else 'as it was'}", file=sys.stderr)


if __name__ == "__main__":
    main()
