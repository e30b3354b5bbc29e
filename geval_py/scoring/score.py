"""One metric's value on one output."""

from __future__ import annotations

from geval_py.reading.sampling import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.schemes import EvaluationScheme
from geval_py.scoring.metrics import LineStatistics, Metric
from geval_py.scoring.parallel import Progress
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable
    from typing import Any, ClassVar, TypeAlias

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.statistics.interval import Interval

    IntervalOf: TypeAlias = "Callable[[Score], Interval]"  # how a score's interval is made


class Score(Value):
    """One metric's value on one output.

    ``name`` is the name shown, from the scheme; ``statistics`` the line statistics that it is made from.
    ``line_numbers`` are those of the lines that the scheme's flags select, from 1, in the order in which they are
    scored; None for all lines.
    """

    name: str
    value: float
    metric: Metric
    scheme: EvaluationScheme
    statistics: LineStatistics
    line_numbers: array[int] | None = None

    hidden: ClassVar[frozenset[str]] = frozenset({"statistics", "line_numbers"})

    @property
    def unit(self) -> str:
        """What the value counts: nats, bits, words, probability or share."""
        return self.metric.measure.unit

    @property
    def direction(self) -> str:
        """Which values are better: "higher" or "lower"."""
        return self.metric.measure.direction

    def greatest_first(self, *, worst: bool) -> bool:
        """Tell whether the greatest values come first where the worst ones, or the best ones, should."""
        return (self.direction == "lower") == worst

    def interval(
        self,
        *,
        samples: int = DEFAULT_SAMPLES,
        seed: int = DEFAULT_SEED,
        documents: Documents | None = None,
        as_geval: bool = False,
        progress: Progress | None = None,
    ) -> Interval:
        """Give the 95 % interval, from as many resamples of the lines as ``samples``.

        With ``documents``, those of all lines of the file, it is by these. With ``as_geval``, the percentiles are
        GEval's, which are too near to each other where lines are few.

        Raises UsageError for fewer than one sample, a seed below 0, and a single document.
        """
        from geval_py.explaining.statistics import bootstrap

        return bootstrap.interval(
            self.metric,
            self.statistics,
            samples=samples,
            seed=seed,
            documents=None if documents is None else documents.of_score(self).several(),
            as_geval=as_geval,
            progress=progress,
        )

    def to_dict(self, interval: Interval | None = None) -> dict[str, Any]:
        """Give what ``--format json`` shows of one metric.

        Its lines are there only where its flags select some, its signature where a library signs its scores.
        """
        shown: dict[str, Any] = {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "direction": self.direction,
            "infinite_losses": self.statistics.infinite,
        }
        if self.metric.signature is not None:
            shown["signature"] = self.metric.signature(self.statistics)
        if self.scheme.selecting_flags:
            shown["lines"] = self.statistics.lines
        if interval is not None:
            shown["interval"] = interval.to_dict()
        return shown
