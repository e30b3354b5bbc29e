"""Options, on the command line and in a challenge's config.txt: how words are read into values.

In this order: the limits and defaults of random sampling, which options and functions share; an Option, and the
reader of words; OPTIONS, the table of all options that a config.txt may hold; config.txt, and the Task that it
describes. What only the command line shows and checks is in :mod:`geval_py.cli.options`.
"""

from __future__ import annotations

import os
import re

from geval_py.errors import ConfigError, UnreadableFileError, UsageError
from geval_py.reading import sources, splits
from geval_py.reading.answers import find_answers
from geval_py.text import SPACES, nearest, split_words, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


DEFAULT_SAMPLES = 10_000  # a p-value of 0.05 is then right to about 0.004, an interval's end to a third of a percent
MOST_SAMPLES = 1_000_000
DEFAULT_SEED = 12345


def check_sampling(samples: int, seed: int = DEFAULT_SEED) -> None:
    """Raise UsageError unless there are 1 to MOST_SAMPLES samples and the seed is 0 or more."""
    if samples < 1:
        raise UsageError(message="the number of bootstrap samples is at least 1")
    if samples > MOST_SAMPLES:
        raise UsageError(message=f"the number of samples is at most {MOST_SAMPLES}, not {samples}")
    if seed < 0:
        raise UsageError(message="the seed is a whole number from 0 on")


class Option(Value):
    """One option: its names, and the field that its value goes to.

    ``read`` turns a word into the value, or raises ValueError with a sentence about it; an option without it is a
    switch. A ``repeatable`` option collects its values; those of the command line are added to those of config.txt
    or, if it ``replaces``, take their place. An option with ``once`` may be given once on the command line and once
    in config.txt.
    """

    names: tuple[str, ...]
    field: str
    read: Callable[[str], object] | None = None
    repeatable: bool = False
    replaces: bool = False
    once: bool = False

    @property
    def long_name(self) -> str:
        return self.names[-1]

    @property
    def title(self) -> str:
        """All names, as in ``-t/--test-name``."""
        return "/".join(self.names)


def natural_number(text: str) -> int:
    """Read a whole number of up to 15 digits; raises ValueError."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def read_words(words: Sequence[str], options: Sequence[Option]) -> tuple[dict[str, object], list[str]]:
    """Return the values of the options that words name, by field, and the words that are no option.

    If an option is named twice, the later value counts. Raises UsageError.
    """
    by_name = {name: option for option in options for name in option.names}
    values: dict[str, object] = {}
    strays: list[str] = []
    rest = iter(words)
    for word in rest:
        named = list(_named(word, by_name))
        strays += [] if named else [word]
        for option, value in named:
            _take(option, value, rest, values)
    return values, strays


def _named(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    name, equals, value = word.partition("=")
    if word in by_name:
        yield by_name[word], None
    elif name in by_name:
        yield by_name[name], value if equals else None
    elif word[:1] == "-" and word[1:2] != "-":
        yield from _letters(word, by_name)


def _letters(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    """Yield the options in a word such as ``-lsp2``: switches, and at the end at most one option with a value."""
    found: list[tuple[Option, str | None]] = []
    for place, letter in enumerate(word[1:], 2):
        option = by_name.get(f"-{letter}")
        if option is None:
            return
        if option.read is not None:
            found.append((option, word[place:].removeprefix("=") or None))
            break
        found.append((option, None))
    yield from found


def _take(option: Option, value: str | None, rest: Iterator[str], values: dict[str, object]) -> None:
    """Add an option's value, which may be the next word of ``rest``."""
    if option.read is None:
        if value is not None:
            raise _wrong(option, f"ignored explicit argument {value!r}")
        values[option.field] = True
        return
    if value is None:
        value = next(rest, None)
        if value is None or _looks_like_an_option(value):
            raise _wrong(option, "expected one argument")
    try:
        read = option.read(value)
    except ValueError as error:
        raise _wrong(option, str(error)) from error
    if option.once and option.field in values:
        raise _wrong(option, f"given twice: {values[option.field]} and {value}; give one")
    before = values.get(option.field, ())
    values[option.field] = (*before, read) if option.repeatable and isinstance(before, tuple) else read


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and " " not in word and not re.fullmatch(r"-[0-9]*\.?[0-9]+", word)


