"""What ``geval tune`` and ``geval mix`` share: their options, and how new outputs are made of others and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from geval_py.cli import commands, score, terminal
from geval_py.errors import ExistingFileError, UsageError
from geval_py.explaining import derived
from geval_py.reading import config
from geval_py.reading.challenge import Challenge
from geval_py.reading.outputs import Output
from geval_py.tables.formats import FOR_PEOPLE, Tabular
from geval_py.text import named


def add_options(
    parser: commands.CommandParser, *, words: int | None, words_help: str, apply_help: str, force_help: str
) -> None:
    """Add the options that tuning and mixing share; ``words`` is the default of ``--words``."""
    add = parser.add_argument
    commands.add_metrics(parser, "a hashed metric")
    add("--words", type=commands.number_type, default=words, metavar="K", help=words_help)
    documents = (
        "hold out together the lines with the same value in a column of the input (its name or number; "
        "default: the column by which lines are alike, if there is one)"
    )
    each = "hold out each line by itself, be they alike or not"
    commands.add_documents(parser, documents, each)
    config.add_options(parser, seed=f"of the random folds (default: {config.DEFAULT_SEED})")
    add("--apply", action="append", default=[], metavar="NAME", help=apply_help)
    add("--force", action="store_true", default=False, help=force_help)
    commands.add_format(parser)
    config.add_options(parser, "threads")


def show_and_write(
    task: config.Task, value: Tabular, settings: config.Settings, write: Callable[[], list[str]]
) -> None:
    """Show what was found and write the new outputs; text is shown before, other formats after."""
    terminal.note(*value.notes)
    if settings.format == "text":
        score.show_of_task(task, value, settings)
    written = write()
    if settings.format != "text":
        score.show_of_task(task, value, settings, written=written)
    show_written(written, settings.format)


def show_written(paths: Sequence[str], format: str) -> None:
    """Name the new files on standard output or, where a table for people stands there, on standard error."""
    if format in FOR_PEOPLE:
        stream = sys.stdout if format == "text" else sys.stderr
        stream.writelines(f"wrote {named(path)}\n" for path in paths)


Plans: TypeAlias = "list[tuple[derived.Derived, int]]"  # new outputs, with their number of lines


def planned(
    challenge: Challenge,
    sources: Mapping[str, Sequence[str]],
    plan: Callable[[Sequence[str], str], derived.Derived],
    *,
    force: bool,
) -> Plans:
    """Plan a new output in the folder of each test set, made of the outputs that lie there.

    ``sources`` are the outputs' paths, by the name of a test set; ``plan`` names the new output of some paths in a
    folder. Raises UsageError for what would be written over without ``force``, and the DataErrors of files.
    """
    plans: Plans = []
    for name, paths in sources.items():
        test = challenge[name]
        new = plan(paths, test.directory)
        try:
            new.check_free(force)
        except ExistingFileError as error:
            hint = "" if force else "\n  --force writes over it"
            raise UsageError(message=f"{named(error.path)} is there already, and is left as it is{hint}") from error
        plans.append((new, new.check_lines(test)))
    return plans


def derive(plans: Plans, make: derived.LineMaker, kept: Mapping[str, Any]) -> list[str]:
    """Write the new outputs, and the parameters that are kept beside them; return the paths."""
    for new, lines in plans:
        _write(new, lines, make, kept)
    return [new.path for new, _ in plans]


def _write(new: derived.Derived, lines: int, make: derived.LineMaker, kept: Mapping[str, Any]) -> None:
    with terminal.ProgressBar("lines", unit="items") as progress:
        new.write(make, kept, progress=lambda done: progress(done, lines))


def check_sources(challenge: Challenge, sources: Mapping[str, Sequence[str]], header: str | None) -> None:
    """Raise LineCountError for an output with another number of lines than its test set."""
    for name, paths in sources.items():
        derived.Derived(sources=tuple(paths), path="", header=header).check_lines(challenge[name])


def sources_of(
    challenge: Challenge, tests: Sequence[str], outputs: Sequence[Output], own_test: str
) -> dict[str, list[str]]:
    """Find the outputs of one test set in others, by their names; in their own they are known.

    Raises MissingFileError for a test set, or an output, that is not there.
    """
    return {
        name: [
            output.path if name == own_test else derived.find_output(challenge[name], output) for output in outputs
        ]
        for name in tests
    }
