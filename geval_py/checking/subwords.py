"""The rules about tokens of language models that were written as words: marks, special tokens, and fragments.

Marks are those of byte-level BPE (`Ġthe`; Radford and others, "Language models are unsupervised multitask learners",
2019), of SentencePiece (`▁the`; Kudo and Richardson, 2018), of WordPiece (`##ing`; Devlin and others, "BERT", 2019),
and of subword-nmt (`th@@`; Sennrich and others, 2016), or of its kin (`the</w>`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import exp

from geval_py.checking import rules, targets
from geval_py.checking.findings import Findings, FlaggedBlock
from geval_py.errors import DataError
from geval_py.reading.lines import read_lines
from geval_py.reading.wordprobs import are_probabilities, parse_entries
from geval_py.scoring import kernel
from geval_py.text import shorten, visible
from geval_py.values import NamedTuple

SPECIAL_TOKENS = (
    "<unk>", "<UNK>", "[UNK]", "<s>", "</s>", "<pad>", "<PAD>", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<mask>",
    "<bos>", "<eos>", "<|endoftext|>",
)  # fmt: skip
FEW_LINES = 5
LINE_SHARE = 0.1  # of the lines must have a mark, or repeat a word; fewer may be words of the language
KNOWN_SHARE = 0.01  # of the answers' words with a mark, which is then the language's, as Ġ is Maltese
# The share of the entries, on lines with a mark, that have it: words in Maltese begin with Ġ, but not most of them.
ENTRY_SHARES = {"Ġ": 0.2, "▁": 0.05, "##": 0.02, "@@": 0.02, "</w>": 0.05}
MOST_PARSED = 1000  # lines with a repeated word, which are parsed to find fragments
FRAGMENT_RATIO = 5.0  # a word's probability to that of a fragment spelt alike is mostly more
_MARKED = r"(?:(?<=\n)|(?<= ))(##|▁|Ġ)(?=\w)|(?<=\w)(@@|</w>)(?=:[^: ]*[ \n])"
_MARKS = tuple(mark.encode() for mark in ENTRY_SHARES)
_ASCII_MARKS = tuple(mark for mark in _MARKS if mark.isascii())
_SPECIAL = "(?:(?<=\n)|(?<= ))(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + r")(?=:[^: ]*[ \n])"
_ENDS_OF_SPECIAL = (b">:", b"]:")
Placer = Callable[[], rules.Place]


class Repetition(NamedTuple):
    """A line that repeats words: the ratio of the first one's probabilities, if only a few words are repeated."""

    ratio: float | None
    has_capitals: bool
    place: Placer


