"""The table of the metrics of tasks near word gaps: suggestions, choices, norms, labels and forecasts.

Their output lines are distributions, as those of word gaps are. The functions are in
:mod:`geval_py.scoring.metrics.distributions`, which is imported when a metric is used.
"""

from __future__ import annotations

import re
from functools import partial

from geval_py.reading.schemes import DEFAULT_BITS, LEAST_BITS, MOST_BITS
from geval_py.scoring.metrics.base import ACCURACY, CROSS_ENTROPY, LOG_LOSS, Elementwise, Measure, Metric, Setting
from geval_py.scoring.metrics.texts import Late, LateColumn, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from geval_py.scoring.metrics.base import Column, Number

_INFINITE = float("inf")
_MOST = 999_999_999  # of words that are looked at
_SHOWN = 3  # words that a keyboard shows
_BINS, _MOST_BINS = 10, 100
_NAME = re.compile(r"(Hit@|KeystrokesSaved@|CalibrationError|[A-Za-z]+Hashed)([0-9]{1,9})")


def _brier(setting: Setting) -> Column:
    column: Column = load("distributions", "BrierColumn").of(setting)
    return column


def _mean(totals: Sequence[Number], lines: Number) -> Number:
    (total,) = totals
    return total / lines


def _mean_gap(totals: Sequence[Number], lines: Number) -> Number:
    first, *others = map(abs, totals)
    return sum(others, start=first) / lines


def _rows(name: str, width: int = 1, *given: int) -> LateColumn:
    return LateColumn(kind="RowColumn", module="distributions", name=name, arguments=(width, given))


def _beside(name: str, width: int = 1) -> LateColumn:
    return LateColumn(kind="InputColumn", module="distributions", name=name, arguments=(width,))


def _score(module: str, name: str) -> Elementwise:
    return Elementwise(score=Late(module=module, name=name))


_Entries = partial(Metric, is_of_words=False, has_entries=True, parse=Late(module="distributions", name="entries_of"))
_Labels = partial(_Entries, has_classes=True, labels="one")
_SAVED = Measure(unit="share", direction="higher", best=1.0, worst=0.0, formula=_score("classes", "share"),
                 columns=("saved", "characters"))  # fmt: skip


def _hit(first: int, name: str) -> Metric:
    return _Entries(name=name, make_column=_rows("miss_of_first", 1, first), measure=ACCURACY,
                    summary="share of lines whose answer is among the first guesses")  # fmt: skip


def _keystrokes(first: int, name: str) -> Metric:
    return _Entries(name=name, make_column=_rows("keystrokes", 2, first), measure=_SAVED,
                    summary="share of characters that need not be typed")  # fmt: skip


def _cross_entropy(bits: int, name: str) -> Metric:
    return _Entries(name=name, answers="shares", make_column=_rows("norm_cross_entropy", 1, bits),
                    measure=CROSS_ENTROPY, summary="mean loss of all answers, by their shares")  # fmt: skip


def _divergence(bits: int, name: str) -> Metric:
    return _Entries(name=name, answers="shares", make_column=_rows("norm_divergence", 1, bits),
                    measure=CROSS_ENTROPY, summary="mean divergence from the shares of all answers")  # fmt: skip


def _calibration(bins: int, name: str) -> Metric:
    measure = Measure(unit="probability", direction="lower", best=0.0, worst=1.0, formula=_mean_gap,
                      columns=tuple(f"gap_{place}" for place in range(1, bins + 1)))  # fmt: skip
    return _Labels(name=name, make_column=_rows("confidence_gap", bins, bins), measure=measure,
                   summary="distance of the best guess's probability from the share of hits")  # fmt: skip


_METRICS = (
    _hit(_SHOWN, f"Hit@{_SHOWN}"),
    _Entries(name="MRR", make_column=_rows("reciprocal_rank"), summary="mean reciprocal rank of the answer",
             measure=Measure(unit="share", direction="higher", best=1.0, worst=0.0, formula=_mean,
                             columns=("reciprocal_rank",))),
    _keystrokes(_SHOWN, f"KeystrokesSaved@{_SHOWN}"),
    _Entries(name="ChoiceAccuracy", needs_input=True, make_column=_beside("choice_miss"), measure=ACCURACY,
             labels="one", summary="share of lines whose likeliest option is right"),
    _Entries(name="ChoiceLogLoss", needs_input=True, make_column=_beside("choice_loss"), measure=LOG_LOSS,
             summary="mean loss of the right option, among the options"),
    _cross_entropy(DEFAULT_BITS, "CrossEntropyToNormsHashed"),
    _divergence(DEFAULT_BITS, "KullbackLeiblerHashed"),
    _Entries(name="RankCorrelation", answers="shares", make_column=_rows("rank_correlation", 2),
             summary="mean rank correlation with the shares of a line's answers",
             measure=Measure(unit="correlation", direction="higher", best=1.0, worst=-1.0,
                             formula=_score("distributions", "mean_correlation"), columns=("correlation", "ranked"))),
    _Labels(name="BrierScore", needs_vocabulary=True, make_column=_brier,
            summary="mean squared distance of all labels' probabilities",
            measure=Measure(unit="squared probability", direction="lower", best=0.0, worst=2.0, formula=_mean,
                            columns=("squared_distance",))),
    _calibration(_BINS, "CalibrationError"),
    _Entries(name="LogSkillScore", needs_input=True, make_column=_beside("relative_loss", 2),
             summary="share of a baseline's loss that is avoided",
             measure=Measure(unit="share", direction="higher", best=1.0, worst=-_INFINITE,
                             formula=_score("distributions", "skill"), columns=("loss", "baseline_loss"))),
)  # fmt: skip
NEAR_METRICS = {metric.name: metric for metric in _METRICS}

# By the name before a number: the function that makes the metric of that number, and the numbers there are.
NEAR_NUMBERED: dict[str, tuple[Callable[[int, str], Metric], range]] = {
    "Hit@": (_hit, range(1, _MOST + 1)),
    "KeystrokesSaved@": (_keystrokes, range(1, _MOST + 1)),
    "CrossEntropyToNormsHashed": (_cross_entropy, range(LEAST_BITS, MOST_BITS + 1)),
    "KullbackLeiblerHashed": (_divergence, range(LEAST_BITS, MOST_BITS + 1)),
    "CalibrationError": (_calibration, range(1, _MOST_BINS + 1)),
}


def find_near(name: str) -> Metric | None:
    """Make the metric of a name that ends in a whole number within its range; None if there is none."""
    match = _NAME.fullmatch(name)
    make, numbers = NEAR_NUMBERED.get(match[1], (None, range(0))) if match else (None, range(0))
    number = int(match[2]) if match else 0
    return make(number, name) if make and number in numbers else None
