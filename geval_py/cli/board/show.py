"""``geval board show``: a leaderboard, as far as it may be shown now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.ranking.leaderboard import BY, standings
from geval_py.board.ranking.leaderboard_columns import legend, standings_document, standings_records, standings_table
from geval_py.cli.board.words import new_parser, now
from geval_py.cli.terminal import note
from geval_py.tables.escapes import json_text, markdown_text
from geval_py.tables.terminals import width_of
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.board.submission import Standings
    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board show gazette-board
  geval board show gazette-board --by submission --test dev-0
  geval board show gazette-board --phase main --format csv >main.csv
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board show``."""
    what = "Show a leaderboard: places, scores with their intervals, and which places cannot be told apart."
    parser = new_parser("show", what, _EXAMPLES)
    add = parser.add_argument
    add("--test", metavar="NAME", help="the test set (default: the first of board.yaml)")
    add(
        "--phase",
        metavar="NAME",
        help="the phase (default: that of now, or the last with an entry)",
    )
    add("--by", choices=BY, help="of whom the best entry is shown (default: as board.yaml says)")
    add("--format", choices=FORMATS, default="text", help="text (the default), for programs, or for a paper")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    board = Board.open(given.board)
    shown = standings(board, given.test, phase=given.phase, by=given.by, now=now())
    if not shown.entries:
        _say_where_entries_are(board, shown)
    sys.stdout.writelines(FORMATS[given.format](shown, board.settings.ties))
    return 0


def _say_where_entries_are(board: Board, shown: Standings) -> None:
    """Say that there is nothing to show, and which other phases there are."""
    others = [name for name in board.settings.phase_names if name != shown.phase]
    advice = f"; --phase {' or '.join(others)} shows another" if others else ""
    of = f"{shown.test} in {shown.phase}" if shown.phase else shown.test
    note(visible(f"there is no entry for {of}{advice}"))


def _text(shown: Standings, ties: str) -> Iterator[str]:
    width = width_of(sys.stdout)
    table = standings_table(shown, ties)
    yield from table.text() if width is None else table.terminal(width)
    yield "\n"
    yield from (f"{visible(line)}\n" for line in legend(shown))


def _markdown(shown: Standings, ties: str) -> Iterator[str]:
    yield from standings_table(shown, ties).markdown()
    yield "\n"
    yield from (f"{markdown_text(visible(line))}\n" for line in legend(shown))


def _latex(shown: Standings, ties: str) -> Iterator[str]:
    yield from standings_table(shown, ties).latex()
    yield from (f"% {visible(line)}\n" for line in legend(shown))


def _csv(shown: Standings, _: str) -> Iterator[str]:
    return standings_records(shown).csv()


def _json(shown: Standings, _: str) -> Iterator[str]:
    yield json_text(standings_document(shown))


FORMATS: dict[str, Callable[[Standings, str], Iterator[str]]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
    "latex": _latex,
}