class SubwordRules:
    """The rules of an output of word gaps about the tokens of language models (W219, W220, W221)."""

    def __init__(self, target: targets.Target, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self._lines = 0
        self._marked: Counter[str] = Counter()  # lines, by mark
        self._marked_entries: Counter[str] = Counter()
        self._entries: Counter[str] = Counter()  # on the lines with the mark
        self._special: Counter[frozenset[str]] = Counter()  # lines, by their special tokens
        self._twins = 0  # lines with a word that stands there with and without its mark
        self._repeating = 0
        self._parsed: list[Repetition] = []  # the first lines that repeat words
        self._places: dict[str, list[Placer]] = {}  # by mark or token, or by rule

    def for_later_lines(self, findings: Findings) -> SubwordRules:
        """Return the same rules for later lines."""
        return SubwordRules(self._target, findings)

    def extend(self, later: SubwordRules) -> None:
        """Add what the next lines have."""
        self._lines += later._lines
        self._marked += later._marked
        self._marked_entries += later._marked_entries
        self._entries += later._entries
        self._special += later._special
        self._twins += later._twins
        self._repeating += later._repeating
        self._parsed += later._parsed[: MOST_PARSED - len(self._parsed)]
        for name, found in later._places.items():
            self._places.setdefault(name, []).extend(found)

    def check(self, block: FlaggedBlock) -> None:
        """Check the lines of a block; most blocks are only searched for a few bytes."""
        self._lines += block.block.lines
        data = bytes(block.block.outputs)
        marks = _MARKS if block.has(kernel.NOT_ASCII) else _ASCII_MARKS
        for index in _lines_with(marks, data):
            self._check_marks(block.text(index), block.number(index))
        for index in _lines_with(_ENDS_OF_SPECIAL, data):
            self._check_special(block.text(index), block.number(index))
        if block.has(kernel.REPEATED):
            self._check_repeated(block)

    def _check_marks(self, text: str, line: int) -> None:
        matches = list(re.finditer(_MARKED, f"\n{text}\n"))
        found = Counter(match[1] or match[2] for match in matches)
        tokens = text.split(" ")
        for mark, entries in found.items():
            self._marked[mark] += 1
            self._marked_entries[mark] += entries
            self._entries[mark] += len(tokens)
            self._keep(mark, "W219", partial(_marked_place, text, line, mark))
        words = {token.rpartition(":")[0] for token in tokens} if found else set()
        twin = next((word for word in words if _without_mark(word) in words - {word}), None)
        if twin is not None:
            self._twins += 1
            self._keep("twins", "W221", partial(_twin_place, text, line, twin))

    def _check_special(self, text: str, line: int) -> None:
        found = [(match.start(), match[1]) for match in re.finditer(_SPECIAL, f"\n{text}\n")]
        if found:
            self._special[frozenset(token for _, token in found)] += 1
        for start, token in found:
            message = f"`{token}` is a special token of a language model, and is taken for a word"
            place = rules.Place(line=line, column=start, token=token, message=message, text=text)
            self._keep(token, "W220", partial(_same, place))

    def _check_repeated(self, block: FlaggedBlock) -> None:
        for index, flags in enumerate(block.flags):
            if not flags & kernel.REPEATED:
                continue
            self._repeating += 1
            if len(self._parsed) < MOST_PARSED:
                self._parsed.append(_repetition(block.text(index), block.number(index)))

    def _keep(self, name: str, code: str, place: Placer) -> None:
        found = self._places.setdefault(name, [])
        if len(found) < self._findings.most_places(code):
            found.append(place)

    def finish(self) -> None:
        """Report the marks and tokens that are not the language's own, when all lines were checked."""
        least = max(FEW_LINES, LINE_SHARE * self._lines)
        marks = [
            mark
            for mark, lines in self._marked.items()
            if lines >= least and self._marked_entries[mark] >= ENTRY_SHARES[mark] * self._entries[mark]
        ]
        tokens = frozenset().union(*self._special)
        if marks or tokens:
            of_language, words = self._known(marks, tokens)
            marks = [mark for mark in marks if mark not in of_language]
            tokens -= words
        if marks:
            mark = max(marks, key=self._marked.__getitem__)
            self._report("W219", self._marked[mark], self._places[mark])
            if self._twins >= least:
                self._report("W221", self._twins, self._places["twins"])
        if tokens:
            lines = sum(count for found, count in self._special.items() if found & tokens)
            found_at = sorted(
                (place() for token in tokens for place in self._places[token]), key=lambda at: (at.line, at.column)
            )
            first = {at.line: partial(_same, at) for at in reversed(found_at)}
            self._report("W220", lines, [first[line] for line in sorted(first)])
        ratios = [(found.ratio, found.place) for found in self._parsed if found.ratio is not None]
        are_few = len(ratios) >= max(FEW_LINES, 0.8 * len(self._parsed))
        has_capitals = any(found.has_capitals for found in self._parsed)  # without, `the` may be `The`
        may_be_fragments = not marks and self._repeating >= least and are_few and has_capitals
        if may_be_fragments:
            from statistics import median

            if median(ratio for ratio, _ in ratios) >= FRAGMENT_RATIO:
                self._report("W221", self._repeating, [place for _, place in ratios])

    def _report(self, code: str, lines: int, places: Sequence[Placer]) -> None:
        self._findings.count(code, lines)
        for place in places:
            self._findings.add_place(code, place)

    def _known(self, marks: Sequence[str], tokens: frozenset[str]) -> tuple[set[str], set[str]]:
        """Return the marks and the tokens that the words of the answers, or of the training set, have too."""
        found: Counter[str] = Counter()
        lines = 0
        paths = {self._target.training, self._target.expected if self._target.words_are_plain else None} - {None}
        for path in paths:
            try:
                for word in read_lines(str(path), header=self._target.output_header):
                    lines += 1
                    if word in tokens:
                        found[word] += 1
                    for mark in marks:
                        found[mark] += word != mark and (word.startswith(mark) or word.endswith(mark))
            except DataError:
                continue
        return {mark for mark in marks if found[mark] > KNOWN_SHARE * lines}, {one for one in tokens if found[one]}


def _lines_with(needles: Sequence[bytes], data: bytes) -> list[int]:
    """Return the lines that have one of the needles, by their numbers from 0, in order."""
    found: set[int] = set()
    for needle in needles:
        line = begin = 0
        while (place := data.find(needle, begin)) >= 0:
            line += data.count(b"\n", begin, place)
            found.add(line)
            begin = data.find(b"\n", place)
            if begin < 0:
                break
    return sorted(found)


def _repetition(text: str, line: int) -> Repetition:
    """Compare the probabilities of repeated words; most words are repeated by a mixture of models."""
    words, values = parse_entries(text, line)
    if not are_probabilities(values):
        highest = max(values)
        values = [exp(value - highest) for value in values]
    by_word: dict[str, list[float]] = {}
    for word, value in zip(words, values, strict=True):
        by_word.setdefault(word, []).append(value)
    repeated = {word: sorted(of) for word, of in by_word.items() if word and len(of) > 1}
    has_capitals = any(word != word.lower() for word in words)
    word, (least, *_, most) = next(iter(repeated.items()), ("", [0.0, 0.0]))
    ratio = most / least if least > 0 and 2 * len(repeated) < len(by_word) else None
    return Repetition(ratio, has_capitals, partial(_repeated_place, text, line, word))


def _without_mark(word: str) -> str:
    for mark in ("##", "▁", "Ġ"):
        if word.startswith(mark) and word != mark:
            return word.removeprefix(mark)
    return word.removesuffix("</w>").removesuffix("@@")


def _same(place: rules.Place) -> rules.Place:
    return place


def _token_at(text: str, start: int) -> tuple[int, str]:
    """Return the column of the token around a place, and the token."""
    begin = text.rfind(" ", 0, start) + 1
    return begin + 1, text[begin:].partition(" ")[0]


def _marked_place(text: str, line: int, mark: str) -> rules.Place:
    starts = (match.start() - 1 for match in re.finditer(_MARKED, f"\n{text}\n") if mark in match.groups())
    column, token = _token_at(text, next(starts))
    word = visible(shorten(token.rpartition(":")[0]))
    message = f"`{word}` has the mark `{mark}` of a subword tokenizer, which is a part of the word"
    return rules.Place(line=line, column=column, token=token, message=message, text=text)


def _twin_place(text: str, line: int, twin: str) -> rules.Place:
    column = f" {text}".find(f" {twin}:") + 1
    word = visible(shorten(_without_mark(twin)))
    message = f"`{visible(shorten(twin))}` and `{word}` are here: one is a word, the other a fragment"
    return rules.Place(line=line, column=column, token=twin, message=message, text=text)


def _repeated_place(text: str, line: int, word: str) -> rules.Place:
    first = f" {text}".find(f" {word}:")
    column = f" {text}".find(f" {word}:", first + 1) + 1
    message = f"`{visible(shorten(word))}` stands at column {first + 1} already; one of the two may be a fragment"
    return rules.Place(line=line, column=column, token=word, message=message, text=text)
