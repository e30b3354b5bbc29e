"""``geval board``: collect, check, score, rank and publish submissions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from geval_py.cli.parsers import STATUS, Group, QuietParser, command_parser, using_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBMISSIONS, PAGES, TRANSFER, SERVER = (
    f"geval_py.cli.board.{name}" for name in ("submissions", "pages", "transfer", "server")
)
SUBCOMMANDS = {  # what each does, and where it is
    "init": ("make a board for a challenge", TRANSFER),
    "add": ("add submissions: folders, archives, git branches", SUBMISSIONS),
    "scan": ("add each submission of a folder that is new", SUBMISSIONS),
    "show": ("show a leaderboard", PAGES),
    "status": ("what is stored, out of date, rejected, failed, charged", PAGES),
    "withdraw": ("hide a submission, with a reason", SUBMISSIONS),
    "final": ("name the submissions that decide in the end", SUBMISSIONS),
    "note": ("put a public remark on a submission", SUBMISSIONS),
    "announce": ("tell everybody something, on the first page", SUBMISSIONS),
    "rescore": ("score again what is out of date", SUBMISSIONS),
    "site": ("build the pages that are published", PAGES),
    "export": ("write a board as one archive", TRANSFER),
    "import": ("make a board of such an archive", TRANSFER),
    "verify": ("rebuild a published site, and list what differs", TRANSFER),
    "serve": ("serve the pages, and take uploads", SERVER),
    "work": ("check and score what was uploaded to a server", SERVER),
    "invite": ("print a link with which somebody signs in to a server", SERVER),
    "token": ("print a token, with which a program submits", SERVER),
    "close": ("close an account of a server", SERVER),
    "verify-receipt": ("verify the signature of an upload's receipt", SERVER),
}
EXAMPLES = """\
  geval board init gazette-board --challenge gazette --answers hidden
  geval board scan gazette-board uploads   add what is new in a folder
  geval board status gazette-board         and see what became of it
  geval board show gazette-board           the leaderboard
  geval board add --help                   what a command does, and its options
"""
GROUP = Group(
    name="board",
    description="Collect submissions to a challenge, check, score and rank them, and publish the ranking.",
    examples=EXAMPLES,
    subcommands=SUBCOMMANDS,
    packages=("alembic", "jinja2", "markdown_it", "sqlalchemy"),
    extra="board",
)
SERVER_PACKAGES = ("anyio", "cryptography", "multipart", "python_multipart", "starlette", "uvicorn")
make_parser = GROUP.make_parser


def run(words: Sequence[str]) -> int:
    """Run ``geval board``; returns the exit status, raises GevalError.

    The server that forks the sandbox's children loads what they need while this process loads SQLAlchemy; only
    ``add`` and ``work`` are sure to need it.
    """
    if words[:1] in (["add"], ["work"]) and not {"-h", "--help"}.intersection(words):
        from geval_py.board.intake import sandbox

        sandbox.get_ready()
    if words and SUBCOMMANDS.get(words[0], ("", ""))[1] == SERVER:
        return using_extra(lambda: GROUP.run(words), f"geval board {words[0]}", SERVER_PACKAGES, "server")
    return GROUP.run(words)


def board_parser(name: str, description: str, examples: str, status: str = STATUS) -> QuietParser:
    """Make a sub-command's parser, with the board's folder as the first argument."""
    parser = command_parser(f"board {name}", description, examples, status)
    parser.add_argument("board", metavar="BOARD", help="the board's folder")
    return parser


def now() -> datetime:
    """Return this moment, in UTC."""
    return datetime.now(UTC)
