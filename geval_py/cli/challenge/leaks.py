"""``geval challenge leaks``: what a challenge gives away of its hidden answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from geval_py.authoring.leaks.find import find_leaks
from geval_py.authoring.leaks.rules import COMMAND, LEAK_RULES
from geval_py.checking.rules import find_rule, find_rules
from geval_py.checking.run import DEFAULT_MAX_PLACES
from geval_py.cli.check import TEXT_MAX_PLACES
from geval_py.cli.parsers import QuietParser, number_type
from geval_py.cli.progress import ProgressBar
from geval_py.cli.tables import write_listing
from geval_py.showing.colours import shows_colours
from geval_py.showing.listings import explanation, rules_table
from geval_py.showing.problems import FORMATS, render

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
    add("--format", choices=FORMATS, default="text", help="text (the default), or for programs")
    add("--strict", action="store_true", help="warnings too make the exit status 1")
    add("--select", metavar="RULE,…", help="only these rules, by code, its beginning (E4) or name")
    add("--ignore", metavar="RULE,…", help="not these rules")
    add(
        "--max-problems",
        type=number_type,
        metavar="N",
        help=f"places shown of each rule (default: {DEFAULT_MAX_PLACES}, in text {TEXT_MAX_PLACES}; 0: all)",
    )
    add("--rules", action="store_true", help="list the rules and exit")
    add("--explain", metavar="RULE", help="explain a rule and exit")
    add("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().read(words)
    if given.help:
        sys.stdout.write(make_parser().format_help())
    elif given.rules:
        write_listing(rules_table(LEAK_RULES))
    elif given.explain is not None:
        sys.stdout.write(explanation(find_rule(given.explain, LEAK_RULES, COMMAND)))
    else:
        return _report(given)
    return 0


def _report(given: argparse.Namespace) -> int:
    places = TEXT_MAX_PLACES if given.format == "text" else DEFAULT_MAX_PLACES
    report = find_leaks(
        given.folder,
        answers=given.answers,
        group=given.group,
        rules=_rules(given),
        max_places=places if given.max_problems is None else given.max_problems,
        strict=given.strict,
        progress_of=ProgressBar,
    )
    colour = given.format == "text" and shows_colours(sys.stdout)
    sys.stdout.write(render(report, given.format, colour=colour))
    return report.status


def _rules(given: argparse.Namespace) -> frozenset[str]:
    select = {rule.code for rule in LEAK_RULES} if given.select is None else _codes(given.select.split(","))
    return frozenset(select - _codes(given.ignore.split(",") if given.ignore else ()))


def _codes(names: Iterable[str]) -> set[str]:
    return {rule.code for name in names for rule in find_rules(name, LEAK_RULES, COMMAND)}
