"""What the commands that find problems share: options on rules, and how a report is shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.checking.rules import find_rule
from geval_py.checking.run import DEFAULT_MAX_PLACES
from geval_py.cli.parsers import QuietParser, number_type
from geval_py.cli.tables import write_listing
from geval_py.showing.colours import shows_colours
from geval_py.showing.listings import explanation, rules_table
from geval_py.showing.problems import FORMATS, render

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from geval_py.checking.rules import Report, Rule

TEXT_MAX_PLACES = 3  # for people, who see the line too


def add_choice(parser: QuietParser, beginning: str) -> None:
    """Add the options that say which rules count, and how they are shown; ``beginning`` is that of some codes."""
    add = parser.add_argument
    add("--format", choices=FORMATS, default="text", help="text (the default), or for programs")
    add("--strict", action="store_true", help="warnings too make the exit status 1")
    add("--select", metavar="RULE,…", help=f"only these rules, by code, its beginning ({beginning}) or name")
    add("--ignore", metavar="RULE,…", help="not these rules")
    add(
        "--max-problems",
        type=number_type,
        metavar="N",
        help=f"places shown of each rule (default: {DEFAULT_MAX_PLACES}, in text {TEXT_MAX_PLACES}; 0: all)",
    )


def add_listing(parser: QuietParser) -> None:
    """Add the options that only tell of the rules."""
    parser.add_argument("--rules", action="store_true", help="list the rules and exit")
    parser.add_argument("--explain", metavar="RULE", help="explain a rule and exit")


def listed(given: argparse.Namespace, rules: Sequence[Rule], command: str) -> bool:
    """Show the rules of a table, or one of them, if that is wanted, and tell whether it was; raises UsageError."""
    if given.rules:
        write_listing(rules_table(rules))
    elif given.explain is not None:
        sys.stdout.write(explanation(find_rule(given.explain, rules, command)))
    else:
        return False
    return True


def chosen(given: argparse.Namespace) -> tuple[list[str] | None, list[str]]:
    """Give the names of the rules to select, None for all, and of those to ignore."""
    select = None if given.select is None else given.select.split(",")
    return select, given.ignore.split(",") if given.ignore else []


def most_places(given: argparse.Namespace) -> int:
    """Give how many places are shown of each rule."""
    if given.max_problems is not None:
        return int(given.max_problems)
    return TEXT_MAX_PLACES if given.format == "text" else DEFAULT_MAX_PLACES


def show(report: Report, form: str) -> int:
    """Show a report; gives the exit status."""
    sys.stdout.write(render(report, form, colour=form == "text" and shows_colours(sys.stdout)))
    return report.status
