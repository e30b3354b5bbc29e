"""What a command writes: results to standard output in the format asked for; errors, notes and progress elsewhere.

The cluster that a command is given is here too, since nothing that its workers log is shown. What a terminal can show
is at the end.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, Literal, TextIO

from geval_py.errors import GevalError, MalformedLineError, UsageError
from geval_py.reading.config import Settings, said_option
from geval_py.reading.files import name_of
from geval_py.reading.outputs import OUTPUT_NAME
from geval_py.tables.formats import Tabular
from geval_py.tables.table import Table
from geval_py.text import fitted, named, picture, some_of, visible

if TYPE_CHECKING:
    from tqdm.std import tqdm

    from geval_py.scoring.scores import Evaluation

Unit = Literal["bytes", "items"]

PATIENCE_SECONDS = 0.6  # of work; the command starts as long before
DRAWING_SECONDS = 0.2
MAX_LIKEWISE = 3  # outputs that a note names beside the first
_is_quiet = False  # as --quiet asks
_phases: list[ProgressBar] = []  # each within the one before
_drawer: _Drawer | None = None  # of these phases, on a terminal


def carry_out(name: str, command: Callable[[], int | None], asked: Settings | argparse.Namespace) -> int:
    """Run a command as ``--output`` and ``--quiet`` ask, show warnings as notes, and return its exit status.

    The file of ``--output`` is left as it was if an error is raised, or if the command fails and shows nothing.
    Raises UsageError for a file that cannot be written, and one that may hold the output of a model.
    """
    global _is_quiet
    _is_quiet = asked.quiet
    output = getattr(asked, "output_file", None)
    if output is not None and _may_be_output(output):
        raise UsageError(
            f"Cannot write results to {named(output)}: it may hold the output of a model\n"
            f"  -o {visible(output)} scores it; remove it first if you do not need it"
        )
    with ProgressBar(name), warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        if output is None:
            return command() or 0
        from geval_py.reading.rewriting import written_whole

        with written_whole(output) as file:
            stream: Any = file.stream
            results = io.TextIOWrapper(stream, "utf-8", "backslashreplace", newline="\n")
            try:
                with redirect_stdout(results):
                    status = command() or 0
            finally:
                results.detach()  # which writes what is left, and leaves the file open
            file.is_wanted = status == 0 or file.stream.tell() > 0
    return status


def _may_be_output(path: str) -> bool:
    """Return whether a file may hold the output of a model; results are a table of several columns, or one number."""
    if not os.path.isfile(path) or not name_of(path).endswith((".tsv", ".jsonl", ".parquet")):
        return False
    with open(path, "rb") as file:
        first, more = file.readline(), file.readline()
    is_table = path.endswith(".tsv") and (b"\t" in first or not more)
    is_named_so = re.fullmatch(OUTPUT_NAME, os.path.basename(path))
    return not is_table or is_named_so is not None or re.search(rb":[0-9.]", first.split(b"\t")[0]) is not None


def show(
    value: Tabular,
    asked: Settings | argparse.Namespace,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write a value to standard output in the format asked for, with the caption and the label of LaTeX.

    ``before`` and ``after`` are what its JSON document has at the beginning and at the end.
    """
    context: dict[str, dict[str, Any]] = {
        "text": {"width": width_of(sys.stdout)},
        "json": {"before": before, "after": after},
        "latex": {"caption": asked.caption, "label": asked.label},
    }
    sys.stdout.writelines(getattr(value, asked.format)(**context.get(asked.format, {})))


def write_table(table: Table, *, header: bool = True) -> None:
    """Write a table line by line: in columns that fit into the terminal, elsewhere with TABs and without a header.

    A table whose columns need no names has no ``header`` on a terminal either, and is aligned everywhere.
    """
    width = width_of(sys.stdout)
    if width is not None:
        sys.stdout.writelines(table.terminal(width, header=header))
    else:
        sys.stdout.writelines(table.tabs() if header else table.text(header=False))


def show_error(error: GevalError) -> None:
    """Write an error to standard error, with the options that fix it.

    Errors escape what they show; this escapes once more, in case one does not.
    """
    sentence, width = error.sentence(said_option), width_of(sys.stderr)
    if isinstance(error, MalformedLineError) and width is not None:
        lines = picture(error.text, error.column, width - 4).split("\n")
        sentence = sentence.replace(error.picture, "\n".join(f"    {line}" for line in lines))
    complain("\n".join(map(visible, sentence.split("\n"))))


def say(text: str, stream: TextIO | None = None) -> None:
    """Write sentences to standard output or another stream, for a terminal in lines of its width."""
    stream = stream or sys.stdout
    stream.writelines(fitted(text.split("\n"), width_of(stream)))


def complain(message: str) -> None:
    """Write an error to standard error; the message must be safe to show."""
    say(f"geval: {message}", sys.stderr)


def note(*messages: str) -> None:
    """Write notes on the result to standard error, unless ``--quiet`` asks for none."""
    for message in () if _is_quiet else messages:
        complain(f"note: {message}")


def tell(message: str) -> None:
    """Write to standard error what was done, and what to do next, with commands to copy; not with ``--quiet``."""
    if not _is_quiet:
        complain(message)


def note_outputs(notes: Mapping[str, Sequence[str]]) -> None:
    """Write the notes on outputs, by their paths; of three outputs with notes of one kind, only those on the first.

    Notes are of one kind if they differ only in figures, and in what they quote.
    """
    kinds: dict[str, list[str]] = {}
    for path, of_output in notes.items():
        if of_output:
            kinds.setdefault(re.sub(r"`.*?`|[0-9.e+-]+", "", "\n".join(of_output)), []).append(path)
    for paths in kinds.values():
        likewise = f"\n  likewise {some_of(map(named, paths[1:]), MAX_LIKEWISE)}" if len(paths) > 2 else ""
        for path in paths[:1] if likewise else paths:
            *before, last = notes[path]
            note(*before, last + likewise)


