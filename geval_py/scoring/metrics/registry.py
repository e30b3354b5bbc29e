"""The tables of all metrics but those on hashed words, and of the families of metrics that a number parametrises.

A function of a line computes a metric's statistics; it stands in the module of its kind (``exact``, ``classes``,
``distributions``, ``translation``, …). Metrics of a family are made on request, such as F2 beside F1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, TypeAlias

from geval_py.reading.schemes import DEFAULT_BITS, LEAST_BITS, MOST_BITS
from geval_py.scoring.metrics import classes, distributions, exact, labels, rectangles, regression, spans, tags
from geval_py.scoring.metrics import translation as texts
from geval_py.scoring.metrics.base import (
    ACCURACY,
    CROSS_ENTROPY,
    LIKELIHOOD,
    LOG_LOSS,
    PERPLEXITY,
    CorpusScore,
    Elementwise,
    Formula,
    Measure,
    Metric,
    Partial,
    first_total,
)
from geval_py.scoring.metrics.columns import RowColumn, number_of
from geval_py.scoring.metrics.matching import MATCHINGS, answer_distance, matched_counts, matched_f
from geval_py.tables.numbers import shortest

_DISTANCES, _SCIPY = ("rapidfuzz.distance",), ("scipy",)  # scipy.optimize takes longer to import

_Words = partial(Metric, needs_vocabulary=True, column=RowColumn(exact.word_loss, beside="out_of_vocabulary"))
_Entries = partial(Metric, is_of_words=False, has_entries=True, parse=distributions.entries_of)
_Labels = partial(_Entries, has_classes=True, labels="one")
_Metric = partial(Metric, is_of_words=False)
_Tokens = partial(_Metric, is_tokenised=True)
_Numbers = partial(_Metric, parse=number_of)


def _higher(
    formula: Formula, *columns: str, unit: str = "share", best: float = 1.0, worst: float = 0.0,
    corpus_score: CorpusScore | None = None,
) -> Measure:  # fmt: skip
    return Measure(unit=unit, direction="higher", best=best, worst=worst, formula=formula, columns=columns,
                   corpus_score=corpus_score)  # fmt: skip


def _lower(formula: Formula, *columns: str, unit: str, worst: float = inf) -> Measure:
    return Measure(unit=unit, direction="lower", best=0.0, worst=worst, formula=formula, columns=columns)


def _corpus_level(score: CorpusScore, *columns: str, **more: Any) -> Measure:
    return _higher(first_total, *columns, corpus_score=score, **more)


def _mean(totals: Sequence[Any], lines: Any) -> Any:
    (total,) = totals
    return total / lines


def _rest(totals: Sequence[Any], lines: Any) -> Any:
    return 1 - totals[0] / lines


def _mean_gap(totals: Sequence[Any], lines: Any) -> Any:
    first, *others = map(abs, totals)
    return sum(others, start=first) / lines


_COUNTS = ("right", "expected", "given")


def _f_measure(beta: float) -> Measure:
    return _higher(Elementwise(Partial(classes.f_score, (beta,))), *_COUNTS)


def _probabilistic(beta: float) -> Measure:
    return _corpus_level(Partial(labels.probabilistic_f, (beta,)), "mass", "expected")


# Families


def _hit(first: int, name: str) -> Metric:
    return _Entries(name=name, column=RowColumn(Partial(distributions.miss_of_first, (first,))), measure=ACCURACY,
                    summary="share of lines whose answer is among the first guesses")  # fmt: skip


def _keystrokes(first: int, name: str) -> Metric:
    return _Entries(name=name, column=RowColumn(Partial(distributions.keystrokes, (first,)), 2),
                    measure=_higher(Elementwise(classes.share), "saved", "characters"),
                    summary="share of characters that need not be typed")  # fmt: skip


def _cross_entropy(bits: int, name: str) -> Metric:
    return _Entries(name=name, answers="shares", measure=CROSS_ENTROPY,
                    column=RowColumn(Partial(distributions.norm_cross_entropy, (bits,))),
                    summary="mean loss of all answers, by their shares")  # fmt: skip


def _divergence(bits: int, name: str) -> Metric:
    return _Entries(name=name, answers="shares", measure=CROSS_ENTROPY,
                    column=RowColumn(Partial(distributions.norm_divergence, (bits,))),
                    summary="mean divergence from the shares of all answers")  # fmt: skip


def _calibration(bins: int, name: str) -> Metric:
    gaps = (f"gap_{place}" for place in range(1, bins + 1))
    return _Labels(name=name, column=RowColumn(Partial(distributions.confidence_gap, (bins,)), bins),
                   measure=_lower(_mean_gap, *gaps, unit="probability", worst=1.0),
                   summary="distance of the best guess's probability from the share of hits")  # fmt: skip


def _f(beta: float, name: str) -> Metric:
    return _Metric(name=name, column=RowColumn(classes.detection, 3), measure=_f_measure(beta),
                   parse=classes.is_given, summary="F-score of the class 1")  # fmt: skip


def _macro_f(beta: float, name: str) -> Metric:
    return _Metric(name=name, column=RowColumn(classes.classes, beside="details"), has_classes=True, labels="one",
                   measure=_corpus_level(Partial(classes.macro_f, (beta,)), "hit"),
                   summary="mean of the F-scores of the expected classes")  # fmt: skip


def _label_f(beta: float, name: str) -> Metric:
    return _Tokens(name=name, column=RowColumn(labels.label_counts, 3), measure=_f_measure(beta), labels="several",
                   summary="F-score of the labels of all lines")  # fmt: skip


def _mean_label_f(beta: float, name: str) -> Metric:
    return _Tokens(name=name, column=RowColumn(Partial(labels.label_f, (beta,))), measure=_higher(_mean, "score"),
                   labels="several", summary="mean of the F-scores of each line's labels")  # fmt: skip


def _probabilistic_f(beta: float, name: str) -> Metric:
    return _Tokens(name=name, labels="several", column=RowColumn(labels.probable_counts, 2, beside="details"),
                   needs=_SCIPY, has_curve=True, measure=_probabilistic(beta),
                   summary="the same of labels with probabilities: calibration and recall")  # fmt: skip


def _ndcg(first: int, name: str) -> Metric:
    return _Metric(name=name, answers="all", column=RowColumn(Partial(labels.discounted_gain, (first,))),
                   measure=_higher(_mean, "gain"), summary="mean discounted gain of the first items")  # fmt: skip


def _soft_f(beta: float, name: str) -> Metric:
    return _Metric(name=name, column=RowColumn(spans.soft_counts, 3), needs=_SCIPY, measure=_f_measure(beta),
                   parse=spans.given_annotations, has_free_input=True,
                   summary="F-score of annotations, as far as their positions agree")  # fmt: skip


def _probabilistic_soft_f(beta: float, name: str) -> Metric:
    return _Tokens(name=name, column=RowColumn(spans.probable_soft_counts, 2, beside="details"), needs=_SCIPY,
                   parse=spans.given_annotations, has_free_input=True, has_curve=True, measure=_probabilistic(beta),
                   summary="the same of annotations with probabilities: calibration and recall")  # fmt: skip


def _flc_f(beta: float, name: str) -> Metric:
    columns = "expected_covered", "given_covered", "expected", "given"
    return _Metric(name=name, column=RowColumn(spans.fragment_counts, 4), parse=spans.given_annotations,
                   measure=_higher(Elementwise(Partial(spans.fragment_f, (beta,))), *columns),
                   summary="F-score of annotations, by how much of each the others cover")  # fmt: skip


def _soft_2d_f(beta: float, name: str) -> Metric:
    return _Metric(name=name, column=RowColumn(Partial(rectangles.soft_2d_f, (beta,))),
                   measure=_higher(_mean, "score"), parse=rectangles.given_rectangles, has_free_input=True,
                   summary="mean of the F-scores of the area of each line's rectangles")  # fmt: skip


def _probabilistic_soft_2d_f(beta: float, name: str) -> Metric:
    return _Tokens(name=name, column=RowColumn(rectangles.probable_soft_2d_counts, 2, beside="details"),
                   needs=_SCIPY, parse=rectangles.given_rectangles, has_curve=True, measure=_probabilistic(beta),
                   summary="F-score of rectangles with probabilities: calibration and recall")  # fmt: skip


def _improvement(threshold: float, name: str) -> Metric:
    measure = _corpus_level(Partial(regression.improvement, (threshold,)), "expected", "output", unit="answers' unit",
                            best=inf, worst=-inf)  # fmt: skip
    return _Numbers(name=name, column=RowColumn(regression.numbers_of, 2), measure=measure,
                    summary="mean answer of the lines that the output selects, less that of all lines")  # fmt: skip


# By the name before a number: the function that makes the metric of that number, and the numbers there are: whole
# ones of a range, or any from a least one on.
Family: TypeAlias = tuple[Callable[[Any, str], Metric], "range | float"]
_COUNTABLE, _BITS = range(1, 1_000_000_000), range(LEAST_BITS, MOST_BITS + 1)
FAMILIES: dict[str, Family] = {
    "Hit@": (_hit, _COUNTABLE),
    "KeystrokesSaved@": (_keystrokes, _COUNTABLE),
    "CrossEntropyToNormsHashed": (_cross_entropy, _BITS),
    "KullbackLeiblerHashed": (_divergence, _BITS),
    "CalibrationError": (_calibration, range(1, 101)),
    "F": (_f, 0.0),
    "Macro-F": (_macro_f, 0.0),
    "MultiLabel-F": (_label_f, 0.0),
    "Mean/MultiLabel-F": (_mean_label_f, 0.0),
    "Probabilistic-MultiLabel-F": (_probabilistic_f, 0.0),
    "NDCG@": (_ndcg, _COUNTABLE),
    "Soft-F": (_soft_f, 0.0),
    "Probabilistic-Soft-F": (_probabilistic_soft_f, 0.0),
    "FLC-F": (_flc_f, 0.0),
    "Soft2D-F": (_soft_2d_f, 0.0),
    "Probabilistic-Soft2D-F": (_probabilistic_soft_2d_f, 0.0),
    "Improvement@": (_improvement, -inf),
}
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?\Z")


def _split_number(name: str) -> tuple[str, str, Family] | None:
    """Split a name of a family's metric into the name before its number, the number, and the family."""
    number = _NUMBER.search(name)
    family = FAMILIES.get(name[: number.start()]) if number else None
    if number is None or family is None:
        return None
    _, numbers = family
    if isinstance(numbers, range):
        is_one = number[0].isdecimal() and int(number[0]) in numbers
    else:
        is_one = numbers < 0 or not number[0].startswith("-")
    return (name[: number.start()], number[0], family) if is_one else None


