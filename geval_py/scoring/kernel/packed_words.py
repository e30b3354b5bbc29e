"""Losses of distributions in arrays, over a vocabulary that is packed for hashing: the reference, with numpy.

Its native twin is packed_words.hpp. MurmurHash3 mixes a block of four bytes before the seed comes in, so each word is
kept as its mixed blocks, and one number for its last bytes and its length; words with as many blocks stand together.
A row means what its line would mean to :mod:`geval_py.scoring.kernel.reference`, with each number as it is, but no
guess at whether numbers are probabilities or logarithms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from enum import IntEnum
from math import inf, isnan, log
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.reading.lines import decode_lines
from geval_py.reading.wordprobs import MAX_LOG_PLAUSIBLE, log_sum_exp, word_buckets
from geval_py.scoring.kernel.reference import mixture_loss

Ids: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint32]
Doubles: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.floating[Any]]  # float32 or float64


class Unit(IntEnum):
    """What the numbers of a row are. Probabilities and their natural logarithms may have a rest; logits total 1."""

    PROBABILITIES = 0
    LOGARITHMS = 1
    LOGITS = 2


class PackedWords(NamedTuple):
    """A packed vocabulary: the ids, mixed blocks and last mixed numbers of all words with as many blocks."""

    size: int
    groups: list[tuple[Ids, list[Hashes], Hashes]]

    def hashes(self, seed: int) -> Hashes:
        """Return the hash of each word, in the vocabulary's order."""
        by_id = np.empty(self.size, np.uint32)
        for ids, blocks, last in self.groups:
            hashes = np.full(len(ids), seed, np.uint32)
            for block in blocks:
                hashes = _rotate(hashes ^ block, 13) * np.uint32(5) + np.uint32(0xE6546B64)
            hashes ^= last
            hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
            hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
            by_id[ids] = hashes ^ (hashes >> np.uint32(16))
        return by_id


def pack_words(words: bytes) -> PackedWords:
    """Pack words, which are UTF-8 lines, each ended by LF."""
    texts = words.split(b"\n")[:-1]
    by_blocks: dict[int, list[int]] = {}
    for number, text in enumerate(texts):
        by_blocks.setdefault(len(text) // 4, []).append(number)
    groups = []
    for blocks, ids in by_blocks.items():
        padded = b"".join(texts[number].ljust(4 * blocks + 4, b"\0") for number in ids)
        mixed = np.frombuffer(padded, "<u4").astype(np.uint32).reshape(len(ids), blocks + 1)
        mixed = _rotate(mixed * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        lengths = np.array([len(texts[number]) for number in ids], np.uint32)
        groups.append((np.array(ids), list(mixed.T[:-1]), mixed[:, -1] ^ lengths))
    return PackedWords(len(texts), groups)


def _rotate(number: Hashes, by: int) -> Hashes:
    return (number << np.uint32(by)) | (number >> np.uint32(32 - by))


def array_losses(
    words: PackedWords,
    values: Numbers,
    ids: Ids | None,
    offsets: Ids | None,
    rests: NDArray[np.float64] | None,
    expected: bytes,
    lines: Hashes,
    bits: int,
    unit: Unit,
) -> tuple[array[float], float, int]:
    """Score rows of numbers against as many expected words.

    Without ``ids``, ``values`` has a row for each line and a column for each word. With them it has one dimension:
    ``values[offsets[i] : offsets[i + 1]]`` are the numbers of the words ``ids[offsets[i] : offsets[i + 1]]`` on row
    i, on which a word may occur more than once. ``rests`` has the number of all other words of each row, in the same
    unit; without it, the mass that is missing to 1 is theirs. ``expected`` are UTF-8 lines, each ended by LF,
    ``lines`` the line number of each row, modulo 2^32.

    Returns the losses in nats, in [0, inf], their bound (see :func:`reference.bounded_losses`), and the index of the
    first row at fault, whose loss and the following are not computed; -1 if there is none. A row is at fault if an id
    is not in the vocabulary, a number is NaN or out of its range, or no word has any mass, though no mass is missing;
    logarithms also if their exponentials total far more than 1.
    """
    rows: Iterable[tuple[Ids | None, Numbers]] = ((None, row) for row in values)
    if ids is not None and offsets is not None:
        places = [slice(*pair) for pair in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        rows = ((ids[place], values[place]) for place in places)
    losses, bound = array("d", bytes(8 * len(lines))), 0.0
    rests_of_rows = [[]] * len(lines) if rests is None else rests.reshape(-1, 1).tolist()
    for n, (word, line, (ids_of_row, of_row), rests_of_row) in enumerate(
        zip(decode_lines(expected), lines.tolist(), rows, rests_of_rows, strict=True)
    ):
        of_words = of_row.tolist()
        if has_fault(words.size, ids_of_row, np.array([*of_words, *rests_of_row]), unit, has_rest=rests is not None):
            return losses, bound, n
        hashes = words.hashes(line) if ids_of_row is None else words.hashes(line)[ids_of_row]
        (bucket,) = word_buckets([word], bits, line)
        hits = of_row[(hashes & np.uint32((1 << bits) - 1)) == bucket].tolist()
        losses[n] = row_loss(of_words, hits, rests_of_row, 1 / (1 << bits), unit)
        bound = max(bound, row_loss(of_words, (), rests_of_row, 1 / (1 << bits), unit))
    return losses, bound, -1


def has_fault(size: int, ids: Ids | None, numbers: Doubles, unit: Unit, *, has_rest: bool) -> bool:
    """Whether a row over a vocabulary of some size is at fault; see :func:`array_losses`.

    Its numbers are those of words, and in the end of the rest, if it has one.
    """
    if ids is not None and len(ids) and not 0 <= ids.min() <= ids.max() < size:
        return True
    if unit is Unit.PROBABILITIES:
        return not ((numbers >= 0.0) & (numbers <= 1.0)).all() or (has_rest and not numbers.any())
    greatest = numbers.max(initial=-inf)
    if isnan(greatest) or greatest == inf:
        return True
    if greatest == -inf:
        return has_rest or unit is Unit.LOGITS
    return unit is Unit.LOGARITHMS and bool(greatest + log(np.exp(numbers - greatest).sum()) > MAX_LOG_PLAUSIBLE)


def row_loss(
    values: Sequence[float], hits: Sequence[float], rests: Sequence[float], share: float, unit: Unit
) -> float:
    """Compute the loss of a bucket with the numbers ``hits`` and a share of the rest; see :func:`array_losses`."""
    numbers = [*values, *rests]
    if unit is not Unit.LOGITS:
        return mixture_loss(numbers, hits, rests, share, unit is Unit.PROBABILITIES)
    greatest = max(numbers)
    log_mass = log_sum_exp([value - greatest for value in [*hits, *(value + log(share) for value in rests)]])
    return max(0.0, log_sum_exp([value - greatest for value in numbers]) - log_mass)
