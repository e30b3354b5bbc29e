"""Why an output may have another number of lines than there are items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from geval_py.checking.findings import Findings
from geval_py.checking.places import lists_word
from geval_py.reading.lines import LineReader


def line_count_causes(
    findings: Findings, lines: int, items: int, texts: Sequence[str], words: Sequence[str], input_path: str | None
) -> Iterator[str]:
    """Give the likely causes; ``texts`` and ``words`` are the first lines of the output and of the answers."""
    if findings.counted("E111") and lines > items:
        yield "there are empty lines"
    if findings.counted("W215"):
        yield "the first line is a header"
    if any(re.fullmatch('".+"', text) for text in texts):
        yield "there are quotes, as of a CSV writer: read and write with QUOTE_NONE"
    elif lines < items and _has_quotes(input_path):
        yield "the input has quotes, at which a CSV reader merges lines: read it with QUOTE_NONE"
    shift = _shift(texts, words)
    if shift:
        yield f"the outputs fit the expected words better when moved by one line {shift}"


def _has_quotes(input_path: str | None) -> bool:
    if input_path is None:
        return False
    with LineReader(input_path) as inputs:
        return re.search(rb'(?:^|\t)"', inputs.block(), re.MULTILINE) is not None


def _shift(texts: Sequence[str], words: Sequence[str]) -> str:
    """Tell whether more expected words are listed one line up or down; "" if not."""
    hits = {
        "": sum(map(lists_word, texts, words)),
        "up": sum(map(lists_word, texts[1:], words)),
        "down": sum(map(lists_word, texts, words[1:])),
    }
    best = max(hits, key=lambda way: hits[way])
    return best if hits[best] > max(3, 2 * hits[""]) else ""
