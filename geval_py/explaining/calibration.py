"""Calibration: whether the probabilities of an output come true as often as they say.

Each figure is shown beside its *calibrated range*, in which it would lie for 95 % of calibrated outputs: those of
which each thing comes true as often as its probability says. At most one word of a line comes true, so the number of
hits is a sum of independent coins, one a line, and its mean and variance follow from the probabilities. If lines of a
document are alike, the range is at least as wide as the interval by document.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.significance import NORMAL, dot, sum_of
from geval_py.explaining.statistics import sums_by
from geval_py.reading.files import ANSWERS_ALONE
from geval_py.reading.outputs import output_at, short_names
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel.profile import COUNTS, EDGES, MASSES
from geval_py.scoring.metrics.base import NOISE, Array, Integers, exp, profile_of, profiled
from geval_py.tables.formats import Tabular
from geval_py.tables.numbers import fixed, significant
from geval_py.tables.table import Column, Table, named_columns, plain_table
from geval_py.text import counted, named, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.reports.charts import Chart


BINS = 10
FEW_LINES = 1000  # below which the range is computed from the distribution of the hits, not from a normal one
TAIL = 0.025  # on either side of the range


class PartTexts(NamedTuple):
    """The words for a part of the calibration: its name, the axes of its chart, and the words of its sentence."""

    name: str
    x_title: str
    y_title: str
    things: str
    expected: str
    did: str


PARTS = {
    "words": PartTexts(
        "all listed words", "probability given to a listed word", "share right",
        "listed words", "were expected to be right", "were",
    ),
    "guess": PartTexts(
        "the first guess", "probability given to the first guess", "share right",
        "first guesses", "were expected to be right", "were",
    ),
    "rest": PartTexts(
        "the rest", "rest of the line", "word not listed",
        "lines with a guess", "were expected not to list the answer", "did not",
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What ``n`` things claim and what was ``observed``, on average, with the calibrated range.

    95 % of calibrated outputs are between ``low`` and ``high``.
    """

    n: int
    claimed: float
    observed: float
    low: float
    high: float

    @property
    def is_calibrated(self) -> bool:
        """Whether what was observed is in the calibrated range."""
        return self.low <= self.observed <= self.high or math.isclose(self.claimed, self.observed, rel_tol=NOISE)

    @property
    def place(self) -> str:
        """Where what was observed is: "within" the calibrated range, or "outside"."""
        return "within" if self.is_calibrated else "outside"


