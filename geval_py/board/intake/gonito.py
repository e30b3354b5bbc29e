"""How a submission describes itself: in gonito.yaml, and in the message of a commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import yaml

from geval_py.board import strict_yaml
from geval_py.board.strict_yaml import Fields, Reader, WrongValueError, YamlDocument, read_mapping
from geval_py.board.submission import Details, RejectedError
from geval_py.errors import ConfigError
from geval_py.reading.wordprobs import NUMBER

GONITO_FILE = "gonito.yaml"
MAX_BYTES = 1 << 16  # of gonito.yaml
MAX_TEXT = 5000  # characters of a description
MAX_VALUE = 1000  # characters of the value of a parameter, and of a link
MAX_NAME = 100  # characters of a tag, and of the name of a parameter
MAX_PARAMS = 100  # of a submission, those in the names of its outputs too: each is a column of a table
MAX_TAGS = 20
MAX_LINKS = 20
MAX_PROBLEMS = 10  # that are named
TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")


def read_gonito(data: bytes) -> dict[str, Any]:
    """Return the values of a gonito.yaml by their keys; unknown keys, which mean something to Gonito, are left out.

    Raises RejectedError with all problems and their lines, on one line.
    """
    try:
        written = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RejectedError(f"{GONITO_FILE}, line {line}: this is not UTF-8 text") from error
    document, values = YamlDocument(GONITO_FILE), dict[str, Any]()
    try:
        root = strict_yaml.compose(written, GONITO_FILE)
        if isinstance(root, yaml.MappingNode):
            root.value = [(key, value) for key, value in root.value if str(key.value) in FIELDS]
        if root is not None:
            values = read_mapping(root, document, FIELDS)
        document.check()
    except ConfigError as error:
        lines = [line.strip() for line in error.message.splitlines()]
        more = [f"and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
        message = "; ".join([*lines[:MAX_PROBLEMS], *more])
        raise RejectedError(f"{GONITO_FILE}, {message}") from error
    return values


def described(commit: Details, gonito: Mapping[str, Any]) -> Details:
    """Combine the last commit with gonito.yaml, which counts first; raises RejectedError."""
    tags = tuple(sorted({tag for tag in (*gonito.get("tags", ()), *commit.tags) if tag}))
    if len(tags) > MAX_TAGS:
        raise RejectedError(f"it has more than {MAX_TAGS} tags")
    return replace(
        commit,
        description=gonito.get("description") or commit.description,
        tags=tags,
        params=gonito.get("params", {}),
        links=gonito.get("links", ()),
        affiliation=gonito.get("affiliation", ""),
    )


def parse_message(message: str) -> tuple[str, tuple[str, ...]]:
    r"""Read the first line of a commit's message, and the tags of a line ``tags: one, another`` below it.

    >>> parse_message("A bigram model\n\ntags: n-gram, baseline\n")
    ('A bigram model', ('n-gram', 'baseline'))
    """
    lines = [line.strip("\r") for line in message.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    description = "".join(lines[start : start + 1]).strip()[:MAX_TEXT]
    tags = next((match[1] for line in lines[start + 1 :] if (match := TAGS_LINE.match(line))), "")
    return description, tuple(tag.strip()[:MAX_NAME] for tag in tags.split(",", MAX_TAGS + 1) if tag.strip())


def _short(node: yaml.Node, _: YamlDocument, *, most: int = MAX_VALUE) -> str:
    value = strict_yaml.text(node).strip()
    if len(value) > most:
        raise WrongValueError(f"has more than {most} characters")
    return value


def _written(node: yaml.Node) -> str:
    """Write any value on one line, as YAML does; raises WrongValueError if the line is too long."""
    if isinstance(node, yaml.SequenceNode):
        value = f"[{', '.join(map(_written, node.value))}]"
    elif isinstance(node, yaml.MappingNode):
        value = f"{{{', '.join(f'{_written(key)}: {_written(one)}' for key, one in node.value)}}}"
    elif isinstance(node, yaml.ScalarNode) and node.style and NUMBER.fullmatch(node.value):
        value = f"'{node.value}'"  # text, which Gonito tells from a number
    else:
        value = str(node.value)
    if len(value) > MAX_VALUE:
        raise WrongValueError(f"has a value of more than {MAX_VALUE} characters")
    return value


def _params(node: yaml.Node, _: YamlDocument) -> dict[str, str]:
    if not isinstance(node, yaml.MappingNode):
        raise WrongValueError("must have names with values: {epochs: 10}")
    if len(node.value) > MAX_PARAMS:
        raise WrongValueError(f"has {len(node.value)} parameters; at most {MAX_PARAMS} are allowed")
    try:
        pairs = [
            (str(key.value) if isinstance(key, yaml.ScalarNode) else _written(key), _written(value).strip())
            for key, value in node.value
        ]
    except RecursionError:
        raise WrongValueError("has a value that contains itself, or is nested too deeply") from None
    if any(len(key) > MAX_NAME for key, _ in pairs):
        raise WrongValueError(f"has a name of more than {MAX_NAME} characters")
    return dict(pairs)


def _link(node: yaml.Node, document: YamlDocument) -> tuple[str, str]:
    if not isinstance(node, yaml.MappingNode):
        raise WrongValueError("must be a list of {title: …, url: …}")
    values = read_mapping(node, document, {"title": _short, "url": _short})
    url = values.get("url", "")
    if not re.match(r"https?://[^\s/]", url):
        raise WrongValueError("need a url each, beginning with http:// or https://")
    return values.get("title") or url, url


def _list(node: yaml.Node, document: YamlDocument, *, read: Reader, most: int) -> tuple[Any, ...]:
    """Read a list, unless it is too long."""
    if isinstance(node, yaml.SequenceNode) and len(node.value) > most:
        raise WrongValueError(f"has {len(node.value)} entries; at most {most} are allowed")
    return strict_yaml.read_list(read, node, document)


FIELDS: Fields = {
    "description": partial(_short, most=MAX_TEXT),
    "tags": partial(_list, read=partial(_short, most=MAX_NAME), most=MAX_TAGS),
    "params": _params,
    "links": partial(_list, read=_link, most=MAX_LINKS),
    "affiliation": partial(_short, most=MAX_NAME),
}
