"""The web application of a board: its public site, sign-in by invitation, uploads, and each team's own page.

What everyone may see are the files of ``geval board site``. Who is signed in sees more, on pages of their own. Forms
work without scripts. A change needs a session of the same origin, or a token; no change is made by GET.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from importlib import resources
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from geval_py.board.operations.receipts import QuotaError, UnknownCodeError
from geval_py.board.server import accounts, own_pages, queue, signed_receipts, uploads
from geval_py.board.server.accounts import Account, RefusedError, TooOftenError
from geval_py.board.server.guards import (
    FAILURES_AN_HOUR,
    FORM_BYTES,
    Guards,
    bearer_token,
    is_same_origin,
    one_of_few,
)
from geval_py.board.server.live import LiveBoard, LiveSite
from geval_py.board.server.openid import Reception
from geval_py.board.server.organiser import Desk
from geval_py.board.server.team import TeamPages
from geval_py.board.submission import RejectedError
from geval_py.errors import GevalError, UsageError

COOKIE, SECURE_COOKIE = "geval", "__Host-geval"
IDLE_SECONDS = 30  # that an upload waits for its next bytes
CHUNK_BYTES = 1 << 20  # of a form, which is on the disk
JOINED_BYTES = 1 << 18  # of a body, as it arrives, that are written at once
RECEIVED_AT_ONCE = 10  # uploads of an account
ACCEPTED_AT_ONCE = 4  # uploads that are packed and stored; others wait, in no thread that a page needs
NOT_FOUND = "There is no such page."
SIGN_IN = "Sign in first."


class Server:
    """A board's server; ``url`` is its public address, ``place`` a folder for its temporary files."""

    def __init__(
        self, folder: str, place: str, *, url: str = "", clock: Callable[[], datetime] | None = None
    ) -> None:
        self.clock = clock or (lambda: datetime.now(UTC))
        self.live = LiveBoard(folder)
        self.url = (url or self.live.board().settings.url).rstrip("/")
        self.site = LiveSite(self.live, place, self.clock)
        self.key = signed_receipts.signing_key(folder)
        self.place = place
        self.receiving: Counter[int] = Counter()  # uploads by the id of their account
        self.accepting = asyncio.Semaphore(ACCEPTED_AT_ONCE)
        self.is_secure = self.url.startswith("https://")
        self.cookie = SECURE_COOKIE if self.is_secure else COOKIE

    def app(self) -> Guards:
        """Return the application."""
        routes = [
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/receipt-key", self.receipt_key),
            Route("/static/server.js", _script),
            Route("/sign-in", self.sign_in),
            *Reception(self).routes(),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/invitation/{secret}", self.invitation, methods=["GET", "POST"]),
            Route("/me/upload", self.upload_form, methods=["POST"]),
            Route("/upload/{name}", self.put_upload, methods=["PUT"]),
            *TeamPages(self).routes(),
            *Desk(self).routes(),
            Route("/{path:path}", self.public),
        ]
        handlers = dict.fromkeys((HTTPException, GevalError, OSError), self.failed)  # OSError: a full disk
        return Guards(Starlette(routes=routes, exception_handlers=handlers), is_secure=self.is_secure)

    # Who asks

    def account(self, request: Request, *, scope: str = accounts.SUBMIT) -> Account:
        """Return who is signed in, by a token of a scope or by a session; raises HTTPException."""
        found = self.current(request, scope=scope)
        if found is None:
            if bearer_token(request) is not None:
                self.count_try(request, "failures", FAILURES_AN_HOUR)
            raise HTTPException(401, SIGN_IN)
        return found

    def current(self, request: Request, *, scope: str = accounts.READ) -> Account | None:
        """Return who is signed in; None if nobody is."""
        now, board = self.clock(), self.live.board()
        token = bearer_token(request)
        if token is not None:
            with board.reading() as connection:
                found, of = accounts.token_account(connection, token, now)
            allows = of in accounts.SCOPES[: accounts.SCOPES.index(scope) + 1]
            return found if found is not None and allows else None
        secret = request.cookies.get(self.cookie, "")
        if not secret:
            return None
        with board.reading() as connection:
            found, is_stale = accounts.session_account(connection, secret, now)
        if is_stale and found is not None:
            with board.writing() as connection:
                accounts.note_session(connection, secret, now)
        return found

    def count_try(self, request: Request, what: str, most: int) -> None:
        """Count a try of something, by the address it came from; raises TooOftenError."""
        address = request.client.host if request.client else "unknown"
        name, board = f"{what} from {address}", self.live.board()
        with board.reading() as connection:
            accounts.check_tries(connection, name, most, self.clock())
        with board.writing() as connection:
            accounts.count_try(connection, name, most, self.clock())

    def changer(self, request: Request) -> Account:
        """Return who changes something: by a token, or by a session from a page of this server."""
        account = self.account(request)
        if bearer_token(request) is None and not is_same_origin(request, self.url):
            raise HTTPException(403, "This form is not of this site.")
        return account

    def own_address(self, request: Request, path: str) -> str:
        """Return the public address of a path."""
        return (self.url or str(request.base_url).rstrip("/")) + path

    # What anybody may see

    def public(self, request: Request) -> Response:
        """Serve a file of the site; a page says who is signed in."""
        self.site.wait()
        path = request.path_params["path"] or "index.html"
        parts = path.split("/")
        if any(not part or part.startswith(".") or not part.isprintable() or "\\" in part for part in parts):
            raise HTTPException(404, NOT_FOUND)
        place = os.path.join(self.site.folder, *parts)
        if not os.path.isfile(place):
            raise HTTPException(404, NOT_FOUND)
        if not path.endswith(".html"):
            return FileResponse(place, headers={"Cache-Control": "no-cache"})
        with open(place, encoding="utf-8") as file:
            text = file.read()
        return self._html(text, self.current(request))

    @staticmethod
    def _html(text: str, account: Account | None, status: int = 200) -> Response:
        return HTMLResponse(own_pages.with_account(text, account), status, headers={"Cache-Control": "no-store"})

    def health(self, _: Request) -> Response:
        """Return whether the database can be read; 503 if not."""
        try:
            with self.live.board().reading() as connection:
                waiting = queue.queue_status(connection, self.clock()).waiting
        except GevalError:
            return JSONResponse({"status": "the database cannot be read"}, 503)
        fine = not (self.live.error or self.site.error)
        return JSONResponse({"status": "fine" if fine else "an earlier site is shown", "waiting": waiting})

    def metrics(self, _: Request) -> Response:
        """Return the figures of the queue, for Prometheus."""
        with self.live.board().reading() as connection:
            found = queue.queue_status(connection, self.clock())
        lines = [
            *(
                f'geval_jobs{{state="{state}"}} {getattr(found, state)}'
                for state in ("waiting", "leased", "done", "failed")
            ),
            f"geval_oldest_waiting_seconds {found.oldest_seconds:.0f}",
            f"geval_expired_leases {found.expired}",
        ]
        return PlainTextResponse("\n".join(lines) + "\n")

    def receipt_key(self, _: Request) -> Response:
        """Publish the key that receipts are verified with."""
        return PlainTextResponse(signed_receipts.public_text(self.key) + "\n")

    # Signing in and out

    def sign_in(self, request: Request) -> Response:
        """Show how to sign in."""
        return self.page(request, "sign_in", "Sign in")

    def invitation(self, request: Request) -> Response:
        """Show what an invitation offers; by POST, use it. A GET changes nothing, since programs follow links too."""
        secret, now, board = request.path_params["secret"], self.clock(), self.live.board()
        if request.method == "GET":
            with board.reading() as connection:
                found = accounts.invitation(connection, secret, now)
            return self.page(request, "invitation", "Invitation", 200 if found else 404, invitation=found)
        if not is_same_origin(request, self.url):
            raise HTTPException(403, "This form is not of this site.")
        with board.reading() as connection:
            is_open = accounts.invitation(connection, secret, now) is not None
        if not is_open:
            self.count_try(request, "failures", FAILURES_AN_HOUR)
        with board.writing() as connection:
            account = accounts.accept(connection, secret, now)
            return self.welcome(connection, account, now, "signed in")

    def welcome(self, connection: Connection, account: Account, now: datetime, how: str) -> Response:
        """Start a session, and send the browser to the account's own page."""
        session = accounts.start_session(connection, account.id, now)
        accounts.log(connection, account.name, how, now=now)
        answer = RedirectResponse("/me", 303)
        days = accounts.SESSION_DAYS * 86_400
        answer.set_cookie(
            self.cookie, session, max_age=days, path="/", secure=self.is_secure, httponly=True, samesite="lax"
        )
        return answer

    def sign_out(self, request: Request) -> Response:
        """End the session."""
        self.changer(request)
        with self.live.board().writing() as connection:
            accounts.end_session(connection, request.cookies.get(self.cookie, ""))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(self.cookie, path="/", secure=self.is_secure, httponly=True, samesite="lax")
        return answer

    # Uploads

    async def put_upload(self, request: Request) -> Response:
        """Receive a file as the body of PUT; answer with its receipt. ``?test=`` names the test set of an output."""
        account = await run_in_threadpool(self.changer, request)
        query = request.query_params
        name, test, dry = request.path_params["name"], query.get("test", ""), query.get("dry") == "yes"
        found = await self._receive(account, name, test, request.stream(), dry=dry)
        status = 200 if found.note else 201
        return JSONResponse(
            {
                "number": found.number,
                "note": found.note,
                "receipt": found.receipt,
                "state": f"/api/uploads/{found.number}",
            },
            status,
        )

    async def upload_form(self, request: Request) -> Response:
        """Receive a file from the form of a page; who sends it is known before a byte of it is read."""
        account = await run_in_threadpool(self.changer, request)
        most = self.live.board().settings.server.upload + FORM_BYTES
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > most:
            raise HTTPException(413, f"An upload has at most {most:,} bytes.")
        async with request.form(max_files=1, max_fields=8, max_part_size=FORM_BYTES) as form:
            file = form.get("file")
            if file is None or isinstance(file, str):
                raise HTTPException(400, "Choose a file.")
            test, dry = str(form.get("test") or ""), form.get("dry") == "yes"
            name = file.filename or ""

            async def chunks() -> AsyncIterator[bytes]:
                while chunk := await file.read(CHUNK_BYTES):
                    yield chunk

            test = test if name.endswith(uploads.OUTPUT_ENDINGS) else ""
            found = await self._receive(account, name, test, chunks(), dry=dry)
        return RedirectResponse(f"/me/uploads/{found.number}", 303)

    async def _receive(
        self, account: Account, name: str, test: str, chunks: AsyncIterator[bytes], *, dry: bool
    ) -> uploads.Accepted:
        """Write a body to the disk, hash it, and accept it; nothing is left of one that is cut off."""
        board = self.live.board()
        if not account.may_submit:
            raise RefusedError(reason="this account may not submit; ask the organiser")
        name = uploads.file_name(name, test, board.settings)
        most = board.settings.server.upload
        digest, size = hashlib.sha256(), 0
        few = one_of_few(self.receiving, account.id, RECEIVED_AT_ONCE)
        with few, TemporaryDirectory(dir=self.place, prefix="upload-") as folder:
            path = os.path.join(folder, "upload")
            with open(path, "wb") as file:
                async for chunk in _joined(_in_time(chunks)):
                    size += len(chunk)
                    if size > most:
                        raise HTTPException(413, f"An upload has at most {most:,} bytes.")
                    digest.update(chunk)
                    await run_in_threadpool(file.write, chunk)
            received = uploads.Received(
                path=path,
                name=name,
                test=test,
                sha256=digest.hexdigest(),
                bytes=size,
                arrived=self.clock(),
                dry=dry,
            )
            an_hour = board.settings.server.uploads_an_hour
            async with self.accepting:
                return await run_in_threadpool(uploads.accept, board, account, received, self.key, an_hour)

    # Answers

    def page(self, request: Request, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page of the server; ``account`` is whose it is, if that is known already."""
        account = values.pop("account", None) or self.current(request)
        settings = self.live.board().settings
        text = own_pages.page(self.site.folder, settings, template, title, account=account, **values)
        return self._html(text, account, status)

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer that a request failed or was refused; the reason is named if it is the asker's."""
        status, reason = _status_of(error)
        if _wants_json(request):
            return JSONResponse({"error": reason}, status)
        if status == 401:
            return RedirectResponse("/sign-in", 303)
        return await run_in_threadpool(self._failure, request, status, reason)

    def _failure(self, request: Request, status: int, reason: str) -> Response:
        return self.page(request, "failure", "That did not work", status, reason=reason)


def _script(_: Request) -> Response:
    text = resources.files("geval_py.board.server").joinpath("server.js").read_text(encoding="utf-8")
    return Response(text, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


def _wants_json(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/upload/"))


def _status_of(error: Exception) -> tuple[int, str]:
    """Return the status of an answer, and its reason."""
    if isinstance(error, HTTPException):
        return error.status_code, error.detail
    reason = str(error).replace("\n ", ";")
    if isinstance(error, TooOftenError | QuotaError):
        return 429, reason
    if isinstance(error, RefusedError):
        return 403, reason
    if isinstance(error, RejectedError | UsageError | UnknownCodeError):
        return 422, reason
    return 503, "The board cannot do this now; try again later."


async def _joined(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join the parts of a body, since each one is passed to a thread."""
    joined = bytearray()
    async for chunk in chunks:
        joined += chunk
        if len(joined) >= JOINED_BYTES:
            yield bytes(joined)
            joined.clear()
    yield bytes(joined)


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts of a body; raises HTTPException if none comes for too long, or if the sender has gone."""
    try:
        while True:
            async with asyncio.timeout(IDLE_SECONDS):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    except TimeoutError:
        raise HTTPException(408, f"No byte came for {IDLE_SECONDS} seconds.") from None
    except ClientDisconnect:
        raise HTTPException(400, "The upload was cut off.") from None
