"""The organiser's pages: what is safe of the command line, in a browser; what is done stands in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from geval_py.board.database.schema import ORGANISER, ROLES, SUBMITTER, submissions, submitters
from geval_py.board.operations.notices import announce, take_back
from geval_py.board.operations.submissions import note, withdraw
from geval_py.board.ranking.likeness import likenesses
from geval_py.board.server import accounts, queue
from geval_py.board.server.accounts import Account
from geval_py.board.server.delivery import undelivered
from geval_py.board.server.guards import bearer_token, read_form
from geval_py.board.site.view import announcements_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from geval_py.board.database.store import Board
    from geval_py.board.server.host import Host

HOME = "/organiser"
MOST_LISTED = 200  # submissions, the latest
Form = dict[str, str]


class Desk:
    """The pages of a server for accounts with the role of organiser; all need a session, none takes a token."""

    def __init__(self, server: Host) -> None:
        self._server = server

    def routes(self) -> list[Route]:
        """Return the routes; to anybody else they do not exist."""
        changes: dict[str, Callable[[Board, Account, Form], tuple[str, str]]] = {
            "announce": self._announce,
            "take-back": self._take_back,
            "withdraw": self._withdraw,
            "note": self._note,
            "close": self._close,
            "rescore": self._rescore,
        }
        return [
            Route(HOME, self.home),
            Route(f"{HOME}/log", self.log),
            Route(f"{HOME}/alike", self.alike),
            Route(f"{HOME}/invite", self.invite, methods=["POST"]),
            *(Route(f"{HOME}/{name}", self._changing(change), methods=["POST"]) for name, change in changes.items()),
        ]

    def _organiser(self, request: Request, *, changes: bool = False) -> Account:
        if bearer_token(request) is not None:
            raise HTTPException(403, "A token may not do this; sign in.")
        account = self._server.changer(request) if changes else self._server.account(request, scope=accounts.READ)
        if account.role != ORGANISER:
            raise HTTPException(404, "There is no such page.")
        return account

    # What an organiser sees

    def home(self, request: Request) -> Response:
        """Show the queue, the phases, announcements, submissions and accounts."""
        account, board, now = self._organiser(request), self._server.live.board(), self._server.clock()
        with board.reading() as connection:
            query = select(submissions, submitters.c.name.label("submitter")).join(submitters)
            return self._server.page(
                request,
                "organiser",
                "Organiser",
                account=account,
                queue=list(queue.queue_status(connection, now).lines()),
                undelivered=undelivered(connection),
                phase=board.settings.phase_of(now),
                rescorings=queue.latest_rescorings(connection),
                announcements=announcements_of(connection),
                submissions=connection.execute(query.order_by(submissions.c.id.desc()).limit(MOST_LISTED)).all(),
                accounts=accounts.all_accounts(connection),
                roles=(SUBMITTER, *(role for role in ROLES if role != SUBMITTER)),
            )

    def log(self, request: Request) -> Response:
        """Show the latest lines of the audit log."""
        account = self._organiser(request)
        with self._server.live.board().reading() as connection:
            lines = accounts.audit_log(connection)
        return self._server.page(request, "audit", "Audit log", account=account, lines=lines)

    def alike(self, request: Request) -> Response:
        """Show the outputs of different submitters that are much alike."""
        account, board = self._organiser(request), self._server.live.board()
        with board.reading() as connection:
            pairs = list(likenesses(connection, board.settings))
        return self._server.page(request, "alike", "Much alike", account=account, pairs=pairs)

    # What an organiser does

    async def invite(self, request: Request) -> Response:
        """Invite somebody, or make a new link for an account; the link is shown this once."""
        form = await read_form(request)

        def make() -> Response:
            account, now = self._organiser(request, changes=True), self._server.clock()
            name, team = form.get("name", ""), form.get("team") or None
            with self._server.live.board().writing() as connection:
                secret = accounts.invite(
                    connection,
                    name,
                    email=form.get("email", ""),
                    role=form.get("role") or SUBMITTER,
                    team=team,
                    now=now,
                )
                accounts.log(connection, account.name, "invited", name, form.get("role", ""), now=now)
            link = self._server.own_address(request, f"/invitation/{secret}")
            return self._server.page(
                request, "secret", "Invitation", account=account, secret=link, kind="link", back=HOME
            )

        return await run_in_threadpool(make)

    def _changing(self, change: Callable[[Board, Account, Form], tuple[str, str]]) -> Callable[..., object]:
        """Return the endpoint of a change, which logs what it did, and shows the organiser's page again."""

        async def endpoint(request: Request) -> Response:
            form = await read_form(request)

            def run() -> Response:
                account, board = self._organiser(request, changes=True), self._server.live.board()
                action = request.url.path.removeprefix(f"{HOME}/")
                with board.writing() as connection:  # what is done and its line in the log, or neither
                    subject, detail = change(board, account, form)
                    accounts.log(connection, account.name, action, subject, detail, now=self._server.clock())
                return RedirectResponse(HOME, 303)

            return await run_in_threadpool(run)

        return endpoint

    def _announce(self, board: Board, _: Account, form: Form) -> tuple[str, str]:
        text = form.get("text", "")
        return str(announce(board, text, self._server.clock())), text

    def _take_back(self, board: Board, _: Account, form: Form) -> tuple[str, str]:
        number = form.get("number", "")
        take_back(board, int(number) if number.isdecimal() and len(number) < 10 else 0)
        return number, ""

    def _withdraw(self, board: Board, _: Account, form: Form) -> tuple[str, str]:
        code, reason = form.get("code", ""), form.get("reason", "")
        withdraw(board, code, reason, self._server.clock())
        return code, reason

    def _note(self, board: Board, _: Account, form: Form) -> tuple[str, str]:
        code, remark = form.get("code", ""), form.get("remark", "")
        note(board, code, remark)
        return code, remark

    def _close(self, board: Board, account: Account, form: Form) -> tuple[str, str]:
        with board.writing() as connection:
            found = accounts.account_named(connection, form.get("name", ""))
            if found.id == account.id:
                raise accounts.RefusedError(reason="you cannot close your own account here")
            accounts.close(connection, found.id, self._server.clock())
        return found.name, ""

    def _rescore(self, board: Board, account: Account, form: Form) -> tuple[str, str]:
        dry = form.get("dry") == "yes"
        with board.writing() as connection:
            number = queue.ask_to_rescore(connection, account.name, self._server.clock(), dry=dry)
        return str(number), "dry run" if dry else ""
