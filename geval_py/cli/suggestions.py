"""Suggestions for unknown command-line words ("did you mean …?"): synonyms, and words with a similar spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from geval_py.text import nearest

MIN_SIMILARITY = 0.58  # of 1: "bootstrap-samples" and "samples", but not "cross-tabs" and "threads"

# Names of options in other tools of the field, and names that people try first, by what to write here.
SYNONYMS = {
    f"--{name}": ours
    for ours, names in {
        "--bigrams": "ngrams",
        "--bootstrap": "bootstrap-resamples bootstrap-samples ci confidence resamples",
        "--by-score": "rank sort-by-score",
        "--cartesian": "pairs",
        "--diff": "compare-with",
        "--expected-file": "answers gold truth",
        "--format csv": "csv",
        "--format json": "json",
        "--format latex": "latex",
        "--format markdown": "markdown",
        "--format sarif": "sarif",
        "--html": "output",
        "--input-file": "in input",
        "--line-by-line": "lines",
        "--metric": "metric-name",
        "--out-file": "hypothesis out output-file predictions",
        "--precision": "decimals digits round",
        "--reverse-sort": "reverse",
        "--seed": "random-seed",
        "--select-metric": "only",
        "--show-as-percentage": "percent percentage",
        "--test-name": "dataset split test test-set",
        "--threads": "cores jobs processes workers",
        "--vocabulary": "vocab",
        "--word-shapes": "shapes",
        "--worst-features": "features worst",
    }.items()
    for name in names.split()
}
PLAIN = "geval, without a command"
# Names of commands in other tools, and what to write here.
OTHER_COMMANDS = {
    "bootstrap": "geval --bootstrap 1000",
    "completions": "geval completion",
    "demo": "geval sample",
    "diff": "geval --diff OTHER",
    "eval": PLAIN,
    "evaluate": PLAIN,
    "example": "geval sample",
    "explain": "geval --worst-features",
    "features": "geval --worst-features",
    "fix": "geval check --fix",
    "lines": "geval --line-by-line",
    "lint": "geval check",
    "list": "geval --list-metrics",
    "metrics": "geval --list-metrics",
    "rank": "geval --by-score",
    "run": PLAIN,
    "score": PLAIN,
    "test": "geval -t TEST",
    "tokenize": "geval --just-tokenize",
    "validate": "geval check",
    "verify": "geval check",
    "version": "geval --version",
    "versus": "geval compare",
}


def option_meant(word: str, names: Iterable[str], commands: Iterable[str] = ()) -> str | None:
    """Return the option or command that an unknown option probably means; None if none is similar.

    >>> option_meant("--predictions", ["--out-file", "--precision"]), option_meant("--smaples", ["--samples"])
    ('--out-file', '--samples')
    >>> option_meant("--compare", ["--cartesian"], ["compare"])
    'compare'
    """
    options = {name: name for name in names}
    meant = {other: ours for other, ours in SYNONYMS.items() if ours.partition(" ")[0] in options}
    name = word.partition("=")[0]
    similar = (command for command in commands if nearest(name.lstrip("-"), [command]))  # the dashes do not count
    meanings = meant | {f"--{command}": command for command in similar} | options
    begun = [option for option in options if name.startswith("--") and option.startswith(name)]
    return begun[0] if begun and name not in meanings else _meant(name, meanings)


def command_meant(word: str, commands: Iterable[str]) -> str | None:
    """Return the command that an unknown one probably means, or its equivalent; None if none is similar.

    >>> command_meant("comapre", ["check", "compare"]), command_meant("lint", ["check", "compare"])
    ('compare', 'geval check')
    """
    return _meant(word, OTHER_COMMANDS | {command: command for command in commands})


def _meant(word: str, meanings: Mapping[str, str]) -> str | None:
    """Return the meaning of a word, or of the word most like it; dashes at the beginning do not make words alike."""
    if word in meanings:
        return meanings[word]
    bare = {name.lstrip("-"): meaning for name, meaning in meanings.items()}
    close = nearest(word.lstrip("-"), bare, MIN_SIMILARITY)
    return None if close is None else bare[close]
