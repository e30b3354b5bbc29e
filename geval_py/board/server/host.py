"""What the rooms of the server (a team's pages, the organiser's, the reception) need of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy import Connection
    from starlette.requests import Request
    from starlette.responses import Response

    from geval_py.board.server.accounts import Account
    from geval_py.board.server.live import LiveBoard


class Host(Protocol):
    """A server: its board, its clock, its public address (``url``, "" if unknown), and who asks.

    ``place`` is a folder for temporary files.
    """

    live: LiveBoard
    clock: Callable[[], datetime]
    url: str
    place: str
    is_secure: bool

    def current(self, request: Request, *, scope: str = ...) -> Account | None:
        """Return who is signed in; None if nobody is."""

    def account(self, request: Request, *, scope: str = ...) -> Account:
        """Return who is signed in; raises HTTPException."""

    def changer(self, request: Request) -> Account:
        """Return who changes something: by a token, or from a page of this server; raises HTTPException."""

    def own_address(self, request: Request, path: str) -> str:
        """Return the public address of a path."""

    def count_try(self, request: Request, what: str, most: int) -> None:
        """Count a try of something, by the address it came from; raises TooOftenError."""

    def welcome(self, connection: Connection, account: Account, now: datetime, how: str) -> Response:
        """Start a session, and send the browser to the account's own page."""

    def page(self, request: Request, template: str, title: str, status: int = ..., **values: Any) -> Response:
        """Render a page of the server; ``account`` is whose it is, if that is known already."""
