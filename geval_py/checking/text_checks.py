"""What the rules find in outputs that are not of word gaps: translations, classes, labels, numbers, tags."""

from __future__ import annotations

from geval_py.checking.targets import Target
from geval_py.checking.word_checks import BlockLines, LineFindings, begin_block
from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import OF_CLASS
from geval_py.scoring.blocks import Block
from geval_py.scoring.metrics.exact import best_guess, is_class_line
from geval_py.scoring.metrics.tags import token_hits
from geval_py.text import shorten, split_words, strip_spaces, visible


def check_texts(block: Block, target: Target, total: LineFindings) -> LineFindings:
    """Check lines as the target's metric reads them, or as any text; ``total`` is what was found in lines before."""
    findings = LineFindings(total.max_places, before=total.places)
    metric = target.metric
    prepare = target.preparation or str
    lines = BlockLines(block)
    answers = lines.words if metric is not None and metric.name.startswith("BIO-") else []
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
            if metric.name == "TokenAccuracy" and index < len(lines.words):
                token_hits(prepared, prepare(lines.words[index]))
        except MalformedLineError as error:
            column = error.column if error.text == text else 1  # the metric's flags may have changed the line
            findings.add("E117", lines, index, column, error.token, error.hint)
            continue
        if index < len(answers):
            tags, expected_tags = len(split_words(prepared)), len(split_words(prepare(answers[index])))
            if tags != expected_tags:
                message = f"{expected_tags} tags are expected here, and there are {tags}"
                findings.add("W224", lines, index, max(1, len(text)), "", message)
        far = getattr(metric.column, "is_far_above_one", None)
        if far is not None and far(prepared):
            message = f"`{visible(shorten(text))}` is no probability; {OF_CLASS}"
            findings.add("E119", lines, index, *([1, text, message] if is_class_line(text) else []))
        if metric.has_entries and not best_guess(prepared):
            findings.add("W214", lines, index)
        if not strip_spaces(text):
            findings.add("W217", lines, index)
    return findings
