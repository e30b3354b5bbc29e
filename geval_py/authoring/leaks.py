"""Find what a challenge's public folder gives away of its hidden answers, and report it as ``geval check`` does.

Answers leak if they lie in the public folder or in its git repository; if a column of the items holds them, or their
order follows them; and if documents, items or runs of words are in several parts.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import file_digest, sha256
from itertools import islice, pairwise, zip_longest
from tempfile import TemporaryFile
from typing import IO, cast

import numpy as np

from geval_py.authoring.corpora import FEW_GROUPS, check_group
from geval_py.authoring.leak_search import (
    AROUND_OR_BESIDE,
    HIDDEN_BEGINNING,
    LENGTH_PERCENTILE,
    MAX_DOCUMENTS,
    MAX_NGRAM,
    MIN_NGRAM,
    MIN_SENTENCE,
    NEAR_DUPLICATE,
    NEIGHBOURS,
    EvaluatedPart,
    Hashes,
    Items,
    Numbers,
    PartFiles,
    Sought,
    Vocabulary,
    one_item,
    read_items,
    search_train,
    skeleton,
)
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.rules import Place, Problem, Report, Rule, file_problem
from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.reading import compression
from geval_py.reading.challenge import Challenge
from geval_py.reading.gap_columns import find_contexts
from geval_py.reading.lines import first_name, read_lines
from geval_py.reading.splits import (
    EXPECTED_FILE,
    INPUT_FILE,
    TRAINING_SET,
    answers_at,
    answers_in,
    find_answers,
    is_usual_name,
    sets_in,
)
from geval_py.scoring.blocks import ProgressOf, no_progress
from geval_py.text import visible

COMMAND = "geval challenge leaks"
MANY_IN_TEXTS = 0.2  # of a part's gaps, readable in train or in public files: texts repeat much less
FEW = 2  # gaps that any text may repeat: they are never many
MANY_READABLE, SOME_READABLE = 0.05, 0.01  # of a part's items, above which E404 and W404 speak
OVERLAPPING = 0.05  # of the training items
OVERLAP = 0.5  # of an item's n-grams, which are in other items of its document
IN_ORDER = 0.1  # of the runs of answers: above it, a text has them in order
SAME_WORDS = 0.9  # of the words, above which two lists are the same
PERFECT = 0.98  # of the answers, above which an output is no model's
MIN_KINDS = 20  # different answers: fewer are classes, which anything contains
CHANCE = 1e-6  # that a run of answers stands in a text by chance
MAX_RUN = 200  # answers; where more are needed, they are nearly all the same
PROBES = 30  # answers that are looked for first
MAX_COLUMNS = 60
SAMPLED_ITEMS = 20_000
MUCH_IN_COLUMN, SOME_IN_COLUMN = 0.1, 0.03  # of a set's items, more than by chance
MIN_ITEMS = 20
SHUFFLES = 3
MAX_BYTES = 1 << 26  # of one unpacked file
MAX_BYTES_IN_ALL = 1 << 28
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
_WORDS = re.compile(r"[^\s\t,;|\"\[\]{}]+")
_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, ValueError, RuntimeError, OverflowError, DataError,
)  # fmt: skip
LEAK_RULES = (
    Rule(
        "E401", "answers-in-public", "hidden answers are in the public folder or its git repository",
        "Everyone who has the folder has the answers. A clone contains every file that was ever committed.",
        "Move the answers to a separate folder, as geval challenge make does. If they were committed, start a new "
        "repository.",
    ),
    Rule(
        "E402", "group-in-two-parts", "a document is in two parts",
        "A model that has seen half of a document knows the names and the subject of the other half. Its score is "
        "too good, and does not hold for new documents.",
        "Assign whole documents to the parts, as geval challenge split does (or whole books, with --group).",
    ),
    Rule(
        "E403", "item-in-two-parts", "the same item is in two parts",
        "A model that memorises the item in one part knows its answer in the other.",
        "Remove duplicates from the texts before you make the challenge.",
    ),
    Rule(
        "W403", "item-twice", "the same item is in a part more than once",
        "The item counts twice. If its answers differ, no guess is right for both.",
        "Remove duplicates from the texts before you make the challenge.",
    ),
    Rule(
        "E404", "readable-in-inputs", "answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {MANY_READABLE:.0%} of the gaps, at least {FEW + 1}, "
        "also occur in another input of this part, of dev or of test, with the answer between them; or 8 words on "
        "one side do. No model is needed to find these answers.",
        "Cut windows that do not overlap, with one gap each, as geval challenge make does.",
    ),
    Rule(
        "W404", "some-readable-in-inputs", "some answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {SOME_READABLE:.0%} of the gaps also occur in another "
        "input, with a word between them. A few such repetitions are normal in any text.",
        "Check whether windows overlap or texts are repeated.",
    ),
    Rule(
        "E405", "much-readable-in-train", "many answers can be read in the training set",
        f"The {NEIGHBOURS} words on each side of more than {MANY_IN_TEXTS:.0%} of the gaps, at least {FEW + 1}, "
        "also occur in train, with a word between them. So texts of this part are also in train.",
        "Put identical texts into the same part. Look for documents with two names.",
    ),
    Rule(
        "W405", "readable-in-train", "gaps whose answer can be read in the training set",
        f"The {NEIGHBOURS} words on each side also occur in train, with a word between them. A few such repetitions "
        "are normal in any text.",
        "If there are many, look for a text that is in both, such as a reprint, a quotation or another edition.",
    ),
    Rule(
        "W406", "shared-ngram", "inputs that share a run of words with the training set",
        f"The run is as long as the {LENGTH_PERCENTILE}th percentile of the inputs' lengths, within {MIN_NGRAM} to "
        f"{MAX_NGRAM} words. A run in more than {MAX_DOCUMENTS} training documents is a set phrase, and does "
        "not count.",
        "Check these lines. Keep reprints and quotations in one part; set phrases are harmless.",
    ),
    Rule(
        "W407", "near-duplicate", "inputs that are nearly contained in the training set",
        f"More than {NEAR_DUPLICATE:.0%} of their runs of {MIN_NGRAM} words also occur in train.",
        "Keep a document and its copies in one part (--group), or keep only one of them.",
    ),
    Rule(
        "W408", "sentence-in-train", "a whole sentence of an input is in the training set",
        f"Sentences of {MIN_SENTENCE} words or more are compared, ignoring case and punctuation.",
        "Check these lines. Set phrases are harmless.",
    ),
    Rule(
        "W409", "few-groups", "a part has few documents",
        "The score depends more on these documents than on the model, and intervals are too narrow.",
        "Use more documents, or smaller ones.",
    ),
    Rule(
        "W410", "train-overlaps", "windows of the training set overlap",
        "Answers can be read in other inputs of the training set, and models that count words count the same words "
        "many times, which makes n-gram models worse.",
        "Cut windows that do not overlap, or mention the overlap in the README.",
    ),
    Rule(
        "E411", "answer-in-column", "a column of the input reveals answers",
        "A title, an id or another column contains the answer, forwards or backwards, or determines it: rows with "
        "the same value have the same answer. For more than 10% of the items, this cannot be chance.",
        "Leave the column out, or choose gaps that it does not answer.",
    ),
    Rule(
        "W411", "some-answers-in-column", "a column of the input contains some answers",
        "A title, an id or another column contains the answer of more than 3% of the items beyond chance. A few are "
        "normal where titles repeat words of their text.",
        "Check the column, and leave it out if it helps too much.",
    ),
    Rule(
        "E412", "sorted-by-answer", "items are in the order of their answers",
        "The position of an item reveals its answer: the answers are in alphabetical order, in the order of their "
        "lengths, or next to equal ones.",
        "Shuffle the items, as geval challenge make and split do.",
    ),
    Rule(
        "W412", "not-compared", "public files that were not compared with the answers",
        "The files are too large or damaged, or are packed inside archives.",
        "Remove these files from the public folder, or unpack and check them yourself.",
    ),
)  # fmt: skip


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
    their names are known; ``rules`` the codes of the only rules. ``max_places`` places are kept of each rule and part
    (0: all). ``progress_of(path)`` returns a context manager with the function that is called while the training set
    is read. Parts without an input are left out. Raises DataError, and UsageError for a column that does not exist.
    """
    folder = os.fspath(directory)
    sources = find_sources(folder, None if answers is None else os.fspath(answers), group, contexts)
    codes = {rule.code for rule in LEAK_RULES} if rules is None else rules
    vocabulary = Vocabulary()
    evaluated = [
        EvaluatedPart(files, list(read_items(files, vocabulary))) for files in sources if files.part != TRAINING_SET
    ]
    leaks = Leaks(codes, [part.files for part in evaluated])
    paths = [files.path for files in sources]
    parts = []  # the files of each, the hash of each item, and its document
    if sources[0].part == TRAINING_SET:
        blocks = []
        with progress_of(paths[0]) as progress:
            for items in read_items(sources[0], vocabulary, progress):
                sample, owner = items.sample()
                blocks.append((items.whole(), items.groups, sample, owner + items.first_line - 1))
                search_train(evaluated, items)
        hashes, groups, ngrams, owners = map(np.concatenate, zip(*blocks, strict=True))
        parts.append((sources[0], hashes, groups))
        # Training windows overlap if most of their n-grams are in other windows of their documents.
        _, inverse, counts = np.unique(ngrams, return_inverse=True, return_counts=True)
        shared = np.bincount(owners[counts[inverse] > 1], minlength=len(hashes))
        overlapping = np.flatnonzero(shared > OVERLAP * np.bincount(owners, minlength=len(hashes)))
        for item in overlapping.tolist() if len(overlapping) > OVERLAPPING * len(hashes) else ():
            leaks.add_item("W410", paths[0], item, "it overlaps with another window of its document")
    for part in evaluated:
        hashes = np.concatenate([items.whole() for items in part.blocks])
        parts.append((part.files, hashes, np.concatenate([items.groups for items in part.blocks])))
    _compare_items(parts, leaks)
    for part in evaluated:
        for other in sorted(evaluated, key=lambda other: other is not part):
            source = paths.index(other.files.path)
            for block in other.blocks:
                items = block.without_answers() if other is part else block
                around = items.around(shapes=AROUND_OR_BESIDE)
                part.gaps_in_sets.search(items, around, source, in_same=other is part)
        _compare_texts(part, leaks, paths)
    leaks.sum_up({files.path: len(hashes) for files, hashes, _ in parts}, max_places)
    if "E401" in codes:
        _search_public(folder, [part for part in evaluated if part.files.is_hidden], sources, vocabulary, leaks)
    if {"E411", "W411", "E412"} & set(codes):
        _search_items(sources, leaks)
    order = list(dict.fromkeys([*(one.path for one in leaks.problems if one.path not in paths), *paths]))
    leaks.problems.sort(key=lambda problem: (order.index(problem.path), LEAK_RULES.index(problem.rule)))
    return Report(
        files=tuple(paths),
        problems=tuple(leaks.problems),
        strict=strict,
        rules=LEAK_RULES,
        command=COMMAND,
    )


