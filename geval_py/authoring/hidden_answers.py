"""The answers of hidden sets, and the search for them in a challenge's public folder and its git history."""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import zip_longest

import numpy as np

from geval_py.authoring.run_index import Items, Numbers, RunIndex, Vocabulary
from geval_py.errors import DataError
from geval_py.reading import compression
from geval_py.reading.splits import answers_in, is_usual_name, sets_in
from geval_py.text import counted

HIDDEN_BEGINNING = "test"  # of the names of sets whose answers are hidden
MANY_IN_TEXTS = 0.2  # of a part's gaps, readable in train or in public files: texts repeat much less
FEW = 2  # gaps that any text may repeat: they are never many
IN_ORDER = 0.1  # of the runs of answers: above it, a text has them in order
PERFECT = 0.98  # of them, above which an output is no model's
CHANCE = 1e-6  # that a run of answers stands in a text by chance
MAX_RUN = 200  # answers; where more are needed, they are nearly all the same
MAX_COLUMNS = 60
MAX_BYTES = 1 << 26  # of one unpacked file
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
_WORDS = re.compile(r"[^\s\t,;|\"\[\]{}]+")


class HiddenAnswers:
    """A hidden set, to be found in other texts: its answers in their order, and its gaps with a word in them.

    Many runs of consecutive answers are a leak if the runs are so long that chance gives none.
    """

    def __init__(self, name: str, answers: Sequence[str], blocks: Sequence[Items], vocabulary: Vocabulary) -> None:
        self.name, self.size = name, sum(map(len, blocks))
        self.gaps = RunIndex(blocks, Items.around_gaps)
        words = vocabulary.numbers(answers)
        agree = math.fsum((count / len(answers)) ** 2 for count in Counter(words.tolist()).values())
        self._n = max(4, math.ceil(math.log(1e7 / CHANCE) / -math.log(agree))) if 0 < agree < 1 else MAX_RUN + 1
        has_runs = self._n <= min(MAX_RUN, len(answers))
        self._runs = RunIndex([Items.of_text(words)], lambda items: items.runs(self._n)) if has_runs else None

    def in_order(self, words: Numbers, least: float = IN_ORDER) -> str:
        """Return which share of the answers is in a sequence of words, in order; "" if it is not above ``least``."""
        if self._runs is None:
            return ""
        _, found = self._runs.find(Items.of_text(words).runs(self._n)[0])
        share = len(np.unique(found)) / len(self._runs.values)
        return f"it has {100 * share:.0f} % of the answers of {self.name}, in order" if share > least else ""


def are_many(count: int, size: int, share: float) -> bool:
    """Return whether so many of a set's gaps are more than texts repeat: a share of them, and not just a few."""
    return count > max(FEW, share * size)


def search_public(
    folder: str,
    hidden: Sequence[HiddenAnswers],
    originals: Container[bytes],
    known: Container[str],
    vocabulary: Vocabulary,
) -> Iterator[tuple[str, str, str]]:
    """Yield the rule, the path and the message of each public file that has hidden answers, or is not compared.

    ``originals`` are the answers' contents; the ``known`` files, those of the sets, are left out.
    """
    sets = [name for name in sets_in(folder) if name.startswith(HIDDEN_BEGINNING)]
    named = [path for name in sets for path in answers_in(os.path.join(folder, name))]
    for path in named:
        yield "E401", path, "the answers of a hidden set are in the public folder"
    for name in _committed(folder):
        yield "E401", os.path.join(folder, name), f"the git history has answers of a hidden set: {name}"
    searched: list[str] = []
    for path in _public_files(folder):
        if path in named or path in known:
            continue
        data = content_of(path)
        if data is None:
            yield "W412", path, "it is an archive, too large or damaged, and was not compared with the answers"
        elif with_line_feeds(data) in originals:
            yield "E401", path, "its text equals the answers of a hidden set"
        elif hidden:
            encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
            text = data.decode(encoding, "replace").replace("\\n", " ")
            words = Items.of_text(vocabulary.numbers(text.split()))
            for answers in hidden:
                answers.gaps.search(words, words.around(), len(searched))
            searched.append(path)
            least = PERFECT if os.path.basename(path).startswith("out") else IN_ORDER  # a good model guesses many
            found = (
                answers.in_order(vocabulary.numbers(cells), least) for cells in _sequences(text) for answers in hidden
            )
            if message := next(filter(None, found), ""):
                yield "E401", path, message
    for answers in hidden:
        matches = answers.gaps.first_matches()
        if are_many(len(matches), answers.size, MANY_IN_TEXTS):
            (source, _), *others = Counter(source for *_, source in matches.values()).most_common()
            more = f" and {counted(len(others), 'other text')}" if others else ""
            share = f"{100 * len(matches) / answers.size:.0f} % of the gaps of {answers.name}"
            yield "E401", searched[source], f"{share} can be read in this file{more}"


def _committed(folder: str) -> list[str]:
    """Return the answers of hidden sets in the git history of a folder; none where there is no repository."""
    log = ["log", "--all", "--format=", "--name-only", "--relative", "-z", "--", f":(glob){HIDDEN_BEGINNING}*/*"]
    try:
        listed = subprocess.run([*GIT, "-C", folder, *log], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    names = {name.strip("\n") for name in os.fsdecode(listed).split("\0")}
    return sorted(name for name in names if is_usual_name(os.path.basename(name)))


def _public_files(directory: str) -> Iterator[str]:
    """Yield the paths of all files below a folder, outside of .git."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        yield from filter(os.path.isfile, (os.path.join(folder, name) for name in sorted(names)))


def content_of(path: str) -> bytes | None:
    """Return the unpacked content of a file; None for an archive, and if it is too large, damaged or unreadable."""
    try:
        with compression.open_unpacked(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, DataError):
        return None
    is_archive = zipfile.is_zipfile(io.BytesIO(data)) or tarfile.is_tarfile(io.BytesIO(data))
    return None if is_archive or len(data) > MAX_BYTES else data


def with_line_feeds(data: bytes) -> bytes:
    """Return a text without carriage returns and the last line end."""
    return data.replace(b"\r", b"").removesuffix(b"\n")


def _sequences(text: str) -> Iterator[Sequence[str]]:
    """Yield what may be answers in a text: all its words, its lines, and each column of a table.

    The columns are divided by a character that most lines have equally often.
    """
    yield _WORDS.findall(text)
    lines = [line for line in re.split(r"[\r\n]+", text) if line]
    yield lines
    sample = lines[:1000]
    for delimiter in "\t,;|: ":
        width, count = Counter(line.count(delimiter) for line in sample).most_common(1)[0] if lines else (0, 0)
        if 0 < width < MAX_COLUMNS and count > len(sample) / 2:
            yield from zip_longest(*(line.split(delimiter)[: width + 1] for line in lines), fillvalue="")
