"""Which scores are wanted of a task: evaluation schemes, each with its metric."""

from __future__ import annotations

from geval_py.errors import UsageError
from geval_py.scoring.columns import shown_name
from geval_py.scoring.metrics import find_metric
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.reading.schemes import EvaluationScheme
    from geval_py.reading.task import Task
    from geval_py.scoring.columns import Named


def select_schemes(task: Task) -> list[Named]:
    """Give the schemes to score with and their metrics; raises SchemeError, UsageError.

    The task's tokenizer becomes that of the schemes whose metric is tokenised.
    """
    schemes = [_with_metric(scheme, task.tokenizer) for scheme in task.schemes()]
    if not schemes:
        raise UsageError(message="no metric given, use", arguments=("metrics",))
    return [_named(name, schemes) for name in task.select_metrics] or schemes


def _with_metric(scheme: EvaluationScheme, tokenizer: str | None) -> Named:
    metric = find_metric(scheme.metric)
    return (scheme.replace(tokenizer=tokenizer) if metric.is_tokenised else scheme), metric


def _named(name: str, schemes: Sequence[Named]) -> Named:
    """Give the first scheme whose score is shown under a name; raises UsageError."""
    for named in schemes:
        if shown_name(*named) == name:
            return named
    names = visible(", ".join(shown_name(*named) for named in schemes))
    raise UsageError(message=f"Cannot find metric named '{visible(name)}'\n  there are {names}")
