"""Strict reading of small YAML files into dataclasses: all errors are reported at once, with their lines.

pydantic checks the values, which are texts as they are written, by the types of a dataclass; what it says is told in
our words, at the line of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import yaml

from geval_py.errors import ConfigError
from geval_py.text import nearest, shorten, visible

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
MAX_DEPTH = 20
MESSAGES = {  # by pydantic's types of errors
    "bool_parsing": "must be true or false",
    "dataclass_type": "must have keys with values",
    "dict_type": "must have names with values: {epochs: 10}",
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "missing": "is missing",
    "string_pattern_mismatch": "must begin with http:// or https://",  # of a link
    "string_too_short": "must not be empty",
    "string_type": "must be a single value",
    "tuple_type": "must be a list: [one, another]",
    "zoneinfo_str": "must be a time zone, such as Europe/Warsaw or UTC",
}

PHRASES = {
    "Input should": "must",
    "String should": "must",
    "Tuple should": "must",
    "Dictionary should": "must",
    " after validation": "",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


class Problem(NamedTuple):
    """What is wrong in a file: ``section`` is the key of the whole document that it is in."""

    line: int
    section: str
    message: str


def compose(text: str, path: str, loader: Any = yaml.CSafeLoader) -> yaml.Node:
    """Parse a text into nodes, without constructing objects; raises ConfigError."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
                raise ConfigError(path=path, message="aliases such as *name and deep nesting are not read")
        if root := yaml.compose(text, Loader=loader):
            return root
        raise ConfigError(path=path, message="the file is empty")
    except yaml.YAMLError as error:
        if loader is yaml.CSafeLoader:  # 20 times as fast as Python's own, which names the wrong character
            return compose(text, path, yaml.SafeLoader)
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        reason = visible(getattr(error, "problem", None) or str(error))
        raise ConfigError(path=path, message=f"{where}this is not YAML: {reason}") from error


def validate(kind: type[T], root: yaml.Node, *, keys: Collection[str]) -> tuple[T | None, list[Problem]]:
    """Read a dataclass, or return None and all problems; an unknown key may be meant to be one of ``keys``."""
    from pydantic import ValidationError

    problems: list[Problem] = []
    value = _plain(root, root, problems)
    try:
        (settings,) = _adapter(cast(Any, kind)).validate_python((value,))
    except ValidationError as error:
        problems += (_problem_of(one, keys) for one in error.errors(include_url=False))
        return None, sorted(problems)
    return settings, problems


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[tuple[Any]]:
    from pydantic import ConfigDict, TypeAdapter

    form: Any = GenericAlias(tuple, (kind,))  # a dataclass takes the configuration of what it is in
    return TypeAdapter(form, config=ConfigDict(extra="forbid", str_strip_whitespace=True))


class Text(str):
    """A text as it is written in a file."""

    line = 1


class Items(list[Any]):
    """A list in a file."""

    line = 1


class Keys(dict[str, Any]):
    """Keys with values in a file."""

    line = 1


def _plain(node: yaml.Node, key: yaml.Node, problems: list[Problem]) -> Text | Items | Keys:
    """Return a node as dictionaries, lists and texts, each with the line of its key."""
    value: Text | Items | Keys
    if isinstance(node, yaml.SequenceNode):
        value = Items(_plain(item, item, problems) for item in node.value)
    elif isinstance(node, yaml.MappingNode):
        value = Keys()
        for name_node, item in node.value:
            name = Text(name_node.value)
            name.line = name_node.start_mark.line + 1
            if name in value:
                problems.append(Problem(name.line, name, f"`{visible(name)}` is given twice"))
            value[name] = _plain(item, name_node, problems)
    else:
        value = Text(node.value)
    value.line = key.start_mark.line + 1
    return value


def _problem_of(error: Mapping[str, Any], keys: Collection[str]) -> Problem:
    """Return the problem that an error of pydantic is."""
    kind = error["type"]
    section, *names = [part for part in error["loc"][1:] if isinstance(part, str) and part != "[key]"] or [""]
    name = visible(shorten([section, *names][-1]))
    if kind == "unexpected_keyword_argument":
        meant = nearest(name, keys)
        message = f"unknown key `{name}`; did you mean `{meant}`?" if meant else f"unknown key `{name}`"
        message = f"`{name}` does not belong here" if name in keys else message
    else:
        message = error["msg"]
        for phrase, ours in PHRASES.items():
            message = message.replace(phrase, ours)
        message = str(error["ctx"]["error"]) if kind == "value_error" else MESSAGES.get(kind, message)
        if not message.startswith("`"):
            message = f"`{name}` {message}" if name else f"the file {message}"
    return Problem(error["input"].line, section, message)
