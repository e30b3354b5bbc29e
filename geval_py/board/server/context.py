"""What every page of the server needs: the board, the clock, the templates; who asks; and how a change is made."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address, IPv6Network
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geval_py.board.database.store import Board, boards_in
from geval_py.board.operations import audit
from geval_py.board.operations.teams import team_id
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import A, Account, RefusedError, TooOftenError
from geval_py.board.people.store import AccountStore, People, accounts_of, shared_accounts
from geval_py.board.ranking.disclosure import changing
from geval_py.board.server import signed_receipts
from geval_py.board.server.live import LiveBoard, LiveSite
from geval_py.board.settings import ServerSettings
from geval_py.board.site.files import Frame
from geval_py.board.site.view import SiteView
from geval_py.tables.table import Table
from geval_py.text import visible

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
LOG = logging.getLogger("geval")


class Rates:
    """How often things were tried in this hour of the clock, in memory: a restart begins anew."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._hour: datetime | None = None
        self._tries: Counter[str] = Counter()

    def count(self, name: str, most: int) -> None:
        """Count one more try of something; raises TooOftenError beyond ``most`` in this hour."""
        hour = self._clock().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        with self._lock:
            if hour != self._hour:
                self._hour, self._tries = hour, Counter()
            self._tries[name] += 1
            tries = self._tries[name]
        if tries == most + 1:
            LOG.warning("geval: note: more than %d %s in one hour", most, visible(name))
        if tries > most:
            end_of_hour = f"{hour + timedelta(hours=1):%H:%M} UTC"
            raise TooOftenError(f"more than {most} times in one hour; try again after {end_of_hour}")


NO_SERVER_SETTINGS = ServerSettings()


