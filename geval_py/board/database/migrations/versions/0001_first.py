"""The first schema: submitters, submissions with their files and outputs, evaluations, what may be shown."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    _make_blobs_and_evaluations_and_facts()
    _make_submitters_and_comparisons()
    _make_submissions()
    _make_files_and_outputs()
    _make_disclosures_and_history()
    _make_scores()


def _make_blobs_and_evaluations_and_facts() -> None:
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "part", name=op.f("pk_blobs")),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("output_sha256", sa.String(length=64), nullable=False),
        sa.Column("reference", sa.String(length=64), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("losses", sa.LargeBinary(), nullable=True),
        sa.Column("made", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
        sa.UniqueConstraint(
            "test",
            "output_sha256",
            "reference",
            "metric",
            "version",
            name=op.f("uq_evaluations_test_output_sha256_reference_metric_version"),
        ),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )


def _make_submitters_and_comparisons() -> None:
    op.create_table(
        "submitters",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submitters")),
        sa.UniqueConstraint("key", name=op.f("uq_submitters_key")),
    )
    op.create_table(
        "comparisons",
        sa.Column("one_id", sa.Integer(), nullable=False),
        sa.Column("other_id", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("p", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["one_id"], ["evaluations.id"], name=op.f("fk_comparisons_one_id_evaluations"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["other_id"], ["evaluations.id"], name=op.f("fk_comparisons_other_id_evaluations"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("one_id", "other_id", "samples", "seed", name=op.f("pk_comparisons")),
    )


def _make_submissions() -> None:
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=12), nullable=False),
        sa.Column("submitter_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("revision", sa.Text(), server_default="", nullable=False),
        sa.Column("arrived", sa.String(27), nullable=False),
        sa.Column("added", sa.String(27), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("baseline", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("charge", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("author", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("links", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("remark", sa.Text(), server_default="", nullable=False),
        sa.Column("withdrawn", sa.String(27), nullable=True),
        sa.Column("withdrawal", sa.Text(), server_default="", nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.CheckConstraint("state IN ('scored', 'rejected', 'failed')", name=op.f("ck_submissions_state")),
        sa.ForeignKeyConstraint(
            ["submitter_id"],
            ["submitters.id"],
            name=op.f("fk_submissions_submitter_id_submitters"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("code", name=op.f("uq_submissions_code")),
    )
    op.create_index(op.f("ix_submissions_digest"), "submissions", ["digest"], unique=False)
    op.create_index(
        op.f("ix_submissions_submitter_id_arrived"), "submissions", ["submitter_id", "arrived"], unique=False
    )


def _make_files_and_outputs() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name=op.f("fk_files_submission_id_submissions"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sa.UniqueConstraint("submission_id", "name", name=op.f("uq_files_submission_id_name")),
    )
    op.create_index(op.f("ix_files_sha256"), "files", ["sha256"], unique=False)
    op.create_table(
        "outputs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.id"], name=op.f("fk_outputs_file_id_files"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name=op.f("fk_outputs_submission_id_submissions"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outputs")),
        sa.UniqueConstraint("submission_id", "test", "variant", name=op.f("uq_outputs_submission_id_test_variant")),
    )


def _make_disclosures_and_history() -> None:
    op.create_table(
        "disclosures",
        sa.Column("output_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_disclosures_evaluation_id_evaluations"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["output_id"], ["outputs.id"], name=op.f("fk_disclosures_output_id_outputs"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("output_id", "metric", name=op.f("pk_disclosures")),
    )
    op.create_table(
        "history",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("output_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("replaced", sa.String(27), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_history_evaluation_id_evaluations"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["output_id"], ["outputs.id"], name=op.f("fk_history_output_id_outputs"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_history")),
    )
    op.create_index(op.f("ix_history_output_id"), "history", ["output_id"], unique=False)


def _make_scores() -> None:
    op.create_table(
        "scores",
        sa.Column("output_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_scores_evaluation_id_evaluations"),
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["output_id"], ["outputs.id"], name=op.f("fk_scores_output_id_outputs"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("output_id", "metric", name=op.f("pk_scores")),
    )
    op.create_index(op.f("ix_scores_evaluation_id"), "scores", ["evaluation_id"], unique=False)
