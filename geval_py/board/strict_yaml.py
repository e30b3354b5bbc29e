"""Strict reading of small YAML files: unknown keys are errors, and all errors are reported at once, with their lines.

The keys of a mapping are a dictionary: each key with the function that reads its value. That of a dataclass is made
from its annotations by :func:`readers_of`.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_type_hints

import yaml

from geval_py.errors import ConfigError
from geval_py.text import nearest, visible

Reader: TypeAlias = "Callable[[yaml.Node, YamlDocument], Any]"
Fields: TypeAlias = Mapping[str, Reader]
MAX_NUMBER = 10**15


class WrongValueError(ValueError):
    """A value is wrong; the text continues a sentence that begins with the key: "is a whole number"."""


class YamlDocument:
    """A file that is being read, and its problems: lines, from 1, with messages."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[tuple[int, str]] = []

    def blame(self, node: yaml.Node, message: str) -> None:
        """Add a problem at the line where a node begins."""
        self.problems.append((node.start_mark.line + 1, message))

    def check(self) -> None:
        """Raise ConfigError with all problems, if there are any."""
        if self.problems:
            lines = [f"line {line}: {message}" for line, message in sorted(self.problems)]
            raise ConfigError(path=self.path, message="\n  ".join(lines))


def readers_of(kind: type[Any]) -> Fields:
    """Return the readers of a dataclass's fields, which are in their annotations: Annotated[int, number()]."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}


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
        document.blame(node, f"here stand keys with values, such as `{next(iter(fields))}: …`")
        return {}
    values: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in fields:
            meant = nearest(name, fields)
            advice = f"did you mean `{meant}`?" if meant else f"there are {', '.join(fields)}"
            document.blame(key, f"unknown key `{visible(name)}`; {advice}")
        elif name in values:
            document.blame(key, f"`{name}` is given twice")
        else:
            try:
                values[name] = fields[name](value, document)
            except WrongValueError as wrong:
                document.blame(value, f"`{name}` {wrong}")
    return values


def objects_of(kind: type[Any], needs: str = "") -> Reader:
    """Return a reader of a mapping as a dataclass; it returns None if there are problems, and adds these.

    The text ``needs`` says what is wrong if a value that has no default is missing.
    """

    def read(node: yaml.Node, document: YamlDocument) -> Any:
        before = len(document.problems)
        values = read_mapping(node, document, readers_of(kind))
        if len(document.problems) > before:
            return None
        if any(one.default is dataclasses.MISSING and one.name not in values for one in dataclasses.fields(kind)):
            raise WrongValueError(needs)
        return kind(**values)

    return read


def text(node: yaml.Node, _: YamlDocument) -> str:
    """Read a single value as written."""
    if not isinstance(node, yaml.ScalarNode):
        raise WrongValueError("takes a single value")
    return str(node.value)


def some_text(node: yaml.Node, document: YamlDocument) -> str:
    """Read a text that is not blank."""
    value = text(node, document)
    if not value.strip():
        raise WrongValueError("must not be empty")
    return value


def matching(pattern: str, wrong: str, change: Callable[[str], str] = str) -> Reader:
    """Return a reader of a text that, after a ``change``, matches a pattern as a whole; ``wrong`` says what it is."""

    def read(node: yaml.Node, document: YamlDocument) -> str:
        value = change(text(node, document))
        if re.fullmatch(pattern, value) is None:
            raise WrongValueError(wrong)
        return value

    return read


def folder(node: yaml.Node, document: YamlDocument) -> str:
    """Read the path of a folder, relative to the file; return an absolute path."""
    return os.path.abspath(os.path.join(os.path.dirname(document.path), some_text(node, document)))


def flag(node: yaml.Node, _: YamlDocument) -> bool:
    """Read true or false."""
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
        raise WrongValueError("is true or false")
    return str(node.value).lower() in ("true", "yes", "on")


def number(least: int = 0, most: int = MAX_NUMBER) -> Reader:
    """Return a reader of a whole number within bounds; _ is allowed between digits."""

    def read(node: yaml.Node, document: YamlDocument) -> int:
        digits = text(node, document).replace("_", "")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and least <= int(digits) <= most):
            raise WrongValueError(f"is a whole number from {least}" + (f" to {most}" if most < MAX_NUMBER else ""))
        return int(digits)

    return read


def real(*, positive: bool) -> Reader:
    """Return a reader of a finite number above 0 or, unless ``positive``, 0 or above."""

    def read(node: yaml.Node, document: YamlDocument) -> float:
        try:
            value = float(text(node, document))
        except ValueError:
            value = math.nan
        if not (0 < value < math.inf or (value == 0 and not positive)):
            raise WrongValueError("is a number above 0" if positive else "is a number, 0 or above")
        return value

    return read


def one_of(choices: Sequence[str]) -> Reader:
    """Return a reader of one of some words."""

    def read(node: yaml.Node, document: YamlDocument) -> str:
        word = text(node, document)
        if word not in choices:
            raise WrongValueError(f"is one of {', '.join(choices)}")
        return word

    return read


def several(read: Reader, name: str = "", wrong: str = "") -> Reader:
    """Return a reader of a list of values, each by ``read``; objects with problems are left out.

    If they have a ``name``, an attribute, the text ``wrong`` says what is wrong if two are equal, or one is empty.
    """

    def read_all(node: yaml.Node, document: YamlDocument) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise WrongValueError("takes a list: [one, another]")
        values = tuple(value for one in node.value if (value := read(one, document)) is not None)
        names = [getattr(value, name) for value in values] if name else []
        if len(set(names)) < len(names) or "" in names:
            raise WrongValueError(wrong)
        return values

    return read_all
