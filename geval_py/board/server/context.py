"""What every page of the server needs: the board, the clock, the templates; who asks; and how a change is made."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import IPv6Address, IPv6Network
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
from geval_py.board.server.live import LiveBoard, LiveSite
from geval_py.board.site.files import Frame
from geval_py.errors import GevalError, UsageError
from geval_py.text import visible, words

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
COOKIE, PATH_COOKIE, HOST_COOKIE = "geval", "__Secure-geval", "__Host-geval"  # a __Host- cookie has no path
FAILURES_AN_HOUR = 100  # of links and tokens from one address
SUBSCRIBER_BITS = 64  # of an address of IPv6 that are the subscriber's network
ACCEPTED_AT_ONCE = 4  # uploads that are packed and stored; others wait, in no thread that a page needs
NOT_FOUND, SIGN_IN = "There is no such page.", "Sign in first."
NO_TOKEN = "A token may not do this; sign in."
LOG = logging.getLogger("geval")


class Rates:
    """How often things were tried in this hour of the clock, in memory: a restart begins anew."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock, self._lock, self._hour, self._tries = clock, threading.Lock(), clock(), Counter[str]()

    def count(self, name: str, most: int) -> None:
        """Count one more try of something; raises TooOftenError beyond ``most`` in this hour."""
        hour = self._clock().replace(minute=0, second=0, microsecond=0)
        with self._lock:
            if hour != self._hour:
                self._hour = hour
                self._tries.clear()
            self._tries[name] += 1
            tries = self._tries[name]
        if tries == most + 1:
            LOG.warning("geval: note: more than %d %s in one hour", most, visible(name))
        if tries > most:
            end_of_hour = f"{hour + timedelta(hours=1):%H:%M} UTC"
            raise TooOftenError(f"more than {most} times in one hour; try again after {end_of_hour}")


