"""What every page of the server needs: the board, the clock, the templates; who asks; and how a change is made."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from ipaddress import IPv6Address, IPv6Network
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geval_py.board.database.store import Board, boards_in
from geval_py.board.operations import audit
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, TooOftenError
from geval_py.board.people.store import AccountStore, People, accounts_of, shared_accounts
from geval_py.board.ranking.disclosure import changing
from geval_py.board.server import signed_receipts
from geval_py.board.server.live import LiveBoard
from geval_py.board.site.files import Frame
from geval_py.errors import UsageError
from geval_py.text import visible, words

PAGE_POLICY = (  # in the pages themselves, where frame-ancestors has no meaning
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": f"{PAGE_POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FORM_BYTES = 65_536  # of a form without a file
IDLE_SECONDS = 30  # that a request waits for the next bytes of its body
COOKIE, PATH_COOKIE, HOST_COOKIE = "geval", "__Secure-geval", "__Host-geval"  # a __Host- cookie has no path
FAILURES_AN_HOUR = 100  # of links and tokens from one address
SUBSCRIBER_BITS = 64  # of an address of IPv6 that are the subscriber's network
RECEIVED_AT_ONCE = 10  # uploads of an account
ACCEPTED_AT_ONCE = 4  # uploads that are packed and stored; others wait, in no thread that a page needs
VISITS_AT_ONCE = 8  # pages and forms; others wait, in no thread that another board needs
NOT_FOUND, SIGN_IN = "There is no such page.", "Sign in first."
NO_TOKEN = "A token may not do this; sign in."
LOG = logging.getLogger("geval")


class Rates:
    """How often things were tried in this hour of the clock, in memory: a restart begins anew."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock, self._hour = clock, clock()
        self._tries: dict[str, count[int]] = {}

    def count(self, name: str, most: int) -> None:
        """Count one more try of something; raises TooOftenError beyond ``most`` in this hour."""
        hour = self._clock().replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour, self._tries = hour, {}
        tries = next(self._tries.setdefault(name, count(1)))  # at once, also in threads
        if tries == most + 1:
            LOG.warning("geval: note: more than %d %s in one hour", most, visible(name))
        if tries > most:
            raise TooOftenError(
                f"more than {most} times in one hour; try again after {hour + timedelta(hours=1):%H:%M} UTC"
            )


