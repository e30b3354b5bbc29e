"""Mend an output file: its lines as :mod:`geval_py.checking.fixes` says, its place and compression as they were."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass

from geval_py.checking.fixes import FIXABLE, Fixes, check_rest_mass
from geval_py.reading.lines import LineReader
from geval_py.reading.rewriting import check_replaceable, replacement

DIFF_LINES = 1000
TEMPORARY_BEGINNING = ".geval-fix-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What mending a file did, or would do.

    ``changes`` counts the lines mended, by the code of the rule (W211: 1 for the file). ``diff`` holds the first
    mended lines: number, before, after, undecodable bytes as U+FFFD. ``backup_path`` is where the original is now.
    """

    path: str
    lines: int
    changes: dict[str, int]
    diff: list[tuple[int, str, str]]
    backup_path: str | None = None


def fix_file(
    path: str,
    *,
    rest_mass: float | None = None,
    backup: bool = True,
    write: bool = True,
    diff_lines: int = DIFF_LINES,
    rules: Collection[str] = FIXABLE,
) -> Fixed:
    """Mend a file; the original becomes ``PATH.orig`` (or ``.orig.1`` …), unless ``backup`` is false.

    The mended file is written beside the original, compressed as it was and with its permissions, and then takes its
    place at once. If there is nothing to mend, or ``write`` is false, nothing is written. Lines with bytes that are
    not UTF-8 lose their carriage returns at most, lines with a NUL (as in UTF-16) nothing. ``diff_lines`` limits the
    diff. ``rules`` are the codes of the only rules to apply.

    Raises UsageError for standard input, an address, what is no regular file (a symbolic link leads to a file that
    was not named), what was changed meanwhile, what cannot be written, and a rest mass outside (0, 1);
    UnreadableFileError or CorruptFileError for what cannot be read. The file is then as it was.
    """
    check_rest_mass(rest_mass)
    original = check_replaceable(path, verb="mend")
    fixes = Fixes(rest_mass, diff_lines, rules)
    backup_path = None
    if not write:
        with LineReader(path) as reader:
            _mend(reader, fixes, _discard)
    else:
        permissions = stat.S_IMODE(original.st_mode)
        with replacement(path, permissions, original=original, verb="mend", beginning=TEMPORARY_BEGINNING) as new:
            with LineReader(path) as reader, new.writer(reader.source.compression) as file:
                _mend(reader, fixes, file.write)
            if fixes.changes:
                backup_path = new.take_place(backup=backup)
    return Fixed(path=path, lines=fixes.lines, changes=fixes.changes, diff=fixes.diff, backup_path=backup_path)


def _mend(reader: LineReader, fixes: Fixes, write: Callable[[bytes], object]) -> None:
    if reader.has_byte_order_mark:
        fixes.drop_mark()
    while block := reader.block():
        write(fixes.mend(block))


def _discard(_: bytes) -> None:
    """Write nowhere."""
