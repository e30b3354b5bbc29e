"""What is scored: a challenge, a test set of it, its files, the metrics. How it is shown is no part of it."""

from __future__ import annotations

from geval_py.reading.schemes import EvaluationScheme, parse_schemes
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Task(Value):
    """What is scored. The fields are named as the options are; None means an option's default.

    ``metrics`` and ``alt_metrics``, which replace them, are metric arguments as written. ``tokenizer`` is for metrics
    of words, such as BLEU; others are of the lines as they are. ``needs_items`` tells that
    the input has to be there, since what is shown is about it.
    """

    test_name: str = "test-A"
    out_directory: str = "."
    expected_directory: str | None = None
    out_files: tuple[str, ...] = ()
    expected_file: str | None = None
    input_file: str | None = None
    metrics: tuple[str, ...] = ()
    alt_metrics: tuple[str, ...] = ()
    select_metrics: tuple[str, ...] = ()
    vocabulary: str | None = None
    tokenizer: str | None = None
    in_header: str | None = None
    out_header: str | None = None
    needs_items: bool = False

    @property
    def directory(self) -> str:
        """The challenge's directory: that with the answers, the headers and config.txt."""
        return self.out_directory if self.expected_directory is None else self.expected_directory

    @property
    def needs_input(self) -> bool:
        """Tell whether the input must be there: for what is shown, or for a metric's filter."""
        return self.needs_items or any(name.startswith("in") for scheme in self.schemes() for name in scheme.filters)

    def schemes(self) -> list[EvaluationScheme]:
        """Give the metrics to score with, products multiplied out; raises SchemeError."""
        return checked_schemes(self.alt_metrics or self.metrics)


def checked_schemes(texts: Iterable[str]) -> list[EvaluationScheme]:
    """Parse metric arguments; raises SchemeError, also for a regular expression that is broken."""
    schemes = [scheme for text in texts for scheme in parse_schemes(text)]
    if any(scheme.text_flags for scheme in schemes):
        from geval_py.reading.preparation import preparation_of

        for scheme in schemes:
            preparation_of(scheme)
    return schemes
