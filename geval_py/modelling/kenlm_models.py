"""KenLM's binary files: their heads, and scores of texts by those that hold probing hash tables, as most do.

The tables (lm/vocab.cc, lm/search_hashed.hh, util/probing_hash_table.hh) follow each other behind the head: the
words with their ids, the probabilities and back-offs by id, then a table for each higher order. An entry stands in
the bucket that its 64-bit key names, or in the next free one. A word's key is its MurmurHash2, that of an n-gram is
hashed from the ids of its words, the last one first. Probabilities and back-offs are log10 in single precision. A
probability has the sign bit if no longer n-gram ends so, and a back-off is -0.0 if none begins so.

All other files, and ARPA files for baselines, are read by the package kenlm.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from functools import cached_property
from importlib import import_module
from itertools import accumulate, chain, compress

from geval_py.errors import MissingFileError, ModelError, UsageError
from geval_py.scoring.kernel.backends import choose_backend
from geval_py.tables.table import Column, Table
from geval_py.values import NamedTuple, Value
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from geval_py.reading.lines import Bytes

    TokenScores: TypeAlias = tuple[array[float], bytes, array[int]]

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
    return _read_head(path)[0]


def _read_head(path: str) -> tuple[BinaryHead, float, int]:
    """Return the head, how many buckets the tables have an entry, and the version of the kind."""
    with open(path, "rb") as file:
        head = file.read(len(_SANE) + _FIXED.size + 8 * _MOST_ORDER)
    if not head.startswith(_SANE):
        others = "from another kind of machine, or damaged"
        raise _unusable(path, others if head.startswith(_MAGIC_OF_5) else "unfinished, or of another version")
    try:
        order, buckets, kind, _, version = _FIXED.unpack_from(head, len(_SANE))
        counts = struct.unpack_from(f"<{order}Q", head, len(_SANE) + _FIXED.size)
        return BinaryHead(kind=_KINDS[kind], counts=counts), buckets, version
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
        "order": len(head.counts),
        "ngrams": list(head.counts),
        "binary": head.kind,
    }


# Scores by probing hash tables


class ProbingModel(Value):
    """A binary file of probing hash tables, mapped into memory; ``buckets`` is the number of buckets an entry."""

    path: str
    counts: tuple[int, ...]
    buckets: float
    data: mmap.mmap

    def scores(self, text: Bytes, *, marks: bool) -> TokenScores:
        """Score a block of whole lines: log10 of each token's probability, 1 if it is unknown, tokens by line.

        With ``marks``, <s> is in front of each line, and </s> is predicted at its end. Raises ModelError.
        """
        try:
            if choose_backend() == "native":
                from geval_py.scoring.kernel.native import score_probing as score
            else:
                score = score_probing
            return score(self.data, array("Q", self.counts), self.buckets, text, marks)
        except ValueError:
            raise _unusable(self.path, "damaged") from None


def open_probing(path: str) -> ProbingModel | None:
    """Map a binary file into memory; None if it holds other tables. Raises ModelError as :func:`read_head`."""
    head, buckets, version = _read_head(path)
    if head.kind != _KINDS[0] or version != 0:
        return None
    with open(path, "rb") as file:  # on Linux all pages are mapped at once, and not each at its first use
        here = {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE} if hasattr(mmap, "MAP_POPULATE") else {}
        mode = {"prot": mmap.PROT_READ} if here else {"access": mmap.ACCESS_READ}
        return ProbingModel(
            path=path, counts=head.counts, buckets=buckets, data=mmap.mmap(file.fileno(), 0, **here, **mode)
        )


_64_BITS = (1 << 64) - 1
_MOST_NGRAMS = 1 << 40
_SINGLE = struct.Struct("<f")


def score_probing(model: mmap.mmap, counts: array[int], buckets: float, text: Bytes, marks: bool) -> TokenScores:
    """Score a block of lines; the twin of the kernel's function, which looks n-grams up in the same tables.

    Raises ValueError if the file is too short for its tables.
    """
    tables = _Tables(model, counts, buckets)
    start, end = tables.word(b"<s>"), tables.word(b"</s>")
    logs, unknown, lengths = array("f"), bytearray(), array("q")
    for line in bytes(text)[:-1].split(b"\n"):
        ids = [*([start] if marks else []), *map(tables.word, line.split()), *([end] if marks else [])]
        for place in range(marks, len(ids)):
            logs.append(tables.log_of(ids[max(0, place - len(counts)) : place + 1]))
            unknown.append(ids[place] == 0)
        lengths.append(len(ids) - marks)
    return logs, bytes(unknown), lengths


class _Tables:
    """The tables of a file: of words, of unigrams by id, and of each higher order."""

    def __init__(self, data: mmap.mmap, counts: array[int], buckets: float) -> None:
        if not 2 <= len(counts) <= _MOST_ORDER or not 1 <= buckets <= 1e6 or max(counts) > _MOST_NGRAMS:
            raise ValueError("the file is too short for its tables")
        self._data = data
        self._known: dict[bytes, int] = {}
        self._ids = counts[0] + 1
        at = 112 + 8 * len(counts) + 8
        tables = []
        for order, (entries, width) in enumerate(zip(counts, (12, *[16] * (len(counts) - 2), 12), strict=True)):
            size = max(entries + 1, int(_single(_single(entries) * buckets)))
            tables.append((at, size, width))
            at += size * width
            if order == 0:
                self._unigrams = at
                at += 8 * self._ids
        if at > len(data):
            raise ValueError("the file is too short for its tables")
        self._words, *self._ngrams = tables

    def word(self, word: bytes) -> int:
        """Return the id of a word, 0 if it is unknown."""
        if word not in self._known:
            found = self._find(self._words, _murmur2(word))
            number = int.from_bytes(self._data[found : found + 4], "little") if found else 0
            self._known[word] = number if number < self._ids else 0
        return self._known[word]

    def log_of(self, ids: list[int]) -> float:
        """Return log10 of the last word's probability behind the others."""
        found = self._ending(ids)
        log = -abs(self._number(found[-1]))
        for context in self._ending(ids[:-1])[len(found) - 1 : len(self._ngrams)]:
            log = _single(log + self._number(context + 4))
        return log

    def _ending(self, ids: list[int]) -> list[int]:
        """Return the places of the n-grams that end as a text does, the shortest first."""
        places: list[int] = []
        key = 0
        for length, number in enumerate(reversed(ids[-1 - len(self._ngrams) :])):
            if length == 0:
                key, found = number, self._unigrams + 8 * number
            else:
                key = key * 8978948897894561157 & _64_BITS ^ (1 + number) * 17894857484156487943 & _64_BITS
                found = self._find(self._ngrams[length - 1], key)
            if not found:
                break
            places.append(found)
        return places

    def _find(self, table: tuple[int, int, int], key: int) -> int:
        """Return the place behind the key of an entry; 0 if there is none."""
        begin, size, width = table
        for tried in range(size):
            at = begin + (key % size + tried) % size * width
            found = int.from_bytes(self._data[at : at + 8], "little")
            if found in (0, key):
                return at + 8 if found else 0
        return 0

    def _number(self, at: int) -> float:
        return float(_SINGLE.unpack_from(self._data, at)[0])


