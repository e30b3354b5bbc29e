"""Signing in by another site: a provider of OpenID Connect, or GitHub, says who somebody is.

Authlib does the protocol: the authorization code with PKCE, state and nonce, and the check of what the provider has
signed. What it keeps between the two visits stands in the database, under a secret in a cookie of the browser that
began; it is taken from there once.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.starlette_client import OAuth
from joserfc.errors import JoseError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from geval_py.board.database.store import escape_unstorable
from geval_py.board.server import accounts
from geval_py.board.server.accounts import Identity, RefusedError
from geval_py.board.server.guards import is_same_origin, read_form
from geval_py.board.server_settings import GITHUB, Provider, ServerSettings
from geval_py.board.submission import RejectedError
from geval_py.errors import UsageError
from geval_py.text import visible

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from geval_py.board.server.host import Host

COOKIE, SECURE_COOKIE = "geval-sign-in", "__Host-geval-sign-in"
SECONDS = 10  # that a provider has for an answer
STARTS_AN_HOUR = 300  # from one address, behind which a whole university may be
LONGEST = 255  # characters of a subject, by OpenID Connect
NEXT = "/sign-in/name"
Asked = TypeVar("Asked")


class Reception:
    """The pages on which somebody signs in by another site."""

    def __init__(self, server: Host) -> None:
        self._server = server
        self._clients: dict[Provider, Any] = {}
        self._cookie = SECURE_COOKIE if server.is_secure else COOKIE

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(NEXT, self.name, methods=["GET", "POST"]),
            Route("/sign-in/by/{provider}", self.start),
            Route("/sign-in/by/{provider}/back", self.back),
        ]

    async def start(self, request: Request) -> Response:
        """Send a browser to the provider. Only links of this site and bookmarks may begin that."""
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return RedirectResponse("/sign-in", 303)
        provider = self._provider(request)
        await run_in_threadpool(self._server.count_try, request, "sign-ins", STARTS_AN_HOUR)
        kept: dict[str, Any] = {}
        request.scope["session"] = kept
        back = self._server.own_address(request, f"/sign-in/by/{provider.key}/back")
        answer: Response = await self._asked(provider, lambda client: client.authorize_redirect(request, back))
        current = await run_in_threadpool(self._server.current, request)
        data = {"provider": provider.key, "session": kept, "account": current.id if current else None}
        return await run_in_threadpool(self._keep, answer, data)

    async def back(self, request: Request) -> Response:
        """Receive a browser that comes back from the provider, and sign in who it is."""
        provider = self._provider(request)
        data = await run_in_threadpool(self._take, request)
        if data.get("provider") != provider.key:
            raise RefusedError(reason="you were away for too long, or began in another browser; sign in again")
        request.scope["session"] = data["session"]
        identity = await self._asked(provider, lambda client: _identity(client, provider, request))

        def sign_in() -> Response:
            board, now = self._server.live.board(), self._server.clock()
            with board.writing() as connection:
                found = accounts.identified(connection, identity, data["account"], now)
                if found is not None:
                    how = f"signed in by {provider.name}"
                    return self._forget(self._server.welcome(connection, found, now, how))
            if not board.settings.server.is_open_to(identity.email):
                who = identity.email or "without a verified address"
                raise RefusedError(
                    reason=f"{provider.name} says that you are {who}, whom nobody has invited yet; ask the organiser"
                )
            return self._keep(RedirectResponse(NEXT, 303), {"identity": asdict(identity)})

        return await run_in_threadpool(sign_in)

    async def name(self, request: Request) -> Response:
        """Ask somebody new for the name of their team; by POST, make their account."""
        form = await read_form(request) if request.method == "POST" else {}
        return await run_in_threadpool(self._name, request, form)

    def _name(self, request: Request, form: dict[str, str]) -> Response:
        board, now = self._server.live.board(), self._server.clock()
        if request.method == "POST" and not is_same_origin(request, self._server.url):
            raise HTTPException(403, "This form is not of this site.")
        data = self._take(request)
        if "identity" not in data:
            raise RefusedError(reason="you were away for too long; sign in again")
        who = Identity(**data["identity"])
        reason = ""
        if request.method == "POST":
            try:
                with board.writing() as connection:
                    found = accounts.enrol(connection, who, form.get("name", ""), now)
                    return self._forget(self._server.welcome(connection, found, now, "made an account"))
            except (RefusedError, RejectedError) as error:
                reason = str(error)
        chosen = form.get("name", who.name)
        values = {"email": who.email, "name": chosen, "reason": reason}
        page = self._server.page(request, "new_name", "Your name", 422 if reason else 200, **values)
        return self._keep(page, data)

    # What is kept of a browser that is on its way

    def _keep(self, answer: Response, data: dict[str, Any]) -> Response:
        with self._server.live.board().writing() as connection:
            secret = accounts.keep_sign_in(connection, data, self._server.clock())
        self._set_cookie(answer, secret, accounts.SIGN_IN_MINUTES * 60)
        return answer

    def _take(self, request: Request) -> dict[str, Any]:
        with self._server.live.board().writing() as connection:
            return accounts.take_sign_in(connection, request.cookies.get(self._cookie, ""), self._server.clock())

    def _forget(self, answer: Response) -> Response:
        self._set_cookie(answer, "", 0)
        return answer

    def _set_cookie(self, answer: Response, value: str, seconds: int) -> None:
        answer.set_cookie(
            self._cookie, value, seconds, path="/", secure=self._server.is_secure, httponly=True, samesite="lax"
        )

    # The provider

    def _provider(self, request: Request) -> Provider:
        providers = self._server.live.board().settings.server.sign_in
        found = next((one for one in providers if one.key == request.path_params["provider"]), None)
        if found is None:
            raise HTTPException(404, "There is no such page.")
        return found

    def _client(self, provider: Provider) -> Any:
        """Return Authlib's client of a provider, which keeps what the provider has published of itself."""
        if provider not in self._clients:
            self._clients[provider] = _new_client(provider, os.environ[provider.secret])
        return self._clients[provider]

    async def _asked(self, provider: Provider, ask: Callable[[Any], Awaitable[Asked]]) -> Asked:
        """Ask something of a provider's client; what goes wrong is told without the provider's own words."""
        try:
            return await ask(self._client(provider))
        except (OAuthError, JoseError) as error:
            raise RefusedError(reason=f"{provider.name} did not sign you in; try again") from error
        except (httpx2.HTTPError, ValueError, TypeError, KeyError, RuntimeError) as error:
            raise HTTPException(503, f"{provider.name} does not answer as it should; try again later.") from error


