"""The rules about tokens of language models that were written as words: marks, special tokens, and fragments.

Marks are those of byte-level BPE (`Ġthe`; Radford and others, "Language models are unsupervised multitask learners",
2019), of SentencePiece (`▁the`; Kudo and Richardson, 2018), of WordPiece (`##ing`; Devlin and others, "BERT", 2019),
and of subword-nmt (`th@@`; Sennrich and others, 2016), or of its kin (`the</w>`). The first lines of an output show
them, if they are there: only these are looked at, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from math import exp
from typing import TYPE_CHECKING

from geval_py.checking.places import Place
from geval_py.checking.rules import RULES_BY_CODE, Problem
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.reading.wordprobs import are_probabilities, parse_entries
from geval_py.text import shorten, visible

if TYPE_CHECKING:
    from geval_py.checking.targets import Target

SAMPLED_LINES = 1000
SPECIAL_TOKENS = (
    "<unk>", "<UNK>", "[UNK]", "<s>", "</s>", "<pad>", "<PAD>", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<mask>",
    "<bos>", "<eos>", "<|endoftext|>",
)  # fmt: skip
MIN_LINES = 5
LINE_SHARE = 0.1  # of the lines must have a mark, or repeat a word; fewer may be words of the language
KNOWN_SHARE = 0.01  # of the answers' words with a mark, which is then the language's, as Ġ is Maltese
# The share of the entries, on lines with a mark, that have it: words in Maltese begin with Ġ, but not most of them.
ENTRY_SHARES = {"Ġ": 0.2, "▁": 0.05, "##": 0.02, "@@": 0.02, "</w>": 0.05}
FRAGMENT_RATIO = 5.0  # a word's probability to that of a fragment spelt alike is mostly more
_MARKED = re.compile(r"(?:(?<=\n)|(?<= ))(##|▁|Ġ)(?=\w)|(?<=\w)(@@|</w>)(?=:[^: ]*[ \n])")
_SPECIAL = re.compile("(?:(?<=\n)|(?<= ))(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + r")(?=:[^: ]*[ \n])")


def subword_problems(target: Target, texts: Sequence[str], max_places: int) -> list[Problem]:
    """Find the marks of subwords (W219), special tokens (W220), and words with their fragments (W221).

    ``texts`` are the first lines of the output. Marks and tokens that are the language's own are no problem: the
    words of the answers, or of the training set, have them too.
    """
    marked: dict[str, list[Place]] = {mark: [] for mark in ENTRY_SHARES}
    entries = dict.fromkeys(ENTRY_SHARES, 0.0)  # on the lines with a mark, less those that would have it by its share
    special: dict[str, list[Place]] = {}
    twins: list[Place] = []  # words that stand on a line with and without their mark
    repeated: list[tuple[int, str]] = []
    for line, text in enumerate(texts, 1):
        words = [token.rpartition(":")[0] for token in text.split(" ")]
        if len(set(words)) < len(words) and ":" in text:
            repeated.append((line, text))
        if any(mark in text for mark in ENTRY_SHARES):
            matches = list(_MARKED.finditer(f"\n{text}\n"))
            for mark, count in Counter(match[1] or match[2] for match in matches).items():
                start = next(match.start() - 1 for match in matches if mark in match.groups())
                begin = text.rfind(" ", 0, start) + 1
                token = text[begin:].partition(" ")[0]
                word = visible(shorten(token.rpartition(":")[0]))
                message = f"`{word}` has the mark `{mark}` of a subword tokenizer, which is a part of the word"
                marked[mark].append(Place(line=line, column=begin + 1, token=token, message=message, text=text))
                entries[mark] += count - ENTRY_SHARES[mark] * len(words)
            others = set(words)
            twins_here = (word for word in words if (bare := _without_mark(word)) != word and bare in others)
            twin = next(twins_here, None) if matches else None
            if twin is not None:
                column, word = f" {text}".find(f" {twin}:") + 1, visible(shorten(_without_mark(twin)))
                message = f"`{visible(shorten(twin))}` and `{word}` are here: one is a word, the other a fragment"
                twins.append(Place(line=line, column=column, token=twin, message=message, text=text))
        if ">:" in text or "]:" in text:
            for match in _SPECIAL.finditer(f"\n{text}\n"):
                message = f"`{match[1]}` is a special token of a language model, and is taken for a word"
                place = Place(line=line, column=match.start(), token=match[1], message=message, text=text)
                special.setdefault(match[1], []).append(place)
    least = max(MIN_LINES, LINE_SHARE * len(texts))
    marks = [mark for mark, kept in marked.items() if len(kept) >= least and entries[mark] >= 0]
    of_language = _of_language(target, marks, special) if marks or special else set()
    marks = [mark for mark in marks if mark not in of_language]
    results: dict[str, tuple[int, list[Place]]] = {}
    if marks:
        most = max((marked[mark] for mark in marks), key=len)
        results["W219"] = len(most), most
        if len(twins) >= least:
            results["W221"] = len(twins), twins
    elif len(repeated) >= least:
        count, fragments = _fragments(repeated)
        if count >= least and fragments:
            results["W221"] = count, fragments
    tokens = sorted(
        (place for token, kept in special.items() if token not in of_language for place in kept),
        key=lambda place: (place.line, place.column),
    )
    if tokens:
        first = list({place.line: place for place in reversed(tokens)}.values())[::-1]
        results["W220"] = len(first), first
    return [
        Problem(
            rule=RULES_BY_CODE[code],
            path=target.output,
            count=count,
            share=count / len(texts),
            summary=RULES_BY_CODE[code].summary,
            places=tuple(kept[:max_places]),
        )
        for code, (count, kept) in results.items()
    ]


def _fragments(repeated: Sequence[tuple[int, str]]) -> tuple[int, list[Place]]:
    """Return how many lines repeat entries, and the places of repeated words, if one of the two may be a fragment.

    The probabilities of a word and of a fragment differ; most words are repeated by a mixture of models.
    """
    lines, is_large, kept, has_capitals = 0, 0, list[Place](), False  # without capitals, `the` may be `The`
    for line, text in repeated:
        try:
            words, values = parse_entries(text, line)
        except MalformedLineError:
            continue
        lines += 1
        if not are_probabilities(values):
            highest = max(values)
            values = [exp(value - highest) for value in values]
        by_word: dict[str, list[float]] = {}
        for word, value in zip(words, values, strict=True):
            by_word.setdefault(word, []).append(value)
        has_capitals = has_capitals or any(word != word.lower() for word in words)
        again = [word for word, masses in by_word.items() if word and len(masses) > 1]
        if again and 2 * len(again) < len(by_word) and min(by_word[again[0]]) > 0:
            word, masses = again[0], by_word[again[0]]
            is_large += max(masses) >= FRAGMENT_RATIO * min(masses)
            first = f" {text}".find(f" {word}:")
            column = f" {text}".find(f" {word}:", first + 1) + 1
            name = visible(shorten(word))
            message = f"`{name}` stands at column {first + 1} already; one of the two may be a fragment"
            kept.append(Place(line=line, column=column, token=word, message=message, text=text))
    are_fragments = has_capitals and len(kept) >= max(MIN_LINES, 0.8 * lines) and 2 * is_large >= len(kept)
    return lines, kept if are_fragments else []


def _of_language(target: Target, marks: Sequence[str], tokens: Container[str]) -> set[str]:
    """Return the marks and the tokens that the words of the answers, or of the training set, have too."""
    counts: Counter[str] = Counter()
    shared: set[str] = set()
    lines = 0
    for path in {target.training, target.expected if target.words_are_plain else None} - {None}:
        try:
            for word in read_lines(str(path), header=target.output_header):
                lines += 1
                if word in tokens:
                    shared.add(word)
                for mark in marks:
                    counts[mark] += word != mark and (word.startswith(mark) or word.endswith(mark))
        except DataError:
            continue
    return shared | {mark for mark in marks if counts[mark] > KNOWN_SHARE * lines}


def _without_mark(word: str) -> str:
    for mark in ("##", "▁", "Ġ"):
        if word.startswith(mark) and word != mark:
            return word.removeprefix(mark)
    return word.removesuffix("</w>").removesuffix("@@")
