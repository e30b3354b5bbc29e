"""Mend lines where that can be done without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. Of the rules of
:mod:`geval_py.checking.rules`, these are mended: E112, W201 (tiny overshoots), W202, W203, W204 (if a rest mass is
given), W206, W207, W210 and W211. All but W201, W204 and W211 keep the loss of every word (for E112, that of the
line without its stray spaces). What was mended once is not mended again.
"""

from __future__ import annotations

import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from geval_py.checking.rules import RULES
from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.reading.rewriting import check_replaceable, replacement
from geval_py.reading.wordprobs import (
    DEFAULT_BITS,
    LEAST_TOTAL,
    REST,
    TOLERANCE,
    are_probabilities,
    parse_line,
    sum_in_order,
)
from geval_py.scoring.kernel import (
    ABOVE_ONE,
    BELOW_ONE,
    CARRIAGE_RETURN,
    HAS_REST,
    LOGARITHMS,
    LOOKS_LIKE_PROBABILITIES,
    MALFORMED,
    REPEATED,
    ROUNDED,
    STRAY_SPACE,
    TINY,
    VECTOR,
    WRONG_LENGTH,
    ZERO_ENTRY,
    ZERO_REST,
)
from geval_py.scoring.kernel.backends import score_lines
from geval_py.scoring.kernel.reference import OVERSHOOT, is_explained, numbers_of, rounding

FIXABLE = frozenset(rule.code for rule in RULES if rule.fixable)
_UNCHANGED: frozenset[str] = frozenset()


def fix_line(
    text: str, *, rest_mass: float | None = None, rules: Collection[str] = FIXABLE
) -> tuple[str, frozenset[str]]:
    """Mend one line, without its line end; give it with the codes of the rules that were applied.

    ``rest_mass``, in (0, 1), is what a line that leaves nothing for other words is to leave. A line that is not in
    the format, of logarithms or a vector loses its stray spaces at most, and those only if it is in the format then.
    ``rules`` are the codes of the only rules to apply. Without W206, a line that repeats a word loses stray spaces at
    most; a line whose sum stays off, for want of W202 or W203, is given no rest.

    Raises UsageError on a rest mass outside (0, 1).

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1 a:0 :1")[0]
    'the:0.5 :0.5'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    >>> fix_line("the:1 a:0 :1", rules=["W207"])[0]
    'the:1 :1'
    """
    check_rest_mass(rest_mass)
    tidy = " ".join(filter(None, text.split(" "))) if "E112" in rules else text
    try:
        line = parse_line(tidy)
    except MalformedLineError:
        return text, _UNCHANGED
    spaces = frozenset({"E112"}) if tidy != text else _UNCHANGED
    if line.words is None:
        return tidy, spaces
    masses, codes = _mend_entries(line.words, line.values, rest_mass if "W204" in rules else None, rules, tidy)
    return (_write_entries(masses, tidy) if codes else tidy), spaces | codes


def check_rest_mass(rest_mass: float | None) -> None:
    """Raise UsageError for a rest mass that is not between 0 and 1."""
    if rest_mass is not None and not 0 < rest_mass < 1:
        raise UsageError(message=f"the rest mass is {rest_mass!r}, which is not between 0 and 1 (both excluded)")


