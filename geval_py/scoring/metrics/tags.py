r"""Metrics of tagged texts: a tag a token, with white space between them.

TokenAccuracy is the share of tokens with a right tag; there may be several right tags, separated by ``;``, and tokens
with the tag ``*`` do not count. BIO-F1 is the F-score of entities:

    line  = tag *( white-space tag )                  white space at the ends is ignored
    tag   = "O" / ( "B" / "I" ) ( "-" / "_" ) label [ "/" normalised ]

B begins an entity, I continues it, O is outside of all (Ramshaw and Marcus, "Text chunking using transformation-based
learning", 1995). An entity is right if its first and last token, its label and its normalised forms are right;
BIO-F1-Labels ignores the forms. BIO-Weighted-F1 is the mean of the F-scores of the labels, weighted by how often each
is expected; an entity that is given counts only on lines where its label is expected, as in GEval. All are from 0 to
1, the best. An empty line has no tag; without any entity, expected or given, the F-score is 1. No library knows
normalised forms, or takes an I without a B for an error, as GEval does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from geval_py.scoring.metrics.base import Row
from geval_py.scoring.metrics.columns import mismatch
from geval_py.scoring.metrics.spans import TOKEN, unread
from geval_py.text import SPACES, split_words, visible

NOT_COUNTED = "*"
OUTSIDE = "O"
_TAG = re.compile(rf"(?P<place>[BI])[-_](?P<label>[^/{SPACES}]+)(?:/(?P<form>[^{SPACES}]+))?")


class Entity(NamedTuple):
    """The first and last token, from 0, of an entity, its label, and its normalised forms, "" for none."""

    first: int
    last: int
    label: str
    form: str


def token_hits(text: str, expected: str) -> Row:
    """Count the tokens with a right tag, and all that count; raises the error for a wrong number of tags."""
    tags, answers = split_words(text), split_words(expected)
    if len(tags) != len(answers):
        hint = f"{len(answers)} tags are expected here, and there are {len(tags)}"
        raise mismatch("wrong number of tokens", hint, is_numbered=False)  # GEval's own messages, here and below
    hits = [tag in answer.split(";") for tag, answer in zip(tags, answers, strict=True) if answer != NOT_COUNTED]
    return sum(hits), len(hits)


def entity_counts(fields: int, entities: Sequence[Entity], expected: Sequence[Entity]) -> Row:
    """Count the right, the expected and the given entities; the first ``fields`` of an entity have to be right."""
    right = {entity[:fields] for entity in entities} & {entity[:fields] for entity in expected}
    return len(right), len(expected), len(entities)


def counts_by_label(
    entities: Sequence[Entity], expected: Sequence[Entity]
) -> tuple[Row, dict[str, tuple[int, int, int]]]:
    """Count the right, the expected and the given entities, of all labels that are expected and of each of them."""
    sides = frozenset(entities) & frozenset(expected), expected, entities
    right, answers, guesses = (Counter(entity.label for entity in side) for side in sides)
    by_label = {label: (right[label], answers[label], guesses[label]) for label in answers}
    return tuple(map(sum, zip(*by_label.values(), strict=True))) or (0, 0, 0), by_label


def entities_of(text: str, line: int) -> list[Entity]:
    """Read the entities of a line of tags, in order.

    Raises MalformedLineError, for a token that is no tag before a tag that is out of place.
    """
    entities: list[Entity] = []
    runs: list[list[tuple[int, re.Match[str]]]] = []  # of tags that belong together, with their places
    is_inside = False
    for place, token in enumerate(TOKEN.finditer(text)):
        tag = _TAG.fullmatch(text, *token.span())
        if tag is None and token[0] != OUTSIDE:
            what = "a tag is `O`, `B-LABEL` or `I-LABEL`, perhaps with `/FORM` behind it"
            raise unread("endOfInput", line, token, f"is no tag; {what}")
        if tag is not None:
            if not is_inside or tag["place"] == "B":
                runs.append([])
            runs[-1].append((place, tag))
        is_inside = tag is not None
    for run in runs:
        (first, beginning), (last, _) = run[0], run[-1]
        for _, tag in run:
            if beginning["place"] == "I" or tag["label"] != beginning["label"]:
                sequence = " ".join(f"{written[0][0]}-{written[0][2:]}" for _, written in run)  # as GEval writes them
                reason = f"inconsistent label sequence `{visible(sequence)}`"
                raise unread(reason, line, tag, "goes on with no entity of this label; one begins with `B-`")
        forms = "_".join(tag["form"] for _, tag in run if tag["form"])
        entities.append(Entity(first, last, beginning["label"], forms))
    return entities