def show_notes(evaluations: Sequence[Evaluation]) -> None:
    """Write the notes of evaluations: first what several outputs share, as a note on the answers."""
    counts = Counter(note for one in evaluations for note in one.notes)
    shared = [note for note, count in counts.items() if count > 1]
    note(*shared)
    note_outputs({one.output.file.name: [note for note in one.notes if note not in shared] for one in evaluations})


@contextmanager
def cluster_at(address: str) -> Iterator[Any]:
    """Connect to the cluster that ``--cluster`` names, and yield its client; raises UsageError and ClusterError."""
    import logging

    from geval_py.scoring.cluster import opened_cluster

    logging.disable()  # a user cannot fix what Dask logs of a worker that died; what matters is an error
    try:
        with opened_cluster(address) as client:
            yield client
    finally:
        logging.disable(logging.NOTSET)


class ProgressBar:
    """Work that is under way, as a context: a bar on a terminal's standard error shows the innermost after a while.

    Call it with the amount done and the whole amount, in bytes or in items.
    """

    def __init__(self, what: str, *, unit: Unit = "bytes") -> None:
        self.what, self.unit = what, unit
        self.start, self.done = time.time(), 0
        self.size: int | None = None

    def __enter__(self) -> ProgressBar:
        global _drawer
        _phases.append(self)
        if len(_phases) == 1:
            _drawer = _Drawer() if not _is_quiet and is_able_terminal(sys.stderr) else None
        elif _drawer is not None:
            _drawer.clear()
        return self

    def __exit__(self, *exc: object) -> None:
        _phases.remove(self)
        if _drawer is not None:
            _drawer.clear() if _phases else _drawer.close()

    def __call__(self, done: int, size: int) -> None:
        is_first = self.size is None
        self.done, self.size = done, size
        if _drawer is not None and (is_first or time.monotonic() > _drawer.due):
            _drawer.draw()


ItemBar = partial(ProgressBar, unit="items")


def end_bar() -> None:
    """Show no bar from here on, for a command that waits until it is interrupted."""
    if _drawer is not None:
        _drawer.end()


class _Drawer(Thread):
    """What draws the bar, also where the work does not call it, and clears it before anything else is written.

    What the command reads from the terminal, or writes to standard output there, ends it.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.due = self._first = time.monotonic() + PATIENCE_SECONDS
        self._bar: tqdm[None] | None = None
        self._lock, self._is_over = RLock(), Event()
        self._streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
        for name, stream in self._streams.items():
            # A pipe may lead to the terminal, too.
            if stream is not None and (stream.isatty() or (name == "stdout" and not stream.seekable())):
                setattr(sys, name, _Watched(stream, self._lock, self.clear if name == "stderr" else self.end))
        self.start()

    def run(self) -> None:
        while not self._is_over.wait(max(0, self.due - time.monotonic())):
            self.draw()

    def draw(self) -> None:
        from tqdm.std import tqdm

        with self._lock:
            if self._is_over.is_set() or not _phases or time.monotonic() < self._first:
                return
            self.due = time.monotonic() + DRAWING_SECONDS
            phase, stream = _phases[-1], self._streams["stderr"]
            size, is_of_bytes = phase.size, phase.unit == "bytes"
            state = {"total": size, "bar_format": "{desc}: {elapsed}" if size is None else None}
            if self._bar is None:
                tqdm.monitor_interval = 0  # no thread of its own
                tqdm.set_lock(self._lock)  # an interrupt can leave the default one locked
                self._bar = tqdm(
                    desc=visible(phase.what),
                    file=stream,
                    leave=False,
                    ncols=width_of(stream),
                    nrows=24,
                    colour="green" if shows_colours(stream) else None,
                    unit="B" if is_of_bytes else "it",
                    unit_scale=is_of_bytes,
                    **state,
                )
            vars(self._bar).update(state, n=phase.done, start_t=phase.start)
            self._bar.refresh()

    def clear(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def end(self) -> None:
        self._is_over.set()
        self.clear()

    def close(self) -> None:
        self.end()
        vars(sys).update(self._streams)


class _Watched:
    """A stream of a terminal; the bar is cleared before it is used, and not drawn amid what is written."""

    def __init__(self, stream: TextIO, lock: RLock, clear: Callable[[], None]) -> None:
        self._stream, self._lock, self._clear = stream, lock, clear

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            self._clear()
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        self.writelines([text])

    def writelines(self, lines: Iterable[str]) -> None:
        with self._lock:
            self._clear()
            self._stream.writelines(lines)


# What a terminal can show

USUAL_WIDTH = 80  # columns, if a terminal does not report its width


def colours_are_unwanted() -> bool:
    """Whether ``NO_COLOR`` is set, which nothing overrides (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def shows_colours(stream: TextIO) -> bool:
    """Whether to write colours to a stream: to a terminal that can show them, or where they are forced.

    ``NO_COLOR``, unless empty, forbids them everywhere; ``FORCE_COLOR``, unless empty or ``0``, forces them into
    files, pipes and ``TERM=dumb`` too.
    """
    if colours_are_unwanted():
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0") or is_able_terminal(stream)


def is_able_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal other than ``TERM=dumb``."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """Return a terminal's width in columns, or ``COLUMNS``; None for a stream that is no terminal."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):
        return USUAL_WIDTH