@dataclass(frozen=True)
class FrontSettings:
    """What the pages of several boards show in the place of a board's settings."""

    title: str
    tests: tuple[()] = ()
    server: ServerSettings = NO_SERVER_SETTINGS


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
        proxies: Sequence[str] = (),
        front: ServerContext | None = None,
    ) -> None:
        self.proxies = proxies
        self.clock = clock or (lambda: datetime.now(UTC))
        paths = boards_in(folder)
        if not paths:
            self.live = LiveBoard(folder)
        self.url = (url or ("" if paths else self.board().settings.url)).rstrip("/")
        self.path = urlsplit(self.url).path  # below which all pages are
        self.address = self.url if "://" in self.url else local + self.url
        self.front = front or self
        self.place, self.name = place, os.path.basename(os.path.abspath(folder))
        self._accounts = AccountStore(shared_accounts(folder)) if paths else None
        self.is_secure = self.url.startswith("https://")
        self.cookie = COOKIE if not self.is_secure else PATH_COOKIE if self.front.path else HOST_COOKIE
        self.rates: Rates = front.rates if front else Rates(self.clock)
        self.boards: list[ServerContext] = []
        for path in paths:
            name = os.path.basename(path)
            os.mkdir(os.path.join(place, name))
            more: Any = {"local": local, "clock": clock, "front": self}
            self.boards.append(ServerContext(path, os.path.join(place, name), url=f"{self.url}/{name}", **more))
        if front:
            self.cookie += f"-{self.name}"
        if not paths:
            self.site = LiveSite(self.live, self.clock, self.frame_of)
            self.key = signed_receipts.signing_key(folder)
        self.receiving: Counter[str] = Counter()  # uploads by the id of their account
        self.accepting = asyncio.Semaphore(ACCEPTED_AT_ONCE)
        self.clients: dict[Any, Any] = {}  # Authlib's clients of the providers

    def board(self) -> Board:
        """Return the board with the settings of now."""
        return self.live.board()

    @property
    def accounts(self) -> AccountStore:
        """The accounts of the board; raises GevalError as long as it cannot be opened."""
        if self._accounts is None:
            self._accounts = accounts_of(self.board())
        return self._accounts

    def own_address(self, request: Request, path: str) -> str:
        """Return the public address of a path."""
        host = "" if "://" in self.url else f"{request.url.scheme}://{request.url.netloc}"
        return f"{host}{self.url}{path}"

    # Who asks

    @property
    def cookies(self) -> list[str]:
        """The names of the cookies with sessions that are valid here: of the board, and of all boards together."""
        return list(dict.fromkeys((self.cookie, self.front.cookie)))

    def person(self, request: Request) -> str:
        """Return the person of a session on the board, or on all boards of the server; "" if nobody is signed in."""
        for name in self.cookies:
            if secret := request.cookies.get(name, ""):
                prolong = request.method != "HEAD"
                if person := secrets.session_person(self.accounts, secret, self.clock(), prolong=prolong):
                    return person
        return ""

    def current(self, request: Request, *, scope: str = "") -> Account | None:
        """Return who is signed in, by a session or, with a ``scope``, by a token that has it; None if nobody is."""
        token = bearer_token(request)
        if scope and token is not None:
            with self.accounts.reading() as people:
                account, token_scope = sign_in.token_account(people, token, self.clock())
            return account if token_scope in secrets.SCOPES[: secrets.SCOPES.index(scope) + 1] else None
        person = self.person(request)
        with self.accounts.reading() as people:
            return accounts.account(people, A.person == person) if person else None

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

    def open_account(self, account: Account) -> Account:
        """Return an account as it is now; raises RefusedError if it was closed or may not submit."""
        with self.accounts.reading() as people:
            current = accounts.account(people, A.id == account.id)
        if current is None or not current.may_submit:
            raise RefusedError("this account may not submit; ask the organiser")
        return current

    def session_digest(self, request: Request) -> str:
        """Return the digest of the session of a request."""
        values = [request.cookies.get(name, "") for name in self.cookies]
        return secrets.digest_of(next(filter(None, values), ""))

    def check_origin(self, request: Request) -> None:
        """Raise HTTPException unless a form is sent from a page of this server, as the browser says.

        A browser that sends neither Sec-Fetch-Site nor Origin is refused. Without a public address, it is that of the
        request.
        """
        if bearer_token(request) is not None:
            raise HTTPException(403, "A token may not do this; sign in.")
        site, url = request.headers.get("sec-fetch-site"), urlsplit(self.own_address(request, ""))
        own = f"{url.scheme}://{url.netloc}"
        if site != "same-origin" and (site is not None or request.headers.get("origin", "") != own):
            raise HTTPException(403, "This form does not come from this site.")

    def count_try(self, request: Request, what: str = "failures", most: int | None = None) -> None:
        """Count an attempt from an address, by default an invalid link or token; raises TooOftenError."""
        address = request.client.host if request.client else "unknown"
        with suppress(ValueError):  # a subscriber has all addresses of a network
            one = IPv6Address(address)
            address = str(one.ipv4_mapped or IPv6Network((one, SUBSCRIBER_BITS), strict=False))
        self.rates.count(f"{what} from {address}", most or FAILURES_AN_HOUR)

    # Answers

    def page(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page of the server, by the templates of the site."""
        settings: Any = FrontSettings(self.name) if self.boards else self.board().settings
        phase = "" if self.boards else settings.phase_of(self.clock())
        several = self.front is not self
        frame = Frame(settings=settings, phase=phase, served=self.address, several=several, policy=PAGE_POLICY)
        text = frame.page(template, title, root=f"{self.path}/", **values)
        return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})

    def frame_of(self, view: SiteView) -> Frame:
        """Return what stands around each page of the site."""
        values: Any = {"settings": view.settings, "phase": view.phase, "view": view}
        return Frame(**values, served=self.address, several=self.front is not self)

    def welcome(self, people: People, person: str, how: str) -> Response:
        """Start a session of a person, and send the browser to the person's own page."""
        session = secrets.issue(people, secrets.SESSION, person, self.clock())
        for server in self.boards or [self]:
            here = People(people.connection, server.accounts.board)
            if account := accounts.account(here, A.person == person):
                accounts.log(here, account.label, how, now=self.clock())
        answer = RedirectResponse(f"{self.path}/" if self.boards else f"{self.path}/me", 303)
        self.set_cookie(answer, session, secrets.DAYS[secrets.SESSION])
        return answer

    def set_cookie(self, answer: Response, value: str, days: float, *, name: str = "") -> None:
        """Set the cookie of a session, which no script reads and no other site sends; for 0 ``days`` delete it."""
        safe: Any = {"path": self.front.path or "/", "secure": self.is_secure, "httponly": True, "samesite": "lax"}
        answer.set_cookie(name or self.cookie, value, round(days * 86_400), **safe)


def server_of(request: Request) -> ServerContext:
    """Return the server that a request came to."""
    server: ServerContext = request.app.state.server
    return server


def download(content: str | Table, name: str, media_type: str = "text/csv") -> Response:
    """Return a file that a browser stores."""
    content = content if isinstance(content, str) else "".join(content.csv())
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


# Pages of accounts, and changes


BOARD, ACCOUNTS = "board", "accounts"  # the stores that a form may change


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

    @property
    def team_id(self) -> int | None:
        """The id of the account's team on the board, None if it has sent nothing yet."""
        return team_id(self.connection, self.account.team)

    def need_team(self) -> None:
        """Raise RefusedError unless the account may submit for a team."""
        if not self.account.may_submit:
            raise RefusedError("this account has no team, or only reads")

    def log(self, action: str, subject: str = "", detail: str = "") -> None:
        """Write a line of the audit log, in the transaction of the change."""
        who = self.account.label
        if self.changes == ACCOUNTS:
            accounts.log(self.people, who, action, subject, detail, now=self.now)
        else:
            audit.log(self.connection, who, action, subject, detail, now=self.now)


def visited(
    answer: Callable[[Visit], Response | None],
    role: str = "",
    back: str = "/me",
    scope: str = "",
    changes: str = "",
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that calls ``answer``, for a ``role`` or, by default, for anybody who is signed in.

    Programs have access only where there is a ``scope``, with a token of that scope.

    A page reads one state of the databases. A form ``changes`` one of them, in one transaction with its line of the
    audit log. What the function returns is the answer; by default the browser is sent ``back``.
    """

    async def endpoint(request: Request) -> Response:
        server = server_of(request)
        account = await run_in_threadpool(server.account, request, role=role, scope=scope, changes=bool(changes))
        form = defaultdict(str, await read_form(request) if changes else {})

        def run() -> Response:
            board, now = server.board(), server.clock()
            with ExitStack() as stack:
                enter = stack.enter_context
                connection = enter(changing(board, now) if changes == BOARD else board.reading())
                people = enter(server.accounts.writing() if changes == ACCOUNTS else server.accounts.reading())
                own = accounts.account(people, A.id == account.id)  # who may have been closed or moved meanwhile
                if own is None or role not in ("", own.role):
                    raise HTTPException(401, "Sign in first.")
                visit = Visit(server, request, form, own, connection, people, board, now, changes)
                return answer(visit) or RedirectResponse(server.path + back, 303)

        return await run_in_threadpool(run)

    return endpoint


# Requests: what guards every one of them, tokens and forms
def guard(app: ASGIApp, *, is_secure: bool) -> ASGIApp:
    """Return an application whose answers have HEADERS; it gets no body that is compressed or stalls.

    Behind a proxy that was not declared all users have its address, and share the limits of wrong links and tokens.
    Then the first request is logged.
    """
    guards = HEADERS | ({"Strict-Transport-Security": HTTPS_ALONE} if is_secure else {})
    undeclared: set[str] = set()

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

        address = scope["client"][0] if scope.get("client") else ""
        forwarded = Headers(scope=scope).get("x-forwarded-for", "")
        if forwarded and address not in forwarded and not undeclared:  # uvicorn believes a declared proxy
            undeclared.add(address)
            told = "a proxy at %s is not declared, so all its users share one limit; start with --proxies %s"
            LOG.warning(f"geval: note: {told}", address, address)
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
