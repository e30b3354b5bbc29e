"""Fixes of lines and of whole output files, where a problem can be fixed without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. A line is fixed as
it is read, without carriage returns. These rules of
:mod:`geval_py.checking.rules` have a fix: E112, E118, W201 (tiny overshoots), W204 (if a rest mass is given), W210
and W211. What GEval does anyway is left to it: it divides a line by its sum, and adds the entries of a repeated word.
Fixing a fixed line again changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from geval_py.checking.places import separations
from geval_py.checking.rules import FLAG_RULES, RULES, RULES_BY_CODE
from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading import files, rewriting, schemes, wordprobs
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader, decode_lines
from geval_py.scoring.kernel import TINY, backends, reference
from geval_py.text import named

DIFF_LINES = 1000
FIXABLE = frozenset(rule.code for rule in RULES if rule.fixable)


def fix_line(
    text: str, *, rest_mass: float | None = None, rules: Collection[str] = FIXABLE
) -> tuple[str, frozenset[str]]:
    """Fix one line, without its line end; return the new line and the codes of the rules that were applied.

    ``rest_mass``, in (0, 1), is given to the rest entry of a line that leaves no mass for other words; the words keep
    their proportions. ``rules`` are the codes of the only rules to apply. A vector, a line of logarithms and a line
    with an entry that looks like two lose their stray spaces and carriage returns, and nothing else is changed. A
    malformed line loses spaces only if it is well formed without them. A line with a NUL, as in UTF-16, or with a
    carriage return before other characters, which may end a line, stays as it is.

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1.0 a:-1e-9 :0")[0]
    'the:1.0 a:0 :0'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    >>> fix_line("a:0.333 b:0.333 c:0.333", rest_mass=0.1)[0]
    'a:0.3 b:0.3 c:0.3 :0.1'
    """
    read = text.rstrip("\r")
    if "\0" in read or "\r" in read:
        return text, frozenset()
    tidy = re.sub("  +", " ", read).strip(" ") if "E112" in rules else read
    codes = {"W210"} if "W210" in rules and read != text else set()
    try:
        line = wordprobs.parse_line(tidy)
    except MalformedLineError:
        return read if codes else text, frozenset(codes)
    if tidy != read:
        codes.add("E112")
    if line.words is None or any(map(reference.is_split, line.words)):  # which entries were meant is a guess
        return tidy if codes else text, frozenset(codes)
    values = list(line.values)
    if "W201" in rules and not wordprobs.are_probabilities(values) and wordprobs.is_overshoot(values):
        values = [min(max(value, 0.0), 1.0) for value in values]
        codes.add("W201")
    tokens = [
        token if value == before else f"{word}:{_write(value)}"
        for word, token, before, value in zip(line.words, tidy.split(" "), line.values, values, strict=True)
    ]
    if rest_mass is not None and "W204" in rules and wordprobs.are_probabilities(values):
        flags = reference.distribution_flags(" ".join(tokens), 1)
        if RULES_BY_CODE["W204"].is_broken(flags) and not flags & TINY:  # a tiny number would lose digits
            total = wordprobs.sum_in_order(values)
            shares = [value * (1.0 - rest_mass) / total for value in values]
            tokens = [f"{word}:{_write(share)}" for word, share in zip(line.words, shares, strict=True) if word]
            tokens.append(f":{_write(rest_mass)}")
            codes.add("W204")
    return " ".join(tokens) if codes else text, frozenset(codes)


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
    atomically. If there is nothing to fix, or ``write`` is false, nothing is written. Bytes that are not UTF-8 are
    kept. ``rules`` are the codes of the only rules to apply; the other arguments are as for :func:`fix_line`.

    Raises UsageError for standard input, an address, a file that is not regular (also a symbolic link, which leads to
    a file that was not named), and a file that was changed meanwhile or cannot be written; UnreadableFileError or
    CorruptFileError if the file cannot be read. The file is then unchanged.
    """
    if files.format_ending(path):
        raise UsageError(f"Cannot fix {named(path)}: it is not TSV; `geval convert` writes it as TSV")
    original = rewriting.check_replaceable(path, verb="fix")
    fixes = Fixes(path, rest_mass, rules)
    if "E118" in rules:
        with LineReader(path) as reader:
            block = reader.block()
            places = separations(decode_lines(block))
            while block and b" " not in block:
                block = reader.block()
            if places and not block:  # no line has a space
                fixes.separator = places[0].token
    with LineReader(path) as reader:
        if not write:
            for _ in fixes.fix_blocks(reader):
                pass
            return fixes
        with rewriting.written_whole(
            path, compression=reader.compression, original=original, backup=backup, verb="fix"
        ) as file:
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
    the new place of the original. ``rules`` are the codes of the only rules to apply. The ``separator``, where there
    is one, separates the entries of all lines in place of a space (E118).
    """

    path: str
    rest_mass: float | None
    rules: Collection[str] = FIXABLE
    separator: str = ""
    lines: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    diff: list[tuple[int, str, str]] = field(default_factory=list)
    backup_path: str | None = None

    def fix_blocks(self, reader: LineReader) -> Iterator[bytes]:
        """Yield the blocks of a file, each with its lines fixed."""
        rules = [rule for rule in FLAG_RULES if rule.fixable]
        entry_end = re.compile(f"(:[-+.0-9eE]*[0-9]){re.escape(self.separator)}")
        for block in iter(reader.block, b""):
            if "W210" in self.rules and b"\n" not in block[:-1]:  # CRs may end the lines, alone
                block = re.sub(rb"(:[-+.0-9eE]*[0-9])\r+(?=[^\r\n])", rb"\1\r\n", block)
            lines = block.removesuffix(b"\n").split(b"\n")
            flags = backends.score_lines(block, b"\n" * len(lines), schemes.DEFAULT_BITS, 1)[1]
            suspicious = {kind for kind in {*flags} if self.separator or any(rule.is_broken(kind) for rule in rules)}
            if reader.has_byte_order_mark and not self.lines:
                lines[0] = BYTE_ORDER_MARK + lines[0]
                suspicious.add(flags[0])
            for index, (stored, kind) in enumerate(zip(lines, flags, strict=True)):
                self.lines += 1
                if kind not in suspicious:
                    continue
                line, codes = stored.decode(errors="surrogateescape"), set[str]()
                if self.lines == 1 and "W211" in self.rules and line.startswith("\ufeff"):
                    line = line.lstrip("\ufeff")  # a second one would be the mark of the new file
                    codes.add("W211")
                if self.separator and entry_end.search(line):
                    line = entry_end.sub(r"\1 ", line)
                    codes.add("E118")
                line, more = fix_line(line, rest_mass=self.rest_mass, rules=self.rules)
                codes |= more
                if codes:
                    lines[index] = line.encode(errors="surrogateescape")
                    self.changes.update(codes)
                    if len(self.diff) < DIFF_LINES:
                        before, after = (raw.decode(errors="replace") for raw in (stored, lines[index]))
                        self.diff.append((self.lines, before, after))
            yield b"\n".join(lines) + b"\n"
