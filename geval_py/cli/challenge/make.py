"""What ``geval challenge make`` and ``geval challenge split`` share: options, and what is said of the result."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence

from geval_py.authoring.corpora import (
    DEFAULT_CONTEXT,
    DEFAULT_SALT,
    DEFAULT_SEED,
    DEFAULT_SHARES,
    DEFAULT_WORDS,
    FEW_GROUPS,
    ID,
    TEXT,
    Cut,
    Parts,
    read_documents,
    read_pattern,
    read_shares,
)
from geval_py.authoring.make import DEFAULT_METRICS, Recipe, make_challenge
from geval_py.authoring.publishing import PACKING, check_folders, default_answers
from geval_py.cli.parsers import QuietParser, number_type
from geval_py.cli.terminal import ProgressBar, note
from geval_py.errors import UsageError
from geval_py.tables.table import Column, Table
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


# ``geval challenge make``: a challenge, cut from texts.


_EPILOG = """\
examples:
  geval challenge make texts -o my-challenge         a folder of texts, a document a file
  geval challenge make news.jsonl -o my-challenge --group newspaper
                                                     lines of JSON; a newspaper is in one part only
  geval challenge make texts -o my-challenge --context 20 --least-frequency 2 --split 60,25,15

A text is a file; .jsonl and .tsv hold a document a line, whose columns but the text go with each gap.
The hidden answers of test-A are written to a folder of their own.
Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval challenge make``."""
    parser = QuietParser(
        prog="geval challenge make",
        description="Cut a word-gap challenge from texts: train, dev-0 and test-A.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("texts", nargs="*", metavar="PATH", help="a text, a file of texts, or a folder of either")
    add_common(parser)
    add("--group", metavar="COLUMN", help="what has one value here stays in one part (default: a document)")
    add("--id", default=ID, metavar="COLUMN", help=f"the ids in .jsonl and .tsv (default: {ID})")
    add("--text", default=TEXT, metavar="COLUMN", help=f"the texts in .jsonl and .tsv (default: {TEXT})")
    add("--context", type=number_type, default=DEFAULT_CONTEXT, metavar="N",
        help=f"words on each side of a gap (default: {DEFAULT_CONTEXT})")  # fmt: skip
    add("--every", type=number_type, metavar="N", help="words from a gap to the next, at least (default: a window's)")
    add("--train-every", type=number_type, metavar="N", help="the same in train, where windows may overlap")
    add("--random", action="store_true", help="draw the words to the next gap: from --every to twice as many")
    add("--seed", default=DEFAULT_SEED, metavar="TEXT",
        help=f"of what is drawn, but the parts (default: {DEFAULT_SEED})")  # fmt: skip
    add("--words", default=DEFAULT_WORDS, metavar="REGEXP",
        help="what is found in a word that may be a gap (default: a letter or a digit)")  # fmt: skip
    add("--least-frequency", type=number_type, default=1, metavar="N",
        help="how often a word that may be a gap stands in the texts, at least (default: 1)")  # fmt: skip
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    parser = make_parser()
    given = parser.understood(words)
    if given is None:
        return 0
    out, answers = folders_to_make(parser, given, given.texts, "a text")
    recipe = _recipe(given)
    documents = read_documents(given.texts, id=given.id, text=given.text)
    making = make_challenge(documents, recipe, out, answers, progress_of=progress_of)
    if making.without_gaps:
        note(f"{making.without_gaps} of {len(documents)} documents have no gap: no word that may be one, with "
             f"{recipe.cut.context} words on each side")  # fmt: skip
    sizes = [(part.name, len(part.gaps), part.groups) for part in making.parts]
    tell(sizes, given.group, out, answers)
    return 0


def _recipe(given: argparse.Namespace) -> Recipe:
    for name in ("context", "every", "train_every", "least_frequency"):
        if getattr(given, name) == 0:
            raise UsageError(message=f"--{name.replace('_', '-')} is 1 or more")
    return Recipe(
        cut=Cut(
            context=given.context,
            every=given.every,
            random=given.random,
            words=read_pattern(given.words),
            seed=given.seed,
        ),
        parts=parts_of(given),
        group=given.group,
        train_every=given.train_every,
        least_frequency=given.least_frequency,
        keep_order=given.keep_order,
        metrics=tuple(given.metrics or DEFAULT_METRICS),
        title=given.title,
    )
