"""Fixes of lines and of whole output files, where a problem can be fixed without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. These rules of
:mod:`geval_py.checking.rules` have a fix: E112, E118, W201 (tiny overshoots), W202, W203, W204 (if a rest mass is
given), W206, W207, W210 and W211. All but W201, W204 and W211 keep the loss of every word (E112: the loss of the line
without its stray spaces; E118: with spaces for TABs). Fixing a fixed line again changes nothing.
"""

from __future__ import annotations

import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from geval_py.checking.rules import RULES
from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading import rewriting, schemes, sources, wordprobs
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.scoring import kernel
from geval_py.scoring.kernel import backends, reference
from geval_py.text import named
from geval_py.values import Value

DIFF_LINES = 1000
TEMPORARY_BEGINNING = ".geval-fix-"
FIXABLE = frozenset(rule.code for rule in RULES if rule.fixable)
_TAB_AFTER_ENTRY = re.compile(rb"(:[-+.0-9eE]*[0-9])\t")
UNCHANGED: frozenset[str] = frozenset()  # the codes of the rules applied: none


def fix_line(
    text: str, *, rest_mass: float | None = None, rules: Collection[str] = FIXABLE
) -> tuple[str, frozenset[str]]:
    """Fix one line, without its line end; return the new line and the codes of the rules that were applied.

    ``rest_mass``, in (0, 1), is given to the rest entry of a line that leaves no mass for other words. ``rules``
    are the codes of the only rules to apply. A vector and a line of logarithms lose their stray spaces, nothing
    else is changed; a malformed line loses them only if it is well formed without them. So does a line with an
    entry that looks like two. Without W206, a line that repeats a word loses at most its stray spaces. A line
    whose sum stays wrong because W202 or W203 is not selected is given no rest.

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
    tidy = without_stray_spaces(text) if "E112" in rules else text
    try:
        line = wordprobs.parse_line(tidy)
    except MalformedLineError:
        return text, UNCHANGED
    spaces = frozenset({"E112"}) if tidy != text else UNCHANGED
    if line.words is None or any(map(reference.is_split, line.words)):  # which entries were meant is a guess
        return tidy, spaces
    masses, codes = _fix_entries(line.words, line.values, rest_mass if "W204" in rules else None, rules, tidy)
    if not codes:
        return tidy, spaces
    numbers = _write_numbers(masses, tidy)
    return " ".join(f"{word}:{number}" for word, number in zip(masses, numbers, strict=True)), spaces | codes


def without_stray_spaces(text: str) -> str:
    """Remove the spaces at both ends of each line, and all but one between two entries (E112)."""
    while "  " in text:
        text = text.replace("  ", " ")
    return f"\n{text}\n".replace("\n ", "\n").replace(" \n", "\n")[1:-1]


def check_rest_mass(rest_mass: float | None) -> None:
    """Raise UsageError if a rest mass is not between 0 and 1."""
    if rest_mass is not None and not 0 < rest_mass < 1:
        raise UsageError(message=f"the rest mass is {rest_mass!r}, which is not between 0 and 1 (both excluded)")


def _fix_entries(
    words: Sequence[str], values: Sequence[float], rest_mass: float | None, rules: Collection[str], text: str
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the fixed mass of each word, in order, and the codes of the rules applied; without codes, no mass."""
    values, clipped = _clip(values) if "W201" in rules else (list(values), UNCHANGED)
    repetition = {"W206"} if len(set(words)) < len(words) else set()
    if any(word and value == 0.0 for word, value in zip(words, values, strict=True)):
        repetition.add("W207")
    if not wordprobs.are_probabilities(values) or ("W206" in repetition and "W206" not in rules):
        return {}, UNCHANGED
    added: dict[str, float] = {}  # each word, the rest too, at its first place
    for word, value in zip(words, values, strict=True):
        added[word] = added.get(word, 0.0) + value
    total = wordprobs.sum_in_order(values)
    least = wordprobs.LEAST_TOTAL
    if (_total(added) < least) != (total < least):  # adding up rounds: it would be another distribution
        return {}, UNCHANGED
    off = _off_rule(total, added, reference.numbers_of(text))
    codes = clipped | ((repetition | off) & frozenset(rules))
    kept = {word: mass for word, mass in added.items() if mass or not word or "W207" not in rules}
    if off <= frozenset(rules) and (off or (codes and _must_be_divided(kept, text, rules))):
        masses = _scale(kept, 1.0, _total(kept))
    elif max(kept.values()) > 1.0:  # it would be read as a logarithm
        return {}, UNCHANGED
    elif not off <= frozenset(rules):
        return kept, codes
    else:
        masses = kept
    if masses is None:
        return {}, UNCHANGED
    with_rest = _leave_rest(masses, rest_mass) if rest_mass is not None else None
    return (masses, codes) if with_rest is None else (with_rest, codes | {"W204"})


