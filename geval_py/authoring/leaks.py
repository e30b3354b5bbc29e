"""Hidden answers where everyone can see them: in the public folder, or in its git history."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

import numpy as np

from geval_py.authoring.corpora import FEW_GROUPS
from geval_py.authoring.leak_items import (
    COMMAND,
    LEAK_RULES,
    MANY_READABLE,
    OVERLAPPING,
    SOME_READABLE,
    Columns,
    Reader,
    Source,
    column_of,
    find_sources,
)
from geval_py.authoring.leak_search import (
    PartItems,
    Probe,
    Runs,
    look_for,
    readable_elsewhere,
    repeated,
    shared_groups,
)
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.rules import Place, Problem, Report, Rule
from geval_py.errors import DataError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.reading.lines import LineReader
from geval_py.reading.sources import names_in
from geval_py.reading.splits import EXPECTED_FILE, TRAINING_SET
from geval_py.scoring.parallel import ProgressOf, no_progress
from geval_py.text import visible
from geval_py.version import __version__

HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
GIT_SECONDS = 60


def hidden_sets(directory: str) -> list[str]:
    """Give the names of the sets whose answers are hidden."""
    return sorted(name for name in names_in(directory, "directory") if name.startswith(HIDDEN_BEGINNING))


def answers_in(directory: str, expected_file: str = EXPECTED_FILE) -> list[str]:
    """Give the files with the answers of hidden sets."""
    names = [expected_file + ending for ending in ("", *COMPRESSED_ENDINGS)]
    paths = (os.path.join(directory, part, name) for part in hidden_sets(directory) for name in names)
    return [path for path in paths if os.path.isfile(path)]


def copies_in(directory: str, answers: Sequence[str]) -> list[str]:
    """Give the files below a folder, but those in git's own, that have the same text as one of some answers."""
    digests = {_digest(path) for path in answers}
    sizes = {os.path.getsize(path) for path in answers}
    found = []
    for path in _files_below(directory):
        if path.endswith(COMPRESSED_ENDINGS) or os.path.getsize(path) in sizes:
            with suppress(DataError):  # what cannot be read shows no answers
                found += [path] if _digest(path) in digests else []
    return sorted(found)


