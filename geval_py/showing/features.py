"""Features, a row each, and marks on the words of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from geval_py.reading.features import OUTPUT
from geval_py.reading.wordprobs import NUMBER
from geval_py.showing.numbers import p_value, special
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.features.worst import WorstFeatures
    from geval_py.reading.features import Field, Fields, Tokens
    from geval_py.reading.items import ScoredItem


def feature_rows(features: WorstFeatures, *, for_terminal: bool = False) -> Iterator[str]:
    """Write a row a feature: its name, the number of its items, their mean score, p."""
    names = map(visible, features.names) if for_terminal else features.names
    figures = zip(features.counts.tolist(), features.means.tolist(), features.p_values.tolist(), strict=True)
    for name, (count, mean, p) in zip(names, figures, strict=True):
        shown = f"{mean:.8f}" if abs(mean) < float("inf") else special(mean)
        yield f"{name}\t{count}\t{shown}\t{p_value(p)}"


# Below which p a word is marked, and how.
STYLES = ((0.001, "bold red", "\x1b[1;31m"), (0.01, "red", "\x1b[31m"), (0.05, "yellow", "\x1b[33m"))
PLAIN = "\x1b[0m"


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
            if start < 0:  # a tokenizer may write a token otherwise than the text does
                continue
            is_word = field != OUTPUT or not NUMBER.fullmatch(token)
            style = self._styles.get(f"{name}:{token}", "") if is_word else ""
            shown += [_escaped(text[end:start]), style, visible(token), PLAIN if style else ""]
            end = start + len(token)
        return "".join([*shown, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return visible(text.replace("\t", "<tab>"))


def _style(p: float) -> str:
    return next((style for below, _, style in STYLES if p < below), "")
