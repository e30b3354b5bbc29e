"""Names that become shorter and stay distinct: without the ends that all of them have, or cut in the middle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from geval_py.text import characters, display_width

MOST_TRIED = 1000  # names for which all places of the cut are tried
_VALUE = r"(?:(?<==)|^)[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w)"  # a parameter that is a number
_BEGINNING = r"(?s).*(?:[=,;:/_ ]|(?<!\d[eE])-)"  # the "-" in 1e-4 is no place to part a name
_ENDING = r"(?s)(?:[,;/_ ]|[.-](?=[^\W\d])).*"


class OwnName(str):
    """A name that a user chose; what the others begin and end with is no part of it."""

    __slots__ = ()


def shared_ends(names: Sequence[str]) -> tuple[str, str]:
    """Return the beginning and the end that all of some distinct names have, up to a sign between their parts.

    >>> shared_ends(["out-model=bigram.tsv", "out-model=bigger.tsv"])
    ('out-model=', '.tsv')
    >>> shared_ends(["out.tsv", "out-2.tsv"]), shared_ends(["out.tsv"])
    (('', '.tsv'), ('', ''))
    """
    if len(names) < 2:
        return "", ""
    found = re.match(_BEGINNING, _common_beginning(names))
    beginning = found[0] if found else ""
    rests = [name[len(beginning) :] for name in names]
    if not all(rests) or any(next(characters(rest))[1] == 0 for rest in rests):
        beginning, rests = "", list(names)
    found = re.search(_ENDING, _common_beginning([rest[::-1] for rest in rests])[::-1])
    ending = found[0] if found else ""
    return beginning, "" if ending in rests else ending


def _common_beginning(texts: Sequence[str]) -> str:
    low, high = min(texts), max(texts)
    same = (n for n, (one, other) in enumerate(zip(low, high, strict=False)) if one != other)
    return low[: next(same, len(low))]


def cut_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Cut names in the middle to ``width`` cells, all at one place, if there is one that leaves them distinct.

    A place at which no number of a parameter is cut is preferred.

    >>> list(cut_names(["alpha=1,epochs=10", "alpha=2,epochs=10", "none"], 9).values())
    ['alpha=1,…', 'alpha=2,…', 'none']
    """
    unique = list(dict.fromkeys(names))
    middle = (width - 1) // 2
    heads = sorted(range(width), key=lambda head: (head in (0, width - 1), abs(head - middle)))
    first: list[str] = []
    distinct: list[str] = []
    for head in heads if len(unique) <= MOST_TRIED else [middle]:
        shown = [cut_middle(name, width, head) for name in unique]
        first = first or shown
        if len(set(shown)) < len(shown):
            continue
        if not any(map(cuts_number, unique, shown)):
            return dict(zip(unique, shown, strict=True))
        distinct = distinct or shown
    return dict(zip(unique, distinct or first, strict=True))


def cuts_number(name: str, shown: str) -> bool:
    """Whether a name was cut inside a parameter that is a number.

    >>> cuts_number("ela,lr=0.001,seed=4", "ela,lr=0…01,seed=4"), cuts_number("alpha=1,k=10", "alp…=1,k=10")
    (True, False)
    """
    if name == shown:
        return False
    start = len(_common_beginning([name, shown]))
    end = len(name) - (len(shown) - start - 1)
    numbers = (found.span() for found in re.finditer(_VALUE, name))
    return any(low < end and high > start and not start <= low < high <= end for low, high in numbers)


def cut_middle(text: str, width: int, head: int) -> str:
    """Cut a text to ``width`` columns, of which ``head`` are its beginning.

    >>> cut_middle("bigram-smoothed", 9, 4)
    'bigr…thed'
    """
    if display_width(text) <= width:
        return text
    parts = list(characters(text))
    tail = "".join(part for part, _ in reversed(list(_within(reversed(parts), width - 1 - head))))
    return f"{''.join(part for part, _ in _within(parts, head))}…{tail}"


def _within(parts: Iterable[tuple[str, int]], width: int) -> Iterator[tuple[str, int]]:
    for part, cells in parts:
        width -= cells
        if width < 0:
            return
        yield part, cells
