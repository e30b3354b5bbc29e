"""The rules of outputs for metrics that are not of word gaps: translations, classes, labels, numbers, tags."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from geval_py.checking import places, rules, targets
from geval_py.checking.findings import Findings, FlaggedBlock
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.reading.preparation import lower_characters
from geval_py.reading.wordprobs import NUMBER
from geval_py.scoring import blocks, kernel
from geval_py.scoring.metrics.columns import probable_labels, read_number
from geval_py.scoring.metrics.exact import best_guess, is_class_line
from geval_py.text import nearest, shorten, split_words, strip_spaces, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Metric

FEW_LINES = 10  # on fewer lines, no label may be right by chance
LABEL_USES = 2  # answers are labels if each stands, on average, so often


class MetricRules:
    """The rules of an output for a metric that is not of word gaps, or is not known."""

    def __init__(self, target: targets.Target, classes: frozenset[str], labels: Labels, findings: Findings) -> None:
        self._target, self._classes, self._labels, self._findings = target, classes, labels, findings
        self._metric = target.metric
        self._prepare: Callable[[str], str] = target.preparation or str
        self._lines = 0
        self._has_known_label = False
        self._is_logarithmic = self._metric is not None and self._metric.measure.in_nats

    @classmethod
    def of_target(cls, target: targets.Target, findings: Findings) -> MetricRules:
        """Make the rules for the metric of a target, the classes of its training set, and its labels."""
        labels = Labels.of_target(target) if findings.selects("W303") else Labels()
        return cls(target, _classes_of(target), labels, findings)

    def for_later_lines(self, findings: Findings) -> MetricRules:
        """Return the same rules for later lines."""
        later = MetricRules(self._target, self._classes, self._labels, findings)
        later._has_known_label = self._has_known_label
        return later

    def check(self, block: FlaggedBlock) -> None:
        """Check the lines of a block."""
        for index in range(block.block.lines):
            text, line = block.text(index), block.number(index)
            if b"\r" in block.raw(index):
                self._findings.add("W210", partial(places.carriage_return, text, line))
            if "\ufffd" in text and "\ufffd".encode() not in block.raw(index):
                self._findings.add("W212", partial(places.not_utf8, text, line))
            self._lines += 1
            if self._metric is not None:
                self._check_text(self._metric, text, line)

    def _check_text(self, metric: Metric, text: str, line: int) -> None:
        prepared = self._prepare(text)
        try:
            if metric.parse is not None:
                metric.parse(prepared, line)
        except MalformedLineError as error:
            self._findings.add("E117", partial(_not_in_format, error, text))
            return
        if metric.has_entries and _is_rest_alone(prepared, line):
            self._findings.add("W214", partial(places.no_guess, text, line))
        if not strip_spaces(text):
            place = rules.Place(line=line, column=1, token="", message="the line is empty", text=text)
            self._findings.add("W217", lambda: place)
        elif self._classes:
            self._check_class(text, line)
        if self._is_logarithmic:
            certain = _certainty(metric, prepared, line)
            if certain:
                self._findings.add("W218", partial(_certain, text, line, certain))
        if not self._has_known_label:
            self._has_known_label = self._labels.knows(prepared)

    def _check_class(self, text: str, line: int) -> None:
        stripped = strip_spaces(self._prepare(text))
        guess = best_guess(stripped)
        found = stripped if guess is None else guess
        if found and found not in self._classes:
            self._findings.add("W216", partial(_unknown_class, text, line, found, nearest(found, self._classes)))

    def extend(self, later: MetricRules) -> None:
        """Add what the next lines have."""
        self._lines += later._lines
        self._has_known_label |= later._has_known_label

    def finish(self) -> None:
        """Report an output that has no label of the answers, when all lines were checked."""
        if not self._labels.known or self._has_known_label or self._lines < FEW_LINES:
            return
        answers = " and ".join(f"`{visible(shorten(label))}`" for label in sorted(self._labels.known)[:2])
        message = f"no label of the output is among the answers, such as {answers}"
        place = rules.Place(line=0, column=0, token="", message=message)
        self._findings.replace("W303", self._lines, message, [lambda: place])


class Labels(Value):
    """The labels among the answers, as a metric reads them; none if answers are not labels but mostly different."""

    known: frozenset[str] = frozenset()
    metric: Metric | None = None

    @classmethod
    def of_target(cls, target: targets.Target) -> Labels:
        """Read the labels of the answers or, if a test set has none, of the training set's."""
        metric = target.metric
        if metric is None or metric.labels == "none" or metric.matching not in ((), ("Lower",)):
            return cls()
        path = target.expected or target.training
        if path is None:
            return cls()
        labels: list[str] = []
        try:
            for line in read_lines(path, header=target.output_header):
                labels += _labels_of_answer(metric, target.preparation(line) if target.preparation else line)
        except DataError:
            return cls()
        known = frozenset(labels)
        return cls(known=known, metric=metric) if LABEL_USES * len(known) <= len(labels) else cls()

    def knows(self, text: str) -> bool:
        """Whether an output line has a label that is among the answers."""
        if self.metric is None:
            return True
        lower = lower_characters if self.metric.matching else str
        if self.metric.labels == "several":
            return any(lower(label) in self.known for label, _ in probable_labels(text))
        stripped = strip_spaces(text)
        if self.metric.matching:
            return lower(stripped) in self.known
        guess = best_guess(stripped)
        if (stripped if guess is None else guess) in self.known:
            return True
        has_classes = not self.known.isdisjoint({"0", "1"})
        return has_classes and NUMBER.fullmatch(stripped) is not None and 0 <= float(stripped) <= 1


