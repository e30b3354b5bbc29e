"""What the rules find in outputs that are not of word gaps: translations, classes, labels, numbers, tags."""

from __future__ import annotations

from geval_py.checking.targets import Target
from geval_py.checking.word_checks import LineFindings
from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import OF_CLASS
from geval_py.scoring.blocks import Block
from geval_py.scoring.metrics.exact import best_guess, is_class_line
from geval_py.scoring.metrics.tags import token_hits
from geval_py.text import shorten, split_words, strip_spaces, visible


def check_texts(block: Block, target: Target, max_places: int) -> LineFindings:
    """Check lines as the target's metric reads them, or as any text."""
    findings = LineFindings(block, max_places)
    metric = target.metric
    prepare = target.preparation or str
    findings.begin(all_malformed=all(b"\0" in line for line in findings.raw))
    for index, raw in enumerate(findings.raw):
        text, line = findings.text(index), block.first_line + index
        answer = findings.words[index] if index < block.known else None
        if b"\r" in raw:
            findings.add("W210", index)
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            findings.add("W212", index)
        if metric is None:
            continue
        prepared = prepare(text)
        try:
            if metric.parse is not None:
                metric.parse(prepared, line)
            if metric.name == "TokenAccuracy" and answer is not None:
                token_hits(prepared, prepare(answer))
        except MalformedLineError as error:
            column = error.column if error.text == text else 1  # the metric's flags may have changed the line
            findings.add("E117", index, column, error.token, error.hint)
            continue
        if metric.name.startswith("BIO-") and answer is not None:
            tags, expected_tags = len(split_words(prepared)), len(split_words(prepare(answer)))
            if tags != expected_tags:
                message = f"{expected_tags} tags are expected here, and there are {tags}"
                findings.add("W224", index, max(1, len(text)), "", message)
        far = getattr(metric.column, "is_far_above_one", None)
        if far is not None and far(prepared):
            message = f"`{visible(shorten(text))}` is no probability; {OF_CLASS}"
            findings.add("E119", index, *([1, text, message] if is_class_line(text) else []))
        if metric.has_entries and not best_guess(prepared):
            findings.add("W214", index)
        are_both_empty = target.words_are_plain and answer == ""
        if not strip_spaces(text) and not are_both_empty:  # a board, where they are not plain, must not tell answers
            findings.add("W217", index)
    return findings
