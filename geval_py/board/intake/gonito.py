"""How a submission describes itself: gonito.yaml, files with parameters, and the message of a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import yaml

from geval_py.board.intake.members import refused
from geval_py.board.strict_yaml import Document, Fields, WrongValueError, compose, read_mapping, several, text
from geval_py.board.submission import RejectedError
from geval_py.errors import ConfigError
from geval_py.text import visible

GONITO_FILE = "gonito.yaml"
MOST_BYTES = 1 << 16  # of gonito.yaml, and of a file with parameters
MOST_TEXT = 5000  # characters of a description
MOST_VALUE = 1000  # characters of a tag, a parameter, a link
_TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gonito:
    """The content of a gonito.yaml; ``notes`` name its unknown keys."""

    description: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    unwanted_params: tuple[str, ...] = ()
    param_files: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


EMPTY = Gonito()


def replace_unstorable(written: str) -> str:
    """Replace NUL and lone surrogates, which no database stores, with U+FFFD."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", written)


def parse_message(message: str) -> tuple[str, tuple[str, ...]]:
    r"""Read the first line of a commit's message, and the tags of a line ``tags: one, another`` below it.

    >>> parse_message("A bigram model\n\ntags: n-gram, baseline\n")
    ('A bigram model', ('n-gram', 'baseline'))
    """
    lines = [line.strip("\r") for line in message.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    description = "".join(lines[start : start + 1]).strip()[:MOST_TEXT]
    found = next((match[1] for line in lines[start + 1 :] if (match := _TAGS_LINE.match(line))), "")
    return description, tuple(tag.strip()[:MOST_VALUE] for tag in found.split(",") if tag.strip())


def read_gonito(data: bytes) -> Gonito:
    """Read a gonito.yaml; raises RejectedError with all problems and their lines."""
    root = _composed(data, GONITO_FILE)
    if root is None:
        return EMPTY
    known, notes = _known(root)
    document = Document(GONITO_FILE)
    values = read_mapping(known, document, FIELDS)
    with _rejecting(GONITO_FILE):
        document.check()
    return Gonito(**{key.replace("-", "_"): value for key, value in values.items()}, notes=notes)


def _known(root: yaml.Node) -> tuple[yaml.Node, tuple[str, ...]]:
    """Remove the unknown keys, as Gonito does; also return a note on each."""
    if not isinstance(root, yaml.MappingNode):
        return root, ()
    pairs = [(key, value) for key, value in root.value if str(key.value) in FIELDS]
    strange = [key for key, _ in root.value if str(key.value) not in FIELDS]
    notes = tuple(
        f"{GONITO_FILE}, line {key.start_mark.line + 1}: unknown key `{visible(str(key.value)[:MOST_VALUE])}`"
        for key in strange
    )
    return yaml.MappingNode(root.tag, pairs, root.start_mark, root.end_mark), notes


def _composed(data: bytes, name: str) -> yaml.Node | None:
    try:
        written = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RejectedError(reason=f"{visible(name)}, line {line}: this is not UTF-8 text") from error
    with _rejecting(name):
        return compose(written, name)


@contextmanager
def _rejecting(name: str) -> Iterator[None]:
    """Raise ConfigErrors as RejectedError, on one line."""
    try:
        yield
    except ConfigError as error:
        message = "; ".join(line.strip() for line in error.message.splitlines())
        raise RejectedError(reason=f"{visible(name)}, {message}") from error


def read_params(name: str, data: bytes) -> dict[str, str]:
    """Read a file with parameters, in YAML or JSON; raises RejectedError with all problems and their lines."""
    if len(data) > MOST_BYTES:
        raise refused(name, f"is named in param-files, and larger than {MOST_BYTES} bytes")
    root = _composed(data, name)
    document = Document(name)
    values: dict[str, str] = {}
    if root is not None:
        try:
            values = _params(root, document)
        except WrongValueError as wrong:
            document.blame(root, f"a file of param-files {wrong}")
    with _rejecting(name):
        document.check()
    return values


def _short(node: yaml.Node, document: Document, *, most: int = MOST_VALUE) -> str:
    value = replace_unstorable(text(node, document)).strip()
    if len(value) > most:
        raise WrongValueError(f"has more than {most} characters")
    return value


def _written(node: yaml.Node) -> str:
    """Write any value on one line, as YAML does; raises WrongValueError if the line is too long."""
    if isinstance(node, yaml.SequenceNode):
        value = f"[{', '.join(map(_written, node.value))}]"
    elif isinstance(node, yaml.MappingNode):
        value = f"{{{', '.join(f'{_written(key)}: {_written(one)}' for key, one in node.value)}}}"
    else:
        value = str(node.value)
    if len(value) > MOST_VALUE:
        raise WrongValueError(f"has a value of more than {MOST_VALUE} characters")
    return value


def _params(node: yaml.Node, _: Document) -> dict[str, str]:
    if not isinstance(node, yaml.MappingNode):
        raise WrongValueError("takes names with values: {epochs: 10}")
    try:
        pairs = ((_written(key), _written(value).strip()) for key, value in node.value)
        return {replace_unstorable(key): replace_unstorable(value) for key, value in pairs}
    except RecursionError:
        raise WrongValueError("has a value that holds itself, or is too deep") from None


def _link(node: yaml.Node, document: Document) -> tuple[str, str]:
    if not isinstance(node, yaml.MappingNode):
        raise WrongValueError("takes a list of {title: …, url: …}")
    values = read_mapping(node, document, LINK_FIELDS)
    url = values.get("url", "")
    if not re.match(r"https?://[^\s/]", url):
        raise WrongValueError("need a url each that begins with http:// or https://")
    return values.get("title") or url, url


LINK_FIELDS: Fields = {"title": _short, "url": _short}
FIELDS: Fields = {
    "description": partial(_short, most=MOST_TEXT),
    "tags": partial(several, read=_short),
    "params": _params,
    "unwanted-params": partial(several, read=_short),
    "param-files": partial(several, read=_short),
    "links": partial(several, read=_link),
}
