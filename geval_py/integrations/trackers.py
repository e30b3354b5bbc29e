"""Scores in trackers of experiments: MLflow, and Weights & Biases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from geval_py.evaluation import Evaluation

if TYPE_CHECKING:
    from geval_py.explaining.documents import DocumentsBy

NOT_IN_NAMES = re.compile(r"[^\w\-. :/]", re.ASCII)  # MLflow's rule for the names of metrics


def log_to_mlflow(
    evaluation: Evaluation,
    *,
    prefix: str = "",
    step: int | None = None,
    intervals: bool = True,
    documents: DocumentsBy = None,
    worst: int = 0,
    run_id: str | None = None,
) -> None:
    """Log an evaluation's scores as metrics of an MLflow run, by default of the active one.

    The metrics are those of :meth:`~geval_py.Evaluation.scores_dict`, with ``prefix``, such as ``"dev-0/"``, before
    their names; ``_`` takes the place of characters that MLflow's names cannot have. The signature becomes the tag
    ``geval.signature``, and the ``worst`` lines the table ``worst_lines.json``.
    """
    import mlflow

    scores = evaluation.scores_dict(intervals=intervals, documents=documents)
    metrics = {NOT_IN_NAMES.sub("_", prefix + name): value for name, value in scores.items()}
    mlflow.log_metrics(metrics, step=step, run_id=run_id)
    if evaluation.signature is not None:
        client, run = mlflow.MlflowClient(), run_id or mlflow.active_run().info.run_id
        client.set_tag(run, f"{prefix}geval.signature", str(evaluation.signature))
    if worst:
        lines = evaluation.lines(sort="worst").head(worst)
        mlflow.log_table(lines, f"{prefix}worst_lines.json", run_id=run_id)


def log_to_wandb(
    evaluation: Evaluation,
    *,
    prefix: str = "",
    step: int | None = None,
    intervals: bool = True,
    documents: DocumentsBy = None,
    worst: int = 0,
    run: Any = None,
) -> None:
    """Log an evaluation's scores to a run of Weights & Biases, by default the active one.

    The values are those of :meth:`~geval_py.Evaluation.scores_dict`, with ``prefix``, such as ``"dev-0/"``, before
    their names. The signature becomes ``geval.signature`` in the run's summary, and the ``worst`` lines the table
    ``worst_lines``. Raises ``wandb.Error`` if there is no run.
    """
    import wandb

    run = run or wandb.run
    if run is None:
        raise wandb.Error("call wandb.init() before log_to_wandb(), or pass it a run")
    scores = evaluation.scores_dict(intervals=intervals, documents=documents)
    values: dict[str, Any] = {prefix + name: value for name, value in scores.items()}
    if worst:
        values[f"{prefix}worst_lines"] = wandb.Table(dataframe=evaluation.lines(sort="worst").head(worst))
    run.log(values, step=step)
    if evaluation.signature is not None:
        run.summary[f"{prefix}geval.signature"] = str(evaluation.signature)
