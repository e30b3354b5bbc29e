"""``geval convert``: an output, written in another format."""

from __future__ import annotations

import argparse
import os

from geval_py.cli.commands import option, parser_maker, switch
from geval_py.cli.terminal import note, say
from geval_py.errors import UsageError
from geval_py.reading import formats
from geval_py.scoring import writing
from geval_py.tables.numbers import counted
from geval_py.text import named

make_convert_parser = parser_maker(
    "convert",
    """\
Write an output in another format, which the ending of the new file names: .tsv, .jsonl (JSON lines)
or .csv. It may be compressed, by one more ending (.xz, .gz, .bz2 or .zst). Parquet (.parquet), n-best lists
(.nbest, .words.nbest), lists in JSON (.json) and predictions of BabyLM (.predictions.json) are only read.""",
    """\
  geval convert out.parquet out.tsv    from lists of words and of probabilities
  geval convert predictions.csv out.tsv.xz
                                       class probabilities, as id,label,p or a column a class
""",
    option("source", metavar="IN", help="the output; - for TSV from standard input"),
    option("target", metavar="OUT", help="the file to write"),
    switch("--force", help="overwrite an existing file"),
)  # fmt: skip


def run_convert(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    if os.path.lexists(args.target) and not args.force:
        raise UsageError(
            message=f"{named(args.target)} is there already, and is left as it is\n  --force writes over it"
        )
    lines = writing.convert(args.source, args.target)
    note(*formats.notes_on(formats.as_lines(args.source)))
    say(f"wrote {named(args.target)}, {counted(lines, 'line')}")
