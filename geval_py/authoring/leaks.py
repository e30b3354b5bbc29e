"""Find what a challenge's public folder gives away of its hidden answers, and report it as ``geval check`` does.

Answers leak if they lie in the public folder or in its git history, and if documents, items or runs of words are in
several parts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256

import numpy as np

from geval_py.authoring import corpora, leak_items, leak_search
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.findings import Findings
from geval_py.checking.rules import Place, Problem, Report
from geval_py.errors import DataError
from geval_py.reading import compression, splits
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import names_in
from geval_py.scoring.blocks import ProgressOf, no_progress
from geval_py.text import visible
from geval_py.version import __version__

HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
GIT_SECONDS = 60
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")


def find_leaks(
    directory: str | os.PathLike[str],
    *,
    answers: str | os.PathLike[str] | None = None,
    group: str | None = None,
    rules: Collection[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    strict: bool = False,
    progress_of: ProgressOf = no_progress,
) -> Report:
    """Find what a challenge's public folder gives away of its hidden answers.

    ``answers`` is the folder of the hidden answers, if they are elsewhere; ``group`` the column whose values must be
    in one part (by default the first, unless it is a context); ``rules`` the codes of the only rules. ``max_places``
    places are kept of each rule and part (0: all). ``progress_of(path)`` returns a context manager with the function
    that is called while the training set is read. Parts without an input are left out. Raises DataError, and
    UsageError for a column that does not exist.
    """
    folder = os.fspath(directory)
    sources = leak_items.find_sources(folder, None if answers is None else os.fspath(answers), group)
    codes = {rule.code for rule in leak_items.LEAK_RULES} if rules is None else rules
    problems = [
        *(problem for found in _public_answers(folder, sources, codes) for problem in found.problems(0)),
        *_compare(sources, codes, max_places, progress_of),
    ]
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


def _public_answers(folder: str, sources: Sequence[leak_items.Source], codes: Collection[str]) -> Iterator[Findings]:
    """Find hidden answers, also under another name, in the public folder and in its git history (E401)."""
    finding = partial(_file_finding, "E401", codes=codes)
    known = answers_in(folder)
    for path in known:
        yield finding(path, "the answers of a hidden set lie in the public folder")
    apart = [s.expected for s in sources if s.part.startswith("test") and s.expected and s.expected not in known]
    for path in copies_in(folder, apart) if apart else ():
        if path not in known:
            yield finding(path, "it has the same text as the answers of a hidden set")
    for name in answers_in_history(folder):
        yield finding(os.path.join(folder, name), f"the git history has answers of a hidden set: {name}")


def _file_finding(code: str, path: str, message: str, *, codes: Collection[str]) -> Findings:
    findings = Findings(path, codes, 1, leak_items.LEAK_RULES)
    findings.add_file(code, visible(message))
    return findings


def answers_in(directory: str, expected_file: str = splits.EXPECTED_FILE) -> list[str]:
    """Return the files in a folder with the answers of hidden sets."""
    sets = sorted(name for name in names_in(directory, "directory") if name.startswith(HIDDEN_BEGINNING))
    names = [expected_file + ending for ending in ("", *compression.COMPRESSED_ENDINGS)]
    paths = (os.path.join(directory, part, name) for part in sets for name in names)
    return [path for path in paths if os.path.isfile(path)]


def copies_in(directory: str, answers: Sequence[str]) -> list[str]:
    """Return the files below a folder, outside of .git, that have the same text as one of the answers."""
    digests = {_digest(path) for path in answers}
    sizes = {os.path.getsize(path) for path in answers}
    found = []
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path) and (
                path.endswith(compression.COMPRESSED_ENDINGS) or os.path.getsize(path) in sizes
            ):
                with suppress(DataError):  # an unreadable file shows no answers
                    found += [path] if _digest(path) in digests else []
    return sorted(found)


def _digest(path: str) -> str:
    digest = sha256()
    with LineReader(path) as reader:
        while block := reader.block():
            digest.update(block)
    return digest.hexdigest()


def answers_in_history(directory: str, expected_file: str = splits.EXPECTED_FILE) -> list[str]:
    """Return the paths of hidden answers in any commit of any branch; none if there is no git repository."""
    patterns = [
        f":(glob){HIDDEN_BEGINNING}*/{expected_file}{ending}" for ending in ("", *compression.COMPRESSED_ENDINGS)
    ]
    words = [*_GIT, "-C", directory, "log", "--all", "--format=", "--name-only", "--relative", "-z", "--", *patterns]
    try:
        run = subprocess.run(words, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if run.returncode:
        return []
    names = run.stdout.decode("utf-8", "surrogateescape").split("\0")
    return sorted({name.strip("\n") for name in names if name.strip("\n")})


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
    sources: Sequence[leak_items.Source], codes: Collection[str], max_places: int, progress_of: ProgressOf
) -> Iterator[Problem]:
    """Compare the items of all parts; the hidden parts are kept in memory, the training set is read by blocks."""
    reader = leak_items.Reader()
    hidden = {
        source.path: leak_search.HiddenPart(source, reader.whole(source))
        for source in sources
        if source.part != splits.TRAINING_SET
    }
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
    for path, part in hidden.items():
        _add_readable(part, leaks[path])
        _add_shared(part, leaks[path])
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
                yield from _file_finding("W409", part.path, message, codes=codes).problems(0)
        for item, of_part, of_item in elsewhere:
            found.add_item("E403", item, f"the same item as line {of_item + 1} of {parts[of_part].path}")
        for item, of_item in within:
            found.add_item("W403", item, f"the same item as line {of_item + 1}")
        overlapping = part.overlapping()
        if len(overlapping) > leak_items.OVERLAPPING * len(part.hashes):
            for item in overlapping.tolist():
                found.add_item("W410", item, "it shares words with another window of its document")


def _add_readable(part: leak_search.HiddenPart, leaks: PartLeaks) -> None:
    """Add the gaps that can be read in other inputs of the part, if they are many (E404) or some (W404)."""
    items, others = leak_search.readable_elsewhere(part.block)
    share = len(items) / max(1, part.block.items)
    if share > leak_items.SOME_READABLE:
        for item, other in zip(items.tolist(), others.tolist(), strict=True):
            message = f"its gap stands in line {other + 1}, with a word there"
            leaks.add_item("E404" if share > leak_items.MANY_READABLE else "W404", item, message, gap=True)


def _add_shared(part: leak_search.HiddenPart, leaks: PartLeaks) -> None:
    """Add the items whose gaps, runs of words or sentences stand in the training set."""
    for code, found, message in (
        ("W405", part.gaps, "its gap stands in train, with a word there, on line {}"),
        ("W406", part.ngrams, f"{part.n} words of it stand in train, on line {{}}"),
        ("W408", part.sentences, "a whole sentence of it stands in train, on line {}"),
    ):
        for item, (place, line) in _first_of_items(part, found.places, found.lines()).items():
            leaks.add_item(code, item, message.format(line), word=place, gap=code == "W405")
    first = _first_of_items(part, part.short_ngrams.places, part.short_ngrams.lines())
    for item in part.near_duplicates().tolist():
        leaks.add_item("W407", item, f"much of it stands in train, first on line {first[item][1]}")


def _first_of_items(
    part: leak_search.HiddenPart, places: np.ndarray, lines: np.ndarray
) -> dict[int, tuple[int, int]]:
    """Return, for each item with a run that was found, the run's first place, in words, and the training line."""
    found = np.flatnonzero(lines)
    items, first = np.unique(part.items_of(places[found]), return_index=True)
    return {
        item: (int(places[one] - part.block.starts[item]), int(lines[one]))
        for item, one in zip(items.tolist(), found[first].tolist(), strict=True)
    }
