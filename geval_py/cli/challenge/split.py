"""``geval challenge split``: a challenge, cut from items that are there."""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.authoring.make import DEFAULT_METRICS, read_items, split_items
from geval_py.cli.challenge.make import add_common, folders_to_make, parts_of, progress_of, tell
from geval_py.cli.parsers import QuietParser

_EPILOG = """\
examples:
  geval challenge split old/train -o my-challenge    a folder with in.tsv and expected.tsv
  geval challenge split items -o my-challenge --columns Book,Left,Right --group Book

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval challenge split``."""
    parser = QuietParser(
        prog="geval challenge split",
        description="Split items that are there already into train, dev-0 and test-A, whole groups together.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("folder", nargs="?", metavar="DIR", help="a folder with in.tsv and expected.tsv")
    add_common(parser)
    add("--group", metavar="COLUMN", help="what has one value here stays in one part (default: the first column)")
    add("--columns", metavar="NAME,…", help="the names of in.tsv's columns (default: those in in-header.tsv)")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    parser = make_parser()
    given = parser.understood(words)
    if given is None:
        return 0
    out, answers = folders_to_make(parser, given, given.folder, "a folder with items")
    pool = read_items(given.folder, columns=given.columns.split(",") if given.columns else (), group=given.group)
    sizes = split_items(
        pool,
        out,
        answers,
        parts=parts_of(given),
        metrics=given.metrics or DEFAULT_METRICS,
        title=given.title,
        keep_order=given.keep_order,
        progress_of=progress_of,
    )
    tell(sizes, pool.group, out, answers)
    return 0
