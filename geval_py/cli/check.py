"""``geval check``: every problem of a submission, at its line and column, before anyone scores it.

``geval challenge leaks`` shares the options on rules, and how a report is shown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest

from geval_py.checking import check, problem_formats, rules, targets
from geval_py.cli import terminal
from geval_py.cli.commands import (
    OptionAdder,
    add_format,
    command,
    metric_option,
    number_option,
    option,
    switch,
)
from geval_py.cli.terminal import shows_colours, width_of
from geval_py.errors import GevalError, UsageError
from geval_py.reading import config
from geval_py.reading.files import STANDARD_INPUT
from geval_py.reading.lines import DEFAULT_MAX_BYTES
from geval_py.tables.formats import Result
from geval_py.tables.table import Table
from geval_py.text import counted, named, picture, visible

TEXT_MAX_PLACES = 4  # for people: a line that they see, and the numbers of three more
STATUS = "Exit status: 0 no error (with --strict: no warning either), 1 problems, 2 an error in the command line."


def rule_options(beginning: str) -> tuple[OptionAdder, ...]:
    """Return the options about which rules count, and how they are shown; some codes have that ``beginning``."""
    most = f"lines named for each rule (default: {check.DEFAULT_MAX_PLACES}, in text {TEXT_MAX_PLACES}; 0: all)"
    return (
        partial(add_format, more=problem_formats.FORMATS),
        switch("--strict", help="exit with status 1 also for warnings"),
        switch("--exit-zero", help="do not exit with status 1 because of problems"),
        option("--select", metavar="RULE,…", help=f"only these rules, by code, its beginning ({beginning}) or name"),
        option("--ignore", metavar="RULE,…", help="not these rules"),
        number_option("--max-problems", help=most),
        switch("--rules", help="list the rules and exit"),
        option("--explain", metavar="RULE", help="explain a rule and exit"),
    )


def _mass(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise ValueError(f"{text!r} is not a number between 0 and 1")


def chosen_rules(
    args: argparse.Namespace, table: Sequence[rules.Rule] = rules.RULES, command: str = rules.COMMAND
) -> frozenset[str] | None:
    """Return the codes of the rules to apply; None after showing the rules, if that is asked for.

    Raises UsageError.
    """
    if args.rules:
        terminal.write_table(rules.rules_table(table), header=False)
        return None
    if args.explain is not None:
        terminal.say("\n\n".join(map(rules.explanation, rules.find_rules(args.explain, table, command))))
        return None
    select = None if args.select is None else args.select.split(",")
    return rules.select_rules(select, args.ignore.split(",") if args.ignore else (), table, command)


def max_places(args: argparse.Namespace) -> int:
    """Return how many places are shown of each rule."""
    if args.max_problems is not None:
        return int(args.max_problems)
    return TEXT_MAX_PLACES if args.format == "text" else check.DEFAULT_MAX_PLACES


def show_report(report: rules.Report, args: argparse.Namespace) -> int:
    """Show a report in a format of its own or, as a table, in any other; returns the exit status."""
    status = 0 if args.exit_zero else report.status
    if args.format in problem_formats.FORMATS:
        sys.stdout.write(
            problem_formats.render(report, args.format, colour=shows_colours(sys.stdout), width=width_of(sys.stdout))
        )
    else:
        table = report.table()
        columns = [column._replace(write=_escaped) for column in table.columns]
        terminal.show(Result(document={}, people=Table(columns, table.rows)), args)
    if args.output_file is not None:  # else the log of a job that fails would be empty
        terminal.tell(f"{report.summary}: {named(args.output_file)}")
    return status


def _escaped(value: object) -> str:
    """Write a value of a table, in which GitHub's runner sees no command."""
    return problem_formats.escape_commands(visible(str(value)))


