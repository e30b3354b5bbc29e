"""Files in several parts, as jobs on many machines write them: ``out-00003-of-00064.tsv.zst`` is the fourth of 64.

The parts are numbered from 0, with any number of digits, before the endings; together, in the order of their numbers,
they are one file, which is called as they are without number: ``out.tsv``. Its path has a star where the parts have
their numbers: ``out-*-of-00064.tsv.zst``.
"""

from __future__ import annotations

import os
import re

from geval_py.errors import PartsError
from geval_py.reading.compression import COMPRESSED_ENDINGS
from geval_py.text import natural_order
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ANY_COMPRESSION = "|".join(map(re.escape, COMPRESSED_ENDINGS))
_PART = re.compile(rf"(.+)-([0-9]+|\*)(-of-([0-9]+)((?:\.[^-/]*?)?)(?:{_ANY_COMPRESSION})?)", re.DOTALL)
MOST_NAMED = 5  # parts in a message


class Part(Value):
    """What the name of a part says: which file it is of, its number, and how many there are.

    ``number`` is None in ``pattern``, the name with a star in its place.
    """

    whole: str
    number: int | None
    count: int
    pattern: str


def part_of(name: str) -> Part | None:
    """Read the name of a part; None for another name.

    >>> part_of("out-lr=0.1-03-of-64.tsv.xz")
    Part(whole='out-lr=0.1.tsv', number=3, count=64, pattern='out-lr=0.1-*-of-64.tsv.xz')
    """
    match = _PART.fullmatch(name) if "-of-" in name else None
    if match is None:
        return None
    return Part(
        whole=match[1] + match[5],
        number=None if match[2] == "*" else int(match[2]),
        count=int(match[4]),
        pattern=f"{match[1]}-*{match[3]}",
    )


def is_whole(path: str) -> bool:
    """Tell whether a path is that of a file in parts."""
    part = part_of(os.path.basename(path))
    return part is not None and part.number is None


def is_part_of(path: str, whole: str) -> bool:
    """Tell whether a path is that of one of the parts of the file at another path."""
    (folder, name), (of_folder, of_name) = os.path.split(path), os.path.split(whole)
    part, of = part_of(name), part_of(of_name)
    if part is None or of is None or of.number is not None:
        return False
    return folder == of_folder and part.whole == of.whole


def name_of(name: str) -> str:
    """Give the name under which a file is shown: without compression and, if it is one in parts, without number.

    >>> name_of("out-lr=0.1-*-of-64.tsv.xz"), name_of("out.tsv.gz")
    ('out-lr=0.1.tsv', 'out.tsv')
    """
    part = part_of(name)
    if part is not None and part.number is None:
        return part.whole
    return next((name.removesuffix(ending) for ending in COMPRESSED_ENDINGS if name.endswith(ending)), name)


def _parts_among(names: Iterable[str]) -> list[tuple[Part, str]]:
    found = ((part_of(name), name) for name in sorted(names, key=natural_order))
    return [(part, name) for part, name in found if part is not None and part.number is not None]


def wholes_among(names: Iterable[str]) -> dict[str, str]:
    """Give the files in parts that there are among names: what each is called, and its name with a star.

    It is that of the first part, where others have another compression, or count.
    """
    return {part.whole: part.pattern for part, _ in reversed(_parts_among(names))}


def parts_among(path: str, names: Iterable[str]) -> tuple[str, ...]:
    """Give the paths of the parts of the file at a path, in order, of the names in its folder.

    Raises PartsError for parts that are missing, there twice, or of another number of parts.
    """
    folder, name = os.path.split(path)
    wanted = part_of(name)
    of_it = [(part, other) for part, other in _parts_among(names) if wanted and part.whole == wanted.whole]
    counts = {part.count: other for part, other in of_it}
    if len(counts) > 1:
        *others, last = sorted(counts)
        reason = f"there are parts of {', '.join(map(str, others))} and of {last}"
        raise PartsError(path=path, reason=reason, names=tuple(counts.values()))
    by_number: dict[int, list[str]] = {}
    for part, other in of_it:
        by_number.setdefault(part.number or 0, []).append(other)
    count = next(iter(counts), wanted.count if wanted else 0)
    _check(path, by_number, count)
    return tuple(os.path.join(folder, by_number[number][0]) for number in sorted(by_number))


def _check(path: str, by_number: dict[int, list[str]], count: int) -> None:
    for number, names in sorted(by_number.items()):
        if number >= count:
            reason = f"of {count} parts there is no part {number}: they are numbered from 0"
            raise PartsError(path=path, reason=reason, names=tuple(names))
        if len(names) > 1:
            raise PartsError(path=path, reason=f"part {number} of {count} is there twice", names=tuple(names))
    if len(by_number) < count:
        first = range(min(count, len(by_number) + MOST_NAMED))  # whatever count a stranger's name says
        raise PartsError(path=path, reason=_missing([n for n in first if n not in by_number], count, len(by_number)))


def _missing(numbers: Sequence[int], count: int, there: int) -> str:
    missing = count - there
    if missing == 1:
        return f"part {numbers[0]} of {count} is missing"
    more = f" and {missing - MOST_NAMED} more" if missing > MOST_NAMED else ""
    return f"parts {', '.join(map(str, numbers[:MOST_NAMED]))}{more} of {count} are missing"