def _files_below(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield path


def _digest(path: str) -> str:
    digest = sha256()
    with LineReader(path) as reader:
        while block := reader.block():
            digest.update(block)
    return digest.hexdigest()


def answers_in_history(directory: str, expected_file: str = EXPECTED_FILE) -> list[str]:
    """Give the paths of answers of hidden sets that any commit of any branch has; none where there is no git."""
    patterns = [f":(glob){HIDDEN_BEGINNING}*/{expected_file}{ending}" for ending in ("", *COMPRESSED_ENDINGS)]
    words = [*_GIT, "-C", directory, "log", "--all", "--format=", "--name-only", "--relative", "-z", "--", *patterns]
    try:
        run = subprocess.run(words, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if run.returncode:
        return []
    names = run.stdout.decode("utf-8", "surrogateescape").split("\0")
    return sorted({name.strip("\n") for name in names if name.strip("\n")})


# What was found, as problems of the rules: counts, and the first places.


class Evidence:
    """The problems of all files, of some rules; ``max_places`` are kept of each (all, for 0)."""

    def __init__(self, rules: Sequence[Rule], max_places: int) -> None:
        self.rules = {rule.code: rule for rule in rules}
        self.max_places = max_places
        self._of_files: list[Problem] = []
        self._looks: dict[str, Look] = {}

    def of(self, path: str, items: int, probe: Probe | None = None) -> Look:
        """Give what collects the problems of a part, of so many items; of a hidden one there are the lines."""
        return self._looks.setdefault(path, Look(self, path, items, probe))

    def add_file(self, code: str, path: str, message: str) -> None:
        """Note a problem of a file as a whole."""
        if code in self.rules:
            message = visible(message)
            place = Place(line=0, column=0, token="", message=message)
            problem = Problem(rule=self.rules[code], path=path, count=1, share=1.0, summary=message, places=(place,))
            self._of_files.append(problem)

    @property
    def problems(self) -> list[Problem]:
        """All problems, those of whole files first."""
        return [*self._of_files, *(problem for look in self._looks.values() for problem in look.problems())]


class Look:
    """Collects the problems of one part, item by item."""

    def __init__(self, evidence: Evidence, path: str, items: int, probe: Probe | None) -> None:
        self._evidence, self._path, self._items, self._probe = evidence, path, items, probe
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[Place]] = {}

    def add(self, code: str, item: int, message: str, *, word: int = 0, gap: bool = False) -> None:
        """Count an item, from 0, and keep its place, if one more is wanted: at a word of it, or at its gap."""
        if code not in self._evidence.rules:
            return
        self._counts[code] = self._counts.get(code, 0) + 1
        places = self._places.setdefault(code, [])
        if not self._evidence.max_places or len(places) < self._evidence.max_places:
            places.append(self._place(item, message, word, gap=gap))

    def _place(self, item: int, message: str, word: int, *, gap: bool) -> Place:
        column, text = 1, ""
        if self._probe is not None:
            text = self._probe.block.texts[item]
            column = column_of(text, self._probe.source.columns, word, gap=gap)
        return Place(line=item + 1, column=column, token="", message=visible(message), text=text)

    def problems(self) -> list[Problem]:
        """Give a problem a rule."""
        return [
            Problem(
                rule=self._evidence.rules[code],
                path=self._path,
                count=count,
                share=min(1.0, count / self._items),
                summary=self._evidence.rules[code].summary,
                places=tuple(self._places[code]),
            )
            for code, count in self._counts.items()
        ]


# Find what a challenge gives away, and report it as ``geval check`` does.


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

    ``answers`` is the folder of the hidden answers, if that is another; ``group`` the column whose values are to be
    in one part (by default the first, if it is no text); ``rules`` the codes of the only rules. Of each rule and part
    ``max_places`` places are kept (0: all). ``progress_of`` gives what is called as train is read. Parts without an
    input are left out. Raises DataError, and UsageError for a column that there is not.
    """
    folder = os.fspath(directory)
    sources = find_sources(folder, None if answers is None else os.fspath(answers), group)
    evidence = Evidence(LEAK_RULES if rules is None else [r for r in LEAK_RULES if r.code in rules], max_places)
    _look_in_public(folder, sources, evidence)
    _compare(sources, evidence, progress_of)
    return Report(
        version=__version__,
        files=tuple(source.path for source in sources),
        problems=tuple(_sorted(evidence.problems, [source.path for source in sources])),
        strict=strict,
        rules=LEAK_RULES,
        command=COMMAND,
    )


def _sorted(problems: Sequence[Problem], files: Sequence[str]) -> list[Problem]:
    """Put problems in order of files, then of rules; those of other files come first."""
    order = {path: number for number, path in enumerate(files)}
    paths = {path: number for number, path in enumerate(dict.fromkeys(problem.path for problem in problems))}
    return sorted(problems, key=lambda p: (order.get(p.path, -1), paths[p.path], LEAK_RULES.index(p.rule)))


def _look_in_public(folder: str, sources: Sequence[Source], evidence: Evidence) -> None:
    known = answers_in(folder)
    for path in known:
        evidence.add_file("E401", path, "the answers of a hidden set lie in the public folder")
    apart = [s.expected for s in sources if s.part.startswith("test") and s.expected and s.expected not in known]
    for path in copies_in(folder, apart) if apart else ():
        if path not in known:
            evidence.add_file("E401", path, "it has the same text as the answers of a hidden set")
    for name in answers_in_history(folder):
        path = os.path.join(folder, name)
        evidence.add_file("E401", path, f"the git history has answers of a hidden set: {name}")


def _compare(sources: Sequence[Source], evidence: Evidence, progress_of: ProgressOf) -> None:
    reader = Reader()
    hidden = [Probe(source, reader.whole(source)) for source in sources if source.part != TRAINING_SET]
    parts: list[PartItems] = []
    for source in sources:
        if source.part == TRAINING_SET:
            parts.append(PartItems(source.path, samples=True))
            with progress_of(source.path) as progress:
                for block in reader.blocks(source, progress):
                    runs = Runs(block)
                    parts[-1].add(runs)
                    look_for(hidden, runs)
    for probe in hidden:
        parts.append(PartItems(probe.source.path))
        parts[-1].add(probe.runs)
    probes = {probe.source.path: probe for probe in hidden}
    columns = {source.path: source.columns for source in sources}
    _report_parts(parts, probes, columns, evidence)
    for probe in hidden:
        _report_readable(probe, evidence)
        _report_shared(probe, evidence)


def _report_parts(
    parts: Sequence[PartItems], probes: dict[str, Probe], columns: dict[str, Columns], evidence: Evidence
) -> None:
    grouped = {part.path for part in parts if columns[part.path].group is not None}
    copies = repeated(parts)
    groups = shared_groups(parts)
    for part, (elsewhere, within), (items, home) in zip(parts, copies, groups, strict=True):
        look = evidence.of(part.path, len(part.hashes), probes.get(part.path))
        if part.path in grouped:
            number = part.groups
            for item in items.tolist():
                other = parts[home[int(number[item])]].path
                look.add("E402", item, f"its document is in {other} too")
            _report_few(part, evidence)
        for item, of_part, of_item in elsewhere:
            look.add("E403", item, f"the same item as line {of_item + 1} of {parts[of_part].path}")
        for item, of_item in within:
            look.add("W403", item, f"the same item as line {of_item + 1}")
        overlapping = part.overlapping()
        if len(overlapping) > OVERLAPPING * len(part.hashes):
            for item in overlapping.tolist():
                look.add("W410", item, "it shares words with another window of its document")


def _report_few(part: PartItems, evidence: Evidence) -> None:
    count = len(np.unique(part.groups))
    if count < FEW_GROUPS:
        documents = "1 document" if count == 1 else f"{count} documents"
        evidence.add_file("W409", part.path, f"{documents}, fewer than {FEW_GROUPS}")


def _report_readable(probe: Probe, evidence: Evidence) -> None:
    items, others = readable_elsewhere(probe.block)
    share = len(items) / max(1, probe.block.items)
    if share > SOME_READABLE:
        look = evidence.of(probe.source.path, probe.block.items, probe)
        for item, other in zip(items.tolist(), others.tolist(), strict=True):
            message = f"its gap stands in line {other + 1}, with a word there"
            look.add("E404" if share > MANY_READABLE else "W404", item, message, gap=True)


def _report_shared(probe: Probe, evidence: Evidence) -> None:
    look = evidence.of(probe.source.path, probe.block.items, probe)
    for code, found, what in (
        ("W405", probe.gaps, "its gap stands in train, with a word there, on line {}"),
        ("W406", probe.ngrams, f"{probe.n} words of it stand in train, on line {{}}"),
        ("W408", probe.sentences, "a whole sentence of it stands in train, on line {}"),
    ):
        for item, place, line in _first_of_items(probe, found.places, found.lines()):
            look.add(code, item, what.format(line), word=place, gap=code == "W405")
    lines = dict(_lines_of_items(probe))
    for item in probe.near_duplicates().tolist():
        look.add("W407", item, f"much of it stands in train, first on line {lines[item]}")


def _first_of_items(probe: Probe, places: np.ndarray, lines: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Give the items of which something is found: its first place, counted in words, and the training line."""
    found = np.flatnonzero(lines)
    items, first = np.unique(probe.items_of(places[found]), return_index=True)
    for item, one in zip(items.tolist(), found[first].tolist(), strict=True):
        yield item, int(places[one] - probe.block.starts[item]), int(lines[one])


def _lines_of_items(probe: Probe) -> Iterator[tuple[int, int]]:
    for item, _, line in _first_of_items(probe, probe.short_ngrams.places, probe.short_ngrams.lines()):
        yield item, line
