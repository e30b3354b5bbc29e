"""The ``geval`` command: the only package that prints or exits. Here the first word chooses what is run.

Without a command's name it is GEval's plain command line: the scores, or one of its modes.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from geval_py.cli import commands, score
from geval_py.cli.options import parse, parse_each
from geval_py.cli.terminal import note, show_error
from geval_py.errors import GevalError, LineCountError, MissingFileError
from geval_py.reading.config import AUTHORING, SCORES, Settings, Task
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence


CLOSED_PIPE_STATUS = 128 + 13  # what a shell reports for a program ended by SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0 fine, 1 the data is at fault, 2 the command line is."""
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle threads of NumPy wait in a loop
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
    """Drop buffered output that cannot be written, else the interpreter tries again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if words[0:1] in (["-h"], ["--help"]) and 2 <= len(words) <= 3 and not words[1].startswith("-"):
        words = ["help", *words[1:]]
    if words and words[0] in commands.COMMANDS:
        return commands.run(words)
    task, settings = parse(words)
    if settings.challenges:
        return score.run_each(parse_each(words, settings.challenges), settings)
    try:
        with score.blaming_config(task):
            return score.run(task, settings) if settings.mode == SCORES else _run_mode(task, settings)
    except (LineCountError, MissingFileError) as error:
        from geval_py.cli.help import first_words, where_outputs_are

        show_error(error)
        if words or isinstance(error, LineCountError):
            note(*where_outputs_are(task))
        else:
            sys.stderr.write(first_words(task))
        return error.exit_status


def _run_mode(task: Task, settings: Settings) -> int:
    """Run the mode that an option asks for; its name is the option's field."""
    if settings.mode in AUTHORING:
        from geval_py.cli import challenge

        return challenge.init(task, settings) if settings.init else challenge.validate(task)
    from geval_py.cli import lines

    if settings.mode == "just_tokenize":
        lines.write_tokens(task.tokenizer)
        return 0
    modes = {
        "line_by_line": lines.show_lines,
        "diff": lines.show_difference,
        "oracle_item_based": lines.show_best,
        "worst_features": lines.show_worst,
        "most_worsening_features": lines.show_worsening,
    }
    modes[settings.mode](task, settings)
    return 0