def _single(value: float) -> float:
    """Round to single precision; the sum or product of two such numbers is then rounded once."""
    return array("f", [value])[0]


def _murmur2(word: bytes) -> int:
    """MurmurHash2, 64 bits, by Austin Appleby, in the public domain."""
    multiplier = 0xC6A4A7935BD1E995
    h = len(word) * multiplier & _64_BITS
    whole = len(word) & ~7
    for at in range(0, whole, 8):
        k = int.from_bytes(word[at : at + 8], "little") * multiplier & _64_BITS
        h = (h ^ (k ^ k >> 47) * multiplier & _64_BITS) * multiplier & _64_BITS
    if whole < len(word):
        h = (h ^ int.from_bytes(word[whole:], "little")) * multiplier & _64_BITS
    h = (h ^ h >> 47) * multiplier & _64_BITS
    return h ^ h >> 47


# Models by the package kenlm


def open_other(path: str) -> Callable[..., TokenScores]:
    """Open a binary file with the package kenlm; return what :meth:`ProbingModel.scores` is of other files."""
    _, model = open_model(path, "a binary model of KenLM")

    def scores(text: Bytes, *, marks: bool) -> TokenScores:
        lines = bytes(text)[:-1].split(b"\n")
        of_lines = [list(model.full_scores(b" ".join(line.split()), bos=marks, eos=marks)) for line in lines]
        found = list(chain.from_iterable(of_lines))
        return (
            array("f", [log for log, _, _ in found]),
            bytes([x for _, _, x in found]),
            array("q", map(len, of_lines)),
        )

    return scores


class BinaryModel:
    """A binary file of KenLM: its order, the scores of texts and, if the file has its words, of next words."""

    missing: frozenset[bytes] = frozenset()  # of the marks

    def __init__(self, path: str) -> None:
        self.name = path
        self._counts = read_head(path).counts
        probing = open_probing(path)
        self._score = open_other(path) if probing is None else probing.scores

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self._counts)

    def scores(self, text: Bytes, *, bos: bool = True, eos: bool = True) -> TokenScores:
        """Score a block of whole lines: log10 of each token's probability, 1 if it is unknown, tokens by line.

        With ``bos``, <s> is in front of each line; with ``eos``, </s> is predicted at its end. Raises ModelError.
        """
        if bos == eos:
            return self._score(text, marks=bos)
        if eos:
            return self._score(bytes(text).replace(b"\n", b" </s>\n"), marks=False)
        logs, unknown, lengths = self._score(text, marks=True)
        ends = accumulate(lengths)
        inside = bytearray(b"\1" * len(logs))
        for end in ends:
            inside[end - 1] = 0
        return (
            array("f", compress(logs, inside)),
            bytes(compress(unknown, inside)),
            array("q", (length - 1 for length in lengths)),
        )

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

    def next_probabilities(self, context: list[bytes]) -> NDArray[np.float64]:
        """Return the probability of each word behind a context, which may begin with <s>: each word is scored."""
        import numpy as np

        bos = context[:1] == [b"<s>"] and len(context) < self.order
        seen = b"".join(word + b" " for word in (context[1:] if bos else context[-self.order + 1 :]))
        text = b"".join(seen + word + b"\n" for word in self.words)
        logs, _, lengths = self.scores(text, bos=bos, eos=False)
        ends = np.cumsum(lengths) - 1
        probabilities: NDArray[np.float64] = 10.0 ** np.array(logs, np.float64)[ends]
        return probabilities


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
            f"{what} needs the package kenlm, of the extra models; it is built from source by cmake and a C++ "
            f"compiler, in minutes:\n  {installs('models')}"
        )
        raise UsageError(message=message) from error
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError) as error:
        raise ModelError(path=path, message="KenLM cannot read this model") from error
