"""What the rules find in blocks of lines of word gaps: counts, and the lines of the first places.

Most rules are patterns of the kernel's flags, so that lines are counted without being parsed. A line is parsed in
Python only to find the place of a problem, or odd characters.

At the end stand the rules about tokens of language models that were written as words. Marks
are those of byte-level BPE (`Ġthe`; Radford and others, "Language models are unsupervised multitask learners", 2019),
of SentencePiece (`▁the`; Kudo and Richardson, 2018), of WordPiece (`##ing`; Devlin and others, "BERT", 2019), and of
subword-nmt (`th@@`; Sennrich and others, 2016), or of its kin (`the</w>`). The first lines of an output show them, if
they are there: only these are looked at, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from math import fsum, inf
from typing import Any

from geval_py.checking import places
from geval_py.checking.order import MIN_LINES
from geval_py.checking.rules import FLAG_RULES, Place
from geval_py.checking.targets import Target
from geval_py.errors import DataError
from geval_py.reading.lines import decode_lines, is_utf8, read_lines
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring import kernel
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends
from geval_py.text import shorten, visible

# Lines that do not show whether their author writes probabilities or logarithms; a vector always holds logarithms.
NO_CHOICE_OF_SCALE = (
    kernel.MALFORMED
    | kernel.ALL_ZERO
    | kernel.LOOKS_LIKE_PROBABILITIES
    | kernel.FAR_ABOVE_ONE
    | kernel.REST_ALONE
    | kernel.VECTOR
)
HEAD_LINES = 2000  # of the beginning, in which what is wrong with the whole file is looked for
# Odd characters beyond ASCII, as UTF-8. The patterns begin with fixed bytes, so that the search is fast.
_ODD_BYTES = (
    re.compile(rb"\xc2[\x80-\xa0]"),
    re.compile(rb"\xe2\x80[\x87\x8b-\x8f\xa8-\xaf]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
    re.compile(rb"\xef\xbb\xbf"),
)
_SPACE = re.compile(b" ")

# Tokens of language models

SAMPLED_LINES = 1000
SPECIAL_TOKENS = (
    "<unk>", "<UNK>", "[UNK]", "<s>", "</s>", "<pad>", "<PAD>", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<mask>",
    "<bos>", "<eos>", "<|endoftext|>", "<|im_end|>", "<think>", "<|channel|>", '{"', "**", "```",
)  # fmt: skip
STAND_INS = ("OTHER", "<other>", "<rest>", "*")  # for the rest, if most lines have one
LINE_SHARE = 0.1  # of the lines must have a mark; fewer may be words of the language
KNOWN_SHARE = 0.01  # of the answers' words with a mark, which is then the language's, as Ġ is Maltese
MARKS = ("Ġ", "▁", "##", "@@", "</w>")
MARK = "a mark of a subword tokenizer, and is taken for a part of the word"
SPECIAL = "a special token or markup of a language model, and is taken for a word"
_END = r"(?=:[^: ]*(?: |$))"  # of a word
_TOKENS = re.compile(
    rf"(?:^|(?<= ))(?:(?:##|▁|Ġ)(?=\w)|(?:{'|'.join(map(re.escape, SPECIAL_TOKENS + STAND_INS))}){_END})"
    rf"|(?<=\w)(?:@@|</w>){_END}"
)


@dataclass(slots=True)
class LineFindings:
    """What was found in some consecutive lines.

    ``counts`` has the number of lines that break a rule, by its code, and other facts, by their names: "binary" if
    no line of the file's head is text, and the lines of "probabilities" and of "logarithms", whose first lines have
    the numbers in ``firsts``. ``places`` holds the first ``max_places`` places of each rule. ``texts`` are the lines
    of the file's head. ``loss`` is the sum of the lines that have an answer, in nats. ``bits`` are those of the
    buckets, ``before`` are the places in the lines before, which need no more.
    """

    max_places: int
    bits: int = DEFAULT_BITS
    before: Mapping[str, Sized] = field(default_factory=dict)
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[Place]] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    loss: float = 0.0

    def add(self, code: str, lines: BlockLines, index: int, *details: Any) -> None:
        """Count a line that breaks a rule, and keep its place, if it is wanted."""
        self.counts[code] += 1
        self.keep(code, lines, index, *details)

    def keep(self, code: str, lines: BlockLines, index: int, *details: Any) -> None:
        """Keep a line as a place of a rule, unless there are enough."""
        kept = self.places.setdefault(code, [])
        if len(kept) + len(self.before.get(code, ())) < self.max_places:
            line = lines.block.first_line + index
            kept.append(places.place_of(code, lines.text(index), line, *details, bits=self.bits))

    def extend(self, later: LineFindings) -> None:
        """Add what was found in the next lines."""
        self.lines += later.lines
        self.counts.update(later.counts)
        for code, kept in later.places.items():
            mine = self.places.setdefault(code, [])
            mine += kept[: self.max_places - len(mine)]
        self.firsts = later.firsts | self.firsts
        self.texts += later.texts
        self.loss += later.loss


@dataclass
class BlockLines:
    """The lines of a block, which are split and decoded only when one is needed; places count from 0."""

    block: Block

    @cached_property
    def raw(self) -> list[bytes]:
        """The lines as they are stored, without their line ends."""
        return bytes(self.block.outputs).split(b"\n")[: self.block.lines]

    @cached_property
    def words(self) -> list[str]:
        """The expected words of the lines that have one."""
        return decode_lines(self.block.expected)[: self.block.known]

    def text(self, index: int) -> str:
        """Return a line as it is read: decoded, without carriage returns."""
        return str(self.raw[index], "utf-8", "replace").replace("\r", "")


def begin_block(lines: BlockLines, findings: LineFindings, *, all_malformed: bool) -> None:
    """Count the lines of a block, keep those of the file's head, and see whether the file is text."""
    block = lines.block
    findings.lines += block.lines
    findings.texts += map(lines.text, range(min(block.lines, HEAD_LINES + 1 - block.first_line)))
    if block.first_line == 1:
        findings.counts["binary"] = all_malformed and b"\0" in bytes(block.outputs)


