"""What an interval does not tell: that lines of a document are alike, and that a rare line could cost all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geval_py.cli.messages import note
from geval_py.explaining.dependence import find_dependence
from geval_py.explaining.documents import Documents, documents_in
from geval_py.explaining.ruin import find_ruin
from geval_py.text import named, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.scoring.evaluation import Evaluation


def documents_asked_for(evaluations: Sequence[Evaluation], column: str | None, seed: int) -> Documents | None:
    """Give the documents of all lines of a file, None where none are asked for; then say where some should be."""
    if column is None:
        advise_documents(evaluations, seed)
        return None
    if not evaluations:
        return None
    documents = documents_in(evaluations[0], column)
    if documents.are_lines:
        note(documents.nothing_gained)
    return documents


def advise_documents(evaluations: Sequence[Evaluation], seed: int) -> None:
    """Say by which documents an interval would be wider, where some column of the input tells such."""
    found = find_dependence(evaluations, seed=seed)
    if found is not None:
        column = visible(found.column)
        note(
            f"lines with the same {column} are alike: by document, an interval is {found.widening:.1f} times as wide"
            f"\n  --documents {column} shows it"
        )


def warn_of_ruin(evaluations: Sequence[Evaluation]) -> None:
    """Say of which outputs a line could lose so much more than any did that an interval says nothing of it."""
    for evaluation in evaluations:
        ruin = find_ruin(evaluation)
        if ruin is not None:
            most = f"up to {ruin.bound:.0f} nats" if math.isfinite(ruin.bound) else "everything"
            path = named(evaluation.output.path)
            note(
                f"a line of {path} could lose {most}, and none lost more than {ruin.seen:.1f}"
                "\n  one such line would move the score far beyond its interval: leave more to the rest"
            )
