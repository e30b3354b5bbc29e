r"""What a line's distribution tells beside its loss: what it expects of itself, what it guessed, what hashing gave.

This is the readable truth of ``line_profiles``; its native twin is profile.hpp. With B buckets, a the mass of the
expected word itself, r that of the rest, and p_w that of another word on the line:

- the line expects of itself the loss H = -sum over buckets of m_b ln m_b;
- the smallest set of a level holds the most likely words until they have that mass, in order of their masses; the
  rest, which is all other words, comes last;
- under other seeds of the hash its loss has about the mean -ln(a + r/B) - (1/B) sum_w ln(1 + p_w/(a + r/B)) and the
  variance (1/B) sum_w ln^2(1 + p_w/(a + r/B)): at most one of the words shares the expected word's bucket.

The *sketches* are sums of ln(1 + p_w/(a + r/B)) with signs that hang on the word's hash (N. Alon, Y. Matias and M.
Szegedy, "The space complexity of approximating the frequency moments", 1999): the mean square of the difference of
two outputs' sketches, divided by B, is the variance of the difference of their losses, whose collisions are the same.

The *histogram* counts all listed words by the size of their mass: how many, their mass, how many were the word; and
how many would have been in each of some draws of the word from the line's own distribution. A draw's random number
hangs on the line's number alone: it is one of splitmix64 (G. Steele, D. Lea and C. Flood, "Fast splittable
pseudorandom number generators", 2014).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from math import exp, frexp, inf, log, log1p

from mmh3 import hash as murmur3

from geval_py.reading.distribution import Distribution, distribution_of, scale_logarithms, sum_in_order
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import parse_entries, parse_vector
from geval_py.scoring.kernel.reference import line_loss

SKETCHES = 4
COLUMNS = (
    "loss", "vector", "entropy", "word_mass", "listed", "rest", "guess_mass", "guess_right", "words", "ahead",
    "among", "seed_mean", "seed_variance", *(f"sketch_{number}" for number in range(SKETCHES)),
)  # fmt: skip
OCTAVES, PARTS = 40, 8  # the histogram's bins: eight an octave, from 2^-40 (and what is less) to 1
BINS = OCTAVES * PARTS
COUNTS = ("count", "mass", "hits")  # the histogram's columns before those of the draws
FIRST_SIGN = 28  # the bits of a hash that give the sketches' signs: none that tells a bucket
LEAST_MASS = 1e-290  # what is less may be 0 when it divides
_MASK = (1 << 64) - 1


def line_profiles(
    outputs: Bytes, expected: bytes, bits: int, first_line: int, draws: int
) -> tuple[tuple[array[float], ...], array[float]]:
    """Tell of each line of a block what its distribution says.

    The first four arguments and the errors are those of :func:`geval_py.scoring.kernel.reference.hashed_losses`.
    Gives the columns named COLUMNS, a value a line, and the histogram: for each bin, from small masses to great, its
    COUNTS, and a count for each of the ``draws``.

    The columns: ``loss``, as hashed_losses gives it, and ``entropy``, in nats; ``vector`` is 1 for a line of buckets,
    which has no words and 0 in the columns about them, but for its loss as ``seed_mean``. ``word_mass`` is the
    expected word's own mass, ``listed`` 1 if it stands on the line; ``rest`` the mass of all other words;
    ``guess_mass`` that of the likeliest word listed, ``guess_right`` 1 if that is the expected word (of several, the
    greatest in code point order answers, as for Accuracy); ``words`` how many are listed; ``ahead`` the mass of
    those likelier than the expected word, and ``among`` of those as likely, it included: all listed words, and the
    rest, where it is not listed. ``seed_mean`` and ``seed_variance`` are of the loss under other seeds, inf where the
    expected word has no mass of its own.
    """
    rows: list[tuple[float, ...]] = []
    histogram = array("d", bytes(8 * BINS * (len(COUNTS) + draws)))
    pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
    for line, (text, word) in enumerate(pairs, first_line):
        loss = line_loss(text, word, bits, line)
        if ":" in text:
            distribution = distribution_of(*parse_entries(text, line))
            rows.append(_entries_row(distribution, word, loss, bits, line))
            _count(distribution, word, line, histogram, draws)
        else:
            rows.append(_vector_row(parse_vector(text, line), loss))
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    return tuple(array("d", column) for column in columns), histogram


def _vector_row(values: list[float], loss: float) -> tuple[float, ...]:
    shift, log_divisor, _ = scale_logarithms(values, whole=True)
    logs = [value - shift - log_divisor for value in values]
    entropy = -sum_in_order([exp(log_mass) * log_mass for log_mass in logs])
    return (loss, 1.0, entropy, *[0.0] * (COLUMNS.index("seed_mean") - 3), loss, 0.0, *[0.0] * SKETCHES)


def _entries_row(distribution: Distribution, word: str, loss: float, bits: int, line: int) -> tuple[float, ...]:
    masses, rest = distribution.masses, distribution.rest
    own = masses.get(word, 0.0)
    hashes = [murmur3(other, line & 0xFFFFFFFF, signed=False) for other in masses]
    guess_mass, guess = max(((mass, other) for other, mass in masses.items()), default=(0.0, None))
    ahead = sum_in_order([mass for mass in masses.values() if word not in masses or mass > own])
    among = sum_in_order([mass for mass in masses.values() if mass == own]) if word in masses else rest
    share = rest / (1 << bits)
    others = [(mass, code) for (other, mass), code in zip(masses.items(), hashes, strict=True) if other != word]
    return (
        loss,
        0.0,
        _entropy(list(masses.values()), hashes, share, bits),
        own,
        float(word in masses),
        rest,
        guess_mass,
        float(guess == word),
        float(len(masses)),
        ahead,
        among,
        *_seed_moments(others, own + share, bits),
    )


def _entropy(masses: list[float], hashes: list[int], share: float, bits: int) -> float:
    """Give the entropy over the buckets, of which each has a share of the rest, in nats."""
    buckets: dict[int, float] = {}
    for mass, code in zip(masses, hashes, strict=True):
        bucket = code & ((1 << bits) - 1)
        buckets[bucket] = buckets.get(bucket, 0.0) + mass
    of_words = sum_in_order([_surprise(mass + share) for mass in buckets.values()])
    return of_words + ((1 << bits) - len(buckets)) * _surprise(share)


def _surprise(mass: float) -> float:
    return -mass * log(mass) if mass > 0.0 else 0.0


def _seed_moments(others: list[tuple[float, int]], mass: float, bits: int) -> tuple[float, ...]:
    """Give the mean and the variance of the loss over seeds, and the sketches.

    ``others`` are the masses and hashes of the words that are not expected, ``mass`` is what the expected word has
    of its own, and by its share of the rest.
    """
    if mass < LEAST_MASS:
        return inf, inf, *[0.0] * SKETCHES
    gains = [log1p(other / mass) for other, _ in others]
    signs = [[-1.0 if code >> (FIRST_SIGN + n) & 1 else 1.0 for _, code in others] for n in range(SKETCHES)]
    return (
        -log(mass) - sum_in_order(gains) / (1 << bits),
        sum_in_order([gain * gain for gain in gains]) / (1 << bits),
        *(sum_in_order([s * gain for s, gain in zip(of, gains, strict=True)]) for of in signs),
    )


def bin_of(mass: float) -> int:
    """Give the bin of the histogram that a mass belongs to.

    >>> bin_of(0.0), bin_of(0.5), bin_of(0.6), bin_of(1.0)
    (0, 312, 313, 319)
    """
    if mass < 2.0**-OCTAVES:
        return 0
    mantissa, exponent = frexp(mass)
    return min(BINS - 1, (exponent - 1 + OCTAVES) * PARTS + int((mantissa - 0.5) * 2 * PARTS))


def _count(distribution: Distribution, word: str, line: int, histogram: array[float], draws: int) -> None:
    """Add a line's words to the histogram."""
    width = len(COUNTS) + draws
    of_bins: dict[int, float] = {}
    for other, mass in distribution.masses.items():
        place = bin_of(mass)
        of_bins[place] = of_bins.get(place, 0.0) + mass
        histogram[place * width] += 1
        histogram[place * width + 1] += mass
        histogram[place * width + 2] += other == word
    bins = sorted(of_bins, reverse=True)
    sums = list(accumulate(of_bins[place] for place in bins))
    for draw in range(draws):
        drawn = bisect_right(sums, random_number(line * draws + draw))
        if drawn < len(bins):  # else it is a word of the rest
            histogram[bins[drawn] * width + len(COUNTS) + draw] += 1


def random_number(place: int) -> float:
    """Give splitmix64's number at a place of its sequence, from 0, in [0, 1)."""
    mixed = (place + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return ((mixed ^ mixed >> 31) >> 11) * 2.0**-53
