"""Mend an output file: its lines as :mod:`geval_py.checking.fixes` says, its place and compression as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from geval_py.checking.fixes import check_rest_mass, fix_line
from geval_py.checking.mendable import NOTHING, Codes, codes_of_lines, mended_spacing
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
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
) -> Fixed:
    """Mend a file; the original becomes ``PATH.orig`` (or ``.orig.1`` …), unless ``backup`` is false.

    The mended file is written beside the original, compressed as it was and with its permissions, and then takes its
    place at once. If there is nothing to mend, or ``write`` is false, nothing is written. Lines with bytes that are
    not UTF-8 lose their carriage returns at most, lines with a NUL (as in UTF-16) nothing. ``diff_lines`` limits the
    diff.

    Raises UsageError for standard input, an address, what is no regular file (a symbolic link leads to a file that
    was not named), what cannot be written, and a rest mass outside (0, 1); UnreadableFileError or CorruptFileError
    for what cannot be read. The file is then as it was.
    """
    check_rest_mass(rest_mass)
    permissions = check_replaceable(path, verb="mend")
    fixes = Fixes(rest_mass, diff_lines, only_counts=not write)
    backup_path = None
    if not write:
        with LineReader(path) as reader:
            _mend(reader, fixes, _discard)
    else:
        with replacement(path, permissions, verb="mend", beginning=TEMPORARY_BEGINNING) as new:
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


class Fixes:
    """Mends the lines of one file in order, and tells what it did.

    ``lines`` counts the lines, ``diff`` holds the first ``diff_lines`` mended ones: number, before, after,
    undecodable bytes as U+FFFD. With ``only_counts``, lines beyond the diff are not mended where it is known how they
    would be.
    """

    def __init__(self, rest_mass: float | None, diff_lines: int, *, only_counts: bool = False) -> None:
        self._rest_mass, self._diff_lines, self._only_counts = rest_mass, diff_lines, only_counts
        self._has_mark = False
        self._changes: Counter[str] = Counter()
        self.lines = 0
        self.diff: list[tuple[int, str, str]] = []

    @property
    def changes(self) -> dict[str, int]:
        """How many lines were mended, by the code of the rule (W211: 1 for the file)."""
        mark = {"W211": 1} if self._has_mark else {}
        return dict(sorted({**self._changes, **mark}.items()))

    def drop_mark(self) -> None:
        """Note that the file began with a byte order mark, which is no part of its first line any more."""
        self._has_mark = True

    def mend(self, block: bytes) -> bytes:
        """Mend the next lines, as they are stored, each ended by LF."""
        lines = block.removesuffix(b"\n").split(b"\n")
        known_codes = codes_of_lines(lines, self._rest_mass)
        if not self.lines:
            known_codes[0] = None
        for index in self._to_mend(known_codes):
            lines[index], known_codes[index] = self._mend_line(
                lines[index], self.lines + index + 1, known_codes[index]
            )
        self.lines += len(lines)
        for codes, times in Counter(known_codes).items():
            self._changes.update(dict.fromkeys(codes or (), times))
        return b"\n".join(lines) + b"\n"

    def _to_mend(self, known_codes: Sequence[Codes | None]) -> Iterator[int]:
        """Give the indices of the lines that are mended, since nothing else tells how, or since they are wanted."""
        kinds = set(known_codes)
        if None not in kinds and (kinds == {NOTHING} or not self._wants_lines()):
            return
        for index, codes in enumerate(known_codes):
            if codes is None or (codes and self._wants_lines()):
                yield index

    def _wants_lines(self) -> bool:
        return not self._only_counts or len(self.diff) < self._diff_lines

    def _mend_line(self, raw: bytes, line: int, codes: Codes | None) -> tuple[bytes, Codes]:
        mended = mended_spacing(raw, codes) if codes else None
        if mended is None or codes is None:
            mended, codes = _mend_first(raw, self._rest_mass) if line == 1 else _mend_bytes(raw, self._rest_mass)
        if line == 1 and self._has_mark:
            raw, codes = BYTE_ORDER_MARK + raw, codes | {"W211"}
        if codes and len(self.diff) < self._diff_lines:
            self.diff.append((line, raw.decode(errors="replace"), mended.decode(errors="replace")))
        return mended, codes


def _mend_first(raw: bytes, rest_mass: float | None) -> tuple[bytes, Codes]:
    """Mend the first line: no byte order mark may come to the file's beginning, where it would mean nothing."""
    mended, codes = _mend_bytes(raw, rest_mass)
    while mended.startswith(BYTE_ORDER_MARK):
        mended, more = _mend_bytes(mended.removeprefix(BYTE_ORDER_MARK), rest_mass)
        codes |= more | {"W211"}
    return mended, codes


def _mend_bytes(raw: bytes, rest_mass: float | None) -> tuple[bytes, Codes]:
    """Mend a line as it is stored, without its LF."""
    if b"\0" in raw:
        return raw, NOTHING
    line = raw.replace(b"\r", b"")
    codes = frozenset({"W210"}) if line != raw else NOTHING
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return line, codes
    mended, more = fix_line(text, rest_mass=rest_mass)
    return mended.encode(), codes | more
