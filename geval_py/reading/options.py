r"""GEval's options, from the command line and from a challenge's config.txt, as one frozen value.

config.txt is read first: its words, split at white space (a backslash before white space keeps it; there are no
quotes and no comments), come in front of the command line's words. Metrics of both add up; another option that
is given twice takes the later value, so the command line wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from geval_py.cli.arguments import COMMANDS, make_parser
from geval_py.errors import ConfigError, UnreadableFileError, UsageError
from geval_py.reading.schemes import EvaluationScheme, parse_schemes
from geval_py.scoring.sampling import DEFAULT_SEED, check_sampling
from geval_py.text import nearest, visible

CONFIG_FILE = "config.txt"
_SHOW_AND_EXIT = frozenset({"help", "version", "list_metrics"})
SCORES = "scores"
_MODES = ("line_by_line", "worst_features", "diff", "most_worsening_features", "oracle_item_based", "just_tokenize")
_MODES_WITHOUT_INPUT = (SCORES, "oracle_item_based", "just_tokenize")
_MODES_WITHOUT_FORMAT = ("oracle_item_based", "just_tokenize")
_ORDERS = ("sort", "reverse_sort")
_LINES = ("line_by_line", "diff")
_FEATURES = ("worst_features", "most_worsening_features")
_GO_WITH = (  # options, the modes in which they mean something, and what helps in another
    (("filters",), _LINES, "; a metric that is filtered: METRIC:f<FEATURE>"),
    (("mark_worst_features",), ("line_by_line",), ""),
    (("show_preprocessed",), _LINES, ""),
    (("alt_out_files",), ("oracle_item_based",), ""),
    (_ORDERS, (*_LINES, *_FEATURES), ""),
    (("bigrams", "word_shapes", "numerical_features", "cartesian"), (*_FEATURES, *_LINES), ""),
    (("min_frequency", "min_cartesian_frequency"), (*_FEATURES, "line_by_line"), ""),
    (("bootstrap",), (SCORES,), ", not with another mode"),
)
_SINGULAR = {"filters": "filter", "alt_out_files": "alt-out-file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to score and how to show it. Names are those of the command line; None means its default."""

    test_name: str = "test-A"
    out_directory: str = "."
    expected_directory: str | None = None
    out_file: str | None = None
    expected_file: str | None = None
    input_file: str | None = None
    metrics: tuple[str, ...] = ()
    alt_metrics: tuple[str, ...] = ()
    select_metric: str | None = None
    vocabulary: str | None = None
    in_header: str | None = None
    out_header: str | None = None
    precision: int | None = None
    percentage: bool = False
    bootstrap: int | None = None
    seed: int = DEFAULT_SEED
    format: str = "text"
    threads: int | None = None
    line_by_line: bool = False
    sort: bool = False
    reverse_sort: bool = False
    filters: tuple[str, ...] = ()
    show_preprocessed: bool = False
    mark_worst_features: bool = False
    worst_features: bool = False
    diff: str | None = None
    most_worsening_features: str | None = None
    oracle_item_based: bool = False
    alt_out_files: tuple[str, ...] = ()
    min_frequency: int = 1
    bigrams: bool = False
    word_shapes: bool = False
    numerical_features: bool = False
    cartesian: bool = False
    min_cartesian_frequency: int | None = None
    tokenizer: str | None = None
    just_tokenize: bool = False
    help: bool = False
    version: bool = False
    list_metrics: bool = False

    def __post_init__(self) -> None:
        if self.bootstrap is not None:
            check_sampling(self.bootstrap)
        if self.sort and self.reverse_sort:
            raise UsageError(message="--sort shows the worst lines first, --reverse-sort the best: take one")
        modes = [option_name(mode) for mode in _MODES if getattr(self, mode) not in (False, None)]
        if len(modes) > 1:
            raise UsageError(message=f"{' and '.join(modes)} are different modes: take one")
        if self.mode in _MODES_WITHOUT_FORMAT and self.format != "text":
            raise UsageError(message=f"{modes[0]} has no {self.format} format; leave --format out")
        if self.mark_worst_features and self.show_preprocessed:
            raise UsageError(message="--mark-worst-features marks lines as they are: leave --show-preprocessed out")
        if self.oracle_item_based and not self.alt_out_files:
            raise UsageError(message="--oracle-item-based chooses between outputs: name others with --alt-out-file")

    @property
    def mode(self) -> str:
        """What is shown: "scores", or the name of the option that asks for another thing."""
        return next((mode for mode in _MODES if getattr(self, mode) not in (False, None)), SCORES)

    @property
    def needs_input(self) -> bool:
        """Tell whether the input file must be there."""
        if self.mode not in _MODES_WITHOUT_INPUT:
            return True
        return any(name.startswith("in") for scheme in self.schemes() for name in scheme.filters)

    @property
    def challenge_directory(self) -> str:
        """The directory with the expected results, the headers and config.txt."""
        return self.out_directory if self.expected_directory is None else self.expected_directory

    def schemes(self) -> list[EvaluationScheme]:
        """Give the metrics to score with, products multiplied out; raises SchemeError or UsageError."""
        return _checked_schemes(self.alt_metrics or self.metrics)