def _clip(values: Sequence[float]) -> tuple[list[float], frozenset[str]]:
    """Clip to [0, 1] the values that overshoot it by rounding (W201)."""
    low, high = min(values), max(values)
    inside = sum(0.0 <= value <= 1.0 for value in values)
    looks_like_probabilities = high >= 0.5 or (high > 0.0 and 2 * inside > len(values))
    overshoots, most = low < 0.0 or high > 1.0, reference.OVERSHOOT
    if overshoots and looks_like_probabilities and low >= -most and high <= 1.0 + most:
        return [min(max(value, 0.0), 1.0) for value in values], frozenset({"W201"})
    return list(values), UNCHANGED


def _total(masses: Mapping[str, float]) -> float:
    return wordprobs.sum_in_order(list(masses.values()))


def _off_rule(total: float, masses: Mapping[str, float], numbers: Sequence[str]) -> frozenset[str]:
    """Return the rule that a total breaks, W202 or W203; ``numbers`` are the numbers as written."""
    above = total > 1.0 + wordprobs.TOLERANCE
    if not above and not (wordprobs.REST in masses and total < wordprobs.LEAST_TOTAL):
        return UNCHANGED
    if reference.is_explained(total, reference.rounding(numbers)):
        return UNCHANGED
    return frozenset({"W202" if above else "W203"})


def _must_be_divided(masses: Mapping[str, float], text: str, rules: Collection[str]) -> bool:
    """Whether another run would have to fix the line again, if it were only added up (W206) and rid of zeros (W207).

    Rounding explains less of a sum of fewer numbers, and a word above 1 would be read as a logarithm.
    """
    if max(masses.values()) > 1.0:
        return "W202" in rules
    return bool(_off_rule(_total(masses), masses, _write_numbers(masses, text)) & frozenset(rules))


def _scale(masses: Mapping[str, float], factor: float, total: float) -> dict[str, float] | None:
    """Return all masses times ``factor / total``; None if one became subnormal and so lost digits."""
    scaled = {word: mass * factor / total for word, mass in masses.items()}
    lost = any(mass > 0.0 and scaled[word] < sys.float_info.min for word, mass in masses.items())
    return None if lost else scaled


def _leave_rest(masses: dict[str, float], rest_mass: float) -> dict[str, float] | None:
    """Take the mass of the rest from all words in proportion (W204); None if the line leaves some for it."""
    if masses.get(wordprobs.REST) or (wordprobs.REST not in masses and _total(masses) < wordprobs.LEAST_TOTAL):
        return None
    words = {word: mass for word, mass in masses.items() if word}
    scaled = _scale(words, 1.0 - rest_mass, _total(words))
    return None if scaled is None else {**masses, **scaled, wordprobs.REST: rest_mass}


def _write_numbers(masses: Mapping[str, float], text: str) -> list[str]:
    """Write each mass; one that did not change has the digits that it has in ``text``."""
    written: dict[str, str] = {}
    for token in text.split(" "):
        word, _, number = token.rpartition(":")
        written.setdefault(word, number)
    return [
        written[word] if word in written and float(written[word]) == mass else repr(mass).removesuffix(".0")
        for word, mass in masses.items()
    ]


