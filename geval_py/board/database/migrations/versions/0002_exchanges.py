"""A table of exchanges: stored parts of comparisons, so that a new entry is compared quickly."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of exchanges."""
    op.create_table(
        "exchanges",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("means", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_exchanges_evaluation_id_evaluations"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "samples", "seed", name=op.f("pk_exchanges")),
    )
