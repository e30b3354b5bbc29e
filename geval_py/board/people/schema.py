"""The tables of the accounts, the same in SQLite and PostgreSQL; several boards may share them.

An account is of a person on one board, which it names by the board's key: its team and its role there. Sessions,
tokens, links and sign-ins by other sites are the person's on one board; a link for all boards is a link for each.
"""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Index, MetaData, String, Text, UniqueConstraint, false, text, true

from geval_py.board.database import schema
from geval_py.board.database.schema import Moment, SafeJson, SafeText, columns_of, key_column, make_table

METADATA = MetaData(naming_convention=schema.METADATA.naming_convention)
ROLES = (ORGANISER, SUBMITTER, READER) = ("organiser", "submitter", "reader")
ID_LENGTH = 16  # hexadecimal digits

# Who may sign in to a board, from their invitation on; ``joined`` is when they first did. ``key`` and ``team_key``
# are the casefolded names. ``made_by`` is the account that invited them, if any. An account submits for its ``team``,
# whose ``owner`` may invite others into it; organisers and readers may have none.
accounts = make_table(
    METADATA,
    "accounts",
    key_column("id", String(ID_LENGTH)),
    *columns_of(String(ID_LENGTH), "board person"),
    *columns_of(SafeText, "key name"),
    *columns_of(SafeText, "email student_id team_key team made_by", server_default=""),
    *columns_of(String(9), "role"),
    *columns_of(Boolean, "owner", server_default=false()),
    *columns_of(Moment, "made"),
    *columns_of(Moment, "joined closed", nullable=True),
    *columns_of(Boolean, "mailed", server_default=true()),
    UniqueConstraint("board", "person"),
    Index(
        "uq_accounts_names",
        *("board", "team_key", "key"),
        unique=True,
        sqlite_where=text("team_key <> ''"),
        postgresql_where=text("team_key <> ''"),
    ),
    CheckConstraint(f"role IN {ROLES}", name="role"),
)

# Which team an account was in, and when: grades are of the teams at the deadline.
memberships = make_table(
    METADATA,
    "memberships",
    *columns_of(String(ID_LENGTH), "board account"),
    *columns_of(SafeText, "team_key team"),
    *columns_of(Moment, "since"),
    *columns_of(Moment, "until", nullable=True),
    Index(None, "account"),
)

# Secrets are random, and stored as their sha256 alone, for each board on which they are valid. ``made_by`` is the
# account that made a link for somebody else.
secrets = make_table(
    METADATA,
    "secrets",
    *columns_of(String(64), "digest"),
    *columns_of(String(10), "kind"),
    *columns_of(String(ID_LENGTH), "person", index=True),
    *columns_of(String(ID_LENGTH), "board"),
    *columns_of(String(ID_LENGTH), "made_by", server_default=""),
    *columns_of(SafeJson, "data"),
    *columns_of(Moment, "made expires"),
    UniqueConstraint("digest", "board"),
)

# The accounts of other sites by which a person signs in.
identities = make_table(
    METADATA,
    "identities",
    *columns_of(Text, "issuer subject"),
    *columns_of(String(ID_LENGTH), "board", server_default=""),
    *columns_of(String(ID_LENGTH), "person", index=True),
    *columns_of(Moment, "made"),
    UniqueConstraint("issuer", "subject", "board"),
)

# What was done with accounts.
account_log = make_table(
    METADATA,
    "account_log",
    *columns_of(String(ID_LENGTH), "board"),
    *columns_of(Moment, "moment"),
    *columns_of(SafeText, "who action"),
    *columns_of(SafeText, "subject detail", server_default=""),
    Index(None, "board"),
)
