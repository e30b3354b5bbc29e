"""Find what a challenge's public folder gives away of its hidden answers, and report it as ``geval check`` does.

Answers leak if they lie in the public folder or in its git repository (:mod:`geval_py.authoring.leak_public`), and if
documents, items or runs of words are in several parts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from geval_py.authoring import corpora, leak_items, leak_public, leak_search
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.findings import Findings
from geval_py.checking.rules import Place, Problem, Report
from geval_py.reading import splits
from geval_py.scoring.blocks import ProgressOf, no_progress
from geval_py.text import visible
from geval_py.version import __version__


def find_leaks(
    directory: str | os.PathLike[str],
    *,
    answers: str | os.PathLike[str] | None = None,
    group: str | None = None,
    contexts: tuple[str, str] = ("", ""),
    rules: Collection[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    strict: bool = False,
    progress_of: ProgressOf = no_progress,
) -> Report:
    """Find what a challenge's public folder gives away of its hidden answers.

    ``answers`` is the folder of the hidden answers, if they are elsewhere; ``group`` the column whose values must be
    in one part (by default the first, unless it is a context); ``contexts`` are the columns beside the gap, unless
    their names are known; ``rules`` the codes of the only rules. ``max_places``
    places are kept of each rule and part (0: all). ``progress_of(path)`` returns a context manager with the function
    that is called while the training set is read. Parts without an input are left out. Raises DataError, and
    UsageError for a column that does not exist.
    """
    folder = os.fspath(directory)
    sources = leak_items.find_sources(folder, None if answers is None else os.fspath(answers), group, contexts)
    codes = {rule.code for rule in leak_items.LEAK_RULES} if rules is None else rules
    reader = leak_items.Reader()
    hidden = {
        source.path: leak_search.HiddenPart(source, reader.whole(source))
        for source in sources
        if source.part != splits.TRAINING_SET
    }
    problems = list(_compare(sources, hidden, reader, codes, max_places, progress_of))
    findings: list[Findings] = []
    if "E401" in codes:
        findings += leak_public.public_answers(folder, sources, hidden, reader.vocabulary, codes)
    if {"E411", "W411", "E412"} & set(codes):
        findings += leak_public.answers_in_items(sources, codes)
    problems += [problem for found in findings for problem in found.problems(0)]
    files = [source.path for source in sources]
    order = {path: number for number, path in enumerate(files)}
    paths = list(dict.fromkeys(problem.path for problem in problems))
    problems.sort(key=lambda p: (order.get(p.path, -1), paths.index(p.path), leak_items.LEAK_RULES.index(p.rule)))
    return Report(
        version=__version__,
        files=tuple(files),
        problems=tuple(problems),
        strict=strict,
        rules=leak_items.LEAK_RULES,
        command=leak_items.COMMAND,
    )


class PartLeaks(Findings):
    """The findings in one part, item by item; with the lines of the part, if it is hidden."""

    def __init__(
        self,
        part: leak_search.PartItems,
        hidden: leak_search.HiddenPart | None,
        codes: Collection[str],
        max_places: int,
    ) -> None:
        super().__init__(part.path, codes, max_places, leak_items.LEAK_RULES)
        self._hidden = hidden
        self.in_other_sets: set[int] = set()  # the items that an earlier set has too

    def add_item(self, code: str, item: int, message: str, *, word: int = 0, gap: bool = False) -> None:
        """Count an item, from 0, and keep its place, if one more is wanted: at one of its words, or at its gap."""
        self.add(code, partial(self._place, item, message, word, gap=gap))

    def _place(self, item: int, message: str, word: int, *, gap: bool) -> Place:
        column, text = 1, ""
        if self._hidden is not None:
            text = self._hidden.block.texts[item]
            column = leak_items.column_of(text, self._hidden.source.columns, word, gap=gap)
        return Place(line=item + 1, column=column, token="", message=visible(message), text=text)


def _compare(
    sources: Sequence[leak_items.Source],
    hidden: Mapping[str, leak_search.HiddenPart],
    reader: leak_items.Reader,
    codes: Collection[str],
    max_places: int,
    progress_of: ProgressOf,
) -> Iterator[Problem]:
    """Compare the items of all parts; the hidden parts are kept in memory, the training set is read by blocks."""
    parts: list[leak_search.PartItems] = []
    for source in sources:
        if source.part == splits.TRAINING_SET:
            parts.append(leak_search.PartItems(source.path, samples=True))
            with progress_of(source.path) as progress:
                for block in reader.blocks(source, progress):
                    runs = leak_search.Runs(block)
                    parts[-1].add(runs)
                    leak_search.search_training_block(hidden.values(), runs)
    for path, part in hidden.items():
        parts.append(leak_search.PartItems(path))
        parts[-1].add(part.runs)
    grouped = {source.path for source in sources if source.columns.group is not None}
    leaks = {part.path: PartLeaks(part, hidden.get(part.path), codes, max_places) for part in parts}
    yield from _compare_parts(parts, leaks, grouped, codes)
    paths = [source.path for source in sources]
    for path, part in hidden.items():
        for other in hidden:
            if other != path:
                number = paths.index(other)
                leak_search.search_set(part, hidden[other], number, copies=number < paths.index(path))
        _add_readable(part, leaks[path], paths)
        _add_shared(part, leaks[path], paths)
    for one in parts:
        yield from leaks[one.path].problems(len(one.hashes))


def _compare_parts(
    parts: Sequence[leak_search.PartItems],
    leaks: Mapping[str, PartLeaks],
    grouped: Collection[str],
    codes: Collection[str],
) -> Iterator[Problem]:
    """Find documents and items in two parts, items that are there twice, and training windows that overlap."""
    copies, groups = leak_search.repeated(parts), leak_search.shared_groups(parts)
    for part, (elsewhere, within), (items, home) in zip(parts, copies, groups, strict=True):
        found = leaks[part.path]
        if part.path in grouped:
            group_of = part.groups
            for item in items.tolist():
                found.add_item("E402", item, f"its document is in {parts[home[int(group_of[item])]].path} too")
            count = len(np.unique(group_of))
            if count < corpora.FEW_GROUPS:
                message = f"{count} document{'' if count == 1 else 's'}, fewer than {corpora.FEW_GROUPS}"
                yield from leak_public.file_finding("W409", part.path, message, codes).problems(0)
        for item, of_part, of_item in elsewhere:
            found.in_other_sets.add(item)
            found.add_item("E403", item, f"the same item as line {of_item + 1} of {parts[of_part].path}")
        for item, of_item in within:
            found.add_item("W403", item, f"the same item as line {of_item + 1}")
        overlapping = part.overlapping()
        if len(overlapping) > leak_items.OVERLAPPING * len(part.hashes):
            for item in overlapping.tolist():
                found.add_item("W410", item, "it shares words with another window of its document")


def _add_readable(part: leak_search.HiddenPart, leaks: PartLeaks, paths: Sequence[str]) -> None:
    """Add the gaps that can be read in other inputs of the hidden sets, if they are many (E404) or some (W404)."""
    items, others = leak_search.readable_elsewhere(part.block)
    messages = {
        item: f"its gap stands in line {other + 1}, with a word there"
        for item, other in zip(items.tolist(), others.tolist(), strict=True)
    }
    for item, (_, line, source) in _first_of_items(part, part.gaps_in_sets).items():
        messages.setdefault(item, f"its gap stands in line {line} of {paths[source]}, with a word there")
    share = len(messages) / max(1, part.block.items)
    if share > leak_items.SOME_READABLE:
        for item, message in sorted(messages.items()):
            leaks.add_item("E404" if share > leak_items.MANY_READABLE else "W404", item, message, gap=True)


def _add_shared(part: leak_search.HiddenPart, leaks: PartLeaks, paths: Sequence[str]) -> None:
    """Add the items whose gaps, runs of words or sentences stand in the training set, or that are copies."""
    gaps = _first_of_items(part, part.gaps)
    is_much = len(gaps) > max(1, leak_items.MANY_IN_TEXTS * part.block.items)
    for item, (place, line, _) in gaps.items():
        message = f"its gap stands in train, with a word there, on line {line}"
        leaks.add_item("E405" if is_much else "W405", item, message, word=place, gap=True)
    for code, found, message in (
        ("W406", part.ngrams, f"{part.n} words of it stand in train, on line {{}}"),
        ("W408", part.sentences, "a whole sentence of it stands in train, on line {}"),
    ):
        for item, (place, line, _) in _first_of_items(part, found).items():
            leaks.add_item(code, item, message.format(line), word=place)
    first = _first_of_items(part, part.short_ngrams)
    near = dict.fromkeys(part.near_duplicates().tolist())
    for item in sorted(near.keys() | (part.copies.found.keys() - leaks.in_other_sets)):
        if item in near:
            leaks.add_item("W407", item, f"much of it stands in train, first on line {first[item][1]}")
        else:
            source, line = part.copies.found[item]
            leaks.add_item("W407", item, f"with some words replaced, it is line {line} of {paths[source]}")


def _first_of_items(part: leak_search.HiddenPart, sought: leak_search.SoughtRuns) -> dict[int, tuple[int, int, int]]:
    """Return, for each item with a run that was found, the run's first place, in words, the line, and the source."""
    lines, sources = sought.lines(), sought.sources()
    found = np.flatnonzero(lines)
    items, first = np.unique(part.items_of(sought.places[found]), return_index=True)
    return {
        item: (int(sought.places[one] - part.block.starts[item]), int(lines[one]), int(sources[one]))
        for item, one in zip(items.tolist(), found[first].tolist(), strict=True)
    }
