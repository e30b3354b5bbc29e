"""Lines of outputs, mixed: the reference. Its native twin for lines of words is rewriting.hpp."""

from __future__ import annotations

import math
import operator
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from geval_py.reading import schemes, wordprobs
from geval_py.reading.lines import Bytes, decode_lines, end_of_lines

Shares: TypeAlias = "Mapping[str, float]"  # of words in all answers, the most frequent first; at most 1 in all

VECTOR_CHARACTERS = 13  # of a bucket's mass, as a vector is written
ENTRY_CHARACTERS = 12  # of an entry, beside its word
MIN_REST = 1e-12


def rest_of(shares: Shares) -> float:
    """Return the share of all other words; 0 where it is no more than rounding errors of the shares."""
    rest = 1.0 - math.fsum(shares.values())
    return rest if rest > MIN_REST else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixing:
    """The weights of the components of a mixture, a row for each bin of lines.

    A row has the weights of the uniform distribution, of the outputs, of the outputs with their rest given to the
    ``frequent`` words and, last, of the frequent words with a rest for all others; together they are 1. The ``edges``
    are between bins of the clarity of a line: the probability of its likeliest word and of its rest, in the mean of
    the outputs. That of a vector is 0. ``bits`` are those of the metric's hash: a mixture of vectors is a vector.
    """

    weights: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...] = ()
    frequent: Shares = field(default_factory=dict)
    bits: int = schemes.DEFAULT_BITS

    @property
    def as_vectors(self) -> bool:
        """Whether lines are written as masses of buckets, since the frequent words would take more room."""
        characters = sum(len(word) + ENTRY_CHARACTERS for word in self.frequent)
        return characters > VECTOR_CHARACTERS << self.bits

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Return the mixture of one line of each output; ``line`` is its number in the files.

        Raises MalformedLineError, without a path, for the first malformed text.
        """
        parsed = [wordprobs.parse_line(text, line) for text in texts]
        vectors = [part.buckets(self.bits, line) if part.words is None else () for part in parsed]
        no_words = wordprobs.Distribution(masses={}, rest=0.0)
        parts = [no_words if part.words is None else part.normalised() for part in parsed]
        clarities = [max(part.masses.values(), default=0.0) + part.rest for part in parts]
        row = self.weights[bisect_right(self.edges, wordprobs.sum_in_order(clarities) / len(parts))]
        kept, given = row[1 : 1 + len(parts)], row[1 + len(parts) : -1]
        factors = list(map(operator.add, kept, given))
        to_words, rest = row[-1], row[0]
        masses = defaultdict[str, float](float)
        for part, factor, of_rest, share in zip(parts, factors, kept, given, strict=True):
            for word, mass in part.masses.items():
                masses[word] += factor * mass
            to_words += share * part.rest
            rest += of_rest * part.rest
        for word, share in self.frequent.items():
            masses[word] += to_words * share
        rest += to_words * rest_of(self.frequent)
        if not self.as_vectors and not any(vectors):
            return wordprobs.line_of_masses(masses, rest)
        buckets = wordprobs.bucket_masses(wordprobs.Distribution(masses=masses, rest=rest), self.bits, line)
        for vector, factor in zip(vectors, factors, strict=True):
            for bucket, mass in enumerate(vector):
                buckets[bucket] += factor * mass
        return wordprobs.line_of_buckets(buckets)

    def to_dict(self) -> dict[str, Any]:
        """Return the mixing for JSON: the weights, the edges, the bits, and the frequent words with their shares."""
        return {"weights": self.weights, "edges": self.edges, "bits": self.bits, "frequent_words": self.frequent}


def rewrite_lines(outputs: Sequence[Bytes], first_line: int, recipe: Mixing) -> tuple[bytes, int, array[int]]:
    """Rewrite as many lines as each output has, all ended by LF; ``first_line`` is the number of the first one.

    Returns the new lines, their number, and where they end in each output. Raises MalformedLineError without a path.
    """
    lines = list(zip(*map(decode_lines, outputs), strict=False))
    ends = array("q", [end_of_lines(bytes(block), 0, len(lines))[0] for block in outputs])
    rewritten = [f"{recipe.rewrite_line(texts, number)}\n" for number, texts in enumerate(lines, first_line)]
    return "".join(rewritten).encode(), len(lines), ends
