"""The tables of all metrics but those on hashed words, and of the families of metrics that a number parametrises.

A function of a line computes a metric's statistics; it stands in the module of its kind (``exact``, ``classes``,
``distributions``, ``translation``, …). Metrics of a family are made on request, such as F2 beside F1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple, cast

from geval_py.errors import SchemeError
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring.metrics import (
    assignment,
    classes,
    distributions,
    exact,
    labels,
    rectangles,
    regression,
    spans,
    tags,
)
from geval_py.scoring.metrics import translation as texts
from geval_py.scoring.metrics.base import (
    ACCURACY,
    BITS,
    CROSS_ENTROPY,
    HASHED_FAMILIES,
    LIKELIHOOD,
    LOG_LOSS,
    PERPLEXITY,
    CorpusScore,
    Family,
    Formula,
    Measure,
    Metric,
    find_in_family,
    first_total,
    mean,
    split_name,
)
from geval_py.scoring.metrics.columns import Parse, Partial, RowColumn, elementwise, number_of
from geval_py.scoring.metrics.matching import MATCHINGS, answer_distance, matched_counts
from geval_py.tables import numbers

_DISTANCES, _SCIPY = ("rapidfuzz.distance",), ("scipy",)  # scipy.optimize takes longer to import


def _metric(
    name: str,
    row: Callable[..., Any],
    measure: Measure,
    summary: str,
    *,
    parse: Parse | None = None,
    parse_both: Parse | None = None,
    **more: Any,
) -> Metric:
    """Make a metric of what a function computes line by line; see :class:`RowColumn`.

    ``parse_both`` is for output lines and answers, unless there is one for either.
    """
    parse = parse or parse_both
    of_column = {field: more.pop(field) for field in RowColumn._fields if field in more}
    column = RowColumn(row, len(measure.columns), parse, **{"parse_answer": parse_both} | of_column)
    return Metric(name, column, measure, summary, parse=parse, **more)


def _of_sides(read: Callable[[bool, str, int], object]) -> partial[Metric]:
    """Return :func:`_metric` with parsers that tell a function whether a line is of the output."""
    return partial(_metric, parse=Partial(read, True), parse_answer=Partial(read, False))


_probabilities: dict[str, Any] = {"is_far_above_one": exact.is_far_above_one}
_entries = partial(_metric, has_entries=True, parse=distributions.listed_of)
_norms = partial(_entries, parse_answer=distributions.norm_of, answers="shares")
_tokens = partial(_metric, is_tokenised=True)
_edits = partial(_tokens, needs=_DISTANCES)
_numbers = partial(_metric, parse_both=number_of)
_intervals = partial(_numbers, parse_answer=regression.read_interval, perfect=regression.lower_bound)
_entities = partial(_tokens, parse_both=tags.entities_of)
_annotations = _of_sides(spans.read_annotations)
_rectangles = _of_sides(rectangles.read_rectangles)
_clippings = _of_sides(rectangles.read_clippings)


def sum_measure(score: Callable[..., float], *columns: str, **ends: Any) -> Measure:
    """Make a measure of a function of the sums of statistics, by default in [0, 1], where 1 is best."""
    return Measure(Partial(elementwise, score), columns, **ends)


def mean_measure(column: str) -> Measure:
    """Make a measure of the mean of a statistic, in [0, 1], where 1 is best."""
    return Measure(mean, (column,))


def error_measure(formula: Formula, *columns: str, unit: str, worst: float = inf) -> Measure:
    """Make a measure that is best at 0."""
    return Measure(formula, columns, unit, 0.0, worst)


def corpus_measure(score: CorpusScore, *columns: str, **ends: Any) -> Measure:
    """Make a measure that is no function of sums."""
    return Measure(first_total, columns, corpus_score=score, **ends)


def class_measure(measure: Measure) -> Measure:
    """Make the mean of a measure's values for each class."""
    return measure._replace(formula=first_total, corpus_score=Partial(classes.mean_of_classes, measure.formula))


def f_measure(beta: float) -> Measure:
    """Make the F-score of counts."""
    return sum_measure(Partial(classes.f_score, beta), *COUNTS)


def probabilistic_measure(beta: float) -> Measure:
    """Make the F-score of calibration and recall."""
    return corpus_measure(Partial(labels.probabilistic_f, beta), "mass", "expected")


def line_scorer(row: Callable[..., Any], measure: Measure) -> Partial:
    """Make the function that scores a line alone, from the function of its statistics."""
    return Partial(classes.line_score, row, measure.formula)


