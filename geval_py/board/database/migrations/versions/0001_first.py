"""The first schema. Until a version is released, it is what the tables say; a release writes it down here."""

from datetime import UTC, datetime

from alembic import op

from geval_py.board.database.schema import METADATA, board

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Create all tables, and the row about the board."""
    METADATA.create_all(op.get_bind())
    op.execute(board.insert().values(id=1, created=datetime.now(UTC)))
