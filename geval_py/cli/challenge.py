"""``geval challenge``, ``--init`` and ``--validate``: make a challenge, find its leaks and its faults."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from geval_py.authoring import corpora, leaks, make
from geval_py.authoring.init import init_challenge
from geval_py.authoring.validate import validate_challenge
from geval_py.cli import check, terminal
from geval_py.cli.commands import CONTEXTS, command, group, number_option, option, switch
from geval_py.errors import UsageError
from geval_py.reading import config
from geval_py.reading.config import Settings, Task
from geval_py.tables.table import Table, named_columns
from geval_py.text import counted, named, visible

group(
    "challenge",
    "Cut a challenge from texts or from items, and find what it gives away.",
    """\
  geval challenge make texts -o my-challenge
  geval challenge leaks my-challenge --answers my-challenge-answers
  geval --validate --expected-directory my-challenge-answers
  geval challenge make --help          what a command does, and its options
""",
)
SHARES = config.argument_type(
    config.matched(
        "[1-9][0-9]{0,8}(,[1-9][0-9]{0,8}){2}",
        "three whole numbers for train, dev-0 and test-A, as 80,10,10",
        lambda text: tuple(map(int, text.split(","))),
    )
)
INIT_INSTRUCTIONS = """
Run:
    geval --init --expected-directory CHALLENGE --metric METRIC-NAME --precision NUMBER-OF-DIGITS
to create a directory CHALLENGE representing a Gonito challenge.

(Note that `--out-directory` option is not taken into account with `--init` option.)

"""  # GEval's words
VALIDATE_INSTRUCTIONS = """
Run:
    geval --validate --expected-directory CHALLENGE
to validate a directory CHALLENGE representing a Gonito challenge.

"""  # GEval's words


BOTH = (  # the options that cutting and splitting share
    option("-o", "--out", required=True, metavar="DIR", help="the new folder of the challenge"),
    option("--answers", metavar="DIR", help="the new folder of the hidden answers (default: DIR-answers)"),
    option(
        "--split", type=SHARES, default=corpora.DEFAULT_SHARES, metavar="N,N,N",
        help=f"shares of train, dev-0 and test-A (default: {','.join(map(str, corpora.DEFAULT_SHARES))})",
    ),
    option(
        "--salt", default=corpora.DEFAULT_SALT, metavar="TEXT",
        help=f"the salt of the hash that determines the parts (default: {corpora.DEFAULT_SALT})",
    ),
    option(
        "-m", "--metric", dest="metrics", action="append", metavar="METRIC",
        help=f"a metric for config.txt; repeatable (default: {', '.join(make.DEFAULT_METRICS)})",
    ),
    option(
        "--title", default=make.DEFAULT_TITLE, metavar="TEXT",
        help=f"the README's title (default: {make.DEFAULT_TITLE})",
    ),
    switch("--keep-order", help="keep the items of a part in order instead of shuffling them"),
    switch("--geval", help="write a config.txt that GEval can read: it does not declare the column of the documents"),
)  # fmt: skip


@command(
    "challenge make",
    "Cut a word-gap challenge from texts: train, dev-0 and test-A.",
    """\
  geval challenge make texts -o my-challenge         a folder of texts, a document a file
  geval challenge make news.jsonl -o my-challenge --group newspaper
                                                     lines of JSON; a newspaper is in one part only
  geval challenge make texts -o my-challenge --context 20 --least-frequency 2 --split 60,25,15

