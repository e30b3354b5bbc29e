"""The profile of a line's distribution: the loss that it expects, its best guess, and its words by their masses.

This is the reference of ``line_profiles``; its native twin is profile.hpp.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from math import exp, log

from geval_py.reading import wordprobs
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.kernel.reference import line_loss

EDGES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # between the bins of words by their masses
MASSES = tuple(f"mass_{place}" for place in range(len(EDGES) + 1))
COUNTS = tuple(f"count_{place}" for place in range(len(EDGES) + 1))
COLUMNS = (
    "loss", "vector", "entropy", "variance", "word_mass", "listed", "rest", "guess_mass", "guess_right", "words",
    *MASSES, *COUNTS,
)  # fmt: skip


def line_profiles(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], ...]:
    """Compute the profile of each line of a block: the columns named COLUMNS, a value a line.

    The arguments and the errors are those of :func:`geval_py.scoring.kernel.reference.bounded_losses`.

    ``loss`` is the one from bounded_losses. ``entropy`` and ``variance`` are the mean and the variance of the loss if
    the line is right about itself, in nats. ``vector`` is 1 for a line of buckets, which has no words: it has 0 in
    the columns that follow. ``word_mass`` is the expected word's own mass, ``listed`` 1 if the line lists it;
    ``rest`` the mass of all unlisted words; ``guess_mass`` the mass of the likeliest listed word, ``guess_right`` 1
    if that is the expected word (of equally likely words, the greatest in code point order, as for Accuracy);
    ``words`` the number of listed words. MASSES and COUNTS are the masses and the numbers of the words in each bin
    between EDGES, a word at an edge in the bin above it.
    """
    rows: list[tuple[float, ...]] = []
    pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
    for line, (text, word) in enumerate(pairs, first_line):
        loss = line_loss(text, word, bits, line)
        if ":" in text:
            distribution = wordprobs.distribution_of(*wordprobs.parse_entries(text, line))
            masses, rest = distribution.masses, distribution.rest
            moments = _moments(list(_chances(distribution, bits, line)))
            guess_mass, guess = max(((mass, word) for word, mass in masses.items()), default=(0.0, None))
            of_word = masses.get(word, 0.0), float(word in masses)
            of_guess = guess_mass, float(guess == word)
            bins: list[list[float]] = [[] for _ in MASSES]
            for mass in masses.values():
                bins[bisect_right(EDGES, mass)].append(mass)
            sums, counts = map(wordprobs.sum_in_order, bins), map(float, map(len, bins))
            rows.append((loss, 0.0, *moments, *of_word, rest, *of_guess, float(len(masses)), *sums, *counts))
        else:
            values = wordprobs.parse_vector(text, line)
            shift, log_divisor, _ = wordprobs.scale_logarithms(values, whole=True)
            losses = [log_divisor - (value - shift) for value in values]
            moments = _moments([(exp(-loss), loss) for loss in losses])
            rows.append((loss, 1.0, *moments, *[0.0] * (len(COLUMNS) - 4)))
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    return tuple(array("d", column) for column in columns)


def _chances(distribution: wordprobs.Distribution, bits: int, line: int) -> Iterator[tuple[float, float]]:
    """Yield the mass and the loss of each bucket that has words, and of all others together."""
    masses, share = distribution.masses, distribution.rest / (1 << bits)
    hashed = wordprobs.word_buckets(list(masses), bits, line)
    buckets = wordprobs.merge_masses(zip(hashed, masses.values(), strict=True))
    for of_words in buckets.values():
        if (mass := of_words + share) > 0.0:
            yield mass, -log(mass)
    if share > 0.0:
        yield ((1 << bits) - len(buckets)) * share, -log(share)


def _moments(chances: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean and the variance of losses, which come with their probabilities."""
    mean = wordprobs.sum_in_order([mass * loss for mass, loss in chances])
    return mean, wordprobs.sum_in_order([mass * (loss - mean) ** 2 for mass, loss in chances])
