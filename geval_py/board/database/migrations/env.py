"""Run by Alembic: migrate the connection of :func:`geval_py.board.database.migrations.upgrade`."""

from __future__ import annotations

from alembic import context

from geval_py.board.database.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
    render_as_batch=True,
)


context.run_migrations()