def _mend_entries(
    words: Sequence[str], values: Sequence[float], rest_mass: float | None, rules: Collection[str], text: str
) -> tuple[dict[str, float], frozenset[str]]:
    """Give the mended mass of each word, in order, and the codes of the rules applied; no codes: leave the line."""
    values, clipped = _clip(values) if "W201" in rules else (list(values), _UNCHANGED)
    repetition = _repetition(words, values)
    if not are_probabilities(values) or ("W206" in repetition and "W206" not in rules):
        return {}, _UNCHANGED
    added = _add_up(words, values)
    total = sum_in_order(values)
    if _is_below_one(added) != (total < LEAST_TOTAL):  # by rounding; it would be another distribution
        return {}, _UNCHANGED
    off = _off_rule(total, added, numbers_of(text))
    codes = clipped | ((repetition | off) & frozenset(rules))
    kept = {word: mass for word, mass in added.items() if mass or not word or "W207" not in rules}
    if off <= frozenset(rules) and (off or (codes and _must_be_divided(kept, text, rules))):
        masses = _scale(kept, 1.0, _total(kept))
    elif max(kept.values()) > 1.0:  # it would be a logarithm
        return {}, _UNCHANGED
    elif not off <= frozenset(rules):
        return kept, codes
    else:
        masses = kept
    if masses is None:
        return {}, _UNCHANGED
    with_rest = _leave_rest(masses, rest_mass) if rest_mass is not None else None
    return (masses, codes) if with_rest is None else (with_rest, codes | {"W204"})


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


def _total(masses: Mapping[str, float]) -> float:
    return sum_in_order(list(masses.values()))


def _is_below_one(masses: Mapping[str, float]) -> bool:
    return _total(masses) < LEAST_TOTAL


def _off_rule(total: float, masses: Mapping[str, float], numbers: Sequence[str]) -> frozenset[str]:
    """Tell which of W202 and W203 holds, if any, of a total of numbers that are written so."""
    above = total > 1.0 + TOLERANCE
    if not above and not (REST in masses and total < LEAST_TOTAL):
        return _UNCHANGED
    if is_explained(total, rounding(numbers)):
        return _UNCHANGED
    return frozenset({"W202" if above else "W203"})


def _must_be_divided(masses: Mapping[str, float], text: str, rules: Collection[str]) -> bool:
    """Tell whether what was added up or dropped would leave a line that another run, with the rules, had to mend.

    Of fewer numbers rounding explains less, and a word that was added up to more than 1 would be a logarithm.
    """
    if max(masses.values()) > 1.0:
        return "W202" in rules
    return bool(_off_rule(_total(masses), masses, _write_numbers(masses, text)) & frozenset(rules))


def _scale(masses: Mapping[str, float], factor: float, total: float) -> dict[str, float] | None:
    """Multiply and divide all masses; None if one became subnormal: it would lose digits, or all."""
    scaled = {word: mass * factor / total for word, mass in masses.items()}
    lost = any(mass > 0.0 and scaled[word] < sys.float_info.min for word, mass in masses.items())
    return None if lost else scaled


def _leave_rest(masses: dict[str, float], rest_mass: float) -> dict[str, float] | None:
    """Take the rest's mass from all words alike (W204); None if there is some for it already."""
    if masses.get(REST) or (REST not in masses and _is_below_one(masses)):
        return None
    words = {word: mass for word, mass in masses.items() if word}
    scaled = _scale(words, 1.0 - rest_mass, _total(words))
    return None if scaled is None else {**masses, **scaled, REST: rest_mass}


def _write_entries(masses: Mapping[str, float], text: str) -> str:
    """Write a line; a mass that is as it was in ``text`` has the digits that it had there."""
    numbers = _write_numbers(masses, text)
    return " ".join(f"{word}:{number}" for word, number in zip(masses, numbers, strict=True))


def _write_numbers(masses: Mapping[str, float], text: str) -> list[str]:
    written: dict[str, str] = {}
    for token in text.split(" "):
        word, _, number = token.rpartition(":")
        written.setdefault(word, number)
    return [_digits(mass, written.get(word)) for word, mass in masses.items()]


def _digits(mass: float, written: str | None) -> str:
    if written is not None and float(written) == mass:
        return written
    return repr(mass).removesuffix(".0")


# Which rules mending applies to the lines of a block, told from the kernel's flags: most lines need not be parsed.


Codes = frozenset[str]
NOTHING: Codes = frozenset()
_RETURN = frozenset({"W210"})
_SPACE = frozenset({"E112"})


