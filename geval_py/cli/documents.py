"""The documents that an interval or a test is by, and those that it should have been by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.cli.messages import note
from geval_py.explaining.dependence import find_dependence
from geval_py.explaining.documents import Documents, documents_in
from geval_py.text import visible

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
