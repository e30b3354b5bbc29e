"""The web application of a board: its public site, sign-in by invitation, uploads, and each team's own page.

What everyone may see are the files of ``geval board site``. Who is signed in sees more, on pages of their own. Forms
work without scripts. A change needs a session of the same origin, or a token; no change is made by GET.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from geval_py.board.operations.receipts import QuotaError, UnknownCodeError
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, RefusedError, TooOftenError
from geval_py.board.people.schema import ORGANISER
from geval_py.board.people.store import People
from geval_py.board.server import openid, organiser, queue, signed_receipts, team, uploads
from geval_py.board.server.context import (
    ACCOUNTS,
    FORM_BYTES,
    NOT_FOUND,
    ServerContext,
    guard,
    server_of,
    visited,
)
from geval_py.board.submission import RejectedError
from geval_py.errors import GevalError, UsageError
from geval_py.text import named, words

CHUNK_BYTES = 1 << 20  # of a form, which is on the disk
RECEIVED_AT_ONCE = 10  # uploads of an account
PAGES = StaticFiles()
STATE_KEY = token_hex()  # signs what a browser keeps while it is at another site; a restart begins anew


class RowNumber(IntegerConvertor):
    """A number in an address that a database can hold."""

    regex = "[0-9]{1,9}"


register_url_convertor("row", RowNumber())


def application(server: ServerContext) -> ASGIApp:
    """Return the application of a server; raises UsageError if the name of a board cannot be its address."""
    handlers = dict.fromkeys((HTTPException, GevalError, ClientDisconnect, OSError), failed)  # OSError: a full disk

    def app_of(server: ServerContext, routes: Sequence[BaseRoute]) -> Starlette:
        state = Middleware(
            SessionMiddleware,
            secret_key=STATE_KEY,
            session_cookie=f"{server.cookie}-sign-in",
            max_age=openid.STATE_SECONDS,
            path=server.path or "/",
            https_only=server.is_secure,
        )
        app = Starlette(routes=routes, exception_handlers=handlers, middleware=[state])
        app.state.server = server
        return app

    taken = words("healthz invitation sign-in sign-out upload static")
    for board in server.boards:
        if board.name in taken or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", board.name, re.ASCII):
            raise UsageError(message=f"the folder {named(board.name)} cannot be the address of a board\n  rename it")
    apps = {one.path: app_of(one, ROUTES) for one in server.boards}
    apps[server.path] = app_of(server, FRONT if apps else ROUTES)

    async def app_at_path(scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application below whose path a request is; a path may have any characters, unlike one of Mount."""
        answer: ASGIApp = PlainTextResponse(NOT_FOUND, 404)
        if (path := scope["path"]) in apps:
            answer = RedirectResponse(f"{path}/", 307)
        elif roots := [one for one in apps if path.startswith(f"{one}/")]:
            answer, scope = apps[roots[0]], {**scope, "root_path": roots[0]}
        await answer(scope, receive, send)

    return guard(app_at_path, is_secure=server.is_secure)


# What anybody may see


async def public(request: Request) -> Response:
    """Serve a page of the site; to members alone, if board.yaml says so."""
    server, path = server_of(request), request.path_params["path"] or "index.html"
    if not path.startswith("static/"):
        await run_in_threadpool(check_access, server, request)
    page = await server.site.answer(path)
    if page is None:
        raise HTTPException(404, NOT_FOUND)
    if PAGES.is_not_modified(page.headers, request.headers):
        return NotModifiedResponse(page.headers)
    return page


def check_access(server: ServerContext, request: Request) -> None:
    """Raise HTTPException for a request of somebody who may not see the board's pages."""
    if server.board().settings.access == "members" and server.current(request) is None:
        raise HTTPException(401, "Sign in first.")


def health(request: Request) -> Response:
    """Return what is wrong with the boards; 503 if none of them can be read."""
    server, waiting, readable, troubles = server_of(request), 0, 0, []
    for one in server.boards or [server]:
        with suppress(GevalError):
            board = one.board()
            with one.live.watched("database"), board.reading() as connection:
                waiting += queue.queue_status(connection, one.clock()).waiting
            readable += 1
        if one.live.trouble:
            troubles.append(f"{one.path}: {one.live.trouble}".removeprefix(": "))
    status = " ".join(troubles) or "fine"
    return JSONResponse({"status": status, "waiting": waiting}, 200 if readable else 503)


def receipt_key(request: Request) -> Response:
    """Publish the key that receipts are verified with, as a JSON Web Key."""
    return Response(signed_receipts.public_text(server_of(request).key), media_type="application/jwk+json")