class ServerContext:
    """A board's server; ``url`` is its public address, ``place`` a folder for its temporary files.

    Without a public address, it may be reached at ``local``. Of a folder of several ``boards`` it is the ``front``,
    which lists them. Each board has its own accounts, sessions and settings.
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
        self.place, self.name = place, os.path.basename(os.path.abspath(folder))
        paths = boards_in(folder)
        if paths:
            self.accounts = AccountStore(shared_accounts(folder))
        else:
            self.live = LiveBoard(folder)
            self.site = LiveSite(self.live, self.clock, self.frame)
            self.key = signed_receipts.signing_key(folder)
        self.url = (url or ("" if paths else self.board().settings.url)).rstrip("/")
        self.path = urlsplit(self.url).path  # below which all pages are
        self.address = self.url if "://" in self.url else local + self.url
        self.front = front or self
        self.is_secure = self.url.startswith("https://")
        self.cookie = COOKIE if not self.is_secure else PATH_COOKIE if self.front.path else HOST_COOKIE
        if front:
            self.cookie += f"-{self.name}"
        self.rates = Rates(self.clock)
        self.boards = [
            ServerContext(
                path, place, url=f"{self.url}/{os.path.basename(path)}", local=local, clock=clock, front=self
            )
            for path in paths
        ]
        self.receiving: Counter[str] = Counter()  # uploads by the id of their account
        self.accepting = asyncio.Semaphore(ACCEPTED_AT_ONCE)
        self.clients: dict[Any, Any] = {}  # Authlib's clients of the providers

    def board(self) -> Board:
        """Return the board with the settings of now."""
        return self.live.board()

    @cached_property
    def accounts(self) -> AccountStore:
        """The accounts of the board; raises GevalError as long as it cannot be opened."""
        return accounts_of(self.board())

    @property
    def troubles(self) -> list[str]:
        """What is wrong with the boards, for anybody."""
        faulty = (server for server in self.boards or [self] if server.live.trouble)
        return [f"{server.path}: {server.live.trouble}".removeprefix(": ") for server in faulty]

    def own_address(self, request: Request, path: str) -> str:
        """Return the public address of a path."""
        host = "" if "://" in self.url else f"{request.url.scheme}://{request.url.netloc}"
        return f"{host}{self.url}{path}"

    # Who asks

    @property
    def cookies(self) -> list[str]:
        """The names of the cookies with sessions that are valid here: of the board, and of all boards together."""
        return list(dict.fromkeys((self.cookie, self.front.cookie)))

    def signed_in(self, request: Request) -> Account | None:
        """Return who is signed in by a session; None if nobody is."""
        for name in self.cookies:
            secret, prolong = request.cookies.get(name, ""), request.method != "HEAD"
            if person := secrets.session_person(self.accounts, secret, self.clock(), prolong=prolong):
                with self.accounts.reading() as people:
                    return accounts.account(people, A.person == person)
        return None

    def require(self, request: Request, *, role: str = "", scope: str = "") -> Account:
        """Return who is signed in or, with a ``scope``, who has a token of that scope; raises HTTPException.

        With a ``role``, the page does not exist to anybody else.
        """
        token = bearer_token(request)
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

    def accounts_of_person(self, people: People, person: str) -> Iterator[tuple[People, Account]]:
        """Yield the accounts of a person on the boards that can be opened, each with the accounts of its board."""
        for server in self.boards or [self]:
            with suppress(GevalError):
                here = People(people.connection, server.accounts.board)
                if account := accounts.account(here, A.person == person):
                    yield here, account

    def check_origin(self, request: Request) -> None:
        """Raise HTTPException unless a change has a token, or comes from a page of this server, as the browser says.

        No form may have a token. A browser that sends neither Sec-Fetch-Site nor Origin is refused. Without a public
        address, it is that of the request.
        """
        if bearer_token(request) is not None:
            if request.method == "POST":
                raise HTTPException(403, NO_TOKEN)
            return
        site, url = request.headers.get("sec-fetch-site"), urlsplit(self.own_address(request, ""))
        origin = f"{url.scheme}://{url.netloc}"
        if site != "same-origin" and (site is not None or request.headers.get("origin", "") != origin):
            raise HTTPException(403, "This form does not come from this site.")

    def count_try(self, request: Request, what: str = "failures", most: int = 0) -> None:
        """Count an attempt from an address, by default an invalid link or token; raises TooOftenError."""
        address = request.client.host if request.client else "unknown"
        with suppress(ValueError):  # a subscriber has all addresses of a network
            ip = IPv6Address(address)
            address = str(ip.ipv4_mapped or IPv6Network((ip, SUBSCRIBER_BITS), strict=False))
        self.front.rates.count(f"{what} from {address}", most or FAILURES_AN_HOUR)

    # Answers

    def frame(self, settings: Any, phase: str, **more: Any) -> Frame:
        """Return what stands around each page."""
        return Frame(settings=settings, phase=phase, served=self.address, several=self.front is not self, **more)

    def page(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page of the server, by the templates of the site."""
        settings: Any = SimpleNamespace(title=self.name, tests=()) if self.boards else self.board().settings
        phase = "" if self.boards else settings.phase_of(self.clock())
        frame = self.frame(settings, phase, policy=PAGE_POLICY)
        text = frame.page(template, title, root=f"{self.path}/", **values)
        return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})

    def welcome(self, people: People, person: str, how: str) -> Response:
        """Start a session of a person, and send the browser to the person's own page."""
        session = secrets.issue(people, secrets.SESSION, person, self.clock())
        for here, account in self.accounts_of_person(people, person):
            accounts.log(here, account.label, how, now=self.clock())
        answer = RedirectResponse(f"{self.path}/" if self.boards else f"{self.path}/me", 303)
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


