"""Where the accounts of a board are, and how they are read and changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, CursorResult, Executable, inspect, true

from geval_py.board.database.store import Board, Database, boards_in, place_of
from geval_py.board.people.schema import METADATA
from geval_py.board.settings import BoardSettings
from geval_py.errors import GevalError, UsageError
from geval_py.text import named

ACCOUNTS_FILE = "accounts.sqlite"
LOCK = 0x67657661_6C616363  # of writers on PostgreSQL: "gevalacc"


@dataclass(frozen=True)
class AccountsDatabase(Database):
    """A database of accounts."""

    place: str
    lock = LOCK


@dataclass(frozen=True)
class People:
    """The accounts of the board with a key, in a transaction; "" are all boards of a server together."""

    connection: Connection
    board: str

    def execute(self, statement: Executable) -> CursorResult[Any]:
        """Execute a statement."""
        return self.connection.execute(statement)

    def has(self, board: ColumnElement[str]) -> ColumnElement[bool]:
        """Return the condition that a ``board`` of a table is this one."""
        return board == self.board if self.board else true()


@dataclass(frozen=True)
class AccountStore:
    """The database of accounts, for the board with a key."""

    database: Database
    board: str = ""

    @contextmanager
    def reading(self) -> Iterator[People]:
        """Read one state of the accounts; raises StoreError."""
        with self.database.reading() as connection:
            yield People(connection, self.board)

    @contextmanager
    def writing(self) -> Iterator[People]:
        """Run the block as one transaction; raises StoreError. No transaction of a board may run within it."""
        with self.database.writing() as connection:
            yield People(connection, self.board)


def accounts_place(folder: str, settings: BoardSettings) -> str:
    """Return the place of a board's accounts, a file or a URL.

    It is what board.yaml names; by default the database of the board if that is a URL, else the file of the folder of
    several boards in which the board is, else a file beside board.yaml.
    """
    place = place_of(folder, settings.database)
    if settings.accounts or "://" in place:
        place = settings.accounts or place
        return place if "://" in place else os.path.abspath(os.path.join(folder, place))
    folder = os.path.abspath(folder)
    shared = os.path.join(os.path.dirname(folder), ACCOUNTS_FILE)
    return shared if os.path.isfile(shared) else os.path.join(folder, ACCOUNTS_FILE)


def accounts_of(board: Board) -> AccountStore:
    """Open the accounts of a board; raises StoreError."""
    return AccountStore(open_accounts(accounts_place(board.folder, board.settings)), board.key)


def shared_accounts(folder: str) -> Database:
    """Open the accounts of the boards in a folder of several; raises UsageError if they have different ones.

    A board that cannot be opened stops no other one.
    """
    folder, boards = os.path.abspath(folder), []
    for path in boards_in(folder):
        with suppress(GevalError):
            boards.append(Board.open(path))
    shared = os.path.join(folder, ACCOUNTS_FILE)
    places: set[str] = set()
    folders: dict[str, str] = {}
    for board in boards:
        place, own = accounts_place(board.folder, board.settings), os.path.join(board.folder, ACCOUNTS_FILE)
        if os.path.isfile(own) and place in (own, shared):
            raise UsageError(
                f"{named(board.folder)} has accounts of its own\n  to share them, "
                f"move {named(own)} to {named(shared)}"
            )
        original = folders.setdefault(board.key, board.folder)
        if original != board.folder:
            raise UsageError(
                f"{named(board.folder)} is a copy of {named(original)}, with the same accounts"
                f"\n  move one of them out of {named(folder)}"
            )
        places.add(shared if place == own else place)
    if len(places) > 1:
        raise UsageError(
            f"the boards in {named(folder)} have different accounts\n  "
            "name the same database with `accounts` in each board.yaml"
        )
    return open_accounts((places or {shared}).pop())


def open_accounts(place: str) -> Database:
    """Open a database of accounts, which is made if it is not there; raises StoreError."""
    database = AccountsDatabase(place)
    with database.reading() as connection:
        is_new = not inspect(connection).has_table("accounts")
    if is_new:
        with database.writing() as connection:
            METADATA.create_all(connection)
    return database
