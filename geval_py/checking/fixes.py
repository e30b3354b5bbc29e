"""Mend an output file, line for line, where that can be done without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. Of the rules of
:mod:`geval_py.checking.rules`, these are mended: E112, W201 (tiny overshoots), W202, W203, W204 (if a rest mass is
given), W206, W207, W210 and W211. All but W201, W204 and W211 keep the loss of every word (for E112, that of the
line without its stray spaces). What was mended once is not mended again.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase
from typing import IO

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.distribution import LEAST_TOTAL, TOLERANCE, are_probabilities, sum_in_order
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.reading.sources import STANDARD_INPUT, is_address, naming
from geval_py.reading.wordprobs import REST, parse_line
from geval_py.scoring.kernel.reference import OVERSHOOT
from geval_py.text import named, visible

DIFF_LINES = 1000
BACKUP_ENDING = ".orig"
_UNCHANGED: frozenset[str] = frozenset()


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


def fix_line(text: str, *, rest_mass: float | None = None) -> tuple[str, frozenset[str]]:
    """Mend one line, without its line end; give it with the codes of the rules that were applied.

    ``rest_mass``, in (0, 1), is what a line that leaves nothing for other words is to leave. A line that is not in
    the format, of logarithms or a vector loses its stray spaces at most, and those only if it is in the format then.

    Raises UsageError on a rest mass outside (0, 1).

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1 a:0 :1")[0]
    'the:0.5 :0.5'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    """
    _check_rest_mass(rest_mass)
    tidy = " ".join(filter(None, text.split(" ")))
    try:
        line = parse_line(tidy)
    except MalformedLineError:
        return text, _UNCHANGED
    spaces = frozenset({"E112"}) if tidy != text else _UNCHANGED
    if line.words is None:
        return tidy, spaces
    masses, codes = _mend_entries(line.words, line.values, rest_mass)
    return (_write_entries(masses, tidy) if codes else tidy), spaces | codes


def _check_rest_mass(rest_mass: float | None) -> None:
    if rest_mass is not None and not 0 < rest_mass < 1:
        raise UsageError(message=f"the rest mass is {rest_mass!r}, which is not between 0 and 1 (both excluded)")


def _mend_entries(
    words: Sequence[str], values: Sequence[float], rest_mass: float | None
) -> tuple[dict[str, float], frozenset[str]]:
    """Give the mended mass of each word, in order, and the codes of the rules applied; no codes: leave the line."""
    values, clipped = _clip(values)
    if not are_probabilities(values):
        return {}, _UNCHANGED
    added = _add_up(words, values)
    if _is_below_one(added) != (sum_in_order(values) < LEAST_TOTAL):  # by rounding; it would be another distribution
        return {}, _UNCHANGED
    codes = clipped | _repetition(words, values)
    scaled, off = _divide_by_total({word: mass for word, mass in added.items() if mass or not word})
    if scaled is None:
        return {}, _UNCHANGED
    codes |= off
    with_rest = _leave_rest(scaled, rest_mass) if rest_mass is not None else None
    return (scaled, codes) if with_rest is None else (with_rest, codes | {"W204"})


def _clip(values: Sequence[float]) -> tuple[list[float], frozenset[str]]:
    """Clip to [0, 1] what overshoots it by rounding (W201)."""
    low, high = min(values), max(values)
    inside = sum(0.0 <= value <= 1.0 for value in values)
    looks_like_probabilities = high >= 0.5 or (high > 0.0 and 2 * inside > len(values))
    if (low < 0.0 or high > 1.0) and looks_like_probabilities and low >= -OVERSHOOT and high <= 1.0 + OVERSHOOT:
        return [min(max(value, 0.0), 1.0) for value in values], frozenset({"W201"})
    return list(values), _UNCHANGED


def _add_up(words: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Add up the values of each word, the rest too, at its first place (W206)."""
    masses: dict[str, float] = {}
    for word, value in zip(words, values, strict=True):
        masses[word] = masses.get(word, 0.0) + value
    return masses


def _repetition(words: Sequence[str], values: Sequence[float]) -> frozenset[str]:
    """Tell which of W206 and W207 hold; both go when values are added up and zeros dropped."""
    codes = {"W206"} if len(set(words)) < len(words) else set()
    if 0.0 in values and any(word and value == 0.0 for word, value in zip(words, values, strict=True)):
        codes.add("W207")
    return frozenset(codes)


