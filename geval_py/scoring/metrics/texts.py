"""The table of the metrics of other tasks than word gaps; a metric's module is imported when the metric is used.

Some names end in a number, such as the β of an F-score. Those that are not in the table are made on request.
"""

from __future__ import annotations

import re
from functools import cache, partial
from importlib import import_module

from geval_py.errors import MissingPackageError
from geval_py.scoring.metrics.base import ACCURACY, LIKELIHOOD, LOG_LOSS, Elementwise, Measure, Metric, Setting, whole
from geval_py.values import Value
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from geval_py.scoring.metrics.base import Column


_INFINITE = float("inf")
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?\Z")


@cache  # it is asked for on each line, and for each of many resamples
def load(module: str, name: str, needs: str = "") -> Any:
    """Return a function of a module of metrics; raises MissingPackageError for one that it ``needs``."""
    try:
        for library in needs.split():
            import_module(library)
        return getattr(import_module(f"geval_py.scoring.metrics.{module}"), name)
    except ModuleNotFoundError as error:
        package = error.name or ""
        message = f"this metric needs {package}, of the extra text: {installs('text')}"
        raise MissingPackageError(message=message, package=package) from error


class Late(Value):
    """A function that is imported when it is called; ``given`` are its first arguments."""

    module: str
    name: str
    given: tuple[Any, ...] = ()
    needs: str = ""

    def __call__(self, *arguments: Any) -> Any:
        return load(self.module, self.name, self.needs)(*self.given, *arguments)


class LateColumn(Value):
    """Makes a RowColumn or an InputColumn (``kind``) of a function of each line, and of more ``arguments``."""

    kind: str
    module: str
    name: str
    arguments: tuple[Any, ...]
    needs: str = ""

    def __call__(self, setting: Setting) -> Column:
        del setting
        column: Column = load("columns", self.kind)(load(self.module, self.name, self.needs), *self.arguments)
        return column


_DISTANCES = "rapidfuzz.distance"
_SCIPY = "scipy"  # scipy.optimize takes longer to import, and is where lines need it


def _late(module: str, name: str, *given: Any, needs: str = "") -> Late:
    return Late(module=module, name=name, given=given, needs=needs)


def _rows(
    module: str, name: str, width: int = 1, *given: Any, beside: str | None = None, needs: str = ""
) -> LateColumn:
    return LateColumn(kind="RowColumn", module=module, name=name, arguments=(width, given, beside), needs=needs)


def _edits(name: str, width: int = 1) -> LateColumn:
    return _rows("translation", name, width, needs=_DISTANCES)


def _sacre(what: str, name: str) -> Late:
    return _late("translation", f"sacre_{what}", name, needs="sacrebleu")


def _higher(
    formula: Callable[..., float], *columns: str, unit: str = "share", best: float = 1.0, worst: float = 0.0
) -> Measure:
    of = Elementwise(score=formula)
    return Measure(unit=unit, direction="higher", best=best, worst=worst, formula=of, columns=columns)


def _lower(formula: Callable[..., float], *columns: str, unit: str, worst: float = _INFINITE) -> Measure:
    of = Elementwise(score=formula)
    return Measure(unit=unit, direction="lower", best=0.0, worst=worst, formula=of, columns=columns)


def _of_all(
    ruler: Callable[..., Any], *columns: str, unit: str = "share", best: float = 1.0, worst: float = 0.0
) -> Measure:
    return Measure(unit=unit, direction="higher", best=best, worst=worst, formula=whole, columns=columns, ruler=ruler)


def _mean(totals: Sequence[float], lines: float) -> float:
    return totals[0] / lines


def _rest(totals: Sequence[float], lines: float) -> float:
    return 1 - totals[0] / lines


_Metric = partial(Metric, is_of_words=False)
_Tokens = partial(_Metric, is_tokenised=True)


def _f(beta: float, name: str = "F1") -> Metric:
    return _Metric(name=name, make_column=_rows("classes", "detection", 3), measure=_f_measure(beta),
                   parse=_late("classes", "is_given"), summary="F-score of the class 1")  # fmt: skip


def _macro_f(beta: float, name: str = "Macro-F1") -> Metric:
    return _Metric(name=name, make_column=_rows("classes", "classes", beside="details"),
                   measure=_of_all(_late("classes", "macro_f", beta), "hit"), has_classes=True, labels="one",
                   summary="mean of the F-scores of the expected classes")  # fmt: skip