class Leaks:
    """What was found: problems of whole files, and items of parts until they are summed up."""

    def __init__(self, codes: Collection[str], evaluated: Iterable[PartFiles]) -> None:
        self.problems: list[Problem] = []
        self._rules = {rule.code: rule for rule in LEAK_RULES if rule.code in codes}
        self._evaluated = {files.path: files for files in evaluated}
        self._items: dict[tuple[str, str], list[tuple[int, str, int]]] = {}

    def add_item(self, code: str, path: str, item: int, message: str, word: int = 0) -> None:
        """Add an item of a part, from 0; its place is that of one of its words, of which the gap is one."""
        if code in self._rules:
            self._items.setdefault((path, code), []).append((item, message, word))

    def add_file(self, code: str, path: str, message: str) -> None:
        """Add a problem of a file as a whole."""
        if code in self._rules:
            self.problems.append(file_problem(self._rules[code], path, visible(message)))

    def sum_up(self, sizes: dict[str, int], max_places: int) -> None:
        """Make a problem of the items with the same rule and part; ``sizes`` are the numbers of items."""
        most = max_places or None
        texts: dict[str, dict[int, str]] = {}  # the lines that are shown
        for (path, _), items in self._items.items():
            texts.setdefault(path, {}).update((item, "") for item, *_ in items[:most])
        for path in texts.keys() & self._evaluated.keys():
            for item, line in enumerate(read_lines(path, header=self._evaluated[path].header)):
                if item in texts[path]:
                    texts[path][item] = line
        for (path, code), items in self._items.items():
            places = []
            for item, message, word in items[:most]:
                text = texts[path][item]
                column = column_of(text, self._evaluated[path], word) if path in self._evaluated else 1
                places.append(Place(item + 1, column, "", visible(message), text))
            rule, share = self._rules[code], len(items) / sizes[path]
            self.problems.append(Problem(rule, path, len(items), share, rule.summary, tuple(places)))


