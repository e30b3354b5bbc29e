"""The tables of a board, the same in SQLite and PostgreSQL.

    submitters ──< submissions ──< files >── blobs            the submitted files, byte for byte
                        └──< outputs ──< scores >── evaluations ──< comparisons
                                   └──< disclosures >──┘      the public scores
                                   └──< history >──────┘      earlier scores

    submitters ──< accounts ──< secrets                            the server's: who may sign in
          └──────< jobs                                             what was sent, and the work on it

An output is one file of a submission, for one test. An evaluation is one content scored with one metric; all outputs
with that content share it. An output's evaluation is in ``scores``, earlier ones are in ``history``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from geval_py.board.submission import STATES

SCORED, REJECTED, FAILED = STATES
ROLES = (ORGANISER, SUBMITTER, READER) = ("organiser", "submitter", "reader")


class Moment(sa.TypeDecorator[datetime]):
    """A moment: in Python with its zone; stored in UTC as text of fixed length, which sorts by time."""

    impl = sa.String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: sa.Dialect) -> str | None:
        """Convert a moment to text; raises ValueError for one without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no zone")
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: str | None, _: sa.Dialect) -> datetime | None:
        """Convert text to a moment in UTC."""
        return None if value is None else datetime.fromisoformat(value)


METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _reference(name: str, table: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.ForeignKey(f"{table}.id", ondelete="RESTRICT"), nullable=False, primary_key=primary_key)


def _needed(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], **more: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **more)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [_needed(name, sa.Text) for name in names]


def _optional(*names: str) -> list[sa.Column[str]]:
    return [_needed(name, sa.Text, server_default="") for name in names]


def _moments(*names: str) -> list[sa.Column[datetime]]:
    return [sa.Column(name, Moment) for name in names]


def _figures(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Double) for name in names]


def _by_output() -> tuple[sa.Column[Any], ...]:
    by = (_reference("output_id", "outputs", primary_key=True), sa.Column("metric", sa.Text, primary_key=True))
    return (*by, _reference("evaluation_id", "evaluations"))


# ``key`` is the casefolded name (intake.identity), the same for names that look the same; ``name`` is as first given.
submitters = sa.Table(
    "submitters",
    METADATA,
    _id(),
    _needed("key", sa.Text, unique=True),
    _needed("name", sa.Text),
)

# One submission, stored in one transaction. ``code``, 12 hexadecimal digits, names it on pages and receipts.
# ``name`` is the name of the folder, the archive, or the repository and branch; ``source`` where it came from;
# ``digest`` is over the names and digests of its files; ``revision`` a git commit. ``arrived_by`` says how the moment
# of arrival is known (operations.receipts). ``reason`` is one line on why it was rejected or failed, ``aside`` what
# only the organiser reads of that; ``problems`` are as in the JSON of the checker, without the rules that need the
# answers. ``checked_with`` digests what the state depends on besides the files (operations.pipeline).
# ``cost`` is as how many submissions it counts for the quota, ``charge`` is the reason.
# ``final`` is when the submitter named it as one that decides.
submissions = sa.Table(
    "submissions",
    METADATA,
    _id(),
    _needed("code", sa.String(12), unique=True),
    _reference("submitter_id", "submitters"),
    *_texts("name", "source", "charge", "scorer"),
    *_optional("description", "author", "affiliation", "revision"),
    *_optional("arrived_by", "reason", "aside", "checked_with", "remark", "withdrawal"),
    _needed("digest", sa.String(64)),
    _needed("arrived", Moment),
    _needed("added", Moment),
    _needed("state", sa.String(8)),
    _needed("baseline", sa.Boolean, server_default=sa.false()),
    _needed("cost", sa.Integer, server_default="1"),
    *(_needed(name, sa.JSON) for name in ("tags", "params", "links", "problems")),
    *_moments("withdrawn", "final"),
    sa.CheckConstraint(f"state IN {STATES}", name="state"),
    sa.Index(None, "submitter_id", "arrived"),
    sa.Index(None, "digest"),
)

# The files of a submission, under their submitted names.
files = sa.Table(
    "files",
    METADATA,
    _id(),
    _reference("submission_id", "submissions"),
    _needed("name", sa.Text),
    _needed("sha256", sa.String(64), index=True),
    _needed("bytes", sa.BigInteger),
    sa.UniqueConstraint("submission_id", "name"),
)

