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
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import islice
from math import inf
from operator import or_
from typing import Any

from geval_py.checking import places
from geval_py.checking.first_lines import MIN_LINES
from geval_py.checking.rules import FLAG_RULES, Place
from geval_py.checking.targets import Target
from geval_py.errors import DataError
from geval_py.reading.lines import decode_lines, is_utf8, read_lines
from geval_py.scoring import kernel
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import total
from geval_py.text import shorten, visible, words

HEAD_LINES = 2000  # of the beginning, in which what is wrong with the whole file is looked for
# Odd characters beyond ASCII, as UTF-8. The patterns begin with fixed bytes, so that the search is fast.
_ODD_BYTES = (
    re.compile(rb"\xc2[\x80-\xa0]"),
    re.compile(rb"\xe2\x80[\x87\x8b-\x8f\xa8-\xaf]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
    re.compile(rb"\xef\xbb\xbf"),
)

# Tokens of language models

SAMPLED_FOR_SUBWORDS = 1000
SPECIAL_TOKENS = words(
    "<unk> <UNK> [UNK] <s> </s> <pad> <PAD> [PAD] [CLS] [SEP] [MASK] <mask> <bos> <eos> <|endoftext|> <|im_end|> "
    '<think> <|channel|> {" ** ```'
)
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


@dataclass
class LineFindings:
    """What was found in the lines of a block and, where it is extended, of the blocks that follow.

    ``counts`` has the number of lines that break a rule, by its code, and other facts, by their names: "binary" if
    no line of the file's head is text. ``places`` holds the first ``max_places`` lines of each: number, text, and
    what is known of the place. ``texts`` are the lines of the file's head. ``loss`` is the sum of the lines that have
    an answer, in nats.
    """

    block: Block
    max_places: int
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    places: defaultdict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)
    loss: float = 0.0

    @cached_property
    def raw(self) -> list[bytes]:
        """The lines of the block as they are stored, without their line ends."""
        return bytes(self.block.outputs).split(b"\n")[: self.block.lines]

    @cached_property
    def words(self) -> list[str]:
        """The expected words of the lines that have one."""
        return decode_lines(self.block.expected)[: self.block.known]

    def text(self, index: int) -> str:
        """Return a line of the block as it is read: decoded, without carriage returns."""
        return str(self.raw[index], "utf-8", "replace").replace("\r", "")

    def begin(self, *, all_malformed: bool) -> None:
        """Count the lines of the block, keep those of the file's head, and see whether the file is text."""
        self.lines = self.block.lines
        self.texts += map(self.text, range(min(self.lines, HEAD_LINES + 1 - self.block.first_line)))
        if self.block.first_line == 1:
            self.counts["binary"] = all_malformed and b"\0" in bytes(self.block.outputs)

    def add(self, code: str, index: int, *details: Any, count: int = 1) -> None:
        """Count lines that break a rule, and keep one of them, unless there are enough."""
        self.counts[code] += count
        if len(self.places[code]) < self.max_places:
            self.places[code].append((self.block.first_line + index, self.text(index), *details))

    def extended(self, later: LineFindings) -> LineFindings:
        """Add what was found in the next lines, and return all."""
        self.lines += later.lines
        self.counts.update(later.counts)
        for code, rows in later.places.items():
            self.places[code] += rows[: self.max_places - len(self.places[code])]
        self.texts += later.texts
        self.loss += later.loss
        return self


def check_words(block: Block, target: Target, max_places: int) -> LineFindings:
    """Check lines of distributions over words."""
    findings = LineFindings(block, max_places)
    losses, flags = backends.score_lines(block.outputs, block.expected, target.bits, block.first_line)
    kinds = Counter(flags)  # the number of lines with each combination of flags
    present = reduce(or_, kinds, 0)
    findings.begin(all_malformed=all(kind & kernel.MALFORMED for kind in kinds))
    for rule in FLAG_RULES:
        if breaking := {*filter(rule.is_broken, kinds)}:
            for index in islice((index for index, kind in enumerate(flags) if kind in breaking), max_places):
                findings.add(rule.code, index, count=0)
            findings.counts[rule.code] = sum(kinds[kind] for kind in breaking)
    if target.reader is not None:
        del findings.counts["E115"]  # it tells how many buckets a vector has
        message = f"{target.reader.name} compares words: write `word:probability` entries"
        for index, kind in enumerate(flags):
            if kind & (kernel.VECTOR | kernel.WRONG_LENGTH):
                findings.add("E117", index, 1, findings.text(index).partition(" ")[0], message)
    findings.counts["spaces"] = bool(re.search(b" ", block.outputs))
    suspicious = kernel.CONTROL  # lines that may have odd characters, or bytes that are not UTF-8
    if present & kernel.NOT_ASCII and (
        not is_utf8(block.outputs) or any(pattern.search(block.outputs) for pattern in _ODD_BYTES)
    ):
        suspicious |= kernel.NOT_ASCII
    for index, kind in enumerate(flags) if present & suspicious else ():
        if kind & suspicious and not kind & kernel.MALFORMED:
            if not is_utf8(findings.raw[index]):
                findings.add("W212", index)
            if places.odd_character_in(findings.text(index)):
                findings.add("W208", index)
    if target.expected is not None and target.words_are_plain:
        findings.counts["answers"] += len(findings.words)
        findings.loss += total(losses[: len(findings.words)])
        for index, word in enumerate(findings.words) if inf in losses else ():
            if losses[index] == inf:
                message = f"the expected word `{visible(shorten(word))}` has probability 0: the loss is infinite"
                findings.add("W301", index, 1, word, message)
    return findings


# Tokens of language models, written as words


def find_subwords(target: Target, texts: Sequence[str]) -> dict[str, list[Place]]:
    """Return the places of subword marks (W219) and of special tokens (W220), one for each line that has some.

    ``texts`` are the first lines of the output. Tokens that are the language's own are no problem: words of the
    answers, or of the training set, begin or end with them.
    """
    places_of = defaultdict[str, list[Place]](list)
    for line, text in enumerate(texts, 1):
        columns = {match[0]: match.start() + 1 for match in reversed([*_TOKENS.finditer(text)])}
        for token, column in columns.items():
            message = f"`{token}` is {MARK if token in MARKS else SPECIAL}"
            places_of[token].append(Place(line, column, token, message, text))
    least = dict.fromkeys(MARKS, max(MIN_LINES, LINE_SHARE * len(texts)))
    least |= dict.fromkeys(STAND_INS, len(texts) // 2 + 1)
    frequent = [token for token, places in places_of.items() if len(places) >= least.get(token, 1)]
    counts: Counter[str] = Counter()
    lines = 0
    files = (target.training, target.expected if target.words_are_plain else None)
    for file in filter(None, files) if frequent else ():
        with suppress(DataError):
            for word in read_lines(file, header=target.header):
                lines += 1
                counts.update(token for token in frequent if word.startswith(token) or word.endswith(token))
    firsts = defaultdict[str, dict[int, Place]](dict)  # by the rule and the line
    for place in sorted(place for token in frequent for place in places_of[token]):
        is_mark = place.token in MARKS
        if counts[place.token] <= is_mark * KNOWN_SHARE * lines:
            firsts["W219" if is_mark else "W220"].setdefault(place.line, place)
    return {code: [*places.values()] for code, places in firsts.items()}
