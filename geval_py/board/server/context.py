"""What every page of the server needs: the board, the clock, the templates; who asks; and how a change is made."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from ipaddress import IPv6Address, IPv6Network
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geval_py.board.database.store import Board, boards_in
from geval_py.board.server import accounts, signed_receipts
from geval_py.board.server.accounts import Account
from geval_py.board.server.live import LiveBoard, LiveSite
from geval_py.board.site.files import Frame
from geval_py.errors import GevalError
from geval_py.tables.table import Table

PAGE_POLICY = (  # in the pages themselves, where frame-ancestors has no meaning
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
POLICY = f"{PAGE_POLICY}; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FORM_BYTES = 65_536  # of a form without a file
IDLE_SECONDS = 30  # that a request waits for the next bytes of its body
HTTPS_ALONE = "max-age=31536000"
COOKIE, PATH_COOKIE, HOST_COOKIE = "geval", "__Secure-geval", "__Host-geval"  # a __Host- cookie has no path
FAILURES_AN_HOUR = 100  # of links and tokens from one address
SUBSCRIBER_BITS = 64  # of an address of IPv6 that are the subscriber's network
ACCEPTED_AT_ONCE = 4  # uploads that are packed and stored; others wait, in no thread that a page needs
NOT_FOUND = "There is no such page."


class ServerContext:
    """A board's server; ``url`` is its public address, ``place`` a folder for its temporary files.

    Without a public address, it may be reached at ``local``. Of a folder of several ``boards`` it is the ``front``,
    which has their accounts: people sign in there.
    """

    def __init__(
        self,
        folder: str,
        place: str,
        *,
        url: str = "",
        local: str = "",
        clock: Callable[[], datetime] | None = None,
        front: ServerContext | None = None,
    ) -> None:
        self.clock = clock or (lambda: datetime.now(UTC))
        self.live = LiveBoard(folder)
        self.url = (url or self.board().settings.url).rstrip("/")
        self.path = urlsplit(self.url).path  # below which all pages are
        self.address = self.url if "://" in self.url else local + self.url
        self.front = front or self
        self.place = place
        self.boards: list[ServerContext] = []
        for path in boards_in(folder):
            name = os.path.basename(path)
            os.mkdir(os.path.join(place, name))
            more: Any = {"local": local, "clock": clock, "front": self}
            self.boards.append(ServerContext(path, os.path.join(place, name), url=f"{self.url}/{name}", **more))
            with suppress(GevalError):  # one that cannot be opened stops no other one
                board = self.boards[-1].board()
            if not self.boards[-1].live.faults:
                accounts.check_shares(board, self.board())
        if not self.boards:
            self.site = LiveSite(self.live, self.clock, lambda view: self.frame(view.front, updated=view.updated))
            self.key = signed_receipts.signing_key(folder)
        self.receiving: Counter[int] = Counter()  # uploads by the id of their account
        self.accepting = asyncio.Semaphore(ACCEPTED_AT_ONCE)
        self.clients: dict[Any, Any] = {}  # Authlib's clients of the providers
        self.is_secure = self.url.startswith("https://")
        self.cookie = COOKIE if not self.is_secure else PATH_COOKIE if self.front.path else HOST_COOKIE
        self.sign_in_cookie = f"{self.cookie}-sign-in"

    def board(self) -> Board:
        """Return the board with the settings of now."""
        return self.live.board()

    def own_address(self, request: Request, path: str) -> str:
        """Return the public address of a path."""
        host = "" if "://" in self.url else f"{request.url.scheme}://{request.url.netloc}"
        return f"{host}{self.url}{path}"

    # Who asks

    def current(self, request: Request, *, scope: str = "") -> Account | None:
        """Return who is signed in, by a session or, with a ``scope``, by a token that has it; None if nobody is."""
        now, shared = self.clock(), self.front.board()
        token, secret = bearer_token(request), request.cookies.get(self.cookie, "")
        account = None
        if scope and token is not None:
            with shared.reading() as connection:
                account, own_scope = accounts.token_account(connection, token, now)
            if own_scope not in accounts.SCOPES[: accounts.SCOPES.index(scope) + 1]:
                return None
        elif secret:
            account = accounts.session_account(shared, secret, now)
        return None if account is None else self.own(account)

    def own(self, account: Account) -> Account | None:
        """Return an account as it is on this board now; None if it was closed."""
        board, shared = self.board(), self.front.board()
        return account if board.place == shared.place else accounts.copied(board, shared, account.id)

    def account(self, request: Request, *, role: str = "", scope: str = "", changes: bool = False) -> Account:
        """Return who asks, or changes something; a session does so from a page of this server.

        Raises HTTPException. Without a ``scope``, no token is accepted. With a ``role``, the page does not exist to
        anybody else.
        """
        token = bearer_token(request)
        if token is not None and not scope:
            raise HTTPException(403, "A token may not do this; sign in.")
        account = self.current(request, scope=scope)
        if account is None:
            if token is not None:
                self.count_try(request)
            raise HTTPException(401, "Sign in first.")
        if changes and token is None:
            self.check_origin(request)
        if role not in ("", account.role):
            raise HTTPException(404, NOT_FOUND)
        return account

    def check_origin(self, request: Request) -> None:
        """Raise HTTPException unless a form is sent from a page of this server, as the browser says.

        A browser that sends neither Sec-Fetch-Site nor Origin is refused. Without a public address, it is that of the
        request.
        """
        site, url = request.headers.get("sec-fetch-site"), urlsplit(self.own_address(request, ""))
        own = f"{url.scheme}://{url.netloc}"
        if site != "same-origin" and (site is not None or request.headers.get("origin", "") != own):
            raise HTTPException(403, "This form does not come from this site.")

    def count_try(self, request: Request, what: str = "failures", most: int | None = None) -> None:
        """Count a try of something, by the address it came from; raises TooOftenError.

        By default, it is a link or a token that is none.
        """
        address = request.client.host if request.client else "unknown"
        with suppress(ValueError):  # a subscriber has all addresses of a network
            one = IPv6Address(address)
            address = str(one.ipv4_mapped or IPv6Network((one, SUBSCRIBER_BITS), strict=False))
        name, board, most = f"{what} from {address}", self.front.board(), most or FAILURES_AN_HOUR
        with board.reading() as connection:
            accounts.check_tries(connection, name, most, self.clock())
        with board.writing() as connection:
            accounts.count_try(connection, name, most, self.clock())

    # Answers

    def page(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page of the server, by the templates of the site."""
        phase = self.board().settings.phase_of(self.clock())
        frame = self.frame(lambda _: phase, policy=PAGE_POLICY)
        text = frame.page(template, title, root=f"{self.path}/", front=f"{self.front.path}/", **values)
        return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})

    def frame(self, front: Callable[[str | None], str], **more: Any) -> Frame:
        """Return what stands around each page."""
        accounts = self.front.board().settings.server
        settings, several = self.board().settings, self.front is not self
        return Frame(settings=settings, front=front, served=self.address, several=several, accounts=accounts, **more)

    def welcome(self, connection: Connection, account: Account, how: str, outdated: str = "") -> Response:
        """Start a session, and send the browser to the account's own page; an ``outdated`` cookie ends."""
        session = accounts.issue(connection, accounts.SESSION, self.clock(), account_id=account.id)
        accounts.log(connection, account.label, how, now=self.clock())
        answer = RedirectResponse(f"{self.path}/" if self.boards else f"{self.path}/me", 303)
        self.set_cookie(answer, self.cookie, session, accounts.DAYS[accounts.SESSION])
        if outdated:
            self.set_cookie(answer, outdated, "", 0)
        return answer

    def set_cookie(self, answer: Response, name: str, value: str, days: float) -> None:
        """Set a cookie that no script reads and no other site sends; for 0 ``days`` delete it."""
        safe: Any = {"path": self.front.path or "/", "secure": self.is_secure, "httponly": True, "samesite": "lax"}
        answer.set_cookie(name, value, round(days * 86_400), **safe)


