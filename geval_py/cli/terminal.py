"""What a command writes: results to standard output in the format asked for; errors, notes and progress elsewhere.

The cluster that a command is given is here too, since nothing that its workers log is shown.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, Literal, TextIO

from geval_py.errors import GevalError, MalformedLineError, UsageError
from geval_py.reading.config import Settings, said_option
from geval_py.reading.files import name_of
from geval_py.tables.formats import Tabular
from geval_py.tables.layout import fitted, picture
from geval_py.tables.table import Table
from geval_py.text import is_able_terminal, named, shows_colours, some_of, visible, width_of

if TYPE_CHECKING:
    from tqdm.std import tqdm

    from geval_py.scoring.scores import Evaluation

Unit = Literal["bytes", "items"]

PATIENCE_SECONDS = 1.0
MAX_LIKEWISE = 3  # outputs that a note names beside the first
_is_quiet = False  # as --quiet asks


def carry_out(command: Callable[[], int | None], asked: Settings | argparse.Namespace) -> int:
    """Run a command as ``--output`` and ``--quiet`` ask, and return its exit status.

    The file of ``--output`` is left as it was if an error is raised, or if the command fails and shows nothing.
    Raises UsageError for a file that cannot be written, and one that may hold the output of a model.
    """
    global _is_quiet
    _is_quiet = asked.quiet
    output = getattr(asked, "output_file", None)
    if output is None:
        return command() or 0
    if os.path.exists(output) and name_of(output).endswith((".tsv", ".jsonl", ".parquet")):
        raise UsageError(
            message=f"Cannot write results to {named(output)}: it may hold the output of a model\n"
            f"  -o {visible(output)} scores it; remove it first if you do not need it"
        )
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
    """A bar on a terminal's standard error, shown for work that takes longer than a second.

    Call it with the amount done and the whole amount, in bytes or in items.
    """

    def __init__(self, what: str, *, unit: Unit = "bytes") -> None:
        self._what, self._unit = what, unit
        self._start = time.monotonic()
        self._bar: tqdm[None] | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, size: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif not _is_quiet and time.monotonic() - self._start >= PATIENCE_SECONDS and is_able_terminal(sys.stderr):
            from tqdm.std import tqdm

            tqdm.monitor_interval = 0  # no thread of its own
            sizes: dict[str, Any] = {"unit": "B", "unit_scale": True} if self._unit == "bytes" else {}
            with suppress(OSError):
                if not os.get_terminal_size(sys.stderr.fileno()).columns:  # then tqdm draws nothing
                    sizes |= {"ncols": width_of(sys.stderr), "nrows": 24, "dynamic_ncols": False}
            self._bar = tqdm(
                desc=visible(self._what),
                initial=done,
                total=size,
                leave=False,
                colour="green" if shows_colours(sys.stderr) else None,
                **{"dynamic_ncols": True, **sizes},
            )