def find_in_family(name: str) -> Metric | None:
    """Make the metric of a name that ends in a number of its family; None if there is none."""
    parts = _split_number(name)
    if parts is None:
        return None
    _, number, (make, numbers) = parts
    return make(int(number) if isinstance(numbers, range) else float(number), name)


def _one(name: str) -> Metric:
    metric = find_in_family(name)
    assert metric is not None
    return metric


# Tables


def _of_sacrebleu(name: str, summary: str, *columns: str) -> Metric:
    score = Elementwise(Partial(texts.sacre_score, (name,)))
    is_rate = name == "TER"
    measure = (
        _lower(score, *columns, unit="percent") if is_rate else _higher(score, *columns, unit="points", best=100.0)
    )
    return _Metric(name=name, column=texts.SacreColumn(name), answers="any", needs=("sacrebleu",), measure=measure,
                   summary=summary, signature=Partial(texts.sacre_signature, (name,)))  # fmt: skip


_BLEU_COUNTS = (*(f"right_{n}" for n in range(1, 5)), "reference_words", *(f"all_{n}" for n in range(1, 5)))
_SACRE_COUNTS = ("references", "words", "reference_words", *_BLEU_COUNTS[:4], *_BLEU_COUNTS[5:])
_CHARACTERS = tuple(f"{what}_{n}" for n in range(1, 7) for what in ("all", "reference", "right"))
_WORDS_TOO = (*_CHARACTERS, *(f"{what}_words_{n}" for n in (1, 2) for what in ("all", "reference", "right")))
_WORD_EDITS = partial(_Tokens, column=RowColumn(texts.word_errors, 2), needs=_DISTANCES)
_CHARACTER_EDITS = partial(_Tokens, column=RowColumn(texts.character_errors, 2), needs=_DISTANCES)
_WORD_RATES = partial(_Tokens, column=RowColumn(texts.word_error_rate), needs=_DISTANCES)
_CHARACTER_RATES = partial(_Tokens, column=RowColumn(texts.character_error_rate), needs=_DISTANCES)
_ERRORS, _RIGHT = Elementwise(texts.errors), Elementwise(texts.right)
_PER_WORD, _PER_CHARACTER = "per word", "per character"
_ROOT = Elementwise(regression.root_mean)
_INTERVALS = partial(_Numbers, perfect=regression.lower_bound)

