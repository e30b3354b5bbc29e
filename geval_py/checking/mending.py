"""Mend an output file: its lines as :mod:`geval_py.checking.fixes` says, its place and compression as they were."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from geval_py.checking.fixes import FIXABLE, check_rest_mass, fix_line
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
    fixes = Fixes(rest_mass, diff_lines, rules, only_counts=not write)
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


class Fixes:
    """Mends the lines of one file in order, and tells what it did.

    ``lines`` counts the lines, ``diff`` holds the first ``diff_lines`` mended ones: number, before, after,
    undecodable bytes as U+FFFD. ``rules`` are the codes of the only rules to apply. With ``only_counts``, lines
    beyond the diff are not mended where it is known how they would be.
    """

    def __init__(
        self,
        rest_mass: float | None,
        diff_lines: int,
        rules: Collection[str] = FIXABLE,
        *,
        only_counts: bool = False,
    ) -> None:
        self._rest_mass, self._diff_lines, self._rules = rest_mass, diff_lines, frozenset(rules)
        self._only_counts = only_counts
        self._has_mark = False
        self._changes: Counter[str] = Counter()
        self.lines = 0
        self.diff: list[tuple[int, str, str]] = []

    @property
    def changes(self) -> dict[str, int]:
        """How many lines were mended, by the code of the rule (W211: 1 for the file)."""
        mark = {"W211": 1} if self._has_mark and "W211" in self._rules else {}
        return dict(sorted({**self._changes, **mark}.items()))

    def drop_mark(self) -> None:
        """Note that the file began with a byte order mark, which is no part of its first line any more."""
        self._has_mark = True

    def mend(self, block: bytes) -> bytes:
        """Mend the next lines, as they are stored, each ended by LF."""
        lines = block.removesuffix(b"\n").split(b"\n")
        known_codes = self._known_codes(lines)
        for index in self._to_mend(known_codes):
            number = self.lines + index + 1
            lines[index], known_codes[index] = self._mend_line(lines[index], number, known_codes[index])
        self.lines += len(lines)
        for codes, times in Counter(known_codes).items():
            self._changes.update(dict.fromkeys(codes or (), times))
        return b"\n".join(lines) + b"\n"

    def _known_codes(self, lines: list[bytes]) -> list[Codes | None]:
        """Give the codes of the rules that mending each line applies, None where only mending it tells."""
        if not self._rules >= FIXABLE:
            return [None] * len(lines)
        known_codes = codes_of_lines(lines, self._rest_mass)
        if not self.lines:
            known_codes[0] = None
        return known_codes

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
            mended, codes = self._mend_first(raw) if line == 1 else self._mend_bytes(raw)
        if line == 1 and self._has_mark:
            raw = BYTE_ORDER_MARK + raw
            if "W211" in self._rules:
                codes |= {"W211"}
            else:
                mended = BYTE_ORDER_MARK + mended
        if codes and len(self.diff) < self._diff_lines:
            self.diff.append((line, raw.decode(errors="replace"), mended.decode(errors="replace")))
        return mended, codes

    def _mend_first(self, raw: bytes) -> tuple[bytes, Codes]:
        """Mend the first line: no byte order mark may come to the file's beginning, where it would mean nothing."""
        mended, codes = self._mend_bytes(raw)
        if "W211" not in self._rules:
            is_new = mended.startswith(BYTE_ORDER_MARK) and not self._has_mark
            return (raw, NOTHING) if is_new else (mended, codes)
        while mended.startswith(BYTE_ORDER_MARK):
            mended, more = self._mend_bytes(mended.removeprefix(BYTE_ORDER_MARK))
            codes |= more | {"W211"}
        return mended, codes

    def _mend_bytes(self, raw: bytes) -> tuple[bytes, Codes]:
        """Mend a line as it is stored, without its LF."""
        if b"\0" in raw:
            return raw, NOTHING
        line, end, codes = raw.rstrip(b"\r"), b"", NOTHING
        if b"\r" in raw and "W210" in self._rules:
            line, codes = raw.replace(b"\r", b""), frozenset({"W210"})
        elif b"\r" in line:  # amid what would be mended
            return raw, NOTHING
        else:
            end = raw[len(line) :]
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return line + end, codes
        mended, more = fix_line(text, rest_mass=self._rest_mass, rules=self._rules)
        return mended.encode() + end, codes | more
