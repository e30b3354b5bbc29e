"""Make a challenge from texts, or split existing items into one: whole groups go to train, dev-0 and test-A.

The challenge is written with its README, packed items and digests; the hidden answers go to a folder of their own.
"""

from __future__ import annotations

import lzma
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, TypeVar

from geval_py.authoring import corpora, leaks
from geval_py.authoring.init import config_text
from geval_py.authoring.run_index import Vocabulary
from geval_py.errors import EmptyFileError, MissingFileError, UnreadableFileError, UsageError
from geval_py.reading import config, files, splits
from geval_py.reading.challenge import README_FILE, DataSet
from geval_py.reading.rewriting import GITIGNORE, GITIGNORE_FILE, check_new_folder, new_folder, write_files
from geval_py.scoring import evaluate
from geval_py.scoring.blocks import Progress, ProgressOf, no_progress
from geval_py.tables.table import Column, Table
from geval_py.text import named, visible

Grouped = TypeVar("Grouped", bound=tuple[Any, ...])
Item: TypeAlias = tuple[str, str, str]  # the lines of in.tsv and of expected.tsv, without their ends, and the group
GapsByPart: TypeAlias = dict[str, list[corpora.Gap]]
PartSize: TypeAlias = tuple[str, int, int]  # the name of a part, and its numbers of items and of groups

CONTEXTS = ("LeftContext", "RightContext")
COPY_RULES = {"E403", "W403", "E404", "W404", "E405", "W405", "W406"}
DEFAULT_METRICS = ("PerplexityHashed",)
DEFAULT_TITLE = "Guess the missing word"
CUTTING, PACKING = "documents", "packing"  # the names of what takes long
DIGESTS_FILE = "SHA256SUMS"
ANSWERS_ENDING = "-answers"
PACKED_INPUT_FILE = "in.tsv.xz"
OUT_HEADER = "Word"
PRECISION = 2
DOCUMENTS, MIN_LINES = 100, 10  # of one text that is cut into files; of each
PRESET = 1  # of xz: a fast one, as large inputs would take minutes


# From texts


class Recipe(NamedTuple):
    """The options of making a challenge.

    ``group`` is the column whose values stay in one part, None for the documents themselves. ``train_every`` is
    ``cut.every`` of the training set, if it is another. Only words with at least ``least_frequency`` occurrences may
    be gaps. With ``drop_copies``, gaps that copy text of train or of other gaps are left out. Items are in the order
    of their hashes, unless ``keep_order``. With ``for_geval``, GEval reads the config.txt: it does not declare the
    column of the documents.
    """

    cut: corpora.Cut = corpora.Cut()
    parts: corpora.Parts = corpora.Parts()
    group: str | None = None
    train_every: int | None = None
    least_frequency: int = 1
    drop_copies: bool = False
    keep_order: bool = False
    metrics: tuple[str, ...] = DEFAULT_METRICS
    title: str = DEFAULT_TITLE
    for_geval: bool = False

    def group_of(self, document: corpora.Document) -> str:
        """Return the group of a document."""
        return document.id if self.group is None else document.columns[self.group]