class Fixed(Value):
    """The changes that were made to a file, or would be made.

    ``changes`` counts the fixed lines by the code of the rule (W211: 1 for the file). ``diff`` holds the first fixed
    lines: number, before, after; undecodable bytes are U+FFFD. ``backup_path`` is the new place of the original.
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
    """Fix an output file; the original becomes ``PATH.orig`` (or ``.orig.1`` …), unless ``backup`` is false.

    The new file is written beside the original, with its compression and permissions, and then replaces it
    atomically. If there is nothing to fix, or ``write`` is false, nothing is written. Lines with bytes that are not
    UTF-8 lose at most their carriage returns; lines with a NUL (as in UTF-16) stay as they are. ``diff_lines`` limits
    the diff. ``rules`` are the codes of the only rules to apply; the other arguments are as for :func:`fix_line`.

    Raises UsageError for standard input, an address, a file that is not regular (also a symbolic link, which leads to
    a file that was not named), a file that was changed meanwhile or cannot be written, and a rest mass outside
    (0, 1); UnreadableFileError or CorruptFileError if the file cannot be read. The file is then unchanged.
    """
    check_rest_mass(rest_mass)
    if sources.name_of(path).endswith(sources.FORMAT_ENDINGS):
        raise UsageError(message=f"Cannot mend {named(path)}: it is not TSV; `geval convert` writes it as TSV")
    original = rewriting.check_replaceable(path, verb="mend")
    fixes = Fixes(rest_mass, diff_lines, rules, has_tabs="E118" in rules and _is_separated_by_tabs(path))
    backup_path = None
    if not write:
        with LineReader(path) as reader:
            _fix_blocks(reader, fixes, lambda _: None)
    else:
        permissions = stat.S_IMODE(original.st_mode)
        with rewriting.replacement(
            path, permissions, original=original, verb="mend", beginning=TEMPORARY_BEGINNING
        ) as new:
            with LineReader(path) as reader, new.writer(reader.source.compression) as file:
                _fix_blocks(reader, fixes, file.write)
            if fixes.changes:
                backup_path = new.take_place(backup=backup)
    return Fixed(path=path, lines=fixes.lines, changes=fixes.changes, diff=fixes.diff, backup_path=backup_path)


def _is_separated_by_tabs(path: str) -> bool:
    """Whether TABs separate entries, and no line of a file has a space (E118)."""
    has_tabs = False
    with LineReader(path) as reader:
        while block := reader.block():
            if b" " in bytes(block):
                return False
            has_tabs = has_tabs or _TAB_AFTER_ENTRY.search(block) is not None
    return has_tabs


def _fix_blocks(reader: LineReader, fixes: Fixes, write: Callable[[bytes], object]) -> None:
    fixes.has_mark = reader.has_byte_order_mark
    while block := reader.block():
        write(fixes.fix_block(block))


class Fixes:
    """Fixes the lines of one file in order, and counts the changes.

    ``lines`` counts the lines, ``diff`` holds the first ``diff_lines`` fixed ones: number, before, after;
    undecodable bytes are U+FFFD. ``has_mark`` says that the file began with a byte order mark, which is not in its
    first block. ``rules`` are the codes of the only rules to apply. With ``has_tabs``, TABs separate the entries of
    all lines (E118).
    """

    def __init__(
        self,
        rest_mass: float | None,
        diff_lines: int,
        rules: Collection[str] = FIXABLE,
        *,
        has_tabs: bool = False,
    ) -> None:
        self._rest_mass, self._diff_lines, self._rules = rest_mass, diff_lines, frozenset(rules)
        self._has_tabs = has_tabs
        self._changes: Counter[str] = Counter()
        self.has_mark = False
        self.lines = 0
        self.diff: list[tuple[int, str, str]] = []

    @property
    def changes(self) -> dict[str, int]:
        """How many lines were fixed, by the code of the rule (W211: 1 for the file)."""
        mark = {"W211": 1} if self.has_mark and "W211" in self._rules else {}
        return dict(sorted({**self._changes, **mark}.items()))

    def fix_block(self, block: bytes) -> bytes:
        """Fix the next lines, as they are stored, each ended by LF."""
        lines = block.removesuffix(b"\n").split(b"\n")
        stored = list(lines)
        separated = frozenset({"E118"})
        if self._has_tabs:
            lines = [_TAB_AFTER_ENTRY.sub(rb"\1 ", line) for line in lines]
        codes_of = {index: separated for index, line in enumerate(stored) if line != lines[index]}
        for index, spaced in self._suspects(lines):
            fix = self._fix_first if self.lines + index == 0 else partial(self._fix_bytes, spaced=spaced)
            lines[index], codes = fix(lines[index])
            if codes:
                codes_of[index] = codes | codes_of.get(index, UNCHANGED)
        for index, codes in sorted(codes_of.items()):
            self._changes.update(codes)
            if len(self.diff) < self._diff_lines:
                number = self.lines + index + 1
                before = BYTE_ORDER_MARK + stored[index] if number == 1 and self.has_mark else stored[index]
                after = lines[index].decode(errors="replace")
                self.diff.append((number, before.decode(errors="replace"), after))
        self.lines += len(lines)
        return b"\n".join(lines) + b"\n"

    def _suspects(self, lines: Sequence[bytes]) -> Iterator[tuple[int, str | None]]:
        """Yield the index of each line that may need a fix, by the kernel's flags, which spares parsing the others.

        With it comes the fixed line, where only stray spaces and carriage returns are to be removed.
        """
        flags = _flags_of(b"\n".join(lines), len(lines))
        spacing = kernel.CARRIAGE_RETURN | kernel.STRAY_SPACE
        suspicious = {each for each in set(flags) if each & spacing or _needs_parsing(each, self._rest_mass)}
        indices = [index for index, each in enumerate(flags) if each in suspicious] if suspicious else []
        if not self.lines and indices[:1] != [0]:
            indices.insert(0, 0)  # a byte order mark may stand before it
        text = _decoded(b"\n".join(lines[index] for index in indices))
        if not indices or text is None or not self._rules >= {"E112", "W210"}:
            yield from ((index, None) for index in indices)
            return
        returnless = tidy = text.replace("\r", "")
        of_tidy = [flags[index] for index in indices]
        if any(each & kernel.STRAY_SPACE for each in suspicious):
            tidy = without_stray_spaces(returnless)
            of_tidy = list(_flags_of(tidy.encode(), len(indices)))
        for index, line, spaced, each in zip(indices, returnless.split("\n"), tidy.split("\n"), of_tidy, strict=True):
            is_in_format = not each & kernel.MALFORMED or each & kernel.WRONG_LENGTH  # a vector may have any length
            yield index, None if _needs_parsing(each, self._rest_mass) else spaced if is_in_format else line

    def _fix_first(self, raw: bytes) -> tuple[bytes, frozenset[str]]:
        """Fix the first line: no byte order mark may come to the beginning of the file, where it would be dropped."""
        fixed, codes = self._fix_bytes(raw)
        if "W211" in self._rules:
            codes |= {"W211"} if self.has_mark else UNCHANGED
            while fixed.startswith(BYTE_ORDER_MARK):
                fixed, more = self._fix_bytes(fixed.removeprefix(BYTE_ORDER_MARK))
                codes |= more | {"W211"}
        elif self.has_mark:
            fixed = BYTE_ORDER_MARK + fixed
        elif fixed.startswith(BYTE_ORDER_MARK):
            return raw, UNCHANGED
        return fixed, codes

    def _fix_bytes(self, raw: bytes, spaced: str | None = None) -> tuple[bytes, frozenset[str]]:
        """Fix a line as it is stored, without its LF; ``spaced`` is the fixed line, if it is known."""
        if b"\0" in raw:
            return raw, UNCHANGED
        line, end, codes = raw.rstrip(b"\r"), b"", UNCHANGED
        if b"\r" in raw and "W210" in self._rules:
            line, codes = raw.replace(b"\r", b""), frozenset({"W210"})
        elif b"\r" in line:  # inside what would be fixed
            return raw, UNCHANGED
        else:
            end = raw[len(line) :]
        if spaced is not None:
            fixed = spaced.encode()
            return fixed, codes if fixed == line else codes | {"E112"}
        text = _decoded(line)
        if text is None:
            return line + end, codes
        new, more = fix_line(text, rest_mass=self._rest_mass, rules=self._rules)
        return new.encode() + end, codes | more


def _flags_of(text: bytes, lines: int) -> Sequence[int]:
    return backends.score_lines(text + b"\n", b"\n" * lines, schemes.DEFAULT_BITS, 1)[1]


def _decoded(data: bytes) -> str | None:
    """Decode UTF-8; None if the bytes are not text."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _needs_parsing(flags: int, rest_mass: float | None) -> bool:
    """Whether a line with such flags may need a fix of its entries."""
    if flags & kernel.LOOKS_LIKE_PROBABILITIES:
        return True
    if flags & (kernel.MALFORMED | kernel.LOGARITHMS | kernel.VECTOR):
        return False
    has_room = flags & (kernel.BELOW_ONE | kernel.HAS_REST)
    is_off = flags & kernel.ABOVE_ONE or has_room == kernel.BELOW_ONE | kernel.HAS_REST
    return bool(
        flags & (kernel.REPEATED | kernel.ZERO_ENTRY)
        or (is_off and not flags & kernel.ROUNDED)
        or (rest_mass is not None and (flags & kernel.ZERO_REST or not has_room))
    )