def _checked_schemes(texts: Iterable[str]) -> list[EvaluationScheme]:
    """Parse metric arguments; raises SchemeError, also for a regular expression that is broken."""
    schemes = [scheme for text in texts for scheme in parse_schemes(text)]
    if any(scheme.text_flags for scheme in schemes):
        from geval_py.reading.preparation import preparation_of

        for scheme in schemes:
            preparation_of(scheme)
    return schemes


def option_name(field: str) -> str:
    """Give the command line's name of an option."""
    return "--" + field.replace("_", "-")


def parse_options(words: Sequence[str]) -> Options:
    """Parse the command line's words, with those of the challenge's config.txt in front.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    alone = _read_words(words)
    if alone.keys() & _SHOW_AND_EXIT:
        return Options(help="help" in alone, version="version" in alone, list_metrics="list_metrics" in alone)
    options = merge_options(alone)
    _check_mode_of(alone.keys(), options.mode)
    if "seed" in alone and options.bootstrap is None:
        raise UsageError(message="--seed goes with --bootstrap")
    return options


def merge_options(given: Mapping[str, Any]) -> Options:
    """Put the values that a command line gave behind those of the challenge's config.txt.

    Values of options that can be repeated add up, of others the given ones win; a mode or an order that is given
    takes the place of config.txt's. Raises UsageError, ConfigError and UnreadableFileError.
    """
    directory = given.get("expected_directory", given.get("out_directory", "."))
    config = _checked_config(directory)
    for alternatives in (_MODES, _ORDERS):
        if given.keys() & set(alternatives):
            config = {name: value for name, value in config.items() if name not in alternatives}
    repeated = {name: (*config[name], *value) for name, value in given.items() if _adds_up(config.get(name))}
    return Options(**(config | dict(given) | repeated))


def _adds_up(value: object) -> bool:
    return isinstance(value, tuple)


def _check_mode_of(given: Collection[str], mode: str) -> None:
    """Refuse an option that would be ignored. Those of config.txt are for whatever mode they matter to."""
    for names, modes, hint in _GO_WITH:
        for name in names:
            if name in given and mode not in modes:
                *others, last = ("scores" if mode_of == SCORES else option_name(mode_of) for mode_of in modes)
                together = f"{', '.join(others)} or {last}" if others else last
                raise UsageError(message=f"{option_name(_SINGULAR.get(name, name))} goes with {together}{hint}")


def config_options(directory: str) -> Options:
    """Give the options of a challenge's config.txt alone; raises ConfigError and UnreadableFileError."""
    return Options(**(_checked_config(directory) | {"out_directory": directory}))


def _checked_config(directory: str) -> dict[str, Any]:
    """Read the values that config.txt gives; raise ConfigError if they cannot be understood on their own."""
    path = os.path.join(directory, CONFIG_FILE)
    words = read_config(path)
    try:
        values = _read_words(words)
        Options(**values)
        _checked_schemes((*values.get("metrics", ()), *values.get("alt_metrics", ())))
        if values.keys() & _SHOW_AND_EXIT:
            raise UsageError(message="an option that shows something and exits has no place in config.txt")
    except UsageError as error:
        raise ConfigError(path=path, message=error.message) from error
    return values


def read_config(path: str) -> list[str]:
    """Read the words of a config.txt; none if there is no such file."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    return [re.sub(r"\\(\s)", r"\1", word) for word in re.findall(r"(?:\\\s|\S)+", text)]


def _read_words(words: Sequence[str]) -> dict[str, Any]:
    """Parse words into the values of those options that they name."""
    given, unknown = make_parser().parse_known_args(words)
    if unknown:
        raise UsageError(message=_invalid(unknown[0]))
    known = {field.name for field in fields(Options)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(given).items()
        if name in known
    }


def _invalid(word: str) -> str:
    """Say that a word is no option, and what might have been meant."""
    advice = _advice(word) or "geval --help shows the options"
    return f"Invalid option `{visible(word)}'\n  {advice}"


def _advice(word: str) -> str | None:
    if not word.startswith("-"):
        command = nearest(word, COMMANDS)
        if command is not None:
            return f"geval {command} …, the command first, if that was meant"
        if os.path.isdir(word):
            return f"did you mean -t {visible(word)}?"
        return f"did you mean -o {visible(word)}?" if os.path.isfile(word) else None
    options = [name for action in make_parser()._actions for name in action.option_strings]
    close = nearest(word.partition("=")[0], options)
    return f"did you mean {close}?" if close else None
