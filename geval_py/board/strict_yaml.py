"""Strict reading of small YAML files: unknown keys are errors, and all errors are reported at once, with their lines.

The keys of a mapping are a dictionary: each key with the function that reads its value. That of a dataclass is made
from its annotations by :func:`readers_of`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import yaml

from geval_py.errors import ConfigError
from geval_py.text import nearest, visible

Reader: TypeAlias = "Callable[[yaml.Node, YamlDocument], Any]"
Fields: TypeAlias = Mapping[str, Reader]
MAX_NUMBER = 10**15
NATURAL, POSITIVE = range(MAX_NUMBER + 1), range(1, MAX_NUMBER + 1)


class WrongValueError(ValueError):
    """A value is wrong; the text continues a sentence that begins with the key: "is a whole number"."""


@dataclasses.dataclass
class YamlDocument:
    """A file that is being read, and its problems: lines, from 1, with messages."""

    path: str
    problems: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    def blame(self, node: yaml.Node, message: str) -> None:
        """Add a problem at the line where a node begins."""
        self.problems.append((node.start_mark.line + 1, message))

    def check(self) -> None:
        """Raise ConfigError with all problems, if there are any."""
        if self.problems:
            lines = [f"line {line}: {message}" for line, message in sorted(self.problems)]
            raise ConfigError(path=self.path, message="\n  ".join(lines))


def compose(text: str, path: str) -> yaml.Node | None:
    """Parse a text into nodes, without constructing objects; None if it is empty. Raises ConfigError."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        reason = visible(getattr(error, "problem", None) or str(error))
        raise ConfigError(path=path, message=f"{where}this is not YAML: {reason}") from error


def read_mapping(node: yaml.Node, document: YamlDocument, fields: Fields) -> dict[str, Any]:
    """Read a mapping with known keys; wrong values are left out, and added to the document's problems."""
    if not isinstance(node, yaml.MappingNode):
        document.blame(node, f"expected keys with values, such as `{next(iter(fields))}: …`")
        return {}
    values: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in fields:
            meant = nearest(name, fields)
            advice = f"did you mean `{meant}`?" if meant else f"the keys are {', '.join(fields)}"
            document.blame(key, f"unknown key `{visible(name)}`; {advice}")
        elif name in values:
            document.blame(key, f"`{name}` is given twice")
        else:
            try:
                values[name] = fields[name](value, document)
            except ValueError as wrong:
                document.blame(value, f"`{name}` {wrong}")
    return values


def readers_of(kind: Any) -> dict[str, Reader]:
    """Return the readers of a dataclass's fields, by their types."""
    return {name: partial(read_value, hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def read_value(hint: Any, node: yaml.Node, document: YamlDocument) -> Any:
    """Read a value of a type: a dataclass, a tuple, true or false, a number from 0, or a text that is not blank.

    With a rule, as Annotated[int, range(1, 9)], a whole number is in a range, a real one above 0, a word one of a
    tuple, and any other value is passed to a function, whose ValueError says what is wrong. So the rule ``str`` takes
    a blank text too. An object with problems is None, and left out of a tuple.
    """
    hint = get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint  # of X | None
    kind, rule = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        before = len(document.problems)
        fields = read_mapping(node, document, readers_of(kind))
        if len(document.problems) > before:
            return None
        needed = [one.name for one in dataclasses.fields(kind) if one.default is dataclasses.MISSING]
        if not fields.keys() >= set(needed):
            raise WrongValueError(f"needs {', '.join(needed)}")
        return kind(**fields)
    if kind is bool:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
            raise WrongValueError("must be true or false")
        return str(node.value).lower() in ("true", "yes", "on")
    if get_origin(kind) is tuple:
        values = read_list(partial(read_value, get_args(kind)[0]), node, document)
        return rule(values) if rule else values
    value = text(node)
    if rule is not str and not value.strip():
        raise WrongValueError("must not be empty")
    if callable(rule):
        return rule(value)
    if kind is int:
        numbers, digits = rule or NATURAL, value.replace("_", "")  # 1_000 is 1000
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(digits) in numbers):
            most = f" to {numbers[-1]}" if numbers[-1] < MAX_NUMBER else ""
            raise WrongValueError(f"must be a whole number from {numbers[0]}{most}")
        return int(digits)
    if kind is float:
        try:
            real = float(value)
        except ValueError:
            real = math.nan
        if not (0 < real < math.inf or (real == 0 and rule is None)):
            raise WrongValueError("must be a number above 0" if rule else "must be a number, 0 or above")
        return real
    if rule and value not in rule:
        raise WrongValueError(f"must be one of {', '.join(rule)}")
    return value


def read_list(read: Reader, node: yaml.Node, document: YamlDocument) -> tuple[Any, ...]:
    """Read a list of values, each by a reader; what is None is left out."""
    if not isinstance(node, yaml.SequenceNode):
        raise WrongValueError("must be a list: [one, another]")
    return tuple(value for one in node.value if (value := read(one, document)) is not None)


def text(node: yaml.Node) -> str:
    """Read a single value as written."""
    if not isinstance(node, yaml.ScalarNode):
        raise WrongValueError("must be a single value")
    return str(node.value)
