"""``geval convert``: an output in another format, written as TSV."""

from __future__ import annotations

import argparse

from geval_py.cli.commands import check_free, command, option, switch
from geval_py.cli.terminal import note, say
from geval_py.scoring import writing
from geval_py.text import counted, named


@command(
    "convert",
    """\
Write an output in another format, JSON lines (.jsonl, .ndjson), JSON (.json), Parquet (.parquet, .pq) or CSV
(.csv), as TSV. The ending of the new file is .tsv, perhaps with that of a compression (.xz, .gz, .bz2 or .zst).""",
    """\
  geval convert out.parquet out.tsv    rows with lists of words and of probabilities
  geval convert predictions.csv out.tsv.xz
                                       class probabilities, as id,label,p or a column a class
""",
    option("source", metavar="IN", help="the output; - for TSV from standard input"),
    option("target", metavar="OUT", help="the TSV file to write"),
    switch("--force", help="overwrite an existing file"),
)  # fmt: skip
def run_convert(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    check_free(args.target, args)
    lines, notes = writing.convert(args.source, args.target)
    note(*(f"{named(args.source)}: {text}" for text in notes))
    say(f"wrote {named(args.target)}, {counted(lines, 'line')}")
