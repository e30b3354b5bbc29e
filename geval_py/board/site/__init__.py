"""A board as static pages: gather what may be shown, render the files, and replace an earlier site."""

from __future__ import annotations

from datetime import datetime

from geval_py.board.database.store import Board
from geval_py.board.site import files, pages
from geval_py.board.site.view import loaded


def build(board: Board, folder: str, *, now: datetime) -> int:
    """Write a board's site into a folder and return the number of files; an earlier site stays until all is written.

    Raises UsageError for a folder that holds something else, StoreError, and the DataErrors of the challenge's public
    files.
    """
    with loaded(board, now=now) as view:
        frame = files.Frame(settings=view.settings, phase=view.phase, view=view)
        made = pages.pages(view, frame)
        files.write_site(folder, ((path, make()) for path, make in made.items()))
        return len(made)