A text is a file; .jsonl and .tsv hold a document a line, whose columns but the text go with each gap.
The hidden answers of test-A are written to a folder of their own.
""",
    option("texts", nargs="+", metavar="PATH", help="a text, a file of texts, or a folder of either"),
    *BOTH,
    option(
        "--group", metavar="COLUMN",
        help="documents with the same value in this column stay in one part (default: a document)",
    ),
    option(
        "--id", default=corpora.ID, metavar="COLUMN", help=f"the ids in .jsonl and .tsv (default: {corpora.ID})"
    ),
    option(
        "--text", default=corpora.TEXT, metavar="COLUMN",
        help=f"the texts in .jsonl and .tsv (default: {corpora.TEXT})",
    ),
    number_option(
        "--context", default=corpora.DEFAULT_CONTEXT,
        help=f"words on each side of a gap (default: {corpora.DEFAULT_CONTEXT})",
    ),
    number_option(
        "--every", help="the least number of words from a gap to the next (default: a window's)",
    ),
    number_option(
        "--train-every", help="the same in train, where windows may overlap"
    ),
    switch(
        "--random", help="draw the distance to the next gap: from --every to twice as many words",
    ),
    option(
        "--seed", default=corpora.DEFAULT_SEED, metavar="TEXT",
        help=f"the seed of all random choices except the parts (default: {corpora.DEFAULT_SEED})",
    ),
    option(
        "--words", default=corpora.DEFAULT_WORDS, metavar="REGEXP",
        help="only words that match this may be gaps (default: a letter or a digit)",
    ),
    number_option(
        "--least-frequency", default=1,
        help="only words that occur at least N times in the texts may be gaps (default: 1)",
    ),
    switch("--drop-copies", help="leave out gaps that copy text of train or of other gaps, such as reprints"),
)  # fmt: skip
def run_make(args: argparse.Namespace) -> None:
    """Run ``geval challenge make``; raises GevalError."""
    answers = _answers_folder(args)
    for name in ("context", "every", "train_every", "least_frequency"):
        if getattr(args, name) == 0:
            raise UsageError(f"--{name.replace('_', '-')} is 1 or more")
    recipe = _recipe(
        args,
        cut=corpora.Cut(args.context, args.every, args.random, corpora.read_pattern(args.words), seed=args.seed),
        group=args.group,
        train_every=args.train_every,
        least_frequency=args.least_frequency,
        drop_copies=args.drop_copies,
    )
    documents = corpora.read_documents(args.texts, id=args.id, text=args.text)
    parts, copies = make.make_challenge(documents, recipe, args.out, answers, progress_of=terminal.ItemBar)
    if copies:
        terminal.note(f"{counted(copies, 'gap')} left out, because text around it is in train or in another gap's")
    without_gaps = len(documents) - len({gap.document.id for gaps in parts.values() for gap in gaps})
    if without_gaps:
        terminal.note(
            f"{without_gaps} of {len(documents)} documents have no gap: no word that may be one, "
            f"with {recipe.cut.context} words on each side"
        )
    sizes = [(name, len(gaps), len({recipe.group_of(gap.document) for gap in gaps})) for name, gaps in parts.items()]
    _show_parts(sizes, args.group, args.out, answers)


@command(
    "challenge split",
    "Split items that are there already into train, dev-0 and test-A, whole groups together.",
    """\
  geval challenge split old/train -o my-challenge    a folder with in.tsv and expected.tsv
  geval challenge split items -o my-challenge --columns Book,Left,Right --group Book