def front(request: Request) -> Response:
    """Show the boards of a server of several, and who somebody is on each."""
    server = server_of(request)
    boards, troubles = [], []
    for one in server.boards:
        try:
            boards.append((one.path, one.board().settings, one.current(request)))
        except GevalError as error:
            troubles.append(f"{one.name}: {error}")
    return server.page("front", "Challenges", boards=boards, troubles=troubles, now=server.clock())


def choose_board(request: Request) -> Response:
    """Refuse an upload that names no board."""
    server = server_of(request)
    addresses = ", ".join(one.own_address(request, "") for one in server.boards)
    raise RefusedError(f"this server has several boards: use one of the addresses {addresses}")


# Signing in and out


def show_sign_in(request: Request) -> Response:
    """Show how to sign in."""
    return server_of(request).page("sign_in", "Sign in")


def show_invitation(request: Request) -> Response:
    """Show what an invitation offers."""
    server, secret = server_of(request), request.path_params["secret"]
    with server.accounts.reading() as people:
        row = secrets.find(people, secrets.INVITATION, secret, server.clock())
        boards = [People(people.connection, one.accounts.board) for one in server.boards or [server]]
        invited = [accounts.account(board, A.person == row.person) for board in boards] if row is not None else []
    who = next(filter(None, invited), None)
    return server.page("invitation", "Invitation", 200 if who else 404, invitation=row, who=who)


def use_invitation(request: Request) -> Response:
    """Sign in by an invitation."""
    server, secret = server_of(request), request.path_params["secret"]
    server.check_origin(request)
    try:
        with server.accounts.writing() as people:
            person = sign_in.accept(people, secret, server.clock())
            return server.welcome(people, person, "signed in")
    except RefusedError:
        server.count_try(request)
        raise


def sign_out(request: Request) -> Response:
    """End the session."""
    server = server_of(request)
    server.check_origin(request)
    answer = RedirectResponse(f"{server.path}/", 303)
    with server.accounts.writing() as people:
        for cookie in server.cookies:
            if secret := request.cookies.get(cookie, ""):
                secrets.end(people, secrets.SESSION, secret)
                server.set_cookie(answer, "", 0, name=cookie)
    return answer


# Uploads


@asynccontextmanager
async def uploading(request: Request, scope: str = "") -> AsyncIterator[Account]:
    """Yield who uploads something, and count it meanwhile; whoever may not is refused before a byte is read.

    An account sends few at once: slow ones of a single sender would use up the files that the server can open.
    """
    server = server_of(request)

    def sender() -> Account:
        account, board = server.account(request, scope=scope, changes=True), server.board()
        if not account.may_submit:
            raise RefusedError("this account may not submit; ask the organiser")
        server.rates.count(f"uploads of {account.team} to {server.path}", board.settings.server.uploads_an_hour)
        return account

    account = await run_in_threadpool(sender)
    if server.receiving[account.id] >= RECEIVED_AT_ONCE:
        raise TooOftenError(f"{RECEIVED_AT_ONCE} uploads are in progress; wait until one has arrived")
    server.receiving[account.id] += 1
    try:
        yield account
    finally:
        server.receiving[account.id] -= 1


async def put_upload(request: Request) -> Response:
    """Receive a file as the body of PUT; answer with its receipt. ``?test=`` names the test set of an output."""
    server = server_of(request)
    test, dry = request.query_params.get("test", ""), request.query_params.get("dry") == "yes"
    async with uploading(request, secrets.SUBMIT) as account:
        name = request.path_params["name"]
        accepted = await _receive(server, account, name, test, request.stream(), dry=dry)
    return JSONResponse(
        {**accepted, "state": f"{server.path}/api/uploads/{accepted['number']}"}, 200 if accepted["is_known"] else 201
    )


async def upload_form(request: Request) -> Response:
    """Receive a file from the form of a page."""
    server = server_of(request)
    async with uploading(request) as account:
        most = server.board().settings.server.upload
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > most + FORM_BYTES:
            raise HTTPException(413, f"An upload has at most {most + FORM_BYTES:,} bytes.")
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
            accepted = await _receive(server, account, name, test, chunks(), dry=dry)
    return RedirectResponse(f"{server.path}/me/uploads/{accepted['number']}", 303)


