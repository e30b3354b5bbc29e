"""Seeds of more than 31 bits, which only SQLite took before."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Let the columns of seeds have 64 bits."""
    for table in ("comparisons", "exchanges"):
        with op.batch_alter_table(table) as batch:
            batch.alter_column("seed", type_=sa.BigInteger(), existing_type=sa.Integer(), existing_nullable=False)
