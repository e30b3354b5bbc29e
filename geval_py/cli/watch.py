"""``--watch``: a command that runs again whenever a file that it reads changes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape, glob
from importlib import import_module
from typing import Any, NoReturn

from geval_py.errors import UsageError
from geval_py.reading.config import CONFIG_FILE, OPTIONS
from geval_py.text import is_able_terminal, named, some_of
from geval_py.version import installs

WRITTEN = {"output_file", "plot_graph"}
READ = {name for name, option in OPTIONS.items() if option.metavar in ("DIR", "FILE", "OTHER")} - WRITTEN
READ |= {"challenge", "paths"}  # of geval check
CLEAR_SCREEN = "\x1b[H\x1b[2J"


def watch(words: Sequence[str], values: Mapping[str, Any]) -> NoReturn:
    """Run a command, and again after each change of a file, until a signal comes; ``values`` are of its options.

    Each run is a process of its own; if it has not ended, it is stopped before the next. Raises UsageError for what
    cannot be watched, and without the package watchfiles.
    """
    paths: list[str] = []
    for value in filter(None, map(values.get, READ)):
        paths += [value] if isinstance(value, str) else value
    for path in paths:
        if path == "-" or "://" in path:
            raise UsageError(message=f"Cannot watch {named(path)}: --watch needs files on this machine")
    try:
        watchfiles = import_module("watchfiles")
    except ModuleNotFoundError as error:
        raise UsageError(message=f"--watch needs watchfiles, of the extra watch: {installs('watch')}") from error
    # Folders, since editors replace files; with their sub-folders, since a test set's folder may have what is named.
    places = {path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths or ["."]}
    folders = [folder for place in places for end in ("", "*/") for folder in glob(f"{escape(place)}/{end}")]
    patterns = ("in[.-]*", "out*", "expected*", CONFIG_FILE, *map(os.path.basename, paths))
    written = [values.get(name) or "" for name in WRITTEN] + [path for _, path in values.get("also", ())]

    def is_read(_: object, path: str) -> bool:
        name = os.path.basename(path)
        return name not in map(os.path.basename, written) and any(fnmatchcase(name, pattern) for pattern in patterns)

    changes = watchfiles.watch(*folders, watch_filter=is_read, recursive=False, ignore_permission_denied=True)
    while True:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "geval_py", *(word for word in words if word != "--watch")]
        ) as process:
            names = sorted({os.path.relpath(path) for _, path in next(changes)})
            process.terminate()
        if is_able_terminal(sys.stdout):
            now = f"{time.strftime('%H:%M:%S', time.gmtime())} UTC"
            print(f"{CLEAR_SCREEN}{now}, changed: {some_of(names)}", flush=True)
