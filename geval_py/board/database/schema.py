"""The tables of a board, the same in SQLite and PostgreSQL.

    submitters ──< submissions ──< files >── blobs            the submitted files, byte for byte
                        └──< outputs ──< scores >── evaluations ──< comparisons
                                   └──< disclosures >──┘      the public scores

The accounts of a server are tables of their own (geval_py.board.people.schema), which a board refers to by the name
of a team and by the id of an account, both texts.

An output is one file of a submission, for one test. An evaluation is one content scored with one metric; all outputs
with that content share it. An output's evaluation is in ``scores``; earlier ones stay in ``evaluations``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from secrets import token_hex
from typing import Any, TypeAlias

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
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
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from geval_py.board.submission import STATES

SCORED, REJECTED, FAILED = STATES
WAITING, REFUSED, DONE = "waiting", "refused", "done"  # what waits, is not accepted; a trial without errors
Kind: TypeAlias = TypeEngine[Any] | type[TypeEngine[Any]]


class Moment(TypeDecorator[datetime]):
    """A moment: in Python with its zone; stored in UTC as text of fixed length, which sorts by time."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Dialect) -> str | None:
        """Convert a moment to text; raises ValueError for one without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no zone")
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: str | None, _: Dialect) -> datetime | None:
        """Convert text to a moment in UTC."""
        return None if value is None else datetime.fromisoformat(value)


class SafeText(TypeDecorator[Any]):
    """A text, perhaps a stranger's: what no database stores is escaped."""

    impl: Any = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _: Dialect) -> Any:
        """Escape a value."""
        return escape_unstorable(value)


class SafeJson(SafeText):
    """A JSON document whose texts are escaped."""

    impl = JSON
    cache_ok = True


