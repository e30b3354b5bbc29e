"""How a submission describes itself in gonito.yaml. What is wrong there is left out, with a note."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from annotated_types import MaxLen

from geval_py.board import strict_yaml
from geval_py.board.submission import GONITO_FILE, MAX_GONITO_BYTES, MAX_NAME, MAX_PARAMS, MAX_TAGS, MAX_TEXT, Details
from geval_py.errors import ConfigError
from geval_py.text import visible

MAX_VALUE = 1000  # characters of the value of a parameter, and of a link
MAX_LINKS = 20
MAX_NOTES = 10


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of a submission."""

    url: Annotated[str, MaxLen(MAX_VALUE)]
    title: Annotated[str, MaxLen(MAX_VALUE)] = ""


@dataclass(frozen=True, kw_only=True)
class Gonito:
    """The keys of gonito.yaml that are read; others mean something to Gonito."""

    description: Annotated[str, MaxLen(MAX_TEXT)] = ""
    tags: Annotated[tuple[Annotated[str, MaxLen(MAX_NAME)], ...], MaxLen(MAX_TAGS)] = ()
    params: Annotated[dict[Annotated[str, MaxLen(MAX_NAME)], Any], MaxLen(MAX_PARAMS)] = field(default_factory=dict)
    links: Annotated[tuple[Link, ...], MaxLen(MAX_LINKS)] = ()
    affiliation: Annotated[str, MaxLen(MAX_NAME)] = ""


def described(commit: Details, data: bytes) -> tuple[Details, list[str]]:
    """Return the details of a gonito.yaml, beside those of the last commit, and notes on what of it was not read."""
    if len(data) > MAX_GONITO_BYTES:
        return commit, [f"it is larger than {MAX_GONITO_BYTES} bytes"]
    try:
        root = strict_yaml.compose(data.decode("utf-8-sig"), GONITO_FILE)
    except UnicodeDecodeError:
        return commit, ["it is not UTF-8 text"]
    except ConfigError as error:
        return commit, [error.message]
    if root is None:
        return commit, []
    keys = [field.name for field in fields(Gonito)]
    gonito, problems = strict_yaml.validate(Gonito, root, keys=keys, ignoring=())
    if gonito is None:
        wrong = {problem.section for problem in problems}
        gonito = strict_yaml.validate(Gonito, root, keys=keys, ignoring=wrong)[0] or Gonito()
    notes = [f"line {problem.line}: {problem.message}" for problem in problems]
    params = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in gonito.params.items()
    }
    for name in [name for name, value in params.items() if len(value) > MAX_VALUE]:
        notes.append(f"the parameter `{visible(name)}` has more than {MAX_VALUE} characters")
        del params[name]
    links = [(link.title or link.url, link.url) for link in gonito.links if re.match(r"https?://[^\s/]", link.url)]
    if len(links) < len(gonito.links):
        notes.append("the url of a link must begin with http:// or https://")
    details = replace(
        commit,
        description=gonito.description or commit.description,
        tags=tuple(sorted({tag for tag in gonito.tags if tag})),
        params=params,
        links=tuple(links),
        affiliation=gonito.affiliation,
    )
    return details, notes[:MAX_NOTES]
