"""The settings of a board's server, under ``server`` in board.yaml: how much is taken, and who else may sign in.

server:
upload: 200_000_000
open: [uni.example]              # whose addresses may make accounts; "*": all
sign_in:
- {name: GitLab, issuer: "https://gitlab.com", client: 0f1e2d, secret: GEVAL_GITLAB_SECRET}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from geval_py.board.strict_yaml import POSITIVE, WrongValueError

OPENID, GITHUB = PROVIDER_KINDS = ("openid", "github")
ANYBODY = "*"
JSON, SLACK, DISCORD = WEBHOOK_KINDS = ("json", "slack", "discord")


def _matching(pattern: str, wrong: str, change: Callable[[str], str] = str) -> Callable[[str], str]:
    """Return a check of a text: after a ``change``, a pattern matches it as a whole; ``wrong`` says what it is."""

    def check(written: str) -> str:
        value = change(written)
        if re.fullmatch(pattern, value) is None:
            raise WrongValueError(wrong)
        return value

    return check


def _distinct(name: str, wrong: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return objects whose attribute ``name`` differs and is not empty; ``wrong`` says what else is wrong."""
    names = {getattr(value, name) for value in values}
    if len(names) < len(values) or "" in names:
        raise WrongValueError(wrong)
    return values


# An address of a provider is https or, on this machine alone, http.
_SITE = _matching(
    r"(https://[\w.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?(/[\w.~/-]*)?",
    "is the address of a provider, such as https://gitlab.com",
    lambda address: address.rstrip("/"),
)
_VARIABLE = _matching("[A-Z_][A-Z0-9_]*", "names an environment variable, such as GEVAL_GITLAB_SECRET")
_ADDRESS = _matching(r"(?a)[\w.+-]+@[\w.-]+", "is an e-mail address")
_DOMAIN = _matching(
    r"\*|[a-z0-9-]+(\.[a-z0-9-]+)+",
    "lists domains of e-mail addresses, such as uni.example, or '*' for all",
    str.lower,
)
_PROVIDERS = partial(
    _distinct, "slug", "gives each provider a name of its own, with a letter or digit from a to z or 0 to 9"
)
_WEBHOOKS = partial(_distinct, "name", "gives each webhook a name of its own")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A site that says who somebody is: of OpenID Connect by its ``issuer``, or GitHub.

    ``client`` is the server's name there; ``secret`` is the environment variable with the client's secret.
    """

    name: str
    issuer: Annotated[str, _SITE]
    client: str
    secret: Annotated[str, _VARIABLE]
    kind: Annotated[str, PROVIDER_KINDS] = OPENID

    @property
    def slug(self) -> str:
        """The name in addresses.

        >>> Provider(name="Our GitLab", issuer="https://gitlab.com", client="x", secret="Y").slug
        'our-gitlab'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that is told what happens; ``url`` and ``secret`` are environment variables: both are secret."""

    name: str
    url: Annotated[str, _VARIABLE]
    kind: Annotated[str, WEBHOOK_KINDS] = JSON
    secret: Annotated[str, _VARIABLE] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A server that takes mail; ``password`` is an environment variable. Without ``tls`` it must be trusted."""

    host: str
    sender: Annotated[str, _ADDRESS]
    port: Annotated[int, range(1, 65536)] = 587
    user: str = ""
    password: Annotated[str, _VARIABLE] = ""
    tls: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a board's server: the most bytes of an upload, and the most uploads of a team in an hour.

    ``webhooks`` are told what happens, accounts by ``mail`` what became of their uploads. Accounts of the providers
    ``sign_in`` may sign in. Who has no account and no invitation makes one if the domain of their e-mail address is
    in ``open``.
    """

    upload: Annotated[int, POSITIVE] = 200_000_000
    uploads_an_hour: Annotated[int, POSITIVE] = 60
    sign_in: Annotated[tuple[Provider, ...], _PROVIDERS] = ()
    open: tuple[Annotated[str, _DOMAIN], ...] = ()
    webhooks: Annotated[tuple[Webhook, ...], _WEBHOOKS] = ()
    mail: Mail | None = None

    def is_open_to(self, email: str) -> bool:
        """Whether an address that a provider has verified may make an account.

        >>> ServerSettings(open=("uni.example",)).is_open_to("anna@Uni.example")
        True
        """
        return bool(email) and any(one in (ANYBODY, email.rpartition("@")[2].lower()) for one in self.open)


SERVER = ServerSettings()