def _wrong(option: Option, message: str) -> UsageError:
    message = visible(f"argument {option.title}: {message}")
    return UsageError(message=f"{message}\n  geval --help shows the options")


# The table: every option of ``geval`` without a command. config.txt may hold any of them.

MOST_DIGITS = 1100  # after the point: the smallest double has 1074
AUTHORING = ("init", "validate")  # modes that score no output
OF_COMMAND_LINE = ("caption", "label", "names", "challenges")  # of one table: no challenge has them

# GEval's options that geval-py does not have. No score depends on the ignored ones, so config.txt may hold them.
SUBMIT = "--submit"
_NO_ENSEMBLES = (
    "{} is not available in geval-py: in GEval it is for models that choose one of several outputs for each line\n"
    "  geval mix mixes outputs; geval baseline and geval lm train language models"
)
_SUBMITS = (
    "{} is not available in geval-py: it is for Gonito servers, which fetch a branch\n"
    "  geval submit FILE --board URL sends an output to the server of a board, with the token in GEVAL_BOARD_TOKEN;\n"
    "  for Gonito, commit the output and run git push"
)
IGNORED = ("--gonito-host", "--gonito-git-annex-remote", "--token")
NOT_AVAILABLE = {
    SUBMIT: _SUBMITS.format(SUBMIT),
    "--train": _NO_ENSEMBLES.format("--train"),
    "--infer": _NO_ENSEMBLES.format("--infer"),
}


def digits_after_point(text: str) -> int:
    """Read a precision; raises ValueError."""
    digits = natural_number(text)
    if digits > MOST_DIGITS:
        raise ValueError(f"{digits} digits are too many; a double has less than {MOST_DIGITS}")
    return digits


def _threads(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,3}", text):
        raise ValueError(f"{text!r} is not a whole number from 1 to 9999")
    return int(text)


def _samples(text: str) -> int:
    samples = natural_number(text)
    check_sampling(samples)
    return samples


def _tokenizer(text: str) -> str:
    from geval_py.reading.preparation import checked_name

    return checked_name(text)


def _format(text: str) -> str:
    from geval_py.tables.formats import FORMATS

    if text not in FORMATS:
        raise ValueError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, FORMATS))})")
    return text


def checked_label(text: str) -> str:
    """Return a label for LaTeX as it is; raises ValueError for characters that TeX could read otherwise."""
    if not re.fullmatch(r"[\w:./+-]+", text):
        raise ValueError(f"{text!r} is not a label of letters, digits and :._/+-")
    return text


def _own_name(text: str) -> tuple[str, str]:
    output, _, name = text.rpartition("=")
    if not output or not name:
        raise ValueError(f"{text!r} is not OUT=NAME, as in out.tsv=Ours")
    return output, name


