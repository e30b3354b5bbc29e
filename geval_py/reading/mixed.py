"""Lines of several outputs, mixed: each word's masses added up by the outputs' weights, and so the rests."""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.reading.buckets import bucket_masses
from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.reading.frequent import FrequentWords
from geval_py.reading.masses import line_of_buckets, line_of_masses
from geval_py.reading.wordprobs import WordProbs, parse_line
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Mixing(Value):
    """The weight of each output and, behind them, that of the ``frequent`` words, if there are any; together 1.

    ``bits`` are those of the metric's hash: what is mixed with a vector becomes one.
    """

    weights: tuple[float, ...]
    frequent: FrequentWords = FrequentWords()
    bits: int = DEFAULT_BITS

    def mix_lines(self, texts: Sequence[str], line: int) -> str:
        """Give the mixture of a line of each output; ``line`` is its number in the files.

        Raises MalformedLineError, without a path, at the first text that is malformed.
        """
        parsed = [parse_line(text, line) for text in texts]
        if any(part.words is None for part in parsed):
            return line_of_buckets(self._buckets(parsed, line))
        parts = [part.normalised() for part in parsed]
        if self.frequent.words:
            parts.append(self.frequent.distribution)
        masses: dict[str, float] = {}
        rest = 0.0
        for weight, part in zip(self.weights, parts, strict=True):
            rest += weight * part.rest
            for word, mass in part.masses.items():
                masses[word] = masses.get(word, 0.0) + weight * mass
        return line_of_masses(masses, rest)

    def _buckets(self, parsed: Sequence[WordProbs], line: int) -> list[float]:
        columns = [part.buckets(self.bits, line) for part in parsed]
        if self.frequent.words:
            columns.append(bucket_masses(self.frequent.distribution, self.bits, line))
        rows = zip(*columns, strict=True)
        return [sum(weight * mass for weight, mass in zip(self.weights, row, strict=True)) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Give what is kept of it: the weights, the bits, and the frequent words with their shares."""
        frequent = dict(zip(self.frequent.words, self.frequent.shares, strict=True))
        return {"weights": list(self.weights), "bits": self.bits, "frequent_words": frequent}
