"""How a submission describes itself: in gonito.yaml, in files with parameters, and in the message of a commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import yaml

from geval_py.board import strict_yaml
from geval_py.board.strict_yaml import Fields, Reader, WrongValueError, YamlDocument, read_mapping
from geval_py.board.submission import Details, RejectedError
from geval_py.errors import ConfigError
from geval_py.reading.wordprobs import NUMBER
from geval_py.text import visible

GONITO_FILE = "gonito.yaml"
MAX_BYTES = 1 << 16  # of gonito.yaml, and of a file with parameters
MAX_TEXT = 5000  # characters of a description
MAX_VALUE = 1000  # characters of the value of a parameter, and of a link
MAX_NAME = 100  # characters of a tag, and of the name of a parameter
MAX_PATTERN = 200  # characters of a pattern of param-files
MAX_PARTS = 16  # of a pattern, between its slashes
MAX_PATTERNS = 20
MAX_PARAMS = 100  # of a submission, those in the names of its outputs too: each is a column of a table
MAX_TAGS = 20
MAX_LINKS = 20
MAX_PROBLEMS = 10  # that are named
TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")


def read_gonito(data: bytes) -> dict[str, Any]:
    """Return the values of a gonito.yaml by their keys; unknown keys, which mean something to Gonito, are left out.

    Raises RejectedError with all problems and their lines.
    """

    def read(root: yaml.Node, document: YamlDocument) -> dict[str, Any]:
        if isinstance(root, yaml.MappingNode):
            root.value = [(key, value) for key, value in root.value if str(key.value) in FIELDS]
        return read_mapping(root, document, FIELDS)

    return _read(data, GONITO_FILE, read)


def described(commit: Details, gonito: Mapping[str, Any], param_files: Iterable[tuple[str, bytes]]) -> Details:
    """Combine the last commit, gonito.yaml and the files with parameters, whose names and bytes are given.

    If two of these set a parameter, the first one counts. Raises RejectedError.
    """
    params: dict[str, str] = {}
    for name, data in param_files:
        params = _read(data, name, _params) | params
    for unwanted in gonito.get("unwanted-params", ()):
        params.pop(unwanted, None)
    tags = tuple(sorted({tag for tag in (*gonito.get("tags", ()), *commit.tags) if tag}))
    if len(tags) > MAX_TAGS:
        raise RejectedError(f"it has more than {MAX_TAGS} tags")
    return replace(
        commit,
        description=gonito.get("description") or commit.description,
        tags=tags,
        params=gonito.get("params", {}) | params,
        links=gonito.get("links", ()),
        affiliation=gonito.get("affiliation", ""),
    )


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern of gonito.yaml: * and ? stay in a folder, ** is any number of folders.

    >>> matches("x/a.yaml", "*.yaml"), matches("x/a.yaml", "**/*.yaml")
    (False, True)
    """
    globs = pattern.removeprefix("./").split("/")

    def past_any(places: set[int]) -> set[int]:
        for place, glob in enumerate(globs):
            if glob == "**" and place in places:  # it may stand for nothing
                places.add(place + 1)
        return places

    places = past_any({0})  # how many parts of the pattern may have matched; a stranger's path may have any depth
    for part in path.split("/"):
        heads = [(place, globs[place]) for place in places if place < len(globs)]
        stay = {place for place, glob in heads if glob == "**"}
        places = past_any(stay | {place + 1 for place, glob in heads if glob != "**" and fnmatchcase(part, glob)})
    return len(globs) in places


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


def _read(data: bytes, name: str, read: Callable[[yaml.Node, YamlDocument], dict[str, Any]]) -> dict[str, Any]:
    """Read a YAML file by a function of its root; {} if it is empty.

    Raises RejectedError with all problems and their lines, on one line.
    """
    try:
        written = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RejectedError(f"{visible(name)}, line {line}: this is not UTF-8 text") from error
    document = YamlDocument(name)
    try:
        root, values = strict_yaml.compose(written, name), dict[str, Any]()
        if root is not None:
            try:
                values = read(root, document)
            except WrongValueError as wrong:
                document.blame(root, f"a file of param-files {wrong}")
        document.check()
    except ConfigError as error:
        lines = [line.strip() for line in error.message.splitlines()]
        more = [f"and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
        message = "; ".join([*lines[:MAX_PROBLEMS], *more])
        raise RejectedError(f"{visible(name)}, {message}") from error
    return values


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


def _pattern(node: yaml.Node, document: YamlDocument) -> str:
    pattern = _short(node, document, most=MAX_PATTERN)
    if pattern.count("/") >= MAX_PARTS:
        raise WrongValueError(f"has a pattern of more than {MAX_PARTS} parts")
    return pattern


FIELDS: Fields = {
    "description": partial(_short, most=MAX_TEXT),
    "tags": partial(_list, read=partial(_short, most=MAX_NAME), most=MAX_TAGS),
    "params": _params,
    "unwanted-params": partial(_list, read=_short, most=MAX_PARAMS),
    "param-files": partial(_list, read=_pattern, most=MAX_PATTERNS),
    "links": partial(_list, read=_link, most=MAX_LINKS),
    "affiliation": partial(_short, most=MAX_NAME),
}
