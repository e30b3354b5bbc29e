"""What ``geval tune`` and ``geval mix`` have in common: their options, and the outputs that they write."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geval_py.cli.parsers import QuietParser, add_fields, add_metrics, add_option, number_type
from geval_py.cli.terminal import ProgressBar, note
from geval_py.errors import ExistingFileError, UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.derived import Derived, find_output
from geval_py.reading.options import DEFAULT_SEED, option_of
from geval_py.reading.outputs import Output
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.reading.derived import LineMaker


PLACES = (
    "test_name",
    "out_directory",
    "expected_directory",
    "expected_file",
    "input_file",
    "in_header",
    "out_header",
)
FORMATS = ("text", "json")
OWN = ("metrics", "words", "documents", "apply", "force", "form")  # what is not of scoring


def add_options(parser: QuietParser, *, words: int | None, words_help: str, apply_help: str, force_help: str) -> None:
    """Add the options that both commands have; ``words`` is the default of their number."""
    add = parser.add_argument
    add_metrics(parser, "a hashed metric")
    add("--words", type=number_type, default=words, metavar="K", help=words_help)
    documents = (
        "hold out together the lines on which a column of the input (its name or number) is the same "
        "(default: that by which lines are alike, if there is one)"
    )
    add("--documents", default=None, metavar="COLUMN", help=documents)
    each = "hold out each line by itself, be they alike or not"
    add("--no-documents", dest="documents", action="store_const", const=False, default=None, help=each)
    add_option(parser, option_of("seed"), f"of the random folds (default: {DEFAULT_SEED})")
    add("--apply", action="append", default=[], metavar="NAME", help=apply_help)
    add("--force", action="store_true", default=False, help=force_help)
    add("--format", dest="form", choices=FORMATS, default="text", help="text (the default) or json")
    add_fields(parser, "threads")


def parser_of(command: str, description: str, epilog: str) -> QuietParser:
    """Make a command's parser, with no option yet."""
    return QuietParser(
        prog=f"geval {command}", description=description, epilog=epilog, argument_default=argparse.SUPPRESS
    )


def derive(
    challenge: Challenge,
    sources: Mapping[str, Sequence[str]],
    plan: Callable[[Sequence[str], str], Derived],
    make: LineMaker,
    kept: Mapping[str, Any],
    *,
    force: bool,
) -> list[str]:
    """Write what is made of outputs into the folders of test sets, and give the paths.

    ``sources`` are the outputs' paths, by the name of a test set; ``plan`` says what is made of them in its folder.
    All is checked before anything is written. Raises UsageError for what would be written over without ``force``, and
    the DataErrors of files.
    """
    plans: list[tuple[Derived, int]] = []
    for name, paths in sources.items():
        test = challenge[name]
        derived = plan(paths, test.directory)
        _check_free(derived, force)
        plans.append((derived, derived.check_lines(test)))
    for derived, lines in plans:
        _write(derived, lines, make, kept)
    return [derived.path for derived, _ in plans]


def sources_of(
    challenge: Challenge, tests: Sequence[str], outputs: Sequence[Output], own_test: str
) -> dict[str, list[str]]:
    """Find some outputs of one test set in others, by their names; in their own they are known.

    Raises MissingFileError for a test set, or an output, that there is not.
    """
    return {
        name: [output.path if name == own_test else find_output(challenge[name], output) for output in outputs]
        for name in tests
    }


def _check_free(derived: Derived, force: bool) -> None:
    try:
        derived.check_free(force)
    except ExistingFileError as error:
        hint = "" if force else "\n  --force writes over it"
        raise UsageError(message=f"{named(error.path)} is there already, and is left as it is{hint}") from error


def _write(derived: Derived, lines: int, make: LineMaker, kept: Mapping[str, Any]) -> None:
    with ProgressBar("lines", unit="items") as progress:
        derived.write(make, kept, progress=lambda done: progress(done, lines))


def say(notes: Sequence[str]) -> None:
    """Say what a user should know beside the result."""
    for text in notes:
        note(text)