def check_secrets(settings: ServerSettings) -> None:
    """Raise UsageError if the secret of a provider is not in the environment."""
    for one in settings.sign_in:
        if not os.environ.get(one.secret):
            raise UsageError(
                message=f"the environment variable {one.secret} is empty: board.yaml says that it has the secret of "
                f"{visible(one.name)}, by which people sign in"
            )


def _new_client(provider: Provider, secret: str) -> Any:
    settings: dict[str, Any] = {"client_id": provider.client, "client_secret": secret}
    more: dict[str, Any] = {"timeout": SECONDS, "code_challenge_method": "S256"}
    if provider.kind == GITHUB:
        more["scope"] = "read:user user:email"
        settings["authorize_url"] = f"{provider.issuer}/login/oauth/authorize"
        settings["access_token_url"] = f"{provider.issuer}/login/oauth/access_token"
        is_public = provider.issuer == "https://github.com"
        settings["api_base_url"] = "https://api.github.com/" if is_public else f"{provider.issuer}/api/v3/"
    else:
        more["scope"] = "openid email profile"
        settings["server_metadata_url"] = f"{provider.issuer}/.well-known/openid-configuration"
    return OAuth().register(provider.key, client_kwargs=more, **settings)


async def _identity(client: Any, provider: Provider, request: Request) -> Identity:
    """Return who comes back from a provider."""
    if provider.kind == GITHUB:
        return await _github_identity(client, provider, request)
    metadata = await client.load_server_metadata()
    if str(metadata["issuer"]).rstrip("/") != provider.issuer:
        raise ValueError("the provider has the name of another one")
    must = {"iss": {"essential": True, "value": metadata["issuer"]}}
    token = await client.authorize_access_token(request, claims_options=must)
    claims = token["userinfo"]
    if "email" not in claims and "userinfo_endpoint" in metadata:  # where some providers tell more
        more = await client.userinfo(token=token)
        claims = {**claims, **(more if more.get("sub") == claims["sub"] else {})}
    email = claims.get("email") if claims.get("email_verified") is True else ""
    name = claims.get("preferred_username") or claims.get("nickname") or claims.get("name")
    return _identity_of(provider, claims["sub"], email, name)


async def _github_identity(client: Any, provider: Provider, request: Request) -> Identity:
    """Ask GitHub, which has no OpenID Connect, by its REST API: the user, and the addresses that it has verified."""
    token = await client.authorize_access_token(request)
    answers = [await client.get(path, token=token) for path in ("user", "user/emails")]
    for answer in answers:
        answer.raise_for_status()
    user, emails = (answer.json() for answer in answers)
    verified = [one["email"] for one in emails if one.get("verified") is True and one.get("primary") is True]
    return _identity_of(provider, str(user["id"]), verified[0] if verified else "", user.get("login"))


def _identity_of(provider: Provider, subject: object, email: object, name: object) -> Identity:
    """Return an identity from what a provider says; raises ValueError if it is impossible."""
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST:
        raise ValueError("the provider does not say who it is")
    email, name = (one if isinstance(one, str) else "" for one in (email, name))
    try:
        accounts.check_email(email)
    except UsageError:
        email = ""
    values = {"subject": subject, "email": email, "name": name[:100]}
    return Identity(issuer=provider.issuer, **escape_unstorable(values))