""",
    option("folder", metavar="DIR", help="a folder with in.tsv and expected.tsv"),
    *BOTH,
    option(
        "--group", metavar="COLUMN",
        help="items with the same value in this column stay in one part (default: the first column)",
    ),
    option(
        "--columns", metavar="NAME,…",
        help="the names of in.tsv's columns (default: those in in-header.tsv)",
    ),
)  # fmt: skip
def run_split(args: argparse.Namespace) -> None:
    """Run ``geval challenge split``; raises GevalError."""
    answers = _answers_folder(args)
    pool = make.read_items(args.folder, columns=args.columns.split(",") if args.columns else (), group=args.group)
    sizes = make.split_items(pool, _recipe(args), args.out, answers, progress_of=terminal.ItemBar)
    _show_parts(sizes, pool.group, args.out, answers)


def _recipe(args: argparse.Namespace, **more: Any) -> make.Recipe:
    """Return the recipe by the options that cutting and splitting share, and ``more``."""
    parts, metrics = corpora.Parts(args.split, args.salt), tuple(args.metrics or make.DEFAULT_METRICS)
    return make.Recipe(
        parts=parts, keep_order=args.keep_order, metrics=metrics, title=args.title, for_geval=args.geval, **more
    )


def _answers_folder(args: argparse.Namespace) -> str:
    """Return the new folder of the hidden answers; raises UsageError and ExistingFileError for folders in use."""
    answers = args.answers or args.out.rstrip("/" + os.sep) + make.ANSWERS_ENDING
    make.check_folders(args.out, answers)
    return str(answers)


def _show_parts(sizes: Sequence[make.PartSize], group: str | None, out: str, answers: str) -> None:
    """Show the name, gaps and groups of each part, warn of few groups, and name the next commands.

    ``group`` is the column that the parts were made by, None where each document is a group.
    """
    heading = "documents" if group is None else visible(group)
    groups_are = "documents" if group is None else f"groups ({visible(group)})"
    sys.stdout.writelines(Table(named_columns(("part", "gaps", heading)), sizes).text())
    sys.stdout.flush()
    for name, _, groups in sizes:
        if groups < corpora.FEW_GROUPS:
            terminal.note(
                f"{name} has {groups} {groups_are}: below {corpora.FEW_GROUPS}, "
                "scores depend more on these than on a model\n  give more of them, or a larger share by --split"
            )
    public, private = shlex.quote(visible(out)), shlex.quote(visible(answers))
    terminal.tell(
        f"the challenge is in {named(out)}, its hidden answers in {named(answers)}. Now try\n"
        f"  geval --validate --expected-directory {private}  # whether all fits together\n"
        f"  geval challenge leaks {public} --answers {private}  # what it gives away"
    )


@command(
    "challenge leaks",
    "Find what a challenge gives away: answers in public, and what one part shows of another.",
    """\
  geval challenge leaks                of the challenge in the current folder
  geval challenge leaks my-challenge --answers my-challenge-answers
                                       with the answers, which are in another folder
  geval challenge leaks --explain E404 what a rule means, and what to do
""",
    option("folder", nargs="?", default=".", metavar="DIR", help="the challenge's public folder (default: .)"),
    option("--answers", metavar="DIR", help="the folder of the hidden answers, if that is another"),
    option(
        "--group", metavar="COLUMN",
        help="items with the same value in this column should be in one part (default: the first column)",
    ),
    *CONTEXTS,
    *check.rule_options("E4"),
    status=check.STATUS,
)  # fmt: skip
def run_leaks(args: argparse.Namespace) -> int:
    """Run ``geval challenge leaks``; returns the exit status, raises GevalError."""
    rules = check.chosen_rules(args, leaks.LEAK_RULES, leaks.COMMAND)
    if rules is None:
        return 0
    report = leaks.find_leaks(
        args.folder,
        answers=args.answers,
        group=args.group,
        contexts=(args.left, args.right),
        rules=rules,
        max_places=check.max_places(args),
        strict=args.strict,
        progress_of=terminal.ProgressBar,
    )
    return check.show_report(report, args)


def init(task: Task, settings: Settings) -> int:
    """Run ``geval --init``: write a new challenge with sample data; returns the exit status, raises GevalError."""
    if task.expected_directory is None:
        sys.stdout.write(INIT_INSTRUCTIONS)
        return 2
    init_challenge(task, precision=settings.precision, percentage=settings.percentage)
    folder = task.expected_directory
    terminal.tell(
        f"{named(folder)} holds a challenge with sample data. Replace the data and the README, and then\n"
        f"  geval --validate --expected-directory {visible(folder)}  # tells whether all fits together\n"
        f"  geval challenge leaks {visible(folder)}                  # and what it gives away\n"
        "To cut a challenge from texts of your own there is geval challenge make."
    )
    return 0


def validate(task: Task) -> int:
    """Run ``geval --validate``: list a challenge's faults; returns the exit status, raises GevalError."""
    directory = task.expected_directory
    if directory is None:
        sys.stdout.write(VALIDATE_INSTRUCTIONS)
        return 2
    faults, warnings = validate_challenge(directory, task)
    for warning in warnings:
        terminal.say(str(warning))
    sys.stdout.flush()
    for fault in faults:
        terminal.complain("\n".join(map(visible, str(fault).split("\n"))))
    if faults:
        return 1
    public = directory.removesuffix(make.ANSWERS_ENDING)
    is_hidden = public != directory and os.path.isdir(public)
    folders = f"{visible(public)} --answers {visible(directory)}" if is_hidden else visible(directory)
    terminal.tell(
        f"{named(directory)} is a valid challenge. Now try\n  geval challenge leaks {folders}  # what it gives away"
    )
    return 0
