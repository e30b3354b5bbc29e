"""Seeds of more than 31 bits, which only SQLite took before."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Let the columns of seeds have 64 bits, as all integers of SQLite have."""
    if op.get_bind().dialect.name != "sqlite":
        for table in ("comparisons", "exchanges"):
            op.alter_column(table, "seed", type_=sa.BigInteger())
