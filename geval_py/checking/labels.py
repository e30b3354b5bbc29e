"""What begins each line of an output, and labels that no answer has, as its first lines show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geval_py.checking.order import MIN_LINES
from geval_py.checking.targets import Target, first_lines
from geval_py.text import shorten, some_of, strip_spaces, visible

_NUMBERED = re.compile(r"([A-Za-z]*-?)([0-9]{1,18})([:,\t ]|[.)] )(?=.)")
LINES_PER_LABEL = 5  # at least, where the labels are few and known


def prefix_of(texts: Sequence[str]) -> str:
    """Return the number of the first of some lines that are numbered, perhaps as in `H-3`; "" for others."""
    matches = list(map(_NUMBERED.match, texts))
    kinds = {match and (match[1], match[3], int(match[2]) - line) for line, match in enumerate(matches)}
    is_numbered = len(matches) >= MIN_LINES and len(kinds) == 1
    return "".join(matches[0].group(1, 2)) if is_numbered and matches[0] else ""


def unknown_labels(target: Target, texts: Sequence[str], answers: Sequence[str]) -> str:
    """Return what to say of lines without any label of the answers or of train; "" if most have some."""
    from geval_py.scoring.metrics.columns import probable_labels  # which word gaps need not
    from geval_py.scoring.metrics.exact import best_guess

    metric, prepare = target.metric, target.preparation or str
    if metric is None or metric.matching or metric.labels == "none":
        return ""

    def labels_of(text: str) -> list[str]:
        text = strip_spaces(prepare(text))
        if metric.labels == "several":
            return [label for label, _ in probable_labels(text)]
        return [best_guess(text) or text]

    training = first_lines(target.training, target.header) if target.training else []
    known = [label for answer in (*answers, *training) for label in labels_of(answer)]
    labels = {*known}
    if LINES_PER_LABEL * len(labels) > len(known) or labels <= {"0", "1"}:
        return ""
    unknown = [of_line for of_line in map(labels_of, texts) if any(of_line) and labels.isdisjoint(of_line)]
    if len(unknown) < MIN_LINES or 2 * len(unknown) <= len(texts):
        return ""
    lines_without = f"{len(unknown)} of the first {len(texts)} lines have no label of the answers"
    return f"{lines_without}: `{visible(shorten(unknown[0][0]))}` is none of {some_of(sorted(labels))}"