# The content of files by digest, compressed by Zstandard as one stream and cut into parts.
blobs = sa.Table(
    "blobs",
    METADATA,
    sa.Column("sha256", sa.String(64), primary_key=True),
    sa.Column("part", sa.Integer, primary_key=True),
    _needed("data", sa.LargeBinary),
)

# An output for a test. ``variant`` is its name without folder, ``out`` and endings: "" or "model=a,k=3".
# ``output_sha256`` is of its lines, decompressed.
outputs = sa.Table(
    "outputs",
    METADATA,
    _id(),
    _reference("submission_id", "submissions"),
    _reference("file_id", "files"),
    *_texts("test", "variant"),
    _needed("params", sa.JSON),
    _needed("output_sha256", sa.String(64)),
    sa.UniqueConstraint("submission_id", "test", "variant"),
)

# A content scored with a metric. ``output_sha256`` is of the decompressed output, ``reference`` of all files of the
# challenge that the score depends on; for a part of a test (ranking.parts), it is of these and of the part. ``score``
# is None if it is not a number. ``losses`` are the line losses by the ranking metric, packed by
# board.submission.pack; ``low`` and ``high`` are the ends of its 95 % interval.
evaluations = sa.Table(
    "evaluations",
    METADATA,
    _id(),
    *_texts("test", "metric", "version", "signature"),
    _needed("output_sha256", sa.String(64)),
    _needed("reference", sa.String(64)),
    _needed("lines", sa.Integer),
    *_figures("score", "low", "high"),
    sa.Column("losses", sa.LargeBinary),
    _needed("made", Moment),
    sa.UniqueConstraint("test", "output_sha256", "reference", "metric", "version"),
)
scores = sa.Table(
    "scores",
    METADATA,
    *_by_output(),
    sa.Index(None, "evaluation_id"),
)

# The earlier evaluations of an output, each with the reason why it was scored again.
history = sa.Table(
    "history",
    METADATA,
    _id(),
    _reference("output_id", "outputs"),
    _reference("evaluation_id", "evaluations"),
    *_texts("metric", "reason"),
    _needed("replaced", Moment),
    sa.Index(None, "output_id"),
)

