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
from typing import Any, Literal, TypeAlias, cast

from geval_py.reading.schemes import DEFAULT_BITS, MAX_BITS, MIN_BITS
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


def _metric(
    name: str,
    row: Callable[..., Any],
    measure: Measure,
    summary: str,
    *,
    beside: Literal["details", "classes", "out_of_vocabulary"] | None = None,
    is_of_words: bool = False,
    **more: Any,
) -> Metric:
    """Make a metric of what a function computes line by line."""
    column = RowColumn(row, len(measure.columns), beside, inputs=() if more.get("needs_input") else None)
    return Metric(name, column, measure, summary, is_of_words=is_of_words, **more)


_words = partial(_metric, row=exact.word_loss, beside="out_of_vocabulary", is_of_words=True, needs_vocabulary=True)
_entries = partial(_metric, has_entries=True, parse=distributions.entries_of)
_labels = partial(_entries, has_classes=True, labels="one")
_tokens = partial(_metric, is_tokenised=True)
_numbers = partial(_metric, parse=number_of)


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
    return totals[0] / lines


def _rest(totals: Sequence[Any], lines: Any) -> Any:
    return 1 - totals[0] / lines


def _mean_gap(totals: Sequence[Any], lines: Any) -> Any:
    return sum(map(abs, totals)) / lines


_COUNTS = ("right", "expected", "given")


def _f_measure(beta: float) -> Measure:
    return _higher(Elementwise(Partial(classes.f_score, (beta,))), *_COUNTS)


def _probabilistic(beta: float) -> Measure:
    return _corpus_level(Partial(labels.probabilistic_f, (beta,)), "mass", "expected")


# Families


# By the name before a number: the function that makes the metric of that number, and the numbers there are: whole
# ones of a range, or any from a least one on.
Family: TypeAlias = tuple[Callable[[Any, str], Metric], "range | float"]
_COUNTABLE, _BITS = range(1, 1_000_000_000), range(MIN_BITS, MAX_BITS + 1)
FAMILIES: dict[str, Family] = {
    "Hit@": (lambda first, name: _entries(
        name, Partial(distributions.miss_of_first, (first,)), ACCURACY,
        "share of lines whose answer is among the first guesses"), _COUNTABLE),
    "KeystrokesSaved@": (lambda first, name: _entries(
        name, Partial(distributions.keystrokes, (first,)),
        _higher(Elementwise(classes.share), "saved", "characters"),
        "share of characters that need not be typed"), _COUNTABLE),
    "CrossEntropyToNormsHashed": (lambda bits, name: _entries(
        name, Partial(distributions.norm_cross_entropy, (bits,)), CROSS_ENTROPY,
        "mean loss of all answers, by their shares", answers="shares"), _BITS),
    "KullbackLeiblerHashed": (lambda bits, name: _entries(
        name, Partial(distributions.norm_divergence, (bits,)), CROSS_ENTROPY,
        "mean divergence from the shares of all answers", answers="shares"), _BITS),
    "CalibrationError": (lambda bins, name: _labels(
        name, Partial(distributions.confidence_gap, (bins,)),
        _lower(_mean_gap, *(f"gap_{place}" for place in range(1, bins + 1)), unit="probability", worst=1.0),
        "distance of the best guess's probability from the share of hits"), range(1, 101)),
    "F": (lambda beta, name: _metric(
        name, classes.detection, _f_measure(beta), "F-score of the class 1",
        parse=classes.is_given), 0.0),
    "Macro-F": (lambda beta, name: _metric(
        name, classes.classes, _corpus_level(Partial(classes.macro_f, (beta,)), "hit"),
        "mean of the F-scores of the expected classes", has_classes=True, labels="one", beside="details"), 0.0),
    "MultiLabel-F": (lambda beta, name: _tokens(
        name, labels.label_counts, _f_measure(beta), "F-score of the labels of all lines",
        labels="several"), 0.0),
    "Mean/MultiLabel-F": (lambda beta, name: _tokens(
        name, Partial(labels.label_f, (beta,)), _higher(_mean, "score"),
        "mean of the F-scores of each line's labels", labels="several"), 0.0),
    "Probabilistic-MultiLabel-F": (lambda beta, name: _tokens(
        name, labels.probable_counts, _probabilistic(beta),
        "the same of labels with probabilities: calibration and recall", needs=_SCIPY, labels="several",
        has_curve=True, beside="details"), 0.0),
    "NDCG@": (lambda first, name: _metric(
        name, Partial(labels.discounted_gain, (first,)), _higher(_mean, "gain"),
        "mean discounted gain of the first items", answers="all"), _COUNTABLE),
    "Soft-F": (lambda beta, name: _metric(
        name, spans.soft_counts, _f_measure(beta),
        "F-score of annotations, as far as their positions agree", needs=_SCIPY, parse=spans.given_annotations,
        has_free_input=True), 0.0),
    "Probabilistic-Soft-F": (lambda beta, name: _tokens(
        name, spans.probable_soft_counts, _probabilistic(beta),
        "the same of annotations with probabilities: calibration and recall", needs=_SCIPY,
        parse=spans.given_annotations, has_free_input=True, has_curve=True, beside="details"), 0.0),
    "FLC-F": (lambda beta, name: _metric(
        name, spans.fragment_counts,
        _higher(Elementwise(Partial(spans.fragment_f, (beta,))), "expected_covered", "given_covered", *_COUNTS[1:]),
        "F-score of annotations, by how much of each the others cover", parse=spans.given_annotations), 0.0),
    "Soft2D-F": (lambda beta, name: _metric(
        name, Partial(rectangles.soft_2d_f, (beta,)), _higher(_mean, "score"),
        "mean of the F-scores of the area of each line's rectangles", parse=rectangles.given_rectangles,
        has_free_input=True), 0.0),
    "Probabilistic-Soft2D-F": (lambda beta, name: _tokens(
        name, rectangles.probable_soft_2d_counts, _probabilistic(beta),
        "F-score of rectangles with probabilities: calibration and recall", needs=_SCIPY,
        parse=rectangles.given_rectangles, has_curve=True, beside="details"), 0.0),
    "Improvement@": (lambda threshold, name: _numbers(
        name, regression.numbers_of,
        _corpus_level(Partial(regression.improvement, (threshold,)), "expected", "output", unit="answers' unit",
                      best=inf, worst=-inf),
        "mean answer of the lines that the output selects, less that of all lines"), -inf),
}  # fmt: skip
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


