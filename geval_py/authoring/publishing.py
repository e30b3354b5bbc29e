"""Write a new challenge: the README pages, the packed items, and the hidden answers in a folder of their own."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

from geval_py.authoring.init import config_text
from geval_py.errors import UsageError
from geval_py.reading import config, splits
from geval_py.reading.challenge import README_FILE
from geval_py.reading.rewriting import GITIGNORE, GITIGNORE_FILE, check_new_folder, new_folder, write_files
from geval_py.scoring import blocks, evaluate
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.authoring.corpora import Cut

DEFAULT_TITLE = "Guess the missing word"
DIGESTS_FILE = "SHA256SUMS"
ANSWERS_ENDING = "-answers"
PACKED_INPUT_FILE = "in.tsv.xz"
OUT_HEADER = "Word"
PRECISION = 2
BEST_PRESET, FAST_PRESET = 6, 0  # of xz
MOST_BYTES_PACKED_WELL = 1_000_000  # more would take minutes
PACKING = "packing"
_BYTES_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChallenge:
    """A challenge to write.

    ``columns`` are the names of in.tsv's columns; ``items`` holds, for each part, the lines of in.tsv and of
    expected.tsv, without their ends; ``groups`` the number of groups in each part. ``group`` is the column that
    assigns items to parts, None if each document is a group. ``cut`` and ``words`` say how the gaps were cut, from
    how many words, if that is known.
    """

    title: str
    columns: tuple[str, ...]
    items: Mapping[str, Sequence[tuple[str, str]]]
    groups: Mapping[str, int]
    group: str | None
    metrics: tuple[str, ...]
    cut: Cut | None = None
    words: int | None = None

    @property
    def sizes(self) -> list[tuple[str, int, int]]:
        """The name, the items and the groups of each part."""
        return [(name, len(items), self.groups[name]) for name, items in self.items.items()]


def default_answers(out: str) -> str:
    """Return the default folder of the hidden answers, beside the challenge's."""
    return f"{out.rstrip('/' + os.sep) or out}{ANSWERS_ENDING}"


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
    return config_text(evaluate.select_schemes(config.Task(metrics=tuple(metrics))), precision=PRECISION) + "\n"


def publish(
    challenge: NewChallenge, out: str, answers: str, progress_of: blocks.ProgressOf = blocks.no_progress
) -> None:
    """Write a challenge into a new folder, and its hidden answers into another; both are complete or absent.

    ``progress_of(PACKING)`` returns a context manager with a function that is called as bytes are packed. Raises
    UsageError, SchemeError and ExistingFileError.
    """
    check_folders(out, answers)
    common = {
        GITIGNORE_FILE: GITIGNORE.encode(),
        config.CONFIG_FILE: config_of(challenge.metrics).encode(),
        splits.IN_HEADER_FILE: ("\t".join(challenge.columns) + "\n").encode(),
        splits.OUT_HEADER_FILE: f"{OUT_HEADER}\n".encode(),
    }
    data: dict[str, bytes] = {}
    inputs = [_joined(text for text, _ in items) for items in challenge.items.values()]
    with progress_of(PACKING) as progress, ThreadPoolExecutor() as threads:
        packer = _Packer(sum(map(len, inputs)), progress)
        for (name, items), packed in zip(challenge.items.items(), threads.map(packer.pack, inputs), strict=True):
            data[f"{name}/{PACKED_INPUT_FILE}"] = packed
            data[f"{name}/{splits.EXPECTED_FILE}"] = _joined(word for _, word in items)
    public = common | {
        name: content for name, content in data.items() if name != f"{splits.HIDDEN_SET}/{splits.EXPECTED_FILE}"
    }
    public[README_FILE] = _challenge_page(challenge).encode()
    private = common | {name: content for name, content in data.items() if name.startswith(f"{splits.HIDDEN_SET}/")}
    private[README_FILE] = _answers_page(challenge).encode()
    with new_folder(out), new_folder(answers):
        for folder, files in ((out, public), (answers, private)):
            kept = sorted(files.keys() - {README_FILE})  # which the organiser is to edit
            digests = "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in kept)
            write_files(folder, files | {DIGESTS_FILE: digests.encode()})


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


class _Packer:
    """Packs data, ``size`` bytes in all, on several threads, and reports their common progress."""

    def __init__(self, size: int, progress: blocks.Progress | None) -> None:
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


def _challenge_page(challenge: NewChallenge) -> str:
    """Write the public README."""
    head = ("part", "gaps", challenge.group or "documents")
    return "\n".join(
        [
            _heading(challenge.title, "="),
            "Given a text with a gap, give a probability distribution over the words that may stand there.\n",
            "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in (head, ["---"] * len(head), *challenge.sizes)),
            _heading("The data", "-"),
            "Each line of `in.tsv.xz` is a gap; its columns, split by TAB, are\n",
            *(f"* `{name}`" for name in challenge.columns),
            "",
            "Each line of `expected.tsv` is the missing word. The words of `test-A` are hidden.\n",
            *_how_cut(challenge),
            _heading("Outputs", "-"),
            "An output has a line for each gap, as `river:0.5 road:0.2 :0.3`; the last entry is for all other words.",
            f"Scored by {', '.join(f'`{metric}`' for metric in challenge.metrics)}: `geval -t dev-0`.\n",
        ]
    )


def _how_cut(challenge: NewChallenge) -> Iterable[str]:
    if challenge.cut is not None:
        size = "" if challenge.words is None else f", cut from {challenge.words:,} words"
        yield f"A gap has {challenge.cut.context} words on each side{size}. A line end is the two characters `\\n`."
        yield "Words hyphenated at a line end are as they were in the texts; their halves are never gaps."
        yield f"The windows of gaps do not overlap, except perhaps in `{splits.TRAINING_SET}`.\n"
    whole = "Each document is" if challenge.group is None else f"All items with the same `{challenge.group}` are"
    yield f"{whole} in one part only, which a hash of the name chooses, so that new texts do not move old ones.\n"


def _answers_page(challenge: NewChallenge) -> str:
    """Write the README of the folder with the hidden answers."""
    return "\n".join(
        [
            _heading(f"Hidden answers: {challenge.title}", "="),
            f"The {len(challenge.items[splits.HIDDEN_SET])} answers of `{splits.HIDDEN_SET}`. "
            "Keep this folder secret: it is not part of the public one.\n",
            "It is a challenge of its own, which can be scored and validated:\n",
            f"    geval -t {splits.HIDDEN_SET} --expected-directory THIS --out-directory SUBMISSION",
            "    geval --validate --expected-directory THIS\n",
        ]
    )


def _heading(text: str, rule: str) -> str:
    return f"{text}\n{rule * len(text)}\n"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")
