"""What the commands that find problems share: options on rules, and how a report is shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geval_py.checking.check import DEFAULT_MAX_BYTES, DEFAULT_MAX_PLACES, check_targets, unreadable_output
from geval_py.checking.fixes import DIFF_LINES, fix_file
from geval_py.checking.problem_formats import FORMATS, inert, render
from geval_py.checking.rules import COMMAND, RULES, Problem, explanation, find_rule, rules_table, select_rules
from geval_py.checking.targets import Target, find_targets
from geval_py.cli.evaluations import workers_at
from geval_py.cli.parsers import QuietParser, add_fields, number_type
from geval_py.cli.terminal import ProgressBar, write_listing
from geval_py.errors import GevalError, UsageError
from geval_py.reading.sources import STANDARD_INPUT
from geval_py.tables.terminals import shows_colours
from geval_py.text import named, visible

if TYPE_CHECKING:
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


# ``geval check``: every problem of a submission, at its line and column, before anyone scores it.


_ADVICE = "; --challenge and --test-name (-t) say which test set is meant"
_EPILOG = """\
examples:
  geval check                          the submission in the current folder
  geval check -t dev-0                 only its dev-0
  geval check bigram -t dev-0          an output of its dev-0, by its name
  geval check out.tsv --challenge DIR  one output, for a challenge that is elsewhere
  predict | geval check - -t dev-0     standard input
  geval check --fix --rest-mass 0.01   mend what can be mended without guessing
  geval check --explain W204           what a rule means, and what to do

Exit status: 0 no error (with --strict: no warning either), 1 problems, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval check``."""
    parser = QuietParser(
        prog=COMMAND,
        description="Find every problem of a submission, at its line and column, without the hidden answers.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    paths = "an output (-: standard input), or a submission's folder (default: .)"
    add("paths", nargs="*", metavar="PATH", help=paths)
    add("--challenge", metavar="DIR", help="the challenge's folder, with answers, inputs and headers")
    add(
        "-t",
        "--test-name",
        dest="tests",
        action="append",
        default=[],
        metavar="TEST",
        help="only this test set; the one that an output is for",
    )
    add_choice(parser, "E1")
    add(
        "--max-bytes",
        type=number_type,
        default=DEFAULT_MAX_BYTES,
        metavar="N",
        help="what a compressed output may unpack to (default: 20 GB)",
    )
    add_fields(parser, "cluster")
    _add_mending(parser)
    add_listing(parser)
    return parser.with_help()


def _add_mending(parser: QuietParser) -> None:
    add = parser.add_argument
    add("--fix", action="store_true", help="mend what can be mended without guessing; keeps OUTPUT.orig")
    add("--diff", action="store_true", help="show what --fix would change, and write nothing")
    add("--rest-mass", type=_mass, metavar="EPS", help="with --fix: the rest to add where none is left")
    add("--no-backup", action="store_true", help="with --fix: keep no OUTPUT.orig")


def _mass(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None or listed(given, RULES, COMMAND):
        return 0
    if given.fix or given.diff:
        if given.cluster is not None:
            raise UsageError(message="--fix and --diff work on this machine: leave --cluster out")
        return _fix(given)
    if given.rest_mass is not None or given.no_backup:
        raise UsageError(message="--rest-mass and --no-backup go with --fix or --diff")
    return _report(given)


def _targets(given: argparse.Namespace) -> list[Target | Problem]:
    return list(find_targets(given.paths or ["."], given.challenge, given.tests))


def _report(given: argparse.Namespace) -> int:
    targets, rules = _targets(given), select_rules(*chosen(given))
    with workers_at(given.cluster) as workers:
        report = check_targets(
            targets,
            rules,
            max_places=most_places(given),
            max_bytes=given.max_bytes,
            progress_of=ProgressBar,
            strict=given.strict,
            workers=workers,
        )
    for error in report.unreadable:
        _complain(f"note: checked without a file of the test set: {error}")
    for output in report.uncounted if given.format != "json" else ():
        _complain(f"note: the lines of {named(output.path)} are not counted: {output.reason}{_ADVICE}")
    return show(report, given.format)


def _fix(given: argparse.Namespace) -> int:
    """Mend the outputs, and check them again; gives 1 if one could not be mended, or still has errors."""
    rules = select_rules(*chosen(given))
    targets = _targets(given)
    if any(isinstance(target, Target) and target.output == STANDARD_INPUT for target in targets):
        raise UsageError(message="--fix and --diff mend files: standard input is none")
    failed = False
    for target in targets:
        path = target.path if isinstance(target, Problem) else target.output
        if isinstance(target, Target) and target.metric is not None:
            metric = target.metric.name
            _complain(f"{named(path)} is scored with {metric}: only distributions over words are mended")
            continue
        problem = target if isinstance(target, Problem) else unreadable_output(path, given.max_bytes)
        if problem is None:
            failed |= not _mend(path, rules, given)
        elif given.diff:
            _complain(f"`{visible(path)}`: {visible(problem.summary)}")
            failed = True
    return max(int(failed), 0 if given.diff else _report(given))


def _mend(path: str, rules: frozenset[str], given: argparse.Namespace) -> bool:
    """Mend an output, or show what would be; tells whether that worked."""
    write = not given.diff
    try:
        fixed = fix_file(path, rest_mass=given.rest_mass, backup=not given.no_backup, write=write, rules=rules)
    except GevalError as error:
        _complain(str(error))
        return False
    if given.diff:
        _show_diff(fixed.path, fixed.diff, given.max_problems)
    _say_what_changed(fixed.path, fixed.changes, fixed.backup_path, would=given.diff)
    return True


def _complain(message: str) -> None:
    """Say something on standard error, in which GitHub's runner sees no command."""
    print(inert(f"geval: {message}"), file=sys.stderr)


def _show_diff(path: str, diff: Sequence[tuple[int, str, str]], most: int | None) -> None:
    shown = diff[: most or len(diff)]
    for line, before, after in shown:
        print(inert(f"{visible(path)}:{line}\n- {visible(before)}\n+ {visible(after)}"))
    if len(diff) > len(shown) or len(diff) == DIFF_LINES:
        print("…")


def _say_what_changed(path: str, changes: dict[str, int], backup: str | None, *, would: bool) -> None:
    shown = ", ".join(f"{code} on {lines} lines" for code, lines in sorted(changes.items()))
    verb = "would mend" if would else "mended"
    kept = f"; the original is `{visible(backup)}`" if backup else ""
    print(f"geval: `{visible(path)}`: {f'{verb} {shown}' if shown else 'nothing to mend'}{kept}", file=sys.stderr)
