"""What ``geval challenge make`` and ``geval challenge split`` share: options, and what is said of the result."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterable

from geval_py.authoring.make import DEFAULT_METRICS
from geval_py.authoring.parts import DEFAULT_SALT, DEFAULT_SHARES, FEW_GROUPS, Parts, read_shares
from geval_py.authoring.publishing import PACKING, check_folders, default_answers
from geval_py.cli.messages import note
from geval_py.cli.parsers import QuietParser
from geval_py.cli.progress import ProgressBar
from geval_py.showing.tables import Column, Table
from geval_py.text import named, visible

Size = tuple[str, int, int]  # a part's name, gaps and groups


def add_common(parser: QuietParser) -> None:
    """Add the options of both commands."""
    add = parser.add_argument
    add("-o", "--out", metavar="DIR", help="the new folder of the challenge")
    add("--answers", metavar="DIR", help="the new folder of the hidden answers (default: DIR-answers)")
    shares = ",".join(map(str, DEFAULT_SHARES))
    add("--split", type=_shares, default=DEFAULT_SHARES, metavar="N,N,N",
        help=f"shares of train, dev-0 and test-A (default: {shares})")  # fmt: skip
    add("--salt", default=DEFAULT_SALT, metavar="TEXT",
        help=f"of the hash that makes the parts (default: {DEFAULT_SALT})")  # fmt: skip
    add("-m", "--metric", dest="metrics", action="append", metavar="METRIC",
        help=f"a metric for config.txt; repeatable (default: {', '.join(DEFAULT_METRICS)})")  # fmt: skip
    add("--title", default="", metavar="TEXT", help="the README's title")
    add("--keep-order", action="store_true", help="leave the items of a part in order, and do not shuffle them")


def _shares(text: str) -> tuple[int, ...]:
    return reading(read_shares)(text)


def reading(read: Callable[[str], tuple[int, ...]]) -> Callable[[str], tuple[int, ...]]:
    """Let argparse say what a ValueError says."""

    def typed(text: str) -> tuple[int, ...]:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return typed


def folders_to_make(parser: QuietParser, given: argparse.Namespace, source: object, what: str) -> tuple[str, str]:
    """Give the new folders of the challenge and of its hidden answers.

    ``source`` is what it is made of, and ``what`` says what that is. Raises UsageError where either is missing, or
    the folders are not apart, and ExistingFileError.
    """
    if not source:
        parser.error(f"{what} is missing")
    if not given.out:
        parser.error("a folder to make is missing: -o DIR")
    answers = given.answers or default_answers(given.out)
    check_folders(given.out, answers)
    return str(given.out), str(answers)


def progress_of(what: str) -> ProgressBar:
    """Give the progress bar of a work."""
    return ProgressBar(what, unit="bytes" if what == PACKING else "items")


def parts_of(given: argparse.Namespace) -> Parts:
    """Give how parts are made."""
    return Parts(shares=given.split, salt=given.salt)


def tell(sizes: Iterable[Size], group: str | None, out: str, answers: str) -> None:
    """Show what the parts hold, warn of few groups, and say what to do next.

    ``group`` is the column that the parts were made by, None where each document is a group.
    """
    sizes = list(sizes)
    heading = "documents" if group is None else visible(group)
    groups_are = "documents" if group is None else f"groups ({visible(group)})"
    columns = [Column(name="part"), Column(name="gaps"), Column(name=heading)]
    sys.stdout.writelines(Table(columns, sizes).text())
    sys.stdout.flush()
    for name, _, groups in sizes:
        if groups < FEW_GROUPS:
            note(f"{name} has {groups} {groups_are}: below {FEW_GROUPS}, scores tell more of these than of a model")
    public, private = shlex.quote(visible(out)), shlex.quote(visible(answers))
    print(
        f"geval: the challenge is in {named(out)}, its hidden answers in {named(answers)}. Now try\n"
        f"  geval --validate --expected-directory {private}  # whether all fits together\n"
        f"  geval challenge leaks {public} --answers {private}  # what it gives away",
        file=sys.stderr,
    )
