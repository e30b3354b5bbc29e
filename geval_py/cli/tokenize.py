"""``geval --just-tokenize``: standard input, line by line, as its tokens."""

from __future__ import annotations

import sys

from geval_py.errors import UsageError
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.sources import STANDARD_INPUT
from geval_py.text import visible


def write_tokens(name: str | None) -> None:
    """Write each line of standard input with spaces between the tokens of a tokenizer.

    A terminal is shown no control character but TAB. Raises UsageError if no tokenizer is named, or as
    :func:`find_tokenizer`, and UnreadableFileError.
    """
    if name is None:
        raise UsageError(message="a tokenizer must be specified with --tokenizer option")
    from geval_py.reading.tokenizers import find_tokenizer

    tokenizer = find_tokenizer(name)
    for_terminal = sys.stdout.isatty()
    with LineReader(STANDARD_INPUT) as reader:
        while block := reader.block():
            for text in decode_lines(block):
                line = tokenizer.line(text)
                sys.stdout.write(_shown(line) + "\n" if for_terminal else line + "\n")


def _shown(line: str) -> str:
    return "\t".join(map(visible, line.split("\t")))
