"""Fixes of lines and of whole output files, where a problem can be fixed without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. These rules of
:mod:`geval_py.checking.rules` have a fix: E112, E118, W201 (tiny overshoots), W204 (if a rest mass is given), W210
and W211. What GEval does anyway is left to it: it divides a line by its sum, and adds the entries of a repeated word.
Fixing a fixed line again changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
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

    ``rest_mass``, in (0, 1), is given to the rest entry of a line that leaves no mass for other words; the words keep
    their proportions. ``rules`` are the codes of the only rules to apply. A vector, a line of logarithms and a line
    with an entry that looks like two lose their stray spaces, and nothing else is changed. A malformed line loses
    them only if it is well formed without them.

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1.0 a:-1e-9 :0")[0]
    'the:1.0 a:0 :0'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    >>> fix_line("a:0.333 b:0.333 c:0.333", rest_mass=0.1)[0]
    'a:0.3 b:0.3 c:0.3 :0.1'
    """
    tidy = re.sub("  +", " ", text).strip(" ") if "E112" in rules else text
    try:
        line = wordprobs.parse_line(tidy)
    except MalformedLineError:
        return text, UNCHANGED
    codes = frozenset({"E112"}) if tidy != text else UNCHANGED
    if line.words is None or any(map(reference.is_split, line.words)):  # which entries were meant is a guess
        return tidy, codes
    values = list(line.values)
    if "W201" in rules and not wordprobs.are_probabilities(values) and wordprobs.is_overshoot(values):
        values = [min(max(value, 0.0), 1.0) for value in values]
        codes |= {"W201"}
    entries = [
        (word, token if value == before else f"{word}:{_write(value)}", value)
        for word, token, before, value in zip(line.words, tidy.split(" "), line.values, values, strict=True)
    ]
    total = wordprobs.sum_in_order(values)
    is_rounded = reference.is_explained(total, reference.rounding(reference.numbers_of(tidy)))
    is_full = total > 1.0 or is_rounded or wordprobs.REST in line.words
    has_rest = any(value for word, _, value in entries if word == wordprobs.REST)
    if rest_mass is not None and "W204" in rules and is_full and not has_rest and wordprobs.are_probabilities(values):
        shares = [(word, value, value * (1.0 - rest_mass) / total) for word, _, value in entries if word]
        if not any(value and share < sys.float_info.min for _, value, share in shares):  # it would lose digits
            tokens = [f"{word}:{_write(share)}" for word, _, share in shares]
            return " ".join([*tokens, f":{_write(rest_mass)}"]), codes | {"W204"}
    return " ".join(token for _, token, _ in entries), codes


def _write(value: float) -> str:
    return repr(value).removesuffix(".0")


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