def _compare_items(parts: Sequence[tuple[PartFiles, Hashes, Numbers]], leaks: Leaks) -> None:
    """Find documents and items in two parts, and items that are there twice."""
    values, counts = np.unique(np.concatenate([hashes for _, hashes, _ in parts]), return_counts=True)
    home: dict[int, str] = {}
    first: dict[int, tuple[str, int]] = {}
    for files, hashes, documents in parts:
        path = files.path
        if files.group is not None:
            groups, items = np.unique(documents, return_index=True)
            for item, group in sorted(zip(items.tolist(), groups.tolist(), strict=True)):
                if (other := home.setdefault(group, path)) != path:
                    leaks.add_item("E402", path, item, f"its document is also in {other}")
            if len(groups) < FEW_GROUPS:
                few = f"{len(groups)} document{'' if len(groups) == 1 else 's'}"
                leaks.add_file("W409", path, f"{few}, fewer than {FEW_GROUPS}")
        for item in np.flatnonzero(np.isin(hashes, values[counts > 1])).tolist():
            other, line = first.setdefault(int(hashes[item]), (path, item + 1))
            if other != path:
                leaks.add_item("E403", path, item, f"the same item as line {line} of {other}")
            elif line != item + 1:
                leaks.add_item("W403", path, item, f"the same item as line {line}")


