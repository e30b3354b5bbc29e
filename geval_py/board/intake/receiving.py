"""Receive a submission: choose its files, copy them under numbers, and read how it describes itself.

In this order: ``receive``, which does all of it; the choice among the members of a source; the outputs among the
files, found by their names; and how a submission describes itself, in gonito.yaml, in files with parameters and in
the message of a commit.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import yaml

from geval_py.board import strict_yaml
from geval_py.board.intake import archives, identity, members
from geval_py.board.settings import VARIANTS
from geval_py.board.strict_yaml import Document, Fields, Reader, WrongValueError, read_mapping
from geval_py.board.submission import Details, Parcel, ReceivedFile, ReceivedOutput, RejectedError, digest_of
from geval_py.errors import ConfigError
from geval_py.reading.outputs import parse_parameters
from geval_py.reading.sources import OUTPUT_NAME
from geval_py.reading.splits import OUT_HEADER_FILE
from geval_py.text import visible

GONITO_FILE = "gonito.yaml"
MOST_BYTES = 1 << 16  # of gonito.yaml, and of a file with parameters
MOST_TEXT = 5000  # characters of a description
MOST_VALUE = 1000  # characters of the value of a parameter, and of a link
MOST_NAME = 100  # characters of a tag, and of the name of a parameter
MOST_PATTERN = 200  # characters of a pattern of param-files
MOST_PARTS = 16  # of a pattern, between its slashes
MOST_PATTERNS = 20
MOST_PARAM_FILES = 20  # which have together no more than
MOST_PARAM_BYTES = 1 << 17
MOST_PARAMS = 100  # of a submission, those in the names of its outputs too: each is a column of a table
MOST_TAGS = 20
MOST_LINKS = 20
MOST_PROBLEMS = 10  # that are named
SETS = ("dev-", "test-", "train")  # how the names of sets begin; a folder around a submission has no such name
LITTER = ("__MACOSX/", ".DS_Store", "pax_global_header")  # added by archivers
_TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """The scored test sets, and the sets ``to_come``, which may be scored later.

    Outputs for the latter are kept, but change nothing before then.
    """

    tests: Sequence[str]
    to_come: Sequence[str] = ()
    variants: int = VARIANTS


def receive(source: str, place: str, budget: members.Budget, sets: Sets, transports: Sequence[str]) -> Parcel:
    """Copy a submission into an empty folder; see :func:`geval_py.board.intake.sandbox.receive_in_sandbox`.

    Outputs for sets to come are copied if possible, and are not part of the digest. Raises RejectedError, whose
    reason names the member at fault, and FailedError.
    """
    with open_source(source, place, budget, transports) as opened:
        choice = _choose_members(opened, budget, sets)
        most = {member: MOST_BYTES for member, name in choice.names.items() if name in choice.described}
        files = tuple(members.copy_members(opened, choice.names, place, budget, most))
        to_come = members.copy_if_possible(opened, choice.to_come, place, budget, len(files))
        by_name = {file.name: file for file in files}
        outputs = outputs_of(files, sets.tests, sets.variants)
        details = _details(choice.meta, [by_name[name] for name in choice.param_files], opened.commit)
        names = {name for output in outputs for name in output.params} | details.params.keys()
        if len(names) > MOST_PARAMS:
            raise RejectedError(reason=f"it has {len(names)} parameters; at most {MOST_PARAMS} are taken")
        return Parcel(
            name=opened.name,
            source=opened.address,
            digest=digest_of(files),
            files=(*files, *to_come),
            outputs=outputs,
            details=details,
            notes=choice.meta.notes,
        )


@contextmanager
def open_source(
    source: str, place: str, budget: members.Budget, transports: Sequence[str]
) -> Iterator[members.Source]:
    """Open a folder, an archive or a git branch, which is fetched into the place."""
    if source.startswith(identity.GIT):
        from geval_py.board.intake.git import Branch

        yield Branch(identity.address_of(source, transports), place, budget)
    elif os.path.isdir(source):
        yield members.Folder(source, budget)
    elif source.lower().endswith(identity.TARS):
        yield archives.Tar(source, budget)
    else:
        with archives.Zip(source, budget) as opened:
            yield opened


def _choose_members(source: members.Source, budget: members.Budget, sets: Sets) -> Choice:
    """List all names, and read gonito.yaml, which may name files with parameters."""
    names: list[str] = []

    def is_gonito(name: str) -> bool:
        names.append(name)
        return name.rpartition("/")[2] == GONITO_FILE and name.count("/") < 2

    found = {}
    for name, member in source.walk(is_gonito):
        data = member.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise members.refused(name, f"is larger than {MOST_BYTES} bytes")
        found[name] = data
    return choose(names, found, sets, strips=source.strips, most=budget.files)


def _details(meta: Gonito, param_files: Sequence[ReceivedFile], commit: members.Commit | None) -> Details:
    """Combine gonito.yaml, the files with parameters and the last commit; raises RejectedError."""
    if sum(file.bytes for file in param_files) > MOST_PARAM_BYTES:
        raise RejectedError(reason=f"the files of param-files have more than {MOST_PARAM_BYTES} bytes")
    params: dict[str, str] = {}
    for param_file in param_files:
        with open(param_file.path, "rb") as file:
            params = read_params(param_file.name, file.read()) | params
    for unwanted in meta.unwanted_params:
        params.pop(unwanted, None)
    description, tags = parse_message(replace_unstorable(commit.message) if commit else "")
    all_tags = tuple(sorted({tag for tag in (*meta.tags, *tags) if tag}))
    if len(all_tags) > MOST_TAGS:
        raise RejectedError(reason=f"it has more than {MOST_TAGS} tags")
    return Details(
        description=meta.description or description,
        author=replace_unstorable(commit.author)[:MOST_VALUE] if commit else "",
        revision=commit.revision if commit else "",
        tags=all_tags,
        params=dict(meta.params) | params,
        links=meta.links,
        affiliation=meta.affiliation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The members to copy: ``names`` maps the name of a member to the name that it is stored under.

    ``to_come`` are outputs for sets to come, copied if there is room. ``param_files`` are in the order of the
    patterns in gonito.yaml: if two files set a parameter, the first one counts.
    """

    names: Mapping[str, str]
    to_come: Mapping[str, str]
    meta: Gonito
    param_files: tuple[str, ...]

    @property
    def described(self) -> set[str]:
        """The stored names of gonito.yaml and the files with parameters."""
        return {GONITO_FILE, *self.param_files}


