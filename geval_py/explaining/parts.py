"""The loss by parts of the lines: by a column of the input, by the length of the word, by how often train has it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from geval_py.explaining.outcomes import Codes, Floats
from geval_py.explaining.significance import t_quantile
from geval_py.reading.features import FIELD_NUMBER

MOST_PARTS = 10
LEAST_LINES = 10  # of a part that is named by its value
WORDS_OF_A_TEXT = 4.0  # from this mean number of words on, a column is text
Kind = Literal["number", "value", "words"]
_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13)  # characters: where parts begin
_FREQUENCIES = (0, 1, 2, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some lines: what they have in common, how many they are, their mean loss in nats and its 95 % interval.

    The interval is Student's, over lines; None for a single line. Lines with an infinite loss are counted, and left
    out of the mean, which is NaN where no other is left.
    """

    label: str
    lines: int
    mean_loss: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts by a column of the input: its name, and whether it is told apart by numbers, values or its length.

    The length is counted in words.
    """

    column: str
    kind: Kind
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which lines belong together by a column: ``codes`` are places among ``labels``, some of which may be unused."""

    column: str
    kind: Kind
    codes: Codes
    labels: tuple[str, ...]


def parts_of(losses: Floats, codes: Codes, labels: Sequence[str]) -> tuple[Part, ...]:
    """Give the parts that have a line; ``codes`` are the lines' places in ``labels``, below 0 for none."""
    return tuple(_part(label, losses[codes == code]) for code, label in enumerate(labels) if (codes == code).any())


def _part(label: str, losses: Floats) -> Part:
    finite = losses[np.isfinite(losses)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    half = half_width(finite)
    low, high = (None, None) if half is None else (max(0.0, mean - half), mean + half)
    return Part(label=label, lines=len(losses), mean_loss=mean, low=low, high=high)


def half_width(values: Floats) -> float | None:
    """Give half the width of Student's 95 % interval of a mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    return t_quantile(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))


def by_length(losses: Floats, words: Iterable[str]) -> tuple[Part, ...]:
    """Give the parts by the number of characters of the expected words."""
    return _by_bounds(losses, np.array([len(word) for word in words], np.int64), _LENGTHS, str)


def by_frequency(losses: Floats, words: Iterable[str], counts: Mapping[str, int]) -> tuple[Part, ...]:
    """Give the parts by how often the expected words were seen, by their counts."""
    seen = np.array([counts.get(word, 0) for word in words], np.int64)
    return _by_bounds(losses, seen, _FREQUENCIES, lambda number: ("never", "once")[number] if number < 2 else "")


def _by_bounds(losses: Floats, values: Codes, bounds: Sequence[int], name: Callable[[int], str]) -> tuple[Part, ...]:
    """Give the parts between bounds; one that holds a single number has its name."""
    labels = []
    for low, above in zip(bounds, [*bounds[1:], None], strict=True):
        if above is None:
            labels.append(f"{low:,} or more")
        else:
            labels.append((name(low) if above == low + 1 else "") or f"{low:,}–{above - 1:,}")
    return parts_of(losses, np.searchsorted(np.array(bounds), values, side="right") - 1, labels)


def by_column(losses: Floats, column: str, texts: Sequence[str]) -> Parts | None:
    """Give the parts by a column: by ranges of its numbers, by its values or, where it is text, by its length.

    None where that parts nothing: all lines have one value, or hardly two lines have the same.
    """
    found = grouping_of(column, texts)
    if found is None:
        return None
    return Parts(column=column, kind=found.kind, parts=parts_of(losses, found.codes, found.labels))


def grouping_of(column: str, texts: Sequence[str]) -> Grouping | None:
    """Tell which lines belong together by a column; None where that parts nothing."""
    counts = Counter(texts)
    if all(map(FIELD_NUMBER.fullmatch, counts)):
        return _grouping(column, "number", *quantiles_of(np.array(list(map(float, texts)))))
    words = [text.count(" ") + 1 if text else 0 for text in texts]
    if len(counts) > MOST_PARTS and sum(words) / len(words) >= WORDS_OF_A_TEXT:
        return _grouping(column, "words", *quantiles_of(np.array(words, np.float64)))
    common = [value for value, lines in counts.most_common(MOST_PARTS) if lines >= LEAST_LINES]
    labels = [*sorted(common), "others"]
    places = {value: place for place, value in enumerate(labels[:-1])}
    codes = np.array([places.get(text, len(common)) for text in texts], np.int64)
    return _grouping(column, "value", codes, labels) if common else None


def _grouping(column: str, kind: Kind, codes: Codes, labels: Sequence[str]) -> Grouping | None:
    several = len(np.unique(codes)) > 1
    return Grouping(column=column, kind=kind, codes=codes, labels=tuple(labels)) if several else None


def by_quantiles(losses: Floats, values: Floats, most: int = MOST_PARTS) -> tuple[Part, ...]:
    """Give a part for each value or, where there are too many, parts of about as many lines each by rising values.

    >>> [part.label for part in by_quantiles(np.ones(4), np.array([1.0, 2.0, 2.0, 3.5]), most=2)]
    ['1–2', '3.5']
    """
    return parts_of(losses, *quantiles_of(values, most))


def quantiles_of(values: Floats, most: int = MOST_PARTS) -> tuple[Codes, list[str]]:
    """Give the part that each value is in, and the labels of these parts."""
    bounds = np.unique(values)
    if len(bounds) > most:
        bounds = np.unique(np.sort(values)[[-(-len(values) * part // most) - 1 for part in range(1, most + 1)]])
    codes = np.searchsorted(bounds, values, side="left")
    return codes, [_range(values[codes == code]) for code in range(len(bounds))]


def _range(values: Floats) -> str:
    low, high = f"{values.min():.6g}", f"{values.max():.6g}"
    return low if low == high else f"{low}–{high}"