OPTIONS = (
    Option(names=("-t", "--test-name"), field="test_name", read=str, once=True),
    Option(names=("--out-directory",), field="out_directory", read=str),
    Option(names=("--expected-directory",), field="expected_directory", read=str),
    Option(names=("--challenge",), field="challenges", read=str, repeatable=True),
    Option(names=("-e", "--expected-file"), field="expected_file", read=str, once=True),
    Option(names=("-i", "--input-file"), field="input_file", read=str),
    Option(names=("--in-header",), field="in_header", read=str),
    Option(names=("--out-header",), field="out_header", read=str),
    Option(names=("--selector",), field="selector", read=str),
    Option(names=("-o", "--out-file"), field="out_files", read=str, repeatable=True, replaces=True),
    Option(names=("-m", "--metric"), field="metrics", read=str, repeatable=True),
    Option(names=("-a", "--alt-metric"), field="alt_metrics", read=str, repeatable=True),
    Option(names=("--select-metric",), field="select_metrics", read=str, repeatable=True),
    Option(names=("--vocabulary",), field="vocabulary", read=str),
    Option(names=("-T", "--tokenizer"), field="tokenizer", read=_tokenizer),
    Option(names=("--list-metrics",), field="list_metrics"),
    Option(names=("-l", "--line-by-line"), field="line_by_line"),
    Option(names=("-s", "--sort"), field="sort"),
    Option(names=("-r", "--reverse-sort"), field="reverse_sort"),
    Option(names=("--filter",), field="filters", read=str, repeatable=True),
    Option(names=("--mark-worst-features",), field="mark_worst_features"),
    Option(names=("--show-preprocessed",), field="show_preprocessed"),
    Option(names=("-w", "--worst-features"), field="worst_features"),
    Option(names=("-d", "--diff"), field="diff", read=str),
    Option(names=("--most-worsening-features",), field="most_worsening_features", read=str),
    Option(names=("--oracle-item-based",), field="oracle_item_based"),
    Option(names=("--alt-out-file",), field="alt_out_files", read=str, repeatable=True),
    Option(names=("-p", "--precision"), field="precision", read=digits_after_point),
    Option(names=("-%", "--show-as-percentage"), field="percentage"),
    Option(names=("-B", "--bootstrap"), field="bootstrap", read=_samples),
    Option(names=("--seed",), field="seed", read=natural_number),
    Option(names=("--documents",), field="documents", read=str),
    Option(names=("--no-documents",), field="no_documents"),
    Option(names=("--by-score",), field="by_score"),
    Option(names=("--format",), field="format", read=_format),
    Option(names=("--caption",), field="caption", read=str),
    Option(names=("--label",), field="label", read=checked_label),
    Option(names=("--name",), field="names", read=_own_name, repeatable=True),
    Option(names=("--threads",), field="threads", read=_threads),
    Option(names=("--cluster",), field="cluster", read=str),
    Option(names=("-v", "--version"), field="version"),
    Option(names=("-h", "--help"), field="help"),
    Option(names=("-j", "--just-tokenize"), field="just_tokenize"),
    Option(names=("--min-frequency",), field="min_frequency", read=natural_number),
    Option(names=("--top",), field="top", read=natural_number),
    Option(names=("--distinct",), field="distinct"),
    Option(names=("--bigrams",), field="bigrams"),
    Option(names=("--word-shapes",), field="word_shapes"),
    Option(names=("--numerical-features",), field="numerical_features"),
    Option(names=("--references",), field="references", read=str),
    Option(names=("--cartesian",), field="cartesian"),
    Option(names=("--min-cartesian-frequency",), field="min_cartesian_frequency", read=natural_number),
    Option(names=("--plot-graph",), field="plot_graph", read=str),
    Option(names=("--init",), field="init"),
    Option(names=("--validate",), field="validate"),
    Option(names=("-S", SUBMIT), field=SUBMIT),
    *[Option(names=(name,), field=name, read=str) for name in ("--train", "--infer", *IGNORED)],
)


def unknown_word(word: str, *, of_challenge: bool = False) -> str:
    """Return the sentence about a word that is no option, with the option that is spelt like it."""
    del of_challenge  # for the command line, which knows more about what may have been meant
    close = nearest(word.partition("=")[0], [name for option in OPTIONS for name in option.names])
    return invalid_word(word, f"did you mean {close}?" if close else None)


def invalid_word(word: str, advice: str | None) -> str:
    """Return GEval's sentence about a word that is no option, and what to do instead."""
    kind = "option" if word.startswith("-") else "argument"
    return f"Invalid {kind} `{visible(word)}'\n  {advice or 'geval --help shows the options'}"


# config.txt: options as on the command line, which are read before the command line's own


_ESCAPED_SPACE = rf"\\([{SPACES}])"
_WORD = rf"(?:\\[\s\S]|[^{SPACES}])+"
SHOW_AND_EXIT = frozenset({"help", "version", "list_metrics"})