@dataclass(frozen=True, kw_only=True)
class Reliability(Verdict):
    """The probabilities of ``n`` things, and the share of them that came true.

    ``bins`` have the same figures for things with similar probabilities, from low to high.
    """

    bins: tuple[Verdict, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per bin, and the columns ``n``, ``claimed``, ``observed``, ``low``, ``high``."""
        import pandas as pd

        return pd.DataFrame(list(self.bins))


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(Tabular):
    """How well an output's probabilities match the answers. Printed as a table and sentences.

    ``test`` is the name of the test set, ``file`` of the output, ``metric`` of the metric whose flags and bits hold;
    ``lines`` were scored, of which ``vectors`` are lines of buckets, which count for the claim only.

    ``claim`` compares the mean loss that the distributions expect of themselves with the actual one, in nats, on all
    lines but the ``infinite`` ones with an infinite loss; None if there are no other lines. ``words`` are all listed
    words; ``guess`` is the likeliest word of each line that lists any; ``rest`` is the mass of all other words on
    these lines, compared with how often the word was not listed. They are None if no line lists words. ``documents``
    is the column by whose documents the ranges are, None if they are by lines.
    """

    test: str
    file: str
    metric: str
    lines: int
    vectors: int
    infinite: int
    signature: str
    documents: str | None
    notes: tuple[str, ...]
    claim: Verdict | None
    words: Reliability | None
    guess: Reliability | None
    rest: Reliability | None

    def parts(self) -> dict[str, Reliability]:
        """Return the parts that have data, by the name of their attribute."""
        return {part: shares for part in PARTS if (shares := getattr(self, part)) is not None}

    def table(self) -> Table:
        rows = []
        for part, shares in self.parts().items():
            for n, *figures in map(astuple, shares.bins):
                claimed, observed, low, high = (fixed(share, 4) for share in figures)
                rows.append((PARTS[part].name, claimed, observed, f"[{low}, {high}]", str(n)))
        figures = named_columns(("claimed", "observed", "calibrated", "n"), "right")
        return Table([Column("part"), *figures], rows)

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines([(self.file, self.signature)])

    def records(self) -> Table:
        rows = ([PARTS[part].name, *astuple(row)] for part, shares in self.parts().items() for row in shares.bins)
        return plain_table(["part", "n", "claimed", "observed", "low", "high"], rows)

    def legend(self) -> Iterator[str]:
        (name,) = short_names([output_at(self.file)])
        yield f"{visible(name)}: {visible(self.metric)}, {counted(self.lines, 'line')} of {visible(self.test)}"
        yield "calibrated: the range in which 95 % of calibrated outputs lie."
        yield ""
        yield from self.sentences()

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each part: what the output claims, and what came true."""
        if self.claim is None:
            yield "The loss of every line is infinite, so the claimed perplexity cannot be checked."
        else:
            yield claim_sentence(self.claim)
            if self.infinite:
                yield f"This leaves out {counted(self.infinite, 'line')} with an infinite loss."
        if self.documents is not None:
            yield f"The calibrated ranges are computed by document ({visible(self.documents)})."
        if self.vectors:
            yield f"What follows leaves out {counted(self.vectors, 'line')} of buckets, which list no words."
        for part, shares in self.parts().items():
            texts, figures = PARTS[part], (shares.claimed, shares.observed, shares.low, shares.high)
            claimed, observed, low, high = (fixed(100 * share, 1) for share in figures)
            said = f"{claimed} % {texts.expected}, and {observed} % {texts.did}"
            yield f"Of {shares.n} {texts.things}, {said} ({shares.place} the calibrated range, {low} to {high} %)."

    def chart(self, part: str = "words") -> Chart:
        """Draw what was observed against the probabilities of a part ("words", "guess" or "rest"), with the range.

        Raises UsageError for another name, and if no line lists a word.
        """
        from geval_py.reports.charts import reliability

        if part not in PARTS:
            raise UsageError(f"there is no part {visible(part)!r}: the parts are {', '.join(PARTS)}")
        if part not in self.parts():
            raise UsageError("there is nothing to draw: no line lists a word")
        texts, bins = PARTS[part], self.parts()[part].bins
        return reliability(bins, x_title=texts.x_title, y_title=texts.y_title, logarithmic=part == "words")


def calibration(evaluation: scores.Evaluation, *, documents: DocumentsBy = None) -> Calibration:
    """Compare an output's probabilities with the answers.

    The output is scored again, with the flags and bits of the evaluation's first metric on hashed words. The
    calibrated ranges are by ``documents``, as in :func:`geval_py.compare`.

    Raises UsageError if there is no such metric; DataError if the files have changed and are malformed.
    """
    schemes = calibration_schemes(schemes_of(evaluation))
    again = evaluate.evaluate_output(evaluation.split, evaluation.output, schemes, frozenset())
    return calibration_of(again, documents=documents)


def calibration_schemes(schemes: Sequence[evaluate.Named]) -> list[evaluate.Named]:
    """Return the metric that :func:`calibration_of` needs, made from the first one on hashed words."""
    scheme, metric = hashed_scheme(schemes)
    return [(scheme, profiled(metric))]


def calibration_of(evaluation: scores.Evaluation, *, documents: DocumentsBy = None) -> Calibration:
    """Compute the calibration of an output that was scored with :func:`calibration_schemes`."""
    if evaluation.output.file.lists_answers_alone:
        raise UsageError(f"{named(evaluation.output.path)} has no calibration: {ANSWERS_ALONE}")
    score = evaluation.scores[0]
    profile = profile_of(score.statistics)
    finite, lists = np.isfinite(profile["loss"]), profile["words"] > 0
    of_file = choose_documents(evaluation, documents)
    grouped = of_file and of_file.of_score(score).several()
    of_finite, of_lists = (grouped and grouped.of_line[lines] for lines in (finite, lists))
    claim = words = guess = rest = None
    if finite.any():
        entropies, losses, variances = (profile[name][finite] for name in ("entropy", "loss", "variance"))
        half = NORMAL * math.sqrt(sum_of(variances))
        middle = sum_of(entropies)
        claim = _verdict(len(losses), entropies, losses, (middle - half, middle + half), of_finite)
    if lists.any():
        listing = {name: column[lists] for name, column in profile.items()}
        words = _words_reliability(listing, of_lists)
        guess = _reliability(listing["guess_mass"], listing["guess_right"], of_lists)
        rest = _reliability(listing["rest"], 1 - listing["listed"], of_lists)
    return Calibration(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=score.name,
        lines=len(finite),
        vectors=int(profile["vector"].sum()),
        infinite=int((~finite).sum()),
        signature=evaluation.signature,
        documents=grouped and grouped.column,
        notes=tuple(notes_on_documents(of_file)),
        claim=claim,
        words=words,
        guess=guess,
        rest=rest,
    )


def _words_reliability(profile: Mapping[str, Array], documents: Integers | None) -> Reliability:
    """Compare the words that lines list with the answers, in the bins of profiles."""
    bin_of_word = np.searchsorted(EDGES, profile["word_mass"], side="right")
    bins = [
        _share(sum_of(profile[counts]), profile[masses], profile["listed"] * (bin_of_word == place), documents)
        for place, (masses, counts) in enumerate(zip(MASSES, COUNTS, strict=True))
        if profile[counts].any()
    ]
    every_word = _share(sum_of(profile["words"]), 1 - profile["rest"], profile["listed"], documents)
    return Reliability(**vars(every_word), bins=tuple(bins))


def _reliability(probabilities: Array, outcomes: Array, documents: Integers | None) -> Reliability:
    """Compare the probability of a thing on each line with its outcome, in bins of about equally many lines."""
    bin_of_line = np.searchsorted(np.quantile(probabilities, np.arange(1, BINS) / BINS), probabilities)
    bins = [
        _share(sum_of(here), probabilities * here, outcomes * here, documents)
        for here in (bin_of_line == place for place in np.unique(bin_of_line))
    ]
    every_line = _share(len(outcomes), probabilities, outcomes, documents)
    return Reliability(**vars(every_line), bins=tuple(bins))


def _share(n: float, probabilities: Array, outcomes: Array, documents: Integers | None) -> Verdict:
    """Compare the probability that one of the things of a line comes true with whether one did; there are ``n``."""
    ends = hits_range(probabilities.clip(0.0, 1.0))
    return _verdict(int(n), probabilities, outcomes, ends, documents, most=n)


def hits_range(probabilities: Array) -> tuple[float, float]:
    """Return the 95 % range of the number of independent things that come true with these probabilities.

    For few things, the distribution of the number is computed (it is the Poisson binomial), and the range holds the
    numbers of which no tail, half of the number itself included, is below 2.5 %.

    >>> hits_range(np.full(20, 0.5)), hits_range(np.array([0.0, 1.0, 1.0]))
    ((6.0, 14.0), (2.0, 2.0))
    """
    probabilities = probabilities[probabilities > 0.0]
    if len(probabilities) >= FEW_LINES:
        middle, half = sum_of(probabilities), NORMAL * math.sqrt(dot(probabilities, 1 - probabilities))
        return middle - half, middle + half
    chances = np.ones(1)
    for probability in probabilities.tolist():
        chances = np.convolve(chances, (1 - probability, probability))
    below = np.cumsum(chances) - chances / 2
    inside = np.flatnonzero((below >= TAIL) & (below <= 1 - TAIL))
    return float(inside[0]), float(inside[-1])


def _verdict(
    n: int,
    claimed: Array,
    observed: Array,
    ends: tuple[float, float],
    documents: Integers | None,
    most: float = math.inf,
) -> Verdict:
    """Compare sums over lines, which are at most ``most``; the ``ends`` of the range are those by line."""
    middle, (low, high) = sum_of(claimed), ends
    if documents is not None:  # the residuals of a calibrated output have the mean 0, not their own
        residuals = sums_by(documents, observed - claimed)
        half = NORMAL * math.sqrt(dot(residuals, residuals))
        low, high = min(low, middle - half), max(high, middle + half)
    return Verdict(
        n=n, claimed=middle / n, observed=sum_of(observed) / n, low=max(0.0, low) / n, high=min(most, high) / n
    )


def claim_sentence(claim: Verdict) -> str:
    """Return the sentence on the perplexity that an output claims and gets, and on its over- or underconfidence."""
    losses = claim.claimed, claim.observed, claim.low, claim.high
    claimed, observed, low, high = (significant(exp(loss), 3) for loss in losses)
    told = f"It claims a perplexity of {claimed} and gets {observed}"
    told += f" ({claim.place} the calibrated range, {low} to {high})"
    gap = claim.observed - claim.claimed
    how = "overconfident" if gap > 0 else "underconfident"
    return f"{told}." if claim.is_calibrated else f"{told}: it is {how}, by {fixed(abs(gap), 3)} nats a word."


def hashed_scheme(schemes: Sequence[evaluate.Named]) -> evaluate.Named:
    """Return the first metric on hashed words; raises UsageError if there is none."""
    for scheme, metric in schemes:
        if metric.bits is not None:
            return scheme, metric
    names = ", ".join(scheme.text for scheme, _ in schemes)
    raise UsageError(f"this needs a metric on hashed words, such as PerplexityHashed, not {visible(names)}")


def schemes_of(evaluation: scores.Evaluation) -> list[evaluate.Named]:
    """Return an evaluation's metrics; raises UsageError for anything else, such as a path."""
    return [(score.scheme, score.metric) for score in scores.checked_evaluation(evaluation).scores]