def server_of(request: Request) -> ServerContext:
    """Return the server that a request came to."""
    server: ServerContext = request.app.state.server
    return server


def download(content: str | Table, name: str, media_type: str = "text/csv") -> Response:
    """Return a file that a browser stores."""
    content = content if isinstance(content, str) else "".join(content.csv())
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


# Pages of accounts, and changes


class Visit(NamedTuple):
    """A request of somebody who is signed in: with its form, in a transaction, if it is to change something.

    ``shared`` is the connection to the accounts, which is another one on a server of several boards; there, the
    ``account`` is a ``person``.
    """

    server: ServerContext
    request: Request
    form: Mapping[str, str]
    account: Account
    person: Account
    connection: Connection
    shared: Connection
    board: Board
    now: datetime

    def ask(self, action: str, back: str, subject: str, remark: str = "") -> Response:
        """Ask whether a change is to be made."""
        page, form = self.server.page, self.form
        return page("confirm", "Confirm", hidden=form, action=action, back=back, subject=subject, remark=remark)

    def log(self, action: str, subject: str = "", detail: str = "") -> None:
        """Write a line of the audit log."""
        accounts.log(self.connection, self.account.label, action, subject, detail, now=self.now)


def visited(
    answer: Callable[[Visit], Response | None], role: str = "", back: str = "/me", scope: str = ""
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that calls ``answer``, for a ``role`` or, by default, for anybody who is signed in.

    Programs have access only where there is a ``scope``, with a token of that scope.

    By GET the function reads one state of the database. By POST it changes something, in one transaction with its
    line of the audit log. What it returns is the answer; by default the browser is sent ``back``.
    """

    async def endpoint(request: Request) -> Response:
        server, changes = server_of(request), request.method == "POST"
        account = await run_in_threadpool(server.account, request, role=role, scope=scope, changes=changes)
        form = defaultdict(str, await read_form(request) if changes else {})

        def run() -> Response:
            board, now = server.board(), server.clock()
            with ExitStack() as stack:
                enter, front = stack.enter_context, server.front.board()
                shared = connection = enter(front.writing() if changes else front.reading())  # as change_team locks
                if server.front is not server:
                    connection = enter(board.writing() if changes else board.reading())
                person = accounts.account(shared, account.id)  # who may have been closed or removed meanwhile
                own = person and server.own(person)
                if person is None or own is None or role not in ("", own.role):
                    raise HTTPException(401, "Sign in first.")
                visit = Visit(server, request, form, own, person, connection, shared, board, now)
                return answer(visit) or RedirectResponse(server.path + back, 303)

        return await run_in_threadpool(run)

    return endpoint


# Requests: what guards every one of them, tokens and forms


def guard(app: ASGIApp, *, is_secure: bool) -> ASGIApp:
    """Return an application whose answers have HEADERS; it gets no body that is compressed or stalls."""
    guards = HEADERS | ({"Strict-Transport-Security": HTTPS_ALONE} if is_secure else {})

    async def guarded_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in guards.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        async def receive_in_time() -> Message:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    return await receive()
            except TimeoutError:
                raise HTTPException(408, f"No data arrived for {IDLE_SECONDS} seconds.") from None

        answer: ASGIApp = app
        names = {name for name, _ in scope["headers"]}
        coding = [value for name, value in scope["headers"] if name == b"content-encoding"]
        if {b"content-length", b"transfer-encoding"} <= names:  # RFC 9112, section 6.1: perhaps smuggled past a proxy
            answer = PlainTextResponse("Send a Content-Length, or chunks.\n", 400, headers={"Connection": "close"})
        elif any(value.strip().lower() not in (b"", b"identity") for value in coding):
            answer = PlainTextResponse("Send the body without a Content-Encoding.\n", 415)
        await answer(scope, receive_in_time, guarded)

    return guarded_app


def bearer_token(request: Request) -> str | None:
    """Return the token of a program; None without one. Basic credentials, which a proxy may want, are none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def read_form(request: Request) -> dict[str, str]:
    """Read a small form; raises HTTPException for another body."""
    if int(request.headers.get("content-length") or FORM_BYTES + 1) > FORM_BYTES:
        raise HTTPException(413, "The form is too long.")
    async with request.form(max_files=0, max_fields=20, max_part_size=FORM_BYTES) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
