"""The ``geval`` command: the only package that prints or exits. Here the first word chooses what is run.

Without a command's name it is GEval's plain command line: the scores, or one of its modes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from geval_py.cli import commands, score
from geval_py.cli.terminal import carry_out, note, say, show_error
from geval_py.errors import GevalError, MissingFileError, UsageError
from geval_py.reading import config, splits
from geval_py.reading.config import OPTIONS, SCORES, Settings, Task, fields_of
from geval_py.tables.formats import format_of
from geval_py.text import visible

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
        try:
            status = _run(words)
        except ModuleNotFoundError as error:
            raise commands.missing_extra(error) from error
        sys.stdout.flush()
    except GevalError as error:
        show_error(error)
        note(*getattr(error, "__notes__", ()))
        return error.exit_status
    except OSError as error:
        # Drop buffered output that cannot be written, else the interpreter tries again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE_STATUS
        what = f"cannot use `{visible(str(error.filename))}`" if error.filename else "cannot write the output"
        print(f"geval: {what}: {error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("geval: not enough memory for what there is to read", file=sys.stderr)
        return 1
    return status


def _run(words: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:  # a shell asks, since TAB was pressed
        from geval_py.cli.completion import complete

        complete()
    if words[0:1] in (["-h"], ["--help"]) and 2 <= len(words) <= 3 and not words[1].startswith("-"):
        words = ["help", *words[1:]]
    if words and words[0] in commands.COMMANDS:
        return commands.run(words)
    task, settings = parse(words)
    return carry_out("geval", lambda: _run_plain(words, task, settings), settings)


def _run_plain(words: Sequence[str], task: Task, settings: Settings) -> int:
    """Run the plain command line; returns the exit status, raises GevalError."""
    if settings.challenges:
        return score.run_each(parse_each(words, settings.challenges), settings)
    mode = settings.mode
    try:
        with score.blaming_config(task):
            if mode == SCORES:
                return score.run(task, settings)
            if mode in config.AUTHORING:
                from geval_py.cli import challenge

                return challenge.init(task, settings) if settings.init else challenge.validate(task)
            from geval_py.cli import lines

            lines.MODES[mode](task, settings)
            return 0
    except MissingFileError as error:
        if words:
            raise
        from geval_py.cli.help import first_words

        show_error(error)
        say(first_words(task), sys.stderr)
        return error.exit_status


# What the plain command line's words mean


def parse(words: Sequence[str]) -> tuple[Task, Settings]:
    """Read the plain command line's words, and the challenge's config.txt before them.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    options = _parse_words(words)
    if options.keys() & config.SHOW_AND_EXIT:
        names = {*config.SHOW_AND_EXIT, "output_file"} & options.keys()
        return Task(), Settings(**{name: options[name] for name in names})
    if "output_file" in options and (by_ending := format_of(options["output_file"])) is not None:
        options.setdefault("format", by_ending)
    # With these there is no config.txt yet, or there are several.
    has_no_config = options.keys() & {*config.AUTHORING, "challenges"}
    values = options if has_no_config else config.merged(options)
    settings = fields_of(Settings, values)
    mode = settings.mode
    for field, option in OPTIONS.items():
        if field not in options:  # those in config.txt may be for another mode
            continue
        if option.goes_with and mode not in option.goes_with:
            *others, last = (SCORES if field == SCORES else OPTIONS[field].long_name for field in option.goes_with)
            together = f"{', '.join(others)} or {last}" if others else last
            raise UsageError(f"{option.long_name} goes with {together}{option.otherwise}")
        if mode in option.useless_with:
            raise UsageError(f"{option.long_name} has no effect with {OPTIONS[mode].long_name}: leave it out")
    if "seed" in options and settings.bootstrap is None:
        raise UsageError("--seed goes with --bootstrap")
    for field in config.BY_DOCUMENTS:
        if field in options and mode == SCORES and settings.bootstrap is None:
            raise UsageError(f"{OPTIONS[field].long_name} goes with --bootstrap, --worst-features or geval compare")
    # Else lines are shown without it.
    needs_items = "input_file" in values and mode in (*config.LINES, *config.FEATURES)
    return fields_of(Task, values | {"needs_items": needs_items}), settings


def parse_each(words: Sequence[str], challenges: Sequence[str]) -> Iterator[tuple[Task, Settings]]:
    """Read the words once more for each challenge, with its own config.txt; raises as :func:`parse`."""
    options = _parse_words(words)
    del options["challenges"]
    for field in ("out_directory", "expected_directory"):
        if field in options:
            raise UsageError(f"--challenge says where all is: leave {OPTIONS[field].long_name} out")
    for folder in challenges:
        values = config.merged(options | {"out_directory": folder, "expected_directory": folder})
        yield fields_of(Task, values), fields_of(Settings, values)


def _parse_words(words: Sequence[str]) -> dict[str, Any]:
    """Parse the plain command line into values by field; words that are no options may be the paths of outputs."""
    values, strays = config.parse_words(words, _advice)
    if strays:
        place = {}
        folder, *others = {os.path.dirname(path) for path in strays}
        if not others and splits.find_answers(os.path.join(folder, splits.EXPECTED_FILE)) is not None:
            is_here = folder in ("", ".")  # in the test set's folder itself
            name = os.path.basename(os.getcwd() if is_here else folder)
            place = {"test_name": name, "out_directory": os.pardir if is_here else os.path.dirname(folder) or "."}
        values = place | values | {"out_files": (*values.get("out_files", ()), *strays)}
    return values


def _advice(word: str, values: Mapping[str, Any]) -> str | None:
    """Return what may have been meant by a word that is no option."""
    from geval_py.cli.suggestions import command_meant, option_meant

    if values.keys() & set(config.AUTHORING) and not word.startswith("-"):
        meant: str | None = f"--expected-directory {visible(word)}"
    elif word.startswith("-"):
        meant = option_meant(word, config.OPTION_NAMES, commands.summaries())
    elif os.path.isdir(word):
        meant = f"-t {visible(word)}"
    elif ".tsv" in word:
        meant = f"-o {visible(word)}"
    else:
        meant = command_meant(word, commands.COMMANDS, config.OPTION_NAMES)
    return None if meant is None else f"did you mean {meant}?"
