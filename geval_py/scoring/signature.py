"""What a score is of, in one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from geval_py.scoring.scores import MetricScore
from geval_py.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What scores are of: two equal signatures mean the same scores. Printed, it is ``key:value|key:value…``.

    ``metrics`` are the evaluation schemes as they were written, ``bits`` their numbers of bits, None for a metric
    without; ``lines`` are those that the first metric scored. ``expected``, ``output``, ``input`` and ``vocabulary``
    are sha256 digests, in hexadecimal, of the lines that were read and of the words, ``header`` of the input's
    columns; None for what no metric needs. ``tokenizer`` names what split their lines, None for nothing. ``filters``
    is "raw" where lines were selected as they are, and text flags would have changed them. ``library`` is what the
    libraries sign with that compute scores; None where they sign none. ``version`` is geval-py's.
    """

    metrics: tuple[str, ...]
    bits: tuple[int | None, ...]
    lines: int
    expected: str | None
    output: str | None
    input: str | None = None
    header: str | None = None
    vocabulary: str | None = None
    tokenizer: str | None = None
    filters: str | None = None
    library: str | None = None
    version: str = __version__

    @classmethod
    def of(
        cls,
        scores: Sequence[MetricScore],
        *,
        expected: str | None,
        output: str | None,
        input: str | None = None,
        header: Sequence[str] | None = None,
        vocabulary: frozenset[str] = frozenset(),
        raw_filters: bool = False,
    ) -> Signature:
        """Sign scores (at least one) of files with these digests, a header's columns, and a vocabulary's words."""
        differ = raw_filters and any(score.scheme.selecting_flags and score.scheme.changes_lines for score in scores)
        return cls(
            metrics=tuple(score.scheme.text for score in scores),
            bits=tuple(score.metric.bits for score in scores),
            lines=scores[0].statistics.lines,
            expected=expected,
            output=output,
            input=input,
            header=None if header is None else _digest("\t".join(header)),
            vocabulary=_digest("\n".join(sorted(vocabulary))) if vocabulary else None,
            tokenizer=next((score.scheme.tokenizer for score in scores if score.scheme.tokenizer), None),
            filters="raw" if differ else None,
            library=library_signature(scores),
        )

    def __str__(self) -> str:
        parts = {
            "metric": ",".join(self.metrics),
            "bits": ",".join(str(bits or "-") for bits in self.bits),
            "lines": self.lines,
            "expected": self.expected,
            "output": self.output,
            "input": self.input,
            "header": self.header,
            "version": self.version,
            "vocabulary": self.vocabulary,
            "tokenizer": self.tokenizer,
            "filters": self.filters,
            "library": self.library,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items() if value is not None)


def library_signature(scores: Sequence[MetricScore]) -> str | None:
    """Give what the libraries sign with that compute some scores, ``;`` for the ``|`` in it; None for nothing."""
    signed = [score.metric.signature(score.statistics) for score in scores if score.metric.signature is not None]
    return ",".join(text.replace("|", ";") for text in signed) or None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
