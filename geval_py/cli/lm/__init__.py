"""``geval lm``: n-gram language models; a file a sub-command."""

from __future__ import annotations

from geval_py.cli.parsers import Group

SUBCOMMANDS = {  # what each does, and where it is
    "train": ("estimate a model of texts, as KenLM's lmplz", "geval_py.cli.lm.train"),
    "perplexity": ("the perplexity of texts, as KenLM's query", "geval_py.cli.lm.perplexity"),
    "info": ("what is in a model", "geval_py.cli.lm.info"),
}
_EXAMPLES = """\
examples:
  geval lm train -o 3 text.txt --arpa text.arpa
  geval lm perplexity text.arpa other.txt
  geval lm info text.arpa
  geval lm train --help                what a command does, and its options

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""
GROUP = Group(
    name="lm",
    description="Train n-gram language models, and give the perplexity of texts.",
    examples=_EXAMPLES,
    subcommands=SUBCOMMANDS,
)
make_parser = GROUP.make_parser
run = GROUP.run
