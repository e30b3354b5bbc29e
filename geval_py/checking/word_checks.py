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
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import exp, fsum, inf, isclose
from typing import Any

from geval_py.checking import places
from geval_py.checking.rules import FLAG_RULES, Place
from geval_py.checking.targets import Target
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import decode_lines, is_utf8, read_lines
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.reading.wordprobs import REST, are_probabilities, parse_line
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

SAMPLED_FOR_UNITS = 20  # lines
ROUNDING = 0.005  # of the total of a line whose numbers have three digits or more

# Tokens of language models

SAMPLED_LINES = 1000
SPECIAL_TOKENS = (
    "<unk>", "<UNK>", "[UNK]", "<s>", "</s>", "<pad>", "<PAD>", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<mask>",
    "<bos>", "<eos>", "<|endoftext|>", "<|im_end|>", "<think>", "<|channel|>", '{"', "**", "```",
)  # fmt: skip
STAND_INS = ("OTHER", "<other>", "<rest>", "*")  # for the rest, if most lines have one
MIN_LINES = 5
LINE_SHARE = 0.1  # of the lines must have a mark; fewer may be words of the language
KNOWN_SHARE = 0.01  # of the answers' words with a mark, which is then the language's, as Ġ is Maltese
MARKS = ("Ġ", "▁", "##", "@@", "</w>")
_MARKED = re.compile(r"(?:(?<=\n)|(?<= ))(?:##|▁|Ġ)(?=\w)|(?<=\w)(?:@@|</w>)(?=:[^: ]*[ \n])")
_SPECIAL = re.compile(
    "(?:(?<=\n)|(?<= ))(" + "|".join(map(re.escape, SPECIAL_TOKENS + STAND_INS)) + r")(?=:[^: ]*[ \n])"
)


@dataclass(slots=True)
class LineFindings:
    """What was found in some consecutive lines.

    ``counts`` has the number of lines that break a rule, by its code, and other facts, by their names: "binary" if
    no line of the file's head is text, and the lines of "probabilities" and of "logarithms", whose first lines have
    the numbers in ``firsts``. ``places`` holds the first ``max_places`` lines: number, text, and what else the rule's
    function of places takes. ``texts`` are the lines of the file's head; ``advice`` is that on the numbers of the
    lines that are the places of E119. ``loss`` is the sum of the lines that have an answer, in nats. ``bits`` are
    those of the buckets.
    """

    max_places: int
    bits: int = DEFAULT_BITS
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[tuple[Any, ...] | Place]] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    advice: Counter[str] = field(default_factory=Counter)
    loss: float = 0.0

    def add(self, name: str, lines: BlockLines, index: int, *more: object, count: int = 1, code: str = "") -> None:
        """Count lines by the code of a rule, or another name; keep one as a place of the rule, if one is wanted."""
        self.counts[name] += count
        kept = self.places.setdefault(name, [])
        if len(kept) < self.max_places:
            text, line = lines.text(index), lines.block.first_line + index
            is_long = len(text) > places.MAX_LINE
            place = (line, text, *more)
            kept.append(places.place_of(code or name, text, line, *more, bits=self.bits) if is_long else place)

    def extend(self, later: LineFindings) -> None:
        """Add what was found in the next lines."""
        self.lines += later.lines
        self.counts.update(later.counts)
        for code, kept in later.places.items():
            mine = self.places.setdefault(code, [])
            mine += kept[: self.max_places - len(mine)]
        self.firsts = later.firsts | self.firsts
        self.texts += later.texts
        self.advice.update(later.advice)
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


def check_words(block: Block, target: Target, max_places: int) -> LineFindings:
    """Check lines of distributions over words."""
    findings = LineFindings(max_places, target.bits)
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
            for index in islice(indices, max_places - len(findings.places.get(rule.code, ()))):
                if rule.code == "E119":
                    place, advice = places.place_of_numbers(lines.text(index), block.first_line + index)
                    findings.places.setdefault("E119", []).append(place)
                    findings.advice[advice] += 1
                else:
                    findings.add(rule.code, lines, index, count=0)
    findings.counts["vectors"] = bool(present & kernel.VECTOR)
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
        _check_answers(losses, lines, findings)
    return findings


def words_of(text: str) -> list[str]:
    """Return the words of a line's entries: what is before the last colon of each."""
    return [token.rpartition(":")[0] for token in text.split(" ")]


