"""``geval board rescore``: what is out of date is scored again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from geval_py.board.database.store import Board
from geval_py.board.operations.rescoring import Rescored, rescore
from geval_py.cli.board.words import add_format, new_parser, now
from geval_py.cli.evaluations import workers_at
from geval_py.cli.parsers import add_fields
from geval_py.cli.terminal import ProgressBar
from geval_py.tables.escapes import json_text
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.board.ranking.leaderboard import PlaceChange
    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board rescore gazette-board --dry-run    whose place would change
  geval board rescore gazette-board
  geval board rescore gazette-board --cluster tcp://scheduler:8786
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board rescore``."""
    what = (
        "Score again what the challenge, its answers, the metrics or geval-py changed for; the old scores are kept."
    )
    parser = new_parser("rescore", what, _EXAMPLES)
    parser.add_argument("--dry-run", action="store_true", help="only show whose place would change")
    add_fields(parser, "cluster")
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    board = Board.open(given.board)
    with workers_at(given.cluster) as workers, ProgressBar("scoring again", unit="items") as progress:
        rescored = rescore(board, now=now(), dry_run=given.dry_run, progress=progress, workers=workers)
    if given.format == "json":
        sys.stdout.write(json_text(_document(rescored)))
    else:
        sys.stdout.writelines(f"{visible(line)}\n" for line in _lines(rescored, would=given.dry_run))
    return 0


def _document(rescored: Rescored) -> dict[str, Any]:
    return {
        "outdated": [asdict(one) for one in rescored.outdated],
        "changes": [asdict(one) for one in rescored.changes],
        "receipts": [receipt.document() for receipt in rescored.receipts],
    }


def _lines(rescored: Rescored, *, would: bool) -> Iterator[str]:
    if not rescored.outdated:
        yield "nothing is out of date"
        return
    for reason, count in Counter(one.reason for one in rescored.outdated).items():
        yield f"{'to be scored' if would else 'scored'} again: {count}, since {reason}"
    for receipt in rescored.receipts:
        why = f": {receipt.reason}" if receipt.reason else ""
        yield f"{receipt.submitter} {receipt.code} {'would be' if would else 'is now'} {receipt.state}{why}"
    yield from (_change(change, would=would) for change in rescored.changes)
    if not rescored.changes:
        yield f"no place {'would change' if would else 'changed'}"


def _change(change: PlaceChange, *, would: bool) -> str:
    where = change.test + (f", {change.phase}" if change.phase else "")
    who = change.submitter + (f" {change.entry}" if change.entry else "")
    moved = f"from {change.before or 'no place'} to {change.after or 'no place'}"
    return f"{where}: {who} {'would go' if would else 'went'} {moved}"