def _label_f(beta: float, name: str = "MultiLabel-F1") -> Metric:
    return _Tokens(name=name, make_column=_rows("labels", "label_counts", 3), measure=_f_measure(beta),
                   labels="several", summary="F-score of the labels of all lines")  # fmt: skip


def _mean_label_f(beta: float, name: str = "Mean/MultiLabel-F1") -> Metric:
    return _Tokens(name=name, make_column=_rows("labels", "label_f", 1, beta), measure=_higher(_mean, "score"),
                   labels="several", summary="mean of the F-scores of each line's labels")  # fmt: skip


def _probabilistic_f(beta: float, name: str = "Probabilistic-MultiLabel-F1") -> Metric:
    make_column = _rows("labels", "probable_counts", 2, beside="details", needs=_SCIPY)
    return _Tokens(name=name, labels="several", make_column=make_column, has_curve=True,
                   measure=_of_all(_late("labels", "probabilistic_f", beta), "mass", "expected"),
                   summary="the same of labels with probabilities: calibration and recall")  # fmt: skip


def _ndcg(first: float, name: str = "NDCG@10") -> Metric:
    return _Metric(name=name, answers="all", make_column=_rows("labels", "discounted_gain", 1, int(first)),
                   measure=_higher(_mean, "gain"), summary="mean discounted gain of the first items")  # fmt: skip


# Annotations, clippings, intervals


def _soft_f(beta: float, name: str = "Soft-F1") -> Metric:
    return _Metric(name=name, make_column=_rows("spans", "soft_counts", 3, needs=_SCIPY), measure=_f_measure(beta),
                   parse=_late("spans", "given_annotations"), has_free_input=True,
                   summary="F-score of annotations, as far as their positions agree")  # fmt: skip


def _probabilistic_soft_f(beta: float, name: str = "Probabilistic-Soft-F1") -> Metric:
    make_column = _rows("spans", "probable_soft_counts", 2, beside="details", needs=_SCIPY)
    return _Tokens(name=name, make_column=make_column, parse=_late("spans", "given_annotations"), has_free_input=True,
                   has_curve=True,
                   measure=_of_all(_late("labels", "probabilistic_f", beta), "mass", "expected"),
                   summary="the same of annotations with probabilities: calibration and recall")  # fmt: skip


def _soft_2d_f(beta: float, name: str = "Soft2D-F1") -> Metric:
    return _Metric(name=name, make_column=_rows("rectangles", "soft_2d_f", 1, beta, needs="numpy"),
                   parse=_late("rectangles", "given_rectangles"), has_free_input=True,
                   measure=_higher(_mean, "score"),
                   summary="mean of the F-scores of the area of each line's rectangles")  # fmt: skip


def _probabilistic_soft_2d_f(beta: float, name: str = "Probabilistic-Soft2D-F1") -> Metric:
    make_column = _rows("rectangles", "probable_soft_2d_counts", 2, beside="details", needs=_SCIPY)
    return _Tokens(name=name, make_column=make_column, parse=_late("rectangles", "given_rectangles"), has_curve=True,
                   measure=_of_all(_late("labels", "probabilistic_f", beta), "mass", "expected"),
                   summary="F-score of rectangles with probabilities: calibration and recall")  # fmt: skip


def _flc_f(beta: float, name: str = "FLC-F1") -> Metric:
    columns = "expected_covered", "given_covered", "expected", "given"
    return _Metric(name=name, make_column=_rows("spans", "fragment_counts", 4),
                   parse=_late("spans", "given_annotations"),
                   measure=_higher(_late("spans", "fragment_f", beta), *columns),
                   summary="F-score of annotations, by how much of each the others cover")  # fmt: skip


def _improvement(threshold: float, name: str = "Improvement@0.5") -> Metric:
    measure = _of_all(_late("regression", "improvement", threshold), "expected", "output", unit="answers' unit",
                      best=_INFINITE, worst=-_INFINITE)  # fmt: skip
    return _Metric(name=name, parse=_NUMBER_LINE, make_column=_rows("regression", "numbers_of", 2), measure=measure,
                   summary="mean answer of the lines that the output selects, less that of all lines")  # fmt: skip


