"""The profile of a line's distribution: its expected loss, its best guess, and how it ranks the expected word.

This is the reference of ``line_profiles``; its native twin is profile.hpp. With m_b the mass of a bucket:

- the line's expected loss, if it is right about itself, is the entropy H = -sum_b m_b ln m_b;
- the smallest set of a level holds the most likely words until they have that mass, in order of their masses; the
  rest, which is all other words, comes last.

The *histogram* counts all listed words by the size of their mass: their number, their mass, the hits (expected
words), and the hits in each of some draws of the word from the line's own distribution. A draw's random number
depends on the line's number alone; it is splitmix64's (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom
number generators", 2014).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from math import exp, frexp, log

from geval_py.reading import wordprobs
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring.kernel.reference import line_loss

COLUMNS = (
    "loss", "vector", "entropy", "word_mass", "listed", "rest", "guess_mass", "guess_right", "words", "ahead",
    "among",
)  # fmt: skip
OCTAVES, PARTS = 40, 8  # the histogram's bins: eight an octave, from 2^-40 and less to 1
BINS = OCTAVES * PARTS
COUNTS = ("count", "mass", "hits")  # the histogram's columns before those of the draws
_MASK = (1 << 64) - 1


def line_profiles(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, draws: int
) -> tuple[tuple[array[float], ...], array[float]]:
    """Compute the profile of each line of a block.

    The first four arguments and the errors are those of :func:`geval_py.scoring.kernel.reference.bounded_losses`.
    Returns the columns named COLUMNS, a value a line, and the histogram: for each bin, from small masses to great,
    its COUNTS, and a count for each of the ``draws``.

    The columns: ``loss``, as from bounded_losses, and ``entropy``, in nats; ``vector`` is 1 for a line of buckets,
    which has no words: it has 0 in the columns about words. ``word_mass`` is the expected word's own mass,
    ``listed`` 1 if the line lists it; ``rest`` the mass of all unlisted words;
    ``guess_mass`` the mass of the likeliest listed word, ``guess_right`` 1 if that is the expected word (of equally
    likely words, the greatest in code point order, as for Accuracy); ``words`` the number of listed words; ``ahead``
    the mass of words likelier than the expected word, and ``among`` of equally likely words, including itself; for
    an unlisted expected word, of all listed words, and of the rest.
    """
    rows: list[tuple[float, ...]] = []
    histogram = array("d", bytes(8 * BINS * (len(COUNTS) + draws)))
    pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
    for line, (text, word) in enumerate(pairs, first_line):
        loss = line_loss(text, word, bits, line)
        if ":" in text:
            distribution = wordprobs.distribution_of(*wordprobs.parse_entries(text, line))
            masses, rest = distribution.masses, distribution.rest
            own = masses.get(word, 0.0)
            hashed = wordprobs.word_buckets(list(masses), bits, line)
            buckets = wordprobs.merge_masses(zip(hashed, masses.values(), strict=True))
            guess_mass, guess = max(((mass, other) for other, mass in masses.items()), default=(0.0, None))
            ahead = wordprobs.sum_in_order([mass for mass in masses.values() if word not in masses or mass > own])
            equal = [mass for mass in masses.values() if mass == own]
            among = wordprobs.sum_in_order(equal) if word in masses else rest
            share = rest / (1 << bits)  # of each bucket
            sums = (*(mass + share for mass in buckets.values()), share)
            *surprises, of_others = (-mass * log(mass) if mass > 0.0 else 0.0 for mass in sums)
            entropy = wordprobs.sum_in_order(surprises) + ((1 << bits) - len(surprises)) * of_others
            of_guess = guess_mass, float(guess == word)
            rows.append(
                (loss, 0.0, entropy, own, float(word in masses), rest, *of_guess, float(len(masses)), ahead, among)
            )
            _count(distribution, word, line, histogram, draws)
        else:
            values = wordprobs.parse_vector(text, line)
            shift, log_divisor, _ = wordprobs.scale_logarithms(values, whole=True)
            logs = [value - shift - log_divisor for value in values]
            entropy = -wordprobs.sum_in_order([exp(log_mass) * log_mass for log_mass in logs])
            rows.append((loss, 1.0, entropy, *[0.0] * (len(COLUMNS) - 3)))
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    return tuple(array("d", column) for column in columns), histogram


def bin_of(mass: float) -> int:
    """Return the histogram's bin of a mass.

    >>> bin_of(0.0), bin_of(0.5), bin_of(0.6), bin_of(1.0)
    (0, 312, 313, 319)
    """
    if mass < 2.0**-OCTAVES:
        return 0
    mantissa, exponent = frexp(mass)
    return min(BINS - 1, (exponent - 1 + OCTAVES) * PARTS + int((mantissa - 0.5) * 2 * PARTS))


def _count(distribution: wordprobs.Distribution, word: str, line: int, histogram: array[float], draws: int) -> None:
    """Add a line's words to the histogram."""
    width = len(COUNTS) + draws
    of_bins = wordprobs.merge_masses((bin_of(mass), mass) for mass in distribution.masses.values())
    for other, mass in distribution.masses.items():
        start = bin_of(mass) * width
        histogram[start] += 1
        histogram[start + 1] += mass
        histogram[start + 2] += other == word
    bins = sorted(of_bins, reverse=True)
    sums = list(accumulate(of_bins[place] for place in bins))
    for draw in range(draws):
        drawn = bisect_right(sums, random_number(line * draws + draw))
        if drawn < len(bins):  # otherwise a word of the rest
            histogram[bins[drawn] * width + len(COUNTS) + draw] += 1


def random_number(place: int) -> float:
    """Return splitmix64's number at a place of its sequence, from 0, in [0, 1)."""
    mixed = (place + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return ((mixed ^ mixed >> 31) >> 11) * 2.0**-53
