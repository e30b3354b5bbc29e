"""What an organiser does on the server's pages: announcements, and rescorings, which are jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the tables; a job is from now on of an upload or of a rescoring."""
    op.create_table(
        "announcements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("moment", sa.String(27), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcements")),
    )
    op.create_table(
        "rescorings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("asked", sa.String(27), nullable=False),
        sa.Column("dry", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("result", sa.Text(), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rescorings")),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("upload_id", existing_type=sa.Integer(), nullable=True)
        jobs.alter_column("submitter_id", existing_type=sa.Integer(), nullable=True)
        jobs.add_column(sa.Column("rescoring_id", sa.Integer(), nullable=True))
        name = op.f("fk_jobs_rescoring_id_rescorings")
        jobs.create_foreign_key(name, "rescorings", ["rescoring_id"], ["id"], ondelete="RESTRICT")