def _against_interval(name: str, row: str, measure: Measure, summary: str) -> Metric:
    return _Metric(name=name, parse=_NUMBER_LINE, make_column=_rows("regression", row), measure=measure,
                   perfect=_late("regression", "lower_bound"), summary=summary)  # fmt: skip


def _f_measure(beta: float) -> Measure:
    return _higher(_late("classes", "f_score", beta), *_COUNTS)


def _of_sacrebleu(name: str, measure: Measure, summary: str) -> Metric:
    return _Metric(name=name, make_column=_sacre("column", name), summary=summary,
                   answers="any",
                   measure=measure.replace(formula=Elementwise(score=_sacre("score", name))),
                   signature=_sacre("signature", name))  # fmt: skip


_COUNTS = ("right", "expected", "given")
_BLEU_COUNTS = (*(f"right_{n}" for n in range(1, 5)), "reference_words", *(f"all_{n}" for n in range(1, 5)))
_SACRE_COUNTS = ("references", "words", "reference_words", *_BLEU_COUNTS[:4], *_BLEU_COUNTS[5:])
_CHARACTERS = tuple(f"{what}_{n}" for n in range(1, 7) for what in ("all", "reference", "right"))
_WORDS_TOO = (*_CHARACTERS, *(f"{what}_words_{n}" for n in (1, 2) for what in ("all", "reference", "right")))
_SHARE = _late("classes", "share")
_NUMBER_LINE = _late("columns", "number_of")
_CORRECTIONS = LateColumn(
    kind="InputColumn", module="translation", name="corrections", arguments=(3,), needs=_DISTANCES
)
_ERRORS, _RIGHT = _late("translation", "errors"), _late("translation", "right")
_PER_WORD, _PER_CHARACTER = "per word", "per character"
_points = partial(_higher, _mean, unit="points", best=100.0)
_METRICS = (
    _Tokens(name="BLEU", answers="any", make_column=_rows("translation", "bleu_row", 9),
            summary="precision of n-grams, as GEval has it",
            measure=_higher(_late("translation", "bleu"), *_BLEU_COUNTS)),
    _Tokens(name="GLEU", answers="any", make_column=_rows("translation", "gleu_row", 2),
            summary="share of n-grams that are right",
            measure=_higher(_SHARE, "right", "all")),
    _of_sacrebleu("SacreBLEU", _points(*_SACRE_COUNTS), "sacreBLEU's BLEU, with its tokens and smoothing"),
    _of_sacrebleu("chrF", _points("references", *_CHARACTERS), "sacreBLEU's F-score of character n-grams"),
    _of_sacrebleu("chrF++", _points("references", *_WORDS_TOO), "the same, with words and pairs of words"),
    _of_sacrebleu("TER", _lower(_mean, "references", "edits", "words", unit="percent"),
                  "sacreBLEU's translation edit rate"),
    _Tokens(name="WER", make_column=_edits("word_errors", 2), summary="word error rate",
            measure=_lower(_ERRORS, "edits", "words", unit=_PER_WORD)),
    _Tokens(name="CER", make_column=_edits("character_errors", 2), summary="character error rate",
            measure=_lower(_ERRORS, "edits", "characters", unit=_PER_CHARACTER)),
    _Tokens(name="WAR", make_column=_edits("word_errors", 2), summary="1 minus the word error rate",
            measure=_higher(_RIGHT, "edits", "words", worst=-_INFINITE)),
    _Tokens(name="CAR", make_column=_edits("character_errors", 2), summary="1 minus the character error rate",
            measure=_higher(_RIGHT, "edits", "characters", worst=-_INFINITE)),
    _Tokens(name="Mean/WER", make_column=_edits("word_error_rate"), summary="mean of the lines' WER",
            measure=_lower(_mean, "rate", unit=_PER_WORD)),
    _Tokens(name="Mean/CER", make_column=_edits("character_error_rate"), summary="mean of the lines' CER",
            measure=_lower(_mean, "rate", unit=_PER_CHARACTER)),
    _Tokens(name="Mean/WAR", make_column=_edits("word_error_rate"), summary="mean of the lines' WAR",
            measure=_higher(_rest, "rate", worst=-_INFINITE)),
    _Tokens(name="Mean/CAR", make_column=_edits("character_error_rate"), summary="mean of the lines' CAR",
            measure=_higher(_rest, "rate", worst=-_INFINITE)),
    _Tokens(name="CharMatch", make_column=_CORRECTIONS, needs_input=True,
            summary="F0.5 of the corrections of the input", measure=_f_measure(0.5)),
    _f(1),
    _macro_f(1),
    _Metric(name="NMI", make_column=_rows("classes", "clusters", beside="details"),
            measure=_of_all(_late("classes", "mutual_information"), "equal"),
            summary="normalised mutual information of the classes expected and given"),
    _label_f(1),
    _mean_label_f(1),
    _probabilistic_f(1),
    _Metric(name="MultiLabel-LogLoss", make_column=_rows("labels", "label_loss"), measure=LOG_LOSS,
            labels="several", summary="mean loss of a line's labels"),
    _Metric(name="MultiLabel-Likelihood", make_column=_rows("labels", "label_loss"), measure=LIKELIHOOD,
            labels="several", summary="geometric mean of the probabilities of the lines' labels"),
    _Metric(name="RMSE", parse=_NUMBER_LINE, make_column=_rows("regression", "squared_error"),
            summary="root of the mean squared error",
            measure=_lower(_late("regression", "root_mean"), "squared_error", unit="answers' unit")),
    _Metric(name="MSE", parse=_NUMBER_LINE, make_column=_rows("regression", "squared_error"),
            summary="mean squared error",
            measure=_lower(_mean, "squared_error", unit="its square")),
    _Metric(name="MAE", parse=_NUMBER_LINE, make_column=_rows("regression", "absolute_error"),
            summary="mean absolute error",
            measure=_lower(_mean, "error", unit="answers' unit")),
    _Metric(name="SMAPE", parse=_NUMBER_LINE, make_column=_rows("regression", "relative_error"),
            summary="mean absolute error, by the sizes of both numbers",
            measure=_lower(_late("regression", "percent"), "error", unit="percent", worst=100.0)),
    _Metric(name="Pearson", parse=_NUMBER_LINE, make_column=_rows("regression", "numbers_of", 2),
            summary="correlation of the numbers",
            measure=_of_all(_late("regression", "pearson"), "expected", "output", unit="correlation", worst=-1.0)),
    _Metric(name="Spearman", parse=_NUMBER_LINE, make_column=_rows("regression", "numbers_of", 2),
            summary="correlation of their ranks",
            measure=_of_all(_late("regression", "spearman"), "expected", "output", unit="correlation", worst=-1.0)),
    _Metric(name="Haversine", parse=_late("regression", "read_point"), make_column=_rows("regression", "haversine"),
            summary="mean distance of points on Earth",
            measure=_lower(_mean, "distance", unit="kilometres")),
    _Metric(name="MAP", answers="all", make_column=_rows("labels", "average_precision"),
            summary="mean average precision", measure=_higher(_mean, "precision")),
    _ndcg(10),
    _Tokens(name="TokenAccuracy", make_column=_rows("tags", "token_hits", 2), summary="share of tokens tagged right",
            measure=_higher(_SHARE, "right", "tokens")),
    _Tokens(name="BIO-F1", parse=_late("tags", "entities_of"), make_column=_rows("tags", "entity_counts", 3),
            measure=_f_measure(1),
            summary="F-score of entities, with their normalised forms"),
    _Tokens(name="BIO-F1-Labels", parse=_late("tags", "entities_of"), make_column=_rows("tags", "label_counts", 3),
            measure=_f_measure(1),
            summary="the same, whatever these forms"),
    _Tokens(name="BIO-Weighted-F1", parse=_late("tags", "entities_of"),
            make_column=_rows("tags", "counts_by_label", 3, beside="details"),
            measure=_of_all(_late("tags", "weighted_f"), "right", "expected", "given"),
            summary="mean of the labels' F-scores, by how often they are expected"),
    _soft_f(1),
    _probabilistic_soft_f(1),
    _flc_f(1),
    _Tokens(name="SegmentAccuracy", parse=_late("spans", "read_segments"),
            make_column=_rows("spans", "segment_hits", 2),
            measure=_of_all(_late("spans", "segment_accuracy"), "right", "expected"),
            summary="mean share of the lines' segments that are exactly right"),
    _soft_2d_f(1),
    _probabilistic_soft_2d_f(1),
    _Metric(name="ClippEU", parse=_late("rectangles", "given_clippings"),
            perfect=_late("rectangles", "without_margins"), measure=_f_measure(2),
            make_column=_rows("rectangles", "clipping_counts", 3, needs=_SCIPY),
            summary="F2 of rectangles, which are right within a margin"),
    _against_interval("RMSE-Against-Interval", "squared_interval_error",
                      _lower(_late("regression", "root_mean"), "squared_error", unit="answers' unit"),
                      summary="root of the mean squared distance to an interval"),
    _against_interval("MSE-Against-Interval", "squared_interval_error",
                      _lower(_mean, "squared_error", unit="its square"),
                      summary="mean squared distance to an interval"),
    _against_interval("MAE-Against-Interval", "interval_error", _lower(_mean, "error", unit="answers' unit"),
                      summary="mean distance to an interval"),
    _improvement(0.5),
    _Tokens(name="CustomMetric1", parse=_late("classes", "read_fields"), make_column=_rows("classes", "field_shares"),
            measure=_higher(_mean, "score"), summary="a quarter for the first of two fields, the rest for the other"),
)  # fmt: skip
TEXT_METRICS = {metric.name: metric for metric in _METRICS}

