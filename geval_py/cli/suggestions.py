"""Suggestions for unknown command-line words: commands below others, synonyms, terms, and words spelt alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

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
        "--vocabulary": "limit_vocab_file vocab",
        "--word-shapes": "shapes",
        "--worst-features": "features worst",
    }.items()
    for name in names.split()
} | {
    "-m": "--model",
    "-S": "--arpa FILE, without -S: a model is trained in memory",
    "--text": "--arpa FILE TEXT",
}
PLAIN = "geval, without a command"
# Names of commands in other tools, and words of people who look for one, by what to write here.
OTHER_COMMANDS = {
    name: ours
    for ours, names in {
        PLAIN: "eval evaluate run score",
        "geval --bootstrap 1000": "bootstrap",
        "geval --by-score": "rank",
        "geval --diff OTHER": "diff",
        "geval --just-tokenize": "tokenize",
        "geval --line-by-line": "lines",
        "geval --list-metrics": "list metrics",
        "geval --version": "version",
        "geval --worst-features": "features",
        "geval -t TEST": "test",
        "geval challenge make or geval board init": "create new",
        "geval check": "lint verify",
        "geval check --fix": "fix",
        "geval compare": "significance versus",
        "geval completion": "completions",
        "geval lm perplexity": "ppl query",
        "geval lm train": "lmplz",
        "geval help CODE": "explain",
        "geval sample": "demo example",
        "geval submit": "push send upload",
    }.items()
    for name in names.split()
}


def option_meant(word: str, names: Iterable[str], commands: Iterable[str] = ()) -> str | None:
    """Return the option or command that an unknown option probably means; None if none is similar.

    >>> option_meant("--predictions", ["--out-file", "--precision"]), option_meant("--smaples", ["--samples"])
    ('--out-file', '--samples')
    >>> option_meant("--compare", ["--cartesian"], ["compare"])
    'geval compare'
    """
    options = {name: name for name in names}
    meant = {other: ours for other, ours in SYNONYMS.items() if ours.partition(" ")[0] in options}
    name = word.partition("=")[0]
    similar = (command for command in commands if nearest(name.lstrip("-"), [command]))  # the dashes do not count
    meanings = meant | {f"--{command}": f"geval {command}" for command in similar} | options
    begun = [option for option in options if name.startswith("--") and option.startswith(name)]
    return begun[0] if begun and name not in meanings else _meant(name, meanings)


def command_meant(word: str, commands: Iterable[str], options: Iterable[str] = ()) -> str | None:
    """Return what to write in place of an unknown command; None if nothing is similar.

    That is a command below another, an option, what other tools call so, a term of the glossary, or a similar name.

    >>> command_meant("serve", ["board serve", "compare"]), command_meant("comapre", ["board serve", "compare"])
    ('geval board serve', 'geval compare')
    >>> command_meant("init", ["board init"], ["--init"]), command_meant("lint", ["compare"])
    ('geval board init or geval --init', 'geval check')
    """
    names = {name: f"geval {name}" for name in commands}
    last_words = {name.rpartition(" ")[2]: meaning for name, meaning in names.items()}
    named = [meaning for name, meaning in names.items() if word == name.rpartition(" ")[2]]
    named += [f"geval {option}" for option in options if option == f"--{word}"]
    if not named and word.casefold() in glossary() and word not in OTHER_COMMANDS:
        return f"geval help {word}"
    return " or ".join(named) or _meant(word, OTHER_COMMANDS | last_words | names)


@cache
def glossary() -> dict[str, str]:
    """Return the texts of the glossary, in Markdown, by their terms; none if it was not installed."""
    from pathlib import Path  # which a score need not wait for

    package = Path(__file__).parents[1]
    places = (package / "sample/docs/glossary.md", package.parent / "docs/glossary.md")
    text = next((path.read_text(encoding="utf-8") for path in places if path.exists()), "")
    _, *sections = re.split(r"(?m)^## (.+)\n", text)
    return dict(zip(map(str.casefold, sections[::2]), sections[1::2], strict=True))


def _meant(word: str, meanings: Mapping[str, str]) -> str | None:
    """Return the meaning of a word, or of the word most like it; dashes at the beginning do not make words alike."""
    if word in meanings:
        return meanings[word]
    bare = {name.lstrip("-"): meaning for name, meaning in meanings.items()}
    close = nearest(word.lstrip("-"), bare, MIN_SIMILARITY)
    return None if close is None else bare[close]