def make_challenge(
    documents: Sequence[corpora.Document],
    recipe: Recipe,
    out: str,
    answers: str,
    *,
    progress_of: ProgressOf = no_progress,
) -> tuple[GapsByPart, int]:
    """Cut a challenge and write it into the new folder ``out``, the hidden answers into the new folder ``answers``.

    Return the gaps of each part, and the number of copies that were left out.

    ``progress_of(name)`` returns a context manager with a function that is called as documents are cut, for the name
    :data:`CUTTING`, and as parts are packed, for :data:`PACKING`. Raises UsageError (no document, an unknown column
    or metric, a part without a gap, answers inside the public folder), SchemeError and ExistingFileError; nothing is
    written then.
    """
    check_folders(out, answers)
    config_of(recipe.metrics)
    with progress_of(CUTTING) as progress:
        parts = cut_challenge(documents, recipe, progress)
    copies = drop_copies(parts) if recipe.drop_copies else 0
    advice = ""
    if len(documents) == 1:
        path = documents[0].path
        file = visible(shlex.quote(path)) if path.endswith(".txt") else "FILE"
        lines = max(MIN_LINES, documents[0].text.count("\n") // DOCUMENTS + 1)
        advice = f"cut the text into files, for example of {lines} lines, and give their folder:\n"
        advice += f"  mkdir texts; split -l {lines} -a 4 {file} texts/"
    _check_filled(parts, list(map(recipe.group_of, documents)), recipe.group or "document", advice)
    words = sum(len(document.text.split()) for document in documents)
    how_cut = [
        f"A gap has {recipe.cut.context} words on each side, cut from {words:,} words. "
        "A line end is the two characters `\\n`.",
        "Words hyphenated at a line end are as they were in the texts; their halves are never gaps.",
        f"The windows of gaps do not overlap, except perhaps in `{splits.TRAINING_SET}`.",
        *([f"{copies:,} gaps are left out, as they copy others."] if copies else ()),
        "",
    ]
    items = {
        name: [(gap.input_line(), gap.word, recipe.group_of(gap.document)) for gap in gaps]
        for name, gaps in parts.items()
    }
    columns = (*documents[0].columns, *CONTEXTS)
    _publish(items, recipe, out, answers, columns, recipe.group, how_cut, progress_of)
    return parts, copies


def cut_challenge(
    documents: Sequence[corpora.Document], recipe: Recipe, progress: Progress | None = None
) -> GapsByPart:
    """Cut the gaps of all documents, and return them by part; raises UsageError.

    ``progress`` is called with the number of documents that are cut, and the number of all.
    """
    if not documents:
        raise UsageError("there is no text: the folders hold no file")
    columns = tuple(documents[0].columns)
    for name in CONTEXTS:
        if name in columns:
            raise UsageError(f"a document's column cannot have the name {name}, which the gaps' texts have")
    cut = recipe.cut
    if recipe.group is not None:
        corpora.check_group(recipe.group, columns)
    if cut.step < cut.window:
        raise UsageError(
            f"windows of {cut.window} words would overlap: answers could be read in other inputs\n"
            f"  --every takes {cut.window} or more, with --context {cut.context}; --train-every may be less"
        )
    if recipe.least_frequency > 1:
        counts = Counter(word for document in documents for word in document.text.split())
        cut = cut._replace(frequent={word for word, count in counts.items() if count >= recipe.least_frequency})
    grouped = [(document, recipe.group_of(document)) for document in documents]
    parts: GapsByPart = {}
    done = 0
    for name, dealt in _deal(grouped, recipe.parts).items():
        every = recipe.train_every if name == splits.TRAINING_SET else None
        of_part = cut if every is None else cut._replace(every=every)
        gaps = parts[name] = []
        for document, _ in dealt:
            gaps += corpora.cut_gaps(document, of_part)
            done += 1
            if progress is not None:
                progress(done, len(documents))
        if not recipe.keep_order:
            gaps.sort(key=lambda gap: _digest(f"{cut.seed} {gap.place} {gap.document.id}"))
    if not any(parts.values()):
        raise UsageError(
            f"no gap can be cut: no text has a word that may be one, with {cut.context} words on each "
            "side\n  try a smaller --context, other --words or a lower --least-frequency"
        )
    return parts


def drop_copies(parts: GapsByPart) -> int:
    """Leave out the gaps that :func:`leaks.find_leaks` would call copies or readable; return their number."""
    found, vocabulary, compared = leaks.Leaks(COPY_RULES), Vocabulary(), []
    for name, gaps in parts.items():
        width = len(gaps[0].document.columns) if gaps else 0
        data = DataSet(name=name, directory="", input=None, expected=None)
        part = leaks.Part(name, data, left=width, right=width + 1)
        lines, words = [gap.input_line() for gap in gaps], [gap.word for gap in gaps]
        compared.append((part, [leaks.number_items(lines, words, part, vocabulary)]))
    leaks.compare(compared, found)
    count = 0
    for name, gaps in parts.items():
        copies = found.items(name)
        parts[name] = [gap for item, gap in enumerate(gaps) if item not in copies]
        count += len(copies)
    return count


def _deal(items: Iterable[Grouped], parts: corpora.Parts) -> dict[str, list[Grouped]]:
    """Return the items of each part; the last entry of an item is its group."""
    dealt: dict[str, list[Grouped]] = {name: [] for name in parts.names}
    for item in items:
        dealt[parts.part_of(item[-1])].append(item)
    return dealt


def _check_filled(parts: Mapping[str, Sequence[object]], groups: Sequence[str], kind: str, advice: str = "") -> None:
    """Raise UsageError if parts are empty; ``kind`` names what a group is, ``advice`` is another than the usual."""
    empty = [name for name, items in parts.items() if not items]
    if empty:
        count = len(set(groups))
        usual = "give another --salt, another --split, or more and smaller groups"
        one = f"there is only one {kind}" if count == 1 else f"none of the {count} has a gap there"
        raise UsageError(
            f"no gap for {' and '.join(empty)}: parts are made of whole groups ({kind}), and {one}\n"
            f"  {advice or usual}"
        )


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


# From items


class ItemPool(NamedTuple):
    """The items of a folder, the names of their columns, and the column of their groups."""

    items: Sequence[Item]
    columns: tuple[str, ...]
    group: str


def read_items(folder: str, *, columns: Sequence[str] = (), group: str | None = None) -> ItemPool:
    """Read the items of a folder: in.tsv and expected.tsv, compressed or not.

    ``columns`` are the names of in.tsv's columns, by default those of in-header.tsv in the folder or its parent.
    ``group`` is the column whose values stay in one part, by default the first. Raises MissingFileError,
    LineCountError, EmptyFileError, UnreadableFileError (a line with a wrong number of columns) and UsageError.
    """
    headers = []  # of in.tsv and of expected.tsv
    for file in (splits.IN_HEADER_FILE, splits.OUT_HEADER_FILE):
        places = (folder, os.path.dirname(os.path.abspath(folder)))
        place = next((place for place in places if os.path.isfile(os.path.join(place, file))), None)
        headers.append(() if place is None else splits.read_header(place, file))
    names = tuple(columns) or headers[0]
    if not names:
        message = f"the columns of in.tsv have no names: there is no {splits.IN_HEADER_FILE}"
        raise UsageError(f"{message}\n  --columns FileId,… names them")
    chosen = names[0] if group is None else group
    corpora.check_group(chosen, names)
    paths = []
    for find, file, what in (
        (files.find_file, splits.INPUT_FILE, "input"),
        (splits.find_answers, splits.EXPECTED_FILE, "expected results"),
    ):
        path = find(os.path.join(folder, file))
        if path is None:
            raise MissingFileError(what=f"No file with the {what}", path=os.path.join(folder, file))
        paths.append(splits.answers_at(path))
    data = DataSet(
        name="", directory=folder, input=paths[0], expected=paths[1], in_header=names, out_header=headers[1]
    )
    items = []
    for item in data:
        if len(item.columns) != len(names):
            reason = f"line {item.line} has {len(item.columns)} columns, and {len(names)} have names"
            raise UnreadableFileError(path=paths[0].name, reason=reason)
        items.append(("\t".join(item.columns.values()), item.expected or "", item.columns[chosen]))
    if not items:
        raise EmptyFileError(what="input", path=paths[0].name)
    return ItemPool(items, names, chosen)


def split_items(
    pool: ItemPool, recipe: Recipe, out: str, answers: str, *, progress_of: ProgressOf = no_progress
) -> list[PartSize]:
    """Split items and write them as a challenge into new folders; return each part's name, items and groups.

    Of the ``recipe`` the parts, the order, the metrics and the title count. ``progress_of`` is as for
    :func:`make_challenge`, and so are the errors.
    """
    check_folders(out, answers)
    config_of(recipe.metrics)
    parts = _deal(pool.items, recipe.parts)
    _check_filled(parts, [group for *_, group in pool.items], pool.group)
    if not recipe.keep_order:
        for items in parts.values():
            items.sort(key=lambda item: _digest(item[0]))
    return _publish(parts, recipe, out, answers, pool.columns, pool.group, (), progress_of)


# Writing


def check_folders(out: str, answers: str) -> None:
    """Raise UsageError for answers inside the public folder, ExistingFileError for a folder that is not empty."""
    public, private = os.path.realpath(out), os.path.realpath(answers)
    if os.path.commonpath((public, private)) == public:
        message = f"the hidden answers would lie inside the public folder: {named(answers)} is in {named(out)}"
        raise UsageError(f"{message}\n  name another folder with --answers")
    for folder in (out, answers):
        check_new_folder(folder)


def config_of(metrics: Sequence[str], documents: str | None = None) -> str:
    """Write the config.txt for some metrics and the column of the documents; raises SchemeError and UsageError."""
    schemes = evaluate.select_schemes(config.Task(metrics=tuple(metrics)))
    return config_text(schemes, precision=PRECISION, documents=documents) + "\n"


def _publish(
    items: Mapping[str, Sequence[Item]],
    recipe: Recipe,
    out: str,
    answers: str,
    columns: Sequence[str],
    group: str | None,
    how_cut: Sequence[str],
    progress_of: ProgressOf,
) -> list[PartSize]:
    """Write a challenge into a new folder, and its hidden answers into another; both are complete or absent.

    ``group`` is the column that assigns items to parts, None if each document is a group.
    """
    sizes = [(name, len(triples), len({group for _, _, group in triples})) for name, triples in items.items()]
    # Intervals by few documents are wide. If each line is a document, the column says nothing.
    are_several = all(corpora.FEW_GROUPS <= groups < lines for _, lines, groups in sizes[1:])
    documents = (group or columns[0]) if are_several and not recipe.for_geval else None
    public = {
        GITIGNORE_FILE: GITIGNORE.encode(),
        config.CONFIG_FILE: config_of(recipe.metrics, documents).encode(),
        splits.IN_HEADER_FILE: ("\t".join(columns) + "\n").encode(),
        splits.OUT_HEADER_FILE: f"{OUT_HEADER}\n".encode(),
    }
    private = dict(public)
    done, size = 0, sum(map(len, items.values()))
    with progress_of(PACKING) as progress:
        for name, triples in items.items():
            with_answers, file = private if name == splits.HIDDEN_SET else public, f"{name}/{PACKED_INPUT_FILE}"
            data = _joined(line for line, _, _ in triples)
            public[file] = with_answers[file] = lzma.compress(data, preset=PRESET)
            with_answers[f"{name}/{splits.EXPECTED_FILE}"] = _joined(word for _, word, _ in triples)
            done += len(triples)
            if progress is not None:
                progress(done, size)
    challenge_page = _challenge_page(recipe, columns, group, how_cut, sizes)
    heading = f"Hidden answers: {recipe.title}"
    answers_page = f"""{heading}
{"=" * len(heading)}

The {sizes[-1][1]} answers of `{splits.HIDDEN_SET}`. Keep this folder secret: it is not part of the public one.

It is a challenge of its own, which can be scored and validated:

    geval -t {splits.HIDDEN_SET} --expected-directory THIS --out-directory SUBMISSION
    geval --validate --expected-directory THIS
"""
    with new_folder(out), new_folder(answers):
        for folder, files, page in ((out, public, challenge_page), (answers, private, answers_page)):
            digests = "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
            write_files(folder, files | {README_FILE: page.encode(), DIGESTS_FILE: digests.encode()})
    return sizes


def _challenge_page(
    recipe: Recipe,
    columns: Sequence[str],
    group: str | None,
    how_cut: Sequence[str],
    sizes: Sequence[PartSize],
) -> str:
    """Write the public README."""
    table = Table([Column("part"), Column("gaps"), Column(group or "documents")], sizes)
    whole = "Each document is" if group is None else f"All items with the same `{group}` are"
    return "\n".join(
        [
            f"{recipe.title}\n{'=' * len(recipe.title)}\n",
            "Given a text with a gap, give a probability distribution over the words that may stand there.\n",
            "".join(table.markdown()),
            "The data\n--------\n",
            "Each line of `in.tsv.xz` is a gap; its columns, split by TAB, are\n",
            *(f"* `{name}`" for name in columns),
            "",
            "Each line of `expected.tsv` is the missing word. The words of `test-A` are hidden.\n",
            *how_cut,
            f"{whole} in one part only, which a hash of the name chooses, so that new texts do not move old ones.\n",
            "Outputs\n-------\n",
            "An output has a line for each gap, as `river:0.5 road:0.2 :0.3`; the last entry is for all other words.",
            f"Scored by {', '.join(f'`{metric}`' for metric in recipe.metrics)}: `geval -t dev-0`.\n",
        ]
    )


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