# Metrics with a slash in their names, beside Mean/WER and the like


def find_prefixed(name: str) -> Metric | None:
    """Make the metric of a name such as MacroAvg/F2, Smart/Fuzzy/Accuracy or Mean/Lower/MultiLabel-F1.

    Return None for another name, and for one with more than ten names of matching.
    """
    from geval_py.scoring.metrics.matching import MATCHINGS

    matching = frozenset(name.split("/")[:-1]) - {"MacroAvg", "Mean"}
    return _prefixed(name) if matching <= MATCHINGS.keys() else None


def _prefixed(name: str) -> Metric | None:
    *prefixes, inner = name.split("/")
    mean = prefixes.pop(0) if prefixes and prefixes[0] in ("MacroAvg", "Mean") else ""
    matching = tuple(prefixes)
    numbered = _F_SCORE.fullmatch(inner)
    stem, beta = (numbered[1], float(numbered[2])) if numbered else (inner, 1.0)
    is_known = not {"MacroAvg", "Mean"} & set(matching) and (numbered or not inner.endswith("F"))
    if not (mean or matching) or len(matching) > MOST_MATCHINGS or not is_known:
        return None
    if stem == "Accuracy" and mean != "Mean":
        accuracy = _accuracy(matching, name)
        return _per_class(accuracy, name, _late("classes", "text_class")) if mean else accuracy
    if stem == "MultiLabel-F" and mean != "MacroAvg":
        return _matched_f(beta, name, matching, is_mean=mean == "Mean")
    if mean == "MacroAvg" and not matching and stem in _PER_CLASS:
        metric = _f(beta, inner) if stem == "F" else TEXT_METRICS[inner]
        return _per_class(metric, name, _PER_CLASS[stem])
    return None


