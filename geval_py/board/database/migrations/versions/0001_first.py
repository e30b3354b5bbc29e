"""The first schema: submitters, submissions with their files and outputs, evaluations, disclosures."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _integer(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), nullable=False)


def _text(name: str, length: int | None = None, default: str | None = None) -> "sa.Column[str]":
    kind = sa.Text() if length is None else sa.String(length=length)
    return sa.Column(name, kind, server_default=default, nullable=False)


def _moment(name: str, *, nullable: bool = False) -> "sa.Column[str]":
    return sa.Column(name, sa.String(27), nullable=nullable)


def _figure(name: str) -> "sa.Column[float]":
    return sa.Column(name, sa.Double(), nullable=True)


def _create(
    table: str,
    *columns: "sa.Column[Any]",
    key: tuple[str, ...] = ("id",),
    refers: dict[str, str] | None = None,
    unique: tuple[str, ...] = (),
    check: str = "",
) -> None:
    """Create a table; ``refers`` has the tables that its columns refer to."""
    constraints: list[sa.Constraint] = []
    if check:
        constraints.append(sa.CheckConstraint(check, name=op.f(f"ck_{table}_state")))
    for column, other in (refers or {}).items():
        name = op.f(f"fk_{table}_{column}_{other}")
        constraints.append(sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="RESTRICT"))
    constraints.append(sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")))
    if unique:
        constraints.append(sa.UniqueConstraint(*unique, name=op.f(f"uq_{table}_{'_'.join(unique)}")))
    op.create_table(table, *columns, *constraints)


def upgrade() -> None:
    """Create all tables, each after the tables that it refers to."""
    _create(
        "blobs",
        _text("sha256", 64),
        _integer("part"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        key=("sha256", "part"),
    )
    _create(
        "evaluations",
        _integer("id"),
        _text("test"),
        _text("output_sha256", 64),
        _text("reference", 64),
        _text("metric"),
        _text("version"),
        _text("signature"),
        _integer("lines"),
        *map(_figure, ("score", "low", "high")),
        sa.Column("losses", sa.LargeBinary(), nullable=True),
        _moment("made"),
        unique=("test", "output_sha256", "reference", "metric", "version"),
    )
    _create("facts", _text("name"), _text("value"), key=("name",))
    _create("submitters", _integer("id"), _text("key"), _text("name"), unique=("key",))
    _create(
        "comparisons",
        *map(_integer, ("one_id", "other_id", "samples", "seed")),
        sa.Column("p", sa.Double(), nullable=False),
        key=("one_id", "other_id", "samples", "seed"),
        refers={"one_id": "evaluations", "other_id": "evaluations"},
    )
    _create_submissions()
    to_both = {"evaluation_id": "evaluations", "output_id": "outputs"}
    by_metric = ("output_id", "metric")
    shown = map(_figure, ("value", "low", "high"))
    _create("disclosures", *_evaluated(), *shown, key=by_metric, refers=to_both)
    _create("history", _integer("id"), *_evaluated(), _moment("replaced"), _text("reason"), refers=to_both)
    op.create_index(op.f("ix_history_output_id"), "history", ["output_id"], unique=False)
    _create("scores", *_evaluated(), key=by_metric, refers=to_both)
    op.create_index(op.f("ix_scores_evaluation_id"), "scores", ["evaluation_id"], unique=False)


def _evaluated() -> "tuple[sa.Column[Any], ...]":
    return _integer("output_id"), _text("metric"), _integer("evaluation_id")


def _create_submissions() -> None:
    _create(
        "submissions",
        _integer("id"),
        _text("code", 12),
        _integer("submitter_id"),
        _text("name"),
        _text("source"),
        _text("digest", 64),
        _text("revision", default=""),
        _moment("arrived"),
        _moment("added"),
        _text("state", 8),
        _text("reason", default=""),
        sa.Column("baseline", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        _text("charge"),
        _text("description", default=""),
        _text("author", default=""),
        *(sa.Column(name, sa.JSON(), nullable=False) for name in ("tags", "params", "links", "problems")),
        _text("remark", default=""),
        _moment("withdrawn", nullable=True),
        _text("withdrawal", default=""),
        _text("scorer"),
        refers={"submitter_id": "submitters"},
        unique=("code",),
        check="state IN ('scored', 'rejected', 'failed')",
    )
    op.create_index(op.f("ix_submissions_digest"), "submissions", ["digest"], unique=False)
    op.create_index(
        op.f("ix_submissions_submitter_id_arrived"), "submissions", ["submitter_id", "arrived"], unique=False
    )
    _create(
        "files",
        _integer("id"),
        _integer("submission_id"),
        _text("name"),
        _text("sha256", 64),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        refers={"submission_id": "submissions"},
        unique=("submission_id", "name"),
    )
    op.create_index(op.f("ix_files_sha256"), "files", ["sha256"], unique=False)
    _create(
        "outputs",
        _integer("id"),
        _integer("submission_id"),
        _integer("file_id"),
        _text("test"),
        _text("variant"),
        sa.Column("params", sa.JSON(), nullable=False),
        refers={"file_id": "files", "submission_id": "submissions"},
        unique=("submission_id", "test", "variant"),
    )
