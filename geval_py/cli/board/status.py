"""``geval board status``: what is in a board."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.operations.status import Status, status_of
from geval_py.cli.board.words import add_format, new_parser, now
from geval_py.cli.terminal import write_table
from geval_py.tables.escapes import json_text
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

MOST_CODES = 5  # that are listed; the JSON document has all
_EXAMPLES = """\
  geval board status gazette-board
  geval board status gazette-board --format json
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board status``."""
    what = "Say what is stored, what is out of date, what was rejected or failed and why, and what was charged."
    parser = new_parser("status", what, _EXAMPLES)
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    status = status_of(Board.open(given.board), now())
    if given.format == "json":
        sys.stdout.write(json_text(status.document()))
        return 0
    sys.stdout.writelines(f"{visible(line)}\n" for line in _summary(status))
    if status.lines:
        sys.stdout.write("\n")
        write_table(status.table())
    return 0


def _summary(status: Status) -> Iterator[str]:
    states = ", ".join(f"{count} {state}" for state, count in status.states.items())
    yield f"{status.title}" + (f", phase {status.phase}" if status.phase else "")
    yield f"{len(status.lines)} submissions of {status.submitters} submitters: {states}, {status.withdrawn} withdrawn"
    yield f"{status.outputs} outputs, {status.evaluations} evaluations"
    for reason, count in status.outdated.items():
        yield f"out of date: {count}, since {reason}; geval board rescore"
    if not status.outdated:
        yield "nothing is out of date"
    for test, codes in status.without_output.items():
        has_none = len(codes) == status.ranked
        yield f"no output for {test}" + (" in any submission" if has_none else f": {_some(codes)}")
    if status.to_be_sent_again:
        codes = status.to_be_sent_again
        yield f"rejected under other tests or limits: {_some(codes)}; geval board scan or add takes them again"


def _some(codes: Sequence[str]) -> str:
    """List codes; of many, the first."""
    more = f" and {len(codes) - MOST_CODES} more" if len(codes) > MOST_CODES else ""
    return ", ".join(codes[:MOST_CODES]) + more
