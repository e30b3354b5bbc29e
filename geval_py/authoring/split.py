"""Split items that are there already into train, dev-0 and test-A, as texts are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from geval_py.authoring.folders import IN_HEADER_FILE, OUT_HEADER_FILE
from geval_py.authoring.pages import DEFAULT_TITLE, Origin, answers_page, challenge_page
from geval_py.authoring.parts import Parts, check_group, check_parts
from geval_py.authoring.publishing import Contents, check_folders, config_of, publish
from geval_py.errors import EmptyFileError, LineCountError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, read_header
from geval_py.scoring.parallel import ProgressOf, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class OldItem:
    """An item that is there: its line of in.tsv, its answer, its group."""

    line: str
    answer: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All items of a folder, the names of their columns, and the column that they are grouped by."""

    items: Sequence[OldItem]
    columns: tuple[str, ...]
    group: str


def read_items(folder: str, *, columns: Sequence[str] = (), group: str | None = None) -> Pool:
    """Read the items of a folder: in.tsv and expected.tsv, compressed or not.

    ``columns`` names those of in.tsv; else in-header.tsv does, in the folder or in the one above. ``group`` is the
    column whose values stay in one part, by default the first. Raises MissingFileError, LineCountError,
    EmptyFileError, UnreadableFileError for a line with another number of columns, and UsageError.
    """
    names = tuple(columns) or _header_beside(folder, IN_HEADER_FILE)
    if not names:
        message = (
            f"the columns of in.tsv have no names: there is no {IN_HEADER_FILE}\n  --columns FileId,… names them"
        )
        raise UsageError(message=message)
    chosen = names[0] if group is None else group
    check_group(chosen, names)
    path = _file(folder, INPUT_FILE, "the input")
    answers = _answers(folder, path)
    lines = _checked_lines(path, names)
    place = names.index(chosen)
    items = [
        OldItem(line=line, answer=answer, group=line.split("\t")[place])
        for line, answer in zip(lines, answers, strict=True)
    ]
    return Pool(items=items, columns=names, group=chosen)


def _header_beside(folder: str, name: str) -> tuple[str, ...]:
    for place in (folder, os.path.dirname(os.path.abspath(folder))):
        if os.path.isfile(os.path.join(place, name)):
            return read_header(place, name)
    return ()


def _file(folder: str, name: str, what: str) -> str:
    path = find_file(os.path.join(folder, name))
    if path is None:
        raise MissingFileError(what=f"No file with {what}", path=os.path.join(folder, name))
    return path


def _answers(folder: str, path: str) -> list[str]:
    expected = _file(folder, EXPECTED_FILE, "the expected results")
    header = _header_beside(folder, OUT_HEADER_FILE)
    answers = list(read_lines(expected, header=header[0] if header else None))
    names = _header_beside(folder, IN_HEADER_FILE)
    lines = sum(1 for _ in read_lines(path, header=names[0] if names else None))
    if lines != len(answers):
        raise LineCountError(
            what="input", path=path, lines=lines, expected_path=expected, expected_lines=len(answers)
        )
    if not lines:
        raise EmptyFileError(what="input", path=path)
    return answers


def _checked_lines(path: str, names: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(read_lines(path, header=names[0]), 1):
        columns = line.count("\t") + 1
        if columns != len(names):
            reason = f"line {number} has {columns} columns, and {len(names)} have names"
            raise UnreadableFileError(path=path, reason=reason)
        yield line


def split_items(
    pool: Pool,
    out: str,
    answers: str,
    *,
    parts: Parts,
    metrics: Sequence[str],
    title: str = "",
    keep_order: bool = False,
    progress_of: ProgressOf = no_progress,
) -> list[tuple[str, int, int]]:
    """Split items and write them as a challenge into new folders; gives each part's name, items and groups.

    ``progress_of`` gives what is called as they are packed. Raises as :func:`geval_py.authoring.make.make_challenge`.
    """
    check_folders(out, answers)
    config_of(metrics)
    dealt: Mapping[str, list[OldItem]] = {name: [] for name in parts.names}
    places = {group: parts.part_of(group) for group in {item.group for item in pool.items}}
    for item in pool.items:
        dealt[places[item.group]].append(item)
    filled = [name for name, items in dealt.items() if items]
    check_parts(parts, [item.group for item in pool.items], filled, pool.group)
    if not keep_order:
        for items in dealt.values():
            items.sort(key=lambda item: sha256(item.line.encode("utf-8", "surrogatepass")).digest())
    sizes = [(name, len(items), len({item.group for item in items})) for name, items in dealt.items()]
    origin = Origin(
        title=title or DEFAULT_TITLE,
        columns=pool.columns,
        sizes=tuple(sizes),
        group=pool.group,
        metrics=tuple(metrics),
    )
    contents = Contents(
        in_header=pool.columns,
        items={name: [(item.line, item.answer) for item in items] for name, items in dealt.items()},
        readme=challenge_page(origin, None),
        answers_readme=answers_page(origin),
        metrics=tuple(metrics),
    )
    publish(contents, out, answers, progress_of)
    return sizes