def check_words(block: Block, target: Target, total: LineFindings) -> LineFindings:
    """Check lines of distributions over words; ``total`` is what was found in lines before them."""
    findings = LineFindings(total.max_places, target.bits, total.places)
    losses, flags = backends.score_lines(block.outputs, block.expected, target.bits, block.first_line)
    kinds = Counter(flags)  # the number of lines with each combination of flags
    present = 0
    for kind in kinds:
        present |= kind
    lines = BlockLines(block)
    begin_block(lines, findings, all_malformed=all(kind & kernel.MALFORMED for kind in kinds))
    for kind, count in kinds.items():
        if not kind & NO_CHOICE_OF_SCALE:
            scale = "logarithms" if kind & kernel.LOGARITHMS else "probabilities"
            findings.counts[scale] += count
            findings.firsts.setdefault(scale, block.first_line + flags.index(kind))  # kinds are in this order
    for rule in FLAG_RULES:
        breaking = {*filter(rule.is_broken, kinds)}
        if breaking:
            findings.counts[rule.code] += sum(kinds[kind] for kind in breaking)
            indices = (index for index, kind in enumerate(flags) if kind in breaking)
            for index in islice(indices, total.max_places):
                findings.keep(rule.code, lines, index)
    if target.reader is not None and present & kernel.VECTOR:
        for index in _with_flag(flags, kernel.VECTOR):
            message = f"{target.reader.name} compares words, which a vector of buckets does not have; "
            message += "write `word:probability` entries"
            findings.add("E117", lines, index, 1, lines.text(index).partition(" ")[0], message)
    if _SPACE.search(block.outputs):
        findings.counts["spaces"] = 1
    elif present & kernel.SEPARATOR:  # perhaps TABs separate the entries of all lines
        for index in _with_flag(flags, kernel.SEPARATOR):
            if b"\t" in lines.raw[index]:
                findings.add("E118", lines, index)
            else:
                findings.counts["separators"] += 1
    suspicious = present & kernel.CONTROL  # lines that may have odd characters, or bytes that are not UTF-8
    if present & kernel.NOT_ASCII and (
        not is_utf8(block.outputs) or any(pattern.search(block.outputs) for pattern in _ODD_BYTES)
    ):
        suspicious |= kernel.NOT_ASCII
    for index in _with_flag(flags, suspicious) if suspicious else ():
        if not flags[index] & kernel.MALFORMED:
            if not is_utf8(lines.raw[index]):
                findings.add("W212", lines, index)
            if places.odd_character_in(lines.text(index)):
                findings.add("W208", lines, index)
    if target.expected is not None and target.words_are_plain:
        findings.counts["answers"] += len(lines.words)
        findings.loss += fsum(losses[: len(lines.words)])
        for index, word in enumerate(lines.words) if inf in losses else ():
            if losses[index] == inf:
                message = f"the expected word `{visible(shorten(word))}` has probability 0: the loss is infinite"
                findings.add("W301", lines, index, 1, word, message)
    return findings


def _with_flag(flags: Sequence[int], flag: int) -> list[int]:
    return [index for index, kind in enumerate(flags) if kind & flag]


# Tokens of language models, written as words


def find_subwords(target: Target, texts: Sequence[str]) -> dict[str, list[Place]]:
    """Return the places of subword marks (W219) and of special tokens (W220), one for each line that has some.

    ``texts`` are the first lines of the output. Tokens that are the language's own are no problem: words of the
    answers, or of the training set, begin or end with them.
    """
    places_of: dict[str, list[Place]] = {}
    for line, text in enumerate(texts, 1):
        columns = {match[0]: match.start() + 1 for match in reversed([*_TOKENS.finditer(text)])}
        for token, column in columns.items():
            message = f"`{token}` is {MARK if token in MARKS else SPECIAL}"
            places_of.setdefault(token, []).append(Place(line, column, token, message, text))
    least = dict.fromkeys(MARKS, max(MIN_LINES, LINE_SHARE * len(texts))) | dict.fromkeys(
        STAND_INS, len(texts) // 2 + 1
    )
    frequent = {token for token, places in places_of.items() if len(places) >= least.get(token, 1)}
    counts: Counter[str] = Counter()
    lines = 0
    files = (target.training, target.expected if target.words_are_plain else None)
    for file in filter(None, files) if frequent else ():
        with suppress(DataError):
            for word in read_lines(file, header=target.header):
                lines += 1
                counts.update(token for token in frequent if word.startswith(token) or word.endswith(token))
    firsts: dict[tuple[str, int], Place] = {}  # by the rule and the line
    for place in sorted(chain.from_iterable(map(places_of.__getitem__, frequent)), reverse=True):
        is_mark = place.token in MARKS
        if counts[place.token] <= is_mark * KNOWN_SHARE * lines:
            firsts["W219" if is_mark else "W220", place.line] = place
    return {code: sorted(place for (rule, _), place in firsts.items() if rule == code) for code in ("W219", "W220")}
