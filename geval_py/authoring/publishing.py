"""Write a new challenge: the README pages, the packed items, and the hidden answers in a folder of their own."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from geval_py.authoring.init import config_text
from geval_py.errors import UsageError
from geval_py.reading.challenge import README_FILE
from geval_py.reading.config import CONFIG_FILE
from geval_py.reading.rewriting import GITIGNORE, GITIGNORE_FILE, check_new_folder, new_folder, write_files
from geval_py.reading.splits import EXPECTED_FILE, HIDDEN_SET, IN_HEADER_FILE, OUT_HEADER_FILE, TRAINING_SET, Task
from geval_py.scoring.columns import select_schemes
from geval_py.scoring.parallel import Progress, ProgressOf, no_progress
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.authoring.corpora import Cut


DEFAULT_TITLE = "Guess the missing word"
DIGESTS_FILE = "SHA256SUMS"
PACKED_INPUT_FILE = "in.tsv.xz"
OUT_HEADER = "Word"
PRECISION = 2
BEST_PRESET, FAST_PRESET = 6, 0  # of xz
MOST_BYTES_PACKED_WELL = 1_000_000  # more would take minutes
PACKING = "packing"
_BYTES_AT_ONCE = 1 << 18
Items: TypeAlias = "Sequence[tuple[str, str]]"  # lines of in.tsv and of expected.tsv, without their ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The facts about a challenge that its pages show.

    ``columns`` are the names of in.tsv's columns; ``sizes`` holds the name, the gaps and the groups of each part;
    ``group`` is the column that assigns items to parts, None if each document is a group.
    """

    title: str
    columns: tuple[str, ...]
    sizes: tuple[tuple[str, int, int], ...]
    group: str | None
    metrics: tuple[str, ...]


def challenge_page(origin: Origin, cut: Cut | None, *, words: int | None = None) -> str:
    """Write the public README, with the options of cutting and the number of words, if they are known."""
    return "\n".join(
        [
            _heading(origin.title, "="),
            "Given a text with a gap, give a probability distribution over the words that may stand there.\n",
            _table(("part", "gaps", origin.group or "documents"), origin.sizes),
            _heading("The data", "-"),
            "A line of `in.tsv.xz` is a gap; its columns, split by TAB, are\n",
            *(f"* {_code(name)}" for name in origin.columns),
            "",
            "The missing words stand in `expected.tsv`, a line a gap. Those of `test-A` are hidden.\n",
            *_of_texts(origin, cut, words),
            _heading("Outputs", "-"),
            "An output has a line for each gap, as `river:0.5 road:0.2 :0.3`; the last entry is for all other words.",
            f"Scored by {', '.join(map(_code, origin.metrics))}: `geval -t dev-0`.\n",
        ]
    )


def _of_texts(origin: Origin, cut: Cut | None, words: int | None) -> Iterable[str]:
    if cut is not None:
        size = "" if words is None else f", cut from {words:,} words"
        yield f"A gap has {cut.context} words on each side{size}. A line end is written as the two characters `\\n`."
        yield "Words hyphenated at a line end are as they were in the texts; their halves are never gaps."
        yield f"The windows of gaps do not overlap, but perhaps in `{TRAINING_SET}`.\n"
    whole = "Documents are" if origin.group is None else f"What has one {_code(origin.group)} is"
    yield f"{whole} in one part only, by the hash of the name, so that more texts move none.\n"


def answers_page(origin: Origin) -> str:
    """Write the README of the folder with the hidden answers."""
    gaps = next(gaps for name, gaps, _ in origin.sizes if name == HIDDEN_SET)
    return "\n".join(
        [
            _heading(f"Hidden answers: {origin.title}", "="),
            f"The {gaps} answers of `{HIDDEN_SET}`. Keep this folder to yourself: it is no part of the public one.\n",
            "It is a challenge of its own, which scores and validates:\n",
            f"    geval -t {HIDDEN_SET} --expected-directory THIS --out-directory SUBMISSION",
            "    geval --validate --expected-directory THIS\n",
        ]
    )


