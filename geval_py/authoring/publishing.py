"""Write a challenge's items and what goes with them, the hidden answers into a folder of their own."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import TypeAlias

from geval_py.authoring.folders import (
    CONFIG_FILE,
    GITIGNORE,
    GITIGNORE_FILE,
    HIDDEN_SET,
    IN_HEADER_FILE,
    OUT_HEADER_FILE,
    README_FILE,
    check_new_folder,
    new_folder,
    write_files,
)
from geval_py.authoring.init import config_text
from geval_py.errors import UsageError
from geval_py.reading.splits import EXPECTED_FILE
from geval_py.reading.task import Task
from geval_py.scoring.parallel import Progress, ProgressOf, no_progress
from geval_py.scoring.wanted import select_schemes
from geval_py.text import named

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
class Contents:
    """What a challenge holds: the columns of its input, the items of each part, its pages, its metrics."""

    in_header: tuple[str, ...]
    items: Mapping[str, Items]
    readme: str
    answers_readme: str
    metrics: tuple[str, ...]


def default_answers(out: str) -> str:
    """Name the folder of the hidden answers, where none is named: beside the challenge's."""
    return f"{out.rstrip('/' + os.sep) or out}-answers"


def check_folders(out: str, answers: str) -> None:
    """Raise UsageError for answers inside the public folder, and ExistingFileError for a folder that holds a file."""
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
    """Write a challenge into a new folder, and what scores its hidden set into another; neither is left half done.

    ``progress_of`` gives what is called as bytes are packed, by the name :data:`PACKING`. Raises UsageError,
    SchemeError and ExistingFileError.
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
    """Give the data files of all parts, by their paths; inputs are packed, the parts at the same time."""
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
    """Packs data, ``size`` bytes in all, on several threads, and tells how far they are together."""

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
            self._tell(len(piece))
        return b"".join((*packed, packer.flush()))

    def _tell(self, done: int) -> None:
        with self._lock:
            self._done += done
            if self._progress is not None:
                self._progress(self._done, self._size)


def digests_text(files: Mapping[str, bytes]) -> bytes:
    """Write the SHA-256 of files as ``sha256sum --check`` reads them."""
    return "".join(f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()
