"""The settings of a board's server, under ``server`` in board.yaml: how much is taken, and who else may sign in.

server:
upload: 200_000_000
open: [uni.example]              # whose addresses may make accounts; "*": all
sign_in:
- {name: GitLab, issuer: "https://gitlab.com", client: 0f1e2d, secret: GEVAL_GITLAB_SECRET}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from geval_py.board import strict_yaml
from geval_py.board.strict_yaml import (
    matching,
    number,
    objects_of,
    one_of,
    several,
    some_text,
)

OPENID, GITHUB = PROVIDER_KINDS = ("openid", "github")
ANYBODY = "*"
JSON, SLACK, DISCORD = WEBHOOK_KINDS = ("json", "slack", "discord")


# An address of a provider is https or, on this machine alone, http.
_SITE = matching(
    r"(https://[\w.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?(/[\w.~/-]*)?",
    "is the address of a provider, such as https://gitlab.com",
    lambda address: address.rstrip("/"),
)
_VARIABLE = matching("[A-Z_][A-Z0-9_]*", "names an environment variable, such as GEVAL_GITLAB_SECRET")
_ADDRESS = matching(r"(?a)[\w.+-]+@[\w.-]+", "is an e-mail address")
_DOMAIN = matching(
    r"\*|[a-z0-9-]+(\.[a-z0-9-]+)+",
    "lists domains of e-mail addresses, such as uni.example, or '*' for all",
    str.lower,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A site that says who somebody is: of OpenID Connect by its ``issuer``, or GitHub.

    ``client`` is the server's name there; ``secret`` is the environment variable with the client's secret.
    """

    name: Annotated[str, some_text]
    issuer: Annotated[str, _SITE]
    client: Annotated[str, some_text]
    secret: Annotated[str, _VARIABLE]
    kind: Annotated[str, one_of(PROVIDER_KINDS)] = OPENID

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

    name: Annotated[str, some_text]
    url: Annotated[str, _VARIABLE]
    kind: Annotated[str, one_of(WEBHOOK_KINDS)] = JSON
    secret: Annotated[str, _VARIABLE] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A server that takes mail; ``password`` is an environment variable. Without ``tls`` it must be trusted."""

    host: Annotated[str, some_text]
    sender: Annotated[str, _ADDRESS]
    port: Annotated[int, number(1, 65535)] = 587
    user: Annotated[str, some_text] = ""
    password: Annotated[str, _VARIABLE] = ""
    tls: Annotated[bool, strict_yaml.flag] = True


PROVIDERS = several(
    objects_of(Provider, "needs name, issuer, client, secret of each provider"),
    "slug",
    "gives each provider a name of its own, with a letter or digit from a to z or 0 to 9",
)
WEBHOOKS = several(
    objects_of(Webhook, "needs name, url of each webhook"), "name", "gives each webhook a name of its own"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a board's server: the most bytes of an upload, and the most uploads of a team in an hour.

    ``webhooks`` are told what happens, accounts by ``mail`` what became of their uploads. Accounts of the providers
    ``sign_in`` may sign in. Who has no account and no invitation makes one if the domain of their e-mail address is
    in ``open``.
    """

    upload: Annotated[int, number(1)] = 200_000_000
    uploads_an_hour: Annotated[int, number(1)] = 60
    sign_in: Annotated[tuple[Provider, ...], PROVIDERS] = ()
    open: Annotated[tuple[str, ...], several(_DOMAIN)] = ()
    webhooks: Annotated[tuple[Webhook, ...], WEBHOOKS] = ()
    mail: Annotated[Mail | None, objects_of(Mail, "needs host, sender for mail")] = None

    def is_open_to(self, email: str) -> bool:
        """Whether an address that a provider has verified may make an account.

        >>> ServerSettings(open=("uni.example",)).is_open_to("anna@Uni.example")
        True
        """
        return bool(email) and any(one in (ANYBODY, email.rpartition("@")[2].lower()) for one in self.open)


SERVER = ServerSettings()
