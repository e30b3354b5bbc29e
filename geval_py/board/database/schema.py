"""The tables of a board, the same in SQLite and PostgreSQL.

    submitters ──< submissions ──< files >── blobs            what came, byte for byte
                        └──< outputs ──< scores >── evaluations ──< comparisons
                                   └──< disclosures >──┘      what of it may be shown
                                   └──< history >──────┘      what was shown before

An output is one file of a submission, for one test; an evaluation is one content scored with one metric, shared by
all outputs that have that content. An output's evaluation is in ``scores``; earlier ones are in ``history``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine


SCORED, REJECTED, FAILED = "scored", "rejected", "failed"
STATES = (SCORED, REJECTED, FAILED)
_MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


class Moment(TypeDecorator[datetime]):
    """A moment: in Python with its zone; stored in UTC as text of one length, whose order is that of time."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Dialect) -> str | None:
        """Write a moment; raises ValueError for one without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no zone")
        return value.astimezone(UTC).strftime(_MOMENT)

    def process_result_value(self, value: str | None, _: Dialect) -> datetime | None:
        """Read a moment, in UTC."""
        return None if value is None else datetime.strptime(value, _MOMENT).replace(tzinfo=UTC)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _reference(name: str, table: str, *, primary_key: bool = False) -> Column[int]:
    return Column(name, ForeignKey(f"{table}.id", ondelete="RESTRICT"), nullable=False, primary_key=primary_key)


def _needed(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], **more: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **more)


def _optional(name: str) -> Column[str]:
    """Give a column of a text, which may be empty."""
    return _needed(name, Text, server_default="")


def _by_output() -> tuple[Column[Any], ...]:
    """Give columns: by output and metric, an evaluation."""
    by = (_reference("output_id", "outputs", primary_key=True), Column("metric", Text, primary_key=True))
    return (*by, _reference("evaluation_id", "evaluations"))


def _drawn() -> tuple[Column[int], ...]:
    """Give columns of what is drawn at random: how often, and with which seed."""
    return tuple(Column(name, Integer, primary_key=True) for name in ("samples", "seed"))


# Who submits. ``key`` is the name folded (board.names), so that look-alikes are one; ``name`` as it first came.
submitters = Table(
    "submitters",
    METADATA,
    _id(),
    _needed("key", Text, unique=True),
    _needed("name", Text),
)

# One submission, in one transaction. ``code`` is its public name, that of its page and its receipt: 12 hexadecimal
# digits. ``name`` is that of the folder, the archive, or the repository and branch; ``source`` where it came from;
# ``digest`` is over the names and digests of its files; ``revision`` a git commit. ``reason`` says in one line why it
# was rejected or failed; ``problems`` are the checker's, as JSON shows them, without those that need the answers.
# ``charged`` tells whether it counts for the quota, ``charge`` why, or why not.
submissions = Table(
    "submissions",
    METADATA,
    _id(),
    _needed("code", String(12), unique=True),
    _reference("submitter_id", "submitters"),
    _needed("name", Text),
    _needed("source", Text),
    _needed("digest", String(64)),
    _optional("revision"),
    _needed("arrived", Moment),
    _needed("added", Moment),
    _needed("state", String(8)),
    _optional("reason"),
    _needed("baseline", Boolean, server_default=false()),
    _needed("charged", Boolean),
    _needed("charge", Text),
    _optional("description"),
    _optional("author"),
    _needed("tags", JSON),
    _needed("params", JSON),
    _needed("links", JSON),
    _needed("problems", JSON),
    _optional("remark"),
    Column("withdrawn", Moment),
    _optional("withdrawal"),
    _needed("scorer", Text),
    CheckConstraint(f"state IN {STATES}", name="state"),
    Index(None, "submitter_id", "arrived"),
    Index(None, "digest"),
)

# The files of a submission, under the names that they came with.
files = Table(
    "files",
    METADATA,
    _id(),
    _reference("submission_id", "submissions"),
    _needed("name", Text),
    _needed("sha256", String(64), index=True),
    _needed("bytes", BigInteger),
    UniqueConstraint("submission_id", "name"),
)

# The content of files by digest, packed by Zstandard as one stream and cut into parts.
blobs = Table(
    "blobs",
    METADATA,
    Column("sha256", String(64), primary_key=True),
    Column("part", Integer, primary_key=True),
    _needed("data", LargeBinary),
)

# An output for a test. ``variant`` is its name without folder, ``out`` and endings: "" or "model=a,k=3".
outputs = Table(
    "outputs",
    METADATA,
    _id(),
    _reference("submission_id", "submissions"),
    _reference("file_id", "files"),
    _needed("test", Text),
    _needed("variant", Text),
    _needed("params", JSON),
    UniqueConstraint("submission_id", "test", "variant"),
)

# A content scored with a metric. ``output_sha256`` is of the unpacked output, ``reference`` of all of the challenge
# that the score depends on, the answers among it. ``score`` is None for what is no number. ``losses`` are the line
# losses of the metric that ranks, little-endian doubles packed by Zstandard; ``low`` and ``high`` are the ends of its
# 95 % interval.
evaluations = Table(
    "evaluations",
    METADATA,
    _id(),
    _needed("test", Text),
    _needed("output_sha256", String(64)),
    _needed("reference", String(64)),
    _needed("metric", Text),
    _needed("version", Text),
    _needed("signature", Text),
    _needed("lines", Integer),
    Column("score", Double),
    Column("low", Double),
    Column("high", Double),
    Column("losses", LargeBinary),
    _needed("made", Moment),
    UniqueConstraint("test", "output_sha256", "reference", "metric", "version"),
)
scores = Table(
    "scores",
    METADATA,
    *_by_output(),
    Index(None, "evaluation_id"),
)

# What was an output's evaluation until it was scored again, and why it was.
history = Table(
    "history",
    METADATA,
    _id(),
    _reference("output_id", "outputs"),
    _needed("metric", Text),
    _reference("evaluation_id", "evaluations"),
    _needed("replaced", Moment),
    _needed("reason", Text),
    Index(None, "output_id"),
)

# Approximate randomisation of two evaluations (the lesser id first) of one test and metric; two-sided p.
comparisons = Table(
    "comparisons",
    METADATA,
    _reference("one_id", "evaluations", primary_key=True),
    _reference("other_id", "evaluations", primary_key=True),
    *_drawn(),
    _needed("p", Double),
)

# What an evaluation that is ranked brings to its comparisons: its mean line loss in nats, inf where a line counts as
# infinite; else, as little-endian doubles, that mean in each sample, where lines that change places count negatively.
# It can be made anew, and is forgotten when the evaluation is no longer ranked.
exchanges = Table(
    "exchanges",
    METADATA,
    _reference("evaluation_id", "evaluations", primary_key=True),
    *_drawn(),
    _needed("mean", Double),
    _needed("means", LargeBinary),
)

# What may be shown of an output: the evaluation whose figures stand for it (with a ladder that of an earlier one),
# rounded to the disclosed digits; None where nothing is disclosed, or where it is no number. They make the order.
disclosures = Table(
    "disclosures",
    METADATA,
    *_by_output(),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
)

# Single facts, such as under which settings the disclosures were made.
facts = Table("facts", METADATA, Column("name", Text, primary_key=True), _needed("value", Text))
