"""The tables of all metrics but those on hashed words, and of the families of metrics that a number parametrises.

A function of a line computes a metric's statistics; it stands in the module of its kind (``exact``, ``classes``,
``distributions``, ``translation``, …). Metrics of a family are made on request, such as F2 beside F1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, TypeAlias, cast

from geval_py.reading.schemes import DEFAULT_BITS, MAX_BITS, MIN_BITS
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
    CROSS_ENTROPY,
    LIKELIHOOD,
    LOG_LOSS,
    PERPLEXITY,
    CorpusScore,
    Formula,
    Measure,
    Metric,
    first_total,
    mean,
)
from geval_py.scoring.metrics.columns import Parse, Partial, RowColumn, elementwise, number_of, read_number
from geval_py.scoring.metrics.matching import MATCHINGS, answer_distance, matched_counts
from geval_py.tables import numbers
from geval_py.text import strip_spaces

_DISTANCES, _SCIPY = ("rapidfuzz.distance",), ("scipy",)  # scipy.optimize takes longer to import


def _metric(
    name: str,
    row: Callable[..., Any],
    measure: Measure,
    summary: str,
    *,
    parse: Parse | None = None,
    parse_answer: Parse | None = None,
    parse_both: Parse | None = None,
    parse_input: Parse | None = None,
    check: Parse | None = None,
    beside: Literal["details", "classes", "out_of_vocabulary"] | None = None,
    **more: Any,
) -> Metric:
    """Make a metric of what a function computes line by line; see :class:`RowColumn`.

    ``parse_both`` is for output lines and answers, unless there is one for either. ``check`` has the errors of an
    output line, where these are not those of ``parse``.
    """
    parse = parse or parse_both
    column = RowColumn(row, len(measure.columns), parse, parse_answer or parse_both, parse_input, beside)
    return Metric(name, column, measure, summary, parse=check or parse, **more)


_words = partial(_metric, row=exact.word_loss, beside="out_of_vocabulary", is_of_words=True, needs_vocabulary=True)
_entries = partial(_metric, has_entries=True, parse=distributions.listed_of, check=distributions.entries_of)
_norms = partial(_entries, parse_answer=distributions.norm_of, answers="shares")
_labels = partial(_entries, has_classes=True, labels="one")
_tokens = partial(_metric, is_tokenised=True)
_edits = partial(_tokens, needs=_DISTANCES)
_numbers = partial(_metric, parse_both=number_of)
_intervals = partial(_numbers, parse_answer=regression.read_interval, perfect=regression.lower_bound)
_entities = partial(_tokens, parse_both=tags.entities_of)
_annotations = partial(
    _metric, parse=Partial(spans.read_annotations, True), parse_answer=Partial(spans.read_annotations, False)
)
_rectangles = partial(
    _metric,
    parse=Partial(rectangles.read_rectangles, True),
    parse_answer=Partial(rectangles.read_rectangles, False),
)


def _sums(score: Callable[..., float], *columns: str, **ends: Any) -> Measure:
    """Make a measure of a function of the sums of statistics, by default in [0, 1], where 1 is best."""
    return Measure(Partial(elementwise, score), columns, **ends)


def _mean(column: str, formula: Formula = mean, **ends: Any) -> Measure:
    """Make a measure of the mean of a statistic."""
    return Measure(formula, (column,), **ends)


def _error(formula: Formula, *columns: str, unit: str, worst: float = inf) -> Measure:
    return Measure(formula, columns, unit, 0.0, worst)


def _corpus_level(score: CorpusScore, *columns: str, **ends: Any) -> Measure:
    return Measure(first_total, columns, corpus_score=score, **ends)


def _rest(totals: Sequence[Any], lines: Any) -> Any:
    return 1 - totals[0] / lines


def _mean_gap(totals: Sequence[Any], lines: Any) -> Any:
    return sum(map(abs, totals)) / lines


def _f_measure(beta: float) -> Measure:
    return _sums(Partial(classes.f_score, beta), *_COUNTS)


def _probabilistic(beta: float) -> Measure:
    return _corpus_level(Partial(labels.probabilistic_f, beta), "mass", "expected")


def _of_line(row: Callable[..., Any], score: Callable[..., float]) -> Partial:
    return Partial(classes.line_score, row, score)


_COUNTS = ("right", "expected", "given")
_CORRELATION: dict[str, Any] = {"unit": "correlation", "worst": -1.0}
_OF_ANSWERS = "answers' unit"

# Families


# By the name before a number: the function that makes the metric of that number, and the numbers there are: whole
# ones of a range, or any from a least one on.
Family: TypeAlias = tuple[Callable[[Any, str], Metric], "range | float"]
_COUNTABLE, _BITS = range(1, 1_000_000_000), range(MIN_BITS, MAX_BITS + 1)
FAMILIES: dict[str, Family] = {
    "Hit@": (lambda first, name: _entries(
        name, Partial(distributions.miss_of_first, first), ACCURACY,
        "share of lines whose answer is among the first guesses"), _COUNTABLE),
    "KeystrokesSaved@": (lambda first, name: _entries(
        name, Partial(distributions.keystrokes, first), _sums(classes.ratio, "saved", "characters"),
        "share of characters that need not be typed"), _COUNTABLE),
    "CrossEntropyToNormsHashed": (lambda bits, name: _norm_loss(
        name, bits, 0.0, "mean loss of all answers, by their shares"), _BITS),
    "KullbackLeiblerHashed": (lambda bits, name: _norm_loss(
        name, bits, 1.0, "mean divergence from the shares of all answers"), _BITS),
    "CalibrationError": (lambda bins, name: _labels(
        name, Partial(distributions.confidence_gap, bins),
        _error(_mean_gap, *(f"gap_{place}" for place in range(1, bins + 1)), unit="probability", worst=1.0),
        "distance of the best guess's probability from the share of hits"), range(1, 101)),
    "F": (lambda beta, name: _metric(
        name, classes.detection, _f_measure(beta), "F-score of the class 1",
        parse=classes.is_given, parse_answer=classes.is_wanted), 0.0),
    "Macro-F": (lambda beta, name: _metric(
        name, classes.classes, _corpus_level(Partial(classes.macro_f, beta), "hit"),
        "mean of the F-scores of the expected classes", has_classes=True, labels="one", beside="details"), 0.0),
    "MultiLabel-F": (lambda beta, name: _tokens(
        name, labels.label_counts, _f_measure(beta), "F-score of the labels of all lines",
        labels="several"), 0.0),
    "Mean/MultiLabel-F": (lambda beta, name: _tokens(
        name, _of_line(labels.label_counts, Partial(classes.f_score, beta)), _mean("score"),
        "mean of the F-scores of each line's labels", labels="several"), 0.0),
    "Probabilistic-MultiLabel-F": (lambda beta, name: _tokens(
        name, labels.probable_counts, _probabilistic(beta),
        "the same of labels with probabilities: calibration and recall", needs=_SCIPY, labels="several",
        has_curve=True, beside="details"), 0.0),
    "NDCG@": (lambda first, name: _metric(
        name, Partial(labels.discounted_gain, first), _mean("gain"),
        "mean discounted gain of the first items", answers="all"), _COUNTABLE),
    "Soft-F": (lambda beta, name: _annotations(
        name, spans.soft_counts, _f_measure(beta),
        "F-score of annotations, as far as their positions agree", needs=_SCIPY, has_free_input=True), 0.0),
    "Probabilistic-Soft-F": (lambda beta, name: _annotations(
        name, assignment.probable_counts, _probabilistic(beta),
        "the same of annotations with probabilities: calibration and recall", needs=_SCIPY, is_tokenised=True,
        parse=spans.probable_annotations, has_free_input=True, has_curve=True, beside="details"), 0.0),
    "FLC-F": (lambda beta, name: _annotations(
        name, spans.fragment_counts,
        _sums(Partial(spans.fragment_f, beta), "expected_covered", "given_covered", *_COUNTS[1:]),
        "F-score of annotations, by how much of each the others cover"), 0.0),
    "Soft2D-F": (lambda beta, name: _rectangles(
        name, _of_line(rectangles.area_counts, Partial(classes.f_score, beta)), _mean("score"),
        "mean of the F-scores of the area of each line's rectangles", has_free_input=True), 0.0),
    "Probabilistic-Soft2D-F": (lambda beta, name: _rectangles(
        name, assignment.probable_counts, _probabilistic(beta),
        "F-score of rectangles with probabilities: calibration and recall", needs=_SCIPY, is_tokenised=True,
        has_curve=True, beside="details"), 0.0),
    "Improvement@": (lambda threshold, name: _numbers(
        name, regression.both_numbers,
        _corpus_level(Partial(regression.improvement, threshold), "expected", "output", unit=_OF_ANSWERS,
                      best=inf, worst=-inf),
        "mean answer of the lines that the output selects, less that of all lines"), -inf),
}  # fmt: skip
USUAL_NUMBERS = {
    "CrossEntropyToNormsHashed": DEFAULT_BITS,
    "KullbackLeiblerHashed": DEFAULT_BITS,
    "CalibrationError": 10,
}
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?\Z")


def _norm_loss(name: str, bits: int, weight: float, summary: str) -> Metric:
    """Make a metric of the buckets of a line and of a norm."""
    line, norm = (
        Partial(distributions.buckets_of, bits, parse) for parse in (distributions.listed_of, distributions.norm_of)
    )
    row = Partial(distributions.norm_loss, bits, weight)
    return _norms(name, row, CROSS_ENTROPY, summary, parse=line, parse_answer=norm)


def _split_number(name: str) -> tuple[str, Any] | None:
    """Split a name of a family's metric into the name before its number, and the number; None for another name.

    The number is an int in a family of whole numbers, else a float. Some names without a number have a usual one.
    """
    if name in USUAL_NUMBERS:
        return name, USUAL_NUMBERS[name]
    number = _NUMBER.search(name)
    stem = name[: number.start()] if number else name
    if number is None or stem not in FAMILIES:
        return None
    _, numbers = FAMILIES[stem]
    if isinstance(numbers, range):
        return (stem, int(number[0])) if number[0].isdecimal() and int(number[0]) in numbers else None
    return (stem, float(number[0])) if numbers < 0 or not number[0].startswith("-") else None


def find_in_family(name: str) -> Metric | None:
    """Make the metric of a name that ends in a number of its family, or has a usual one; None if there is none."""
    stem, number = _split_number(name) or ("", None)
    return FAMILIES[stem][0](number, name) if stem else None


# Tables


def _of_sacrebleu(name: str, summary: str, *columns: str, unit: str = "points", **ends: Any) -> Metric:
    measure = _sums(Partial(texts.sacre_score, name), "references", *columns, unit=unit, **{"best": 100.0} | ends)
    return Metric(name, texts.SacreColumn(name), measure, summary, answers="any",
                  needs=("sacrebleu",), signature=Partial(texts.sacre_signature, name),
                  details=texts.sacre_details if name == "SacreBLEU" else None)  # fmt: skip


_ON_EXACT_WORDS = "the same, on exact words and a vocabulary"
_RIGHT_NGRAMS, _NGRAMS = (tuple(f"{what}_{n}" for n in range(1, 5)) for what in ("right", "all"))
_CHARACTERS = tuple(f"{what}_{n}" for n in range(1, 7) for what in ("all", "reference", "right"))
_WORDS_TOO = (*_CHARACTERS, *(f"{what}_words_{n}" for n in (1, 2) for what in ("all", "reference", "right")))
_SQUARED_DISTANCE = Partial(regression.against_interval, regression.squared_error)
_ROOT_SQUARED = _error(regression.root_mean, "squared_error", unit=_OF_ANSWERS)
_SQUARED, _ABSOLUTE = _error(mean, "squared_error", unit="its square"), _error(mean, "error", unit=_OF_ANSWERS)
_WORD_RATE, _CHARACTER_RATE = (_of_line(row, texts.error_rate) for row in (texts.word_errors, texts.character_errors))
_TABLE: tuple[Metric | str, ...] = (  # metrics, and names in families
    _words(name="Likelihood", measure=LIKELIHOOD, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _words(name="LogLoss", measure=LOG_LOSS, summary=f"{_ON_EXACT_WORDS}; or of a class"),
    _words(name="Perplexity", measure=PERPLEXITY, summary=_ON_EXACT_WORDS),
    _words(name="CrossEntropy", measure=CROSS_ENTROPY, summary=_ON_EXACT_WORDS),
    _metric("MacroAvg/Likelihood", exact.binary_loss, LIKELIHOOD, "mean of the likelihoods of the expected classes",
            parse_both=read_number, check=number_of, beside="classes"),
    _metric("Accuracy", exact.miss, ACCURACY, "share of lines whose best guess is right", labels="one"),
    # Of distributions
    "Hit@3",
    _entries("MRR", distributions.reciprocal_rank, _mean("reciprocal_rank"), "mean reciprocal rank of the answer"),
    "KeystrokesSaved@3",
    _entries("ChoiceAccuracy", distributions.choice_miss, ACCURACY, "share of lines whose likeliest option is right",
             parse_input=distributions.options_of, needs_input=True, labels="one"),
    _entries("ChoiceLogLoss", distributions.choice_loss, LOG_LOSS, "mean loss of the right option, among the options",
             parse_input=distributions.options_of, needs_input=True),
    "CrossEntropyToNormsHashed",
    "KullbackLeiblerHashed",
    _norms("RankCorrelation", distributions.rank_correlation,
           _sums(distributions.mean_correlation, "correlation", "ranked", **_CORRELATION),
           "mean rank correlation with the shares of a line's answers"),
    _labels("BrierScore", distributions.brier_score,
            _error(mean, "squared_distance", unit="squared probability", worst=2.0),
            "mean squared distance of all labels' probabilities", parse=distributions.entries_of,
            needs_vocabulary=True),
    "CalibrationError",
    _entries("LogSkillScore", distributions.relative_loss,
             _sums(distributions.skill, "loss", "baseline_loss", worst=-inf),
             "share of a baseline's loss that is avoided", needs_input=True),
    # Of texts
    _tokens("BLEU", texts.bleu_row, _sums(texts.bleu, *_RIGHT_NGRAMS, "reference_words", *_NGRAMS),
            "GEval's precision of n-grams", answers="any", details=texts.bleu_details),
    _tokens("GLEU", texts.gleu_row, _sums(classes.ratio, "right", "all"), "share of n-grams that are right",
            answers="any"),
    _of_sacrebleu("SacreBLEU", "sacreBLEU's BLEU, with its tokens and smoothing", "words", "reference_words",
                  *_RIGHT_NGRAMS, *_NGRAMS),
    _of_sacrebleu("chrF", "sacreBLEU's F-score of character n-grams", *_CHARACTERS),
    _of_sacrebleu("chrF++", "the same, with words and pairs of words", *_WORDS_TOO),
    _of_sacrebleu("TER", "sacreBLEU's translation edit rate", "edits", "words", unit="percent",
                  best=0.0, worst=inf),
    _edits("WER", texts.word_errors,
           _sums(texts.error_rate, "edits", "words", unit="per word", best=0.0, worst=inf), "word error rate"),
    _edits("CER", texts.character_errors,
           _sums(texts.error_rate, "edits", "characters", unit="per character", best=0.0, worst=inf),
           "character error rate"),
    _edits("WAR", texts.word_errors, _sums(texts.right_rate, "edits", "words", worst=-inf),
           "1 minus the word error rate"),
    _edits("CAR", texts.character_errors, _sums(texts.right_rate, "edits", "characters", worst=-inf),
           "1 minus the character error rate"),
    _edits("Mean/WER", _WORD_RATE, _error(mean, "rate", unit="per word"), "mean of the lines' WER"),
    _edits("Mean/CER", _CHARACTER_RATE, _error(mean, "rate", unit="per character"), "mean of the lines' CER"),
    _edits("Mean/WAR", _WORD_RATE, _mean("rate", _rest, worst=-inf), "mean of the lines' WAR"),
    _edits("Mean/CAR", _CHARACTER_RATE, _mean("rate", _rest, worst=-inf), "mean of the lines' CAR"),
    _edits("CharMatch", texts.corrections, _f_measure(0.5), "F0.5 of the corrections of the input",
           needs_input=True),
    # Of classes and labels
    "F1",
    "Macro-F1",
    _metric("NMI", classes.clusters, _corpus_level(classes.mutual_information, "equal"),
            "normalised mutual information of the classes expected and given", beside="details"),
    "MultiLabel-F1",
    "Mean/MultiLabel-F1",
    "Probabilistic-MultiLabel-F1",
    _metric("MultiLabel-LogLoss", labels.label_loss, LOG_LOSS, "mean loss of a line's labels", labels="several"),
    _metric("MultiLabel-Likelihood", labels.label_loss, LIKELIHOOD,
            "geometric mean of the probabilities of the lines' labels", labels="several"),
    # Of numbers and points
    _numbers("RMSE", regression.squared_error, _ROOT_SQUARED, "root of the mean squared error"),
    _numbers("MSE", regression.squared_error, _SQUARED, "mean squared error"),
    _numbers("MAE", regression.absolute_error, _ABSOLUTE, "mean absolute error"),
    _numbers("SMAPE", regression.relative_error,
             _error(regression.percent, "error", unit="percent", worst=100.0),
             "mean absolute error, by the sizes of both numbers"),
    _numbers("Pearson", regression.both_numbers,
             _corpus_level(Partial(regression.correlation, None), "expected", "output", **_CORRELATION),
             "correlation of the numbers"),
    _numbers("Spearman", regression.both_numbers,
             _corpus_level(Partial(regression.correlation, regression.ranks), "expected", "output",
                           **_CORRELATION),
             "correlation of their ranks"),
    _metric("Haversine", regression.haversine, _error(mean, "distance", unit="kilometres"),
            "mean distance of points on Earth", parse_both=regression.read_point),
    # Of rankings, tags, annotations and rectangles
    _metric("MAP", labels.average_precision, _mean("precision"), "mean average precision",
            parse_answer=labels.relevant_items, answers="all"),
    "NDCG@10",
    _tokens("TokenAccuracy", tags.token_hits, _sums(classes.ratio, "right", "tokens"),
            "share of tokens tagged right"),
    _entities("BIO-F1", Partial(tags.entity_counts, 4), _f_measure(1),
              "F-score of entities, with their normalised forms"),
    _entities("BIO-F1-Labels", Partial(tags.entity_counts, 3), _f_measure(1), "the same, without these forms"),
    _entities("BIO-Weighted-F1", tags.counts_by_label, _corpus_level(tags.weighted_f, *_COUNTS),
              "mean of the labels' F-scores, by how often they are expected", beside="details"),
    "Soft-F1",
    "Probabilistic-Soft-F1",
    "FLC-F1",
    _tokens("SegmentAccuracy", spans.segment_hits, _corpus_level(spans.segment_accuracy, "right", "expected"),
            "mean share of the lines' segments that are exactly right",
            parse_both=spans.read_segments),
    "Soft2D-F1",
    "Probabilistic-Soft2D-F1",
    _metric("ClippEU", rectangles.clipping_counts, _f_measure(2),
            "F2 of rectangles, which are right within a margin", parse=Partial(rectangles.read_clippings, True),
            parse_answer=Partial(rectangles.read_clippings, False), perfect=rectangles.without_margins,
            needs=_SCIPY),
    _intervals("RMSE-Against-Interval", _SQUARED_DISTANCE, _ROOT_SQUARED,
               "root of the mean squared distance to an interval"),
    _intervals("MSE-Against-Interval", _SQUARED_DISTANCE, _SQUARED, "mean squared distance to an interval"),
    _intervals("MAE-Against-Interval", Partial(regression.against_interval, regression.absolute_error), _ABSOLUTE,
               "mean distance to an interval"),
    "Improvement@0.5",
    _tokens("CustomMetric1", classes.field_shares, _mean("score"),
            "a quarter for the first of two fields, the rest for the other",
            parse_both=classes.read_fields),
)  # fmt: skip
_MADE = (find_in_family(metric) if isinstance(metric, str) else metric for metric in _TABLE)
OTHER_METRICS = {metric.name: metric for metric in _MADE if metric is not None}

# Metrics with a slash in their names, beside Mean/WER and the like

MAX_MATCHINGS = 10
_CLASS_OF = {"F": bool} | dict.fromkeys(("RMSE", "MSE", "MAE", "SMAPE"), float)  # of a parsed answer


def find_prefixed(name: str) -> Metric | None:
    """Make the metric of a name such as MacroAvg/F2, Smart/Fuzzy/Accuracy or Mean/Lower/MultiLabel-F1.

    Return None for another name, and for one with more than MAX_MATCHINGS names of matching.
    """
    *prefixes, inner = name.split("/")
    average = prefixes.pop(0) if prefixes and prefixes[0] in ("MacroAvg", "Mean") else ""
    matching = tuple(prefixes)
    metric = OTHER_METRICS.get(inner) or find_in_family(inner)
    is_one = bool(average or matching) and len(matching) <= MAX_MATCHINGS and {*matching} <= {*MATCHINGS}
    if metric is None or not is_one:
        return None
    stem, beta = _split_number(inner) or (inner, None)
    needs = _DISTANCES if "Fuzzy" in matching else ()
    if stem == "Accuracy" and average != "Mean":
        metric = metric._replace(is_tokenised=True, has_classes=True)
        if matching:
            metric = _tokens(
                name, Partial(answer_distance, matching), ACCURACY,
                f"Accuracy of texts compared by {'/'.join(matching)}", matching=matching, answers="any", needs=needs,
                labels="one",
            )  # fmt: skip
        return _per_class(metric, name, strip_spaces) if average else metric
    if stem == "MultiLabel-F" and average != "MacroAvg":
        row, measure = Partial(matched_counts, matching), metric.measure
        summary = f"the F-score of labels compared by {'/'.join(matching)}"
        if average:
            row, measure = _of_line(row, Partial(classes.f_score, beta)), _mean("score")
            summary = f"mean of each line's: {summary}"
        return _tokens(name, row, measure, summary, matching=matching, labels="several", needs=(*_SCIPY, *needs))
    if average == "MacroAvg" and not matching and stem in _CLASS_OF:
        return _per_class(metric, name, _CLASS_OF[stem])
    return None


def _per_class(metric: Metric, name: str, class_of: Callable[[Any], Any]) -> Metric:
    """Make the mean of a metric's scores of the lines of each expected class, text or number.

    Classes are few. Texts and numbers may be as many as the lines, so their sums would fill a matrix of lines by
    lines; a corpus-level score adds only what it needs.
    """
    column, measure = cast("RowColumn", metric.column), metric.measure
    if not (metric.has_classes or measure.columns == _COUNTS):
        score = Partial(classes.mean_of_classes, measure.formula)
        measure = measure._replace(formula=first_total, columns=("error",), corpus_score=score)
    by_class = column._replace(row=Partial(classes.in_class, column.row, class_of), beside="classes")
    summary = f"mean over the expected classes: {metric.summary}"
    return metric._replace(name=name, column=by_class, measure=measure, summary=summary)


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
    if parts is None or isinstance(parts[1], int):
        return "MultiLabel-Logloss" if name == "MultiLabel-LogLoss" else name
    stem, number = parts
    return stem + numbers.exact(number)


_MATCHED = r"Accuracy|MultiLabel-F[0-9.e-]+"
_MEANS = {  # for which metrics GEval has a mean, and what it says of others
    "Mean": (
        r"MultiLabel-F.*|WER|CER|WAR|CAR",
        "Mean/ meta-metric defined only for MultiLabel-F1, WER, CER, WAR and CAR for the time being\n"
        "  it is the mean of the scores of single lines",
    ),
    "MacroAvg": (
        r"Likelihood|Accuracy|F[0-9.e-]+|RMSE|MSE|MAE|SMAPE",
        "MacroAvg/ meta-metric defined only for Likelihood, Accuracy, FMeasure, RMSE, MSE, MAE, SMAPE\n"
        "  it is the mean of the scores of each expected class",
    ),
}


def misapplied(name: str) -> str | None:
    """Return GEval's sentence about a prefix that is not for the metric after it; None for any other fault."""
    *prefixes, inner = name.split("/")
    if not {*prefixes} <= {*MATCHINGS, *_MEANS}:
        return None
    metric = geval_name(inner)
    matched = re.fullmatch(_MATCHED, metric) is not None
    for prefix in reversed(prefixes):
        if prefix in MATCHINGS and not matched:
            return (
                f"Matching specification cannot be applied to the {metric} metric\n"
                f"  {prefix}/ says how the answers of Accuracy and MultiLabel-F1 are compared"
            )
        matched = matched and prefix in MATCHINGS
        metric = f"{prefix}/{metric}"
    if prefixes[0] not in _MEANS:
        return None
    pattern, sentence = _MEANS[prefixes[0]]
    is_of_mean = any(prefix in _MEANS for prefix in prefixes[1:])
    return sentence if is_of_mean or not re.fullmatch(pattern, geval_name(inner)) else None
