"""The web application of a board: its public site, sign-in by invitation, uploads, and each team's own page.

What everyone may see are the files of ``geval board site``. Who is signed in sees more, on pages of their own. Forms
work without scripts. A change needs a session of the same origin, or a token; no change is made by GET.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp

from geval_py.board.intake.archives import is_archive
from geval_py.board.operations.receipts import QuotaError, UnknownCodeError
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, RefusedError, TooOftenError
from geval_py.board.server import openid, organiser, queue, signed_receipts, team, uploads
from geval_py.board.server.context import (
    ACCOUNTS,
    FORM_BYTES,
    NOT_FOUND,
    RECEIVED_AT_ONCE,
    ServerContext,
    guard,
    listed,
    open_form,
    server_of,
    visited,
)
from geval_py.errors import GevalError, RejectedError, UsageError
from geval_py.text import named, words

CHUNK_BYTES = 1 << 20  # of a form, which is on the disk
STATUSES = {  # of errors whose reason the asker may read
    TooOftenError: 429,
    QuotaError: 429,
    RefusedError: 403,
    RejectedError: 422,
    UsageError: 422,
    UnknownCodeError: 422,
    ClientDisconnect: 400,
}
OF_ASKER = RefusedError, RejectedError, QuotaError  # whatever is wrong with the board


def application(server: ServerContext) -> ASGIApp:
    """Return the application of a server; raises UsageError if the name of a board cannot be its address."""
    taken = words("healthz invitation sign-in sign-out upload static")
    for board in server.boards:
        if board.name in taken or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", board.name, re.ASCII):
            raise UsageError(f"the folder {named(board.name)} cannot be the address of a board\n  rename it")
    servers = [*server.boards, server]
    slashes = [Route(one.path, RedirectResponse(f"{one.path}/", 307)) for one in servers if one.path]  # to no host
    mounts = [Mount(one.path, application_of(one)) for one in servers]
    return guard(Router([*slashes, *mounts], redirect_slashes=False), server)


def application_of(server: ServerContext) -> Starlette:
    """Return the application of a board or of the front page of several."""
    state = Middleware(
        SessionMiddleware,
        secret_key=token_hex(),  # no other board's state is valid here; a restart begins anew
        session_cookie=f"{server.cookie}-sign-in",
        max_age=openid.STATE_SECONDS,
        path=server.path or "/",
        https_only=server.is_secure,
    )
    handlers = dict.fromkeys((HTTPException, GevalError, ClientDisconnect, OSError), failed)  # OSError: a full disk
    app = Starlette(routes=FRONT if server.boards else ROUTES, exception_handlers=handlers, middleware=[state])
    app.state.server = server
    return app


# What anybody may see


async def public(request: Request) -> Response:
    """Serve a page of the site; to members alone, if board.yaml says so."""
    server, path = server_of(request), request.path_params["path"] or "index.html"
    _, _, board, _ = await server.live.state(server.clock())
    if board.settings.access == "members" and not path.startswith("static/"):
        await run_in_threadpool(server.require, request)
    page = await server.live.answer(path, server.clock, server.frame)
    if not page:
        raise HTTPException(404, NOT_FOUND)
    if page.headers["etag"] in request.headers.get("if-none-match", ""):
        return NotModifiedResponse(page.headers)
    return page


def health(request: Request) -> Response:
    """Return what is wrong with the boards; 503 if none of them can be read."""
    server, waiting = server_of(request), []
    for board in server.boards or [server]:
        with suppress(GevalError):
            opened = board.board()
            with board.live.watched("database"), opened.reading() as connection:
                waiting.append(queue.queue_status(connection, board.clock()).waiting)
    status = " ".join(server.troubles) or "fine"
    return JSONResponse({"status": status, "waiting": sum(waiting)}, 200 if waiting else 503)


def receipt_key(request: Request) -> Response:
    """Publish the key that receipts are verified with, as a JSON Web Key."""
    return Response(signed_receipts.public_text(server_of(request).key), media_type="application/jwk+json")


def front(request: Request) -> Response:
    """Show the boards of a server of several, and who somebody is on each."""
    server, boards = server_of(request), []
    for board in server.boards:
        with suppress(GevalError):
            board.live.look(server.clock())
            boards.append((board.path, board.board().settings, board.signed_in(request)))
    return server.page("front", "Challenges", boards=boards, troubles=server.troubles, now=server.clock())


def choose_board(request: Request) -> Response:
    """Refuse an upload that names no board."""
    server = server_of(request)
    addresses = ", ".join(board.url for board in server.boards)
    raise RefusedError(f"this server has several boards: use one of the addresses {addresses}")


# Signing in and out


def show_invitation(request: Request) -> Response:
    """Show what an invitation offers."""
    server = server_of(request)
    with server.accounts.reading() as people:
        links = secrets.find(people, secrets.INVITATION, request.path_params["secret"], server.clock())
        account = accounts.account(people, A.person == links[0].person) if links else None
    return server.page("invitation", "Invitation", 200 if account else 404, links=links, who=account)


def use_invitation(request: Request) -> Response:
    """Sign in by an invitation."""
    server = server_of(request)
    try:
        with server.accounts.writing() as people:
            members = sign_in.accept(people, request.path_params["secret"], server.clock())
            return server.welcome(people, members, "signed in")
    except RefusedError:
        server.count_try(request)
        raise


def sign_out(request: Request) -> Response:
    """End the session."""
    server = server_of(request)
    answer = RedirectResponse(f"{server.path}/", 303)
    with server.accounts.writing() as people:
        for cookie in server.cookies:
            secrets.end_everywhere(people, request.cookies.get(cookie, ""))
            server.set_cookie(answer, cookie, "", 0)
    return answer


# Uploads


def sender(request: Request, scope: str) -> Account:
    """Return who uploads something; raises HTTPException, RefusedError."""
    account = server_of(request).require(request, scope=scope)
    if not account.may_submit:
        raise RefusedError("this account may not submit; ask the organiser")
    return account


@asynccontextmanager
async def uploading(request: Request, scope: str = "") -> AsyncIterator[int]:
    """Count an upload, also while it comes, and yield how many bytes it may have.

    Whoever may not send it is refused before a byte is read. An account sends few at once: slow ones of a single
    sender would use up the files that the server can open.
    """
    server = server_of(request)
    account = await run_in_threadpool(sender, request, scope)
    limits = (await run_in_threadpool(server.board)).settings.server
    server.rates.count(f"uploads of {account.team}", limits.uploads_an_hour)
    if server.receiving[account.id].locked():
        raise TooOftenError(f"{RECEIVED_AT_ONCE} uploads are in progress; wait until one has arrived")
    async with server.receiving[account.id]:
        yield limits.upload


async def put_upload(request: Request) -> Response:
    """Receive a file as the body of PUT; answer with its receipt. ``?test=`` names the test set of an output."""
    query = request.query_params
    values = {
        "sent_name": request.path_params["name"],
        "test": query.get("test", ""),
        "trial": query.get("dry") == "yes",
    }
    async with uploading(request, secrets.SUBMIT) as max_bytes:
        accepted = await receive(request, request.stream(), max_bytes, secrets.SUBMIT, **values)
    state = f"{server_of(request).path}/api/uploads/{accepted['number']}"
    return JSONResponse({**accepted, "state": state}, 200 if accepted["is_known"] else 201)


async def upload_form(request: Request) -> Response:
    """Receive a file from the form of a page."""
    async with uploading(request) as max_bytes, open_form(request, max_bytes + FORM_BYTES, max_files=1) as form:
        file = form.get("file")
        if file is None or isinstance(file, str):
            raise HTTPException(400, "Choose a file.")

        async def chunks() -> AsyncIterator[bytes]:
            while chunk := await file.read(CHUNK_BYTES):
                yield chunk

        name = file.filename or ""
        test = "" if is_archive(name) else str(form.get("test") or "")
        values: dict[str, Any] = {"sent_name": name, "test": test, "trial": form.get("dry") == "yes"}
        accepted = await receive(request, chunks(), max_bytes, **values)
    return RedirectResponse(f"{server_of(request).path}/me/uploads/{accepted['number']}", 303)


async def receive(
    request: Request, chunks: AsyncIterator[bytes], max_bytes: int, scope: str = "", **values: Any
) -> dict[str, Any]:
    """Write a file to the disk, hash it, and accept it; nothing is left of one that is cut off."""
    server = server_of(request)
    board = await run_in_threadpool(server.board)
    values["sent_name"] = uploads.file_name(values["sent_name"], values["test"], board.settings)
    digest, size = hashlib.sha256(), 0
    with TemporaryDirectory(dir=server.place, prefix="upload-") as folder:
        path = os.path.join(folder, "upload")
        with open(path, "wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise HTTPException(413, f"An upload has at most {max_bytes:,} bytes.")
                digest.update(chunk)
                await run_in_threadpool(file.write, chunk)
        values |= {"sha256": digest.hexdigest(), "bytes": size, "arrived": server.clock()}
        account = await run_in_threadpool(sender, request, scope)  # closed or moved meanwhile, perhaps
        async with server.accepting:
            return await run_in_threadpool(partial(uploads.accept, board, account, path, server.key, **values))


# Failures


async def failed(request: Request, error: Exception) -> Response:
    """Answer that a request failed or was refused; the reason is named if it is the asker's."""
    server, status, reason = server_of(request), 503, "The board cannot do this now; try again later."
    trouble = "" if server.boards else server.live.trouble
    if isinstance(error, HTTPException):
        status, reason = error.status_code, error.detail
    elif trouble and isinstance(error, GevalError) and not isinstance(error, OF_ASKER):
        reason = trouble
    elif isinstance(error, tuple(STATUSES)):
        status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
        reason = str(error).replace("\n ", ";")
    if request.url.path.startswith((f"{server.path}/api/", f"{server.path}/upload/")):
        return JSONResponse({"error": reason}, status)
    if status == 401:
        return RedirectResponse(f"{server.path}/sign-in", 303)
    typed = getattr(request.state, "typed", {})
    try:
        return await run_in_threadpool(
            server.page, "failure", "That did not work", status, reason=reason, typed=typed
        )
    except GevalError:  # without its settings, a board has no pages
        return PlainTextResponse(f"{reason}\n", status)