def _heading(text: str, rule: str) -> str:
    return f"{text}\n{rule * len(text)}\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a challenge: the columns of its input, the items of each part, its pages, its metrics."""

    in_header: tuple[str, ...]
    items: Mapping[str, Items]
    readme: str
    answers_readme: str
    metrics: tuple[str, ...]


def default_answers(out: str) -> str:
    """Return the default folder of the hidden answers, beside that of the challenge."""
    return f"{out.rstrip('/' + os.sep) or out}-answers"


def check_folders(out: str, answers: str) -> None:
    """Raise UsageError for answers inside the public folder, ExistingFileError for a folder that is not empty."""
    public, private = os.path.realpath(out), os.path.realpath(answers)
    if os.path.commonpath((public, private)) == public:
        message = f"the hidden answers would lie inside the public folder: {named(answers)} is in {named(out)}"
        raise UsageError(message=f"{message}\n  name another folder with --answers")
    for folder in (out, answers):
        check_new_folder(folder)


def config_of(metrics: Sequence[str]) -> str:
    """Write the config.txt for some metrics; raises SchemeError and UsageError."""
    return config_text(select_schemes(Task(metrics=tuple(metrics))), precision=PRECISION) + "\n"


def publish(contents: Contents, out: str, answers: str, progress_of: ProgressOf = no_progress) -> None:
    """Write a challenge into a new folder, and its hidden answers into another; both are complete or absent.

    ``progress_of(PACKING)`` returns a context manager with a function that is called as bytes are packed. Raises
    UsageError, SchemeError and ExistingFileError.
    """
    check_folders(out, answers)
    common = {
        GITIGNORE_FILE: GITIGNORE.encode(),
        CONFIG_FILE: config_of(contents.metrics).encode(),
        IN_HEADER_FILE: ("\t".join(contents.in_header) + "\n").encode(),
        OUT_HEADER_FILE: f"{OUT_HEADER}\n".encode(),
    }
    with progress_of(PACKING) as progress:
        data = _data_files(contents.items, progress)
    hidden = f"{HIDDEN_SET}/{EXPECTED_FILE}"
    public = common | {README_FILE: contents.readme.encode()} | {n: d for n, d in data.items() if n != hidden}
    private = common | {README_FILE: contents.answers_readme.encode()}
    private |= {name: content for name, content in data.items() if name.startswith(f"{HIDDEN_SET}/")}
    with new_folder(out), new_folder(answers):
        for folder, files in ((out, public), (answers, private)):
            write_files(folder, files | {DIGESTS_FILE: digests_text(files)})


def _data_files(items: Mapping[str, Items], progress: Progress | None) -> dict[str, bytes]:
    """Return the data files of all parts by their paths; the inputs of all parts are packed at the same time."""
    inputs = [_joined(text for text, _ in of_part) for of_part in items.values()]
    packer = _Packer(sum(map(len, inputs)), progress)
    files: dict[str, bytes] = {}
    with ThreadPoolExecutor() as threads:
        for name, packed in zip(items, threads.map(packer.pack, inputs), strict=True):
            files[f"{name}/{PACKED_INPUT_FILE}"] = packed
            files[f"{name}/{EXPECTED_FILE}"] = _joined(word for _, word in items[name])
    return files


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


class _Packer:
    """Packs data, ``size`` bytes in all, on several threads, and reports their common progress."""

    def __init__(self, size: int, progress: Progress | None) -> None:
        self._size, self._progress = size, progress
        self._done, self._lock = 0, Lock()

    def pack(self, data: bytes) -> bytes:
        """Pack some data."""
        packer = lzma.LZMACompressor(preset=BEST_PRESET if len(data) <= MOST_BYTES_PACKED_WELL else FAST_PRESET)
        packed = []
        for start in range(0, len(data), _BYTES_AT_ONCE):
            piece = data[start : start + _BYTES_AT_ONCE]
            packed.append(packer.compress(piece))
            with self._lock:
                self._done += len(piece)
                if self._progress is not None:
                    self._progress(self._done, self._size)
        return b"".join((*packed, packer.flush()))


def digests_text(files: Mapping[str, bytes]) -> bytes:
    """Write the SHA-256 digests of files as ``sha256sum --check`` reads them."""
    return "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()
