"""Make a challenge from texts, or split existing items into one: whole groups go to train, dev-0 and test-A."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, islice

from geval_py.authoring import corpora, leaks, publishing
from geval_py.errors import EmptyFileError, LineCountError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading import sources, splits
from geval_py.reading.answers import find_answers
from geval_py.reading.lines import read_lines
from geval_py.scoring.blocks import Progress, ProgressOf, no_progress
from geval_py.text import visible

CONTEXTS = ("LeftContext", "RightContext")
DEFAULT_METRICS = ("PerplexityHashed",)
CUTTING = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The options of making a challenge.

    ``group`` is the column whose values stay in one part, None for the documents themselves. ``train_every`` is
    ``cut.every`` of the training set, if it is another. Only words with at least ``least_frequency`` occurrences may
    be gaps. Items are in the order of their hashes, unless ``keep_order``.
    """

    cut: corpora.Cut = field(default_factory=corpora.Cut)
    parts: corpora.Parts = field(default_factory=corpora.Parts)
    group: str | None = None
    train_every: int | None = None
    least_frequency: int = 1
    keep_order: bool = False
    metrics: tuple[str, ...] = DEFAULT_METRICS
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part that was cut: its gaps, and the numbers of documents and groups that they are from."""

    name: str
    gaps: Sequence[corpora.Gap]
    documents: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChallenge:
    """A challenge that was cut: its parts, and the number of documents that are too short for a gap."""

    parts: tuple[Part, ...]
    without_gaps: int


def make_challenge(
    documents: Sequence[corpora.Document],
    recipe: Recipe,
    out: str,
    answers: str,
    *,
    progress_of: ProgressOf = no_progress,
) -> CutChallenge:
    """Cut a challenge and write it into the new folder ``out``, the hidden answers into the new folder ``answers``.

    ``progress_of(name)`` returns a context manager with a function that is called as documents are cut, for the name
    :data:`CUTTING`, and as bytes are packed, for :data:`~geval_py.authoring.publishing.PACKING`. Raises UsageError
    (no document, an unknown column or metric, a part without a gap, answers inside the public folder) and
    ExistingFileError; nothing is written then.
    """
    publishing.check_folders(out, answers)
    publishing.config_of(recipe.metrics)
    with progress_of(CUTTING) as progress:
        made = cut_challenge(documents, recipe, progress)
    challenge = publishing.NewChallenge(
        title=recipe.title or publishing.DEFAULT_TITLE,
        columns=(*corpora.column_names(documents), *CONTEXTS),
        items={part.name: [(gap.input_line(), gap.word) for gap in part.gaps] for part in made.parts},
        groups={part.name: part.groups for part in made.parts},
        group=recipe.group,
        metrics=recipe.metrics,
        cut=recipe.cut,
        words=sum(len(document.text.split()) for document in documents),
    )
    publishing.publish(challenge, out, answers, progress_of)
    return made


def cut_challenge(
    documents: Sequence[corpora.Document], recipe: Recipe, progress: Progress | None = None
) -> CutChallenge:
    """Cut the gaps of all documents, part by part; raises UsageError.

    ``progress`` is called with the number of documents that are cut, and the number of all.
    """
    _check(documents, recipe)
    if recipe.least_frequency > 1:
        frequent = corpora.frequent_words(documents, recipe.least_frequency)
        recipe = replace(recipe, cut=replace(recipe.cut, frequent=frequent))
    group = recipe.group
    groups = {document.id: document.id if group is None else document.columns[group] for document in documents}
    places = {group: recipe.parts.part_of(group) for group in set(groups.values())}
    dealt: Mapping[str, list[corpora.Document]] = {name: [] for name in recipe.parts.names}
    for document in documents:
        dealt[places[groups[document.id]]].append(document)

    def watched() -> Iterator[corpora.Document]:
        for done, document in enumerate(chain.from_iterable(dealt.values()), 1):
            if progress is not None:
                progress(done, len(documents))
            yield document

    in_turn = watched()
    parts = tuple(_part(name, islice(in_turn, len(dealt[name])), recipe, groups) for name in dealt)
    if not any(part.gaps for part in parts):
        raise UsageError(
            message=f"no gap can be cut: no text has a word that may be one, with {recipe.cut.context} words on each "
            "side\n  try a smaller --context, other --words or a lower --least-frequency"
        )
    filled = [part.name for part in parts if part.gaps]
    advice = _cutting_advice(documents[0].path) if len(documents) == 1 else None
    corpora.check_parts(recipe.parts, list(groups.values()), filled, group or "document", advice=advice)
    return CutChallenge(parts=parts, without_gaps=len(documents) - sum(part.documents for part in parts))


def _cutting_advice(path: str) -> str:
    """Return how the only text, which is a file or a row of one, is cut into several."""
    file = visible(shlex.quote(path)) if path.endswith(".txt") else "FILE"
    awk = """awk -v RS= '{f = "texts/" NR ".txt"; print > f; close(f)}'"""
    return f"cut the text into files, for example at empty lines, and give their folder:\n  mkdir texts; {awk} {file}"


def columns_with_answers(made: CutChallenge) -> list[tuple[str, float]]:
    """Return the columns that give answers away, such as one with the whole text, and the share of these answers."""
    gaps = [gap for part in made.parts for gap in part.gaps[: leaks.SAMPLED_ITEMS]]
    answers = [gap.word for gap in gaps]
    names = corpora.column_names([gap.document for gap in gaps[:1]])
    columns = {name: [gap.document.columns[name] for gap in gaps] for name in names}
    shares = {name: leaks.share_in_column(cells, answers) for name, cells in columns.items()}
    return [(name, share) for name, share in shares.items() if share > leaks.MUCH_IN_COLUMN]


def _check(documents: Sequence[corpora.Document], recipe: Recipe) -> None:
    if not documents:
        raise UsageError(message="there is no text: the folders hold no file")
    columns = corpora.column_names(documents)
    taken = [name for name in CONTEXTS if name in columns]
    if taken:
        raise UsageError(message=f"a document's column cannot have the name {taken[0]}, which the gaps' texts have")
    if recipe.group is not None:
        corpora.check_group(recipe.group, columns)
    if recipe.cut.step < recipe.cut.window:
        raise UsageError(
            message=f"windows of {recipe.cut.window} words would overlap: answers could be read in other inputs\n"
            f"  --every takes {recipe.cut.window} or more, with --context {recipe.cut.context}; "
            "--train-every may be less"
        )


def _part(name: str, documents: Iterable[corpora.Document], recipe: Recipe, groups: Mapping[str, str]) -> Part:
    cut = recipe.cut
    if name == splits.TRAINING_SET and recipe.train_every is not None:
        cut = replace(cut, every=recipe.train_every)
    gaps = [gap for document in documents for gap in corpora.cut_gaps(document, cut)]
    if not recipe.keep_order:
        gaps.sort(key=lambda gap: _digest(f"{cut.seed} {gap.place} {gap.document.id}"))
    used = {gap.document.id for gap in gaps}
    return Part(name=name, gaps=gaps, documents=len(used), groups=len({groups[id] for id in used}))


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedItem:
    """An existing item: its line of in.tsv, its answer, its group."""

    line: str
    answer: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All items of a folder, the names of their columns, and the column that they are grouped by."""

    items: Sequence[GroupedItem]
    columns: tuple[str, ...]
    group: str


