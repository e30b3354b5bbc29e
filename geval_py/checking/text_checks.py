"""What the rules find in outputs that are not of word gaps: translations, classes, labels, numbers, tags."""

from __future__ import annotations

from contextlib import suppress

from geval_py.checking.targets import Target
from geval_py.checking.word_checks import BlockLines, Findings, begin_block
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.reading.preparation import lower_characters
from geval_py.reading.wordprobs import NUMBER
from geval_py.scoring.blocks import Block
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.columns import probable_labels, read_number
from geval_py.scoring.metrics.exact import best_guess, is_class_line
from geval_py.text import split_words, strip_spaces

MIN_LABEL_USES = 2  # answers are labels if each stands, on average, so often


def read_classes(target: Target) -> frozenset[str]:
    """Read the classes of the training set; empty if the metric has no classes or the file cannot be read."""
    if target.training is not None and target.metric is not None and target.metric.has_classes:
        with suppress(DataError):  # a training set that is broken is not the submission's fault
            lines = map(target.preparation or str, read_lines(target.training, header=target.output_header))
            return frozenset(map(strip_spaces, lines))
    return frozenset()


def read_labels(target: Target) -> frozenset[str]:
    """Read the labels among the answers or, if a test set has none, among the training set's, as the metric does.

    There are none if the answers are mostly different, and so no labels.
    """
    metric, path = target.metric, target.expected or target.training
    if metric is None or path is None or metric.labels == "none" or metric.matching not in ((), ("Lower",)):
        return frozenset()
    lower = lower_characters if metric.matching else str
    labels: list[str] = []
    try:
        for line in map(target.preparation or str, read_lines(path, header=target.output_header)):
            if metric.labels == "several":
                labels += map(lower, split_words(line))
            else:
                stripped = strip_spaces(line)
                labels += map(lower, stripped.split("\t")) if metric.matching else [stripped]
    except DataError:
        return frozenset()
    kinds = frozenset(labels)
    return kinds if MIN_LABEL_USES * len(kinds) <= len(labels) else frozenset()


def check_texts(
    block: Block, target: Target, max_places: int, classes: frozenset[str], labels: frozenset[str]
) -> Findings:
    """Check lines as the target's metric reads them, or as any text if that is not known.

    ``classes`` are those of the training set, ``labels`` those among the answers; none if they do not matter.
    """
    findings = Findings(max_places)
    metric = target.metric
    prepare = target.preparation or str
    lines = BlockLines(block)
    begin_block(lines, findings, all_malformed=all(b"\0" in line for line in lines.raw))
    for index, raw in enumerate(lines.raw):
        text, line = lines.text(index), block.first_line + index
        if b"\r" in raw:
            findings.add("W210", lines, index)
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            findings.add("W212", lines, index)
        if metric is None:
            continue
        prepared = prepare(text)
        try:
            if metric.parse is not None:
                metric.parse(prepared, line)
        except MalformedLineError as error:
            column = error.column if error.text == text else 1  # the metric's flags may have changed the line
            findings.add("E117", lines, index, column, error.token, error.hint)
            continue
        stripped = strip_spaces(prepared)
        guess = best_guess(stripped) if classes or labels else None
        name = stripped if guess is None else guess
        if metric.has_entries and not best_guess(prepared):
            findings.add("W214", lines, index)
        if not strip_spaces(text):
            findings.add("W217", lines, index)
        elif classes and name and name not in classes:
            findings.add("W216", lines, index, name)
        if metric.measure.in_nats and (token := _certainty(metric, prepared, line)):
            findings.add("W218", lines, index, token)
        if labels and not findings.counts["known labels"]:
            findings.counts["known labels"] += _has_label(metric, prepared, name, labels)
    return findings


def _has_label(metric: Metric, text: str, name: str, labels: frozenset[str]) -> bool:
    """Whether an output line has one of the labels; ``name`` is its text, or its best guess."""
    lower = lower_characters if metric.matching else str
    if metric.labels == "several":
        return any(lower(label) in labels for label, _ in probable_labels(text))
    stripped = strip_spaces(text)
    if metric.matching:
        return lower(stripped) in labels
    has_classes = not labels.isdisjoint({"0", "1"})
    is_probability = NUMBER.fullmatch(stripped) is not None and 0 <= float(stripped) <= 1
    return name in labels or (has_classes and is_probability)


def _certainty(metric: Metric, text: str, line: int) -> str:
    """Return the first certainty on a line, as it is written; "" if there is none."""
    if metric.labels == "several":
        return next((word for word in split_words(text) if probable_labels(word)[0][1] in {0.0, 1.0}), "")
    if not is_class_line(text):
        return ""  # a distribution over words
    return "" if 0.0 < read_number(text, line) < 1.0 else text.partition("\t")[0]