_ON_EXACT_WORDS = "the same, on exact words and a vocabulary"
_EXACT_METRICS = (
    _Words(name="Likelihood", measure=LIKELIHOOD, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _Words(name="LogLoss", measure=LOG_LOSS, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _Words(name="Perplexity", measure=PERPLEXITY, summary=_ON_EXACT_WORDS),
    _Words(name="CrossEntropy", measure=CROSS_ENTROPY, summary=_ON_EXACT_WORDS),
    _Numbers(name="MacroAvg/Likelihood", column=RowColumn(exact.binary_loss, beside="classes"), measure=LIKELIHOOD,
             summary="mean of the likelihoods of the expected classes"),
    _Metric(name="Accuracy", column=RowColumn(exact.miss), measure=ACCURACY, labels="one",
            summary="share of lines whose best guess is right"),
)  # fmt: skip
_DISTRIBUTION_METRICS = (
    _one("Hit@3"),
    _Entries(name="MRR", column=RowColumn(distributions.reciprocal_rank), measure=_higher(_mean, "reciprocal_rank"),
             summary="mean reciprocal rank of the answer"),
    _one("KeystrokesSaved@3"),
    _Entries(name="ChoiceAccuracy", needs_input=True, column=RowColumn(distributions.choice_miss, inputs=()),
             measure=ACCURACY, labels="one", summary="share of lines whose likeliest option is right"),
    _Entries(name="ChoiceLogLoss", needs_input=True, column=RowColumn(distributions.choice_loss, inputs=()),
             measure=LOG_LOSS, summary="mean loss of the right option, among the options"),
    _cross_entropy(DEFAULT_BITS, "CrossEntropyToNormsHashed"),
    _divergence(DEFAULT_BITS, "KullbackLeiblerHashed"),
    _Entries(name="RankCorrelation", answers="shares", column=RowColumn(distributions.rank_correlation, 2),
             measure=_higher(Elementwise(distributions.mean_correlation), "correlation", "ranked",
                             unit="correlation", worst=-1.0),
             summary="mean rank correlation with the shares of a line's answers"),
    _Labels(name="BrierScore", needs_vocabulary=True, column=RowColumn(distributions.brier_score),
            measure=_lower(_mean, "squared_distance", unit="squared probability", worst=2.0),
            summary="mean squared distance of all labels' probabilities"),
    _calibration(10, "CalibrationError"),
    _Entries(name="LogSkillScore", needs_input=True, column=RowColumn(distributions.relative_loss, 2, inputs=()),
             measure=_higher(Elementwise(distributions.skill), "loss", "baseline_loss", worst=-inf),
             summary="share of a baseline's loss that is avoided"),
)  # fmt: skip
_TEXT_METRICS = (
    _Tokens(name="BLEU", answers="any", column=RowColumn(texts.bleu_row, 9),
            measure=_higher(Elementwise(texts.bleu), *_BLEU_COUNTS), summary="precision of n-grams, as GEval has it"),
    _Tokens(name="GLEU", answers="any", column=RowColumn(texts.gleu_row, 2),
            measure=_higher(Elementwise(classes.share), "right", "all"), summary="share of n-grams that are right"),
    _of_sacrebleu("SacreBLEU", "sacreBLEU's BLEU, with its tokens and smoothing", *_SACRE_COUNTS),
    _of_sacrebleu("chrF", "sacreBLEU's F-score of character n-grams", "references", *_CHARACTERS),
    _of_sacrebleu("chrF++", "the same, with words and pairs of words", "references", *_WORDS_TOO),
    _of_sacrebleu("TER", "sacreBLEU's translation edit rate", "references", "edits", "words"),
    _WORD_EDITS(name="WER", summary="word error rate", measure=_lower(_ERRORS, "edits", "words", unit=_PER_WORD)),
    _CHARACTER_EDITS(name="CER", summary="character error rate",
                     measure=_lower(_ERRORS, "edits", "characters", unit=_PER_CHARACTER)),
    _WORD_EDITS(name="WAR", summary="1 minus the word error rate",
                measure=_higher(_RIGHT, "edits", "words", worst=-inf)),
    _CHARACTER_EDITS(name="CAR", summary="1 minus the character error rate",
                     measure=_higher(_RIGHT, "edits", "characters", worst=-inf)),
    _WORD_RATES(name="Mean/WER", summary="mean of the lines' WER", measure=_lower(_mean, "rate", unit=_PER_WORD)),
    _CHARACTER_RATES(name="Mean/CER", summary="mean of the lines' CER",
                     measure=_lower(_mean, "rate", unit=_PER_CHARACTER)),
    _WORD_RATES(name="Mean/WAR", summary="mean of the lines' WAR", measure=_higher(_rest, "rate", worst=-inf)),
    _CHARACTER_RATES(name="Mean/CAR", summary="mean of the lines' CAR", measure=_higher(_rest, "rate", worst=-inf)),
    _Tokens(name="CharMatch", column=RowColumn(texts.corrections, 3, inputs=()), needs=_DISTANCES, needs_input=True,
            summary="F0.5 of the corrections of the input", measure=_f_measure(0.5)),
    _one("F1"),
    _one("Macro-F1"),
    _Metric(name="NMI", column=RowColumn(classes.clusters, beside="details"),
            measure=_corpus_level(classes.mutual_information, "equal"),
            summary="normalised mutual information of the classes expected and given"),
    _one("MultiLabel-F1"),
    _one("Mean/MultiLabel-F1"),
    _one("Probabilistic-MultiLabel-F1"),
    _Metric(name="MultiLabel-LogLoss", column=RowColumn(labels.label_loss), measure=LOG_LOSS,
            labels="several", summary="mean loss of a line's labels"),
    _Metric(name="MultiLabel-Likelihood", column=RowColumn(labels.label_loss), measure=LIKELIHOOD,
            labels="several", summary="geometric mean of the probabilities of the lines' labels"),
    _Numbers(name="RMSE", column=RowColumn(regression.squared_error), summary="root of the mean squared error",
             measure=_lower(_ROOT, "squared_error", unit="answers' unit")),
    _Numbers(name="MSE", column=RowColumn(regression.squared_error), summary="mean squared error",
             measure=_lower(_mean, "squared_error", unit="its square")),
    _Numbers(name="MAE", column=RowColumn(regression.absolute_error), summary="mean absolute error",
             measure=_lower(_mean, "error", unit="answers' unit")),
    _Numbers(name="SMAPE", column=RowColumn(regression.relative_error),
             summary="mean absolute error, by the sizes of both numbers",
             measure=_lower(regression.percent, "error", unit="percent", worst=100.0)),
    _Numbers(name="Pearson", column=RowColumn(regression.numbers_of, 2), summary="correlation of the numbers",
             measure=_corpus_level(regression.pearson, "expected", "output", unit="correlation", worst=-1.0)),
    _Numbers(name="Spearman", column=RowColumn(regression.numbers_of, 2), summary="correlation of their ranks",
             measure=_corpus_level(regression.spearman, "expected", "output", unit="correlation", worst=-1.0)),
    _Metric(name="Haversine", parse=regression.read_point, column=RowColumn(regression.haversine),
            summary="mean distance of points on Earth", measure=_lower(_mean, "distance", unit="kilometres")),
    _Metric(name="MAP", answers="all", column=RowColumn(labels.average_precision), summary="mean average precision",
            measure=_higher(_mean, "precision")),
    _one("NDCG@10"),
    _Tokens(name="TokenAccuracy", column=RowColumn(tags.token_hits, 2), summary="share of tokens tagged right",
            measure=_higher(Elementwise(classes.share), "right", "tokens")),
    _Tokens(name="BIO-F1", parse=tags.entities_of, column=RowColumn(tags.entity_counts, 3), measure=_f_measure(1),
            summary="F-score of entities, with their normalised forms"),
    _Tokens(name="BIO-F1-Labels", parse=tags.entities_of, column=RowColumn(tags.label_counts, 3),
            measure=_f_measure(1), summary="the same, whatever these forms"),
    _Tokens(name="BIO-Weighted-F1", parse=tags.entities_of, measure=_corpus_level(tags.weighted_f, *_COUNTS),
            column=RowColumn(tags.counts_by_label, 3, beside="details"),
            summary="mean of the labels' F-scores, by how often they are expected"),
    _one("Soft-F1"),
    _one("Probabilistic-Soft-F1"),
    _one("FLC-F1"),
    _Tokens(name="SegmentAccuracy", parse=spans.read_segments, column=RowColumn(spans.segment_hits, 2),
            measure=_corpus_level(spans.segment_accuracy, "right", "expected"),
            summary="mean share of the lines' segments that are exactly right"),
    _one("Soft2D-F1"),
    _one("Probabilistic-Soft2D-F1"),
    _Metric(name="ClippEU", parse=rectangles.given_clippings, perfect=rectangles.without_margins,
            column=RowColumn(rectangles.clipping_counts, 3), needs=_SCIPY, measure=_f_measure(2),
            summary="F2 of rectangles, which are right within a margin"),
    _INTERVALS(name="RMSE-Against-Interval", column=RowColumn(regression.squared_interval_error),
               measure=_lower(_ROOT, "squared_error", unit="answers' unit"),
               summary="root of the mean squared distance to an interval"),
    _INTERVALS(name="MSE-Against-Interval", column=RowColumn(regression.squared_interval_error),
               measure=_lower(_mean, "squared_error", unit="its square"),
               summary="mean squared distance to an interval"),
    _INTERVALS(name="MAE-Against-Interval", column=RowColumn(regression.interval_error),
               measure=_lower(_mean, "error", unit="answers' unit"), summary="mean distance to an interval"),
    _one("Improvement@0.5"),
    _Tokens(name="CustomMetric1", parse=classes.read_fields, column=RowColumn(classes.field_shares),
            measure=_higher(_mean, "score"), summary="a quarter for the first of two fields, the rest for the other"),
)  # fmt: skip
OTHER_METRICS = {metric.name: metric for metric in (*_EXACT_METRICS, *_DISTRIBUTION_METRICS, *_TEXT_METRICS)}

# Metrics with a slash in their names, beside Mean/WER and the like

MAX_MATCHINGS = 10
_F_SCORE = re.compile(r"((?:MultiLabel-)?F)([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_CLASS_OF = {"F": classes.is_wanted} | dict.fromkeys(("RMSE", "MSE", "MAE", "SMAPE"), number_of)


def find_prefixed(name: str) -> Metric | None:
    """Make the metric of a name such as MacroAvg/F2, Smart/Fuzzy/Accuracy or Mean/Lower/MultiLabel-F1.

    Return None for another name, and for one with more than MAX_MATCHINGS names of matching.
    """
    *prefixes, inner = name.split("/")
    mean = prefixes.pop(0) if prefixes and prefixes[0] in ("MacroAvg", "Mean") else ""
    matching = tuple(prefixes)
    numbered = _F_SCORE.fullmatch(inner)
    stem, beta = (numbered[1], float(numbered[2])) if numbered else (inner, 1.0)
    is_name = numbered is not None or not inner.endswith("F")
    if not (mean or matching) or len(matching) > MAX_MATCHINGS or not (is_name and {*matching} <= MATCHINGS.keys()):
        return None
    if stem == "Accuracy" and mean != "Mean":
        accuracy = _accuracy(matching, name)
        return _per_class(accuracy, name, classes.text_class) if mean else accuracy
    if stem == "MultiLabel-F" and mean != "MacroAvg":
        return _matched_f(beta, name, matching, is_mean=mean == "Mean")
    if mean == "MacroAvg" and not matching and stem in _CLASS_OF:
        return _per_class(_f(beta, inner) if stem == "F" else OTHER_METRICS[inner], name, _CLASS_OF[stem])
    return None


def _accuracy(matching: tuple[str, ...], name: str) -> Metric:
    """Make Accuracy of texts compared otherwise or, without matching, of classes."""
    if not matching:
        return _Tokens(name=name, has_classes=True, column=RowColumn(exact.miss), measure=ACCURACY, labels="one",
                       summary="share of lines whose best guess is right")  # fmt: skip
    return _Tokens(name=name, matching=matching, answers="any",
                   column=RowColumn(Partial(answer_distance, (matching,))),
                   needs=_DISTANCES if "Fuzzy" in matching else (), measure=ACCURACY, labels="one",
                   summary=f"Accuracy of texts compared by {'/'.join(matching)}")  # fmt: skip


def _matched_f(beta: float, name: str, matching: tuple[str, ...], *, is_mean: bool) -> Metric:
    make = partial(_Tokens, name=name, matching=matching, labels="several",
                   needs=(*_SCIPY, *(_DISTANCES if "Fuzzy" in matching else ())))  # fmt: skip
    summary = f"the F-score of labels compared by {'/'.join(matching)}"
    if is_mean:
        return make(column=RowColumn(Partial(matched_f, (matching, beta))), measure=_higher(_mean, "score"),
                    summary=f"mean of each line's: {summary}")  # fmt: skip
    return make(column=RowColumn(Partial(matched_counts, (matching,)), 3), measure=_f_measure(beta), summary=summary)


def _per_class(metric: Metric, name: str, class_of: Callable[[str, int], Any]) -> Metric:
    """Make the mean of a metric's scores of the lines of each expected class, text or number.

    Classes are few. Texts and numbers may be as many as the lines, so their sums would fill a matrix of lines by
    lines; a corpus-level score adds only what it needs.
    """
    column, measure = metric.column, metric.measure
    assert isinstance(column, RowColumn)
    if not (metric.has_classes or measure.columns == _COUNTS):
        formula = measure.formula.score if isinstance(measure.formula, Elementwise) else measure.formula
        score = Partial(classes.mean_of_classes, (formula,))
        measure = replace(measure, formula=first_total, columns=("error",), corpus_score=score)
    by_class = RowColumn(Partial(classes.in_class, (column.row, class_of)), column.width, beside="classes")
    summary = f"mean over the expected classes: {metric.summary}"
    return replace(metric, name=name, column=by_class, measure=measure, summary=summary)


_PREFIXED = (  # the most usual ones
    "Lower/Accuracy",
    "Fuzzy/Accuracy",
    "Fuzzy/MultiLabel-F1",
    *(f"MacroAvg/{name}" for name in ("Accuracy", "F1", "RMSE", "MSE", "MAE", "SMAPE")),
)
OTHER_METRICS |= {name: metric for name in _PREFIXED if (metric := find_prefixed(name)) is not None}

# GEval's own names


def geval_name(name: str) -> str:
    """Return the name that GEval shows for a metric.

    >>> geval_name("F2"), geval_name("MultiLabel-LogLoss"), geval_name("NDCG@3"), geval_name("BIO-F1")
    ('F2.0', 'MultiLabel-Logloss', 'NDCG@3', 'BIO-F1')
    >>> geval_name("Lower/Fuzzy/Smart/MultiLabel-F1")
    'Lower/Fuzzy/MultiLabel-F1.0'
    """
    *prefixes, inner = name.split("/")
    if "Fuzzy" in prefixes:  # it forgets the names after it
        del prefixes[prefixes.index("Fuzzy") + 1 :]
    if prefixes:
        return "/".join([*prefixes, geval_name(inner)])
    parts = _split_number(name)
    if parts is None or isinstance(parts[2][1], range):
        return "MultiLabel-Logloss" if name == "MultiLabel-LogLoss" else name
    stem, number, _ = parts
    return stem + shortest(float(number))
