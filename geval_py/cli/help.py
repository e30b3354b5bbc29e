"""``geval help``: what ``geval`` does, a command of it, or a list of what there is."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress

from geval_py.checking import rules
from geval_py.cli import terminal
from geval_py.cli.commands import (
    COMMANDS,
    DOCUMENTATION,
    command,
    option,
    parser_of,
    summaries,
    unknown_subcommand,
)
from geval_py.cli.suggestions import OTHER_COMMANDS, PLAIN, command_meant, glossary
from geval_py.cli.terminal import width_of
from geval_py.errors import UsageError
from geval_py.reading import challenge, config
from geval_py.reading.config import Task
from geval_py.reading.outputs import by_accepted_names, unique_names
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.matching import MATCHINGS
from geval_py.scoring.metrics.registry import METRICS
from geval_py.tables.table import Table, named_columns
from geval_py.text import counted, visible

PURPOSES = {
    "text": "tables for people; in GEval's way for scores",
    "json": "a document for programs, all digits, with a signature",
    "csv": "a table for programs, all digits",
    "markdown": "a table for a README or an issue",
    "latex": "a table for a paper",
    "html": "a table for a page",
    "concise": "geval check: a line for each place, as compilers show errors",
    "github": "geval check: annotations of a pull request",
    "gitlab": "geval check: Code Quality of a merge request",
}


FLAGS = {
    "N<NAME>": "show this name instead of the metric's",
    "P<NUMBER>": "a priority, for programs that show several metrics",
    "l": "in lower case",
    "u": "in upper case",
    "c": "case-folded",
    "m<REGEXP>": "only the parts that match, joined",
    "t<REGEXP>": "only the words that contain a match",
    "s<REGEXP><REPLACEMENT>": "with all matches replaced",
    "S": "with the words sorted",
    "f<FEATURE>": "only the lines with this feature",
    "p<PERCENT>": "only so many lines, on which the output is most confident",
}


def _write_rows(rows: Iterable[tuple[str, ...]]) -> None:
    rows = list(rows)
    terminal.write_table(Table(named_columns("" for _ in rows[0]), rows), header=False)


def _write_metrics(metrics: Iterable[Metric]) -> None:
    _write_rows((one.name, one.measure.unit, f"{one.measure.direction} is better", one.summary) for one in metrics)


def list_metrics() -> None:
    """List the metrics, and what their names may have at the end."""
    _write_metrics(METRICS.values())
    matchings = ", ".join(f"{name}/" for name in MATCHINGS)
    for sentence in (
        "A name in …Hashed may end in a number of bits, 1 to 24 (10 where none is given): LogLossHashed8.",
        "An F-score's number may be any, and that of Improvement@0.5: F2, Macro-F0.5. Behind any other @, it is "
        "whole: Hit@5.",
        f"Before Accuracy and MultiLabel-F1 may stand {matchings}, in any order, and before these MacroAvg/ and "
        "Mean/: MacroAvg/Smart/Fuzzy/Accuracy.",
    ):
        print(textwrap.fill(sentence, width_of(sys.stdout) or 60))


def list_flags() -> None:
    """List what may stand behind the name of a metric."""
    _write_rows(FLAGS.items())
    terminal.say("They stand behind a metric and a colon, and are applied in order: 'Accuracy:lN<any case>'.")


def list_formats() -> None:
    """List the formats of results."""
    _write_rows(PURPOSES.items())
    terminal.say("geval -t dev-0 --format csv, say. --help names the formats of each command.")


def list_rules() -> None:
    """List the checker's rules."""
    terminal.write_table(rules.rules_table(), header=False)
    terminal.say("geval check --explain E101 says what a rule means, and what to do.")


TOPICS = {"flags": list_flags, "formats": list_formats, "metrics": list_metrics, "rules": list_rules}


