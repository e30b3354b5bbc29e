"""The moment at which a submission was named as final."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the moment; no submission is final yet."""
    op.add_column("submissions", sa.Column("final", sa.String(27)))