def choose(names: Sequence[str], gonitos: Mapping[str, bytes], sets: Sets, *, strips: bool, most: int) -> Choice:
    """Choose among all names; ``gonitos`` holds the files named gonito.yaml near the top.

    Raises RejectedError for a name that cannot be stored, for more than ``most`` files, without an output for a
    scored test, and for a malformed gonito.yaml; never because of an output for a set to come.
    """
    around = _folder_around(names, sets.tests) if strips else ""
    inner = {name.removeprefix(around): name for name in names if name.startswith(around)}
    has_gonito = GONITO_FILE in inner
    meta = read_gonito(gonitos[inner[GONITO_FILE]]) if has_gonito else EMPTY
    outputs = [name for name in inner if test_and_variant(name, sets.tests)]
    to_come = [name for name in inner if test_by_folder(name, sets.to_come)]
    if not outputs:
        raise RejectedError(reason=_no_output(inner, sets.tests))
    others = sorted(inner.keys() - {*outputs, *to_come, GONITO_FILE})
    params = dict.fromkeys(name for pattern in meta.param_files for name in matching(others, pattern))
    if len(params) > MOST_PARAM_FILES:
        raise RejectedError(reason=f"its param-files are {len(params)} files; at most {MOST_PARAM_FILES} are taken")
    chosen = [*outputs, *params, *([GONITO_FILE] if has_gonito else [])]
    if len(chosen) > most:
        raise RejectedError(reason=f"it has {len(chosen)} files; at most {most} are taken")
    for name in chosen:
        if not name.isprintable():
            raise members.refused(name, "has characters in its name that cannot be shown")
    left = [name for name in to_come if name.isprintable()][: most - len(chosen)]
    return Choice(
        names={inner[name]: name for name in chosen},
        to_come={inner[name]: name for name in left},
        meta=meta,
        param_files=tuple(params),
    )


