"""A progress bar for work that takes longer than a second, on a terminal's standard error only."""

from __future__ import annotations

import sys
import time

from geval_py.showing.colours import is_able_terminal, shows_colours
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rich.progress import Progress

    Unit = Literal["bytes", "items"]

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