COUNTS = ("right", "expected", "given")
_CORRELATION: dict[str, Any] = {"unit": "correlation", "worst": -1.0}
_PROBABILISTIC: dict[str, Any] = {"needs": _SCIPY, "is_tokenised": True, "has_curve": True, "beside": "details"}
OF_ANSWERS = "answers' unit"
COUNTABLE = range(1, 1_000_000_000)


def _norm_loss(name: str, bits: int, weight: float, summary: str) -> Metric:
    """Make a metric of the buckets of a line and of a norm."""
    line, norm = (
        Partial(distributions.buckets_of, bits, parse) for parse in (distributions.listed_of, distributions.norm_of)
    )
    row = Partial(distributions.norm_loss, bits, weight)
    metric = _norms(name, row, CROSS_ENTROPY, summary, parse=line, parse_answer=norm, **_probabilities)
    return metric._replace(parse=distributions.listed_of)  # the checker need not hash


# Tables


def _of_sacrebleu(name: str, summary: str, *columns: str, unit: str = "points", **ends: Any) -> Metric:
    measure = sum_measure(
        Partial(texts.sacre_score, name), "references", *columns, unit=unit, **{"best": 100.0} | ends
    )
    return Metric(name, texts.SacreColumn(name), measure, summary, answers="any",
                  needs=("sacrebleu",), signature=Partial(texts.sacre_signature, name),
                  details=texts.sacre_details if name == "SacreBLEU" else None)  # fmt: skip


