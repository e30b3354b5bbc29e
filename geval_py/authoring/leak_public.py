"""Find hidden answers in the public folder and its git repository, and in the columns and the order of items."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

import numpy as np

from geval_py.authoring import leak_answers, leak_items, leak_search, public_texts
from geval_py.checking.findings import Findings
from geval_py.errors import DataError
from geval_py.reading import compression, splits
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.sources import names_in
from geval_py.text import visible

LEAST_WORDS_OF_TEXT = 7  # on average in a column, for it to be searched for gaps


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
    known = answers_in(folder)
    for path in known:
        yield file_finding("E401", path, "the answers of a hidden set lie in the public folder", codes)
    apart = [s.expected for s in sources if s.is_hidden and s.expected and s.expected not in known]
    copies = [path for path in (copies_in(folder, apart) if apart else ()) if path not in known]
    for path in copies:
        yield file_finding("E401", path, "it has the same text as the answers of a hidden set", codes)
    patterns = [f":(glob){leak_items.HIDDEN_BEGINNING}*/{name}" for name in _names(splits.EXPECTED_FILE)]
    in_history = public_texts.names_in_history(folder, patterns)
    for name in in_history:
        message = f"the git history has answers of a hidden set: {name}"
        yield file_finding("E401", os.path.join(folder, name), message, codes)
    search = _Search(sources, [part for part in hidden.values() if part.source.is_hidden], vocabulary)
    if not search.keys and not any(len(part.gaps_in_public.places) for part in search.parts):
        return
    budget = public_texts.Budget()
    inputs = {source.path for source in sources}
    seen = inputs | {*known, *copies}
    for path, text in public_texts.public_texts(folder, seen, budget):
        if message := search.found_in(path, text):
            yield file_finding("E401", path, message, codes)
    for path, message in search.found_in_columns(sources):
        yield file_finding("E401", path, message, codes)
    files = [*seen, *(path for path in search.paths if os.path.isfile(path))]
    for name, text in public_texts.git_texts(folder, files, budget):
        if any(name.startswith(f"{one} ") or f"/{one} " in name for one in in_history):
            continue
        if search.may_be_in(text) and (message := search.found_in(name, text)):
            yield file_finding("E401", os.path.join(folder, ".git"), f"git keeps {name}: {message}", codes)
    for path, message in search.readable():
        yield file_finding("E401", path, message, codes)
    for path in dict.fromkeys(budget.unread):
        yield file_finding("W412", path, "it is too large, or damaged, and was not compared with the answers", codes)


def _names(file: str) -> list[str]:
    return [file + ending for ending in ("", *compression.COMPRESSED_ENDINGS)]


def answers_in(directory: str, expected_file: str = splits.EXPECTED_FILE) -> list[str]:
    """Return the files in a folder with the answers of hidden sets."""
    names = names_in(directory, "directory")
    sets = sorted(name for name in names if name.startswith(leak_items.HIDDEN_BEGINNING))
    paths = (os.path.join(directory, part, name) for part in sets for name in _names(expected_file))
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
    with LineReader(path, max_bytes=public_texts.MOST_BYTES_IN_ALL) as reader:
        while block := reader.block():
            digest.update(block)
    return digest.hexdigest()


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
            share = len(found) / max(1, part.block.items)
            if len(found) > 1 and share > leak_items.MANY_IN_TEXTS:
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
