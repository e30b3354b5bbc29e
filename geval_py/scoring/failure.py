"""An output that could not be scored, or not by each metric, among others that could."""

from __future__ import annotations

from geval_py.errors import DataError, MalformedLineError, SchemeError
from geval_py.reading.outputs import Output
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from geval_py.scoring.evaluation import Evaluation
    from geval_py.scoring.metrics import Metric
    from geval_py.scoring.score import IntervalOf, Score


class NoScore(Value):
    """A metric that has no score of an output, since its filter selects no line of it."""

    name: str
    metric: Metric
    error: SchemeError

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows of it."""
        measure = self.metric.measure
        return {
            "name": self.name,
            "value": None,
            "unit": measure.unit,
            "direction": measure.direction,
            "error": _error_document(self.error),
        }


class Failure(Value):
    """An output that is at fault, or of which a metric's filter selects no line, and the error that says how.

    Where other metrics could score it, ``evaluation`` is by these, and ``results`` has what each metric gave, in
    order; else there is none.
    """

    output: Output
    error: DataError | SchemeError
    evaluation: Evaluation | None = None
    results: tuple[Score | NoScore, ...] = ()

    @property
    def errors(self) -> list[DataError | SchemeError]:
        """All that is wrong, what metrics have in common once."""
        return list({str(error): error for error in (self.error, *_errors_of(self.results))}.values())

    def to_dict(self, interval: IntervalOf | None = None) -> dict[str, Any]:
        """Give what ``--format json`` shows of it: the error or, where it has scores, those and each metric's error.

        With ``interval``, which gives a score's, each metric that has a score has its own.
        """
        if self.evaluation is None:
            shown = {"file": self.output.name, "parameters": self.output.parameters}
            return shown | {"error": _error_document(self.error)}
        metrics = iter(self.evaluation.to_dict(interval)["metrics"])
        return self.evaluation.to_dict() | {
            "metrics": [of.to_dict() if isinstance(of, NoScore) else next(metrics) for of in self.results]
        }


def scores_of(results: Sequence[Score | NoScore]) -> tuple[Score, ...]:
    """Give the scores that there are; raises the first error where there is none."""
    errors = _errors_of(results)
    if len(errors) == len(results):
        raise errors[0]
    return tuple(result for result in results if not isinstance(result, NoScore))


def failure_of(evaluation: Evaluation, results: Sequence[Score | NoScore]) -> Failure | None:
    """Give the failure of an output that metrics scored, but not each; None where each did."""
    errors = _errors_of(results)
    if not errors:
        return None
    return Failure(output=evaluation.output, error=errors[0], evaluation=evaluation, results=tuple(results))


def _errors_of(results: Iterable[Score | NoScore]) -> list[SchemeError]:
    return [result.error for result in results if isinstance(result, NoScore)]


def _error_document(error: DataError | SchemeError) -> dict[str, Any]:
    """Say what is wrong; the line and the column are None where no place is at fault."""
    line = column = None
    if isinstance(error, MalformedLineError):
        line, column = error.line, error.column
    return {"message": str(error), "line": line, "column": column}


def what_is_scored(results: Iterable[Evaluation | Failure]) -> list[Evaluation]:
    """Give the evaluations, also by some metrics where others failed."""
    evaluations = (result.evaluation if isinstance(result, Failure) else result for result in results)
    return [evaluation for evaluation in evaluations if evaluation is not None]


def each_score(result: Evaluation | Failure, metrics: int) -> Sequence[Score | None]:
    """Give the score by each of so many metrics, None by those by which there is none."""
    if not isinstance(result, Failure):
        return result.scores
    found = [None if isinstance(of, NoScore) else of for of in result.results]
    return found or [None] * metrics


def evaluations_of(results: Iterable[Evaluation | Failure]) -> list[Evaluation]:
    """Give the evaluations; raises the error of the first failure, and asks for no result behind it."""
    evaluations = []
    for result in results:
        if isinstance(result, Failure):
            raise result.error
        evaluations.append(result)
    return evaluations
