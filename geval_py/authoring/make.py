"""Make a challenge from texts: cut gaps, and deal whole documents to train, dev-0 and test-A."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, islice

from geval_py.authoring.documents import Document, column_names
from geval_py.authoring.gaps import Cut, Gap, cut_gaps, frequent_words
from geval_py.authoring.pages import DEFAULT_TITLE, Origin, answers_page, challenge_page
from geval_py.authoring.parts import Parts, check_group, check_parts
from geval_py.authoring.publishing import Contents, check_folders, config_of, publish
from geval_py.errors import UsageError
from geval_py.reading.splits import TRAINING_SET
from geval_py.scoring.parallel import Progress, ProgressOf, no_progress

CONTEXTS = ("LeftContext", "RightContext")
DEFAULT_METRICS = ("PerplexityHashed",)
CUTTING = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a challenge is made.

    ``group`` is the column whose values stay in one part, None for the documents themselves; ``train_every`` the
    least number of words between gaps of the training set, None for that of the others; ``least_frequency`` that of
    a word that may be a gap. Items are in an order drawn by their hash, unless ``keep_order``.
    """

    cut: Cut = field(default_factory=Cut)
    parts: Parts = field(default_factory=Parts)
    group: str | None = None
    train_every: int | None = None
    least_frequency: int = 1
    keep_order: bool = False
    metrics: tuple[str, ...] = DEFAULT_METRICS
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What became of a part: its gaps, how many documents they are from, and how many groups those are in."""

    name: str
    gaps: Sequence[Gap]
    documents: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A challenge that is cut: its parts, and how many documents have no gap, being too short for one."""

    parts: tuple[Part, ...]
    without_gaps: int


def make_challenge(
    documents: Sequence[Document],
    recipe: Recipe,
    out: str,
    answers: str,
    *,
    progress_of: ProgressOf = no_progress,
) -> Making:
    """Cut a challenge and write it into new folders, the hidden answers apart; gives what it holds.

    ``progress_of`` gives what is called as documents are cut, and then as bytes are packed, by the names
    :data:`CUTTING` and :data:`~geval_py.authoring.publishing.PACKING`. Raises UsageError (no document, a column or a
    metric that there is not, a part without a gap, answers inside the public folder) and ExistingFileError; nothing
    is left then.
    """
    check_folders(out, answers)
    config_of(recipe.metrics)
    with progress_of(CUTTING) as progress:
        making = cut_challenge(documents, recipe, progress)
    columns = column_names(documents)
    origin = Origin(
        title=recipe.title or DEFAULT_TITLE,
        columns=(*columns, *CONTEXTS),
        sizes=tuple((part.name, len(part.gaps), part.groups) for part in making.parts),
        group=recipe.group,
        metrics=recipe.metrics,
    )
    contents = Contents(
        in_header=origin.columns,
        items={part.name: [(gap.input_line(), gap.word) for gap in part.gaps] for part in making.parts},
        readme=challenge_page(origin, recipe.cut, words=sum(len(d.text.split()) for d in documents)),
        answers_readme=answers_page(origin),
        metrics=recipe.metrics,
    )
    publish(contents, out, answers, progress_of)
    return making


def cut_challenge(documents: Sequence[Document], recipe: Recipe, progress: Progress | None = None) -> Making:
    """Cut the gaps of all documents, part by part; raises UsageError.

    ``progress`` is called with how many documents are cut, and how many there are.
    """
    _check(documents, recipe)
    if recipe.least_frequency > 1:
        frequent = frequent_words(documents, recipe.least_frequency)
        recipe = replace(recipe, cut=replace(recipe.cut, frequent=frequent))
    groups = {document.id: _group_of(document, recipe) for document in documents}
    places = {group: recipe.parts.part_of(group) for group in set(groups.values())}
    dealt: Mapping[str, list[Document]] = {name: [] for name in recipe.parts.names}
    for document in documents:
        dealt[places[groups[document.id]]].append(document)
    watched = _watched(chain.from_iterable(dealt.values()), len(documents), progress)
    parts = tuple(_part(name, islice(watched, len(dealt[name])), recipe, groups) for name in dealt)
    if not any(part.gaps for part in parts):
        raise UsageError(
            message=f"no gap can be cut: no text has a word that may be one, with {recipe.cut.context} words on each "
            "side\n  --context takes fewer words, --words and --least-frequency take other ones"
        )
    filled = [part.name for part in parts if part.gaps]
    check_parts(recipe.parts, list(groups.values()), filled, recipe.group or "document")
    return Making(parts=parts, without_gaps=len(documents) - sum(part.documents for part in parts))


def _check(documents: Sequence[Document], recipe: Recipe) -> None:
    if not documents:
        raise UsageError(message="there is no text: the folders hold no file")
    columns = column_names(documents)
    taken = [name for name in CONTEXTS if name in columns]
    if taken:
        raise UsageError(message=f"a document's column cannot have the name {taken[0]}, which the gaps' texts have")
    if recipe.group is not None:
        check_group(recipe.group, columns)
    if recipe.cut.step < recipe.cut.window:
        raise UsageError(
            message=f"windows of {recipe.cut.window} words would overlap: answers could be read in other inputs\n"
            f"  --every takes {recipe.cut.window} or more, with --context {recipe.cut.context}; "
            "--train-every may be less"
        )


def _group_of(document: Document, recipe: Recipe) -> str:
    return document.id if recipe.group is None else document.columns[recipe.group]


def _watched(documents: Iterable[Document], number: int, progress: Progress | None) -> Iterator[Document]:
    for done, document in enumerate(documents, 1):
        if progress is not None:
            progress(done, number)
        yield document


def _part(name: str, documents: Iterable[Document], recipe: Recipe, groups: Mapping[str, str]) -> Part:
    cut = recipe.cut
    if name == TRAINING_SET and recipe.train_every is not None:
        cut = replace(cut, every=recipe.train_every)
    gaps = list(_gaps(documents, cut))
    if not recipe.keep_order:
        gaps.sort(key=lambda gap: _order(gap, cut.seed))
    used = {gap.document.id for gap in gaps}
    return Part(name=name, gaps=gaps, documents=len(used), groups=len({groups[id] for id in used}))


def _gaps(documents: Iterable[Document], cut: Cut) -> Iterator[Gap]:
    for document in documents:
        yield from cut_gaps(document, cut)


def _order(gap: Gap, seed: str) -> bytes:
    return sha256(f"{seed} {gap.place} {gap.document.id}".encode("utf-8", "surrogatepass")).digest()