class ServerContext:
    """A board's server; ``url`` is its public address, ``place`` a folder for its temporary files.

    Without a public address, it is reached at ``local``. Of a folder of several ``boards`` it is the ``front``, which
    lists them. Each board has its own accounts, sessions and settings.
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
        self.clock = clock or partial(datetime.now, UTC)
        self.place, self.name = place, os.path.basename(os.path.abspath(folder))
        paths = boards_in(folder)
        if paths:
            self.accounts = AccountStore(shared_accounts(folder))
        else:
            self.live = LiveBoard(folder)
            self.key = signed_receipts.signing_key(folder)
            self.board = self.live.board  # with the settings of now
            url = url or self.board().settings.url
        self.url = (url if "://" in url else local + url).rstrip("/")
        self.path = urlsplit(self.url).path  # below which all pages are
        self.front = front or self
        self.is_secure = self.url.startswith("https://")
        prefix = COOKIE if not self.is_secure else PATH_COOKIE if self.path else HOST_COOKIE
        self.cookie: str = f"{front.cookie}-{self.name}" if front else prefix
        self.cookies = dict.fromkeys((self.cookie, self.front.cookie))  # of sessions: of the board, and of all boards
        self.frame = partial(Frame, served=self.url, several=front is not None)  # what stands around each page
        self.rates = Rates(self.clock)
        self.boards = [
            ServerContext(
                path, place, url=f"{self.url}/{os.path.basename(path)}", local=local, clock=clock, front=self
            )
            for path in paths
        ]
        self.receiving = defaultdict[str, asyncio.Semaphore](partial(asyncio.Semaphore, RECEIVED_AT_ONCE))
        self.accepting = asyncio.Semaphore(ACCEPTED_AT_ONCE)
        self.visiting = asyncio.Semaphore(VISITS_AT_ONCE)
        self.clients: dict[Any, Any] = {}  # Authlib's clients of the providers

    @cached_property
    def accounts(self) -> AccountStore:
        """The accounts of the board; raises GevalError as long as it cannot be opened."""
        return accounts_of(self.board())

    @property
    def troubles(self) -> list[str]:
        """What is wrong with the boards, for anybody."""
        faulty = (server for server in self.boards or [self] if server.live.trouble)
        return [f"{server.path}: {server.live.trouble}".removeprefix(": ") for server in faulty]

    # Who asks

    def signed_in(self, request: Request) -> Account | None:
        """Return who is signed in by a session; None if nobody is."""
        for name in self.cookies:
            if person := secrets.session_person(self.accounts, request.cookies.get(name, ""), self.clock()):
                with self.accounts.reading() as people:
                    return accounts.account(people, A.person == person)
        return None

    def require(self, request: Request, *, role: str = "", scope: str = "") -> Account:
        """Return who is signed in or, with a ``scope``, who has a token of that scope; raises HTTPException.

        With a ``role``, the page does not exist to anybody else.
        """
        token = bearer_token(request.headers)
        if token is None:
            account = self.signed_in(request)
        elif not scope:
            raise HTTPException(403, NO_TOKEN)
        else:
            with self.accounts.reading() as people:
                account = sign_in.token_account(people, token, scope, self.clock())
            if account is None:
                self.count_try(request)
        if account is None:
            raise HTTPException(401, SIGN_IN)
        if role not in ("", account.role):
            raise HTTPException(404, NOT_FOUND)
        return account

    def count_try(self, request: Request, what: str = "failures", most: int = 0) -> None:
        """Count an attempt from an address, by default an invalid link or token; raises TooOftenError."""
        address = request.client.host if request.client else "unknown"
        with suppress(ValueError):  # a subscriber has all addresses of a network
            ip = IPv6Address(address)
            address = str(ip.ipv4_mapped or IPv6Network((ip, SUBSCRIBER_BITS), strict=False))
        self.front.rates.count(f"{what} from {address}", most or FAILURES_AN_HOUR)

    # Answers

    def page(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page of the server, by the templates of the site."""
        settings: Any = SimpleNamespace(title=self.name, tests=()) if self.boards else self.board().settings
        phase = "" if self.boards else settings.phase_of(self.clock())
        frame = self.frame(settings=settings, phase=phase, policy=PAGE_POLICY)
        return HTMLResponse(frame.page(template, title, root=f"{self.path}/", **values), status)

    def welcome(self, people: People, members: Sequence[Account], how: str) -> Response:
        """Start a session of a person with these accounts, and send the browser to the person's own page."""
        boards = [account.board for account in members]
        session = secrets.issue(people, secrets.SESSION, members[0].person, self.clock(), boards=boards)
        for account in members:
            accounts.log(People(people.connection, account.board), account.label, how, now=self.clock())
        answer = RedirectResponse(f"{self.path}/{'' if self.boards else 'me'}", 303)
        self.set_cookie(answer, self.cookie, session, secrets.DAYS[secrets.SESSION])
        return answer

    def set_cookie(self, answer: Response, name: str, value: str, days: int) -> None:
        """Set the cookie of a session, which no script reads and no other site sends; for 0 ``days`` delete it."""
        path, safe = self.front.path or "/", self.is_secure
        answer.set_cookie(name, value, days * 86_400, path=path, secure=safe, httponly=True, samesite="lax")


def server_of(request: Request) -> ServerContext:
    """Return the server that a request came to."""
    server: ServerContext = request.app.state.server
    return server


def download(lines: Iterable[str], name: str, media_type: str = "text/csv") -> Response:
    """Return a file that a browser stores; Excel reads CSV as UTF-8 if it has a byte order mark."""
    mark = "\ufeff" if media_type == "text/csv" else ""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(mark + "".join(lines), headers=headers, media_type=media_type)


# Routes


def listed(path: str, endpoint: Callable[..., object], *methods: str) -> Route:
    """Return a route with these methods alone.

    Starlette adds HEAD to GET; mail scanners follow links by HEAD, which must change nothing.
    """
    route = Route(path, endpoint, methods=methods)
    route.methods = set(methods)
    return route


# Pages of accounts, and changes


BOARD, ACCOUNTS, NEITHER = "board", "accounts", "neither"  # the store that is open for the changes of a form


class Visit(NamedTuple):
    """A request of somebody who is signed in, with its form.

    ``connection`` and ``people`` read the board and its accounts; if the form changes one of these stores, that is
    open for writing, and the other is never locked meanwhile. ``log`` writes an action, its subject and a detail into
    the audit log, in the transaction of the change; ``page`` renders a page for the account.
    """

    server: ServerContext
    request: Request
    form: Mapping[str, str]
    account: Account
    connection: Connection
    people: People
    board: Board
    now: datetime
    log: Callable[..., None]
    page: Callable[..., Response]


