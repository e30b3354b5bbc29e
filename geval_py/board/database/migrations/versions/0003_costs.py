"""The cost of a submission: as how many it counts for the quota."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the cost: 1 for each submission that counts, else 0."""
    op.add_column("submissions", sa.Column("cost", sa.Integer(), nullable=False, server_default="1"))
    submissions = sa.table("submissions", sa.column("charged", sa.Boolean()), sa.column("cost", sa.Integer()))
    op.execute(submissions.update().where(~submissions.c.charged).values(cost=0))
