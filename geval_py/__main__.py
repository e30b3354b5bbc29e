"""The command's way in, also as ``python -m geval_py``; and its way out when it is interrupted.

A command that a signal ends must end by that signal: or a shell's loop around it goes on.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal as signal  # without the enums around it, whose import an interrupt would end with a traceback


def main() -> int:
    """Run the command and give its exit status.

    Until all is there to end in order, an interrupt ends it at once; from then on it first removes what is half done.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from geval_py.cli import main as run

    received: list[int] = []

    def interrupt(number: int, _: object) -> NoReturn:
        received.append(number)
        sys.unraisablehook = lambda _: None  # raised amid a destructor it would be shown, and forgotten
        raise KeyboardInterrupt

    _handle(interrupt)
    try:
        return run()
    finally:  # whatever came of it: an interrupt amid an import may be another error by now
        _handle(signal.SIG_IGN if received else signal.SIG_DFL)
        if received:
            _remove_unfinished()
            _handle(signal.SIG_DFL)
            signal.raise_signal(received[0])


def _remove_unfinished() -> None:
    """Remove files in the making, if any were made: the interrupt may have come amid their own removal."""
    rewriting = sys.modules.get("geval_py.reading.rewriting")
    if rewriting is not None and hasattr(rewriting, "remove_unfinished"):  # it may have come amid the import, too
        rewriting.remove_unfinished()


def _handle(handler: Callable[[int, object], NoReturn] | signal.Handlers) -> None:
    """Say what becomes of both signals that ask for an end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
