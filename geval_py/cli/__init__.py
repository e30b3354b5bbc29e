"""The ``geval`` command: the only place that prints or exits.

Without a command's name it is GEval's plain command line (:mod:`geval_py.cli.score`).
"""

from __future__ import annotations

import os
import sys

from geval_py.cli.terminal import show_error
from geval_py.errors import GevalError
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

COMMANDS = {
    "baseline": "geval_py.cli.baseline",
    "board": "geval_py.cli.board",
    "calibration": "geval_py.cli.calibration",
    "challenge": "geval_py.cli.challenge",
    "check": "geval_py.cli.check",
    "compare": "geval_py.cli.compare",
    "completion": "geval_py.cli.completion",
    "help": "geval_py.cli.help",
    "lm": "geval_py.cli.lm",
    "luck": "geval_py.cli.luck",
    "mix": "geval_py.cli.mix",
    "report": "geval_py.cli.report",
    "sample": "geval_py.cli.sample",
    "tune": "geval_py.cli.tune",
}
CLOSED_PIPE_STATUS = 128 + 13  # what a shell reports for a program ended by SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status: 0 fine, 1 the data is at fault, 2 the command line is."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # closed by the caller, who wants no messages
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        print("geval: cannot write the output: standard output is closed", file=sys.stderr)
        return 1
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        status = _run(words)
        sys.stdout.flush()
    except GevalError as error:
        show_error(error)
        return error.exit_status
    except BrokenPipeError:
        _forget_output()
        return CLOSED_PIPE_STATUS
    except OSError as error:
        _forget_output()
        what = f"cannot use `{visible(str(error.filename))}`" if error.filename else "cannot write the output"
        print(f"geval: {what}: {error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("geval: not enough memory for what there is to read", file=sys.stderr)
        return 1
    return status


def _forget_output() -> None:
    """Drop what is still buffered, which has nowhere to go: or the interpreter tries again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if words[0:1] in (["-h"], ["--help"]) and 2 <= len(words) <= 3 and not words[1].startswith("-"):
        words = ["help", *words[1:]]
    if words and words[0] in COMMANDS:
        run: Callable[[Sequence[str]], int] = module_of(words[0]).run
        return run(words[1:])
    from geval_py.cli import score

    return score.run(words)


def module_of(command: str) -> ModuleType:
    """Import the module of a command, which has ``make_parser`` and ``run``."""
    from importlib import import_module

    return import_module(COMMANDS[command])
