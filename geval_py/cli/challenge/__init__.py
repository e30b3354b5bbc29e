"""``geval challenge``, a file a sub-command, and the modes ``--init`` and ``--validate``: what an organiser does."""

from __future__ import annotations

from geval_py.cli.parsers import Group

SUBCOMMANDS = {  # what each does, and where it is
    "make": ("a challenge, cut from texts", "geval_py.cli.challenge.make"),
    "split": ("a challenge, cut from items that are there", "geval_py.cli.challenge.split"),
    "leaks": ("what a challenge gives away of its hidden answers", "geval_py.cli.challenge.leaks"),
}
_EXAMPLES = """\
examples:
  geval challenge make texts -o my-challenge
  geval challenge leaks my-challenge --answers my-challenge-answers
  geval --validate --expected-directory my-challenge-answers
  geval challenge make --help          what a command does, and its options

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""
GROUP = Group(
    name="challenge",
    description="Cut a challenge from texts or from items, and find what it gives away.",
    examples=_EXAMPLES,
    subcommands=SUBCOMMANDS,
)
make_parser = GROUP.make_parser
run = GROUP.run