def _labels_of_answer(metric: Metric, line: str) -> list[str]:
    lower = lower_characters if metric.matching else str
    if metric.labels == "several":
        return list(map(lower, split_words(line)))
    return list(map(lower, strip_spaces(line).split("\t"))) if metric.matching else [strip_spaces(line)]


def _classes_of(target: targets.Target) -> frozenset[str]:
    """Read the classes of the training set; empty if the metric has no classes or the file cannot be read."""
    if target.training is None or target.metric is None or not target.metric.has_classes:
        return frozenset()
    try:
        lines = map(target.preparation or str, read_lines(target.training, header=target.output_header))
        return frozenset(map(strip_spaces, lines))
    except DataError:
        return frozenset()  # a training set that is broken is not the submission's fault


def _is_rest_alone(text: str, line: int) -> bool:
    from geval_py.scoring.metrics.distributions import entries_of

    words, _ = entries_of(text, line)
    return not any(words)


def _certainty(metric: Metric, text: str, line: int) -> str:
    """Return the first certainty on a line, as it is written; "" if there is none."""
    if metric.labels == "several":
        certain = (word for word in split_words(text) if probable_labels(word)[0][1] in {0.0, 1.0})
        return next(certain, "")
    if not is_class_line(text):
        return ""  # a distribution over words
    return "" if 0.0 < read_number(text, line) < 1.0 else text.partition("\t")[0]


def _certain(text: str, line: int, token: str) -> rules.Place:
    message = f"`{visible(shorten(token))}` is a certainty; if it is wrong, the score of the whole file is the worst"
    return rules.Place(line=line, column=max(0, text.find(token)) + 1, token=token, message=message, text=text)


def _not_in_format(error: MalformedLineError, text: str) -> rules.Place:
    if error.text != text:  # the metric's flags changed the line, so the error's column is not a column of the file
        return rules.Place(line=error.line, column=1, token=error.token, message=error.hint, text=text)
    return rules.Place(line=error.line, column=error.column, token=error.token, message=error.hint, text=error.text)


def _unknown_class(text: str, line: int, found: str, close: str | None) -> rules.Place:
    advice = f"; did you mean `{visible(shorten(close))}`?" if close else ""
    message = f"the training set has no class `{visible(shorten(found))}`{advice}"
    return rules.Place(line=line, column=1, token=found, message=message, text=text)


class TextBlock(FlaggedBlock):
    """A block of lines that are no distributions; a line with a NUL is not text, and flagged as malformed."""

    def __init__(self, block: blocks.Block) -> None:
        self.block = block
        self.flags = array("q", (kernel.MALFORMED if b"\0" in line else 0 for line in self._raw[: block.lines]))