def _accuracy(matching: tuple[str, ...], name: str) -> Metric:
    """Make Accuracy of texts compared otherwise or, without matching, of classes."""
    if not matching:
        return _Tokens(name=name, has_classes=True, make_column=_rows("classes", "miss"), measure=ACCURACY,
                       labels="one", summary="share of lines whose best guess is right")  # fmt: skip
    make_column = _rows("matching", "answer_distance", 1, matching, needs=_needs(matching))
    return _Tokens(name=name, matching=matching, answers="any", make_column=make_column, measure=ACCURACY,
                   labels="one", summary=f"Accuracy of texts compared by {'/'.join(matching)}")  # fmt: skip


def _matched_f(beta: float, name: str, matching: tuple[str, ...], *, is_mean: bool) -> Metric:
    needs = f"{_SCIPY} {_needs(matching)}"
    summary = f"the F-score of labels compared by {'/'.join(matching)}"
    if is_mean:
        return _Tokens(name=name, matching=matching, labels="several", measure=_higher(_mean, "score"),
                       make_column=_rows("matching", "matched_f", 1, matching, beta, needs=needs),
                       summary=f"mean of each line's: {summary}")  # fmt: skip
    return _Tokens(name=name, matching=matching, labels="several", measure=_f_measure(beta), summary=summary,
                   make_column=_rows("matching", "matched_counts", 3, matching, needs=needs))  # fmt: skip