def _total(masses: dict[str, float]) -> float:
    return sum_in_order(list(masses.values()))


def _is_below_one(masses: dict[str, float]) -> bool:
    return _total(masses) < LEAST_TOTAL


def _divide_by_total(masses: dict[str, float]) -> tuple[dict[str, float] | None, frozenset[str]]:
    """Divide a distribution that is off by its total (W202, W203); None if that would lose a tiny mass."""
    total = _total(masses)
    if total > 1.0 + TOLERANCE:
        return _scale(masses, 1.0, total), frozenset({"W202"})
    if REST in masses and total < LEAST_TOTAL:
        return _scale(masses, 1.0, total), frozenset({"W203"})
    if max(masses.values()) > 1.0:  # a word that was added up to a little more than 1 would be a logarithm
        return _scale(masses, 1.0, total), _UNCHANGED
    return masses, _UNCHANGED


def _scale(masses: dict[str, float], factor: float, total: float) -> dict[str, float] | None:
    """Multiply and divide all masses; None if one became subnormal: it would lose digits, or all."""
    scaled = {word: mass * factor / total for word, mass in masses.items()}
    lost = any(mass > 0.0 and scaled[word] < sys.float_info.min for word, mass in masses.items())
    return None if lost else scaled


def _leave_rest(masses: dict[str, float], rest_mass: float) -> dict[str, float] | None:
    """Take the rest's mass from all words alike (W204); None if there is some for it already."""
    if masses.get(REST) or _is_below_one(masses):
        return None
    words = {word: mass for word, mass in masses.items() if word}
    scaled = _scale(words, 1.0 - rest_mass, _total(words))
    return None if scaled is None else {**masses, **scaled, REST: rest_mass}


def _write_entries(masses: dict[str, float], text: str) -> str:
    """Write a line; a mass that is as it was in ``text`` has the digits that it had there."""
    written: dict[str, str] = {}
    for token in text.split(" "):
        word, _, number = token.rpartition(":")
        written.setdefault(word, number)
    return " ".join(f"{word}:{_digits(mass, written.get(word))}" for word, mass in masses.items())


def _digits(mass: float, written: str | None) -> str:
    if written is not None and float(written) == mass:
        return written
    return repr(mass).removesuffix(".0")


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
    _check_rest_mass(rest_mass)
    permissions = _permissions(path)
    work = _Work(rest_mass, diff_lines)
    if not write:
        with LineReader(path) as reader:
            work.run(reader, _discard)
        return work.result(path, None)
    backup_path = None
    with _mending(path), _temporary_beside(path) as (file, temporary):
        with file, LineReader(path) as reader, _compressor(reader.source.compression, file) as compressed:
            work.run(reader, compressed.write)
        if work.changes:
            os.chmod(temporary, permissions)
            backup_path = _replace(path, temporary, backup)
    return work.result(path, backup_path)


@dataclass(slots=True)
class _Work:
    """The mending of one file: what to do, and what was done so far."""

    rest_mass: float | None
    diff_lines: int
    lines: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    diff: list[tuple[int, str, str]] = field(default_factory=list)

    def run(self, reader: LineReader, write: Callable[[bytes], object]) -> None:
        """Mend all lines, a block at a time."""
        while block := reader.block():
            lines = block.removesuffix(b"\n").split(b"\n")
            mended = [self._mend(line, reader.has_byte_order_mark) for line in lines]
            write(b"\n".join(mended) + b"\n")
        if reader.has_byte_order_mark:
            self.changes["W211"] = 1

    def _mend(self, raw: bytes, marked: bool) -> bytes:
        self.lines += 1
        mended, codes = self._mend_first(raw) if self.lines == 1 else _mend_bytes(raw, self.rest_mass)
        if self.lines == 1 and marked:
            raw, codes = BYTE_ORDER_MARK + raw, codes | {"W211"}
        if codes:
            self.changes.update(codes)
            if len(self.diff) < self.diff_lines:
                self.diff.append((self.lines, raw.decode(errors="replace"), mended.decode(errors="replace")))
        return mended

    def _mend_first(self, raw: bytes) -> tuple[bytes, frozenset[str]]:
        """Mend the first line: no byte order mark may come to the file's beginning, where it would mean nothing."""
        mended, codes = _mend_bytes(raw, self.rest_mass)
        while mended.startswith(BYTE_ORDER_MARK):
            mended, more = _mend_bytes(mended.removeprefix(BYTE_ORDER_MARK), self.rest_mass)
            codes |= more | {"W211"}
        return mended, codes

    def result(self, path: str, backup_path: str | None) -> Fixed:
        changes = dict(sorted(self.changes.items()))
        return Fixed(path=path, lines=self.lines, changes=changes, diff=self.diff, backup_path=backup_path)


