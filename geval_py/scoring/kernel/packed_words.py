"""Losses of distributions in arrays, over a vocabulary that is packed for hashing: the reference, with numpy.

Its native twin is packed_words.hpp. A row means what its line would mean to :mod:`geval_py.scoring.kernel.reference`,
with each number as it is, but no guess at whether numbers are probabilities or logarithms.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.reading.lines import decode_lines
from geval_py.reading.wordprobs import MAX_LOG_PLAUSIBLE, word_buckets
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


def pack_words(words: bytes) -> list[str]:
    """Return words, which are UTF-8 lines, each ended by LF, as :func:`array_losses` takes them."""
    return decode_lines(words)


def array_losses(
    words: Sequence[str],
    values: Numbers,
    ids: Ids | None,
    rests: NDArray[np.float64] | None,
    expected: bytes,
    lines: Hashes,
    bits: int,
    unit: Unit,
) -> tuple[array[float], float, int]:
    """Score rows of numbers against as many expected words.

    ``values`` has a row for each line and a column for each word or, with ``ids`` of the same shape, the numbers of
    these words, which may occur more than once on a row. ``rests`` has the number of all other words of each row, in
    the same unit; without it, the mass that is missing to 1 is theirs. ``expected`` are UTF-8 lines, each ended by
    LF, ``lines`` the line number of each row, modulo 2^32.

    Returns the losses in nats, in [0, inf], their bound (see :func:`reference.bounded_losses`), and the index of the
    first row at fault, whose loss and the following are not computed; -1 if there is none. A row is at fault if an id
    is not in the vocabulary, a number is NaN or out of its range, or no word has any mass, though no mass is missing;
    logarithms also if their exponentials total far more than 1.
    """
    losses, bound, share = array("d", bytes(8 * len(lines))), 0.0, 1 / (1 << bits)
    for n, (word, line) in enumerate(zip(decode_lines(expected), lines.tolist(), strict=True)):
        ids_of_row = None if ids is None else ids[n]
        row = np.append(values[n], () if rests is None else rests[n]).astype(np.float64)
        if fault_place(len(words), ids_of_row, row, unit, has_rest=rests is not None) is not None:
            return losses, bound, n
        if unit is Unit.LOGITS:  # with 0 as the greatest, logarithms total 1 or more, and are divided by their total
            row -= row.max()
        words_of_row = words if ids_of_row is None else [words[number] for number in ids_of_row]
        bucket, *buckets = word_buckets([word, *words_of_row], bits, line)
        numbers = row.tolist()
        hits = [number for number, own in zip(numbers, buckets, strict=False) if own == bucket]
        of_rest, is_probability = numbers[len(buckets) :], unit is Unit.PROBABILITIES
        losses[n] = mixture_loss(numbers, hits, of_rest, share, is_probability)
        bound = max(bound, mixture_loss(numbers, [], of_rest, share, is_probability))
    return losses, bound, -1


def fault_place(size: int, ids: Ids | None, numbers: Doubles, unit: Unit, *, has_rest: bool) -> int | None:
    """Return the place of the first number at fault on a row over a vocabulary of some size; None if none is.

    Its numbers are those of words, and in the end of the rest, if it has one. The place is their count if no number
    alone is at fault; see :func:`array_losses`.
    """
    if unit is Unit.PROBABILITIES:
        is_wrong, has_mass = ~((numbers >= 0.0) & (numbers <= 1.0)), numbers.any()
    else:
        is_wrong, has_mass = np.isnan(numbers) | (numbers == inf), (numbers > -inf).any()
    if ids is not None:
        is_wrong[: len(ids)] |= (ids < 0) | (ids >= size)
    is_wrong = np.append(is_wrong, not has_mass and (has_rest or unit is Unit.LOGITS))
    if unit is Unit.LOGARITHMS and not is_wrong.any():
        is_wrong[-1] = np.logaddexp.reduce(numbers, initial=-inf) > MAX_LOG_PLAUSIBLE
    return int(is_wrong.argmax()) if is_wrong.any() else None