def _are_many(count: int, part: EvaluatedPart, share: float) -> bool:
    """Whether so many gaps of a part are more than texts repeat: a share of them, and not just a few."""
    return count > max(FEW, share * part.size)


def _compare_texts(part: EvaluatedPart, leaks: Leaks, paths: Sequence[str]) -> None:
    """Add the items whose gaps can be read in the sets or in train, and those that share runs of words with train."""
    path = part.files.path
    readable = part.gaps_in_sets.by_item()
    if len(readable) > SOME_READABLE * max(1, part.size):
        code = "E404" if _are_many(len(readable), part, MANY_READABLE) else "W404"
        for item, (place, line, source) in readable.items():
            where = "" if paths[source] == path else f" of {paths[source]}"
            leaks.add_item(code, path, item, f"its gap is in line {line}{where}, with a word there", place)
    gaps = part.gaps.by_item()
    code = "E405" if _are_many(len(gaps), part, MANY_IN_TEXTS) else "W405"
    for rule, items, what in (
        (code, gaps, "its gap is in train, with a word there"),
        ("W406", part.ngrams.by_item(), f"{part.n} words of it are in train"),
        ("W408", part.sentences.by_item(), "a whole sentence of it is in train"),
    ):
        for item, (place, line, _) in items.items():
            leaks.add_item(rule, path, item, f"{what}, on line {line}", place)
    first = part.short_ngrams.by_item()
    for item in part.short_ngrams.near_duplicates().tolist():
        leaks.add_item("W407", path, item, f"much of it is in train, first on line {first[item][1]}")


# The items, their columns and places


def column_of(line: str, files: PartFiles, word: int) -> int:
    r"""Return the column, from 1, at which a word of an item begins; ``word`` counts from 0 and includes the gap.

    A gap is where the right text begins.

    >>> from geval_py.reading.files import File
    >>> column_of("x\tthe old\\nman\tthe sea", PartFiles("dev-0", File("in.tsv"), left=1, right=2), 2)
    12
    """
    cells = line.split("\t")
    if max(files.left, files.right) >= len(cells):
        return 1
    places: list[int] = []
    for number in dict.fromkeys((files.left, files.right)):
        offset = sum(len(cell) + 1 for cell in cells[:number])
        places += [] if number == files.left else [offset]  # of the gap
        words = re.finditer(r"\\n|((?:(?!\\n)\S)+)", cells[number])
        places += [offset + match.start() for match in words if match[1]]
    return places[word] + 1 if word < len(places) else 1


