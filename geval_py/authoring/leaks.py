"""Find what a challenge's public folder gives away of its hidden answers, and report it as ``geval check`` does.

Answers leak if they lie in the public folder or in its git repository; if a column of the items holds them, or their
order follows them; and if documents, items or runs of words are in several parts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import chain

import numpy as np

from geval_py.authoring import corpora, leak_answers, leak_items, leak_search, public_texts
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.findings import Findings
from geval_py.checking.rules import Place, Problem, Report
from geval_py.errors import DataError
from geval_py.reading import compression, splits
from geval_py.reading.answer_files import INFO_FILE, STATE_FILE
from geval_py.reading.answers import FOLDER, answers_in, is_usual_name
from geval_py.reading.file_lines import FileLines
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.sources import names_in
from geval_py.scoring.blocks import ProgressOf, no_progress
from geval_py.text import visible
from geval_py.version import __version__

LEAST_WORDS_OF_TEXT = 7  # on average in a column, for it to be searched for gaps


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
        findings += public_answers(folder, sources, hidden, reader.vocabulary, codes)
    if {"E411", "W411", "E412"} & set(codes):
        findings += answers_in_items(sources, codes)
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
                yield from file_finding("W409", part.path, message, codes).problems(0)
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
    is_many = _are_many(len(messages), part, leak_items.MANY_READABLE)
    if share > leak_items.SOME_READABLE:
        for item, message in sorted(messages.items()):
            leaks.add_item("E404" if is_many else "W404", item, message, gap=True)


def _are_many(found: int, part: leak_search.HiddenPart, share: float) -> bool:
    """Whether so many gaps of a part are more than texts repeat: a share of them, and not just a few."""
    return found > max(leak_items.FEW, share * part.block.items)


def _add_shared(part: leak_search.HiddenPart, leaks: PartLeaks, paths: Sequence[str]) -> None:
    """Add the items whose gaps, runs of words or sentences stand in the training set, or that are copies."""
    gaps = _first_of_items(part, part.gaps)
    is_much = _are_many(len(gaps), part, leak_items.MANY_IN_TEXTS)
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


# Answers in the public folder and in its git repository, and in the columns and the order of items


def file_finding(code: str, path: str, message: str, codes: Collection[str]) -> Findings:
    """Return the finding of one rule on a file as a whole."""
    findings = Findings(path, codes, 1, leak_items.LEAK_RULES)
    findings.add_file(code, visible(message))
    return findings


def public_answers(
    folder: str,
    sources: Sequence[leak_items.Source],
    hidden: Mapping[str, leak_search.HiddenPart],
    vocabulary: leak_items.Vocabulary,
    codes: Collection[str],
) -> Iterator[Findings]:
    """Find hidden answers in any form in the public folder and in its git repository (E401).

    Also name the files that are too large to be compared (W412).
    """
    known = hidden_answers_in(folder)
    for path in known:
        yield file_finding("E401", path, "the answers of a hidden set lie in the public folder", codes)
    apart = [s.expected for s in sources if s.is_hidden and s.expected and s.expected not in known]
    copies = [path for path in (copies_in(folder, apart) if apart else ()) if path not in known]
    for path in copies:
        yield file_finding("E401", path, "it has the same text as the answers of a hidden set", codes)
    of_hidden_sets = public_texts.names_in_history(folder, [f":(glob){leak_items.HIDDEN_BEGINNING}*/**"])
    in_history = list(filter(_is_of_answers, of_hidden_sets))
    for name in in_history:
        message = f"the git history has answers of a hidden set: {name}"
        yield file_finding("E401", os.path.join(folder, name), message, codes)
    search = _Search(sources, [part for part in hidden.values() if part.source.is_hidden], vocabulary)
    if not search.keys and not any(len(part.gaps_in_public.places) for part in search.parts):
        return
    budget = public_texts.Budget()
    inputs = {source.path for source in sources}
    of_datasets = (os.path.join(path, name) for path in known if os.path.isdir(path) for name in names_in(path))
    seen = inputs | {*known, *copies, *of_datasets}
    for path, text in public_texts.public_texts(folder, seen, budget):
        if message := search.found_in(path, text):
            yield file_finding("E401", path, message, codes)
    for path, message in search.found_in_columns(sources):
        yield file_finding("E401", path, message, codes)
    files = [path for path in (*seen, *search.paths) if os.path.isfile(path)]
    for name, text in public_texts.git_texts(folder, files, budget):
        if any(name.startswith(f"{one} ") or f"/{one} " in name for one in in_history):
            continue
        if search.may_be_in(text) and (message := search.found_in(name, text)):
            yield file_finding("E401", os.path.join(folder, ".git"), f"git keeps {name}: {message}", codes)
    for path, message in search.readable():
        yield file_finding("E401", path, message, codes)
    for path in dict.fromkeys(budget.unread):
        yield file_finding("W412", path, "it is too large, or damaged, and was not compared with the answers", codes)


def _is_of_answers(name: str) -> bool:
    """Whether a path in a challenge is that of a set's answers, or of the file by which a dataset is known."""
    _, *inside = name.split("/")
    return (len(inside) == 1 and is_usual_name(inside[0])) or inside == [FOLDER, STATE_FILE]


def hidden_answers_in(directory: str) -> list[str]:
    """Return the files in a folder with the answers of hidden sets, and the folders that are datasets of them."""
    names = names_in(directory, "directory")
    sets = sorted(name for name in names if name.startswith(leak_items.HIDDEN_BEGINNING))
    return [path for name in sets for path in answers_in(os.path.join(directory, name))]


