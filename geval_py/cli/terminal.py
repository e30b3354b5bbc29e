"""Tables on standard output: as their reader, a person or a program, takes them."""

from __future__ import annotations

import sys
import time

from geval_py.reading.options import said_option
from geval_py.tables.table import Table
from geval_py.tables.terminals import is_able_terminal, shows_colours, width_of
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rich.progress import Progress

    from geval_py.errors import GevalError

    Unit = Literal["bytes", "items"]


def write_table(table: Table) -> None:
    """Write a table line by line: in columns that fit into the terminal, elsewhere with TABs and without a header."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.tabs() if width is None else table.terminal(width))


def write_listing(table: Table) -> None:
    """Write a table whose columns need no names: aligned, and cut only where a terminal is too narrow."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.text(header=False) if width is None else table.terminal(width, header=False))


# What goes to standard error.


def show_error(error: GevalError) -> None:
    """Say what is wrong, and which options mend it.

    Errors escape what they show; this is a second wall, against what one may have missed.
    """
    complain("\n".join(map(visible, error.sentence(said_option).split("\n"))))


def complain(message: str) -> None:
    """Say what is wrong, in text that is safe to show."""
    print(f"geval: {message}", file=sys.stderr)


def note(message: str) -> None:
    """Say what a user should know beside the result."""
    print(f"geval: note: {message}", file=sys.stderr)


# A progress bar for work that takes longer than a second, on a terminal's standard error only.


PATIENCE_SECONDS = 1.0


class ProgressBar:
    """Call it with what is done and what there is to do, in bytes or in items; it shows itself if that takes long."""

    def __init__(self, what: str, *, unit: Unit = "bytes") -> None:
        self._what, self._unit = what, unit
        self._start = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, size: int) -> None:
        if self._bar is None:
            if not is_able_terminal(sys.stderr) or time.monotonic() - self._start < PATIENCE_SECONDS:
                return
            self._bar = _new_bar(self._unit)
            self._bar.add_task(visible(self._what), total=size)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)


def _new_bar(unit: Unit) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn() if unit == "bytes" else MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, force_terminal=True, no_color=not shows_colours(sys.stderr))
    return Progress(*columns, console=console, transient=True)
