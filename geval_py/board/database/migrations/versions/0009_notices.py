"""Notices that wait to be delivered, and who wants mail."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table; accounts get mail unless they turn it off."""
    op.create_table(
        "notices",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.String(16), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=False, server_default=""),
        sa.Column("email", sa.Text(), nullable=False, server_default=""),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.Column("made", sa.String(27), nullable=False),
        sa.Column("due", sa.String(27), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.UniqueConstraint("number", name=op.f("uq_notices_number")),
    )
    op.create_index(op.f("ix_notices_state_due"), "notices", ["state", "due"])
    with op.batch_alter_table("accounts") as accounts:
        accounts.add_column(sa.Column("mailed", sa.Boolean(), nullable=False, server_default=sa.true()))