def find_sources(
    directory: str, answers: str | None, group: str | None, contexts: tuple[str, str]
) -> list[PartFiles]:
    """Find the parts of a challenge that have an input: train first, then in natural order.

    Answers are taken from the folder ``answers`` first, if it is given. Raises MissingFileError if there is no part,
    another DataError for a file that cannot be read, and UsageError for a column that does not exist.
    """
    challenge = Challenge.open(directory)
    task, sources = challenge.task, []
    names = [name for name in sets_in(directory) if name == TRAINING_SET or not name.startswith(TRAINING_SET)]
    for name in sorted(names, key=lambda name: name != TRAINING_SET):
        data = challenge[name]
        if data.input is None:
            continue
        apart = answers and find_answers(os.path.join(answers, name, task.expected_file or EXPECTED_FILE))
        columns = data.in_header or tuple(
            str(number + 1) for number in range(next(read_lines(data.input), "").count("\t") + 1)
        )
        is_text, places = False, [0]  # of the contexts
        try:
            places = [columns.index(context) for context in find_contexts(columns, *contexts) if context] or places
        except UsageError:
            if any(contexts) or group is not None or any("Hashed" in metric for metric in task.metrics):
                raise
            is_text = True
        if group is not None:
            check_group(group, columns)
        sources.append(
            PartFiles(
                part=name,
                file=data.input,
                expected=answers_at(apart) if apart else data.expected,
                header=first_name(data.in_header),
                expected_header=first_name(data.out_header),
                left=places[0],
                right=places[-1],
                group=columns.index(group) if group is not None else None if 0 in places else 0,
                is_text=is_text,
                names=columns,
            )
        )
    if not sources:
        place = os.path.join(directory, TRAINING_SET, INPUT_FILE)
        raise MissingFileError(
            what="No file with the input", path=place, hint="train, dev-0 or test-A should have one"
        )
    return sources


# Answers in the public folder and in its git repository


def _search_public(
    folder: str, parts: Sequence[EvaluatedPart], sources: Sequence[PartFiles], vocabulary: Vocabulary, leaks: Leaks
) -> None:
    """Find the answers of hidden sets in any form in the public folder and in its git repository (E401).

    Also name the files that are too large to be compared (W412).
    """
    hidden = (os.path.join(folder, name) for name in sets_in(folder) if name.startswith(HIDDEN_BEGINNING))
    in_public = [path for place in hidden for path in answers_in(place)]
    for path in in_public:
        leaks.add_file("E401", path, "the answers of a hidden set are in the public folder")
    in_history = []
    log = ("log", "--all", "--format=", "--name-only", "--relative", "-z", "--", f":(glob){HIDDEN_BEGINNING}*/**")
    for name in sorted({name.strip("\n") for name in os.fsdecode(_git(folder, *log)).split("\0")} - {""}):
        _, *inside = name.split("/")
        if len(inside) == 1 and is_usual_name(inside[0]):
            in_history.append(name)
            message = f"the git history has answers of a hidden set: {name}"
            leaks.add_file("E401", os.path.join(folder, name), message)
    keys, originals = [], set()  # the answers to look for, and the digests of texts and files that hold them
    for files in sources:
        answers = files.answers() if files.is_hidden else None
        if not answers:
            continue
        keys.append(AnswerKey(files.part, answers, vocabulary))
        if files.expected is not None and files.expected.name not in in_public:
            originals.add(sha256("\n".join(read_lines(files.expected)).encode()).digest())
            with open(files.expected, "rb") as stream:
                originals.add(file_digest(stream, "sha256").digest())
    budget = Budget()
    gaps = [Sought(part.blocks, Items.around_gaps) for part in parts]
    searched: list[str] = []

    def search(path: str, text: str) -> str:
        """Search a text for gaps; return how answers stand in it, "" if they do not."""
        if not parts:
            return ""
        item = one_item(vocabulary.numbers(text.replace("\\n", " ").split()))
        around = item.around()
        for sought in gaps:
            sought.search(item, around, len(searched))
        searched.append(path)
        is_output = os.path.basename(path).startswith("out")
        for words in sequences(text, vocabulary) if keys else ():
            for key in keys:
                if message := key.stands_in(words, is_output=is_output):
                    return message
        return ""

    excluded = {*in_public, *(files.path for files in sources)}
    for path, data in public_files(folder, excluded, budget):
        if sha256(data).digest() in originals:
            leaks.add_file("E401", path, "its text equals the answers of a hidden set")
            continue
        for name, text in texts_in(path, data, budget):
            if sha256(text.replace("\r", "").removesuffix("\n").encode()).digest() in originals:
                leaks.add_file("E401", name, "its text equals the answers of a hidden set")
            elif message := search(name, text):
                leaks.add_file("E401", name, message)
    for files in sources if keys else ():
        for name, cells in other_columns(files):
            words = vocabulary.numbers(cells)
            for key in keys:
                if files.part != key.name and (message := key.stands_in(words)):
                    leaks.add_file("E401", files.path, f"column {name}: {message}")
    for name, text in git_texts(folder, [path for path in (*excluded, *searched) if os.path.isfile(path)], budget):
        is_named = any(name.startswith(f"{one} ") or f"/{one} " in name for one in in_history)
        if not is_named and any(key.is_likely_in(text) for key in keys) and (message := search(name, text)):
            leaks.add_file("E401", os.path.join(folder, ".git"), f"git keeps {name}: {message}")
    for part, sought in zip(parts, gaps, strict=True):
        readable = sought.by_item()
        if _are_many(len(readable), part, MANY_IN_TEXTS):
            (most, _), *others = Counter(source for _, _, source in readable.values()).most_common()
            more = f" and {len(others)} other texts" if others else ""
            share = f"{len(readable) / part.size:.0%} of the gaps of {part.files.part}"
            leaks.add_file("E401", searched[most], f"{share} can be read in this file{more}")
    for path in dict.fromkeys(budget.unread):
        leaks.add_file("W412", path, "it is too large or damaged, and was not compared with the answers")


