"""``geval board``: collect, check, score, rank and publish submissions."""

from __future__ import annotations

from datetime import UTC, datetime

from geval_py.cli.commands import group, option

group(
    "board",
    "Collect submissions to a challenge, check, score and rank them, and publish the ranking.",
    """\
  geval board init gazette-board --challenge gazette --answers hidden
  geval board scan gazette-board uploads   add what is new in a folder
  geval board status gazette-board         what was stored, rejected or failed
  geval board show gazette-board           the leaderboard
  geval board add --help                   what a command does, and its options
""",
)
BOARD = option("board", metavar="BOARD", help="the board's folder")
TEAMS = option("teams", nargs="+", metavar="TEAM", help="the name of a team, as on the leaderboard")
REASON = option("--reason", default="", metavar="TEXT", help="the reason, which only the organiser sees")


def now() -> datetime:
    """Return this moment, in UTC."""
    return datetime.now(UTC)
