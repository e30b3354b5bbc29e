"""A challenge's config.txt: options as on the command line, which come before the command line's own.

Words are split at white space. A backslash keeps the white space after it; two backslashes are two characters; there
are no quotes and no comments. The values of repeatable options add up; of others the last one counts, so the command
line wins.
"""

from __future__ import annotations

import os
import re

from geval_py.errors import ConfigError, UnreadableFileError, UsageError
from geval_py.reading.options import AUTHORING, IGNORED, NOT_AVAILABLE, OPTIONS, SUBMIT, read_words, unknown_word
from geval_py.reading.remote import RemoteFile, is_remote, kind_at
from geval_py.reading.sources import find_file, is_regular
from geval_py.reading.splits import EXPECTED_FILE, Task, checked_schemes
from geval_py.text import SPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

CONFIG_FILE = "config.txt"
_ESCAPED_SPACE = rf"\\([{SPACES}])"
_WORD = rf"(?:\\[\s\S]|[^{SPACES}])+"
SHOW_AND_EXIT = frozenset({"help", "version", "list_metrics"})


def parse_words(
    words: Sequence[str],
    *,
    takes_files: bool = False,
    ignores: bool = False,
    unknown: Callable[..., str] = unknown_word,
) -> dict[str, Any]:
    """Parse options into values by field; with ``takes_files``, other words may be the paths of outputs.

    ``ignores`` allows GEval's options that no score depends on; the field ``ignored`` holds their names. ``unknown``
    makes the sentence about an unknown word. Raises UsageError, also for an option that geval-py does not have.
    """
    read, strays = read_words(words, OPTIONS)
    values: dict[str, Any] = read
    for word in strays:
        if not takes_files or word.startswith("-") or not is_regular(word):
            raise UsageError(message=unknown(word, of_challenge=bool(values.keys() & set(AUTHORING))))
    if strays:
        values = _places_of(strays) | values | {"out_files": (*values.get("out_files", ()), *strays)}
    if SUBMIT in values:
        raise UsageError(message=NOT_AVAILABLE)
    missing = [name for name in values if name in IGNORED and not ignores]
    if missing:
        raise UsageError(message=f"{missing[0]} is not available yet in geval-py")
    ignored = tuple(name for name in IGNORED if name in values)
    if not ignored:
        return values
    return {name: value for name, value in values.items() if name not in ignored} | {"ignored": ignored}


def _places_of(paths: Sequence[str]) -> dict[str, Any]:
    """Return the test set and the challenge in whose folder the outputs are, if it has answers."""
    folders = {os.path.dirname(path) for path in paths}
    folder = folders.pop()
    if folders or find_file(os.path.join(folder, EXPECTED_FILE)) is None:
        return {}
    if folder in ("", "."):  # the test set's folder itself
        return {"test_name": os.path.basename(os.getcwd()), "out_directory": os.pardir}
    return {"test_name": os.path.basename(folder), "out_directory": os.path.dirname(folder) or "."}


def config_values(directory: str, unknown: Callable[..., str] = unknown_word) -> dict[str, Any]:
    """Return the values in a challenge's config.txt, by field; see :func:`parse_words`.

    Raises UnreadableFileError, and ConfigError if it is broken.
    """
    path = os.path.join(directory, CONFIG_FILE)
    words = read_config(path)
    try:
        values = parse_words(words, ignores=True, unknown=unknown)
        checked_schemes((*values.get("metrics", ()), *values.get("alt_metrics", ())))
        if values.keys() & SHOW_AND_EXIT:
            raise UsageError(message="an option that shows something and exits has no place in config.txt")
        for option in OPTIONS:
            if option.field in AUTHORING and option.field in values:
                raise UsageError(message=f"{option.long_name} has no place in config.txt")
    except UsageError as error:
        raise ConfigError(path=path, message=error.message) from error
    return values


def read_config(path: str) -> list[str]:
    """Read the words of a config.txt; empty if the file does not exist."""
    try:
        if not is_remote(path):
            with open(path, "rb") as file:
                data = file.read()
        elif kind_at(path) is None:
            return []
        else:
            data = RemoteFile(path).read()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    return words_of(str(data, "utf-8-sig", "replace"))


def words_of(text: str) -> list[str]:
    """Split the text of a config.txt into its words."""
    return [re.sub(_ESCAPED_SPACE, r"\1", word) for word in re.findall(_WORD, text)]


def config_task(directory: str) -> Task:
    """Return the task of a challenge's config.txt alone; raises as :func:`config_values`."""
    return task_of(config_values(directory) | {"out_directory": directory})


def task_of(values: dict[str, Any]) -> Task:
    """Return a task with the values that are fields of a task."""
    return Task(**{name: value for name, value in values.items() if name in Task.fields})