SHARED = [
    listed("/healthz", health, "GET"),
    listed("/invitation/{secret}", show_invitation, "GET"),
    listed("/invitation/{secret}", use_invitation, "POST"),
    listed("/sign-out", sign_out, "POST"),
]
FRONT: list[BaseRoute] = [
    *SHARED,
    listed("/", front, "GET"),
    listed("/upload/{name}", choose_board, "PUT"),
    Mount("/static", StaticFiles(packages=[("geval_py.board.site", "static")])),
]
ROUTES = [
    *SHARED,
    listed("/receipt-key", receipt_key, "GET"),
    listed("/sign-in", lambda request: server_of(request).page("sign_in", "Sign in"), "GET"),
    listed(openid.NEXT, openid.choose_name, "GET", "POST"),
    visited(openid.CONNECT, openid.ask_to_connect),
    visited(openid.CONNECT, openid.connect, ACCOUNTS),
    listed("/sign-in/by/{provider}", openid.start, "GET"),
    listed("/sign-in/by/{provider}/back", openid.come_back, "GET"),
    listed("/upload/{name}", put_upload, "PUT"),
    listed("/me/upload", upload_form, "POST"),
    *team.ROUTES,
    *organiser.ROUTES,
    listed("/{path:path}", public, "GET", "HEAD"),
]
