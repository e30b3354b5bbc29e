"""What a command writes: results to standard output in the format asked for; errors, notes and progress elsewhere."""

from __future__ import annotations

import sys
import time

from geval_py.cli.options import said_option
from geval_py.tables.formats import FORMATS, Tabular
from geval_py.text import is_able_terminal, shows_colours, visible, width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rich.progress import Progress

    from geval_py.errors import GevalError
    from geval_py.tables.table import Table

    Unit = Literal["bytes", "items"]

PATIENCE_SECONDS = 1.0


def show(value: Tabular, format: str) -> None:
    """Write a value to standard output in a format of FORMATS."""
    sys.stdout.writelines(FORMATS[format](value, width_of(sys.stdout)))


def write_table(table: Table) -> None:
    """Write a table line by line: in columns that fit into the terminal, elsewhere with TABs and without a header."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.tabs() if width is None else table.terminal(width))


def write_listing(table: Table) -> None:
    """Write a table whose columns need no names: aligned, and cut only where a terminal is too narrow."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.text(header=False) if width is None else table.terminal(width, header=False))


def show_error(error: GevalError) -> None:
    """Write an error to standard error, with the options that mend it.

    Errors escape what they show; this escapes once more, in case one does not.
    """
    complain("\n".join(map(visible, error.sentence(said_option).split("\n"))))


def complain(message: str) -> None:
    """Write an error to standard error; the message must be safe to show."""
    print(f"geval: {message}", file=sys.stderr)


def note(*messages: str) -> None:
    """Write notes on the result to standard error."""
    for message in messages:
        print(f"geval: note: {message}", file=sys.stderr)


class ProgressBar:
    """A bar on a terminal's standard error, shown for work that takes longer than a second.

    Call it with the amount done and the whole amount, in bytes or in items.
    """

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
            if time.monotonic() - self._start < PATIENCE_SECONDS or not is_able_terminal(sys.stderr):
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