def parse_words(
    words: Sequence[str],
    *,
    takes_files: bool = False,
    ignores: bool = False,
    unknown: Callable[..., str] = unknown_word,
) -> dict[str, Any]:
    """Parse options into values by field; with ``takes_files``, other words may be the paths of outputs.

    ``ignores`` allows GEval's options that no score depends on; the field ``ignored`` holds their names. ``unknown``
    makes the sentence about an unknown word. Raises UsageError, also for an option that geval-py does not have.
    """
    read, strays = read_words(words, OPTIONS)
    values: dict[str, Any] = read
    for word in strays:
        if not takes_files or word.startswith("-") or not sources.is_regular(word):
            raise UsageError(message=unknown(word, of_challenge=bool(values.keys() & set(AUTHORING))))
    if strays:
        values = _places_of(strays) | values | {"out_files": (*values.get("out_files", ()), *strays)}
    for name, message in NOT_AVAILABLE.items():
        if name in values:
            raise UsageError(message=message)
    missing = [name for name in values if name in IGNORED and not ignores]
    if missing:
        name = missing[0]
        raise UsageError(message=_SUBMITS.format(name))
    ignored = tuple(name for name in IGNORED if name in values)
    if not ignored:
        return values
    return {name: value for name, value in values.items() if name not in ignored} | {"ignored": ignored}


def _places_of(paths: Sequence[str]) -> dict[str, Any]:
    """Return the test set and the challenge in whose folder the outputs are, if it has answers."""
    folders = {os.path.dirname(path) for path in paths}
    folder = folders.pop()
    if folders or find_answers(os.path.join(folder, splits.EXPECTED_FILE)) is None:
        return {}
    if folder in ("", "."):  # the test set's folder itself
        return {"test_name": os.path.basename(os.getcwd()), "out_directory": os.pardir}
    return {"test_name": os.path.basename(folder), "out_directory": os.path.dirname(folder) or "."}


def config_values(directory: str, unknown: Callable[..., str] = unknown_word) -> dict[str, Any]:
    """Return the values in a challenge's config.txt, by field; see :func:`parse_words`.

    Raises UnreadableFileError, and ConfigError if it is broken.
    """
    path = os.path.join(directory, splits.CONFIG_FILE)
    words = read_config(path)
    try:
        values = parse_words(words, ignores=True, unknown=unknown)
        splits.checked_schemes((*values.get("metrics", ()), *values.get("alt_metrics", ())))
        if values.pop("plot_graph", None) is not None:  # the config.txt of a stranger shall write no files
            values["ignored"] = ("--plot-graph", *values.get("ignored", ()))
        if values.keys() & SHOW_AND_EXIT:
            raise UsageError(message="an option that shows something and exits has no place in config.txt")
        for option in OPTIONS:
            if option.field in (*AUTHORING, *OF_COMMAND_LINE) and option.field in values:
                raise UsageError(message=f"{option.long_name} has no place in config.txt")
    except UsageError as error:
        raise ConfigError(path=path, message=error.message) from error
    return values


def read_config(path: str) -> list[str]:
    """Read the words of a config.txt; empty if the file does not exist."""
    try:
        if not sources.is_remote(path):
            with open(path, "rb") as file:
                data = file.read()
        elif not sources.exists(path):
            return []
        else:
            from geval_py.reading.remote import RemoteFile

            data = RemoteFile(path).read()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    return words_of(str(data, "utf-8-sig", "replace"))


def words_of(text: str) -> list[str]:
    """Split the text of a config.txt into its words."""
    if "\\" not in text:
        return split_words(text)
    return [re.sub(_ESCAPED_SPACE, r"\1", word) for word in re.findall(_WORD, text)]


def config_task(directory: str) -> splits.Task:
    """Return the task of a challenge's config.txt alone; raises as :func:`config_values`."""
    return task_of(config_values(directory) | {"out_directory": directory})


def task_of(values: dict[str, Any]) -> splits.Task:
    """Return a task with the values that are fields of a task."""
    return splits.Task(**{name: value for name, value in values.items() if name in splits.Task.fields})
