"""Signing in by another site: a provider of OpenID Connect, or GitHub, says who somebody is.

Authlib does the protocol: the authorization code with PKCE, state and nonce, and the check of what the provider has
signed. What it keeps between the two visits is in a signed cookie of the browser that began, for fifteen minutes.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from geval_py.board.people import accounts, sign_in
from geval_py.board.people.accounts import RefusedError
from geval_py.board.people.sign_in import Identity
from geval_py.board.people.teams import submitter_names
from geval_py.board.server.context import NOT_FOUND, ServerContext, Visit, read_form, server_of
from geval_py.board.settings import GITHUB, Provider, ServerSettings
from geval_py.errors import RejectedError, UsageError
from geval_py.text import visible

SECONDS = 10  # that a provider has for an answer
STATE_SECONDS = 15 * 60  # for which somebody may be away at a provider
STARTS_AN_HOUR = 300  # from one address, behind which a whole university may be
LONGEST = 255  # characters of a subject, by OpenID Connect
NEXT, CONNECT = "/sign-in/name", "/sign-in/connect"
WHO = "who"  # in the browser's state: somebody whom a provider knows, and who has no account yet
TOO_LATE = "the sign-in took too long, or began in another browser; sign in again"
Asked = TypeVar("Asked")


async def start(request: Request) -> Response:
    """Send a browser to the provider. Only links of this site and bookmarks may begin that."""
    server, provider = server_of(request), _provider(request)
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return RedirectResponse(f"{server.path}/sign-in", 303)
    server.count_try(request, "sign-ins", STARTS_AN_HOUR)
    request.session.clear()
    back = f"{server.url}/sign-in/by/{provider.slug}/back"
    return await _asked(server, provider, lambda client: client.authorize_redirect(request, back))


async def come_back(request: Request) -> Response:
    """Receive a browser that comes back from the provider, and sign in who it is.

    If an account is signed in that has not used this provider, ask whether to connect the two.
    """
    server, provider = server_of(request), _provider(request)
    if not any(name.startswith(f"_state_{provider.slug}_") for name in request.session):
        raise RefusedError(TOO_LATE)
    who = await _asked(server, provider, lambda client: _identity(client, provider, request))
    request.session.clear()

    def sign_in_or_ask() -> Response:
        current = server.signed_in(request)
        with server.accounts.writing() as people:
            is_asked = current and not sign_in.person_of(people, who)
            members = [] if is_asked else sign_in.identified(people, who, server.clock())
            if members:
                return server.welcome(people, members, f"signed in by {provider.name}")
        if not current:
            _check_is_open(server, who)
        request.session[WHO] = who._asdict()
        return RedirectResponse(server.path + (CONNECT if current else NEXT), 303)

    return await run_in_threadpool(sign_in_or_ask)


async def choose_name(request: Request) -> Response:
    """Ask somebody new for the name of their team; by POST, make their account."""
    server, form = server_of(request), {}
    if request.method == "POST":
        form = await read_form(request)
    if WHO not in request.session:
        raise RefusedError(TOO_LATE)
    who, reason = Identity(**request.session[WHO]), ""

    def enrol() -> Response:
        _check_is_open(server, who)
        with server.board().reading() as connection:
            others = submitter_names(connection)
        with server.accounts.writing() as people:
            account = sign_in.enrol(people, who, form.get("name", ""), server.clock(), others)
            return server.welcome(people, [account], "made an account")

    if request.method == "POST":
        try:
            answer = await run_in_threadpool(enrol)
        except (RefusedError, RejectedError) as error:
            reason = str(error)
        else:
            request.session.clear()
            return answer
    values = {"email": who.email, "name": form.get("name", who.name), "reason": reason}
    return await run_in_threadpool(server.page, "new_name", "Your name", 422 if reason else 200, **values)


def ask_to_connect(visit: Visit) -> Response:
    """Ask whether an account of another site is to sign in to the account that is signed in."""
    who = visit.request.session.get(WHO)
    if not who:
        raise RefusedError(TOO_LATE)
    return visit.server.page("connect", "Connect", account=visit.account, who=Identity(**who))


def connect(visit: Visit) -> None:
    """Let an account of another site sign in to the account that is signed in."""
    who = visit.request.session.pop(WHO, None)
    if not who:
        raise RefusedError(TOO_LATE)
    sign_in.connect(visit.people, Identity(**who), visit.account, visit.now)
    visit.log("connected", Identity(**who).issuer)


def _check_is_open(server: ServerContext, who: Identity) -> None:
    """Raise RefusedError if somebody may not make an account without an invitation."""
    settings = server.board().settings.server
    if not settings.is_open_to(who.email):
        name = next((provider.name for provider in settings.sign_in if provider.issuer == who.issuer), who.issuer)
        says = f"{who.email} has no invitation" if who.email else f"{name} gave no verified address"
        raise RefusedError(f"{says}; ask the organiser")


# The provider


def _provider(request: Request) -> Provider:
    providers = server_of(request).board().settings.server.sign_in
    provider = next((one for one in providers if one.slug == request.path_params["provider"]), None)
    if not provider:
        raise HTTPException(404, NOT_FOUND)
    return provider


async def _asked(server: ServerContext, provider: Provider, ask: Callable[[Any], Awaitable[Asked]]) -> Asked:
    """Ask something of a provider's client, which keeps what the provider has published of itself.

    What goes wrong is told without the provider's own words.
    """
    import httpx2  # these take a third of a server's start, and few boards have a provider
    from authlib.integrations.base_client import OAuthError
    from authlib.integrations.starlette_client import OAuth
    from joserfc.errors import JoseError

    try:
        if provider not in server.clients:
            settings = {"client_id": provider.client, "client_secret": os.environ[provider.secret]}
            if provider.kind == GITHUB:
                scope, is_public = "read:user user:email", provider.issuer == "https://github.com"
                settings["authorize_url"] = f"{provider.issuer}/login/oauth/authorize"
                settings["access_token_url"] = f"{provider.issuer}/login/oauth/access_token"
                settings["api_base_url"] = "https://api.github.com/" if is_public else f"{provider.issuer}/api/v3/"
            else:
                scope = "openid email profile"
                settings["server_metadata_url"] = f"{provider.issuer}/.well-known/openid-configuration"
            more = {"timeout": SECONDS, "code_challenge_method": "S256", "scope": scope}
            server.clients[provider] = OAuth().register(provider.slug, client_kwargs=more, **settings)
        return await ask(server.clients[provider])
    except (OAuthError, JoseError) as error:
        raise RefusedError(f"{provider.name} did not sign you in; try again") from error
    except (httpx2.HTTPError, ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise HTTPException(503, f"{provider.name} gave an invalid response; try again later.") from error


def check_secrets(settings: ServerSettings) -> None:
    """Raise UsageError if the secret of a provider is not in the environment."""
    for one in settings.sign_in:
        if not os.environ.get(one.secret):
            raise UsageError(
                f"the environment variable {one.secret} is empty: write the client secret of "
                f"{visible(one.name)} into it"
            )


async def _identity(client: Any, provider: Provider, request: Request) -> Identity:
    """Return who comes back from a provider; raises ValueError if what it says is impossible.

    GitHub, which has no OpenID Connect, is asked by its REST API for the user and the addresses that it has verified.
    """
    subject: object
    email: object
    if provider.kind == GITHUB:
        token = await client.authorize_access_token(request)
        answers = [await client.get(path, token=token) for path in ("user", "user/emails")]
        for answer in answers:
            answer.raise_for_status()
        user, emails = (answer.json() for answer in answers)
        verified = [one["email"] for one in emails if one.get("verified") is True and one.get("primary") is True]
        subject, email, name = str(user["id"]), verified[0] if verified else "", user.get("login")
    else:
        metadata = await client.load_server_metadata()
        if str(metadata["issuer"]).rstrip("/") != provider.issuer:
            raise ValueError("the provider has the name of another one")
        must = {"iss": {"essential": True, "value": metadata["issuer"]}}
        token = await client.authorize_access_token(request, claims_options=must)
        claims = token["userinfo"]
        if "email" not in claims and "userinfo_endpoint" in metadata:  # where some providers tell more
            more = await client.userinfo(token=token)
            claims = {**claims, **(more if more.get("sub") == claims["sub"] else {})}
        subject, email = claims["sub"], claims.get("email") if claims.get("email_verified") is True else ""
        name = claims.get("preferred_username") or claims.get("nickname") or claims.get("name")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST:
        raise ValueError("the provider does not say who it is")
    email, name = (one if isinstance(one, str) else "" for one in (email, name))
    try:
        accounts.check_email(email)
    except UsageError:
        email = ""
    return Identity(issuer=provider.issuer, subject=subject, email=email, name=name[:100])
