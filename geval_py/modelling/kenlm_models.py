"""Models that the package kenlm reads: KenLM's binary files, whose head is read here without it, and ARPA files."""

from __future__ import annotations

import os
import struct
from importlib import import_module
from typing import Any, NamedTuple

from geval_py.errors import MissingFileError, ModelError, UsageError
from geval_py.tables.table import Column, Table
from geval_py.version import __version__

MAGIC = b"mmap lm http://kheafield.com/code"
# The head of version 5 (lm/binary_format.cc): the magic, padded to a multiple of 8; numbers that tell whether the
# machine writes them alike; order, multiplier, kind, whether words are stored, version of the kind; a count an order.
_MAGIC_OF_5 = MAGIC + b" format version 5\n"
_SANE = _MAGIC_OF_5.ljust(56, b"\0") + struct.pack("<3f3IQ", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
_FIXED = struct.Struct("<B3xfi?3xI")
_KINDS = (
    "probing hash tables",
    "probing hash tables with rest costs",
    "trie",
    "trie, quantized",
    "trie with compressed pointers",
    "trie with compressed pointers, quantized",
)
_MOST_ORDER = 32


class BinaryHead(NamedTuple):
    """What the head of a binary file says of its model: the kind of tables, and the n-grams of each order."""

    kind: str
    counts: tuple[int, ...]


def is_binary(path: str) -> bool:
    """Whether a file is a binary file of KenLM; a missing one is not."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_head(path: str) -> BinaryHead:
    """Read the head of a binary file; raises ModelError for another version, and for a file that was cut off."""
    with open(path, "rb") as file:
        head = file.read(len(_SANE) + _FIXED.size + 8 * _MOST_ORDER)
    if not head.startswith(_SANE):
        others = "from another kind of machine, or damaged"
        raise _unusable(path, others if head.startswith(_MAGIC_OF_5) else "unfinished, or of another version")
    try:
        order, _, kind, _, _ = _FIXED.unpack_from(head, len(_SANE))
        counts = struct.unpack_from(f"<{order}Q", head, len(_SANE) + _FIXED.size)
        return BinaryHead(kind=_KINDS[kind], counts=counts)
    except (struct.error, IndexError):
        raise _unusable(path, "damaged") from None


def _unusable(path: str, reason: str) -> ModelError:
    message = f"This binary model of KenLM is {reason}\n  build it again from its ARPA file"
    return ModelError(path=path, message=message)


def head_table(head: BinaryHead) -> Table:
    """Return a table of the sizes of a binary model; its words are known to kenlm alone."""
    rows: list[tuple[str, object]] = [("order", len(head.counts))]
    rows += [(f"{order}-grams", count) for order, count in enumerate(head.counts, 1)]
    rows.append(("binary", head.kind))
    return Table([Column(name="what"), Column(name="value")], rows)


def head_document(head: BinaryHead) -> dict[str, Any]:
    """Return the sizes of a binary model as a JSON document."""
    return {
        "version": __version__,
        "order": len(head.counts),
        "ngrams": list(head.counts),
        "binary": head.kind,
    }


def open_model(path: str, what: str) -> tuple[Any, Any]:
    """Import the package kenlm, which ``what`` needs, and open a model.

    Raises UsageError without the package; MissingFileError and ModelError.
    """
    if not os.path.isfile(path):
        raise MissingFileError(what="No file with the model", path=path)
    try:
        kenlm = import_module("kenlm")
    except ImportError as error:
        message = (
            f"{what} needs the package kenlm, which is built from source by cmake and a C++ compiler, in minutes:"
            "\n  pip install ./geval-py[models]"
        )
        raise UsageError(message=message) from error
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError) as error:
        raise ModelError(path=path, message="KenLM cannot read this model") from error
