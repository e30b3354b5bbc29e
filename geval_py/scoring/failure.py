"""An output that could not be scored, among others that could."""

from __future__ import annotations

from geval_py.errors import DataError, MalformedLineError, SchemeError
from geval_py.reading.outputs import Output
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from geval_py.scoring.evaluation import Evaluation


class Failure(Value):
    """An output that is at fault, or of which a metric's filter selects no line, and the error that says how."""

    output: Output
    error: DataError | SchemeError

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows of it; the line and the column are None where no place is at fault."""
        line = column = None
        if isinstance(self.error, MalformedLineError):
            line, column = self.error.line, self.error.column
        return {
            "file": self.output.name,
            "parameters": self.output.parameters,
            "error": {"message": str(self.error), "line": line, "column": column},
        }


def evaluations_of(results: Iterable[Evaluation | Failure]) -> list[Evaluation]:
    """Give the evaluations; raises the error of the first failure, and asks for no result behind it."""
    evaluations = []
    for result in results:
        if isinstance(result, Failure):
            raise result.error
        evaluations.append(result)
    return evaluations