_RIGHT_NGRAMS, _NGRAMS = (tuple(f"{what}_{n}" for n in range(1, 5)) for what in ("right", "all"))
_CHARACTERS = tuple(f"{what}_{n}" for n in range(1, 7) for what in ("all", "reference", "right"))
_WORDS_TOO = (*_CHARACTERS, *(f"{what}_words_{n}" for n in (1, 2) for what in ("all", "reference", "right")))
_error_rate = partial(sum_measure, texts.error_rate, "edits", best=0.0, worst=inf)
_SQUARED_DISTANCE = Partial(regression.against_interval, regression.squared_error)
_ROOT_SQUARED = error_measure(regression.root_mean, "squared_error", unit=OF_ANSWERS)
_SQUARED = error_measure(mean, "squared_error", unit="its square")
_ABSOLUTE = error_measure(mean, "error", unit=OF_ANSWERS)
TABLE: tuple[Metric | Family | str, ...] = (  # a name is of a metric with a prefix
    *(_metric(name, exact.word_loss, measure, summary, beside="out_of_vocabulary", is_of_words=True,
              needs_vocabulary=True, **_probabilities)
      for name, measure, summary in (
          ("Likelihood", LIKELIHOOD, "likelihood of exact words of a vocabulary, or of a class"),
          ("LogLoss", LOG_LOSS, "mean loss of exact words of a vocabulary, or of a class"),
          ("Perplexity", PERPLEXITY, "inverse of the likelihood of exact words of a vocabulary"),
          ("CrossEntropy", CROSS_ENTROPY, "mean loss of exact words of a vocabulary, in bits"),
      )),
    _metric("MacroAvg/Likelihood", exact.binary_loss, class_measure(LIKELIHOOD),
            "mean of the likelihoods of the expected classes", parse_both=number_of, beside="details",
            **_probabilities),
    _metric("Accuracy", exact.miss, ACCURACY, "share of lines whose best guess is right", labels="one"),
    # Of distributions
    Family("Hit@", lambda first, name: _entries(
        name, Partial(distributions.miss_of_first, first), ACCURACY,
        "share of lines whose answer is among the first guesses"), COUNTABLE, 3),
    _entries("MRR", distributions.reciprocal_rank, mean_measure("reciprocal_rank"),
             "mean reciprocal rank of the answer"),
    _entries("ChoiceAccuracy", distributions.choice_miss, ACCURACY, "share of lines whose likeliest option is right",
             parse_input=distributions.options_of, needs_input=True, labels="one"),
    _entries("ChoiceLogLoss", distributions.choice_loss, LOG_LOSS, "mean loss of the right option, among the options",
             parse_input=distributions.options_of, needs_input=True, **_probabilities),
    Family("CrossEntropyToNormsHashed", lambda bits, name: _norm_loss(
        name, bits, 0.0, "mean loss of all answers, by their shares"), BITS, DEFAULT_BITS, may_be_left_out=True),
    Family("KullbackLeiblerHashed", lambda bits, name: _norm_loss(
        name, bits, 1.0, "mean divergence from the shares of all answers"), BITS, DEFAULT_BITS, may_be_left_out=True),
    _norms("RankCorrelation", distributions.rank_correlation,
           sum_measure(distributions.mean_correlation, "correlation", "ranked", **_CORRELATION),
           "mean rank correlation with the shares of a line's answers"),
    _entries("BrierScore", distributions.brier_score,
             error_measure(mean, "squared_distance", unit="squared probability", worst=2.0),
             "mean squared distance of all labels' probabilities", has_classes=True, labels="one",
             needs_vocabulary=True, **_probabilities),
    # Of texts
    _tokens("BLEU", texts.bleu_row, sum_measure(texts.bleu, *_RIGHT_NGRAMS, "reference_words", *_NGRAMS),
            "GEval's precision of n-grams", answers="any", details=texts.bleu_details),
    _tokens("GLEU", texts.gleu_row, sum_measure(classes.ratio, "right", "all"), "share of n-grams that are right",
            answers="any"),
    _of_sacrebleu("SacreBLEU", "sacreBLEU's BLEU, with its tokens and smoothing", "words", "reference_words",
                  *_RIGHT_NGRAMS, *_NGRAMS),
    _of_sacrebleu("chrF", "sacreBLEU's F-score of character n-grams", *_CHARACTERS),
    _of_sacrebleu("chrF++", "sacreBLEU's F-score of n-grams of characters, words and pairs of words", *_WORDS_TOO),
    _of_sacrebleu("TER", "sacreBLEU's translation edit rate", "edits", "words", unit="percent",
                  best=0.0, worst=inf),
    _edits("WER", texts.word_errors, _error_rate("words", unit="per word"), "word error rate"),
    _edits("CER", texts.character_errors, _error_rate("characters", unit="per character"), "character error rate"),
    _edits("WAR", texts.word_errors, sum_measure(texts.right_rate, "edits", "words", worst=-inf),
           "1 minus the word error rate"),
    _edits("CAR", texts.character_errors, sum_measure(texts.right_rate, "edits", "characters", worst=-inf),
           "1 minus the character error rate"),
    "Mean/WER",
    "Mean/CER",
    "Mean/WAR",
    "Mean/CAR",
    _edits("CharMatch", texts.corrections, f_measure(0.5), "F0.5 of the corrections of the input",
           needs_input=True),
    # Of classes and labels
    Family("F", lambda beta, name: _metric(
        name, classes.detection, f_measure(beta), "F-score of the class 1",
        parse=classes.is_given, parse_answer=classes.is_wanted)),
    Family("Macro-F", lambda beta, name: _metric(
        name, classes.classes,
        corpus_measure(Partial(classes.score_of_labels, Partial(classes.macro_f, beta)), "hit"),
        "mean of the F-scores of the expected classes", has_classes=True, labels="one", beside="details")),
    _metric("NMI", classes.clusters, corpus_measure(classes.mutual_information, "equal"),
            "normalised mutual information of the classes expected and given", beside="details"),
    Family("MultiLabel-F", lambda beta, name: _tokens(
        name, labels.label_counts, f_measure(beta), "F-score of the labels of all lines",
        labels="several")),
    "Mean/MultiLabel-F1",
    Family("Probabilistic-MultiLabel-F", lambda beta, name: _tokens(
        name, labels.probable_counts, probabilistic_measure(beta),
        "calibration and recall of labels with probabilities", labels="several",
        **_PROBABILISTIC)),
    _metric("MultiLabel-LogLoss", labels.label_loss, LOG_LOSS, "mean loss of a line's labels", labels="several"),
    _metric("MultiLabel-Likelihood", labels.label_loss, LIKELIHOOD,
            "geometric mean of the probabilities of the lines' labels", labels="several"),
    # Of numbers and points
    _numbers("RMSE", regression.squared_error, _ROOT_SQUARED, "root of the mean squared error"),
    _numbers("MSE", regression.squared_error, _SQUARED, "mean squared error"),
    _numbers("MAE", regression.absolute_error, _ABSOLUTE, "mean absolute error"),
    _numbers("SMAPE", regression.relative_error,
             error_measure(regression.percent, "error", unit="percent", worst=100.0),
             "mean absolute error, by the sizes of both numbers"),
    _numbers("Pearson", regression.both_numbers,
             corpus_measure(Partial(regression.correlation, None), "expected", "output", **_CORRELATION),
             "correlation of the numbers"),
    _numbers("Spearman", regression.both_numbers,
             corpus_measure(Partial(regression.correlation, regression.ranks), "expected", "output", **_CORRELATION),
             "correlation of their ranks"),
    _metric("Haversine", regression.haversine, error_measure(mean, "distance", unit="kilometres"),
            "mean distance of points on Earth", parse_both=regression.read_point),
    # Of rankings, tags, annotations and rectangles
    _metric("MAP", labels.average_precision, mean_measure("precision"), "mean average precision",
            parse_answer=labels.relevant_items, answers="all"),
    Family("NDCG@", lambda first, name: _metric(
        name, Partial(labels.discounted_gain, first), mean_measure("gain"),
        "mean discounted gain of the first items", answers="all"), COUNTABLE, 10),
    _tokens("TokenAccuracy", tags.token_hits, sum_measure(classes.ratio, "right", "tokens"),
            "share of tokens tagged right"),
    _entities("BIO-F1", Partial(tags.entity_counts, 4), f_measure(1),
              "F-score of entities, with their normalised forms"),
    _entities("BIO-F1-Labels", Partial(tags.entity_counts, 3), f_measure(1),
              "F-score of entities, without their normalised forms"),
    _entities("BIO-Weighted-F1", tags.counts_by_label,
              corpus_measure(Partial(classes.score_of_labels, classes.weighted_f), *COUNTS),
              "mean of the labels' F-scores, by how often they are expected", beside="details"),
    Family("Soft-F", lambda beta, name: _annotations(
        name, spans.soft_counts, f_measure(beta),
        "F-score of annotations, as far as their positions agree", needs=_SCIPY, has_free_input=True)),
    Family("Probabilistic-Soft-F", lambda beta, name: _annotations(
        name, assignment.probable_counts, probabilistic_measure(beta),
        "calibration and recall of annotations with probabilities", has_free_input=True,
        parse=spans.probable_annotations, **_PROBABILISTIC)),
    Family("FLC-F", lambda beta, name: _annotations(
        name, spans.fragment_counts,
        sum_measure(Partial(spans.fragment_f, beta), "expected_covered", "given_covered", *COUNTS[1:]),
        "F-score of annotations, by how much of each the others cover")),
    _tokens("SegmentAccuracy", spans.segment_hits, corpus_measure(spans.segment_accuracy, "right", "expected"),
            "mean share of the lines' segments that are exactly right",
            parse_both=spans.read_segments),
    Family("Soft2D-F", lambda beta, name: _rectangles(
        name, line_scorer(rectangles.area_counts, f_measure(beta)), mean_measure("score"),
        "mean of the F-scores of the area of each line's rectangles", has_free_input=True)),
    Family("Probabilistic-Soft2D-F", lambda beta, name: _rectangles(
        name, assignment.probable_counts, probabilistic_measure(beta),
        "F-score of rectangles with probabilities: calibration and recall", **_PROBABILISTIC)),
    _clippings("ClippEU", rectangles.clipping_counts, f_measure(2),
            "F2 of rectangles, which are right within a margin", perfect=rectangles.without_margins,
            needs=_SCIPY),
    _intervals("RMSE-Against-Interval", _SQUARED_DISTANCE, _ROOT_SQUARED,
               "root of the mean squared distance to an interval"),
    _intervals("MSE-Against-Interval", _SQUARED_DISTANCE, _SQUARED, "mean squared distance to an interval"),
    _intervals("MAE-Against-Interval", Partial(regression.against_interval, regression.absolute_error), _ABSOLUTE,
               "mean distance to an interval"),
    Family("Improvement@", lambda threshold, name: _numbers(
        name, regression.both_numbers,
        corpus_measure(Partial(regression.improvement, threshold), "expected", "output", unit=OF_ANSWERS,
                       best=inf, worst=-inf),
        "mean answer of the lines that the output selects, less that of all lines"), -inf, 0.5),
    _tokens("CustomMetric1", classes.field_shares, mean_measure("score"),
            "a quarter for the first of two fields, the rest for the other",
            parse_both=classes.read_fields),
    # Metrics with prefixes, the most usual ones
    "Lower/Accuracy",
    "Fuzzy/Accuracy",
    "Fuzzy/MultiLabel-F1",
    _metric("MacroAvg/Accuracy", Partial(classes.in_class, exact.miss), class_measure(ACCURACY),
            "mean over the expected classes: share of lines whose best guess is right", is_tokenised=True,
            has_classes=True, labels="one", beside="details"),
    "MacroAvg/F1",
    "MacroAvg/RMSE",
    "MacroAvg/MSE",
    "MacroAvg/MAE",
    "MacroAvg/SMAPE",
)  # fmt: skip

