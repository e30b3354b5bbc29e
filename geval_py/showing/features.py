"""Features, a row each, and marks on the words of lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from geval_py.reading.features import OUTPUT
from geval_py.reading.wordprobs import NUMBER
from geval_py.showing.colours import BOLD_RED, PLAIN, RED, YELLOW
from geval_py.showing.escapes import terminal_text
from geval_py.showing.numbers import p_value, special
from geval_py.showing.tables import Column, Table
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.features.table import WorstFeatures
    from geval_py.reading.features import Field, Fields, Tokens
    from geval_py.reading.items import ScoredItem


_ROWS = 300  # written at once: few enough not to wake the garbage collector


def features_table(features: WorstFeatures, *, for_terminal: bool = False) -> Table:
    """Make a table with a row a feature: its name, the number of its items, their mean score, p."""
    columns = [
        Column(name="feature", write=visible if for_terminal else str),
        Column(name="count", alignment="right", write=str),
        Column(name="score", alignment="right", write=_mean),
        Column(name="p", alignment="right", write=p_value),
    ]
    figures = (features.counts.tolist(), features.means.tolist(), features.p_values.tolist())
    return Table(columns, zip(features.names, *figures, strict=True), at_a_time=_ROWS)


def _mean(value: float) -> str:
    return f"{value:.8f}" if math.isfinite(value) else special(value)


# Below which p a word is marked, and how.
STYLES = ((0.001, "bold red", BOLD_RED), (0.01, "red", RED), (0.05, "yellow", YELLOW))


def marks_text() -> str:
    """Say what the marks mean.

    >>> marks_text()
    'bold red p < 0.001, red p < 0.01, yellow p < 0.05'
    """
    return ", ".join(f"{name} p < {below}" for below, name, _ in STYLES)


class Marker:
    """Marks the words of an item whose features have a small p, for a terminal; all else is escaped for it.

    Numbers in an output are not marked: they are its probabilities, not words.
    """

    def __init__(self, p_values: Mapping[str, float], fields: Fields, tokens: Tokens) -> None:
        self._styles = {name: _style(p) for name, p in p_values.items()}
        self._fields, self._tokens = fields, tokens

    def item(self, item: ScoredItem) -> Sequence[str]:
        """Give an item's input, expected and output, marked; a TAB as ``<tab>``."""
        expected, output, *columns = (self._marked(field, text) for field, text in self._fields.split(item))
        return "<tab>".join(columns), expected, output

    def _marked(self, field: Field, text: str) -> str:
        shown = []
        name = str(field)
        end = 0
        for token in self._tokens(text):
            start = text.find(token, end)
            if start < 0 or (token == "_" and text[end:start].strip(" \t:")):
                continue  # a tokenizer may write a token otherwise than the text does, as a space for one
            is_word = field != OUTPUT or not NUMBER.fullmatch(token)
            style = self._styles.get(f"{name}:{token}", "") if is_word else ""
            shown += [terminal_text(text[end:start]), style, visible(token), PLAIN if style else ""]
            end = start + len(token)
        return "".join([*shown, terminal_text(text[end:])])


def _style(p: float) -> str:
    return next((style for below, _, style in STYLES if p < below), "")
