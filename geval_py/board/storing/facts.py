"""Single facts that a board keeps, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from geval_py.board.storing.schema import facts

if TYPE_CHECKING:
    from sqlalchemy import Connection


def remember(connection: Connection, name: str, value: str) -> None:
    """Keep a fact, in place of what was known."""
    forget(connection, name)
    connection.execute(insert(facts).values(name=name, value=value))


def forget(connection: Connection, name: str) -> None:
    """Keep a fact no longer, if it was kept."""
    connection.execute(delete(facts).where(facts.c.name == name))


def facts_about(connection: Connection, beginning: str) -> dict[str, str]:
    """Give the facts whose names begin so, by the rest of their names."""
    rows = connection.execute(select(facts.c.name, facts.c.value).where(facts.c.name.startswith(beginning)))
    return {name.removeprefix(beginning): value for name, value in rows}
