"""The web application of a board: its public site, sign-in by invitation, uploads, and each team's own page.

What everyone may see are the files of ``geval board site``. Who is signed in sees more, on pages of their own. Forms
work without scripts. A change needs a session of the same origin, or a token; no change is made by GET.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from tempfile import TemporaryDirectory

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
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

from geval_py.board.database.schema import ORGANISER
from geval_py.board.operations.receipts import QuotaError, UnknownCodeError
from geval_py.board.server import accounts, openid, organiser, queue, signed_receipts, team, uploads
from geval_py.board.server.accounts import Account, RefusedError, TooOftenError
from geval_py.board.server.context import FORM_BYTES, NOT_FOUND, ServerContext, Visit, guard, server_of, visited
from geval_py.board.submission import RejectedError
from geval_py.errors import GevalError, UsageError
from geval_py.text import named

CHUNK_BYTES = 1 << 20  # of a form, which is on the disk
RECEIVED_AT_ONCE = 10  # uploads of an account
MAX_CACHED = 256  # files of the site, few of which have more than 100 kB
PAGES = StaticFiles()


class RowNumber(IntegerConvertor):
    """A number in an address that a database can hold."""

    regex = "[0-9]{1,9}"


register_url_convertor("row", RowNumber())


def application(server: ServerContext) -> ASGIApp:
    """Return the application of a server; raises UsageError if the name of a board cannot be its address."""
    handlers = dict.fromkeys((HTTPException, GevalError, ClientDisconnect, OSError), failed)  # OSError: a full disk

    def app_of(server: ServerContext, routes: Sequence[BaseRoute]) -> Starlette:
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.state.server = server
        return app

    taken = [route.path.split("/")[1] for route in (*SIGN_IN, *FRONT)]
    for board in server.boards:
        name = board.path.rpartition("/")[2]
        if name in taken or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
            raise UsageError(message=f"the folder {named(name)} cannot be the address of a board\n  rename it")
    apps = {one.path: app_of(one, ROUTES) for one in server.boards}
    apps[server.path] = app_of(server, [*SIGN_IN, *(FRONT if apps else ROUTES)])

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
    """Serve a page of the site."""
    page = await server_of(request).site.answer(request.path_params["path"] or "index.html")
    if page is None:
        raise HTTPException(404, NOT_FOUND)
    if PAGES.is_not_modified(page.headers, request.headers):
        return NotModifiedResponse(page.headers)
    return page


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
    """Show the boards of a server of several."""
    server = server_of(request)
    account, now = server.current(request), server.clock()
    boards, troubles = [], []
    for one in server.boards:
        try:
            boards.append((one.path, one.board().settings))
        except GevalError as error:
            troubles.append(f"{one.path.rpartition('/')[2]}: {error}")
    return server.page("front", "Challenges", account=account, boards=boards, troubles=troubles, now=now)


def choose_board(request: Request) -> Response:
    """Refuse an upload that names no board."""
    server = server_of(request)
    addresses = ", ".join(one.own_address(request, "") for one in server.boards)
    raise RefusedError(f"this server has several boards: use one of the addresses {addresses}")


# Signing in and out


def sign_in(request: Request) -> Response:
    """Show how to sign in."""
    return server_of(request).page("sign_in", "Sign in")


def invitation(request: Request) -> Response:
    """Show what an invitation offers; by POST, use it. A GET changes nothing, since programs follow links too."""
    server, secret = server_of(request), request.path_params["secret"]
    if request.method == "POST":
        server.check_origin(request)
    with server.board().reading() as connection:
        row = accounts.find(connection, accounts.INVITATION, secret, server.clock())
        who = None if row is None else accounts.account(connection, row.account_id)
    if request.method == "GET":
        return server.page("invitation", "Invitation", 200 if who else 404, invitation=row, who=who)
    if row is None:
        server.count_try(request)
    with server.board().writing() as connection:
        account = accounts.accept(connection, secret, server.clock())
        return server.welcome(connection, account, "signed in")


def sign_out(visit: Visit) -> Response:
    """End the session."""
    server = visit.server
    accounts.end(visit.connection, accounts.SESSION, visit.request.cookies.get(server.cookie, ""))
    answer = RedirectResponse(f"{server.path}/", 303)
    server.set_cookie(answer, server.cookie, "", 0)
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
        with board.reading() as connection:
            most, what = board.settings.server.uploads_an_hour, f"uploads {account.submitter_id}"
            accounts.check_tries(connection, what, most, server.clock())
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
    async with uploading(request, accounts.SUBMIT) as account:
        name = request.path_params["name"]
        accepted = await _receive(server, account, name, test, request.stream(), dry=dry)
    return JSONResponse(
        {**accepted, "state": f"{server.path}/api/uploads/{accepted['number']}"}, 200 if accepted["note"] else 201
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
) -> dict[str, str]:
    """Write a body to the disk, hash it, and accept it; nothing is left of one that is cut off."""
    board = server.board()
    name = uploads.file_name(name, test, board.settings)
    most, an_hour = board.settings.server.upload, board.settings.server.uploads_an_hour
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
        await run_in_threadpool(server.own, account)  # it may have been closed meanwhile
        accept = partial(uploads.accept, board, account, path, server.key, arrived=arrived, most=an_hour)
        values = {"name": name, "test": test, "sha256": digest.hexdigest(), "bytes": size, "dry": dry}
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
    if isinstance(error, GevalError) and server.live.trouble:
        status, reason = 503, server.live.trouble
    if request.url.path.removeprefix(server.path).startswith(("/api/", "/upload/")):
        return JSONResponse({"error": reason}, status)
    if status == 401:
        return RedirectResponse(f"{server.front.path}/sign-in", 303)
    try:
        return await run_in_threadpool(server.page, "failure", "That did not work", status, reason=reason)
    except GevalError:  # without its settings, a board has no pages
        return PlainTextResponse(f"{reason}\n", status)


POST, BOTH = ["POST"], ["GET", "POST"]
SIGN_IN: list[Route | Mount] = [
    Route("/healthz", health),
    Route("/sign-in", sign_in),
    Route(openid.NEXT, openid.choose_name, methods=BOTH),
    Route("/sign-in/by/{provider}", openid.start),
    Route("/sign-in/by/{provider}/back", openid.come_back),
    Route("/sign-out", visited(sign_out), methods=POST),
    Route("/invitation/{secret}", invitation, methods=BOTH),
]
FRONT: list[Route | Mount] = [
    Route("/", front),
    Route("/upload/{name}", choose_board, methods=["PUT"]),
    Mount("/static", StaticFiles(packages=[("geval_py.board.site", "static")])),
]
ROUTES = [
    Route("/healthz", health),
    Route("/receipt-key", receipt_key),
    Route("/upload/{name}", put_upload, methods=["PUT"]),
    Route("/api/me", visited(team.who, scope=accounts.READ)),
    Route("/api/uploads/{number}", visited(team.upload_state, scope=accounts.READ)),
    Route("/me/upload", upload_form, methods=POST),
    *(Route(f"/me{path}", visited(page)) for path, page in team.PAGES.items()),
    *(Route(f"/me{path}", visited(change), methods=POST) for path, change in team.CHANGES.items()),
    *(Route(path, visited(page, ORGANISER)) for path, page in organiser.PAGES.items()),
    *(
        Route(path, visited(change, ORGANISER, organiser.PEOPLE), methods=POST)
        for path, change in organiser.CHANGES.items()
    ),
    Route("/{path:path}", public),
]
