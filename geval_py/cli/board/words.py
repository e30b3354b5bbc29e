"""What the sub-commands of ``geval board`` have in common: arguments, moments, how receipts are written."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from geval_py.board.settings import moment_of
from geval_py.cli.parsers import QuietParser
from geval_py.cli.terminal import write_table
from geval_py.errors import UsageError
from geval_py.tables.escapes import json_text
from geval_py.tables.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from geval_py.board.operations.receipts import Receipt

STATUS = "Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."
FORMATS = ("text", "json")


def new_parser(name: str, description: str, examples: str, status: str = STATUS) -> QuietParser:
    """Make a sub-command's parser, with the board's folder as the first argument."""
    epilog = f"examples:\n{examples}\n{status}"
    parser = QuietParser(prog=f"geval board {name}", description=description, epilog=epilog)
    parser.add_argument("board", metavar="BOARD", help="the board's folder")
    return parser


def add_format(parser: QuietParser) -> None:
    """Add --format."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (the default), or for programs")


def now() -> datetime:
    """Give this moment."""
    return datetime.now(UTC)


def moment(option: str, written: str | None) -> datetime | None:
    """Read a moment that an option gives; raises UsageError for one without a zone."""
    if written is None:
        return None
    try:
        return moment_of(written)
    except ValueError as error:
        raise UsageError(message=f"argument {option}: {error}") from error


def write_receipts(receipts: Sequence[Receipt], form: str) -> None:
    """Write receipts one below the other, or as a JSON document."""
    if form == "json":
        sys.stdout.write(json_text({"receipts": [receipt.document() for receipt in receipts]}))
    else:
        sys.stdout.write("\n".join(map(str, receipts)))


def write_list(receipts: Iterable[Receipt]) -> None:
    """Write a line a receipt."""
    columns = [Column(name=name) for name in ("code", "state", "submitter", "submission", "why")]
    rows = ((one.code or None, one.state, one.submitter, one.name, one.reason or one.note) for one in receipts)
    write_table(Table(columns, rows))