def visited(
    path: str,
    answer: Callable[..., object],
    changes: str = "",
    back: str = "/me",
    fields: str | None = None,
    *,
    role: str = "",
    scope: str = "",
    asks: bool = False,
) -> Route:
    """Return the route of a page or form for a ``role`` or, by default, for anybody who is signed in.

    Programs have access only where there is a ``scope``, with a token of that scope.

    A page reads one state of the databases. A form ``changes`` one of them, in one transaction with its line of the
    audit log. ``answer`` is called with the :class:`Visit` and up to two ``fields`` of the form, which are that line;
    without ``fields``, it writes the line. If the form ``asks``, its box must be checked. If ``answer`` returns no
    response, the browser is sent ``back``.
    """

    async def endpoint(request: Request) -> Response:
        server = server_of(request)
        account = await run_in_threadpool(server.require, request, role=role, scope=scope)
        request.state.typed = await read_form(request) if changes else {}  # which is shown again after an error
        form = defaultdict(str, request.state.typed | request.path_params)
        if asks and form["sure"] != "yes":
            raise UsageError("check the box beside the button, to confirm what you change")

        def run() -> Response:
            board, now = server.board(), server.clock()
            with (
                changing(board, now) if changes == BOARD else board.reading() as connection,
                server.accounts.writing() if changes == ACCOUNTS else server.accounts.reading() as people,
            ):
                if accounts.account(people, A.id == account.id) != account:  # it was closed or changed meanwhile
                    raise HTTPException(401, SIGN_IN)
                write = partial(accounts.log, people) if changes == ACCOUNTS else partial(audit.log, connection)
                log, page = partial(write, account.label, now=now), partial(server.page, account=account)
                visit = Visit(server, request, form, account, connection, people, board, now, log, page)
                values = [form[name] for name in words(fields or "")]
                response = answer(visit, *values)
                if fields is not None:
                    log(path.rpartition("/")[2], *values)
                return response if isinstance(response, Response) else RedirectResponse(server.path + back, 303)

        async with server.visiting:
            return await run_in_threadpool(run)

    return listed(path, endpoint, "POST" if changes else "GET")


# Requests: what guards every one of them, tokens and forms
def guard(app: ASGIApp, server: ServerContext) -> ASGIApp:
    """Return an application whose answers have HEADERS; it gets no body that is compressed or stalls.

    A change needs a token, or comes from a page of this server, as the browser says; no form may have a token. A
    browser that sends neither Sec-Fetch-Site nor Origin is refused.

    Behind a proxy that was not declared all users have its address, and share the limits of wrong links and tokens.
    Then the first request is logged.
    """
    guards = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if server.is_secure else {})
    undeclared: set[str] = set()

    def refusal(method: str, headers: Headers) -> tuple[int, str]:
        url, site = urlsplit(server.url), headers.get("sec-fetch-site", "")
        origin, has_token = f"{url.scheme}://{url.netloc}", bearer_token(headers) is not None
        if "content-length" in headers and "transfer-encoding" in headers:  # RFC 9112, 6.1: perhaps smuggled
            return 400, "Send a Content-Length, or chunks."
        if not {coding.strip().lower() for coding in headers.getlist("content-encoding")} <= {"", "identity"}:
            return 415, "Send the body without a Content-Encoding."
        if has_token and method == "POST":
            return 403, NO_TOKEN
        is_change = method in ("POST", "PUT") and not has_token
        if is_change and site != "same-origin" and (site or headers.get("origin") != origin):
            return 403, f"This form does not come from {origin}, the address of this server."
        return 0, ""

    async def guarded_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(guards)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        async def receive_in_time() -> Message:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    return await receive()
            except TimeoutError:
                raise HTTPException(408, f"No data arrived for {IDLE_SECONDS} seconds.") from None

        headers = Headers(scope=scope)
        address = scope["client"][0] if scope.get("client") else ""
        forwarded = headers.get("x-forwarded-for", "")
        if forwarded and address not in forwarded and not undeclared:  # uvicorn believes a declared proxy
            undeclared.add(address)
            hint = "a proxy at %s is not declared, so all its users share one limit; start with --proxies %s"
            LOG.warning(f"geval: note: {hint}", address, address)
        status, reason = refusal(scope["method"], headers)
        answer = PlainTextResponse(f"{reason}\n", status, headers={"Connection": "close"})
        await (answer if status else app)(scope, receive_in_time, guarded)

    return guarded_app


def bearer_token(headers: Headers) -> str | None:
    """Return the token of a program; None without one. Basic credentials, which a proxy may want, are none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def open_form(
    request: Request, max_bytes: int = FORM_BYTES, max_files: int = 0
) -> AbstractAsyncContextManager[FormData]:
    """Open a form, small but for its files; raises HTTPException for one that is longer, or of unknown length."""
    if int(request.headers.get("content-length") or max_bytes + 1) > max_bytes:
        raise HTTPException(413, f"The form is too long: it may have {max_bytes:,} bytes.")
    return request.form(max_files=max_files, max_fields=20, max_part_size=FORM_BYTES)


async def read_form(request: Request) -> dict[str, str]:
    """Read a small form without files; raises HTTPException."""
    async with open_form(request) as form:
        return {name: str(value) for name, value in form.items()}