def _with_flag(flags: Sequence[int], flag: int) -> list[int]:
    return [index for index, kind in enumerate(flags) if kind & flag]


def _check_answers(losses: Sequence[float], lines: BlockLines, findings: LineFindings) -> None:
    """Sum up the losses, and find expected words without mass (W301)."""
    findings.counts["answers"] += len(lines.words)
    findings.loss += fsum(losses[: len(lines.words)])
    if inf in losses:
        for index, word in enumerate(lines.words):
            if losses[index] == inf:
                findings.add("W301", lines, index, word)


# Numbers in another unit


def find_units(texts: Sequence[str]) -> Counter[str]:
    """Count the vectors and the lines with a rest that look like logarithms to base 2, and the lines like 1 - p."""
    units: Counter[str] = Counter()
    for line, text in enumerate(texts, 1):
        try:
            parsed = parse_line(text, line)
        except MalformedLineError:
            continue
        words, values = parsed.words, parsed.values
        is_whole = words is None or REST in words
        if words is not None and are_probabilities(values):
            units["complements"] += len(words) > 2 and isclose(fsum(values), len(words) - 1, abs_tol=ROUNDING)
        elif is_whole and max(values) <= 0.0 and not isclose(fsum(map(exp, values)), 1.0, abs_tol=ROUNDING):
            units["bits"] += isclose(fsum(2.0**value for value in values), 1.0, abs_tol=ROUNDING)
    return units


# Tokens of language models, written as words


def find_subwords(target: Target, texts: Sequence[str]) -> dict[str, list[Place]]:
    """Return the places of subword marks (W219) and of special tokens (W220), one for each line that has some.

    ``texts`` are the first lines of the output. Marks and tokens that are the language's own are no problem: the
    words of the answers, or of the training set, have them too.
    """
    marked: dict[str, list[Place]] = {mark: [] for mark in MARKS}
    special: list[Place] = []
    for line, text in enumerate(texts, 1):
        if any(mark in text for mark in MARKS):
            matches = [*_MARKED.finditer(f"\n{text}\n")]
            for mark, start in {match[0]: match.start() - 1 for match in reversed(matches)}.items():
                begin = text.rfind(" ", 0, start) + 1
                token = text[begin:].partition(" ")[0]
                word = visible(shorten(token.rpartition(":")[0]))
                message = f"`{word}` has the mark `{mark}` of a subword tokenizer, which is a part of the word"
                marked[mark].append(Place(line, begin + 1, token, message, text))
        if re.search(r"[]>*`\"R]:", text):
            for match in _SPECIAL.finditer(f"\n{text}\n"):
                message = f"`{match[1]}` is a special token or markup of a language model, and is taken for a word"
                special.append(Place(line, match.start(), match[1], message, text))
    uses = Counter(place.token for place in special)
    special = [place for place in special if place.token not in STAND_INS or 2 * uses[place.token] > len(texts)]
    least = max(MIN_LINES, LINE_SHARE * len(texts))
    marks = [mark for mark, kept in marked.items() if len(kept) >= least]
    tokens = {place.token for place in special}
    of_language = _of_language(target, marks, tokens) if marks or tokens else set()
    marks = [mark for mark in marks if mark not in of_language]
    results: dict[str, list[Place]] = {}
    if marks:
        results["W219"] = max((marked[mark] for mark in marks), key=len)
    firsts = {place.line: place for place in reversed(special) if place.token not in of_language}
    if firsts:
        results["W220"] = list(reversed(firsts.values()))
    return results


def _of_language(target: Target, marks: Sequence[str], tokens: Container[str]) -> set[str]:
    """Return the marks and the tokens that the words of the answers, or of the training set, have too."""
    counts: Counter[str] = Counter()
    shared: set[str] = set()
    lines = 0
    for file in filter(None, (target.training, target.expected if target.words_are_plain else None)):
        try:
            for word in read_lines(file, header=target.output_header):
                lines += 1
                if word in tokens:
                    shared.add(word)
                for mark in marks:
                    counts[mark] += word != mark and (word.startswith(mark) or word.endswith(mark))
        except DataError:
            continue
    return shared | {mark for mark in marks if counts[mark] > KNOWN_SHARE * lines}
