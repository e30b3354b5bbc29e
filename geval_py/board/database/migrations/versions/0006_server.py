"""The tables of the server: accounts, sessions, tokens, uploads, and a queue of jobs."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def _text(name: str, length: int | None = None, default: str | None = None) -> "sa.Column[str]":
    kind = sa.Text() if length is None else sa.String(length=length)
    return sa.Column(name, kind, server_default=default, nullable=False)


def _moment(name: str, *, nullable: bool = False) -> "sa.Column[str]":
    return sa.Column(name, sa.String(27), nullable=nullable)


def _id(name: str = "id", *, nullable: bool = False) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), nullable=nullable)


def _count(name: str, default: str | None = None) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), nullable=False, server_default=default)


def _flag(name: str) -> "sa.Column[bool]":
    return sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())


def _json(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.JSON(), nullable=False)


def _create(
    table: str,
    *columns: "sa.Column[Any]",
    key: tuple[str, ...] = ("id",),
    refers: dict[str, str] | None = None,
    unique: str = "",
    check: str = "",
) -> None:
    """Create a table; ``refers`` has the tables that its columns refer to."""
    constraints: list[sa.Constraint] = []
    if check:
        constraints.append(sa.CheckConstraint(check, name=op.f(f"ck_{table}_role")))
    for column, other in (refers or {}).items():
        name = op.f(f"fk_{table}_{column}_{other}")
        constraints.append(sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="RESTRICT"))
    constraints.append(sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")))
    if unique:
        constraints.append(sa.UniqueConstraint(unique, name=op.f(f"uq_{table}_{unique}")))
    op.create_table(table, *columns, *constraints)


def upgrade() -> None:
    """Create all tables, each after the tables that it refers to."""
    _create_accounts()
    _create_secrets()
    _create_work()
    _create("audit", _id(), _moment("moment"), _text("who"), _text("action"), _text("subject", default=""),
            _text("detail", default=""))  # fmt: skip
    _create("rates", _text("name"), _moment("hour"), _count("tries"), key=("name", "hour"))


def _create_accounts() -> None:
    _create(
        "accounts",
        _id(),
        _text("key"),
        _text("name"),
        _text("email", default=""),
        _text("role", 9),
        _id("submitter_id", nullable=True),
        _flag("owner"),
        _moment("made"),
        _moment("disabled", nullable=True),
        refers={"submitter_id": "submitters"},
        unique="key",
        check="role IN ('organiser', 'submitter', 'reader')",
    )


def _create_secrets() -> None:
    _create(
        "invitations",
        _text("digest", 64),
        _id("account_id", nullable=True),
        _text("name"),
        _text("email", default=""),
        _text("role", 9),
        _text("team", default=""),
        _flag("owner"),
        _moment("made"),
        _moment("expires"),
        _moment("used", nullable=True),
        key=("digest",),
        refers={"account_id": "accounts"},
    )
    _create(
        "sessions",
        _text("digest", 64),
        _id("account_id"),
        _moment("made"),
        _moment("seen"),
        _moment("expires"),
        key=("digest",),
        refers={"account_id": "accounts"},
    )
    _create(
        "tokens",
        _id(),
        _text("digest", 64),
        _id("account_id"),
        _text("name"),
        _text("scope", 8),
        _moment("made"),
        _moment("expires"),
        refers={"account_id": "accounts"},
        unique="digest",
    )


def _create_work() -> None:
    _create(
        "uploads",
        _id(),
        _text("number", 16),
        _id("account_id", nullable=True),
        _id("submitter_id"),
        _text("name"),
        _text("test", default=""),
        _text("sha256", 64),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        _moment("arrived"),
        _flag("dry"),
        _text("state", 8),
        _text("reason", default=""),
        _id("submission_id", nullable=True),
        _json("problems"),
        _text("receipt"),
        _moment("ended", nullable=True),
        refers={"account_id": "accounts", "submitter_id": "submitters", "submission_id": "submissions"},
        unique="number",
    )
    op.create_index(op.f("ix_uploads_submitter_id_arrived"), "uploads", ["submitter_id", "arrived"])
    _create(
        "jobs",
        _id(),
        _id("upload_id"),
        _id("submitter_id"),
        _text("state", 8),
        _count("lease", "0"),
        _count("deaths", "0"),
        _moment("made"),
        _moment("due"),
        _moment("started", nullable=True),
        _moment("leased_until", nullable=True),
        _moment("ended", nullable=True),
        _text("reason", default=""),
        refers={"upload_id": "uploads", "submitter_id": "submitters"},
    )
    op.create_index(op.f("ix_jobs_state_due"), "jobs", ["state", "due"])
    leased = sa.text("state = 'leased'")
    op.create_index(
        op.f("uq_jobs_leased_submitter"),
        "jobs",
        ["submitter_id"],
        unique=True,
        sqlite_where=leased,
        postgresql_where=leased,
    )