def _folder_around(names: Sequence[str], tests: Sequence[str]) -> str:
    """Return the only folder, with its slash, that all members lie in, unless it is the folder of a set; else ""."""
    tops = {name.partition("/")[:2] for name in names if not name.startswith(LITTER)}
    if len(tops) != 1:
        return ""
    top, slash = tops.pop()
    return top + slash if slash and top not in tests and not top.startswith(SETS) else ""


def _no_output(names: Mapping[str, str], tests: Sequence[str]) -> str:
    wanted = " or ".join(f"{test}/out.tsv" for test in tests)
    like = [name for name in names if name.rpartition("/")[2].startswith("out")][:3]
    found = f"; there are {', '.join(f'`{visible(name)}`' for name in like)}" if like else ""
    return f"it has no output: {visible(wanted)}, or variants as out-NAME.tsv{found}"


def matching(names: Sequence[str], pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern of gonito.yaml: * and ? stay in a folder, ** is any number of folders.

    How far the pattern goes is found once for each folder, so that many paths of a long pattern take little time.

    >>> list(matching(["a.yaml", "x/a.yaml"], "*.yaml")), list(matching(["a.yaml", "x/a.yaml"], "**/*.yaml"))
    (['a.yaml'], ['a.yaml', 'x/a.yaml'])
    """
    globs = pattern.removeprefix("./").split("/")

    def passing(places: Iterable[int]) -> frozenset[int]:
        """Add the places behind each ** that may stand for nothing."""
        found = set(places)
        for place in range(len(globs)):
            if place in found and globs[place] == "**":
                found.add(place + 1)
        return frozenset(found)

    def after(places: Iterable[int], part: str) -> frozenset[int]:
        """Return the places in the pattern that one more part of a path leads to."""
        here = [place for place in places if place < len(globs)]
        stay = {place for place in here if globs[place] == "**"}
        return passing(stay | {place + 1 for place in here if place not in stay and fnmatchcase(part, globs[place])})

    reached = {"": passing([0])}  # by folder: how many parts of the pattern may have matched

    def reach(folder: str) -> frozenset[int]:
        if folder not in reached:
            above, _, part = folder.rpartition("/")
            reached[folder] = after(reach(above), part)
        return reached[folder]

    for name in names:
        folder, _, part = name.rpartition("/")
        if len(globs) in after(reach(folder), part):
            yield name


def test_and_variant(name: str, tests: Sequence[str]) -> tuple[str, str] | None:
    """Return the test and the variant of an output by its name; None for other files.

    Outputs lie in their test's folder or, if there is only one test, beside it.

    >>> test_and_variant("test-A/out-k=3.tsv.gz", ["test-A"]), test_and_variant("out.tsv", ["test-A", "test-B"])
    (('test-A', 'k=3'), None)
    """
    folder, _, file = name.rpartition("/")
    match = re.fullmatch(OUTPUT_NAME, file)
    if match is None or (not folder and (len(tests) > 1 or file.startswith(OUT_HEADER_FILE))):
        return None
    test = folder or tests[0]
    return (test, match[2] or "") if test in tests else None


def test_by_folder(name: str, tests: Sequence[str]) -> str | None:
    """Return the test of an output that lies in the test's folder; None for other files."""
    found = test_and_variant(name, tests) if "/" in name else None
    return None if found is None else found[0]


def outputs_of(files: Sequence[ReceivedFile], tests: Sequence[str], most: int) -> tuple[ReceivedOutput, ...]:
    """Find the outputs for some tests among files, at most so many for a test.

    Raises RejectedError for more, and if two are one variant of a test.
    """
    outputs: dict[tuple[str, str], ReceivedOutput] = {}
    for file in files:
        found = test_and_variant(file.name, tests)
        if found is None:
            continue
        if found in outputs:
            both = f"`{visible(outputs[found].file)}` and `{visible(file.name)}`"
            raise RejectedError(reason=f"{both} are the same variant; only one of them can be there")
        test, variant = found
        parameters = parse_parameters(file.name.rpartition("/")[2])
        outputs[found] = ReceivedOutput(test=test, file=file.name, variant=variant, params=parameters)
    for test, number in Counter(test for test, _ in outputs).items():
        if number > most:
            only = "only one is" if most == 1 else f"at most {most} are"
            raise RejectedError(reason=f"it has {number} outputs for {visible(test)}; {only} taken from a submission")
    return tuple(outputs.values())


# How a submission describes itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Gonito:
    """The content of a gonito.yaml; ``notes`` name its unknown keys."""

    description: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    unwanted_params: tuple[str, ...] = ()
    param_files: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    affiliation: str = ""
    notes: tuple[str, ...] = ()


EMPTY = Gonito()


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
        for key in strange[:MOST_PROBLEMS]
    )
    return yaml.MappingNode(root.tag, pairs, root.start_mark, root.end_mark), notes