def _one(name: str, number: int | None = None) -> Metric:
    """Return the metric of a name in a family, or of a family's bare name with a usual number."""
    if number is not None:
        return FAMILIES[name][0](number, name)
    metric = find_in_family(name)
    if metric is None:
        raise KeyError(name)
    return metric


# Tables


def _of_sacrebleu(name: str, summary: str, *columns: str) -> Metric:
    score = Elementwise(Partial(texts.sacre_score, (name,)))
    if name == "TER":
        measure = _lower(score, *columns, unit="percent")
    else:
        measure = _higher(score, *columns, unit="points", best=100.0)
    return Metric(name, texts.SacreColumn(name), measure, summary, is_of_words=False, answers="any",
                  needs=("sacrebleu",), signature=Partial(texts.sacre_signature, (name,)))  # fmt: skip


_BLEU_COUNTS = (*(f"right_{n}" for n in range(1, 5)), "reference_words", *(f"all_{n}" for n in range(1, 5)))
_SACRE_COUNTS = ("references", "words", "reference_words", *_BLEU_COUNTS[:4], *_BLEU_COUNTS[5:])
_CHARACTERS = tuple(f"{what}_{n}" for n in range(1, 7) for what in ("all", "reference", "right"))
_WORDS_TOO = (*_CHARACTERS, *(f"{what}_words_{n}" for n in (1, 2) for what in ("all", "reference", "right")))
_WORD_EDITS = partial(_tokens, row=texts.word_errors, needs=_DISTANCES)
_CHARACTER_EDITS = partial(_tokens, row=texts.character_errors, needs=_DISTANCES)
_WORD_RATES = partial(_tokens, row=texts.word_error_rate, needs=_DISTANCES)
_CHARACTER_RATES = partial(_tokens, row=texts.character_error_rate, needs=_DISTANCES)
_ERRORS, _RIGHT = Elementwise(texts.errors), Elementwise(texts.right)
_PER_WORD, _PER_CHARACTER = "per word", "per character"
_ROOT = Elementwise(regression.root_mean)
_intervals = partial(_numbers, perfect=regression.lower_bound)

