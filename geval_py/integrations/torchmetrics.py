"""A metric on hashed words for training loops of PyTorch, by torchmetrics."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torchmetrics
from torchmetrics.utilities import dim_zero_cat

from geval_py.errors import UsageError
from geval_py.scoring.arrays import numbers_of_lines
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metric import Metric
from geval_py.scoring.metrics.base import LineStatistics

if TYPE_CHECKING:
    from geval_py.scoring.arrays import VocabularyLike

SAME_LOSS = 0.01  # nats and share by which losses of one line may differ, computed in half precision in two batches


class WordGap(torchmetrics.Metric):
    """The score of distributions over a vocabulary, as :class:`geval_py.Metric` computes it.

    ``vocabulary``, ``metric`` (its name) and ``duplicates`` are as for that. The numbers given to :meth:`update` are
    probabilities, with ``log`` their natural logarithms, with ``logits`` any numbers. Other arguments are those of
    ``torchmetrics.Metric``.

    The score has the same digits on any number of processes. Raises UsageError for a metric that takes no arrays.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        vocabulary: VocabularyLike,
        metric: str = "PerplexityHashed",
        *,
        duplicates: Literal["error", "sum"] = "error",
        log: bool = False,
        logits: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.scorer = Metric(metric, vocabulary=vocabulary, duplicates=duplicates)
        self._units = {"log": log, "logits": logits}
        # Losses are kept as the bits of float64: devices without float64 hold them, and no cast rounds them.
        self.add_state("losses", default=[], dist_reduce_fx="cat")
        self.add_state("lines", default=[], dist_reduce_fx="cat")
        self.losses: Any
        self.lines: Any

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher score is the better one."""
        return self.scorer.direction == "higher"

    def update(self, predictions: Any, references: Any, lines: Any = None, *, rest: Any = None) -> None:
        """Add the rows of a batch.

        ``predictions`` is a tensor of the shape (lines, words) or (batch, sequence, words), or a pair (ids,
        probabilities), on any device and of any precision; ``references`` are words, or a tensor of ids; ``rest`` is
        the number of all other words. They are as for :meth:`geval_py.Metric.update`.

        ``lines`` are the line numbers, which seed the hash: that of the first row, or one for each; by default they
        go on after the rows so far, which only one process can do. Raises UsageError.
        """
        if lines is None:
            is_available = self.distributed_available_fn or (lambda: False)
            if is_available() and torch.distributed.get_world_size() > 1:
                raise UsageError("each process has some of the lines: update(…, lines=…) needs their numbers, from 1")
            lines = 1 + max((int(part.max()) for part in _tensors(self.lines) if len(part)), default=0)
        rows = self.scorer.predictions(predictions, rest=rest, **self._units)
        numbers = numbers_of_lines(lines, len(rows))
        losses = self.scorer.losses(rows, references, lines=numbers).ravel()
        self.losses.append(torch.from_numpy(losses.view(np.int64)).to(self.device))
        self.lines.append(torch.from_numpy(numbers).to(self.device))

    def compute(self) -> torch.Tensor:
        """Compute the score of all lines so far, as a tensor of float64 on the CPU.

        A line that occurs several times counts once, since samplers that divide lines among processes repeat some.
        Raises UsageError if there is no line, and if a line has two losses.
        """
        if not any(map(len, _tensors(self.lines))):
            raise UsageError(f"{self.scorer.name} has no lines yet: update it with predictions")
        lines = dim_zero_cat(self.lines).cpu().numpy()
        losses = dim_zero_cat(self.losses).cpu().numpy().view(np.float64)
        _, first, same = np.unique(lines, return_index=True, return_inverse=True)
        differs = ~np.isclose(losses, losses[first[same]], rtol=SAME_LOSS, atol=SAME_LOSS)
        if differs.any():
            line = lines[differs].min()
            raise UsageError(f"line {line} has two losses: reset() the metric before lines are scored again")
        statistics = LineStatistics(columns=(array("d", losses[first].tobytes()),))
        return torch.tensor(find_metric(self.scorer.name).value(statistics), dtype=torch.float64)


def _tensors(state: Any) -> list[torch.Tensor]:
    """Return a state that is a list of tensors, or one tensor after processes have exchanged it."""
    return [state] if isinstance(state, torch.Tensor) else list(state)
