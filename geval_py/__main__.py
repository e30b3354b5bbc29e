"""Entry point of the ``geval`` command, also as ``python -m geval_py``, including signal handling.

A command that a signal ends must end by that signal: otherwise a shell's loop around it goes on.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from threading import Timer
from typing import NoReturn

from geval_py.cli import main as run

CREATED_BETWEEN_COLLECTIONS = 100_000  # by default 700: imports alone would cause dozens of collections


def main() -> int:
    """Run the command and return its exit status; when it is interrupted, unfinished files are removed first."""
    gc.set_threshold(CREATED_BETWEEN_COLLECTIONS)
    received: list[int] = []

    def interrupt(number: int, _: object) -> NoReturn:
        received.append(number)
        # Raised amid a destructor, it would be shown and forgotten: so it is raised again, after the destructor.
        sys.unraisablehook = lambda _: Timer(0.01, signal.raise_signal, [number]).start()
        if "logging" in sys.modules:  # SQLAlchemy logs, with a traceback, what is raised while it closes a connection
            sys.modules["logging"].disable()
        raise KeyboardInterrupt

    _handle(interrupt)
    try:
        return run()
    finally:  # always: an interrupt amid an import may have become another error
        _handle(signal.SIG_IGN if received else signal.SIG_DFL)
        if received:
            files = sys.modules.get("geval_py.reading.files")
            # The interrupt may have come amid the import of this module.
            if files is not None and hasattr(files, "remove_unfinished"):
                files.remove_unfinished()
            _handle(signal.SIG_DFL)
            signal.raise_signal(received[0])
        gc.freeze()  # at exit the interpreter would look through all objects for cycles, which takes 3 ms or more


def _handle(handler: Callable[[int, object], NoReturn] | signal.Handlers) -> None:
    """Set the handler of both signals that ask for an end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
