"""KenLM's binary files: their heads, and their scores by the package kenlm, which reads all kinds of their tables."""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import NamedTuple

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import Doubles, TokenScores
from geval_py.text import named
from geval_py.version import installs

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
_MAX_ORDER = 32


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
        head = file.read(len(_SANE) + _FIXED.size + 8 * _MAX_ORDER)
    reason = "damaged"
    if not head.startswith(_MAGIC_OF_5):
        reason = "unfinished, or of another version"
    elif not head.startswith(_SANE):
        reason = "from another kind of machine, or damaged"
    else:
        with suppress(struct.error, IndexError):
            order, _, kind, *_ = _FIXED.unpack_from(head, len(_SANE))
            counts = struct.unpack_from(f"<{order}Q", head, len(_SANE) + _FIXED.size)
            return BinaryHead(kind=_KINDS[kind], counts=counts)
    message = f"This binary model of KenLM is {reason}\n  build it again from its ARPA file"
    raise ModelError(path=path, message=message)


class BinaryModel:
    """A binary file of KenLM: its order, the scores of texts and, if the file has its words, of next words.

    Raises UsageError without the package kenlm, and ModelError.
    """

    missing: frozenset[bytes] = frozenset()  # of the marks

    def __init__(self, path: str) -> None:
        self.name = path
        self._counts = read_head(path).counts
        self.order = len(self._counts)
        try:
            kenlm = import_module("kenlm")
        except ImportError as error:
            message = (
                f"{named(path)} is a binary model of KenLM: it needs the package kenlm, which cmake and a C++ "
                f"compiler build in minutes:\n  {installs('models')}\n  or load the ARPA file that it was made from"
            )
            raise UsageError(message=message) from error
        config = kenlm.Config()
        config.show_progress = False
        try:
            self._model = kenlm.Model(path, config)
        except (OSError, RuntimeError) as error:
            raise ModelError(path=path, message="KenLM cannot read this model") from error

    def scores(self, text: bytes, *, bos: bool = True, eos: bool = True) -> TokenScores:
        """Score a block of whole lines; see :meth:`geval_py.modelling.backoff.BackoffModel.scores`."""
        lines = text[:-1].split(b"\n")
        scored = [list(self._model.full_scores(b" ".join(line.split()), bos=bos, eos=eos)) for line in lines]
        logs = np.array([log for line in scored for log, _, _ in line], np.float64)
        orders = np.array([0 if unknown else order for line in scored for _, order, unknown in line], np.int32)
        return logs, orders, np.fromiter(map(len, scored), np.int64, len(scored))

    @cached_property
    def words(self) -> list[bytes]:
        """The words by id, which stand at the end of the file; raises ModelError if they do not."""
        with open(self.name, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.rfind(b"<unk>\0")
            while start >= 0:
                words = data[start:].split(b"\0")[:-1]
                if len(words) in (self._counts[0], self._counts[0] + 1):  # one more if the ARPA file had no <unk>
                    return words
                start = data.rfind(b"<unk>\0", 0, start)
        message = "This binary model of KenLM does not have its words\n  load the ARPA file that it was made from"
        raise ModelError(path=self.name, message=message)

    def next_probabilities(self, context: list[bytes]) -> Doubles:
        """Return the probability of each word behind a context, which may begin with <s>: each word is scored."""
        bos = context[:1] == [b"<s>"] and len(context) < self.order
        seen = b"".join(word + b" " for word in (context[1:] if bos else context[-self.order + 1 :]))
        logs, _, lengths = self.scores(b"".join(seen + word + b"\n" for word in self.words), bos=bos, eos=False)
        probabilities: Doubles = 10.0 ** logs[np.cumsum(lengths) - 1]
        return probabilities
