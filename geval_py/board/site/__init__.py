"""A board as static pages: gather what may be shown, render the files, and replace an earlier site."""

from __future__ import annotations

from datetime import datetime

from geval_py.board.database.store import Board
from geval_py.board.site import files, pages
from geval_py.board.site.view import loaded


def build(board: Board, folder: str, *, now: datetime, served: str = "") -> int:
    """Write a board's site into a folder and return the number of files; an earlier site stays until all is written.

    If a site is ``served``, at an address, its pages have links to those of the server and, if that has several
    boards, to their list. Raises UsageError for a folder that holds something else, StoreError, and the DataErrors of
    the challenge's public files.
    """
    shared = board.shared() if served else board
    frame = {"several": shared is not board, "accounts": shared.settings.server}
    with loaded(board, now=now) as view:
        return files.write_site(folder, pages.pages(view, served=served, **frame))