def _needs(matching: tuple[str, ...]) -> str:
    return _DISTANCES if "Fuzzy" in matching else ""


def _per_class(metric: Metric, name: str, class_of: Late) -> Metric:
    """Make the mean of a metric's scores of the lines of each expected class, text or number.

    Classes are few. Texts and numbers may be as many as the lines, so their sums would fill a matrix of lines by
    lines; a ruler adds only what it needs.
    """
    of_lines: Any = metric.make_column
    width, given, _ = of_lines.arguments
    row = _late(of_lines.module, of_lines.name, *given)
    make_column = _rows("classes", "in_class", width, row, class_of, beside="classes", needs=of_lines.needs)
    measure: Any = metric.measure
    if not (metric.has_classes or measure.columns == _COUNTS):
        formula = measure.formula.score if isinstance(measure.formula, Elementwise) else measure.formula
        measure = measure.replace(
            formula=whole, columns=("error",), ruler=_late("classes", "mean_of_classes", formula)
        )
    summary = f"mean over the expected classes: {metric.summary}"
    return metric.replace(name=name, make_column=make_column, measure=measure, summary=summary)


MOST_MATCHINGS = 10
_F_SCORE = re.compile(r"((?:MultiLabel-)?F)([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_PER_CLASS = {"F": _late("classes", "is_wanted")} | dict.fromkeys(("RMSE", "MSE", "MAE", "SMAPE"), _NUMBER_LINE)
_PREFIXED = (  # the most usual ones
    "Lower/Accuracy",
    "Fuzzy/Accuracy",
    "Fuzzy/MultiLabel-F1",
    *(f"MacroAvg/{name}" for name in ("Accuracy", "F1", "RMSE", "MSE", "MAE", "SMAPE")),
)
TEXT_METRICS |= {name: metric for name in _PREFIXED if (metric := _prefixed(name)) is not None}

# By the name before a number: the function that makes the metric of that number.
NUMBERED: dict[str, Callable[[float, str], Metric]] = {
    "F": _f,
    "Macro-F": _macro_f,
    "MultiLabel-F": _label_f,
    "Mean/MultiLabel-F": _mean_label_f,
    "Probabilistic-MultiLabel-F": _probabilistic_f,
    "NDCG@": _ndcg,
    "Soft-F": _soft_f,
    "Probabilistic-Soft-F": _probabilistic_soft_f,
    "FLC-F": _flc_f,
    "Soft2D-F": _soft_2d_f,
    "Probabilistic-Soft2D-F": _probabilistic_soft_2d_f,
    "Improvement@": _improvement,
}


def find_numbered(name: str) -> Metric | None:
    """Make the metric of a name that ends in a number; None if there is none.

    The number is a whole one above 0 for NDCG@, may be below 0 for Improvement@, and is not for others.
    """
    number = _NUMBER.search(name)
    make = NUMBERED.get(name[: number.start()]) if number else None
    if number is None or make is None:
        return None
    if make is _ndcg and not (number[0].isdigit() and int(number[0])):
        return None
    return None if number[0].startswith("-") and make is not _improvement else make(float(number[0]), name)


def geval_name(name: str) -> str:
    """Return the name that GEval shows for a metric.

    >>> geval_name("F2"), geval_name("MultiLabel-LogLoss"), geval_name("NDCG@3"), geval_name("BIO-F1")
    ('F2.0', 'MultiLabel-Logloss', 'NDCG@3', 'BIO-F1')
    >>> geval_name("Lower/Fuzzy/Smart/MultiLabel-F1")
    'Lower/Fuzzy/MultiLabel-F1.0'
    """
    from geval_py.tables.numbers import shortest

    *prefixes, inner = name.split("/")
    if "Fuzzy" in prefixes:  # it forgets the names after it
        del prefixes[prefixes.index("Fuzzy") + 1 :]
    if prefixes:
        return "/".join([*prefixes, geval_name(inner)])
    metric = find_numbered(name)
    if metric is None or metric.name.startswith("NDCG@"):
        return "MultiLabel-Logloss" if name == "MultiLabel-LogLoss" else name
    number = _NUMBER.search(name)
    return name if number is None else name[: number.start()] + shortest(float(number[0]))
