"""``geval board``: submissions are collected, checked, scored, ranked and published; a file a sub-command."""

from __future__ import annotations

from geval_py.cli.parsers import Group

SUBCOMMANDS = {  # what each does, and where it is
    "init": ("make a board for a challenge", "geval_py.cli.board.init"),
    "add": ("add submissions: folders, archives, git branches", "geval_py.cli.board.add"),
    "scan": ("add each submission of a folder that is new", "geval_py.cli.board.scan"),
    "show": ("show a leaderboard", "geval_py.cli.board.show"),
    "status": ("what is stored, out of date, rejected, failed, charged", "geval_py.cli.board.status"),
    "withdraw": ("hide a submission, with a reason", "geval_py.cli.board.withdraw"),
    "note": ("put a public remark on a submission", "geval_py.cli.board.note"),
    "rescore": ("score again what is out of date", "geval_py.cli.board.rescore"),
    "site": ("build the pages that are published", "geval_py.cli.board.site"),
    "export": ("write a board as one archive", "geval_py.cli.board.export"),
    "import": ("make a board of such an archive", "geval_py.cli.board.importing"),
    "verify": ("rebuild a published site, and say what differs", "geval_py.cli.board.verify"),
}
_EXAMPLES = """\
examples:
  geval board init gazette-board --challenge gazette --answers hidden
  geval board scan gazette-board uploads   add what is new in a folder
  geval board status gazette-board         and see what became of it
  geval board show gazette-board           the leaderboard
  geval board add --help                   what a command does, and its options

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""
GROUP = Group(
    name="board",
    description="Collect submissions to a challenge, check, score and rank them, and publish the ranking.",
    examples=_EXAMPLES,
    subcommands=SUBCOMMANDS,
    packages=("alembic", "jinja2", "markdown_it", "sqlalchemy"),
    extra="board",
)
make_parser = GROUP.make_parser
run = GROUP.run
