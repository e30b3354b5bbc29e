"""How a submission describes itself in gonito.yaml. What is wrong there is left out, with a note."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import BeforeValidator, Field

from geval_py.board import strict_yaml
from geval_py.board.intake.sources import (
    GONITO_FILE,
    MAX_GONITO_BYTES,
    MAX_NAME,
    MAX_PARAMS,
    MAX_TAGS,
    MAX_TEXT,
    Details,
)
from geval_py.errors import ConfigError

MAX_LINKS = 20
MAX_NOTES = 10


def _value(written: Any) -> str:
    """Return the text of a parameter: as it is written, or lists and so on as JSON."""
    return written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)


Name: TypeAlias = Annotated[str, Field(max_length=MAX_NAME)]
Value: TypeAlias = Annotated[str, Field(max_length=1000)]  # of a parameter, and of a link


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of a submission."""

    url: Annotated[Value, Field(pattern=r"^https?://[^\s/]")]
    title: Value = ""


@dataclass(frozen=True, kw_only=True)
class Gonito:
    """The keys of gonito.yaml that are read; others mean something to Gonito."""

    description: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)] = ()
    params: Annotated[dict[Name, Annotated[Value, BeforeValidator(_value)]], Field(max_length=MAX_PARAMS)] = field(
        default_factory=dict
    )
    links: Annotated[tuple[Link, ...], Field(max_length=MAX_LINKS)] = ()
    affiliation: Name = ""


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
    if not isinstance(root, yaml.MappingNode):
        return commit, ["it has no keys with values"]
    keys = [field.name for field in fields(Gonito)]
    sound, notes, gonito = set(keys), list[str](), None
    while gonito is None:  # read it again without the keys that are wrong
        root.value = [pair for pair in root.value if str(pair[0].value) in sound]
        gonito, problems = strict_yaml.validate(Gonito, root, keys=keys)
        sound -= {problem.section for problem in problems}
        notes += (f"line {problem.line}: {problem.message}" for problem in problems)
    details = replace(
        commit,
        description=gonito.description or commit.description,
        tags=tuple(sorted({tag for tag in gonito.tags if tag})),
        params=gonito.params,
        links=tuple((link.title or link.url, link.url) for link in gonito.links),
        affiliation=gonito.affiliation,
    )
    return details, notes[:MAX_NOTES]
