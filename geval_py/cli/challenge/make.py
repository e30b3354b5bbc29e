"""``geval challenge make``: a challenge, cut from texts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from geval_py.authoring.documents import ID, TEXT, read_documents
from geval_py.authoring.gaps import DEFAULT_CONTEXT, DEFAULT_SEED, DEFAULT_WORDS, Cut, read_pattern
from geval_py.authoring.make import DEFAULT_METRICS, Recipe, make_challenge
from geval_py.cli.challenge.making import add_common, folders_to_make, parts_of, progress_of, tell
from geval_py.cli.messages import note
from geval_py.cli.parsers import QuietParser, number_type
from geval_py.errors import UsageError

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
