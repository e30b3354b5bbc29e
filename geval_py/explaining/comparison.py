"""Compare outputs of one test set: whether one is better than another, or was lucky.

    evaluations ──> line statistics, a table a system ──> differences, tests, groups

All is computed on the first metric. The tests are described in :mod:`geval_py.explaining.statistics.paired`, the
groups in :mod:`geval_py.explaining.statistics.groups`.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from geval_py.errors import UsageError
from geval_py.explaining.statistics.groups import LEVEL, samples_needed
from geval_py.reading.outputs import Output, by_accepted_names, unique_names
from geval_py.reading.sampling import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.evaluation import Evaluation, checked_evaluation
from geval_py.scoring.parallel import Progress
from geval_py.scoring.score import Score
from geval_py.text import named, nearest, shown, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.statistics.systems import Ranking, System

FEW_LINES = 20

Baseline: TypeAlias = "str | os.PathLike[str] | SupportsIndex | None"  # a name or path, an index, or the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Systems on the same lines, the best first; printed, or in Jupyter, as a table.

    ``test`` is the test set's name; ``metric``, ``unit`` and ``direction`` say what the scores are. Of ``lines``
    lines, ``compared`` are those on which every system's statistics, such as its loss, are finite. ``groups`` are the
    greatest sets of systems, by name, of which no two can be told apart (approximate randomisation of all pairs,
    Holm's correction, 5 %). Where whole documents were drawn, ``documents`` is the column that tells them, and
    ``compared_documents`` how many they are. ``notes`` are warnings, for people. ``of_losses`` tells that lines are
    compared by their losses, rather than by other statistics.
    """

    test: str
    metric: str
    unit: str
    direction: str
    lines: int
    compared: int
    baseline: str
    samples: int
    seed: int
    documents: str | None
    compared_documents: int | None
    systems: tuple[System, ...] = field(repr=False)
    groups: tuple[tuple[str, ...], ...] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    of_losses: bool = field(repr=False)

    def __str__(self) -> str:
        from geval_py.showing.comparison import comparison_text

        return comparison_text(self, notes=True).removesuffix("\n")

    def _repr_html_(self) -> str:
        from geval_py.showing.comparison import comparison_html

        return comparison_html(self)

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a system, in the same order; an interval is two columns, low and high.

        The column ``groups`` holds the numbers, from 0, of the groups that the system is in.
        """
        import pandas as pd

        return pd.DataFrame([self.row(system) for system in self.systems])

    def row(self, system: System) -> dict[str, Any]:
        """Give a system's row of that table."""
        versus = system.difference_interval
        return {
            "system": system.name,
            "score": system.score,
            "low": system.interval.low,
            "high": system.interval.high,
            "infinite": system.infinite,
            "finite_score": system.finite_score,
            "difference": system.difference,
            "difference_low": versus.low if versus else None,
            "difference_high": versus.high if versus else None,
            "p_bootstrap": system.p_bootstrap,
            "p_randomisation": system.p_randomisation,
            "won": system.won,
            "lost": system.lost,
            "tied": system.tied,
            "groups": tuple(n for n, group in enumerate(self.groups) if system.name in group),
        }

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows; values may be inf."""
        values = {known.name: getattr(self, known.name) for known in fields(self) if known.name != "of_losses"}
        return values | {"systems": [system.to_dict() for system in self.systems]}


def compare(
    evaluations: Iterable[Evaluation],
    *,
    baseline: Baseline = None,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    documents: str | int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two evaluations or more with a baseline, and all with each other.

    ``baseline`` is an output's name or path, its index (by default the first), or a shorter name that is that of
    one output alone: ``"model=unigram"`` or ``"unigram"`` for ``out-model=unigram.tsv``. ``samples`` is the number
    of resamples of the lines for the intervals and the bootstrap test, and of exchanges for approximate
    randomisation; ``seed`` that of the random numbers; ``progress`` is called now and then.

    With ``documents``, a column of the input (its name or number, from 1), lines on which it is the same belong
    together: intervals are by documents, and the tests draw, or swap, whole ones. Lines on which some system's loss
    is infinite are counted, and left out of the differences and tests, but not of the shares won, lost and tied.

    Raises UsageError for fewer than two evaluations, what is none, different answers or metrics, a baseline, column,
    samples or seed that cannot be, a single document; LineCountError for different numbers of lines.
    """
    from geval_py.explaining.statistics.systems import Systems

    check_sampling(samples, seed)
    evaluations = tuple(map(checked_evaluation, evaluations))
    if len(evaluations) < 2:
        raise UsageError(message=f"a comparison takes two outputs or more; there is {len(evaluations) or 'none'}")
    check_comparable(evaluations)
    outputs = [evaluation.output for evaluation in evaluations]
    names = unique_names(outputs)
    index = _find_baseline(baseline, names, outputs)
    grouped = _documents(evaluations[0], documents)
    ranking = Systems(
        metric=evaluations[0].scores[0].metric,
        names=names,
        statistics=[evaluation.scores[0].statistics for evaluation in evaluations],
        baseline=index,
        samples=samples,
        seed=seed,
        documents=grouped and grouped.several(),
        progress=progress,
    ).rank()
    return _comparison(evaluations, names, names[index], ranking, samples=samples, seed=seed, documents=grouped)


def _documents(evaluation: Evaluation, column: str | int | None) -> Documents | None:
    from geval_py.explaining.documents import documents_of

    return None if column is None else documents_of(evaluation, column)