def copies_in(directory: str, answers: Sequence[str]) -> list[str]:
    """Return the files below a folder, outside of .git, that have the same text as one of the answers.

    The text is that of the lines, or of a file that the lines are read from.
    """
    of_answers = [_digest(path) for path in (*answers, *chain.from_iterable(map(_files_with_rows, answers)))]
    digests = {digest for digest, _ in of_answers}
    sizes = {size - lacking for _, size in of_answers for lacking in (0, 1)}  # a last line may lack its end
    found = []
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path) and (
                path.endswith(compression.COMPRESSED_ENDINGS) or os.path.getsize(path) in sizes
            ):
                with suppress(DataError):  # an unreadable file shows no answers
                    found += [path] if _digest(path)[0] in digests else []
    return sorted(found)


def _files_with_rows(path: str) -> list[str]:
    files = path.files if isinstance(path, FileLines) else ()
    return [file for file in files if os.path.basename(file) not in (STATE_FILE, INFO_FILE)]


def _digest(path: str) -> tuple[str, int]:
    """Return the digest of a file's lines, and their size in bytes."""
    digest, size = sha256(), 0
    with LineReader(path, max_bytes=public_texts.MOST_BYTES_IN_ALL) as reader:
        while block := reader.block():
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


class _Search:
    """The search of texts for the answers of hidden sets, and for their gaps; ``paths`` are the texts' names."""

    def __init__(
        self,
        sources: Sequence[leak_items.Source],
        parts: Sequence[leak_search.HiddenPart],
        vocabulary: leak_items.Vocabulary,
    ) -> None:
        self._vocabulary, self.parts = vocabulary, parts
        self.paths: list[str] = []
        answers = [(source.part, source.answers()) for source in sources if source.is_hidden]
        self.keys = [leak_answers.AnswerKey(part, words, vocabulary) for part, words in answers if words]

    def may_be_in(self, text: str) -> bool:
        """Whether a text has many of the answers, maybe as parts of words: a quick test of git's many texts."""
        plain = text.casefold()
        return any(key.may_be_in(plain) for key in self.keys)

    def found_in(self, path: str, text: str) -> str:
        """Return how answers stand in a text; "" if they do not. Search the text for gaps too."""
        self._search_gaps(path, text)
        is_output = os.path.basename(path).startswith("out")
        for words in leak_answers.sequences(text, self._vocabulary) if self.keys else ():
            for key in self.keys:
                if message := key.found_among(words, is_output=is_output):
                    return message
        return ""

    def _search_gaps(self, path: str, text: str) -> None:
        self.paths.append(path)
        words = text.replace("\\n", " ").split()
        runs = leak_search.Runs(leak_answers.block_of(leak_answers.numbered(words, self._vocabulary)))
        around = runs.around(np.arange(len(words)), leak_items.AROUND)
        for part in self.parts:
            part.gaps_in_public.search(runs, *around, len(self.paths) - 1)

    def found_in_columns(self, sources: Sequence[leak_items.Source]) -> Iterator[tuple[str, str]]:
        """Yield the sets' inputs with a column that has answers, whatever their order, and how."""
        for source in sources:
            for name, cells in other_columns(source):
                if sum(cell.count(" ") for cell in cells) >= (LEAST_WORDS_OF_TEXT - 1) * len(cells):
                    self._search_gaps(source.path, "\n".join(cells))
                words = leak_answers.numbered(cells, self._vocabulary)
                for key in self.keys:
                    if source.part != key.name and (message := key.found_among(words, is_output=False)):
                        yield source.path, f"column {name}: {message}"

    def readable(self) -> Iterator[tuple[str, str]]:
        """Yield the first text in which gaps can be read, if that is so of many gaps of a set, and how."""
        for part in self.parts:
            found = np.flatnonzero(part.gaps_in_public.lines())
            if _are_many(len(found), part, leak_items.MANY_IN_TEXTS):
                share = len(found) / part.block.items
                texts, counts = np.unique(part.gaps_in_public.sources()[found], return_counts=True)
                others = f" and {len(texts) - 1} other texts" if len(texts) > 1 else ""
                path = self.paths[int(texts[np.argmax(counts)])]
                yield path, f"{share:.0%} of the gaps of {part.source.part} can be read in it{others}"


def other_columns(source: leak_items.Source, most: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the cells of each column of a set that is no context; ``most`` items are read."""
    columns = source.columns
    others = [n for n in range(len(source.names)) if n not in (columns.left, columns.right)]
    if columns.whole or not columns.has_gap or not others:
        return
    lines = read_lines(source.path, header=source.header)
    rows = [line.split("\t") for _, line in zip(range(most or 1 << 62), lines, strict=False)]
    for number in others:
        yield source.names[number], [row[number] if number < len(row) else "" for row in rows]


def answers_in_items(sources: Sequence[leak_items.Source], codes: Collection[str]) -> Iterator[Findings]:
    """Find columns of the inputs that give answers away (E411, W411), and items sorted by answer (E412)."""
    for source in sources:
        answers = source.answers()
        if answers is None:
            continue
        if source.part != splits.TRAINING_SET and leak_answers.are_sorted(answers):
            message = "its items stand in the order of their answers"
            yield file_finding("E412", source.path, message, codes)
        for name, cells in other_columns(source, leak_answers.SAMPLED_ITEMS):
            share = leak_answers.share_in_column(cells, answers)
            if share > leak_answers.SOME_IN_COLUMN:
                code = "E411" if share > leak_answers.MUCH_IN_COLUMN else "W411"
                message = f"column {name} gives away {share:.0%} of the answers"
                yield file_finding(code, source.path, message, codes)
