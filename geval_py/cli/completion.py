"""``geval completion``: a script by which a shell completes commands, options and their values.

The script runs geval whenever TAB is pressed, with what was typed in the environment; argcomplete reads that.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection
from glob import glob

from geval_py.cli.commands import COMMANDS, command, option, parser_of, summaries
from geval_py.cli.help import TOPICS
from geval_py.reading.outputs import BASELINES, find_outputs, short_names
from geval_py.reading.schemes import TOKENIZERS
from geval_py.scoring.metrics.registry import METRICS
from geval_py.tables.formats import FORMATS

SHELLS = ("bash", "zsh", "fish")
CHOICES: dict[str, Collection[str]] = {  # for the values of options, by field
    "alt_metrics": METRICS,
    "format": FORMATS,
    "metrics": METRICS,
    "model": BASELINES,
    "tokenizer": TOKENIZERS,
}
OUTPUTS = ("baseline", "diff", "out_files", "outputs")  # fields whose values are outputs, by short names or as files
TEST_SETS = ("test_name", "tests")  # fields of options whose values are names of folders


@command(
    "completion",
    "Write a script by which a shell completes commands, options, metrics and files.",
    """\
  eval "$(geval completion bash)"      in ~/.bashrc
  eval "$(geval completion zsh)"       in ~/.zshrc, behind compinit
  geval completion fish >~/.config/fish/completions/geval.fish
""",
    option("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS)),
    status="Exit status: 0 success, 2 an error in the command line.",
)
def run_completion(args: argparse.Namespace) -> None:
    """Run the command."""
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["geval"], shell=args.shell))


def complete() -> None:
    """Print for the shell what may stand at the cursor, and exit."""
    import argcomplete
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    words = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].rpartition(" ")[0].split()[1:]
    name = next((name for name in (" ".join(words[:2]), *words[:1]) if name in COMMANDS), "")
    os.environ["_ARGCOMPLETE"] = str(1 + len(name.split()))  # the number of words that the parser does not see
    parser = parser_of(name)
    if not name:
        parser.add_argument("command", nargs="?")
    choices = CHOICES | {"command": tuple(summaries(name) or (*summaries(), *TOPICS))}

    def outputs(prefix: str, **_: object) -> list[str]:
        names = short_names([output for folder in glob("*/") for output in find_outputs(folder)])
        return [*names, *FilesCompleter()(prefix)]

    for action in parser._actions:
        if action.dest in choices:
            action.choices = action.choices or choices[action.dest]
        elif action.dest in OUTPUTS:
            vars(action)["completer"] = outputs
        elif action.metavar == "DIR" or action.dest in TEST_SETS:
            vars(action)["completer"] = DirectoriesCompleter()
    argcomplete.autocomplete(parser, always_complete_options=False)
