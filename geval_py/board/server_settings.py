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
from functools import partial
from typing import Any

import yaml

from geval_py.board import strict_yaml
from geval_py.board.strict_yaml import Document, Fields, WrongValueError, one_of, read_mapping, several, some_text

OPENID, GITHUB = PROVIDER_KINDS = ("openid", "github")
ANYBODY = "*"
JSON, SLACK, DISCORD = WEBHOOK_KINDS = ("json", "slack", "discord")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A site that says who somebody is: of OpenID Connect by its ``issuer``, or GitHub.

    ``client`` is the server's name there; ``secret`` is the environment variable with the client's secret.
    """

    name: str
    issuer: str
    client: str
    secret: str
    kind: str = OPENID

    @property
    def key(self) -> str:
        """The name in addresses.

        >>> Provider(name="Our GitLab", issuer="https://gitlab.com", client="x", secret="Y").key
        'our-gitlab'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that is told what happens; ``url`` and ``secret`` are environment variables: both are secret."""

    name: str
    url: str
    kind: str = JSON
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A server that takes mail; ``password`` is an environment variable. Without ``tls`` it must be trusted."""

    host: str
    sender: str
    port: int = 587
    user: str = ""
    password: str = ""
    tls: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a board's server: the most bytes of an upload, and the most uploads of a team in an hour.

    ``webhooks`` are told what happens, accounts by ``mail`` what became of their uploads. Accounts of the providers
    ``sign_in`` may sign in. Who has no account and no invitation makes one if the domain of their e-mail address is
    in ``open``.
    """

    upload: int = 200_000_000
    uploads_an_hour: int = 60
    sign_in: tuple[Provider, ...] = ()
    open: tuple[str, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    mail: Mail | None = None

    def is_open_to(self, email: str) -> bool:
        """Whether an address that a provider has verified may make an account.

        >>> ServerSettings(open=("uni.example",)).is_open_to("anna@Uni.example")
        True
        """
        return bool(email) and any(one in (ANYBODY, email.rpartition("@")[2].lower()) for one in self.open)


SERVER = ServerSettings()


def _site(node: yaml.Node, document: Document) -> str:
    """Read the address of a provider: https or, on this machine alone, http."""
    address = strict_yaml.text(node, document).rstrip("/")
    here = r"http://(localhost|127\.0\.0\.1)"
    if re.fullmatch(rf"(https://[\w.-]+|{here})(:\d+)?(/[\w.~/-]*)?", address) is None:
        raise WrongValueError("is the address of a provider, such as https://gitlab.com")
    return address


def _variable(node: yaml.Node, document: Document) -> str:
    name = strict_yaml.text(node, document)
    if re.fullmatch("[A-Z_][A-Z0-9_]*", name) is None:
        raise WrongValueError("names an environment variable, such as GEVAL_GITLAB_SECRET")
    return name


def _domain(node: yaml.Node, document: Document) -> str:
    domain = strict_yaml.text(node, document).lower()
    if domain != ANYBODY and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", domain) is None:
        raise WrongValueError("lists domains of e-mail addresses, such as uni.example, or '*' for all")
    return domain


def _provider(node: yaml.Node, document: Document) -> Provider:
    return Provider(**_complete(node, document, PROVIDER_FIELDS, PROVIDER_NEEDS, "of each provider"))


def _providers(node: yaml.Node, document: Document) -> tuple[Provider, ...]:
    providers = several(node, document, read=_provider)
    keys = [one.key for one in providers if one.name]
    if len(set(keys)) < len(keys) or "" in keys:
        raise WrongValueError("gives each provider a name of its own, with a letter or digit from a to z or 0 to 9")
    return providers


def _webhook(node: yaml.Node, document: Document) -> Webhook:
    return Webhook(**_complete(node, document, WEBHOOK_FIELDS, WEBHOOK_NEEDS, "of each webhook"))


def _webhooks(node: yaml.Node, document: Document) -> tuple[Webhook, ...]:
    webhooks = several(node, document, read=_webhook)
    if len({one.name for one in webhooks}) < len(webhooks):
        raise WrongValueError("gives each webhook a name of its own")
    return webhooks


def _mail(node: yaml.Node, document: Document) -> Mail:
    return Mail(**_complete(node, document, MAIL_FIELDS, MAIL_NEEDS, "for mail"))


def _address(node: yaml.Node, document: Document) -> str:
    address = strict_yaml.text(node, document)
    if re.fullmatch(r"[\w.+-]+@[\w.-]+", address, re.ASCII) is None:
        raise WrongValueError("is an e-mail address")
    return address


def _complete(
    node: yaml.Node, document: Document, fields: Fields, needs: dict[str, Any], what: str
) -> dict[str, Any]:
    """Read a mapping that has at least the keys of ``needs``, whose values stand for those with an error."""
    before = len(document.problems)
    values = read_mapping(node, document, fields)
    if not values.keys() >= needs.keys() and len(document.problems) == before:
        raise WrongValueError(f"needs {', '.join(needs)} {what}")
    return needs | values


PROVIDER_NEEDS: dict[str, Any] = dict.fromkeys(("name", "issuer", "client", "secret"), "")
PROVIDER_FIELDS: Fields = {
    "name": some_text,
    "issuer": _site,
    "client": some_text,
    "secret": _variable,
    "kind": partial(one_of, choices=PROVIDER_KINDS),
}
WEBHOOK_NEEDS: dict[str, Any] = dict.fromkeys(("name", "url"), "")
WEBHOOK_FIELDS: Fields = {
    "name": some_text,
    "url": _variable,
    "kind": partial(one_of, choices=WEBHOOK_KINDS),
    "secret": _variable,
}
MAIL_NEEDS: dict[str, Any] = dict.fromkeys(("host", "sender"), "")
MAIL_FIELDS: Fields = {
    "host": some_text,
    "sender": _address,
    "port": partial(strict_yaml.number, least=1, most=65535),
    "user": some_text,
    "password": _variable,
    "tls": strict_yaml.flag,
}
FIELDS: Fields = {
    **dict.fromkeys(("upload", "uploads_an_hour"), partial(strict_yaml.number, least=1)),
    "sign_in": _providers,
    "open": partial(several, read=_domain),
    "webhooks": _webhooks,
    "mail": _mail,
}


def server_settings(node: yaml.Node, document: Document) -> ServerSettings:
    """Read the settings of a server."""
    return ServerSettings(**read_mapping(node, document, FIELDS))