# Names before other metrics

MAX_PREFIXES = 10
MATCHED = rf"(?:(?:{'|'.join(MATCHINGS)})/)*"


class Prefix(NamedTuple):
    """A name that changes the metric behind it, if a pattern matches that metric's name.

    ``make`` makes the metric of the whole name and the metric behind the prefix; ``refusal`` is GEval's message.
    """

    pattern: str
    make: Callable[[str, Metric], Metric]
    refusal: str


def mean_of_lines(name: str, metric: Metric) -> Metric:
    """Make the mean of a metric's scores of each line alone."""
    column = cast("RowColumn", metric.column)
    return metric._replace(
        name=name,
        column=column._replace(row=line_scorer(column.row, metric.measure), width=1),
        measure=metric.measure._replace(formula=mean, columns=("score",)),
        summary=f"mean of the lines' {metric.name}",
    )


def mean_of_classes(name: str, metric: Metric) -> Metric:
    """Make the mean of a metric's scores of the lines of each expected class, text or number."""
    column = cast("RowColumn", metric.column)
    by_class = column._replace(row=Partial(classes.in_class, column.row), beside="details")
    summary = f"mean over the expected classes: {metric.summary}"
    return metric._replace(name=name, column=by_class, measure=class_measure(metric.measure), summary=summary)