class AnswerKey:
    """The answers of one hidden set, to be found in a sequence of words, whatever separates these.

    A leak has many runs of consecutive answers, forwards or backwards, so long that chance gives none; or the same
    words, each as often, in any order.
    """

    def __init__(self, name: str, answers: Sequence[str], vocabulary: Vocabulary) -> None:
        self.name = name
        self._words = vocabulary.numbers(answers)
        self._counts = Counter(self._words.tolist())
        agree = sum((count / len(answers)) ** 2 for count in self._counts.values())
        bits = -math.log(agree) if agree < 1 else 0.0
        self._n = max(4, math.ceil(math.log(1e7 / CHANCE) / bits)) if bits else MAX_RUN + 1
        orders = (self._words, self._words[::-1]) if self._n <= min(MAX_RUN, len(answers)) else ()
        self._runs = [Sought([one_item(words)], lambda item: item.ngrams(self._n)) for words in orders]
        kinds = sorted(set(map(str.casefold, answers)), key=len)[-len(answers) // 2 :]
        self._probes = [(word, skeleton(word)) for word in kinds[:: max(1, len(kinds) // PROBES)]]

    def is_likely_in(self, text: str) -> bool:
        """Whether a text has half of the longer answers, maybe as parts of words: a quick test of many texts."""
        plain = text.casefold()
        return sum(word in plain or other in plain for word, other in self._probes) > len(self._probes) / 2

    def stands_in(self, words: Numbers, *, is_output: bool = False) -> str:
        """Return how the answers stand in a sequence of words; "" if they do not.

        An output is a leak only if it has all of them, line by line: a good model guesses many.
        """
        for shifted in (words, words[1:]):
            is_as_long = len(shifted) == len(self._words) and len(self._counts) > 1 and self._n <= len(words)
            if is_as_long and float(np.mean(shifted == self._words)) > PERFECT:
                return f"it has the answers of {self.name}, line by line"
        if is_output:
            return ""
        for runs, order in zip(self._runs, ("in order", "in reverse order"), strict=False):
            share = len(np.unique(runs.find(one_item(words).ngrams(self._n)[0])[1])) / len(runs.values)
            if share > IN_ORDER:
                return f"it has {share:.0%} of the answers of {self.name}, {order}"
        if len(self._counts) < MIN_KINDS or not SAME_WORDS < len(words) / len(self._words) < 1 / SAME_WORDS:
            return ""
        counts = Counter(words.tolist())
        shared = self._counts & counts
        are_same = len(shared) > SAME_WORDS * max(len(self._counts), len(counts))
        if are_same and shared.total() > SAME_WORDS * max(len(self._words), len(words)):
            return f"it has the words of the answers of {self.name}, in another order"
        return ""


def sequences(text: str, vocabulary: Vocabulary) -> Iterator[Numbers]:
    """Yield the sequences of words in a text that may be answers.

    They are all its words; the first and the last word of each line, and the word of its first entry; each column of
    a table, by the delimiter that most lines have equally often; each field of lines of JSON.
    """
    yield vocabulary.numbers(_WORDS.findall(text.replace("\\n", " ").replace("\\t", " ")))
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    if len(lines) < 2:
        return
    words = [line.split() or [""] for line in lines]
    yield vocabulary.numbers([row[0] for row in words])
    yield vocabulary.numbers([row[-1] for row in words])
    if ":" in words[0][0]:
        yield vocabulary.numbers([row[0].rpartition(":")[0] for row in words])
    if lines[0].lstrip().startswith("{"):
        documents = []
        for line in lines:
            with suppress(ValueError, RecursionError):
                document = json.loads(line)
                documents += [document] if isinstance(document, dict) else []
        for name in list(documents[0] if documents else {})[:MAX_COLUMNS]:
            yield vocabulary.numbers([str(document.get(name, "")) for document in documents])
        return
    for delimiter in "\t,;|":
        width, count = Counter(line.count(delimiter) for line in lines[:1000]).most_common(1)[0]
        if 0 < width < MAX_COLUMNS and count > len(lines[:1000]) / 2:
            cells = ([cell.strip() for cell in line.split(delimiter)[: width + 1]] for line in lines)
            yield from map(vocabulary.numbers, zip_longest(*cells, fillvalue=""))


@dataclass
class Budget:
    """How much may still be read; ``unread`` are the names of what was not."""

    size: int = MAX_BYTES_IN_ALL
    unread: list[str] = field(default_factory=list)

    def read(self, stream: IO[bytes] | io.BufferedReader, name: str) -> bytes | None:
        """Read a stream to its end; None if that is more than the bounds."""
        bound = min(MAX_BYTES, self.size)
        data = stream.read(bound + 1)
        self.size -= min(len(data), bound)
        if len(data) > bound:
            self.unread.append(name)
            return None
        return data


def public_files(directory: str, excluded: Collection[str], budget: Budget) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of all files below a folder, outside of .git, but for the ``excluded`` files."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        for path in (os.path.join(folder, name) for name in sorted(names)):
            if path in excluded or not os.path.isfile(path):
                continue
            with suppress(OSError), open(path, "rb") as file:  # an unreadable file shows no answers
                if (data := budget.read(file, path)) is not None:
                    yield path, data


def texts_in(path: str, data: bytes, budget: Budget) -> Iterator[tuple[str, str]]:
    """Yield the texts in a file, maybe compressed: its own or, of an archive (.zip, .tar), that of each member.

    What is packed again inside of an archive is named as unread.
    """
    packed = compression.compression_of(data)
    if packed is not None:
        stream = io.BufferedReader(compression.Decompressed(io.BytesIO(data), packed, path, None))
        try:
            unpacked = budget.read(stream, path)
        except _DAMAGED:
            return
        if unpacked is None:
            return
        data = unpacked
    for name, member in _members(path, data, budget) if _is_archive(data) else [(path, data)]:
        if name != path and (_is_archive(member) or compression.compression_of(member)):
            budget.unread.append(name)
            continue
        encoding = "utf-16" if member.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        yield name, member.decode(encoding, "replace")


def _is_archive(data: bytes) -> bool:
    return data[:2] == b"PK" or data[257:262] == b"ustar"


def _members(path: str, data: bytes, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """Yield the files in a .zip or an unpacked .tar file; damage, or a spent budget, ends it."""
    entries: Iterable[tuple[str, Callable[[], IO[bytes] | None]]]
    try:
        if data[:2] == b"PK":
            archive = zipfile.ZipFile(io.BytesIO(data))
            entries = ((one.filename, partial(archive.open, one)) for one in archive.infolist() if not one.is_dir())
        else:
            tar = tarfile.open(fileobj=io.BytesIO(data), mode="r:")
            entries = ((one.name, partial(tar.extractfile, one)) for one in tar if one.isfile())
        for name, opened in entries:
            if budget.size <= 0:
                budget.unread.append(path)
                return
            stream, place = opened(), f"{path}/{name}"
            if stream is not None and (content := budget.read(stream, place)) is not None:
                yield place, content
    except _DAMAGED:
        budget.unread.append(path)


def git_texts(directory: str, excluded: Collection[str], budget: Budget) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of all files and messages in the history of a folder's repository.

    The ``excluded`` files are left out.
    """
    listed = os.fsdecode(_git(directory, "rev-list", "--objects", "--all")).splitlines()
    names = {name: path or name for name, _, path in (line.partition(" ") for line in listed)}
    paths = "".join(f"{os.path.abspath(path)}\n" for path in excluded)
    hashed = _git(directory, "hash-object", "--stdin-paths", "--no-filters", data=os.fsencode(paths))
    skipped = set(hashed.decode().split())
    if not names:
        return
    with TemporaryFile() as objects:
        objects.write("".join(f"{name}\n" for name in names if name not in skipped).encode())
        objects.seek(0)
        words = [*GIT, "-C", directory, "cat-file", "--batch"]
        with subprocess.Popen(words, stdin=objects, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            batch = cast("IO[bytes]", process.stdout)
            while head := batch.readline().decode().split():
                if len(head) != 3:  # a missing object
                    continue
                object_id, kind, size = head
                name = f"{names[object_id]} (git)"
                is_small = int(size) <= min(MAX_BYTES, budget.size)
                left = int(size) + 1  # with the LF behind it
                data = batch.read(left) if is_small else b""
                while not is_small and left > 0:
                    left -= len(batch.read(min(left, 1 << 20))) or left
                if kind == "tree":
                    continue
                if is_small:
                    budget.size -= int(size)
                    yield from texts_in(name, data[:-1], budget)
                else:
                    budget.unread.append(name)


def _git(directory: str, *words: str, data: bytes = b"") -> bytes:
    """Return what git prints; nothing if it fails, as where there is no repository."""
    try:
        return subprocess.run([*GIT, "-C", directory, *words], input=data, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""


# Answers in the columns and the order of a set's own items


def other_columns(files: PartFiles, max_items: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the cells of each column of a set that is no context; at most ``max_items`` are read."""
    for number, name in enumerate(files.names if files.has_gap else ()):
        if number not in (files.left, files.right):
            lines = islice(read_lines(files.path, header=files.header), max_items)
            rows = (line.split("\t", number + 1) for line in lines)
            yield name, [row[number] if number < len(row) else "" for row in rows]


def _search_items(sources: Sequence[PartFiles], leaks: Leaks) -> None:
    """Find columns of the inputs that give answers away (E411, W411), and items sorted by answer (E412)."""
    for files in sources:
        answers = files.answers()
        if answers is None:
            continue
        if files.part != TRAINING_SET and are_sorted(answers):
            leaks.add_file("E412", files.path, "its items are in the order of their answers")
        for name, cells in other_columns(files, SAMPLED_ITEMS):
            share = share_in_column(cells, answers)
            if share > SOME_IN_COLUMN:
                code = "E411" if share > MUCH_IN_COLUMN else "W411"
                leaks.add_file(code, files.path, f"column {name} reveals {share:.0%} of the answers")


def share_in_column(cells: Sequence[str], answers: Sequence[str]) -> float:
    """Return the share of items whose cell shows the answer, less the share that chance gives.

    A cell shows its answer if it contains it, forwards or backwards, or if the other items with the same cell have
    the same answer. Chance is what the cells of other items show, or the most frequent answer.
    """
    texts = [skeleton(cell.replace("\\n", " ")) for cell in cells[:SAMPLED_ITEMS]]
    words = [skeleton(answer) for answer in answers[: len(texts)]]
    if len(texts) < MIN_ITEMS:
        return 0.0
    shares = []
    for shift in (0, *(1 + n * len(texts) // (SHUFFLES + 1) + n for n in range(1, SHUFFLES + 1))):
        shifted = (*words[shift % len(texts) :], *words[: shift % len(texts)])
        pairs = zip(texts, shifted, strict=True)
        shares.append(sum(bool(word) and (word in text or word[::-1] in text) for text, word in pairs) / len(texts))
    by_cell: dict[str, Counter[str]] = {}
    for text, word in zip(texts, words, strict=True):
        by_cell.setdefault(text, Counter())[word] += 1
    right = 0
    for counts in by_cell.values():
        # with one item left out, an answer is predicted if it is then still the most frequent, and not alone in it
        (_, first), *rest = counts.most_common(2)
        if first > 1 and (not rest or first - 1 > rest[0][1]):
            right += first
    predicted = (right - Counter(words).most_common(1)[0][1]) / len(words)
    return max(shares[0] - sum(shares[1:]) / SHUFFLES, predicted)


def are_sorted(answers: Sequence[str]) -> bool:
    """Whether items are in the order of their answers: the alphabet's or another, also within documents."""
    words = [skeleton(answer) for answer in answers]
    kinds = Counter(words)
    if len(words) < MIN_ITEMS or len(kinds) < MIN_KINDS:
        return False
    chance = sum((count / len(words)) ** 2 for count in kinds.values())
    equal = sum(one == other for one, other in pairwise(words)) / (len(words) - 1)
    orders = (
        [one < other for one, other in pairwise(words) if one != other],
        [len(one) < len(other) for one, other in pairwise(words) if len(one) != len(other)],
    )
    # steps that go one way more often than those of a shuffled list ever do
    return equal > chance + 0.2 or any(
        len(steps) >= 10 and abs(sum(steps) / len(steps) - 0.5) > max(0.25, 2.5 / math.sqrt(len(steps)))
        for steps in orders
    )