def read_params(name: str, data: bytes) -> dict[str, str]:
    """Read a file with parameters, in YAML or JSON; raises RejectedError with all problems and their lines."""
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


def parse_message(message: str) -> tuple[str, tuple[str, ...]]:
    r"""Read the first line of a commit's message, and the tags of a line ``tags: one, another`` below it.

    >>> parse_message("A bigram model\n\ntags: n-gram, baseline\n")
    ('A bigram model', ('n-gram', 'baseline'))
    """
    lines = [line.strip("\r") for line in message.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    description = "".join(lines[start : start + 1]).strip()[:MOST_TEXT]
    found = next((match[1] for line in lines[start + 1 :] if (match := _TAGS_LINE.match(line))), "")
    return description, tuple(tag.strip()[:MOST_NAME] for tag in found.split(",", MOST_TAGS + 1) if tag.strip())


def replace_unstorable(written: str) -> str:
    """Replace NUL and lone surrogates, which no database stores, with U+FFFD."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", written)


def _composed(data: bytes, name: str) -> yaml.Node | None:
    try:
        written = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RejectedError(reason=f"{visible(name)}, line {line}: this is not UTF-8 text") from error
    with _rejecting(name):
        return strict_yaml.compose(written, name)


@contextmanager
def _rejecting(name: str) -> Iterator[None]:
    """Raise ConfigErrors as RejectedError, on one line."""
    try:
        yield
    except ConfigError as error:
        lines = [line.strip() for line in error.message.splitlines()]
        more = [f"and {len(lines) - MOST_PROBLEMS} more"] if len(lines) > MOST_PROBLEMS else []
        message = "; ".join([*lines[:MOST_PROBLEMS], *more])
        raise RejectedError(reason=f"{visible(name)}, {message}") from error


def _short(node: yaml.Node, document: Document, *, most: int = MOST_VALUE) -> str:
    value = replace_unstorable(strict_yaml.text(node, document)).strip()
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
    if len(node.value) > MOST_PARAMS:
        raise WrongValueError(f"has {len(node.value)} parameters; at most {MOST_PARAMS} are taken")
    try:
        pairs = [(_written(key), _written(value).strip()) for key, value in node.value]
        if any(len(key) > MOST_NAME for key, _ in pairs):
            raise WrongValueError(f"has a name of more than {MOST_NAME} characters")
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


def _list(node: yaml.Node, document: Document, *, read: Reader, most: int) -> tuple[Any, ...]:
    """Read a list, unless it is too long."""
    if isinstance(node, yaml.SequenceNode) and len(node.value) > most:
        raise WrongValueError(f"has {len(node.value)} entries; at most {most} are taken")
    return strict_yaml.several(node, document, read=read)


def _pattern(node: yaml.Node, document: Document) -> str:
    pattern = _short(node, document, most=MOST_PATTERN)
    if pattern.count("/") >= MOST_PARTS:
        raise WrongValueError(f"has a pattern of more than {MOST_PARTS} parts")
    return pattern


LINK_FIELDS: Fields = {"title": _short, "url": _short}
FIELDS: Fields = {
    "description": partial(_short, most=MOST_TEXT),
    "tags": partial(_list, read=partial(_short, most=MOST_NAME), most=MOST_TAGS),
    "params": _params,
    "unwanted-params": partial(_list, read=_short, most=MOST_PARAMS),
    "param-files": partial(_list, read=_pattern, most=MOST_PATTERNS),
    "links": partial(_list, read=_link, most=MOST_LINKS),
    "affiliation": partial(_short, most=MOST_NAME),
}
