"""Lines of commands on a copy of the sample, which the tests of formats, progress and interrupts run."""

from geval_py.cli.commands import COMMANDS, parser_of

BIGRAM, UNIGRAM = "dev-0/out-model=bigram.tsv", "dev-0/out-model=unigram.tsv"
LINES = {  # and the words with which a line works for long, if it can
    "-t dev-0": "--bootstrap 100000",
    "-t dev-0 -B 20": None,
    "-t dev-0 -o bigram -l": "-s --output lines.tsv",
    "-t dev-0 -o bigram -w": "--bigrams --output features.tsv",
    f"-t dev-0 -o bigram -d {UNIGRAM}": None,
    f"-t dev-0 -o bigram --most-worsening-features {UNIGRAM}": None,
    "--validate --expected-directory .": "",
    "baseline -t dev-0": "",
    "board add board team": None,
    "board scan board uploads": None,
    "board show board -t dev-0": None,
    "board status board": None,
    "board note board CODE seen": None,  # CODE is the code of the first submission
    "board final board CODE --undo": None,
    "board rescore board": None,
    "board withdraw board CODE --reason none": None,
    "calibration -t dev-0 -o bigram": "",
    "challenge leaks .": "",
    "challenge make words.txt -o made": "",
    "challenge split train -o parts": "",
    "check -t dev-0": "--format json --output problems.json",
    "compare -t dev-0 --samples 20": "--detect 1 --output comparison.json",
    f"convert {BIGRAM} copy.tsv.xz": "",
    "lm perplexity text.arpa text.txt": None,
    "lm surprisal text.arpa text.txt": None,
    "lm train -o 5 words.txt --arpa words.arpa": "",
    "luck -t dev-0 --seeds 2": "--seeds 1000",
    "mix -t dev-0 bigram unigram": "--apply dev-0",
    "report -t dev-0 -o bigram": "--html report.html",
    "tune -t dev-0 -o bigram": "--apply dev-0",
}
LONG_LINES = [f"{line} {more}".split() for line, more in LINES.items() if more is not None]


def command_of(line):
    """Return the command of a line; "" is plain geval."""
    return max((name for name in ("", *COMMANDS) if f"{line} ".startswith(f"{name} "[name == "" :])), key=len)


def has_option(command, option):
    return option in parser_of(command)._option_string_actions


LINES_WITH_FORMATS = [
    line for line in LINES if has_option(command_of(line), "--format") and not line.startswith("--validate")
]
