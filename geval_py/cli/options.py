"""What given options mean together: plain ``geval``'s words, the challenge's config.txt before them, and the modes.

The table of options is in :mod:`geval_py.reading.config`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from geval_py.cli.commands import COMMANDS
from geval_py.errors import UsageError
from geval_py.reading import config, sources, splits
from geval_py.reading.config import OPTIONS, SCORES, Settings, Task, fields_of
from geval_py.reading.splits import find_answers
from geval_py.text import visible

SHOWING_LINES = (*config.LINES, *config.FEATURES)
ORDERS = ("sort", "reverse_sort")
BY_DOCUMENTS = ("documents", "no_documents")  # the settings that say which lines belong together


def said_option(argument: str) -> str:
    """Return the name on the command line of an argument in Python.

    An option that only another command has is named like its argument.

    >>> said_option("out"), said_option("min_frequency"), said_option("force")
    ('-o', '--min-frequency', '--force')
    """
    option = next((option for name, option in OPTIONS.items() if argument == (option.argument or name)), None)
    return f"--{argument.replace('_', '-')}" if option is None else option.said or option.names[0]


def parse(words: Sequence[str]) -> tuple[Task, Settings]:
    """Read the plain command line's words, and the challenge's config.txt before them.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    given = _parse_words(words)
    if given.keys() & config.SHOW_AND_EXIT:
        return Task(), Settings(**{name: given[name] for name in config.SHOW_AND_EXIT & given.keys()})
    # With these there is no config.txt yet, or there are several.
    has_no_config = given.keys() & {*config.AUTHORING, "challenges"}
    values = given if has_no_config else merged(given)
    settings = fields_of(Settings, values)
    _check_mode_of(given.keys(), settings.mode)
    if "seed" in given and settings.bootstrap is None:
        raise UsageError(message="--seed goes with --bootstrap")
    for field in BY_DOCUMENTS:
        if field in given and settings.mode == SCORES and settings.bootstrap is None:
            name = OPTIONS[field].long_name
            raise UsageError(message=f"{name} goes with --bootstrap, --worst-features or geval compare")
    needs_items = "input_file" in values and settings.mode in SHOWING_LINES  # else lines are shown without it
    return fields_of(Task, values | {"needs_items": needs_items}), settings


def parse_each(words: Sequence[str], challenges: Sequence[str]) -> Iterator[tuple[Task, Settings]]:
    """Read the words once more for each challenge, with its own config.txt; raises as :func:`parse`."""
    given = _parse_words(words)
    del given["challenges"]
    for field in ("out_directory", "expected_directory"):
        if field in given:
            raise UsageError(message=f"--challenge says where all is: leave {OPTIONS[field].long_name} out")
    for folder in challenges:
        values = merged(given | {"out_directory": folder, "expected_directory": folder})
        yield fields_of(Task, values), fields_of(Settings, values)


def _parse_words(words: Sequence[str]) -> dict[str, Any]:
    """Parse the plain command line into values by field; words that are no options may be the paths of outputs."""
    values, strays = config.parse_words(words)
    for word in strays:
        if word.startswith("-") or not sources.is_regular(word):
            raise config.invalid_word(word, _advice(word, values, words[0]))
    if strays:
        values = _place_of(strays) | values | {"out_files": (*values.get("out_files", ()), *strays)}
    return config.check_available(values)


def _place_of(paths: Sequence[str]) -> dict[str, Any]:
    """Return the test set and the challenge in whose folder the outputs are, if it has answers."""
    folder, *others = {os.path.dirname(path) for path in paths}
    if others or find_answers(os.path.join(folder, splits.EXPECTED_FILE)) is None:
        return {}
    if folder in ("", "."):  # the test set's folder itself
        return {"test_name": os.path.basename(os.getcwd()), "out_directory": os.pardir}
    return {"test_name": os.path.basename(folder), "out_directory": os.path.dirname(folder) or "."}


def _advice(word: str, values: Mapping[str, Any], first: str) -> str | None:
    """Return what may have been meant by a word that is no option; a command stands ``first`` of all words."""
    from geval_py.cli.suggestions import command_meant, option_meant

    if values.keys() & set(config.AUTHORING) and not word.startswith("-"):
        return f"did you mean --expected-directory {visible(word)}?"
    if word.startswith("-"):
        meant = option_meant(word, config.OPTION_NAMES, COMMANDS)
    elif os.path.isdir(word):
        meant = f"-t {visible(word)}"
    elif ".tsv" in word:
        meant = f"-o {visible(word)}"
    else:
        meant = command_meant(word, COMMANDS)
    if meant in COMMANDS and word == first and not word.startswith("-"):
        return f"did you mean geval {meant}?"
    if meant in COMMANDS:
        return f"geval {meant} …, the command first, if that was meant"
    return None if meant is None else f"did you mean {meant}?"


def _check_mode_of(given: Collection[str], mode: str) -> None:
    """Refuse a given option that the mode would ignore; options in config.txt may be for another mode."""
    for field, option in OPTIONS.items():
        if field in given and option.goes_with and mode not in option.goes_with:
            *others, last = (SCORES if of == SCORES else OPTIONS[of].long_name for of in option.goes_with)
            together = f"{', '.join(others)} or {last}" if others else last
            raise UsageError(message=f"{option.long_name} goes with {together}{option.otherwise}")
        if field in given and mode in option.useless_with:
            without = OPTIONS[mode].long_name
            raise UsageError(message=f"{option.long_name} has no effect with {without}: leave it out")


def merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the challenge's config.txt, and after them the values of the command line.

    A mode, an order or the documents on the command line replace those of config.txt. Raises ConfigError and
    UnreadableFileError.
    """
    values = config.config_values(given.get("expected_directory", given.get("out_directory", ".")))
    for alternatives in (config.MODES, ORDERS, BY_DOCUMENTS):
        if given.keys() & set(alternatives):
            values = {name: value for name, value in values.items() if name not in alternatives}
    if given.keys() & set(config.WITHOUT_FORMAT):
        values.pop("format", None)
    adding = {field for field, option in OPTIONS.items() if option.repeatable and not option.replaces}
    both = adding & values.keys() & given.keys()
    return values | dict(given) | {name: tuple(dict.fromkeys((*values[name], *given[name]))) for name in both}


def task_and_settings(given: argparse.Namespace, *heeded: str, command: str = "") -> tuple[Task, Settings]:
    """Return a command's task and settings from its words and config.txt; given metrics replace the challenge's.

    All commands heed the format and what goes with it, the seed and the threads; ``heeded`` are the other settings
    that this one does. A ``command`` that is named takes one metric at most. Raises UsageError, and the errors of
    :func:`merged`.
    """
    fields = {*Task.defaults, *Settings.defaults}
    own = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(given).items()
        if name in fields and value is not None and value is not False
    }
    values = merged(own)
    heeded = ("format", *config.OF_COMMAND_LINE, "seed", "threads", "ignored", *heeded)
    settings = Settings(**{name: values[name] for name in heeded if name in values})
    task = fields_of(Task, values)
    if "alt_metrics" in own:
        task = task.replace(alt_metrics=own["alt_metrics"], select_metrics=())
        number = len(task.schemes())
        if command and number > 1:
            raise UsageError(message=f"geval {command} takes one metric; {number} were given")
    return task, settings