@command(
    "help",
    "Show what geval does, or one of its commands, and the options; or a list: of the metrics, their flags, the\n"
    "formats of results, or the checker's rules; or explain a rule, a metric, or a term of the glossary.",
    """\
  geval help compare                   as geval compare --help
  geval help metrics
  geval help "hidden answers"          a term, and the page that says more
""",
    option(
        "command",
        nargs="*",
        metavar="COMMAND",
        help=f"{', '.join([*summaries(), *TOPICS])}, a rule, a metric, or a term (default: geval itself)",
    ),
)
def run_help(args: argparse.Namespace) -> None:
    """Run the command; raises UsageError."""
    name = " ".join(args.command)
    if name in TOPICS:
        TOPICS[name]()
    elif name in ("", *COMMANDS) or OTHER_COMMANDS.get(name) == PLAIN:
        sys.stdout.write(parser_of(name if name in COMMANDS else "").format_help())
    elif len(args.command) == 2 and summaries(args.command[0]):
        raise unknown_subcommand(*args.command)
    elif not _explained(name):
        meant = command_meant(name, [*COMMANDS, *map("help {}".format, TOPICS)], config.OPTION_NAMES)
        advice = "" if meant is None else f"did you mean {meant}? "
        there = f"{advice}the commands are {', '.join(summaries())}; the lists are {', '.join(TOPICS)}"
        raise UsageError(f"there is no command `{visible(name)}`\n  {there}")


def _explained(name: str) -> bool:
    """Show what a rule, a metric or a term of the glossary means; return whether it is known."""
    with suppress(UsageError):
        from geval_py.authoring.leaks import LEAK_RULES

        terminal.say("\n\n".join(map(rules.explanation, rules.find_rules(name, (*rules.RULES, *LEAK_RULES)))))
        return True
    with suppress(UsageError):
        _write_metrics([find_metric(name)])
        return True
    text = glossary().get(name.casefold())
    if text is None:
        return False
    pages = re.findall(r"\]\((\w+\.md[^)]*)\)", text) or ["glossary.md"]
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`]", r"\1", " ".join(text.split()))
    terminal.say(f"{plain}\n\nDocumentation: {DOCUMENTATION}/{pages[0]}")
    return True


# What to type first


ELSEWHERE = """\
This folder holds no challenge. To begin:
  geval sample gazette    make a small challenge, with two outputs, to try things on
  geval -t dev-0          in a challenge's folder: the scores of the outputs of dev-0
  geval check             find what is wrong in a submission, before it is sent
  geval compare -t dev-0  whether one output is better than another
  geval help              all options and commands"""


ABOVE = "The challenge is one folder up: cd .. and then geval says what it has."


def first_words(task: Task) -> str:
    """Return what to type in the folder of a task: the test sets that can be scored, or how to begin."""
    there = challenge.Challenge(path=task.directory, task=task)
    sets = [one for one in map(there.__getitem__, there) if one.input or one.expected]
    if not sets:
        above = os.path.join(task.directory, "..")
        return ABOVE if os.path.isfile(os.path.join(above, config.CONFIG_FILE)) else ELSEWHERE
    lines = ["This challenge has:"]
    for test in sets:
        name = visible(test.name)
        scores = f": geval -t {name} shows the scores" if test.outputs and test.expected else ""
        lines.append(f"  {name:10} {counted(len(test.outputs), 'output')}{scores}")
    return "\n".join(lines)


def where_outputs_are(task: Task) -> Iterator[str]:
    """Yield a note on the test sets that have the outputs of a task, if its own has not, or on what to do without."""
    there = challenge.Challenge(path=task.directory, task=task)
    if task.expected_file is not None or not os.path.isdir(task.directory):
        return
    if any(there[name].input or there[name].expected for name in there):
        sets = []
        for name in there:  # those whose folder has all outputs that are named or, without names, any
            outputs, folder = there[name].outputs, os.path.abspath(there[name].directory)
            accepted = by_accepted_names(unique_names(outputs), outputs)
            here = (out in accepted or os.path.dirname(os.path.abspath(out)) == folder for out in task.out_files)
            if outputs and all(here):
                sets.append(name)
        if sets and task.test_name in there and task.test_name not in sets:
            what = f"`{visible(task.out_files[0])}` is" if task.out_files else "there are outputs"
            yield f"{what} in {visible(' and '.join(sets))}: choose the test set with -t {visible(sets[0])}"
    elif os.path.isfile(os.path.join(task.directory, "..", config.CONFIG_FILE)):
        yield "the challenge is one folder up: cd .. first"
    else:
        output = visible(task.out_files[0]) if task.out_files else "OUTPUT"
        yield (
            f"this folder holds no challenge; geval -o {output} -e ANSWERS -m METRIC scores one file, and "
            f"geval check {output} finds what is wrong in it"
        )
