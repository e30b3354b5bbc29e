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
class ServerSettings:
    """The settings of a board's server: the most bytes of an upload, and the most uploads of a team in an hour.

    Accounts of the providers ``sign_in`` may sign in. Who has no account and no invitation makes one if the domain of
    their e-mail address is in ``open``.
    """

    upload: int = 200_000_000
    uploads_an_hour: int = 60
    sign_in: tuple[Provider, ...] = ()
    open: tuple[str, ...] = ()

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
        raise WrongValueError("names the environment variable with the secret, such as GEVAL_GITLAB_SECRET")
    return name


def _domain(node: yaml.Node, document: Document) -> str:
    domain = strict_yaml.text(node, document).lower()
    if domain != ANYBODY and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", domain) is None:
        raise WrongValueError("lists domains of e-mail addresses, such as uni.example, or '*' for all")
    return domain


def _provider(node: yaml.Node, document: Document) -> Provider:
    before = len(document.problems)
    values = read_mapping(node, document, PROVIDER_FIELDS)
    if not values.keys() >= PROVIDER_NEEDS.keys() and len(document.problems) == before:
        raise WrongValueError(f"needs {', '.join(PROVIDER_NEEDS)} of each provider")
    return Provider(**PROVIDER_NEEDS | values)


def _providers(node: yaml.Node, document: Document) -> tuple[Provider, ...]:
    providers = several(node, document, read=_provider)
    keys = [one.key for one in providers if one.name]
    if len(set(keys)) < len(keys) or "" in keys:
        raise WrongValueError("gives each provider a name of its own, with a letter or digit from a to z or 0 to 9")
    return providers


PROVIDER_NEEDS: dict[str, Any] = dict.fromkeys(("name", "issuer", "client", "secret"), "")
PROVIDER_FIELDS: Fields = {
    "name": some_text,
    "issuer": _site,
    "client": some_text,
    "secret": _variable,
    "kind": partial(one_of, choices=PROVIDER_KINDS),
}
FIELDS: Fields = {
    **dict.fromkeys(("upload", "uploads_an_hour"), partial(strict_yaml.number, least=1)),
    "sign_in": _providers,
    "open": partial(several, read=_domain),
}


def server_settings(node: yaml.Node, document: Document) -> ServerSettings:
    """Read the settings of a server."""
    return ServerSettings(**read_mapping(node, document, FIELDS))