_ON_EXACT_WORDS = "the same, on exact words and a vocabulary"
_EXACT_METRICS = (
    _words(name="Likelihood", measure=LIKELIHOOD, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _words(name="LogLoss", measure=LOG_LOSS, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _words(name="Perplexity", measure=PERPLEXITY, summary=_ON_EXACT_WORDS),
    _words(name="CrossEntropy", measure=CROSS_ENTROPY, summary=_ON_EXACT_WORDS),
    _numbers("MacroAvg/Likelihood", exact.binary_loss, LIKELIHOOD,
             "mean of the likelihoods of the expected classes", beside="classes"),
    _metric("Accuracy", exact.miss, ACCURACY, "share of lines whose best guess is right", labels="one"),
)  # fmt: skip
_DISTRIBUTION_METRICS = (
    _one("Hit@3"),
    _entries("MRR", distributions.reciprocal_rank, _higher(_mean, "reciprocal_rank"),
             "mean reciprocal rank of the answer"),
    _one("KeystrokesSaved@3"),
    _entries("ChoiceAccuracy", distributions.choice_miss, ACCURACY,
             "share of lines whose likeliest option is right", needs_input=True, labels="one"),
    _entries("ChoiceLogLoss", distributions.choice_loss, LOG_LOSS,
             "mean loss of the right option, among the options", needs_input=True),
    _one("CrossEntropyToNormsHashed", DEFAULT_BITS),
    _one("KullbackLeiblerHashed", DEFAULT_BITS),
    _entries("RankCorrelation", distributions.rank_correlation,
             _higher(Elementwise(distributions.mean_correlation), "correlation", "ranked", unit="correlation",
                     worst=-1.0),
             "mean rank correlation with the shares of a line's answers", answers="shares"),
    _labels("BrierScore", distributions.brier_score,
            _lower(_mean, "squared_distance", unit="squared probability", worst=2.0),
            "mean squared distance of all labels' probabilities", needs_vocabulary=True),
    _one("CalibrationError", 10),
    _entries("LogSkillScore", distributions.relative_loss,
             _higher(Elementwise(distributions.skill), "loss", "baseline_loss", worst=-inf),
             "share of a baseline's loss that is avoided", needs_input=True),
)  # fmt: skip
_TEXT_METRICS = (
    _tokens("BLEU", texts.bleu_row, _higher(Elementwise(texts.bleu), *_BLEU_COUNTS),
            "precision of n-grams, as GEval has it", answers="any"),
    _tokens("GLEU", texts.gleu_row, _higher(Elementwise(classes.share), "right", "all"),
            "share of n-grams that are right", answers="any"),
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
    _tokens("CharMatch", texts.corrections, _f_measure(0.5),
            "F0.5 of the corrections of the input", needs=_DISTANCES, needs_input=True),
    _one("F1"),
    _one("Macro-F1"),
    _metric("NMI", classes.clusters,
            _corpus_level(classes.mutual_information, "equal"),
            "normalised mutual information of the classes expected and given", beside="details"),
    _one("MultiLabel-F1"),
    _one("Mean/MultiLabel-F1"),
    _one("Probabilistic-MultiLabel-F1"),
    _metric("MultiLabel-LogLoss", labels.label_loss, LOG_LOSS, "mean loss of a line's labels",
            labels="several"),
    _metric("MultiLabel-Likelihood", labels.label_loss, LIKELIHOOD,
            "geometric mean of the probabilities of the lines' labels", labels="several"),
    _numbers("RMSE", regression.squared_error, _lower(_ROOT, "squared_error", unit="answers' unit"),
             "root of the mean squared error"),
    _numbers("MSE", regression.squared_error, _lower(_mean, "squared_error", unit="its square"),
             "mean squared error"),
    _numbers("MAE", regression.absolute_error, _lower(_mean, "error", unit="answers' unit"),
             "mean absolute error"),
    _numbers("SMAPE", regression.relative_error,
             _lower(regression.percent, "error", unit="percent", worst=100.0),
             "mean absolute error, by the sizes of both numbers"),
    _numbers("Pearson", regression.numbers_of,
             _corpus_level(Partial(regression.correlation, (None,)), "expected", "output", unit="correlation",
                           worst=-1.0),
             "correlation of the numbers"),
    _numbers("Spearman", regression.numbers_of,
             _corpus_level(Partial(regression.correlation, (regression.ranks,)), "expected", "output",
                           unit="correlation", worst=-1.0),
             "correlation of their ranks"),
    _metric("Haversine", regression.haversine, _lower(_mean, "distance", unit="kilometres"),
            "mean distance of points on Earth", parse=regression.read_point),
    _metric("MAP", labels.average_precision, _higher(_mean, "precision"), "mean average precision",
            answers="all"),
    _one("NDCG@10"),
    _tokens("TokenAccuracy", tags.token_hits, _higher(Elementwise(classes.share), "right", "tokens"),
            "share of tokens tagged right"),
    _tokens("BIO-F1", tags.entity_counts, _f_measure(1),
            "F-score of entities, with their normalised forms", parse=tags.entities_of),
    _tokens("BIO-F1-Labels", tags.label_counts, _f_measure(1), "the same, whatever these forms",
            parse=tags.entities_of),
    _tokens("BIO-Weighted-F1", tags.counts_by_label,
            _corpus_level(tags.weighted_f, *_COUNTS),
            "mean of the labels' F-scores, by how often they are expected", parse=tags.entities_of, beside="details"),
    _one("Soft-F1"),
    _one("Probabilistic-Soft-F1"),
    _one("FLC-F1"),
    _tokens("SegmentAccuracy", spans.segment_hits,
            _corpus_level(spans.segment_accuracy, "right", "expected"),
            "mean share of the lines' segments that are exactly right", parse=spans.read_segments),
    _one("Soft2D-F1"),
    _one("Probabilistic-Soft2D-F1"),
    _metric("ClippEU", rectangles.clipping_counts, _f_measure(2),
            "F2 of rectangles, which are right within a margin", parse=rectangles.given_clippings,
            perfect=rectangles.without_margins, needs=_SCIPY),
    _intervals("RMSE-Against-Interval", regression.squared_interval_error,
               _lower(_ROOT, "squared_error", unit="answers' unit"),
               "root of the mean squared distance to an interval"),
    _intervals("MSE-Against-Interval", regression.squared_interval_error,
               _lower(_mean, "squared_error", unit="its square"), "mean squared distance to an interval"),
    _intervals("MAE-Against-Interval", regression.interval_error,
               _lower(_mean, "error", unit="answers' unit"), "mean distance to an interval"),
    _one("Improvement@0.5"),
    _tokens("CustomMetric1", classes.field_shares, _higher(_mean, "score"),
            "a quarter for the first of two fields, the rest for the other", parse=classes.read_fields),
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
    if not (mean or matching) or len(matching) > MAX_MATCHINGS or not (is_name and {*matching} <= {*MATCHINGS}):
        return None
    if stem == "Accuracy" and mean != "Mean":
        if matching:
            accuracy = _tokens(
                name, Partial(answer_distance, (matching,)), ACCURACY,
                f"Accuracy of texts compared by {'/'.join(matching)}", matching=matching, answers="any",
                needs=_DISTANCES if "Fuzzy" in matching else (), labels="one",
            )  # fmt: skip
        else:
            accuracy = _tokens(name, exact.miss, ACCURACY, "share of lines whose best guess is right",
                               has_classes=True, labels="one")  # fmt: skip
        return _per_class(accuracy, name, classes.text_class) if mean else accuracy
    if stem == "MultiLabel-F" and mean != "MacroAvg":
        make = partial(_tokens, name, matching=matching, labels="several",
                       needs=(*_SCIPY, *(_DISTANCES if "Fuzzy" in matching else ())))  # fmt: skip
        summary = f"the F-score of labels compared by {'/'.join(matching)}"
        if not mean:
            return make(Partial(matched_counts, (matching,)), _f_measure(beta), summary)
        return make(Partial(matched_f, (matching, beta)), _higher(_mean, "score"), f"mean of each line's: {summary}")
    if mean == "MacroAvg" and not matching and stem in _CLASS_OF:
        return _per_class(_one(inner) if stem == "F" else OTHER_METRICS[inner], name, _CLASS_OF[stem])
    return None


def _per_class(metric: Metric, name: str, class_of: Callable[[str, int], Any]) -> Metric:
    """Make the mean of a metric's scores of the lines of each expected class, text or number.

    Classes are few. Texts and numbers may be as many as the lines, so their sums would fill a matrix of lines by
    lines; a corpus-level score adds only what it needs.
    """
    column, measure = cast("RowColumn", metric.column), metric.measure
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