def _mend_bytes(raw: bytes, rest_mass: float | None) -> tuple[bytes, frozenset[str]]:
    """Mend a line as it is stored, without its LF."""
    if b"\0" in raw:
        return raw, _UNCHANGED
    line = raw.replace(b"\r", b"")
    codes = frozenset({"W210"}) if line != raw else _UNCHANGED
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return line, codes
    mended, more = fix_line(text, rest_mass=rest_mass)
    return mended.encode(), codes | more


def _discard(_: bytes) -> None:
    """Write nowhere."""


def _permissions(path: str) -> int:
    """Give the permission bits of a regular file; refuse anything else."""
    if path == STANDARD_INPUT or is_address(path):
        raise _unmendable(path, "it is not a file")
    with naming(path):
        mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise _unmendable(path, "it is a symbolic link; name the file that it leads to")
    if not stat.S_ISREG(mode):
        raise _unmendable(path, "it is a folder, not a file" if stat.S_ISDIR(mode) else "it is not a regular file")
    return stat.S_IMODE(mode)


def _unmendable(path: str, reason: str) -> UsageError:
    return UsageError(message=f"Cannot mend {named(path)}: {visible(reason)}")


@contextmanager
def _mending(path: str) -> Iterator[None]:
    """Name the file in what goes wrong when its mended self is written."""
    try:
        yield
    except OSError as error:
        raise _unmendable(path, error.strerror or str(error)) from error


@contextmanager
def _temporary_beside(path: str) -> Iterator[tuple[IO[bytes], str]]:
    """Make a file in the same folder, and remove it unless it was renamed."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or os.curdir, prefix=".geval-fix-")
    try:
        yield os.fdopen(descriptor, "wb"), temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def _compressor(compression: str | None, file: IO[bytes]) -> Iterator[IO[bytes] | BufferedIOBase]:
    """Compress what is written to an open file, which stays open."""
    if compression is None:
        yield file
    else:
        with _COMPRESSORS[compression](file) as compressed:
            yield compressed


def _gzip(file: IO[bytes]) -> BufferedIOBase:
    import gzip

    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _xz(file: IO[bytes]) -> BufferedIOBase:
    import lzma

    return lzma.LZMAFile(file, "wb")


def _bzip2(file: IO[bytes]) -> BufferedIOBase:
    import bz2

    return bz2.BZ2File(file, "wb")


def _zstd(file: IO[bytes]) -> BufferedIOBase:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file, "wb", options={zstd.CompressionParameter.checksum_flag: 1})


_COMPRESSORS: dict[str, Callable[[IO[bytes]], BufferedIOBase]] = {
    "gzip": _gzip,
    "xz": _xz,
    "bzip2": _bzip2,
    "zstd": _zstd,
}


def _replace(path: str, temporary: str, backup: bool) -> str | None:
    """Put the temporary file in the place of the original, which is there at every moment; give the backup's path."""
    if not backup:
        os.replace(temporary, path)
        return None
    backup_path = _back_up(path)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(backup_path)
        raise
    return backup_path


def _back_up(path: str) -> str:
    """Give the file a second name, one that is free."""
    number = 0
    while True:
        backup_path = f"{path}{BACKUP_ENDING}" + (f".{number}" if number else "")
        try:
            _link_or_copy(path, backup_path)
        except FileExistsError:
            number += 1
        else:
            return backup_path


def _link_or_copy(path: str, backup_path: str) -> None:
    """Link a new name to a file or, where the file system has no links, copy it."""
    try:
        os.link(path, backup_path)
    except FileExistsError:
        raise
    except OSError:
        _copy(path, backup_path)


def _copy(path: str, backup_path: str) -> None:
    import shutil

    with open(path, "rb") as original, open(backup_path, "xb") as copy:
        try:
            shutil.copyfileobj(original, copy)
            shutil.copystat(path, backup_path)
        except BaseException:
            os.unlink(backup_path)
            raise
