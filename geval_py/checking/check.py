"""Check outputs: read each once, let threads check its blocks, and sum up what they found."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from geval_py.checking import word_checks
from geval_py.checking.places import place_of
from geval_py.checking.rules import (
    COUNTED,
    READ_FORMATS,
    RULES,
    RULES_BY_CODE,
    UNREADABLE,
    Place,
    Problem,
    Report,
    Uncounted,
    file_problem,
    select_rules,
)
from geval_py.checking.targets import CANNOT_BE_READ, Target, find_targets
from geval_py.checking.word_checks import Findings, check_words
from geval_py.errors import (
    CorruptFileError,
    DataError,
    MissingPackageError,
    TooLargeError,
    UnreadableFileError,
    UnsupportedEncodingError,
)
from geval_py.reading import files, lines, wordprobs
from geval_py.reading.challenge import sets_of_length
from geval_py.reading.outputs import output_at
from geval_py.scoring.blocks import Progress, ProgressOf, map_blocks, no_progress
from geval_py.tables.numbers import counted
from geval_py.text import named, nearest, shorten, visible

DEFAULT_MAX_PLACES = 20
CASE_SHARE = 0.05  # of the lines: a model that is not lower-cased breaks W302 on fewer
NO_METRIC = (
    "no line is a guess of a word gap; if the challenge is of another task, add --metric NAME, or name the folder of "
    "its config.txt with --challenge"
)
FIX_NO_METRIC = "Run it in the folder of config.txt, or add --challenge DIR or --metric NAME. For word gaps:"
MAX_INPUT_BYTES = 1 << 26  # of in.tsv, in which the cause of a wrong number of lines is looked for
MIN_LINES_FOR_LABELS = 10  # on fewer lines, no label may be right by chance


def check(
    path: str | os.PathLike[str] = ".",
    *,
    challenge: str | os.PathLike[str] | None = None,
    tests: Sequence[str] = (),
    metrics: Sequence[str] = (),
    rules: Iterable[str] | None = None,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> Report:
    """Find the problems of a submission; ``path`` is an output, a test set's folder, or the submission's folder.

    ``challenge`` is the folder with the answers, inputs and headers (by default the submission's); ``tests`` are the
    names of the only test sets to check; ``metrics`` replace the challenge's; ``rules`` are the codes or names of the
    only rules; rules about unreadable files always apply. ``max_places`` places are kept of each rule and output
    (0: all). A compressed output that unpacks to more than ``max_bytes`` is a problem. ``progress`` is called after
    each block with the number of bytes read of one output, and its size.

    No output makes this fail. Raises UsageError for an unknown rule, for a folder that is no challenge, and as
    ``find_targets``.
    """
    tests = (tests,) if isinstance(tests, str) else tests
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    rules = (rules,) if isinstance(rules, str) else rules
    return check_targets(
        find_targets([os.fspath(path)], None if challenge is None else os.fspath(challenge), tests, metrics),
        select_rules(rules),
        max_places=max_places,
        max_bytes=max_bytes,
        keep_going=True,
        progress_of=lambda _: nullcontext(progress),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
    keep_going: bool = False,
) -> Report:
    """Check outputs with the rules of some codes; report missing outputs too.

    ``progress_of(path)`` returns a context manager with the function that is called after each block of that output.
    Files of a test set that cannot be read are left out. ``keep_going``: an output that needs a package which is
    missing here is a problem, not a MissingPackageError. The other arguments are those of :func:`check_output`.
    """
    files: list[str] = []
    problems: list[Problem] = []
    unreadable: list[DataError] = []
    uncounted: list[Uncounted] = []
    notes: list[str] = []
    for target in targets:
        if isinstance(target, Problem):
            files.append(target.path)
            problems += [target] if target.rule.code in rules else []
            continue
        files.append(target.output)
        of_output: list[Problem] | None = None
        with progress_of(target.output) as progress:
            while of_output is None:
                try:
                    of_output = check_output(
                        target, rules, max_places=max_places, max_bytes=max_bytes, progress=progress
                    )
                except MissingPackageError as error:
                    if not keep_going:
                        raise
                    of_output = [_unreadable(target.output, str(error))]
                except DataError as error:  # of a file of the test set, which is left out
                    expected, inputs = (
                        None if file is not None and file.name == error.path else file
                        for file in (target.expected, target.input)
                    )
                    if (expected, inputs) == (target.expected, target.input):
                        raise
                    target = target._replace(
                        expected=expected,
                        input=inputs,
                        without_count=CANNOT_BE_READ,
                        unreadable=(*target.unreadable, error),
                    )
        problems += of_output
        notes += [*target.notes, *(f"{named(target.output)}: {note}" for note in target.file.notes)]
        unreadable += target.unreadable
        is_counted = target.expected is not None or target.input is not None or COUNTED.isdisjoint(rules)
        if not is_counted and not any(problem.rule.code in {*UNREADABLE, "E102"} for problem in of_output):
            uncounted.append(Uncounted(target.output, target.without_count))
    return Report(
        files=tuple(files),
        problems=tuple(problems),
        unreadable=tuple(unreadable),
        uncounted=tuple(uncounted),
        notes=tuple(dict.fromkeys(notes)),
        strict=strict,
    )


def _unreadable(path: str, reason: str) -> Problem:
    message = f"the output cannot be read: {visible(reason)}"
    return file_problem(RULES_BY_CODE["E101"], path, message, fix=READ_FORMATS)


def unreadable_output(path: str, max_bytes: int = lines.DEFAULT_MAX_BYTES) -> Problem | None:
    """Return the problem of an output that is not text, or cannot be read to its end; None if there is none."""
    try:
        problems = check_output(Target(output_at(path).file), UNREADABLE, max_places=1, max_bytes=max_bytes)
    except MissingPackageError as error:
        return _unreadable(path, str(error))
    return problems[0] if problems else None


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> list[Problem]:
    """Check one output with the rules of some codes; return the problems in the order of the table of rules.

    An output that cannot be read is a problem, not an error. Raises DataError only for the test set's own files
    (expected, input).
    """
    codes = frozenset(rules) - target.pointless
    total = Findings(max_places or 1 << 62)
    work: Any = partial(check_words, target=target, max_places=total.max_places)
    classes = labels = frozenset[str]()
    if not target.is_of_words:
        from geval_py.checking import text_checks

        classes = text_checks.read_classes(target)
        labels = text_checks.read_labels(target) if "W303" in codes else labels
        work = partial(
            text_checks.check_texts, target=target, max_places=total.max_places, classes=classes, labels=labels
        )
    try:
        with (
            lines.LineReader(target.file, header=target.output_header, max_bytes=max_bytes) as outputs,
            ExitStack() as stack,
        ):
            expected = None
            if target.expected is not None:
                expected = stack.enter_context(lines.LineReader(target.expected, header=target.output_header))
            has_mark = outputs.has_byte_order_mark
            for _, findings in map_blocks(outputs, expected, work, progress=progress):
                total.extend(findings)
                if total.counts["binary"]:
                    message = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
                    problem = file_problem(RULES_BY_CODE["E106"], target.output, message, line=1)
                    return [problem] if "E106" in codes else []
            items = None
            if target.expected is not None:
                items = lines.count_lines(target.expected, header=target.output_header)
            elif target.input is not None:
                items = lines.count_lines(target.input, header=target.in_header)
    except (CorruptFileError, TooLargeError, UnreadableFileError) as error:
        if error.path != target.output:
            raise
        if isinstance(error, UnsupportedEncodingError):
            problem = file_problem(RULES_BY_CODE["E106"], target.output, error.reason, line=1)
        elif isinstance(error, UnreadableFileError):
            problem = _unreadable(target.output, error.reason)
            if files.format_ending(target.output) and getattr(error.__cause__, "errno", None) is None:
                problem = replace(problem, rule=RULES_BY_CODE["E108"], fix="")  # it is there
        else:
            if isinstance(error, CorruptFileError):
                message = f"corrupt {error.compression} file: {visible(error.reason)}"
            else:
                is_larger = "a line has" if error.what == "line" else "it unpacks to"
                message = f"{is_larger} more than {error.max_bytes} bytes"
            problem = file_problem(RULES_BY_CODE["E105"], target.output, message, lines=total.lines)
        return [problem] if problem.rule.code in codes else []
    if classes and (kept := total.places.get("W216")):  # the nearest class takes long to find, so only for places
        kept[:] = [entry if isinstance(entry, Place) else (*entry, nearest(entry[2], classes)) for entry in kept]
    return _sum_up(total, target, codes, items, has_mark=has_mark, labels=labels)


def _sum_up(
    total: Findings,
    target: Target,
    codes: Collection[str],
    items: int | None,
    *,
    has_mark: bool,
    labels: frozenset[str],
) -> list[Problem]:
    """Apply the rules that need all lines, and return the problems in the order of the table of rules.

    ``items`` is the number of lines there should be, None if that is not known; ``labels`` are those of the answers.
    """
    counts, kept = total.counts, total.places
    shares: dict[str, float] = {}  # of the lines that were looked at, where these are not all
    summaries: dict[str, str] = {}
    remedies: dict[str, str] = {}  # in place of the rule's

    def add_file(code: str, message: str, *, count: int = 1, line: int = 0, token: str = "") -> None:
        counts[code], summaries[code] = count, message
        kept[code] = [Place(line, min(line, 1), token, message)]

    if has_mark:
        add_file("W211", "the file begins with a byte order mark", line=1, token="\ufeff")
    first = total.texts[0].split("\t")[0] if total.texts else ""
    if target.header and not target.header_is_skipped and first.casefold() == target.header.casefold():
        message = f"the first line is the header's name, `{visible(target.header)}`, and is read as the first item"
        add_file("W215", message, line=1, token=first)
    if counts["spaces"]:
        del counts["E118"]
    elif counts["E118"] and not counts["separators"] and "E118" in codes:
        del counts["W209"]
    if not total.lines:
        add_file("E102", "the output has no line")
    elif items is not None and total.lines != items:
        few = total.lines < items
        message = f"the output has {counted(total.lines, 'line')} for {counted(items, 'item')}"
        message += "".join(f"; {cause}" for cause in _line_count_causes(total, items, target))
        add_file("E103" if few else "E104", message, line=total.lines if few else items + 1)
    if target.metric is not None and counts["E117"]:
        name = target.metric.name
        remedies["E117"] = (
            f"Write what {name} reads (geval --list-metrics); for word gaps, give --metric PerplexityHashed."
        )
    far_above_one = counts["E119"]
    if 2 * far_above_one > total.lines and "E119" in codes:
        summaries["E119"] = wordprobs.far_above_one_note(far_above_one, total.lines)
        ((advice, _),) = total.advice.most_common(1)
        remedies["E119"] = f"{advice[0].upper()}{advice[1:]}."
    elif far_above_one:
        counts["W201"] += far_above_one
        kept["W201"] = sorted([*kept.get("W201", ()), *kept["E119"]], key=lambda entry: entry[0])[: total.max_places]
        del counts["E119"]
    if len(total.firsts) == 2:
        probabilities, logarithms = counts["probabilities"], counts["logarithms"]
        message = f"{counted(probabilities, 'line')} of probabilities, {counted(logarithms, 'line')} of logarithms"
        _, last = min((counts[scale], -line) for scale, line in total.firsts.items())
        add_file("W213", message, line=-last)
    expected, least = counts["expected capitals"], CASE_SHARE * counts["answers"]
    if expected and not counts["capitals"]:
        counts["W302"], kept["W302"] = expected, kept["expected capitals"]
        summaries["W302"] = f"the output has no capital, unlike {counted(expected, 'expected word')}"
    elif counts["W302"]:
        of_words = f"{counts['W302']} of {expected} expected words with capitals"
        summaries["W302"] = f"{of_words} are listed only in another case"
    if counts["W302"] < least or total.lines != items:
        del counts["W302"]
    if labels and not counts["known labels"] and total.lines >= MIN_LINES_FOR_LABELS:
        answers = " and ".join(f"`{visible(shorten(label))}`" for label in sorted(labels)[:2])
        message = f"no label of the output is among the answers, such as {answers}"
        add_file("W303", message, count=total.lines)
    without_colon = counts["E113"] + counts["E115"]
    if without_colon == total.lines > 0 and not target.has_metric and not any(":" in text for text in total.texts):
        for code in ("E113", "E115"):
            summaries[code], remedies[code] = NO_METRIC, f"{FIX_NO_METRIC} {RULES_BY_CODE[code].fix}"
    if not target.is_of_words:
        remedies["E103"] = RULES_BY_CODE["E103"].fix.replace("; write `:1` where there is no guess", "")
    else:
        if counts["W202"] or counts["logarithms"]:
            sample = total.texts[: word_checks.SAMPLED_FOR_UNITS]
            units = word_checks.find_units(sample)
            if 2 * units["bits"] > len(sample):
                add_file("W223", RULES_BY_CODE["W223"].summary, count=units["bits"], line=1)
                shares["W223"] = units["bits"] / len(sample)
            if 2 * units["complements"] > len(sample):
                remedies["W202"] = "They look like 1 - p, where p is the probability: write p."
        sample = total.texts[: word_checks.SAMPLED_LINES]
        for code, (count, marked) in word_checks.find_subwords(target, sample).items():
            counts[code], shares[code] = count, count / len(sample)
            kept[code] = [*marked[: total.max_places]]
        first_numbers = [int(match[1]) for text in sample if (match := re.match(r"([0-9]{1,18})\t", text))]
        start = next(iter(first_numbers), 0)
        if len(sample) > 1 and first_numbers == list(range(start, start + len(sample))):
            add_file("W222", RULES_BY_CODE["W222"].summary, line=1, count=len(sample))
            shares["W222"] = 1.0
    if counts["W221"]:
        remedies["W206"] = "Leave the fragments out (W221); --fix would add them to the words, and so does not."
    problems: list[Problem] = []
    no_guess, answered = counts["answers"] * target.bits * math.log(2), counts["answers"] >= word_checks.MIN_LINES
    is_worse = no_guess < total.loss < math.inf and not math.isclose(total.loss, no_guess)
    if answered and is_worse and not any(counts[code] for code in codes):
        words = set(total.words)
        listed = words.intersection(word for text in total.texts for word in word_checks.words_of(text))
        own, anywhere = sum(map(_lists_word, total.texts, total.words)), sum(word in listed for word in total.words)
        answers = counted(len(total.words), "answer")
        where = f"of the first {answers}, {own} are listed on their lines, {anywhere} on any line"
        add_file("W304", f"{RULES_BY_CODE['W304'].summary}; {where}", count=total.lines)
        if 2 * own < anywhere:
            remedies["W304"] = "Write the lines in the order of in.tsv: answers are listed, but on other lines."
    for rule in RULES:
        if counts[rule.code] and rule.code in codes:
            places = (
                entry
                if isinstance(entry, Place)
                else place_of(rule.code, entry[1], entry[0], *entry[2:], bits=target.bits)
                for entry in kept.get(rule.code, ())
            )
            share = min(1.0, counts[rule.code] / max(1, total.lines))
            problems.append(
                Problem(
                    rule,
                    target.output,
                    count=counts[rule.code],
                    share=shares.get(rule.code, share),
                    summary=summaries.get(rule.code, rule.summary),
                    places=tuple(places),
                    fix=remedies.get(rule.code, ""),
                )
            )
    return problems


_QUOTED_FIELD = re.compile(rb'(?m)(?:^|(?<=\t))"[^"]*(?:""[^"]*)*')
_OTHER_LINE_END = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]|\r(?!\n)")  # str.splitlines'


def _line_count_causes(total: Findings, items: int, target: Target) -> Iterator[str]:
    """Yield likely causes of a wrong number of lines."""
    if total.counts["E111"] and total.lines > items:
        yield "there are empty lines"
    if total.texts[:1] == ["["]:
        yield "it looks like a JSON list: name the file out-NAME.json"
    if total.counts["W215"]:
        yield "the first line is a header"
    if any(re.fullmatch('".+"', text) for text in total.texts):
        yield "there are quotes, as of a CSV writer: read and write with QUOTE_NONE"
    elif target.input is not None:
        with lines.LineReader(target.input) as inputs:
            data = inputs.block(MAX_INPUT_BYTES)
            data = b"" if inputs.block() else data  # a part of the input would give a wrong number
        merged = sum(field.count(b"\n") for field in _QUOTED_FIELD.findall(data[:-1]))
        splits = _OTHER_LINE_END.findall(data)
        if merged and items - merged - total.lines in (0, 1):  # pandas takes the first line for a header
            yield "the input has quotes, at which a CSV reader merges lines: read it with QUOTE_NONE"
        if splits and items + len(splits) == total.lines:
            point = f"U+{ord(splits[0].decode()):04X}"
            yield f'the input has {point}, at which str.splitlines splits: read lines by open(path, newline="\\n")'
    per_item, surplus = divmod(total.lines, max(items, 1))
    if per_item > 1 and not surplus and not total.counts["spaces"] and not total.counts["E111"]:
        yield f"there are {per_item} lines an item, each of one entry: write all entries of a gap on one line"
    elif total.lines == 2 * items > 2:
        yield 'twice as many, as if the file was opened to append ("a"): open it with "w"'
    test_set = os.path.basename(os.path.dirname(os.path.abspath(target.expected or target.input or "")))
    if question := sets_of_length(target.challenge, total.lines, test_set):
        yield question
    texts, words = total.texts, total.words
    hits = {
        "": sum(map(_lists_word, texts, words)),
        "up": sum(map(_lists_word, texts[1:], words)),
        "down": sum(map(_lists_word, texts, words[1:])),
    }
    best = max(hits, key=hits.__getitem__)
    if hits[best] > max(3, 2 * hits[""]):
        yield f"the outputs fit the expected words better when moved by one line {best}"


def _lists_word(text: str, word: str) -> bool:
    """Whether a line has an entry for a word."""
    return any(
        token.rpartition(":")[0] == word and wordprobs.NUMBER.fullmatch(token.rpartition(":")[2])
        for token in text.split(" ")
    )
