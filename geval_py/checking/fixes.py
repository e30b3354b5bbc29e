"""Fixes of lines and of whole output files, where a problem can be fixed without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. These rules of
:mod:`geval_py.checking.rules` have a fix: E112, E118, W201 (tiny overshoots), W202, W203, W204 (if a rest mass is
given), W206, W207, W210 and W211. All but W201, W204 and W211 keep the loss of every word (E112: the loss of the line
without its stray spaces; E118: with spaces for TABs). Fixing a fixed line again changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from geval_py.checking.rules import FLAG_RULES, RULES
from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading import files, rewriting, schemes, wordprobs
from geval_py.reading.files import FORMAT_ENDINGS
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.scoring.kernel import backends, reference
from geval_py.text import named

DIFF_LINES = 1000
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

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1 a:0 :1")[0]
    'the:0.5 :0.5'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    >>> fix_line("the:1 a:0 :1", rules=["W207"])[0]
    'the:1 :1'
    """
    tidy = re.sub("  +", " ", text).strip(" ") if "E112" in rules else text
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


def _fix_entries(
    words: Sequence[str], values: Sequence[float], rest_mass: float | None, rules: Collection[str], text: str
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the fixed mass of each word, in order, and the codes of the rules applied; without codes, no mass."""
    selected, codes = frozenset(rules), UNCHANGED
    if "W201" in selected and not wordprobs.are_probabilities(values) and wordprobs.is_overshoot(values):
        values, codes = [min(max(value, 0.0), 1.0) for value in values], frozenset({"W201"})
    masses: dict[str, float] = {}  # each word, the rest too, at its first place
    for word, value in zip(words, values, strict=True):
        masses[word] = masses.get(word, 0.0) + value
    repetition = {"W206"} if len(masses) < len(words) else set()
    if any(word and value == 0.0 for word, value in zip(words, values, strict=True)):
        repetition.add("W207")
    if not wordprobs.are_probabilities(values) or "W206" in repetition - selected:
        return {}, UNCHANGED
    total = wordprobs.sum_in_order(values)
    if (_total(masses) < wordprobs.MIN_TOTAL) != (total < wordprobs.MIN_TOTAL):
        return {}, UNCHANGED  # adding up rounds: it would be another distribution
    off = _off_rule(total, masses, reference.numbers_of(text))
    codes |= (repetition | off) & selected
    masses = {word: mass for word, mass in masses.items() if mass or not word or "W207" not in selected}
    if codes and not off:
        # Another run would have to divide a line that was only added up: rounding explains less of a sum of fewer
        # numbers, and a word above 1 would be read as a logarithm.
        if max(masses.values()) > 1.0:
            is_divided = "W202" in selected
        else:
            is_divided = bool(_off_rule(_total(masses), masses, _write_numbers(masses, text)) & selected)
    else:
        is_divided = bool(off) and off <= selected
    if is_divided:
        scaled = _scale(masses, 1.0, _total(masses))
        if scaled is None:
            return {}, UNCHANGED
        masses = scaled
    elif max(masses.values()) > 1.0:  # it would be read as a logarithm
        return {}, UNCHANGED
    elif not off <= selected:
        return masses, codes
    has_rest = masses.get(wordprobs.REST) or (wordprobs.REST not in masses and _total(masses) < wordprobs.MIN_TOTAL)
    if rest_mass is not None and not has_rest:  # take it from all words in proportion
        of_words = {word: mass for word, mass in masses.items() if word}
        scaled = _scale(of_words, 1.0 - rest_mass, _total(of_words))
        if scaled is not None:
            return {**masses, **scaled, wordprobs.REST: rest_mass}, codes | {"W204"}
    return masses, codes


def _total(masses: Mapping[str, float]) -> float:
    return wordprobs.sum_in_order(list(masses.values()))


def _off_rule(total: float, masses: Mapping[str, float], numbers: Sequence[str]) -> frozenset[str]:
    """Return the rule that a total breaks, W202 or W203; ``numbers`` are the numbers as written."""
    above = total > 1.0 + wordprobs.TOLERANCE
    if not above and not (wordprobs.REST in masses and total < wordprobs.MIN_TOTAL):
        return UNCHANGED
    if reference.is_explained(total, reference.rounding(numbers)):
        return UNCHANGED
    return frozenset({"W202" if above else "W203"})


def _scale(masses: Mapping[str, float], factor: float, total: float) -> dict[str, float] | None:
    """Return all masses times ``factor / total``; None if one became subnormal and so lost digits."""
    scaled = {word: mass * factor / total for word, mass in masses.items()}
    lost = any(mass > 0.0 and scaled[word] < sys.float_info.min for word, mass in masses.items())
    return None if lost else scaled


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


def fix_file(
    path: str,
    *,
    rest_mass: float | None = None,
    backup: bool = True,
    write: bool = True,
    rules: Collection[str] = FIXABLE,
) -> Fixes:
    """Fix an output file; the original becomes ``PATH.orig`` (or ``.orig.1`` …), unless ``backup`` is false.

    The new file is written beside the original, with its compression and permissions, and then replaces it
    atomically. If there is nothing to fix, or ``write`` is false, nothing is written. Lines with bytes that are not
    UTF-8 lose at most their carriage returns; lines with a NUL (as in UTF-16) stay as they are. ``rules`` are the
    codes of the only rules to apply; the other arguments are as for :func:`fix_line`.

    Raises UsageError for standard input, an address, a file that is not regular (also a symbolic link, which leads to
    a file that was not named), and a file that was changed meanwhile or cannot be written; UnreadableFileError or
    CorruptFileError if the file cannot be read. The file is then unchanged.
    """
    if files.name_of(path).endswith(FORMAT_ENDINGS):
        raise UsageError(message=f"Cannot fix {named(path)}: it is not TSV; `geval convert` writes it as TSV")
    original = rewriting.check_replaceable(path, verb="fix")
    has_tabs = has_spaces = False  # whether TABs separate entries, and no line has a space (E118)
    if "E118" in rules:
        with LineReader(path) as reader:
            while (block := reader.block()) and not has_spaces:
                has_spaces = b" " in block
                has_tabs = has_tabs or _TAB_AFTER_ENTRY.search(block) is not None
    fixes = Fixes(path, rest_mass, frozenset(rules), has_tabs=has_tabs and not has_spaces)
    with LineReader(path) as reader:
        if not write:
            for _ in fixes.fix_blocks(reader):
                pass
            return fixes
        compression = reader.compression
        replacing = rewriting.written_whole(
            path, compression=compression, original=original, backup=backup, verb="fix"
        )
        with replacing as file:
            for block in fixes.fix_blocks(reader):
                file.write(block)
            file.is_wanted = bool(fixes.changes)
    fixes.backup_path = file.backup_path
    return fixes


@dataclass(slots=True)
class Fixes:
    """The changes that were made to a file, or would be made: fixes its lines in order, and counts them.

    ``lines`` counts the lines, ``changes`` the fixed ones by the code of the rule (W211: 1 for the file); ``diff``
    holds the first DIFF_LINES fixed ones: number, before, after; undecodable bytes are U+FFFD. ``backup_path`` is
    the new place of the original. ``rules`` are the codes of the only rules to apply. With ``has_tabs``, TABs
    separate the entries of all lines (E118).
    """

    path: str
    rest_mass: float | None
    rules: frozenset[str] = FIXABLE
    has_tabs: bool = False
    lines: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    diff: list[tuple[int, str, str]] = field(default_factory=list)
    backup_path: str | None = None

    def fix_blocks(self, reader: LineReader) -> Iterator[bytes]:
        """Yield the blocks of a file, each with its lines fixed."""
        while block := reader.block():
            yield self.fix_block(block, has_mark=reader.has_byte_order_mark and not self.lines)
        if reader.has_byte_order_mark and "W211" in self.rules:
            self.changes["W211"] = 1

    def fix_block(self, block: bytes, *, has_mark: bool = False) -> bytes:
        """Fix the next lines, as they are stored, each ended by LF; ``has_mark``: after a byte order mark."""
        stored = block.removesuffix(b"\n").split(b"\n")
        lines = [_TAB_AFTER_ENTRY.sub(rb"\1 ", line) for line in stored] if self.has_tabs else list(stored)
        text = b"\n".join(lines) + b"\n"
        flags = backends.score_lines(text, b"\n" * len(lines), schemes.DEFAULT_BITS, 1)[1]
        rules = [rule for rule in FLAG_RULES if rule.fixable and (rule.code != "W204" or self.rest_mass is not None)]
        suspicious = {each for each in set(flags) if any(rule.is_broken(each) for rule in rules)}
        if not (suspicious or self.has_tabs or not self.lines):
            self.lines += len(lines)
            return block
        for index, (before, each) in enumerate(zip(stored, flags, strict=True)):
            self.lines += 1
            codes = UNCHANGED if lines[index] == before else frozenset({"E118"})
            if self.lines == 1:
                lines[index], more = self._fix_first(lines[index], has_mark=has_mark)
                before = BYTE_ORDER_MARK + before if has_mark else before
                codes |= more
            elif each in suspicious:
                lines[index], more = self._fix_bytes(lines[index])
                codes |= more
            if codes:
                self.changes.update(codes)
                if len(self.diff) < DIFF_LINES:
                    after = lines[index].decode(errors="replace")
                    self.diff.append((self.lines, before.decode(errors="replace"), after))
        return b"\n".join(lines) + b"\n"

    def _fix_first(self, raw: bytes, *, has_mark: bool) -> tuple[bytes, frozenset[str]]:
        """Fix the first line: no byte order mark may come to the beginning of the file, where it would be dropped."""
        fixed, codes = self._fix_bytes(raw)
        if "W211" in self.rules:
            codes |= {"W211"} if has_mark else UNCHANGED
            while fixed.startswith(BYTE_ORDER_MARK):
                fixed, more = self._fix_bytes(fixed.removeprefix(BYTE_ORDER_MARK))
                codes |= more | {"W211"}
        elif has_mark:
            fixed = BYTE_ORDER_MARK + fixed
        elif fixed.startswith(BYTE_ORDER_MARK):
            return raw, UNCHANGED
        return fixed, codes

    def _fix_bytes(self, raw: bytes) -> tuple[bytes, frozenset[str]]:
        """Fix a line as it is stored, without its LF."""
        line, end, codes = raw.rstrip(b"\r"), b"", UNCHANGED
        if b"\r" in raw and "W210" in self.rules:
            line, codes = raw.replace(b"\r", b""), frozenset({"W210"})
        else:
            end = raw[len(line) :]
        if b"\0" in raw or b"\r" in line:  # a carriage return inside of what would be fixed
            return raw, UNCHANGED
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return line + end, codes
        new, more = fix_line(text, rest_mass=self.rest_mass, rules=self.rules)
        return new.encode() + end, codes | more
