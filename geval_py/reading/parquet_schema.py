"""The columns of a Parquet file with lists of words and of their numbers, from the schema in its footer.

The format says how a list is written: as a group that is marked as one, with a repeated group in it, and the entries
in that (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists).
"""

from __future__ import annotations

from geval_py.reading.listed import BUCKETS, LOGARITHMS, PROBABILITIES, WORDS
from geval_py.reading.parquet_footer import (
    CHILDREN,
    CONVERTED_TYPE,
    LOGICAL_TYPE,
    NAME,
    OF_LIST,
    OF_TEXT,
    REPETITION,
    TYPE,
)
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.reading.parquet_footer import Footer
    from geval_py.reading.thrift import Struct

KEYS = (WORDS, PROBABILITIES, LOGARITHMS, BUCKETS)
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
KINDS = {4: "floats", 5: "doubles", 6: "words"}  # by the type of a leaf
OLD_WRITER = b"parquet-cpp version"  # whose pages of version 2 may say falsely that they are not compressed
UTF8, LIST = (0, OF_TEXT), (3, OF_LIST)  # as converted types and as logical types


class Leaf(NamedTuple):
    """A column of lists: its name, its number, what is in it (words, floats or doubles), and the level of that.

    A list may be missing if it ``is_nullable``, and has the level 0 then.
    """

    name: str
    number: int
    kind: str
    definition: int
    is_nullable: bool


def usual_leaves(footer: Footer) -> list[Leaf] | None:
    """Return the known columns, first that of words; None if one is not of the usual form, or words are missing."""
    schema = footer.schema
    if OLD_WRITER in footer.created_by.lower():
        return None
    try:
        names = [element[NAME].decode() for element in schema]
    except UnicodeDecodeError:
        return None
    found: dict[str, Leaf | None] = {}
    place, number = 1, 0
    for _ in range(schema[0].get(CHILDREN, 0) if schema else 0):
        end, leaves = _subtree(schema, place)
        if end > len(schema):
            return None
        if (name := names[place]) in KEYS:
            if name in found:
                return None
            found[name] = _leaf(name, number, schema[place:end])
        place, number = end, number + leaves
    chosen = [found[name] for name in KEYS if name in found]
    usual = [leaf for leaf in chosen if leaf is not None]
    is_usual = place == len(schema) and all(len(group.columns) == number for group in footer.groups)
    is_usual = is_usual and len(usual) == len(chosen) > 1
    is_usual = is_usual and all((leaf.kind == "words") == (leaf.name == WORDS) for leaf in usual)
    return usual if is_usual and usual[0].name == WORDS else None


def _subtree(schema: Sequence[Struct], place: int) -> tuple[int, int]:
    """Return where the elements of a column end, behind the schema if some are missing, and how many are leaves."""
    left, leaves = 1, 0
    while left:
        if place == len(schema):
            return place + 1, leaves
        children = schema[place].get(CHILDREN, 0)
        left, leaves, place = left - 1 + children, leaves + (not children), place + 1
    return place, leaves


def _leaf(name: str, number: int, elements: Sequence[Struct]) -> Leaf | None:
    """Return a column of lists in its usual form; None for another one."""
    if len(elements) != 3:
        return None
    outer, repeated, entry = elements
    is_list = outer.get(CHILDREN) == repeated.get(CHILDREN) == 1 and TYPE not in outer.keys() | repeated.keys()
    is_list = is_list and _is_marked(outer, LIST) and not repeated.keys() & {CONVERTED_TYPE, LOGICAL_TYPE}
    is_list = is_list and repeated[NAME] not in (b"array", outer[NAME] + b"_tuple")  # of which the groups are entries
    levels = [element.get(REPETITION) for element in elements]
    is_list = is_list and levels[1] == REPEATED and {levels[0], levels[2]} <= {REQUIRED, OPTIONAL}
    kind = KINDS.get(entry.get(TYPE, -1))
    is_marked = _is_marked(entry, UTF8) if kind == "words" else not entry.keys() & {CONVERTED_TYPE, LOGICAL_TYPE}
    if not is_list or kind is None or not is_marked:
        return None
    return Leaf(name, number, kind, definition=1 + levels.count(OPTIONAL), is_nullable=levels[0] == OPTIONAL)


def _is_marked(element: Struct, mark: tuple[int, int]) -> bool:
    """Whether an element has a converted type, a logical type or both, and no other one."""
    converted, logical = mark
    marks = [CONVERTED_TYPE in element, LOGICAL_TYPE in element]
    fits = element.get(CONVERTED_TYPE, converted) == converted
    return any(marks) and fits and list(element.get(LOGICAL_TYPE, {logical: None})) == [logical]
