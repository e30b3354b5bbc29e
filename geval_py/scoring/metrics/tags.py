r"""Metrics of tagged texts: a tag a token, with white space between them.

TokenAccuracy is the share of tokens with a right tag; there may be several right tags, separated by ``;``, and tokens
with the tag ``*`` do not count. BIO-F1 is the F-score of entities:

    line  = tag *( white-space tag )                  white space at the ends is ignored
    tag   = "O" / ( "B" / "I" ) ( "-" / "_" ) label [ "/" normalised ]

B begins an entity, I continues it, O is outside of all (Ramshaw and Marcus, "Text chunking using transformation-based
learning", 1995). An entity is right if its first and last token, its label and its normalised forms are right;
BIO-F1-Labels ignores the forms. All are from 0 to 1, the best. An empty line has no tag; without any entity, expected
or given, the F-score is 1. No library knows normalised forms, or takes an I without a B for an error, as GEval does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.rows import malformed, of_answer
from geval_py.text import SPACES, shorten, split_words, visible

WRONG_NUMBER = "wrong number of tokens"  # GEval's own messages
INCONSISTENT = "inconsistent label sequence"
NOT_COUNTED = "*"
OUTSIDE = "O"
_TAG = re.compile(rf"(?P<place>[BI])[-_](?P<label>[^/{SPACES}]+)(?:/(?P<form>[^{SPACES}]+))?")
_GAP = re.compile(r"[ \t]+")


class Entity(NamedTuple):
    """The first and last token, from 0, of an entity, its label, and its normalised forms, "" for none."""

    first: int
    last: int
    label: str
    form: str


def token_hits(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the tokens with a right tag, and all that count; raises MalformedLineError for a wrong number of tags."""
    tags, wanted = split_words(text), split_words(expected)
    if len(tags) != len(wanted):
        hint = f"{len(wanted)} tags are expected here, and there are {len(tags)}"
        raise malformed(WRONG_NUMBER, text, line, hint)
    hits = [tag in answer.split(";") for tag, answer in zip(tags, wanted, strict=True) if answer != NOT_COUNTED]
    return sum(hits), len(hits)


def entity_counts(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the right, the expected and the given entities."""
    found, wanted = entities_of(text, line), of_answer(entities_of, expected, line)
    return len(frozenset(found) & frozenset(wanted)), len(wanted), len(found)


def label_counts(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the right, the expected and the given entities, whatever their normalised forms."""
    found, wanted = entities_of(text, line), of_answer(entities_of, expected, line)
    right = frozenset(entity[:3] for entity in found) & frozenset(entity[:3] for entity in wanted)
    return len(right), len(wanted), len(found)


def entities_of(text: str, line: int) -> list[Entity]:
    """Read the entities of a line of tags, in order; raises MalformedLineError."""
    entities: list[Entity] = []
    forms: list[str] = []
    column = 1 + len(text) - len(text.lstrip(" \t"))
    for place, tag in enumerate(_tags(text)):
        match = _TAG.fullmatch(tag)
        if match is None and tag != OUTSIDE:
            raise _no_tag(text, line, column, tag)
        if match is not None and match["place"] == "B":
            forms = [match["form"]] if match["form"] else []
            entities.append(Entity(place, place, match["label"], "_".join(forms)))
        elif match is not None:
            if not entities or entities[-1].last != place - 1 or entities[-1].label != match["label"]:
                raise _out_of_place(text, line, column, tag)
            forms += [match["form"]] if match["form"] else []
            entities[-1] = entities[-1]._replace(last=place, form="_".join(forms))
        gap = _GAP.match(text, column - 1 + len(tag))
        column = gap.end() + 1 if gap else column
    return entities


def _tags(text: str) -> Sequence[str]:
    stripped = text.strip(" \t")
    return _GAP.split(stripped) if stripped else []


def _no_tag(text: str, line: int, column: int, tag: str) -> MalformedLineError:
    hint = (
        f"`{visible(shorten(tag))}` is no tag; a tag is `O`, `B-LABEL` or `I-LABEL`, perhaps with `/FORM` behind it"
    )
    return malformed("string", text, line, hint, column, tag)


def _out_of_place(text: str, line: int, column: int, tag: str) -> MalformedLineError:
    hint = f"`{visible(shorten(tag))}` goes on with no entity of this label; one begins with `B-`"
    return malformed(INCONSISTENT, text, line, hint, column, tag)
