"""Recipes, by which lines of outputs are rewritten: tuned by parameters, or mixed by weights.

They are the reference of the native kernel, which rewrites lines of words by the numbers of a recipe: ``weights`` are
those of outputs and, last, of the ``frequent`` words; ``tuning`` are those of parameters. Either is empty.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeAlias

from geval_py.reading import schemes, wordprobs

Shares: TypeAlias = "Mapping[str, float]"  # of words in all answers, the most frequent first; at most 1 in all

BY_LINE = "by-line"
REST_OFFSET = 0.001  # added to a rest before its logarithm is taken
MIN_PART, MAX_PART = 1e-6, 1 - 1e-6  # of lambda and nu, so that other words always keep a rest
MAX_FIGURE = 4.0  # standard deviations of a line's figure: a stranger line counts as one so far off
MIN_SCALE = 0.01  # of a figure: a smaller spread is noise
VECTOR_CHARACTERS = 13  # of a bucket's mass, as a vector is written
ENTRY_CHARACTERS = 12  # of an entry, beside its word


def line_figures(masses: Sequence[float], rest: float) -> tuple[float, float, float, float]:
    """Return what lambda and nu of a line depend on, from the masses of its entries, or of its buckets.

    ln(rest + 0.001), the greatest mass, ln(1 + number of entries), and 1 for a line without entries.

    >>> [round(figure, 3) for figure in line_figures([0.5, 0.2], 0.3)], line_figures([], 0.999)
    ([-1.201, 0.5, 1.099, 0.0], (0.0, 0.0, 0.0, 1.0))
    """
    return (
        math.log(rest + REST_OFFSET),
        max(masses, default=0.0),
        math.log1p(len(masses)),
        0.0 if masses else 1.0,
    )


class ByLine(NamedTuple):
    """How lambda and nu of a line depend on its figures.

    With x = (1, (figures - ``centres``) / ``scales``), they are 1 / (1 + exp(-a.x)), where a is ``lambda_`` or
    ``nu``.
    """

    centres: tuple[float, ...]
    scales: tuple[float, ...]
    lambda_: tuple[float, ...]
    nu: tuple[float, ...]

    def parts(self, figures: Sequence[float]) -> tuple[float, float]:
        """Return lambda and nu of a line."""
        columns = zip(figures, self.centres, self.scales, strict=True)
        apart = ((figure - centre) / scale for figure, centre, scale in columns)
        x = (1.0, *(min(max(figure, -MAX_FIGURE), MAX_FIGURE) for figure in apart))

        def part(weights: Sequence[float]) -> float:
            place = max(-700.0, sum(map(operator.mul, weights, x)))  # the exponential is finite
            return min(max(1.0 / (1.0 + math.exp(-place)), MIN_PART), MAX_PART)

        return part(self.lambda_), part(self.nu)

    def to_dict(self) -> dict[str, list[float]]:
        """Return the numbers for JSON."""
        return {name.rstrip("_"): list(numbers) for name, numbers in self._asdict().items()}

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> ByLine:
        """Read the result of :meth:`to_dict`; raises KeyError, TypeError and ValueError for anything else."""
        columns = [tuple(map(float, values[name])) for name in ("centres", "scales", "lambda", "nu")]
        figures = len(line_figures((), 0.0))
        are_finite = all(map(math.isfinite, chain(*columns)))
        lengths = [len(column) for column in columns]
        if lengths != [figures, figures, figures + 1, figures + 1] or not are_finite or min(columns[1]) < MIN_SCALE:
            raise ValueError("the numbers by line are too many, too few, or out of range")
        return cls(*columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of tuning; the defaults change nothing. ``bits`` are those of the metric's hash.

    The masses of words are raised to the power 1/``temperature`` and keep their total. The part ``lambda_`` of all
    mass then goes to the rest, and the part ``nu`` of the rest to the ``frequent`` words, by their shares. With
    ``by_line``, each line has a lambda and a nu of its own instead.
    """

    temperature: float = 1.0
    lambda_: float = 0.0
    nu: float = 0.0
    frequent: Shares = field(default_factory=dict)
    bits: int = schemes.DEFAULT_BITS
    by_line: ByLine | None = None
    weights: ClassVar[tuple[float, ...]] = ()

    @property
    def numbers(self) -> dict[str, Any]:
        """All numbers by their names, for JSON."""
        by_line = {} if self.by_line is None else {BY_LINE: self.by_line.to_dict()}
        return {"temperature": self.temperature, "lambda": self.lambda_, "nu": self.nu} | by_line

    @property
    def tuning(self) -> tuple[float, ...]:
        """All numbers in a row, as the native kernel takes them."""
        return (self.temperature, self.lambda_, self.nu, *chain(*(self.by_line or ())))

    @property
    def uses_words(self) -> bool:
        """Whether a part of some rest goes to the frequent words."""
        return self.nu > 0.0 or self.by_line is not None

    @property
    def as_vectors(self) -> bool:
        """Whether a tuned line is written as masses of buckets, since its words would take more room."""
        characters = sum(len(word) + ENTRY_CHARACTERS for word in self.frequent)
        return self.uses_words and characters > VECTOR_CHARACTERS << self.bits

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Tune the one output line in a sequence; ``line`` is its number. Raises MalformedLineError without a path.

        The line of a vector is a vector, and so is any line with so many frequent words that it is shorter as one.
        """
        (text,) = texts
        is_vector = ":" not in text
        words, listed, rest = wordprobs.line_masses(text, line, self.bits)
        lambda_, nu = self.lambda_, self.nu
        if self.by_line is not None:
            lambda_, nu = self.by_line.parts(line_figures(listed, rest))
        greatest, scale = max(listed, default=0.0), 1.0 - lambda_
        if self.temperature != 1.0 and greatest != 0.0:
            listed = [(mass / greatest) ** (1.0 / self.temperature) for mass in listed]
            scale = scale * (1.0 - rest) / sum(listed)
        listed = [scale * mass for mass in listed]
        rest = (1.0 - lambda_) * rest + lambda_
        to_words = rest * nu
        of_frequent = ((word, to_words * share) for word, share in self.frequent.items() if to_words)
        masses = wordprobs.merge_masses(chain(zip(words, listed, strict=False), of_frequent))  # a vector has no words
        tuned = wordprobs.Distribution(masses=masses, rest=rest - to_words * sum(self.frequent.values()))
        if not is_vector and not self.as_vectors:
            return wordprobs.line_of_masses(masses, tuned.rest)
        buckets = wordprobs.bucket_masses(tuned, self.bits, line)
        return wordprobs.line_of_buckets(list(map(operator.add, buckets, listed)) if is_vector else buckets)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters for JSON: the numbers, the bits, and the frequent words with their shares."""
        frequent = self.frequent if self.uses_words else {}
        return {**self.numbers, "bits": self.bits, "frequent_words": frequent}

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> Parameters:
        """Read the result of :meth:`to_dict`; raises KeyError, TypeError and ValueError for anything else."""
        frequent = {str(word): float(share) for word, share in values["frequent_words"].items()}
        made = cls(
            temperature=float(values["temperature"]),
            lambda_=float(values["lambda"]),
            nu=float(values["nu"]),
            frequent=frequent,
            bits=int(values["bits"]),
            by_line=ByLine.of_dict(values[BY_LINE]) if BY_LINE in values else None,
        )
        if not (
            made.temperature > 0.0
            and schemes.MIN_BITS <= made.bits <= schemes.MAX_BITS
            and all(map(wordprobs.is_listable, frequent))
            and sum(frequent.values()) <= 1.0 + 1e-9
            and all(0.0 <= part <= 1.0 for part in (made.lambda_, made.nu, *frequent.values()))
        ):
            raise ValueError("a parameter, a word or a share is out of range")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixing:
    """The weights of outputs and, last, of the ``frequent`` words, if there are any; together they are 1.

    A mixture adds up the masses of each word, and the rests, by these weights. ``bits`` are those of the metric's
    hash: the mixture of a vector and words is a vector.
    """

    weights: tuple[float, ...]
    frequent: Shares = field(default_factory=dict)
    bits: int = schemes.DEFAULT_BITS
    tuning: ClassVar[tuple[float, ...]] = ()
    as_vectors: ClassVar[bool] = False

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Return the mixture of one line of each output; ``line`` is its number in the files.

        Raises MalformedLineError, without a path, for the first malformed text.
        """
        parsed = [wordprobs.parse_line(text, line) for text in texts]
        rest = max(0.0, 1.0 - sum(self.frequent.values()))
        frequent = wordprobs.Distribution(masses=dict(self.frequent), rest=rest)
        parts = [frequent] if self.frequent else []
        if any(part.words is None for part in parsed):
            columns = [part.buckets(self.bits, line) for part in parsed]
            columns += [wordprobs.bucket_masses(part, self.bits, line) for part in parts]
            rows = zip(*columns, strict=True)
            return wordprobs.line_of_buckets([sum(map(operator.mul, self.weights, row)) for row in rows])
        parts = [*(part.normalised() for part in parsed), *parts]
        masses = wordprobs.merge_masses(
            (word, weight * mass)
            for weight, part in zip(self.weights, parts, strict=True)
            for word, mass in part.masses.items()
        )
        return wordprobs.line_of_masses(masses, sum(map(operator.mul, self.weights, (part.rest for part in parts))))

    def to_dict(self) -> dict[str, Any]:
        """Return the mixing for JSON: the weights, the bits, and the frequent words with their shares."""
        return {"weights": self.weights, "bits": self.bits, "frequent_words": self.frequent}


Recipe: TypeAlias = Parameters | Mixing
