"""Find what a challenge's public folder gives away of its hidden answers, and report it as ``geval check`` does.

Answers leak through public files and the git history, through a column or the order of the items, and through text
that two parts share.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise

import numpy as np

from geval_py.authoring.corpora import FEW_GROUPS, check_group
from geval_py.authoring.hidden_answers import (
    FEW,
    HIDDEN_BEGINNING,
    MANY_IN_TEXTS,
    HiddenAnswers,
    are_many,
    content_of,
    search_public,
    with_line_feeds,
)
from geval_py.authoring.run_index import (
    AROUND_OR_BESIDE,
    NEIGHBOURS,
    RUN,
    UNKNOWN,
    Hashes,
    Items,
    RunIndex,
    Vocabulary,
    skeleton,
)
from geval_py.checking.check import DEFAULT_MAX_PLACES
from geval_py.checking.rules import Place, Problem, Report, Rule, file_problem
from geval_py.errors import MissingFileError, UsageError
from geval_py.reading.challenge import Challenge, DataSet
from geval_py.reading.items import find_contexts
from geval_py.reading.lines import LineReader, check_line_count, decode_lines, first_name, read_lines
from geval_py.reading.splits import (
    EXPECTED_FILE,
    INPUT_FILE,
    TRAINING_SET,
    answers_at,
    find_answers,
    sets_in,
)
from geval_py.scoring.blocks import Progress, ProgressOf, no_progress
from geval_py.scoring.evaluate import find_metric
from geval_py.text import counted, visible

COMMAND = "geval challenge leaks"
MANY_READABLE, SOME_READABLE = 0.05, 0.01  # of a part's items, above which E404 and W404 speak
SHARED = 0.1  # of an item's runs of words
OVERLAPPING = 0.2  # of the training items: fewer are text that documents repeat
OVERLAP = 0.5  # of an item's runs of words, which are in other items of its document
SAMPLED_ITEMS = 20_000
MUCH_IN_COLUMN = 0.1  # of a set's items, more than by chance
MIN_KINDS = 20  # different answers: fewer are classes, which are next to equal ones by chance
MIN_ITEMS = 20
SHUFFLES = 3
BLOCK_BYTES = 8_000_000
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
        "Remove duplicates from the texts, or use geval challenge make --drop-copies.",
    ),
    Rule(
        "W403", "item-twice", "the same item is in a part more than once",
        "The item counts twice. If its answers differ, no guess is right for both.",
        "Remove duplicates from the texts, or use geval challenge make --drop-copies.",
    ),
    Rule(
        "E404", "readable-in-inputs", "answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {100 * MANY_READABLE:g} % of the gaps, at least "
        f"{FEW + 1}, also occur in another input of this part, of dev or of test, with the answer between them; or 8 "
        "words on one side do. No model is needed to find these answers.",
        "Cut windows that do not overlap, with one gap each, as geval challenge make does.",
    ),
    Rule(
        "W404", "some-readable-in-inputs", "some answers can be read in other inputs",
        f"The {NEIGHBOURS} words on each side of more than {100 * SOME_READABLE:g} % of the gaps also occur in "
        "another input, with a word between them. A few such repetitions are normal in any text.",
        "Check whether windows overlap or texts are repeated.",
    ),
    Rule(
        "E405", "much-readable-in-train", "many answers can be read in the training set",
        f"The {NEIGHBOURS} words on each side of more than {100 * MANY_IN_TEXTS:g} % of the gaps, at least "
        f"{FEW + 1}, also occur in train, with a word between them. So texts of this part are also in train.",
        "Put identical texts into the same part, or leave the copies out by geval challenge make --drop-copies. Look "
        "for documents with two names.",
    ),
    Rule(
        "W405", "readable-in-train", "gaps whose answer can be read in the training set",
        f"The {NEIGHBOURS} words on each side also occur in train, with a word between them. A few such repetitions "
        "are normal in any text.",
        "If there are many, look for a text that is in both, such as a reprint, a quotation or another edition.",
    ),
    Rule(
        "W406", "shared-runs", "inputs that share much text with the training set",
        f"More than {100 * SHARED:g} % of their runs of {RUN} words also occur in train.",
        "Keep a document and its copies in one part (--group), or leave the copies out by geval challenge make "
        "--drop-copies.",
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
        "the same value have the same answer. For more than 10 % of the items, this cannot be chance.",
        "Leave the column out, or choose gaps that it does not answer.",
        needs_answers=True,
    ),
    Rule(
        "E412", "sorted-by-answer", "items are in the order of their answers",
        "The position of an item reveals its answer: the answers are in alphabetical order, or next to equal ones.",
        "Shuffle the items, as geval challenge make and split do.",
        needs_answers=True,
    ),
    Rule(
        "W412", "not-compared", "public files that were not compared with the answers",
        "The files are archives, too large or damaged.",
        "Remove these files from the public folder, or unpack and check them yourself.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A set of a challenge: the path of its input, the names of its columns, and which of these are what.

    ``left`` and ``right`` are the texts beside the gap, ``group`` is the document. Without ``right`` there is no gap,
    and without ``left`` either, the text is the whole line.
    """

    path: str
    data: DataSet
    names: Sequence[str] = ()
    left: int | None = None
    right: int | None = None
    group: int | None = None

    @property
    def is_training(self) -> bool:
        """Whether models are trained on the part."""
        return self.data.name == TRAINING_SET

    def lines(self) -> Iterator[str]:
        """Read the lines of the input; raises DataError."""
        return read_lines(self.path, header=first_name(self.data.in_header))

    def answers(self) -> list[str] | None:
        """Read the answers, if there are any; raises DataError."""
        if self.data.expected is None:
            return None
        return list(read_lines(self.data.expected, header=first_name(self.data.out_header)))

    def other_columns(self, max_items: int | None = None) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the cells of each column that is no context, where there is a gap.

        The cells are those of ``max_items`` at most.
        """
        for number, name in enumerate(() if self.right is None else self.names):
            if number not in (self.left, self.right):
                rows = (line.split("\t", number + 1) for line in islice(self.lines(), max_items))
                yield name, [row[number] if number < len(row) else "" for row in rows]


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
    parts = find_parts(folder, answers, group, contexts)
    vocabulary, leaks = Vocabulary(), Leaks(rules)
    paths = [part.path for part in parts]
    with progress_of(paths[0]) as progress:
        evaluated = compare([(part, read_items(part, vocabulary, progress)) for part in parts], leaks)
    leaks.sum_up(parts, max_places)
    _search_for_answers(folder, parts, evaluated, vocabulary, leaks)
    order = {path: number for number, path in enumerate(paths, 1)}
    leaks.problems.sort(key=lambda problem: (order.get(problem.path, 0), LEAK_RULES.index(problem.rule)))
    return Report(
        files=tuple(paths),
        problems=tuple(leaks.problems),
        strict=strict,
        rules=LEAK_RULES,
        command=COMMAND,
    )


class Leaks:
    """What was found: problems of whole files, and items of parts until they are summed up."""

    def __init__(self, codes: Collection[str] | None) -> None:
        self.problems: list[Problem] = []
        self._rules = {rule.code: rule for rule in LEAK_RULES if codes is None or rule.code in codes}
        self.sizes: dict[str, int] = {}  # the numbers of the parts' items
        self._items: dict[tuple[str, str], list[tuple[int, str, int]]] = {}

    def add_item(self, code: str, path: str, item: int, message: str, word: int = 0) -> None:
        """Add an item of a part, from 0; its place is that of one of its words, from 0, of which the gap is one."""
        if code in self._rules:
            self._items.setdefault((path, code), []).append((item, message, word))

    def add_file(self, code: str, path: str, message: str) -> None:
        """Add a problem of a file as a whole."""
        if code in self._rules:
            self.problems.append(file_problem(self._rules[code], path, visible(message)))

    def items(self, path: str) -> set[int]:
        """Return the items of a part that were added."""
        return {item for (place, _), items in self._items.items() if place == path for item, *_ in items}

    def sum_up(self, parts: Sequence[Part], max_places: int) -> None:
        """Make a problem of the items with the same rule and part."""
        most = max_places or None
        for part in parts:
            of_part = {code: items for (path, code), items in self._items.items() if path == part.path}
            shown = {item for items in of_part.values() for item, *_ in items[:most]}
            lines = part.lines() if shown and not part.is_training else ()
            texts = {item: line for item, line in enumerate(lines) if item in shown}
            for code, items in of_part.items():
                places = []
                for item, message, word in items[:most]:
                    text = texts.get(item, "")
                    places.append(Place(item + 1, column_of(text, part, word), "", visible(message), text))
                rule, share = self._rules[code], len(items) / self.sizes[part.path]
                self.problems.append(Problem(rule, part.path, len(items), share, rule.summary, tuple(places)))


# Text that two parts share


class EvaluatedPart:
    """A part other than train: its items in blocks, and their runs of words that are searched for elsewhere."""

    def __init__(self, part: Part, blocks: Sequence[Items]) -> None:
        self.part, self.blocks, self.size = part, blocks, sum(map(len, blocks))
        self.gaps_in_train = RunIndex(blocks, Items.around_gaps)
        self.gaps_in_sets = RunIndex(blocks, lambda items: items.around_gaps(AROUND_OR_BESIDE))
        self.runs = RunIndex([items.without_answers() for items in blocks], Items.runs)


def compare(parts: Sequence[tuple[Part, Iterable[Items]]], leaks: Leaks) -> list[EvaluatedPart]:
    """Find what parts share, and return all but train, which is not kept; its blocks are read once."""
    evaluated = [EvaluatedPart(part, list(blocks)) for part, blocks in parts if not part.is_training]
    kept = {compared.part.path: compared.blocks for compared in evaluated}
    items_of_parts = []  # the hash of each item, and of its document
    for part, blocks in parts:
        hashes, runs = [], []
        for items in kept.get(part.path, blocks):
            hashes.append(np.stack((items.hashes_of_items(), items.groups.astype(np.uint64))))
            if part.is_training:
                around, all_runs = items.around(), items.runs()
                values, owners = items.one_run_in_four()
                runs.append((values, owners + items.first_line - 1))
                for compared in evaluated:
                    compared.gaps_in_train.search(items, around)
                    compared.runs.search(items, all_runs)
        items_of_parts.append(np.concatenate(hashes, axis=1))
        size = leaks.sizes[part.path] = items_of_parts[-1].shape[1]
        if part.is_training and part.right is not None:
            # Windows overlap if most of their runs are in other windows of their documents.
            values, owners = map(np.concatenate, zip(*runs, strict=True))
            _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
            shared = np.bincount(owners[counts[inverse] > 1], minlength=size)
            overlapping = np.flatnonzero(shared > OVERLAP * np.bincount(owners, minlength=size)).tolist()
            for item in overlapping if len(overlapping) > OVERLAPPING * size else ():
                leaks.add_item("W410", part.path, item, "it overlaps with another window of its document")
    _find_twice([part for part, _ in parts], items_of_parts, leaks)
    for compared in evaluated:
        _find_shared_text(compared, evaluated, leaks)
    return evaluated


def _find_twice(parts: Sequence[Part], items_of_parts: Sequence[Hashes], leaks: Leaks) -> None:
    """Find documents and items in two parts, and items that are there twice."""
    values, counts = np.unique(np.concatenate([hashes for hashes, _ in items_of_parts]), return_counts=True)
    home: dict[int, str] = {}
    first: dict[int, tuple[str, int]] = {}
    for part, (hashes, documents) in zip(parts, items_of_parts, strict=True):
        path = part.path
        if part.group is not None:
            groups, items = np.unique(documents, return_index=True)
            for item, group in sorted(zip(items.tolist(), groups.tolist(), strict=True)):
                if (other := home.setdefault(group, path)) != path:
                    leaks.add_item("E402", path, item, f"its document is also in {other}")
            if len(groups) < FEW_GROUPS:
                leaks.add_file("W409", path, f"{counted(len(groups), 'document')}, fewer than {FEW_GROUPS}")
        for item in np.flatnonzero(np.isin(hashes, values[counts > 1])).tolist():
            other, line = first.setdefault(int(hashes[item]), (path, item + 1))
            if other != path:
                leaks.add_item("E403", path, item, f"the same item as line {line} of {other}")
            elif line != item + 1:
                leaks.add_item("W403", path, item, f"the same item as line {line}")


def _find_shared_text(compared: EvaluatedPart, evaluated: Sequence[EvaluatedPart], leaks: Leaks) -> None:
    """Find the items whose gaps can be read in the sets or in train, and those that share much text with train."""
    path, size = compared.part.path, compared.size
    for other in sorted(evaluated, key=lambda other: other is not compared):
        for block in other.blocks:
            is_same = other is compared
            items = block.without_answers() if is_same else block
            around = items.around(AROUND_OR_BESIDE)
            compared.gaps_in_sets.search(items, around, evaluated.index(other), in_same=is_same)
    readable = compared.gaps_in_sets.first_matches()
    if len(readable) > SOME_READABLE * size:
        code = "E404" if are_many(len(readable), size, MANY_READABLE) else "W404"
        for item, (word, line, source) in readable.items():
            other = evaluated[source]
            where = "" if other is compared else f" of {other.part.path}"
            leaks.add_item(code, path, item, f"its gap is in line {line}{where}, with a word there", word)
    in_train = compared.gaps_in_train.first_matches()
    code = "E405" if are_many(len(in_train), size, MANY_IN_TEXTS) else "W405"
    for item, (word, line, _) in in_train.items():
        leaks.add_item(code, path, item, f"its gap is in train, with a word there, on line {line}", word)
    matches, shares = compared.runs.first_matches(), compared.runs.shares()
    for item in np.flatnonzero(shares > SHARED).tolist():
        word, line, _ = matches[item]
        message = f"{100 * shares[item]:.0f} % of its runs of {RUN} words are in train, first on line {line}"
        leaks.add_item("W406", path, item, message, word)


# The items, their columns and places


def column_of(line: str, part: Part, word: int) -> int:
    r"""Return the column, from 1, at which a word of an item begins; ``word`` counts from 0 and includes the gap.

    A gap is where the right text begins.

    >>> data = DataSet(name="dev-0", directory="", input=None, expected=None)
    >>> column_of("x\tthe old\\nman\tthe sea", Part("in.tsv", data, left=1, right=2), 2)
    12
    """
    cells = line.split("\t")
    starts = [0, *accumulate(len(cell) + 1 for cell in cells)]
    numbers = [number for number in (part.left, part.right) if number is not None]
    if max(numbers, default=0) >= len(cells):
        return 1
    places: list[int] = []
    for number, (start, text) in enumerate([(starts[number], cells[number]) for number in numbers] or [(0, line)]):
        places += [start] * number  # of the gap
        places += [start + match.start() for match in re.finditer(r"\\n|((?:(?!\\n)\S)+)", text) if match[1]]
    return places[word] + 1 if word < len(places) else 1


def find_parts(
    directory: str, answers: str | os.PathLike[str] | None, group: str | None, contexts: tuple[str, str]
) -> list[Part]:
    """Find the parts of a challenge that have an input: train first, then in natural order.

    Answers are taken from the folder ``answers`` first, if it is given. Raises MissingFileError if there is no part,
    another DataError for a file that cannot be read, and UsageError for a column that does not exist.
    """
    challenge = Challenge.open(directory)
    task, parts = challenge.task, []
    metrics = [find_metric(scheme.metric) for scheme in challenge.schemes()]
    is_hashed = any(metric.bits is not None for metric in metrics)
    is_of_words = not metrics or any(metric.is_of_words or metric.has_entries for metric in metrics)
    names = [name for name in sets_in(directory) if name == TRAINING_SET or not name.startswith(TRAINING_SET)]
    for name in sorted(names, key=lambda name: name != TRAINING_SET):
        data = challenge[name]
        if data.input is None:
            continue
        path = data.input.name
        apart = answers and find_answers(os.path.join(answers, name, task.expected_file or EXPECTED_FILE))
        data = replace(data, expected=answers_at(apart)) if apart else data
        columns = data.in_header
        if not columns:
            columns = tuple(str(number) for number in range(1, next(read_lines(path), "").count("\t") + 2))
        if group is not None:
            check_group(group, columns)
        texts: list[int] = []  # of the contexts
        try:
            if any(contexts) or is_hashed or (is_of_words and data.in_header):
                texts = [columns.index(context) for context in find_contexts(columns, *contexts) if context]
        except UsageError:
            if any(contexts) or is_hashed:
                raise
        left, right, *_ = *texts, None, None
        grouped = columns.index(group) if group is not None else 0 if texts and 0 not in texts else None
        parts.append(Part(path, data, columns, left, right, grouped))
    if not parts:
        place = os.path.join(directory, TRAINING_SET, INPUT_FILE)
        raise MissingFileError(
            what="No file with the input", path=place, hint="train, dev-0 or test-A should have one"
        )
    return parts


def read_items(part: Part, vocabulary: Vocabulary, progress: Progress | None = None) -> Iterator[Items]:
    """Read the items of a part, block by block; an empty part has an empty block.

    ``progress`` is called after each block of train with the number of bytes read and the file's size. Raises
    DataError, also if there are more or fewer answers than items.
    """
    answers = part.answers()
    lines = 0
    with LineReader(part.path, header=first_name(part.data.in_header)) as reader:
        while (data := reader.block(BLOCK_BYTES)) or not lines:
            texts = decode_lines(data)
            words = [""] * len(texts) if answers is None else answers[lines : lines + len(texts)]
            if len(words) == len(texts):
                yield number_items(texts, words, part, vocabulary, lines + 1)
            lines += len(texts)
            if progress is not None and part.is_training:
                progress(reader.position, reader.size)
            if not data:
                break
    if answers is not None:
        check_line_count(
            "input", part.path, lines, part.data.expected.name if part.data.expected else "", len(answers)
        )


def number_items(
    texts: Sequence[str], answers: Sequence[str], part: Part, vocabulary: Vocabulary, first_line: int = 1
) -> Items:
    """Return items as numbers: the words left of the gap, the answer ("" if it is not known), the words right."""
    numbers: list[int] = []
    starts, gaps, groups = [0], [], []
    number_of = vocabulary.__getitem__
    for text, answer in zip(texts, answers, strict=True):
        line = text.replace("\\n", " ")
        cells = line.split("\t")
        places = (part.left, part.right, part.group)
        left, right, group = (cells[n] if n is not None and n < len(cells) else "" for n in places)
        numbers.extend(map(number_of, (line if part.left is None else left).split()))
        gaps.append(-1 if part.right is None else len(numbers))
        if part.right is not None:
            numbers.append(number_of(answer) if answer else UNKNOWN)
            numbers.extend(map(number_of, right.split()))
        starts.append(len(numbers))
        groups.append(hash(group))
    arrays = (np.array(values, dtype=np.int64) for values in (numbers, starts, gaps, groups))
    return Items(*arrays, first_line=first_line)


# Hidden answers


def _search_for_answers(
    folder: str, parts: Sequence[Part], evaluated: Sequence[EvaluatedPart], vocabulary: Vocabulary, leaks: Leaks
) -> None:
    """Find answers in public files (E401), and in the columns and the order of the items (E401, E411, E412)."""
    hidden, originals = [], set()
    for compared in evaluated:
        part = compared.part
        if part.data.name.startswith(HIDDEN_BEGINNING):
            answers = part.answers() or []
            hidden.append(HiddenAnswers(part.data.name, answers, compared.blocks, vocabulary))
            if part.data.expected is not None:
                contents = "\n".join(answers).encode(), content_of(part.data.expected.name)
                originals |= {with_line_feeds(content) for content in contents if content}
    known = {file.name for part in parts for file in (part.data.input, part.data.expected) if file is not None}
    for finding in search_public(folder, hidden, originals, known, vocabulary):
        leaks.add_file(*finding)
    for part in parts:
        answers = part.answers() or []
        if not part.is_training and are_sorted(answers):
            leaks.add_file("E412", part.path, "its items are in the order of their answers")
        for name, cells in part.other_columns(SAMPLED_ITEMS):
            share = share_in_column(cells, answers)
            if share > MUCH_IN_COLUMN:
                leaks.add_file("E411", part.path, f"column {name} reveals {100 * share:.0f} % of the answers")
            words = vocabulary.numbers(cells)
            for other in hidden:
                if other.name != part.data.name and (message := other.in_order(words)):
                    leaks.add_file("E401", part.path, f"column {name}: {message}")


def share_in_column(cells: Sequence[str], answers: Sequence[str]) -> float:
    """Return the share of items whose cell shows the answer, less the share that chance gives.

    A cell shows its answer if it contains it, forwards or backwards, or if the other items with the same cell have
    the same answer. Chance is what the cells of other items show, or the most frequent answer.
    """
    texts = [skeleton(cell.replace("\\n", " ")) for cell in cells]
    words = [skeleton(answer) for answer in answers[: len(texts)]]
    if len(words) < MIN_ITEMS:
        return 0.0
    shares = []
    for shift in range(SHUFFLES + 1):
        start = shift * len(words) // (SHUFFLES + 1)
        pairs = zip(texts, words[start:] + words[:start], strict=True)
        shares.append(sum(bool(word) and (word in text or word[::-1] in text) for text, word in pairs) / len(words))
    by_cell: dict[str, Counter[str]] = {}
    for text, word in zip(texts, words, strict=True):
        by_cell.setdefault(text, Counter())[word] += 1
    right = 0
    for counts in by_cell.values():
        first, second, *_ = *sorted(counts.values(), reverse=True), 0
        right += first if first - 1 > second else 0  # with one item left out, the others still predict its answer
    predicted = (right - Counter(words).most_common(1)[0][1]) / len(words)
    return max(shares[0] - math.fsum(shares[1:]) / SHUFFLES, predicted)


def are_sorted(answers: Sequence[str]) -> bool:
    """Return whether items are in the order of their answers, also within documents, or beside equal ones."""
    words = [skeleton(answer) for answer in answers]
    kinds = Counter(words)
    if len(kinds) < MIN_KINDS:
        return False
    chance = math.fsum((count / len(words)) ** 2 for count in kinds.values())
    equal = sum(one == other for one, other in pairwise(words)) / (len(words) - 1)
    steps = [one < other for one, other in pairwise(words) if one != other]
    # Steps go one way more often than those of a shuffled list ever do.
    return equal > chance + 0.2 or abs(sum(steps) / len(steps) - 0.5) > max(0.25, 2.5 / math.sqrt(len(steps)))