async def _receive(
    server: ServerContext, account: Account, name: str, test: str, chunks: AsyncIterator[bytes], *, dry: bool
) -> dict[str, Any]:
    """Write a body to the disk, hash it, and accept it; nothing is left of one that is cut off."""
    board = server.board()
    name = uploads.file_name(name, test, board.settings)
    most = board.settings.server.upload
    digest, size, arrived = hashlib.sha256(), 0, server.clock()
    with TemporaryDirectory(dir=server.place, prefix="upload-") as folder:
        path = os.path.join(folder, "upload")
        with open(path, "wb") as file:
            async for chunk in chunks:
                arrived = server.clock()
                size += len(chunk)
                if size > most:
                    raise HTTPException(413, f"An upload has at most {most:,} bytes.")
                digest.update(chunk)
                await run_in_threadpool(file.write, chunk)
        account = await run_in_threadpool(server.open_account, account)  # it may have been closed or moved meanwhile
        accept = partial(uploads.accept, board, account, path, server.key, arrived=arrived)
        values = {"sent_name": name, "test": test, "sha256": digest.hexdigest(), "bytes": size, "trial": dry}
        async with server.accepting:
            return await run_in_threadpool(accept, **values)


# Failures


async def failed(request: Request, error: Exception) -> Response:
    """Answer that a request failed or was refused; the reason is named if it is the asker's."""
    status, reason = 503, "The board cannot do this now; try again later."
    if isinstance(error, HTTPException):
        status, reason = error.status_code, error.detail
    elif isinstance(error, ClientDisconnect):
        status, reason = 400, "The request was cut off."
        if request.method == "POST":
            logging.getLogger("geval").warning("geval: note: a form was cut off by its sender")
    elif isinstance(error, RefusedError | QuotaError | RejectedError | UsageError | UnknownCodeError):
        is_too_often = isinstance(error, TooOftenError | QuotaError)
        status = 429 if is_too_often else 403 if isinstance(error, RefusedError) else 422
        reason = str(error).replace("\n ", ";")
    server = server_of(request)
    if isinstance(error, GevalError) and not server.boards and server.live.trouble:
        status, reason = 503, server.live.trouble
    if request.url.path.removeprefix(server.path).startswith(("/api/", "/upload/")):
        return JSONResponse({"error": reason}, status)
    if status == 401:
        return RedirectResponse(f"{server.path}/sign-in", 303)
    try:
        return await run_in_threadpool(server.page, "failure", "That did not work", status, reason=reason)
    except GevalError:  # without its settings, a board has no pages
        return PlainTextResponse(f"{reason}\n", status)


def listed(path: str, endpoint: Callable[..., object], *methods: str) -> Route:
    """Return a route with these methods alone.

    Starlette adds HEAD to GET; mail scanners follow links by HEAD, which must change nothing.
    """
    route = Route(path, endpoint, methods=list(methods))
    route.methods = set(methods)
    return route


GET, HEAD, POST, PUT = "GET", "HEAD", "POST", "PUT"
FRONT: list[BaseRoute] = [
    listed("/", front, GET),
    listed("/healthz", health, GET),
    listed("/invitation/{secret}", show_invitation, GET),
    listed("/invitation/{secret}", use_invitation, POST),
    listed("/sign-out", sign_out, POST),
    listed("/upload/{name}", choose_board, PUT),
    Mount("/static", StaticFiles(packages=[("geval_py.board.site", "static")])),
]
ROUTES: list[BaseRoute] = [
    listed("/healthz", health, GET),
    listed("/receipt-key", receipt_key, GET),
    listed("/sign-in", show_sign_in, GET),
    listed(openid.NEXT, openid.choose_name, GET, POST),
    listed(openid.CONNECT, visited(openid.ask_to_connect), GET),
    listed(openid.CONNECT, visited(openid.connect, changes=ACCOUNTS), POST),
    listed("/sign-in/by/{provider}", openid.start, GET),
    listed("/sign-in/by/{provider}/back", openid.come_back, GET),
    listed("/sign-out", sign_out, POST),
    listed("/invitation/{secret}", show_invitation, GET),
    listed("/invitation/{secret}", use_invitation, POST),
    listed("/upload/{name}", put_upload, PUT),
    listed("/api/me", visited(team.who, scope=secrets.READ), GET),
    listed("/api/uploads/{number}", visited(team.upload_state, scope=secrets.READ), GET),
    listed("/me/upload", upload_form, POST),
    *(listed(f"/me{path}", visited(page), GET) for path, page in team.PAGES.items()),
    *(listed(f"/me{path}", visited(change, changes=store), POST) for path, (change, store) in team.CHANGES.items()),
    *(listed(path, visited(page, ORGANISER), GET) for path, page in organiser.PAGES.items()),
    *(
        listed(path, visited(change, ORGANISER, organiser.PEOPLE, changes=store), POST)
        for path, (change, store) in organiser.CHANGES.items()
    ),
    listed("/{path:path}", public, GET, HEAD),
]