# Approximate randomisation of two evaluations (the lesser id first) of one test and metric; two-sided p.
comparisons = sa.Table(
    "comparisons",
    METADATA,
    _reference("one_id", "evaluations", primary_key=True),
    _reference("other_id", "evaluations", primary_key=True),
    sa.Column("samples", sa.Integer, primary_key=True),
    # SQLite's integers have 64 bits anyway.
    sa.Column("seed", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    _needed("p", sa.Double),
)

# The public figures of an output, which rank it: those of its evaluation (with a ladder, perhaps of an earlier
# output's), rounded to the disclosed digits; None if hidden, or not a number.
disclosures = sa.Table(
    "disclosures",
    METADATA,
    *_by_output(),
    *_figures("value", "low", "high"),
)

# The ladder of a submitter (or, negative, of a baseline's submission) in the table of a phase and test: its steps in
# order of arrival, each with the evaluation it was climbed with and the output that is shown from then on. A cache.
rungs = sa.Table(
    "rungs",
    METADATA,
    sa.Column("phase", sa.Text, primary_key=True),
    sa.Column("test", sa.Text, primary_key=True),
    sa.Column("climber", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    _needed("output_id", sa.Integer),
    _needed("evaluation_id", sa.Integer),
    _needed("shown_id", sa.Integer),
)

# The paths that were scanned, each with its fingerprint when it was stored. ``outcome`` is "received", or what the
# outcome depended on: the same path is tried again once that has changed.
scanned = sa.Table(
    "scanned",
    METADATA,
    sa.Column("path", sa.Text, primary_key=True),
    *_texts("fingerprint", "outcome"),
)

# What the organiser announces on the pages and in the feed, in Markdown.
announcements = sa.Table(
    "announcements",
    METADATA,
    _id(),
    _needed("moment", Moment),
    _needed("text", sa.Text),
)

# Who may sign in to the board's server. ``key`` is the casefolded name. An account submits as ``submitter_id``, its
# team, whose ``owner`` may invite others into it; organisers and readers may have none.
accounts = sa.Table(
    "accounts",
    METADATA,
    _id(),
    _needed("key", sa.Text, unique=True),
    *_texts("name"),
    *_optional("email"),
    _needed("role", sa.String(9)),
    sa.Column("submitter_id", sa.ForeignKey("submitters.id", ondelete="RESTRICT")),
    _needed("owner", sa.Boolean, server_default=sa.false()),
    _needed("made", Moment),
    sa.Column("disabled", Moment),
    _needed("mailed", sa.Boolean, server_default=sa.true()),
    sa.CheckConstraint(f"role IN {ROLES}", name="role"),
)

# Secrets are random, and stored as their sha256 alone. An invitation is used once: it makes an account with the name,
# role and team of its ``data`` or, if it has an ``account_id``, signs in to that account. Sessions and tokens are an
# account's; a sign-in is of somebody who is away at another site, with what is known of them.
secrets = sa.Table(
    "secrets",
    METADATA,
    _id(),
    _needed("digest", sa.String(64), unique=True),
    _needed("kind", sa.String(10)),
    sa.Column("account_id", sa.ForeignKey("accounts.id", ondelete="RESTRICT")),
    _needed("data", sa.JSON),
    _needed("made", Moment),
    _needed("expires", Moment),
    sa.Column("used", Moment),
    sa.Index(None, "account_id"),
)

# The accounts of other sites that sign in to accounts here.
identities = sa.Table(
    "identities",
    METADATA,
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    _reference("account_id", "accounts"),
    _needed("made", Moment),
)

# The work of a server: an upload, or a rescoring of what is out of date, which ``who``, an organiser, asked for.
# The content of an upload is in ``blobs`` until it is done; ``test`` is the test set of a single output, "" for an
# archive; ``number`` names it on its signed ``receipt``. A ``dry`` upload is only checked, and never becomes a
# submission; its ``problems`` are as in ``submissions``. A dry rescoring changes no score; its ``reason`` is what it
# printed.
# A worker leases a job until ``leased_until``, and renews the lease while it works. ``lease`` counts the leases, so
# that a worker that has lost its lease is told apart; ``deaths`` are leases that ended because a worker died. At most
# one job of a submitter is leased at a time.
jobs = sa.Table(
    "jobs",
    METADATA,
    _id(),
    _needed("kind", sa.String(9)),
    _needed("number", sa.String(16), unique=True),
    sa.Column("account_id", sa.ForeignKey("accounts.id", ondelete="RESTRICT")),
    sa.Column("submitter_id", sa.ForeignKey("submitters.id", ondelete="RESTRICT")),
    *_optional("who", "name", "test", "sha256", "reason", "receipt"),
    *(_needed(name, sa.Integer, server_default="0") for name in ("lease", "deaths")),
    _needed("bytes", sa.BigInteger, server_default="0"),
    _needed("dry", sa.Boolean, server_default=sa.false()),
    _needed("state", sa.String(8)),
    sa.Column("submission_id", sa.ForeignKey("submissions.id", ondelete="RESTRICT")),
    _needed("problems", sa.JSON, server_default="[]"),
    _needed("arrived", Moment),
    _needed("due", Moment),
    *_moments("started", "leased_until", "ended"),
    sa.Index(None, "state", "due"),
    sa.Index(None, "submitter_id", "arrived"),
    sa.Index(
        "uq_jobs_leased_submitter",
        "submitter_id",
        unique=True,
        sqlite_where=sa.text("state = 'leased'"),
        postgresql_where=sa.text("state = 'leased'"),
    ),
)

# What is to be told, to a ``webhook`` of board.yaml or to the address ``email``; ``number`` is for the receiver, who
# may get it twice. A try moves ``due`` to the next one.
notices = sa.Table(
    "notices",
    METADATA,
    _id(),
    _needed("number", sa.String(16), unique=True),
    *_optional("webhook", "email", "reason"),
    _needed("event", sa.JSON),
    _needed("made", Moment),
    _needed("due", Moment),
    _needed("tries", sa.Integer),
    _needed("state", sa.String(8)),
    sa.Index(None, "state", "due"),
)

# What organisers and submitters did on the server.
audit = sa.Table(
    "audit",
    METADATA,
    _id(),
    _needed("moment", Moment),
    *_texts("who", "action"),
    *_optional("subject", "detail"),
)

# How often something was tried, by what is limited and the start of the hour in which it was.
rates = sa.Table(
    "rates",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("hour", Moment, primary_key=True),
    _needed("tries", sa.Integer),
)

# One row about the board. ``changed`` counts the changes of what the pages show; ``disclosed_with`` are the settings
# that the disclosures were made with, ``compared_with`` the method of the comparisons.
board = sa.Table(
    "board",
    METADATA,
    _id(),
    _needed("created", Moment),
    _needed("changed", sa.Integer, server_default="0"),
    *_optional("disclosed_with", "compared_with"),
)