class GuardedRoute(Route):
    """A route for the listed methods alone; it takes no change from a page of another site.

    Starlette adds HEAD to GET; mail scanners follow links by HEAD, which must change nothing.
    """

    def __init__(self, path: str, endpoint: Callable[..., object], *methods: str) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.methods = set(methods)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check who sends a change, and call the endpoint."""
        if scope["method"] in ("POST", "PUT"):
            request = Request(scope)
            server_of(request).check_origin(request)
        await super().handle(scope, receive, send)


# Pages of accounts, and changes


BOARD, ACCOUNTS, NEITHER = "board", "accounts", "neither"  # the store that is open for the changes of a form


class Visit(NamedTuple):
    """A request of somebody who is signed in, with its form.

    ``connection`` and ``people`` read the board and its accounts; if the form ``changes`` one of these stores, that
    is open for writing, and the other is never locked meanwhile.
    """

    server: ServerContext
    request: Request
    form: Mapping[str, str]
    account: Account
    connection: Connection
    people: People
    board: Board
    now: datetime
    changes: str

    def page(self, template: str, title: str, **values: Any) -> Response:
        """Render a page for the account."""
        return self.server.page(template, title, account=self.account, **values)

    def log(self, action: str, subject: str = "", detail: str = "") -> None:
        """Write a line of the audit log, in the transaction of the change."""
        who = self.account.label
        if self.changes == ACCOUNTS:
            accounts.log(self.people, who, action, subject, detail, now=self.now)
        else:
            audit.log(self.connection, who, action, subject, detail, now=self.now)


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
        form = defaultdict(str, (await read_form(request) if changes else {}) | request.path_params)
        if asks and form["sure"] != "yes":
            raise UsageError(message="check the box beside the button, to confirm what you change")

        def run() -> Response:
            board, now = server.board(), server.clock()
            with (
                changing(board, now) if changes == BOARD else board.reading() as connection,
                server.accounts.writing() if changes == ACCOUNTS else server.accounts.reading() as people,
            ):
                current = accounts.account(people, A.id == account.id)  # closed or moved meanwhile, perhaps
                if current is None or role not in ("", current.role):
                    raise HTTPException(401, SIGN_IN)
                visit = Visit(server, request, form, current, connection, people, board, now, changes)
                values = [form[name] for name in words(fields or "")]
                response = answer(visit, *values)
                if fields is not None:
                    visit.log(path.rpartition("/")[2], *values)
                return response if isinstance(response, Response) else RedirectResponse(server.path + back, 303)

        return await run_in_threadpool(run)

    return GuardedRoute(path, endpoint, "POST" if changes else "GET")


# Requests: what guards every one of them, tokens and forms
def guard(app: ASGIApp, *, is_secure: bool) -> ASGIApp:
    """Return an application whose answers have HEADERS; it gets no body that is compressed or stalls.

    Behind a proxy that was not declared all users have its address, and share the limits of wrong links and tokens.
    Then the first request is logged.
    """
    guards = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if is_secure else {})
    undeclared: set[str] = set()

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

        headers, answer = Headers(scope=scope), app
        address = scope["client"][0] if scope.get("client") else ""
        forwarded = headers.get("x-forwarded-for", "")
        if forwarded and address not in forwarded and not undeclared:  # uvicorn believes a declared proxy
            undeclared.add(address)
            hint = "a proxy at %s is not declared, so all its users share one limit; start with --proxies %s"
            LOG.warning(f"geval: note: {hint}", address, address)
        if "content-length" in headers and "transfer-encoding" in headers:  # RFC 9112, 6.1: perhaps smuggled
            answer = PlainTextResponse("Send a Content-Length, or chunks.\n", 400, headers={"Connection": "close"})
        elif not {coding.strip().lower() for coding in headers.getlist("content-encoding")} <= {"", "identity"}:
            answer = PlainTextResponse("Send the body without a Content-Encoding.\n", 415)
        await answer(scope, receive_in_time, guarded)

    return guarded_app


def bearer_token(request: Request) -> str | None:
    """Return the token of a program; None without one. Basic credentials, which a proxy may want, are none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
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
        return {name: value for name, value in form.items() if isinstance(value, str)}
