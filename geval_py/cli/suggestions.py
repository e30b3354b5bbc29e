"""Suggestions for unknown command-line words ("did you mean …?"): synonyms, and words with a similar spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from geval_py.text import nearest

MIN_SIMILARITY = 0.58  # of 1: "bootstrap-samples" and "samples", but not "cross-tabs" and "threads"

# Names of options in other tools of the field, and names that people try first.
SYNONYMS = {
    "--answers": "--expected-file",
    "--bootstrap-resamples": "--bootstrap",
    "--bootstrap-samples": "--bootstrap",
    "--ci": "--bootstrap",
    "--compare-with": "--diff",
    "--confidence": "--bootstrap",
    "--cores": "--threads",
    "--csv": "--format csv",
    "--dataset": "--test-name",
    "--decimals": "--precision",
    "--digits": "--precision",
    "--features": "--worst-features",
    "--gold": "--expected-file",
    "--hypothesis": "--out-file",
    "--in": "--input-file",
    "--input": "--input-file",
    "--jobs": "--threads",
    "--json": "--format json",
    "--latex": "--format latex",
    "--lines": "--line-by-line",
    "--markdown": "--format markdown",
    "--metric-name": "--metric",
    "--ngrams": "--bigrams",
    "--only": "--select-metric",
    "--out": "--out-file",
    "--output": "--out-file",
    "--output-file": "--out-file",
    "--pairs": "--cartesian",
    "--percent": "--show-as-percentage",
    "--percentage": "--show-as-percentage",
    "--predictions": "--out-file",
    "--processes": "--threads",
    "--random-seed": "--seed",
    "--rank": "--by-score",
    "--resamples": "--bootstrap",
    "--reverse": "--reverse-sort",
    "--round": "--precision",
    "--sarif": "--format sarif",
    "--shapes": "--word-shapes",
    "--sort-by-score": "--by-score",
    "--split": "--test-name",
    "--test": "--test-name",
    "--test-set": "--test-name",
    "--truth": "--expected-file",
    "--vocab": "--vocabulary",
    "--workers": "--threads",
    "--worst": "--worst-features",
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

    >>> option_meant("--output", ["--out-file", "--output-width"]), option_meant("--smaples", ["--samples"])
    ('--out-file', '--samples')
    >>> option_meant("--compare", ["--cartesian"], ["compare"])
    'compare'
    """
    known = {name: name for name in names}
    meant = {other: ours for other, ours in SYNONYMS.items() if ours.partition(" ")[0] in known}
    name = word.partition("=")[0]
    similar = (command for command in commands if nearest(name.lstrip("-"), [command]))  # the dashes do not count
    meanings = meant | {f"--{command}": command for command in similar} | known
    begun = [option for option in known if name.startswith("--") and option.startswith(name)]
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