def read_items(folder: str, *, columns: Sequence[str] = (), group: str | None = None) -> Pool:
    """Read the items of a folder: in.tsv and expected.tsv, compressed or not.

    ``columns`` are the names of in.tsv's columns, by default those of in-header.tsv in the folder or its parent.
    ``group`` is the column whose values stay in one part, by default the first. Raises MissingFileError,
    LineCountError, EmptyFileError, UnreadableFileError (a line with a wrong number of columns) and UsageError.
    """
    names = tuple(columns) or _header_beside(folder, splits.IN_HEADER_FILE)
    if not names:
        message = f"the columns of in.tsv have no names: there is no {splits.IN_HEADER_FILE}"
        message += "\n  --columns FileId,… names them"
        raise UsageError(message=message)
    chosen = names[0] if group is None else group
    corpora.check_group(chosen, names)
    path = _file(folder, splits.INPUT_FILE, "the input")
    answers = _answers(folder, path)
    lines = _checked_lines(path, names)
    place = names.index(chosen)
    items = [
        GroupedItem(line=line, answer=answer, group=line.split("\t")[place])
        for line, answer in zip(lines, answers, strict=True)
    ]
    return Pool(items=items, columns=names, group=chosen)


def _header_beside(folder: str, name: str) -> tuple[str, ...]:
    for place in (folder, os.path.dirname(os.path.abspath(folder))):
        if os.path.isfile(os.path.join(place, name)):
            return splits.read_header(place, name)
    return ()


def _file(folder: str, name: str, what: str) -> str:
    find = find_answers if name == splits.EXPECTED_FILE else sources.find_file
    path = find(os.path.join(folder, name))
    if path is None:
        raise MissingFileError(what=f"No file with {what}", path=os.path.join(folder, name))
    return path


def _answers(folder: str, path: str) -> list[str]:
    expected = _file(folder, splits.EXPECTED_FILE, "the expected results")
    header = _header_beside(folder, splits.OUT_HEADER_FILE)
    answers = list(read_lines(expected, header=header[0] if header else None))
    names = _header_beside(folder, splits.IN_HEADER_FILE)
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
    parts: corpora.Parts,
    metrics: Sequence[str],
    title: str = "",
    keep_order: bool = False,
    progress_of: ProgressOf = no_progress,
) -> list[tuple[str, int, int]]:
    """Split items and write them as a challenge into new folders; return each part's name, items and groups.

    ``progress_of`` is as for :func:`make_challenge`, and so are the errors.
    """
    publishing.check_folders(out, answers)
    publishing.config_of(metrics)
    dealt: Mapping[str, list[GroupedItem]] = {name: [] for name in parts.names}
    places = {group: parts.part_of(group) for group in {item.group for item in pool.items}}
    for item in pool.items:
        dealt[places[item.group]].append(item)
    filled = [name for name, items in dealt.items() if items]
    corpora.check_parts(parts, [item.group for item in pool.items], filled, pool.group)
    if not keep_order:
        for items in dealt.values():
            items.sort(key=lambda item: _digest(item.line))
    challenge = publishing.NewChallenge(
        title=title or publishing.DEFAULT_TITLE,
        columns=pool.columns,
        items={name: [(item.line, item.answer) for item in items] for name, items in dealt.items()},
        groups={name: len({item.group for item in items}) for name, items in dealt.items()},
        group=pool.group,
        metrics=tuple(metrics),
    )
    publishing.publish(challenge, out, answers, progress_of)
    return challenge.sizes
