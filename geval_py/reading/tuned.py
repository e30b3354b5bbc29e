r"""Lines of an output, tuned: sharper or flatter, mixed with all words, and with the frequent ones.

With the mass p_w of each listed word and the rest r, a line becomes

    z_w  = (1 - r) p_w^(1/T) / sum p^(1/T)
    r'   = (1 - lambda) r + lambda
    p'_w = (1 - lambda) z_w + r' nu u_w
    rest = r' (1 - nu sum u)

where T is the temperature, above 0, 1 for none; lambda in [0, 1] is the part that goes to all words alike: it is a
mixture with the uniform distribution over the hash's buckets; and nu in [0, 1] is the part of the rest that goes to
the frequent words, by their shares u_w. What a word has more than once is tempered entry by entry, and added up. A
vector's masses are those of its buckets, and its rest is 0.
"""

from __future__ import annotations

import json

from geval_py.errors import UnreadableFileError
from geval_py.reading.buckets import word_buckets
from geval_py.reading.distribution import DEFAULT_BITS, LEAST_BITS, MOST_BITS, entry_masses, vector_masses
from geval_py.reading.frequent import FrequentWords, is_listable
from geval_py.reading.masses import line_of_buckets, line_of_masses
from geval_py.reading.wordprobs import parse_entries, parse_vector, wrong_vector_length
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NAMES = ("temperature", "lambda", "nu")  # in the order in which they are tried


class Parameters(Value):
    """What tuning changes, by the formulas above; by default nothing. ``bits`` are those of the metric's hash."""

    temperature: float = 1.0
    lambda_: float = 0.0
    nu: float = 0.0
    frequent: FrequentWords = FrequentWords()
    bits: int = DEFAULT_BITS

    @property
    def named(self) -> dict[str, float]:
        """The three numbers by their names."""
        return {"temperature": self.temperature, "lambda": self.lambda_, "nu": self.nu}

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of those that change something."""
        neutral = Parameters().named
        return tuple(name for name, value in self.named.items() if value != neutral[name])

    def tune_line(self, text: str, line: int) -> str:
        """Give an output line, tuned; ``line`` is its number. Raises MalformedLineError without a path."""
        if ":" not in text:
            return line_of_buckets(self._tuned_vector(text, line))
        words, values = parse_entries(text, line)
        listed, rest = entry_masses(words, values)
        listed = self._tempered(listed, 1.0 - rest)
        rest = (1.0 - self.lambda_) * rest + self.lambda_
        masses: dict[str, float] = {}
        for word, mass in zip(filter(None, words), listed, strict=True):
            masses[word] = masses.get(word, 0.0) + mass
        given = rest * self.nu
        if given:
            for word, share in zip(self.frequent.words, self.frequent.shares, strict=True):
                masses[word] = masses.get(word, 0.0) + given * share
        return line_of_masses(masses, rest - given * self.frequent.total)

    def tune_lines(self, texts: Sequence[str], line: int) -> str:
        """Give the only one of some texts, tuned; see :meth:`tune_line`."""
        (text,) = texts
        return self.tune_line(text, line)

    def _tempered(self, masses: Sequence[float], total: float) -> list[float]:
        """Sharpen or flatten masses, which keep their total, and leave the part that is not given away."""
        kept = 1.0 - self.lambda_
        greatest = max(masses, default=0.0)
        if self.temperature == 1.0 or greatest == 0.0:
            return [kept * mass for mass in masses]
        powers = [(mass / greatest) ** (1.0 / self.temperature) for mass in masses]
        scale = kept * total / sum(powers)
        return [scale * power for power in powers]

    def _tuned_vector(self, text: str, line: int) -> list[float]:
        values = parse_vector(text, line)
        if len(values) != 1 << self.bits:
            raise wrong_vector_length(text, line, len(values), self.bits)
        masses = self._tempered(vector_masses(values), 1.0)
        given = self.lambda_ * self.nu
        share = (self.lambda_ - given * self.frequent.total) / len(masses)
        masses = [mass + share for mass in masses]
        if given:
            buckets = word_buckets(self.frequent.words, self.bits, line)
            for bucket, part in zip(buckets, self.frequent.shares, strict=True):
                masses[bucket] += given * part
        return masses

    def to_dict(self) -> dict[str, Any]:
        """Give what is kept of them: the numbers, the bits, and the frequent words with their shares."""
        frequent = dict(zip(self.frequent.words, self.frequent.shares, strict=True)) if self.nu else {}
        return {**self.named, "bits": self.bits, "frequent_words": frequent}

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> Parameters:
        """Make them of what :meth:`to_dict` gave; raises KeyError, TypeError and ValueError for anything else."""
        frequent = {str(word): float(share) for word, share in values["frequent_words"].items()}
        made = cls(
            temperature=float(values["temperature"]),
            lambda_=float(values["lambda"]),
            nu=float(values["nu"]),
            frequent=FrequentWords(words=tuple(frequent), shares=tuple(frequent.values())),
            bits=int(values["bits"]),
        )
        if not (made.temperature > 0.0 and 0.0 <= made.lambda_ <= 1.0 and 0.0 <= made.nu <= 1.0):
            raise ValueError("a parameter is out of range")
        if not (LEAST_BITS <= made.bits <= MOST_BITS and all(map(is_listable, frequent))):
            raise ValueError("the bits, or a word, cannot be used")
        if not (0.0 <= made.frequent.total <= 1.0 + 1e-9 and all(share >= 0.0 for share in made.frequent.shares)):
            raise ValueError("the shares of the frequent words are out of range")
        return made


def read_parameters(path: str) -> tuple[Parameters, dict[str, Any]]:
    """Read the parameters that tuning wrote, and all that stands beside them; raises UnreadableFileError."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        return Parameters.of_dict(document["parameters"]), document
    except OSError as error:
        raise UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = "it holds no parameters as geval tune writes them"
        raise UnreadableFileError(path=path, reason=reason) from error
