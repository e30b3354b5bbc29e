"""Strict reading of small YAML files into dataclasses: all errors are reported at once, with their lines.

pydantic checks the values, which are texts as they are written, by the types of a dataclass; what it says is told in
our words, at the line of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import GenericAlias
from typing import Any, NamedTuple, TypeVar

import yaml

from geval_py.errors import ConfigError
from geval_py.text import nearest, shorten, visible

T = TypeVar("T")
MESSAGES = {  # by pydantic's types of errors
    "bool_parsing": "must be true or false",
    "dataclass_type": "must have keys with values",
    "dict_type": "must have names with values: {epochs: 10}",
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "missing": "is missing",
    "string_too_short": "must not be empty",
    "string_type": "must be a single value",
    "tuple_type": "must be a list: [one, another]",
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


def compose(text: str, path: str) -> yaml.Node | None:
    """Parse a text into nodes, without constructing objects; None if it is empty. Raises ConfigError."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ConfigError(path=path, message="aliases such as *name are not read")
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        reason = visible(getattr(error, "problem", None) or str(error))
        raise ConfigError(path=path, message=f"{where}this is not YAML: {reason}") from error


def validate(
    kind: type[T], root: yaml.Node, *, keys: Collection[str], ignoring: Collection[str] | None = None
) -> tuple[T | None, list[Problem]]:
    """Read a dataclass, or return None and all problems.

    ``keys`` are those that an unknown one may be meant to be. With ``ignoring``, unknown keys of the whole document
    are left out, and so are those that are named.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    problems: list[Problem] = []
    value = _plain(root, problems)
    if ignoring is not None and isinstance(value, dict):
        value = {key: value[key] for key in value if key in keys and key not in ignoring}
    form: Any = GenericAlias(tuple, (kind,))  # a dataclass takes the configuration of what it is in
    adapter: TypeAdapter[tuple[T]] = TypeAdapter(form, config=ConfigDict(extra="forbid", str_strip_whitespace=True))
    try:
        (settings,) = adapter.validate_python((value,))
    except ValidationError as error:
        for one in error.errors(include_url=False):
            problems += _problems_of(root, one, keys)
        return None, sorted(problems)
    return settings, problems


def _plain(node: yaml.Node, problems: list[Problem]) -> Any:
    """Return a node as dictionaries, lists and texts."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, problems) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    values: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in values:
            problems.append(Problem(key.start_mark.line + 1, name, f"`{visible(name)}` is given twice"))
        values[name] = _plain(value, problems)
    return values


def _problems_of(root: yaml.Node, error: Mapping[str, Any], keys: Collection[str]) -> Iterator[Problem]:
    """Yield the problem that an error of pydantic is; none at a key that is not written, whose value is a default."""
    kind, place = error["type"], error["loc"][1:]
    key = node = root
    for part in place:
        if isinstance(node, yaml.SequenceNode):
            key = node = node.value[part]
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        pairs = pairs[part:] if isinstance(part, int) else [pair for pair in pairs if pair[0].value == part]
        if pairs:
            key, node = pairs[0]
        elif kind != "missing" and part != "[key]":
            return
    names = [visible(shorten(part)) for part in place if isinstance(part, str) and part != "[key]"]
    name = names[-1] if names else ""
    if kind == "unexpected_keyword_argument":
        meant = nearest(name, keys)
        message = f"unknown key `{name}`; did you mean `{meant}`?" if meant else f"unknown key `{name}`"
        message = f"`{name}` does not belong here" if name in keys else message
        yield Problem(key.start_mark.line + 1, names[0], message)
        return
    told = error["msg"]
    for phrase, ours in PHRASES.items():
        told = told.replace(phrase, ours)
    message = str(error["ctx"]["error"]) if kind == "value_error" else MESSAGES.get(kind, told)
    if not message.startswith("`"):
        message = f"`{name}` {message}" if name else f"the file {message}"
    yield Problem(node.start_mark.line + 1, names[0] if names else "", message)