def _comparison(
    evaluations: Sequence[Evaluation],
    names: Sequence[str],
    baseline: str,
    ranking: Ranking,
    *,
    samples: int,
    seed: int,
    documents: Documents | None,
) -> Comparison:
    first = evaluations[0].scores[0]
    signatures = {name: of.signature for name, of in zip(names, evaluations, strict=True)}
    return Comparison(
        test=evaluations[0].split.name,
        metric=first.name,
        unit=first.unit,
        direction=first.direction,
        lines=evaluations[0].line_count,
        compared=ranking.lines,
        baseline=baseline,
        samples=samples,
        seed=seed,
        documents=None if ranking.documents is None or documents is None else documents.column,
        compared_documents=ranking.documents,
        systems=tuple(replace(system, signature=signatures[system.name]) for system in ranking.systems),
        groups=ranking.groups,
        notes=(*_document_notes(documents, ranking), *_notes(evaluations, ranking, samples)),
        of_losses=first.metric.measure.of_losses,
    )


def check_comparable(evaluations: Sequence[Evaluation]) -> None:
    """Raise UsageError for evaluations (at least one) with different answers or metrics, LineCountError for lines."""
    first = evaluations[0]
    for other in evaluations[1:]:
        both = f"{named(first.output.path)} and {named(other.output.path)} were scored with different"
        if os.path.realpath(first.split.expected) != os.path.realpath(other.split.expected):
            answers = f"{named(first.split.expected)} and {named(other.split.expected)}"
            raise UsageError(message=f"{both} answers: {answers}")
        if _what_is_scored(first.scores[0]) != _what_is_scored(other.scores[0]):
            metrics = f"{first.scores[0].scheme.text} and {other.scores[0].scheme.text}"
            raise UsageError(message=f"{both} metrics: {visible(metrics)}")
        first.check_same_lines(other)


def _what_is_scored(score: Score) -> tuple[object, ...]:
    scheme = score.scheme
    return score.metric.name, scheme.text_flags, scheme.tokenizer, scheme.selecting_flags


def _find_baseline(baseline: Baseline, names: Sequence[str], outputs: Sequence[Output]) -> int:
    if baseline is None:
        return 0
    if isinstance(baseline, str | os.PathLike):
        return _find_name(os.fspath(baseline), names, outputs)
    index = _index(baseline)
    if not 0 <= index < len(names):
        raise UsageError(message=f"there is no output {index}: they are numbered from 0 to {len(names) - 1}")
    return index


def _index(baseline: SupportsIndex) -> int:
    """Give an index, be it numpy's; raises UsageError for what is none."""
    try:
        if not isinstance(baseline, bool):
            return operator.index(baseline)
    except TypeError:
        pass
    raise UsageError(message=f"the baseline is an output's name or its index, not {shown(baseline)}")


def _find_name(baseline: str, names: Sequence[str], outputs: Sequence[Output]) -> int:
    called = by_accepted_names(names, outputs)
    found = called.get(baseline) or called.get(os.path.normpath(baseline), [])
    if len(found) == 1:
        return found[0]
    if found:
        several = visible(", ".join(names[n] for n in found))
        raise UsageError(message=f"`{visible(baseline)}` names {len(found)} of the outputs compared\n  {several}")
    accepted = [name for name, indices in called.items() if len(indices) == 1]
    raise UsageError(message=_unknown_baseline(baseline, names, accepted))


def _unknown_baseline(baseline: str, names: Sequence[str], accepted: Sequence[str]) -> str:
    close = nearest(baseline, accepted)
    advice = f"did you mean {visible(close)}? " if close else ""
    return f"`{visible(baseline)}` is none of the outputs compared\n  {advice}there are {visible(', '.join(names))}"


def _document_notes(documents: Documents | None, ranking: Ranking) -> Iterator[str]:
    if documents is not None and documents.are_lines:
        yield documents.nothing_gained
    few = ranking.documents
    if few is not None and 2 ** (1 - few) > LEVEL:
        yield f"{few} document{'s' if few > 1 else ''}: of so few, p rand cannot be below {2 ** (1 - few):g}"


def _notes(evaluations: Sequence[Evaluation], ranking: Ranking, samples: int) -> Iterator[str]:
    lines, systems, compared = evaluations[0].line_count, len(evaluations), ranking.lines
    pairs = systems * (systems - 1) // 2
    unknown = max(evaluation.out_of_vocabulary for evaluation in evaluations)
    what = "loss" if evaluations[0].scores[0].metric.measure.of_losses else "score"
    infinite = f"the {what} of {lines - compared} of {lines} lines is infinite for some system"
    for *others, last in ranking.equal:
        yield f"{visible(', '.join(others))} and {visible(last)} have the same {what} on every line"
    if compared == 0:
        yield f"{infinite}: no line is left for differences and tests"
    elif compared < lines:
        yield f"{infinite}: the differences and tests are of the other {compared}"
    if unknown and compared < lines:
        yield (
            f"{unknown} of {lines} expected words are not in the vocabulary; where an output does not list them, "
            "its loss is infinite"
        )
    if 0 < compared < FEW_LINES:
        yield f"{compared} line{'s' if compared > 1 else ''}: a test on so few means little"
    if samples < samples_needed(pairs):
        yield (
            f"{samples} samples are too few for any of {pairs} pairs to be told apart: take {samples_needed(pairs)} "
            "or more"
        )