def codes_of_lines(lines: Sequence[bytes], rest_mass: float | None) -> list[Codes | None]:
    """Give for each line the codes of the rules that mending it applies; None where only mending it tells."""
    text = b"\n".join(lines)
    flags = _flags_of(text, len(lines))
    known = {each: codes_of(each, rest_mass) for each in set(flags)}
    if not _is_text(text):  # other lines are mended in part
        known = {each: codes if codes == NOTHING else None for each, codes in known.items()}
        return [known[each] for each in flags]
    codes = [known[each] for each in flags]
    if any(each & STRAY_SPACE for each in known):
        strays = [index for index, each in enumerate(flags) if each & STRAY_SPACE]
        found = _codes_without_spaces([lines[index] for index in strays], rest_mass)
        for index, of_line in zip(strays, found, strict=True):
            codes[index] = of_line
    return codes


def _flags_of(text: bytes, lines: int) -> Sequence[int]:
    return score_lines(text + b"\n", b"\n" * lines, DEFAULT_BITS, 1)[1]


def _is_text(data: bytes) -> bool:
    """Tell whether there is nothing but UTF-8, and no NUL."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def codes_of(flags: int, rest_mass: float | None) -> Codes | None:
    """Give the codes of the rules that mending applies to a line with such flags; None where flags do not tell.

    They do not of a line that overshoots [0,1] by rounding, repeats a word, has stray spaces, or has masses so small
    that dividing might lose them.
    """
    if flags & CARRIAGE_RETURN:
        others = codes_of(flags & ~CARRIAGE_RETURN, rest_mass)
        return None if others is None else others | _RETURN
    if flags & (STRAY_SPACE | LOOKS_LIKE_PROBABILITIES):
        return None
    if flags & (MALFORMED | LOGARITHMS | VECTOR):
        return NOTHING
    if flags & REPEATED:
        return None
    codes = _codes_of_probabilities(flags, rest_mass)
    return None if codes and flags & TINY else codes


def _codes_of_probabilities(flags: int, rest_mass: float | None) -> Codes:
    has_room = flags & BELOW_ONE or flags & HAS_REST
    holding = {
        "W202": flags & (ABOVE_ONE | ROUNDED) == ABOVE_ONE,
        "W203": flags & (BELOW_ONE | HAS_REST | ROUNDED) == BELOW_ONE | HAS_REST,
        "W204": rest_mass is not None and (flags & ZERO_REST or not has_room),
        "W207": flags & ZERO_ENTRY,
    }
    return frozenset(code for code, holds in holding.items() if holds)


def _codes_without_spaces(lines: Sequence[bytes], rest_mass: float | None) -> list[Codes | None]:
    """Give the codes for lines with stray spaces, which go if the line is in the format then."""
    text = b"\n".join(lines)
    flags = _flags_of(tidied(text), len(lines))
    known = {each: _codes_of_tidied(each, rest_mass) for each in set(flags)}
    codes = [known[each] for each in flags]
    if b"\r" in text:
        returns = (_RETURN if b"\r" in line else NOTHING for line in lines)
        codes = [None if of_line is None else of_line | more for of_line, more in zip(codes, returns, strict=True)]
    return codes


def _codes_of_tidied(flags: int, rest_mass: float | None) -> Codes | None:
    if flags & MALFORMED and not flags & WRONG_LENGTH:  # a vector's length is not a matter of its format
        return NOTHING
    codes = codes_of(flags, rest_mass)
    return None if codes is None else codes | _SPACE


def tidied(text: bytes) -> bytes:
    """Give lines without carriage returns and stray spaces."""
    text = text.replace(b"\r", b"")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return (b"\n" + text + b"\n").replace(b"\n ", b"\n").replace(b" \n", b"\n")[1:-1]


def mended_spacing(line: bytes, codes: Codes) -> bytes | None:
    """Mend a line of which nothing but spaces and carriage returns is to be mended; None if there is more."""
    if codes == _RETURN:
        return line.replace(b"\r", b"")
    return tidied(line) if codes <= _RETURN | _SPACE else None


# Mend an output file: its lines as :mod:`geval_py.checking.fixes` says, its place and compression as they were.


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
