"""The pages of a team, and of those who only read: uploads, the quota, tokens, members, final submissions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from geval_py.board.database.store import Board, write_content
from geval_py.board.intake.sandbox import report_in_sandbox
from geval_py.board.operations.receipts import day_of, quota_used, written
from geval_py.board.operations.submissions import name_final, withdraw
from geval_py.board.references import public_answers
from geval_py.board.server import accounts, uploads
from geval_py.board.server.accounts import Account, RefusedError
from geval_py.board.server.guards import FAILURES_AN_HOUR, read_form
from geval_py.board.settings import Phase, Settings
from geval_py.board.site.files import identity
from geval_py.board.site.rendering import render
from geval_py.board.site.submission_pages import shown_scores

if TYPE_CHECKING:
    from starlette.requests import Request

    from geval_py.board.server.host import Host

MOST_IN_FEED = 50
REPORTS_AN_HOUR = 30  # of an account; one takes some seconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BY_THE_TEAM = "by its team"  # the reason of a withdrawal


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many submissions of a day a team has ``used``, of those ``allowed`` (0: any number)."""

    used: int
    allowed: int
    day: str
    next_day: datetime


def quota_of(connection: Connection, settings: Settings, account: Account, now: datetime) -> Quota:
    """Read the quota of an account's team."""
    day = day_of(now, settings.zone)
    return Quota(
        used=quota_used(connection, settings, account.submitter_id, now, with_uploads=True),
        allowed=settings.at(now).submissions_a_day,
        day=day.name,
        next_day=day.end,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MyPage:
    """What a team sees of itself; ``phase`` is the one that is open, None if none has a deadline to come."""

    uploads: Sequence[uploads.UploadView]
    tokens: Sequence[Row[Any]]
    members: Sequence[Account]
    quota: Quota
    phase: Phase | None


def my_page(connection: Connection, settings: Settings, account: Account, now: datetime) -> MyPage:
    """Read what an account sees on its own page."""
    own = uploads.uploads_of(connection, account.submitter_id) if account.submitter_id else []
    return MyPage(
        uploads=own,
        tokens=accounts.tokens_of(connection, account.id, now),
        members=accounts.members(connection, account.submitter_id) if account.submitter_id else [],
        quota=quota_of(connection, settings, account, now),
        phase=next((one for one in settings.phases if now <= one.until), None),
    )


def upload_document(one: uploads.UploadView) -> dict[str, Any]:
    """Return an upload as JSON."""
    names = ("number", "name", "test", "sha256", "bytes", "dry", "state", "reason", "code", "cost", "charge")
    told = {name: getattr(one, name) for name in names}
    return {**told, "settled": one.is_settled, "arrived": written(one.arrived), "problems": list(one.problems)}


class TeamPages:
    """The pages on which a team sees and changes what is its own."""

    def __init__(self, server: Host) -> None:
        self._server = server
        self._reporting = asyncio.Semaphore(1)  # others wait, in no thread that a page needs

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/me", self.me),
            Route("/me/tokens", self.new_token, methods=["POST"]),
            Route("/me/tokens/{number:int}", self.end_token, methods=["POST"]),
            Route("/me/mail", self.mail, methods=["POST"]),
            Route("/feed/{token}", self.feed),
            Route("/me/final", self.final, methods=["POST"]),
            Route("/me/withdraw", self.withdraw, methods=["POST"]),
            Route("/me/invitations", self.invite, methods=["POST"]),
            Route("/me/uploads/{number}", self.upload_page),
            Route("/me/uploads/{number}/receipt", self.receipt),
            Route("/me/uploads/{number}/reports/{output:int}", self.report),
            Route("/api/uploads/{number}", self.upload_state),
            Route("/api/me", self.who),
        ]

    def me(self, request: Request) -> Response:
        """Show a team's uploads, quota, tokens and members."""
        account, board, now = (
            self._server.account(request, scope=accounts.READ),
            self._server.live.board(),
            self._server.clock(),
        )
        with board.reading() as connection:
            own = my_page(connection, board.settings, account, now)
        return self._server.page(
            request, "my_page", "My page", account=account, own=own, endings=uploads.OUTPUT_ENDINGS
        )

    def upload_page(self, request: Request) -> Response:
        """Show what became of an upload."""
        account, one = self._own_upload(request)
        title, explained = f"Upload {one.number}", self._explainable(one)
        return self._server.page(request, "upload", title, account=account, upload=one, explained=explained)

    async def report(self, request: Request) -> Response:
        """Explain an output of a test whose answers are public, on a page to be kept, as ``geval report`` does."""
        async with self._reporting:
            return await run_in_threadpool(self._report, request)

    def _report(self, request: Request) -> Response:
        account, one = self._own_upload(request)
        output = request.path_params["output"]
        row = next((row for row in self._explainable(one) if row.id == output), None)
        if row is None:
            raise HTTPException(404, "There is no such output of a test whose answers are public.")
        board, now = self._server.live.board(), self._server.clock()
        with board.writing() as connection:
            accounts.count_try(connection, f"reports {account.id}", REPORTS_AN_HOUR, now)
        with TemporaryDirectory(dir=self._server.place, prefix="report-") as place:
            path = os.path.join(place, os.path.basename(row.name))
            with board.reading() as connection:
                write_content(connection, row.sha256, path)
            with open(report_in_sandbox(path, row.test, board.settings, place), encoding="utf-8") as page:
                text = page.read()
        name = f"report-{one.number}-{row.test}.html"
        return Response(
            text, media_type="text/html", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )

    def _explainable(self, one: uploads.UploadView) -> list[Row[Any]]:
        board = self._server.live.board()
        tests = [test.name for test in board.settings.tests if public_answers(board.settings, test.name)]
        with board.reading() as connection:
            return uploads.outputs_of(connection, one, tests)

    def receipt(self, request: Request) -> Response:
        """Return the signed receipt of an upload, as a file."""
        _, one = self._own_upload(request)
        headers = {"Content-Disposition": f'attachment; filename="receipt-{one.number}.json"'}
        return Response(one.receipt, media_type="application/json", headers=headers)

    def upload_state(self, request: Request) -> Response:
        """Return the state of an upload as JSON, for ``geval submit`` and the page's script.

        Of scores, it has what the site shows to everybody.
        """
        account, one = self._own_upload(request)
        board, now = self._server.live.board(), self._server.clock()
        with board.reading() as connection:
            scores = shown_scores(connection, board.settings, one.code, one.arrived, now) if one.code else []
            quota = quota_of(connection, board.settings, account, now)
        left = {"used": quota.used, "allowed": quota.allowed, "day": quota.day, "zone": str(board.settings.zone)}
        return JSONResponse(upload_document(one) | {"scores": [asdict(score) for score in scores], "quota": left})

    def _own_upload(self, request: Request) -> tuple[Account, uploads.UploadView]:
        account = self._server.account(request, scope=accounts.READ)
        with self._server.live.board().reading() as connection:
            number = request.path_params["number"]
            found = uploads.uploads_of(connection, account.submitter_id or 0, number=number)
        if not found:
            raise HTTPException(404, "There is no such upload of your team.")
        return account, found[0]

    def who(self, request: Request) -> Response:
        """Return whose token a program has."""
        account = self._server.account(request, scope=accounts.READ)
        return JSONResponse({"name": account.name, "team": account.team, "role": account.role})

    async def new_token(self, request: Request) -> Response:
        """Make a token, or the address of a feed, and show it this once."""
        form = await read_form(request)
        scope = form.get("scope", accounts.SUBMIT)

        def make() -> Response:
            account, now = self._server.changer(request), self._server.clock()
            with self._server.live.board().writing() as connection:
                name = form.get("name", "")
                secret = accounts.make_token(connection, account.id, now=now, name=name, scope=scope)
                accounts.log(connection, account.name, "made a token", now=now)
            if scope == accounts.FEED:
                secret = self._server.own_address(request, f"/feed/{secret}")
            return self._server.page(request, "secret", "Token", account=account, secret=secret, kind=scope)

        return await run_in_threadpool(make)

    def feed(self, request: Request) -> Response:
        """Return a team's uploads as an Atom feed; readers of feeds cannot sign in, so its address has a token."""
        now, board = self._server.clock(), self._server.live.board()
        with board.reading() as connection:
            account, _ = accounts.token_account(connection, request.path_params["token"], now)
            own = uploads.uploads_of(connection, account.submitter_id or 0, most=MOST_IN_FEED) if account else []
        if account is None:
            self._server.count_try(request, "failures", FAILURES_AN_HOUR)
            raise HTTPException(404, "There is no such feed.")
        text = render(
            "own_feed.xml",
            title=board.settings.title,
            account=account,
            uploads=own,
            identity=f"{identity(board.settings)}/of/{account.id}",
            updated=max((one.ended or one.arrived for one in own), default=EPOCH),
            base=self._server.own_address(request, ""),
        )
        return Response(text, media_type="application/atom+xml")

    async def mail(self, request: Request) -> Response:
        """Turn mail about uploads on or off."""
        on = (await read_form(request)).get("on") == "yes"
        return await run_in_threadpool(
            self._change,
            request,
            "turned mail " + ("on" if on else "off"),
            lambda connection, account: accounts.set_mailed(connection, account.id, mailed=on),
        )

    def end_token(self, request: Request) -> Response:
        """End a token."""
        return self._change(
            request,
            "ended a token",
            lambda connection, account: accounts.end_token(connection, account.id, request.path_params["number"]),
        )

    async def invite(self, request: Request) -> Response:
        """Invite somebody into a team, by its owner; the link is shown this once."""
        form = await read_form(request)

        def make() -> Response:
            account, now = self._server.changer(request), self._server.clock()
            if not (account.owner and account.team):
                raise RefusedError(reason="only the owner of a team invites into it")
            with self._server.live.board().writing() as connection:
                accounts.refuse_known(connection, form.get("name", ""))
                secret = accounts.invite(connection, form.get("name", ""), team=account.team, owner=False, now=now)
                accounts.log(connection, account.name, "invited", form.get("name", ""), now=now)
            link = self._server.own_address(request, f"/invitation/{secret}")
            return self._server.page(request, "secret", "Invitation", account=account, secret=link, kind="link")

        return await run_in_threadpool(make)

    async def final(self, request: Request) -> Response:
        """Name a submission as final, or take that back."""
        form = await read_form(request)
        undo = form.get("undo") == "yes"

        def change(board: Board, code: str, now: datetime) -> object:
            return name_final(board, [code], now, undo=undo)

        action = "took back as final" if undo else "named as final"
        return await run_in_threadpool(self._mark, request, form, action, change)

    async def withdraw(self, request: Request) -> Response:
        """Withdraw a submission, by its team."""
        form = await read_form(request)

        def change(board: Board, code: str, now: datetime) -> object:
            return withdraw(board, code, BY_THE_TEAM, now, by_team=True)

        return await run_in_threadpool(self._mark, request, form, "withdrew", change)

    def _mark(
        self, request: Request, form: dict[str, str], action: str, change: Callable[[Board, str, datetime], object]
    ) -> Response:
        """Change a submission of the team, by its code."""
        account, board, now = self._server.changer(request), self._server.live.board(), self._server.clock()
        code = form.get("code", "")
        with board.reading() as connection:
            if not uploads.is_own(connection, account.submitter_id, code):
                raise RefusedError(reason="this is no submission of your team")
        with board.writing() as connection:
            change(board, code, now)
            accounts.log(connection, account.name, action, code, now=now)
        return RedirectResponse("/me", 303)

    def _change(self, request: Request, action: str, change: Callable[[Connection, Account], object]) -> Response:
        account, now = self._server.changer(request), self._server.clock()
        with self._server.live.board().writing() as connection:
            change(connection, account)
            accounts.log(connection, account.name, action, now=now)
        return RedirectResponse("/me", 303)