@command(
    "check",
    "Find every problem of a submission, at its line and column, without the hidden answers.",
    """\
  geval check                          the submission in the current folder
  geval check team.zip                 an archive, as a board opens it
  geval check -t dev-0                 only its dev-0
  geval check bigram -t dev-0          an output of its dev-0, by its name
  geval check out.tsv --challenge DIR  one output, for a challenge that is elsewhere
  predict | geval check - -t dev-0     standard input
  geval check --fix --rest-mass 0.01   fix what can be fixed without guessing
  geval check --explain W204           what a rule means, and what to do
""",
    option(
        "paths", nargs="*", metavar="PATH",
        help="an output (-: standard input), or a submission: a folder (default: .) or an archive",
    ),
    option("--challenge", metavar="DIR", help="the challenge's folder, with answers, inputs and headers"),
    option(
        "-t", "--test-name", dest="tests", action="append", default=[], metavar="TEST",
        help="only this test set; for an output, its test set; repeatable",
    ),
    metric_option("check the lines as this metric reads them; repeatable", "the challenge's"),
    *rule_options("E1"),
    number_option("--lines", help="the number of lines of an output whose test set has no answers and no input"),
    number_option(
        "--max-bytes", default=DEFAULT_MAX_BYTES,
        help="the largest size of a compressed output after unpacking, in bytes (default: 20 GB)",
    ),
    switch("--fix", help="fix what can be fixed without guessing; keeps OUTPUT.orig"),
    switch("--diff", help="show what --fix would change, and write nothing"),
    option(
        "--rest-mass", type=config.argument_type(_mass), metavar="EPS",
        help="with --fix: the rest to add if there is none",
    ),
    switch("--no-backup", help="with --fix: do not keep OUTPUT.orig"),
    status=STATUS,
)  # fmt: skip
def run_check(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    codes = chosen_rules(args)
    if codes is None:
        return 0
    if args.fix or args.diff:
        if args.diff and args.format != "text":
            raise UsageError("--diff shows lines, not a report: leave --format out")
    elif args.rest_mass is not None or args.no_backup:
        raise UsageError("--rest-mass and --no-backup go with --fix or --diff")
    found = partial(
        targets.find_targets, args.paths or ["."], args.challenge, args.tests, args.alt_metrics or (), args.lines
    )
    failed = (args.fix or args.diff) and _fix(list(found()), codes, args)
    if args.diff:
        return int(failed)
    report = check.check_targets(
        found(),
        codes,
        max_places=max_places(args),
        max_bytes=args.max_bytes,
        progress_of=terminal.ProgressBar,
        strict=args.strict,
    )
    notes = [f"checked without a file of the test set: {error}" for error in report.unreadable]
    if args.format != "json":
        notes += report.notes
    terminal.note(*map(problem_formats.escape_commands, notes))
    return max(int(failed), show_report(report, args))


def _fix(outputs: Sequence[targets.Target | rules.Problem], codes: frozenset[str], args: argparse.Namespace) -> bool:
    """Fix the outputs, or show what would change; returns whether one could not be fixed, or would change."""
    from geval_py.checking import fixes  # which no check needs

    for target in outputs:
        if isinstance(target, targets.Target) and (target.output == STANDARD_INPUT or target.shown):
            kind = "a member of an archive" if target.shown else "standard input"
            raise UsageError(f"--fix and --diff need a file, not {kind}")
    failed = False
    for target in outputs:
        if isinstance(target, rules.Problem):
            path, problems = target.path, [target]
        else:
            path = target.output
            if not target.is_of_words:
                metric = "a metric that is not known" if target.metric is None else target.metric.name
                _complain(f"{named(path)} is scored with {metric}: only distributions over words are fixed")
                continue
            problems = check.check_output(target, rules.UNREADABLE, max_places=1, max_bytes=args.max_bytes)
        if problems:
            if args.diff:
                _complain(f"`{visible(path)}`: {visible(problems[0].summary)}")
                failed = True
            continue
        try:
            fixed = fixes.fix_file(
                path, rest_mass=args.rest_mass, backup=not args.no_backup, write=not args.diff, rules=codes
            )
        except GevalError as error:
            _complain(str(error))
            failed = True
            continue
        name = visible(fixed.path)
        if args.diff:
            failed |= bool(fixed.changes) and not args.exit_zero
            shown = fixed.diff[: args.max_problems or None]
            width = width_of(sys.stdout)
            for line, *texts in shown:
                # On a terminal, only what is around the first change is shown.
                place = next((n for n, (a, b) in enumerate(zip_longest(*texts), 1) if a != b), 1)
                before, after = (
                    visible(text) if width is None else picture(text, place, width - 2).split("\n")[0]
                    for text in texts
                )
                print(problem_formats.escape_commands(f"{name}:{line}\n- {before}\n+ {after}"))
            if len(fixed.diff) > len(shown) or len(fixed.diff) == fixes.DIFF_LINES:
                print("…")
        changes = ", ".join(f"{code} on {counted(lines, 'line')}" for code, lines in sorted(fixed.changes.items()))
        done = f"{'would fix' if args.diff else 'fixed'} {changes}" if changes else "nothing to fix"
        kept = f"; the previous version is `{visible(fixed.backup_path)}`" if fixed.backup_path else ""
        terminal.tell(f"`{name}`: {done}{kept}")
    return failed


def _complain(message: str) -> None:
    """Write to standard error, without anything that GitHub's runner would take for a command."""
    terminal.complain(problem_formats.escape_commands(message))