def matched_metric(name: str, metric: Metric) -> Metric:
    """Make Accuracy or MultiLabel-F of answers that are compared in another way."""
    matching = (name.partition("/")[0], *metric.matching)
    compared, needs = f"compared by {'/'.join(matching)}", _DISTANCES * ("Fuzzy" in matching)
    if metric.labels == "one":
        row, summary = Partial(answer_distance, matching), f"Accuracy of texts {compared}"
        return _tokens(name, row, ACCURACY, summary, matching=matching, answers="any", needs=needs, labels="one")
    row, summary = Partial(matched_counts, matching), f"the F-score of labels {compared}"
    return _tokens(
        name, row, metric.measure, summary, matching=matching, labels="several", needs=_SCIPY + needs
    )  # fmt: skip


PREFIXES = {
    "Mean": Prefix(
        rf"{MATCHED}MultiLabel-F[0-9.]+|WER|CER|WAR|CAR",
        mean_of_lines,
        "Mean/ meta-metric defined only for MultiLabel-F1, WER, CER, WAR and CAR for the time being\n"
        "  it is the mean of the scores of single lines",
    ),
    "MacroAvg": Prefix(
        rf"{MATCHED}Accuracy|F[0-9.]+|RMSE|MSE|MAE|SMAPE",
        mean_of_classes,
        "MacroAvg/ meta-metric defined only for Likelihood, Accuracy, FMeasure, RMSE, MSE, MAE, SMAPE\n"
        "  it is the mean of the scores of each expected class",
    ),
} | dict.fromkeys(
    MATCHINGS,
    Prefix(
        rf"{MATCHED}(?:Accuracy|MultiLabel-F[0-9.]+)",
        matched_metric,
        "Matching specification cannot be applied to the {metric} metric\n"
        "  {prefix}/ says how the answers of Accuracy and MultiLabel-F1 are compared",
    ),
)

ROWS = (*HASHED_FAMILIES.values(), *TABLE)
FAMILIES = {row.stem: row for row in ROWS if isinstance(row, Family)}
METRICS: dict[str, Metric] = {}


def find(name: str) -> Metric | None:
    """Return the metric of a name: in the table, in a family, or with prefixes; None for an unknown one.

    Raises SchemeError for a prefix that is not for the metric behind it.
    """
    metric = METRICS.get(name) or find_in_family(name, FAMILIES)
    prefix, slash, inner = name.partition("/")
    if metric is not None or not slash or prefix not in PREFIXES or inner.count("/") >= MAX_PREFIXES:
        return metric
    inner_metric = find(inner)
    if inner_metric is None:
        return None
    pattern, make, refusal = PREFIXES[prefix]
    if not re.fullmatch(pattern, inner):
        raise SchemeError(refusal.format(prefix=prefix, metric=geval_name(inner)), scheme=name)
    return make(name, inner_metric)


for row in ROWS:
    if isinstance(row, Family):
        METRICS[row.usual_name] = row.make(row.usual, row.usual_name)
    elif metric := row if isinstance(row, Metric) else find(row):
        METRICS[metric.name] = metric


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
    family, number = split_name(name, FAMILIES) or (None, 0)
    if family is None or isinstance(number, int):
        return "MultiLabel-Logloss" if name == "MultiLabel-LogLoss" else name
    return family.stem + numbers.exact(number)
