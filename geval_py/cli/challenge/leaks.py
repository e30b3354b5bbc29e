"""``geval challenge leaks``: what a challenge gives away of its hidden answers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from geval_py.authoring.leak_items import COMMAND, LEAK_RULES
from geval_py.authoring.leaks import find_leaks
from geval_py.checking.rules import find_rules
from geval_py.cli.check import add_choice, add_listing, chosen, listed, most_places, show
from geval_py.cli.parsers import QuietParser
from geval_py.cli.terminal import ProgressBar

_EPILOG = """\
examples:
  geval challenge leaks                of the challenge in the current folder
  geval challenge leaks my-challenge --answers my-challenge-answers
                                       with the answers, which are in another folder
  geval challenge leaks --explain E404 what a rule means, and what to do

Exit status: 0 no error (with --strict: no warning either), 1 problems, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval challenge leaks``."""
    parser = QuietParser(
        prog=COMMAND,
        description="Find what a challenge gives away: answers in public, and what one part shows of another.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("folder", nargs="?", default=".", metavar="DIR", help="the challenge's public folder (default: .)")
    add("--answers", metavar="DIR", help="the folder of the hidden answers, if that is another")
    add("--group", metavar="COLUMN", help="what has one value here should be in one part (default: the first column)")
    add_choice(parser, "E4")
    add_listing(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None or listed(given, LEAK_RULES, COMMAND):
        return 0
    report = find_leaks(
        given.folder,
        answers=given.answers,
        group=given.group,
        rules=_rules(given),
        max_places=most_places(given),
        strict=given.strict,
        progress_of=ProgressBar,
    )
    return show(report, given.format)


def _rules(given: argparse.Namespace) -> frozenset[str]:
    select, ignore = chosen(given)
    codes = {rule.code for rule in LEAK_RULES} if select is None else _codes(select)
    return frozenset(codes - _codes(ignore))


def _codes(names: Iterable[str]) -> set[str]:
    return {rule.code for name in names for rule in find_rules(name, LEAK_RULES, COMMAND)}
