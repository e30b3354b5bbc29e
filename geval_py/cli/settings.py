"""What only the command line wants: what is shown, and how; and the words of the plain command line, understood."""

from __future__ import annotations

from geval_py.errors import ConfigError, UsageError
from geval_py.reading.config import CONFIG_FILE, SHOW_AND_EXIT, config_values, parse_words, task_of
from geval_py.reading.options import AUTHORING, DEFAULT_SEED, FEATURES, LINES, OPTIONS, SCORES, option_of
from geval_py.reading.splits import Task
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

MODES = tuple(option.field for option in OPTIONS if option.mode)
WITHOUT_FORMAT = ("oracle_item_based", "just_tokenize", *AUTHORING)
_ORDERS = ("sort", "reverse_sort")


class Settings(Value):
    """What is shown, and how. The fields are named as the options are; ``ignored`` names those without effect."""

    precision: int | None = None
    percentage: bool = False
    bootstrap: int | None = None
    seed: int = DEFAULT_SEED
    documents: str | None = None
    by_score: bool = False
    format: str = "text"
    threads: int | None = None
    cluster: str | None = None
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
    distinct: bool = False
    min_frequency: int = 1
    bigrams: bool = False
    word_shapes: bool = False
    numerical_features: bool = False
    cartesian: bool = False
    min_cartesian_frequency: int | None = None
    just_tokenize: bool = False
    init: bool = False
    validate: bool = False
    help: bool = False
    version: bool = False
    list_metrics: bool = False
    ignored: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for settings that do not go together."""
        if self.sort and self.reverse_sort:
            raise UsageError(message="--sort shows the worst lines first, --reverse-sort the best: take one")
        modes = [option_of(mode).long_name for mode in self._modes()]
        if len(modes) > 1:
            raise UsageError(message=f"{' and '.join(modes)} are different modes: take one")
        if self.mode in WITHOUT_FORMAT and self.format != "text":
            raise UsageError(message=f"{modes[0]} has no {self.format} format; leave --format out")
        if self.mark_worst_features and self.show_preprocessed:
            raise UsageError(message="--mark-worst-features marks lines as they are: leave --show-preprocessed out")
        if self.oracle_item_based and not self.alt_out_files:
            raise UsageError(message="--oracle-item-based chooses between outputs: name others with --alt-out-file")

    def _modes(self) -> list[str]:
        return [mode for mode in MODES if getattr(self, mode) not in (False, None)]

    @property
    def mode(self) -> str:
        """What is shown: "scores", or the field of the option that asks for another thing."""
        return next(iter(self._modes()), SCORES)

    @property
    def needs_items(self) -> bool:
        """Whether the input has to be there."""
        by_document = self.documents is not None and self.bootstrap is not None
        return self.mode in (*LINES, *FEATURES) or by_document


def parse(words: Sequence[str]) -> tuple[Task, Settings]:
    """Understand the plain command line's words, with those of the challenge's config.txt in front.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    given = parse_words(words, takes_files=True)
    if given.keys() & SHOW_AND_EXIT:
        return Task(), _settings_of({name: given[name] for name in SHOW_AND_EXIT & given.keys()})
    authoring = bool(given.keys() & set(AUTHORING))
    values = given if authoring else merged(given)  # the config.txt of a new challenge is still to be written
    settings = _settings_of(values)
    _check_mode_of(given.keys(), settings.mode)
    if "seed" in given and settings.bootstrap is None:
        raise UsageError(message="--seed goes with --bootstrap")
    if "documents" in given and settings.mode == SCORES and settings.bootstrap is None:
        raise UsageError(message="--documents goes with --bootstrap, --worst-features or geval compare")
    return task_of(values).replace(needs_items=settings.needs_items), settings


def _settings_of(values: Mapping[str, Any]) -> Settings:
    return Settings(**{name: value for name, value in values.items() if name in Settings.fields})


def merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Put the values that a command line gave behind those of the challenge's config.txt.

    A mode or an order that is given takes the place of config.txt's. Raises ConfigError and UnreadableFileError.
    """
    directory = given.get("expected_directory", given.get("out_directory", "."))
    config = config_values(directory)
    try:
        _settings_of(config)
    except UsageError as error:
        raise ConfigError(path=f"{directory}/{CONFIG_FILE}", message=error.message) from error
    for alternatives in (MODES, _ORDERS):
        if given.keys() & set(alternatives):
            config = {name: value for name, value in config.items() if name not in alternatives}
    if given.keys() & set(WITHOUT_FORMAT):  # it is for the modes that it matters to
        config.pop("format", None)
    adding = {option.field for option in OPTIONS if option.repeatable and not option.replaces}
    both = adding & config.keys() & given.keys()
    return config | dict(given) | {name: (*config[name], *given[name]) for name in both}


def _check_mode_of(given: Collection[str], mode: str) -> None:
    """Refuse an option that would be ignored. Those of config.txt are for whatever mode they matter to."""
    for option in OPTIONS:
        if option.field in given and option.goes_with and mode not in option.goes_with:
            *others, last = (SCORES if of == SCORES else option_of(of).long_name for of in option.goes_with)
            together = f"{', '.join(others)} or {last}" if others else last
            raise UsageError(message=f"{option.long_name} goes with {together}{option.otherwise}")
        if option.field in given and mode in option.useless_with:
            without = option_of(mode).long_name
            raise UsageError(message=f"{option.long_name} has no effect with {without}: leave it out")


_OF_COMMANDS = ("seed", "threads", "ignored")  # what all commands that score heed


def task_and_settings(given: Mapping[str, Any], metrics: Sequence[str], *heeded: str) -> tuple[Task, Settings]:
    """Understand a command's words and config.txt as for scoring; metrics that are given replace the challenge's.

    ``heeded`` are the other settings that the command heeds. Raises as :func:`merged`, and UsageError.
    """
    values = merged(given)
    settings = Settings(**{name: values[name] for name in (*_OF_COMMANDS, *heeded) if name in values})
    task = task_of(values)
    return (task.replace(alt_metrics=tuple(metrics), select_metrics=()) if metrics else task), settings


def one_metric(task: Task, metrics: Sequence[str], command: str) -> Task:
    """Give the task back; raises UsageError where more than one metric was given to a command that takes one."""
    number = len(task.schemes()) if metrics else 1
    if number > 1:
        raise UsageError(message=f"geval {command} takes one metric; {number} were given")
    return task
