"""``geval completion``: a script by which a shell completes commands, options and their values."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from geval_py.cli import commands
from geval_py.cli.help import TOPICS
from geval_py.errors import UsageError
from geval_py.modelling.baselines import BASELINES
from geval_py.reading.preparation import TOKENIZERS
from geval_py.scoring.metrics.registry import METRICS
from geval_py.tables.formats import FORMATS

SHELLS = ("bash", "zsh", "fish")
FILES, FOLDERS = ("FILE", "OTHER", "OUT", "PATH", "TEXT"), ("DIR",)  # how values are named in the help
CHOICES = {  # for the values of options, by field
    "alt_metrics": tuple(METRICS),
    "command": (*commands.COMMANDS, *TOPICS),
    "format": tuple(FORMATS),
    "metrics": tuple(METRICS),
    "model": tuple(BASELINES),
    "tokenizer": tuple(TOKENIZERS),
}
TEST_SETS = ("test_name", "tests")  # fields of options whose values are names of folders
OUTPUTS = ("baseline", "diff", "out_files", "outputs")  # fields whose values are outputs, by short names or as files
OUTPUT_NAMES = {  # functions that offer the outputs of all test sets; no name of a file is evaluated
    "bash": """\
_geval_outputs() {
  local path name
  for path in */out*.tsv*; do
    [ -e "$path" ] && [[ ${path##*/} != out-header.tsv* ]] || continue
    name=$(printf '%s' "${path##*/}" | sed 's/\\.tsv.*//; s/^out-//')
    [[ $1 == *=* ]] || name=$(printf '%s' "$name" | sed 's/[^,=]*=//g')
    [[ $name != "$1"* ]] || printf '%s\\n' "$name"
  done | sort -u
  compgen -f -- "$1"
}
""",
    "zsh": """\
_geval_outputs() {
  local -a names
  local name
  for name in */out*.tsv*(N:t); do
    [[ $name != out-header.tsv* ]] || continue
    names+=("$(print -rn -- "$name" | sed 's/\\.tsv.*//; s/^out-//; s/[^,=]*=//g')")
  done
  compadd -a names
  _files
}
""",
    "fish": """\
function _geval_outputs
  for path in */out*.tsv*
    string match -q '*/out-header.tsv*' -- $path; and continue
    path basename -- $path | string replace -r '\\.tsv.*' '' | string replace -r '^out-' '' | string replace -ra
    '[^,=]*=' ''
  end
  __fish_complete_path (commandline -ct)
end
""",
}
WHOLE_WORDS = """\

# bash ends words at "=", too: join them, and offer what follows the last "=".
_geval() {
  local -a words=()
  local n word whole count=0 at=0 last="${COMP_WORDS[COMP_CWORD]}"
  for n in "${!COMP_WORDS[@]}"; do
    word="${COMP_WORDS[n]}"
    if [[ $count -gt 0 && ( $word == = || ${COMP_WORDS[n-1]} == = ) ]]; then
      words[count-1]+="$word"
    else
      words[count]="$word"
      count=$((count + 1))
    fi
    [[ $n != "$COMP_CWORD" ]] || at=$((count - 1))
  done
  whole="${words[at]}"
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$at
  _shtab_geval
  [[ $last != = ]] || last=""
  COMPREPLY=("${COMPREPLY[@]#"${whole%"$last"}"}")
}
complete -o bashdefault -F _geval geval
"""


make_completion_parser = commands.parser_maker(
    "completion",
    "Write a script by which a shell completes commands, options, metrics and files.",
    """\
  eval "$(geval completion bash)"      in ~/.bashrc
  eval "$(geval completion zsh)"       in ~/.zshrc, behind compinit
  geval completion fish >~/.config/fish/completions/geval.fish
""",
    commands.option("shell", nargs="?", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS)),
    status="Exit status: 0 success, 2 an error in the command line.",
)


def run_completion(args: argparse.Namespace) -> None:
    """Run the command; raises UsageError."""
    if args.shell is None:
        raise UsageError(message=f"a shell is missing: {', '.join(SHELLS)}\n  for example geval completion bash")
    import shtab

    parser = commands.parser_of()
    _complete_values(parser)
    below = parser.add_subparsers(metavar="COMMAND")
    for name, (summary, _) in commands.COMMANDS.items():
        own = commands.parser_of(name)
        if name in commands.SUBCOMMANDS:
            own = commands.parser_maker(name, "", "")()
            below_command = own.add_subparsers(metavar="COMMAND")
            for subcommand, (summary_of_it, _) in commands.SUBCOMMANDS[name].items():
                parents = []
                with suppress(UsageError):  # its extra is not installed
                    parents = [commands.parser_of(name, subcommand)]
                    _complete_values(*parents)
                below_command.add_parser(subcommand, parents=parents, help=summary_of_it)
        _complete_values(own)
        below.add_parser(name, parents=[own], help=summary)
    script = shtab.complete(parser, args.shell, preamble=OUTPUT_NAMES[args.shell])
    sys.stdout.write(f"{script}\n{WHOLE_WORDS if args.shell == 'bash' else ''}")


def _complete_values(parser: argparse.ArgumentParser) -> None:
    import shtab

    for action in parser._actions:
        if action.dest in CHOICES:
            action.choices = CHOICES[action.dest] if action.choices is None else action.choices
        elif action.dest in OUTPUTS:
            functions = {"bash": "_geval_outputs", "zsh": "_geval_outputs", "fish": "(_geval_outputs)"}
            vars(action)["complete"] = functions
        elif action.metavar in FILES:
            vars(action)["complete"] = shtab.FILE
        elif action.metavar in FOLDERS or action.dest in TEST_SETS:
            vars(action)["complete"] = shtab.DIRECTORY