def escape_unstorable(value: Any) -> Any:
    r"""Escape NUL and lone surrogates, which no database stores, in strangers' texts at any depth.

    >>> escape_unstorable({"a\0": ["\udc80", 1]})
    {'a\\x00': ['\\udc80', 1]}
    """
    if isinstance(value, str):
        return value.replace("\0", r"\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {escape_unstorable(key): escape_unstorable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escape_unstorable(item) for item in value]
    return value


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def make_table(metadata: MetaData, name: str, *items: SchemaItem) -> Table:
    """Make a table; without another primary key it has an ``id``."""
    has_key = any(isinstance(item, Column) and item.primary_key for item in items)
    return Table(name, metadata, *([] if has_key else [key_column("id", Integer)]), *items)


def key_column(name: str, kind: Kind) -> Column[Any]:
    """Make a column of the primary key."""
    return Column(name, kind, primary_key=True)


def columns_of(kind: Kind, names: str, *, nullable: bool = False, **more: Any) -> list[Column[Any]]:
    """Make columns of a kind, whose names are separated by spaces."""
    return [Column(name, kind, nullable=nullable, **more) for name in names.split()]


def _reference(name: str, table: str, *, primary_key: bool = False) -> Column[int]:
    return Column(name, ForeignKey(f"{table}.id", ondelete="RESTRICT"), nullable=False, primary_key=primary_key)


_table = partial(make_table, METADATA)


# ``key`` is the casefolded name (intake.identity), the same for names that look the same; ``name`` is as first given.
submitters = _table(
    "submitters",
    *columns_of(SafeText, "key", unique=True),
    *columns_of(SafeText, "name"),
)

# A submission, from its first byte to its score. ``code``, 12 hexadecimal digits, names it on pages and receipts.
# ``name`` is the name of the folder, the archive, or the repository and branch; ``source`` where it came from;
# ``digest`` is over the names and digests of its files; ``revision`` a git commit. ``arrived_by`` says how the moment
# of arrival is known (operations.receipts). ``reason`` is one line on why it was rejected or failed, ``aside`` what
# only the organiser reads of that; ``problems`` are as in the JSON of the checker, without the rules that need the
# answers. ``fingerprint`` has the digests of the paths, as they were, at which a scan found it.
# ``cost`` is as how many submissions it counts for the quota, ``charge`` is the reason.
# ``final`` is when the submitter named it as one that decides, ``corrected`` when a rescoring last changed a score
# that is shown, or its state: what is hidden leaves no trace.
#
# What is uploaded to a server waits first. It is the content ``sha256`` of ``blobs`` until it is received;
# ``sent_name`` is the name of the file, ``test`` the test set of a single output, "" for an archive. ``receipt`` is
# signed. A ``trial`` is only checked, and never becomes a submission. A worker leases what waits until
# ``leased_until``, and renews the lease while it works; ``tries`` counts the leases, so that a worker that has lost
# its lease is told apart. At most one submission of a submitter is leased at a time. ``ended`` is when it was done.
submissions = _table(
    "submissions",
    *columns_of(String(12), "code", unique=True),
    _reference("submitter_id", "submitters"),
    *columns_of(SafeText, "name source charge scorer"),
    *columns_of(SafeText, "description author affiliation revision", server_default=""),
    *columns_of(SafeText, "arrived_by reason aside fingerprint remark withdrawal", server_default=""),
    *columns_of(SafeText, "sent_name test receipt", server_default=""),
    *columns_of(String(64), "digest"),
    *columns_of(String(64), "sha256", server_default=""),
    *columns_of(String(16), "account", server_default=""),
    *columns_of(BigInteger, "bytes", server_default="0"),
    *columns_of(Moment, "arrived added"),
    *columns_of(String(8), "state"),
    *columns_of(Boolean, "baseline trial", server_default=false()),
    *columns_of(Integer, "cost", server_default="1"),
    *columns_of(Integer, "tries", server_default="0"),
    *columns_of(SafeJson, "tags params links problems"),
    *columns_of(Moment, "withdrawn final corrected due started leased_until ended", nullable=True),
    CheckConstraint(f"state IN {(*STATES, WAITING, REFUSED, DONE)}", name="state"),
    Index(None, "submitter_id", "arrived"),
    Index(None, "digest"),
    Index(None, "state", "due"),
    Index(
        "uq_submissions_leased_submitter",
        "submitter_id",
        unique=True,
        sqlite_where=text("leased_until IS NOT NULL"),
        postgresql_where=text("leased_until IS NOT NULL"),
    ),
)

# Rescorings that an organiser, ``who``, asked the server for; a ``dry`` one changes no score. ``reason`` is what it
# printed. A worker leases one as it does a submission.
rescorings = _table(
    "rescorings",
    *columns_of(SafeText, "who"),
    *columns_of(SafeText, "reason", server_default=""),
    *columns_of(Boolean, "dry"),
    *columns_of(String(8), "state"),
    *columns_of(Integer, "tries", server_default="0"),
    *columns_of(Moment, "arrived due"),
    *columns_of(Moment, "started leased_until ended", nullable=True),
)

# The files of a submission, under their submitted names.
files = _table(
    "files",
    _reference("submission_id", "submissions"),
    *columns_of(SafeText, "name"),
    *columns_of(String(64), "sha256", index=True),
    *columns_of(BigInteger, "bytes"),
    UniqueConstraint("submission_id", "name"),
)

# What the organiser allowed a team in a phase ("" without phases): a later deadline, ``more`` submissions a day.
exceptions = _table(
    "exceptions",
    _reference("submitter_id", "submitters", primary_key=True),
    key_column("phase", Text),
    *columns_of(Moment, "until", nullable=True),
    *columns_of(Integer, "more", server_default="0"),
    *columns_of(SafeText, "reason"),
)

# The content of files by digest, compressed by Zstandard as one stream and cut into parts.
blobs = _table(
    "blobs",
    key_column("sha256", String(64)),
    key_column("part", Integer),
    *columns_of(LargeBinary, "data"),
)

# An output for a test. ``variant`` is its name without folder, ``out`` and endings: "" or "model=a,k=3".
# ``output_sha256`` is of its file as it was sent.
outputs = _table(
    "outputs",
    _reference("submission_id", "submissions"),
    _reference("file_id", "files"),
    *columns_of(SafeText, "test variant"),
    *columns_of(SafeJson, "params"),
    *columns_of(String(64), "output_sha256"),
    UniqueConstraint("submission_id", "test", "variant"),
)

# A content scored with a metric. ``output_sha256`` is of the file as it was sent, ``reference`` of all files of the
# challenge that the score depends on; for a part of a test (ranking.parts), it is of these and of the part. ``score``
# is None if it is not a number. ``losses`` are the line losses by the ranking metric, and ``documents`` the numbers
# of their documents, if there are some, packed by board.submission.pack; ``low`` and ``high`` are the ends of its
# 95 % interval.
evaluations = _table(
    "evaluations",
    *columns_of(SafeText, "test metric version signature"),
    *columns_of(String(64), "output_sha256 reference"),
    *columns_of(Integer, "lines"),
    *columns_of(Double, "score low high", nullable=True),
    *columns_of(LargeBinary, "losses documents", nullable=True),
    *columns_of(Moment, "made"),
    UniqueConstraint("test", "output_sha256", "reference", "metric", "version"),
)
scores = _table(
    "scores",
    _reference("output_id", "outputs", primary_key=True),
    key_column("metric", Text),
    _reference("evaluation_id", "evaluations"),
    Index(None, "evaluation_id"),
)

# The paired test of two evaluations (the lesser id first) of one test and metric; two-sided p.
comparisons = _table(
    "comparisons",
    _reference("one_id", "evaluations", primary_key=True),
    _reference("other_id", "evaluations", primary_key=True),
    key_column("samples", Integer),
    # SQLite's integers have 64 bits anyway.
    key_column("seed", BigInteger().with_variant(Integer(), "sqlite")),
    *columns_of(Double, "p"),
)

# The public figures of an output, which rank it: those of its evaluation (with a ladder, perhaps of an earlier
# output's), rounded to the disclosed digits; None if hidden, or not a number.
disclosures = _table(
    "disclosures",
    _reference("output_id", "outputs", primary_key=True),
    key_column("metric", Text),
    _reference("evaluation_id", "evaluations"),
    *columns_of(Double, "value low high", nullable=True),
)

# What the organiser announces on the pages and in the feed, in Markdown.
announcements = _table(
    "announcements",
    *columns_of(Moment, "moment"),
    *columns_of(SafeText, "text"),
)

# What is to be told to an account, by mail; ``number`` is for the receiver, who may get it twice. A try moves
# ``due`` to the next one.
notices = _table(
    "notices",
    *columns_of(String(16), "number", unique=True),
    *columns_of(String(16), "account"),
    *columns_of(SafeText, "reason", server_default=""),
    *columns_of(SafeJson, "event"),
    *columns_of(Moment, "made due"),
    *columns_of(Integer, "tries"),
    *columns_of(String(8), "state"),
    Index(None, "state", "due"),
)

# What organisers and submitters did with submissions and settings of the board.
audit = _table(
    "audit",
    *columns_of(Moment, "moment"),
    *columns_of(SafeText, "who action"),
    *columns_of(SafeText, "subject detail", server_default=""),
)

# One row about the board. By its ``key``, accounts are of this board. ``changed`` counts the changes of what the
# pages show; ``disclosed_with`` are the settings that the disclosures were made with. ``decided`` has, by phase, the
# deadline after which private scores were shown.
board = _table(
    "board",
    *columns_of(Moment, "created"),
    *columns_of(String(16), "key", default=lambda: token_hex(8)),
    *columns_of(Integer, "changed", server_default="0"),
    *columns_of(SafeText, "disclosed_with", server_default=""),
    *columns_of(SafeJson, "decided", server_default="{}"),
)


def pick(columns: Any, names: str) -> list[Any]:
    """Return the columns with some names, which are separated by spaces."""
    return [columns[name] for name in names.split()]


# The columns of the tables, for queries.
Submissions, Outputs, Files, Submitters = submissions.c, outputs.c, files.c, submitters.c
Evaluations, Scores, Disclosures, Blobs, Notices = evaluations.c, scores.c, disclosures.c, blobs.c, notices.c
RECEIVED = Submissions.state.in_(STATES), ~Submissions.trial  # submissions, no trials nor what waits or was refused
COUNTED = Submissions.state == SCORED, Submissions.withdrawn.is_(None)  # submissions that may be ranked
