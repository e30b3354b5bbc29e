"""Check outputs: read each once, let threads check its blocks, sum up what they found, and judge the whole.

A rule on an output as a whole is a function in FILE_RULES. It gets the output, and adds problems, corrects or removes
some. The order of FILE_RULES matters only where a function reads the problems that another one adds.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from geval_py.checking.first_lines import MIN_LINES, SAMPLED_LINES, faults_of_first_lines
from geval_py.checking.places import SEPARATOR, name_of, place_of, separations
from geval_py.checking.rules import (
    READ_FORMATS,
    RULES,
    RULES_BY_CODE,
    Place,
    Problem,
    Report,
    file_problem,
    select_rules,
)
from geval_py.checking.targets import Target, find_targets, first_lines
from geval_py.checking.word_checks import SAMPLED_FOR_SUBWORDS, LineFindings, check_words, find_subwords
from geval_py.errors import (
    CorruptFileError,
    DataError,
    MissingPackageError,
    TooLargeError,
    UnreadableFileError,
    UnsupportedEncodingError,
)
from geval_py.reading import files, lines
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE
from geval_py.scoring.blocks import Block, Progress, ProgressOf, map_blocks, no_progress
from geval_py.scoring.evaluate import cut_off_note
from geval_py.text import counted, named, shorten, some_of, strip_spaces, visible, words

DEFAULT_MAX_PLACES = 20


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
        progress_of=lambda _: nullcontext(progress),
    )


def check_targets(
    targets: Iterable[Target | Problem],
    rules: Collection[str],
    *,
    progress_of: ProgressOf = no_progress,
    strict: bool = False,
    **limits: int,
) -> Report:
    """Check outputs with the rules of some codes; report missing outputs too.

    ``progress_of(path)`` returns a context manager with the function that is called after each block of that output.
    The ``limits`` are those of :func:`check_output`.
    """
    files: list[str] = []
    problems: list[Problem] = []
    unreadable: list[DataError] = []
    notes: list[str] = []
    for target in targets:
        if isinstance(target, Problem):
            files.append(target.path)
            problems += [target] if target.rule.code in rules else []
            continue
        files.append(target.name)
        with progress_of(target.output) as progress:
            problems += check_output(target, rules, progress=progress, **limits)
        notes += [*target.notes, *(f"{named(target.name)}: {note}" for note in target.file.notes)]
        unreadable += target.unreadable
    return Report(
        files=tuple(files),
        problems=tuple(problems),
        unreadable=tuple(unreadable),
        notes=tuple(dict.fromkeys(notes)),
        strict=strict,
    )


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = lines.DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> list[Problem]:
    """Check one output with the rules of some codes; return the problems in the order of the table of rules.

    An output that cannot be read, even for want of a package, is a problem, not an error.
    """
    codes = frozenset(rules) - target.pointless
    check_lines = check_words
    if not target.is_of_words:
        from geval_py.checking.text_checks import check_texts as check_lines
    work: Any = partial(check_lines, target=target, max_places=max_places or 1 << 62)
    total: LineFindings | None = None
    try:
        with (
            lines.LineReader(target.file, header=target.header, max_bytes=max_bytes) as outputs,
            lines.LineReader(target.expected, header=target.header) if target.expected else nullcontext() as expected,
        ):
            for _, findings in map_blocks(outputs, expected, work, progress=progress):
                total = total.extended(findings) if total else findings
                if total.counts["binary"]:
                    reason = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
                    raise UnsupportedEncodingError(path=target.output, reason=reason)
    except (CorruptFileError, TooLargeError, UnreadableFileError, MissingPackageError) as error:
        code = "E101"
        is_opened = files.format_ending(target.output) and getattr(error.__cause__, "errno", None) is None
        match error:
            case UnsupportedEncodingError():
                code = "E106"
            case CorruptFileError() | TooLargeError():
                code = "E105"
            case UnreadableFileError() if is_opened:
                code = "E108"
        reason = str(getattr(error, "reason", error))
        message = f"the output cannot be read: {visible(reason)}"
        fix = READ_FORMATS if code == "E101" else ""
        return [file_problem(RULES_BY_CODE[code], target.name, message, fix)]
    if total is None:
        empty = file_problem(RULES_BY_CODE["E102"], target.name, "the output has no line")
        return [empty] if "E102" in codes else []
    return problems_of(CheckedOutput(target, total, codes, outputs.has_byte_order_mark))


# Rules on an output as a whole

HEADER_NAMES = frozenset(words("answer class expected gold label labels tags target word y"))
LINES_PER_LABEL = 5  # at least, where the labels are few and known
_NUMBERED = re.compile(r"([A-Za-z]*-?)([0-9]{1,18})([:,\t ]|[.)] )(?=.)")
MAX_INPUT_BYTES = 1 << 26  # of in.tsv, in which the cause of a wrong number of lines is looked for


@dataclass
class CheckedOutput:
    """An output whose lines were all checked.

    ``codes`` are those of the rules that apply, ``problems`` has what they find, by their codes.
    """

    target: Target
    lines: LineFindings
    codes: Collection[str]
    has_byte_order_mark: bool
    problems: dict[str, Problem] = field(default_factory=dict)

    def add(
        self,
        code: str,
        message: str = "",
        *,
        count: int = 1,
        line: int = 0,
        token: str = "",
        places: Sequence[Place] = (),
        fix: str = "",
        sample: int = 0,
    ) -> None:
        """Add a problem of some places, or else of the output as a whole, or of the beginning of a ``line``.

        An empty ``message`` or ``fix`` is the rule's. ``sample`` is the number of first lines that were looked at,
        where these are not all: the count in the file is estimated from them.
        """
        rule, number = RULES_BY_CODE[code], self.lines.lines
        summary = message or rule.summary
        if 0 < sample < number:
            count = round(count / sample * number)
            summary += f" (estimated from the first {counted(sample, 'line')})"
        shown = tuple(places[: self.lines.max_places]) or (Place(line, min(line, 1), token, summary),)
        share = min(1.0, count / max(1, number))
        self.problems[code] = Problem(rule, self.target.name, count, share, summary, shown, fix)


def problems_of(output: CheckedOutput) -> list[Problem]:
    """Return the problems of an output, in the order of the table of rules."""
    for code in output.lines.counts.keys() & RULES_BY_CODE.keys():
        places = [place_of(code, *row, bits=output.target.bits) for row in output.lines.places[code]]
        output.add(code, count=output.lines.counts[code], places=places)
    for judge in FILE_RULES:
        judge(output)
    return [output.problems[rule.code] for rule in RULES if rule.code in output.problems.keys() & output.codes]


def _beginning(output: CheckedOutput) -> None:
    """Find a byte order mark (W211), a first line that is the header (W215), and a last one that is cut (W216)."""
    if output.has_byte_order_mark:
        output.add("W211", line=1, token="\ufeff")
    target = output.target
    is_open = target.is_of_words and not target.file.ends_in_newline
    if is_open and (message := cut_off_note(target.file, target.header)):
        output.add("W216", message, line=output.lines.lines)
    first = output.lines.texts[0].split("\t")[0]
    if target.unread_header and first.casefold() == target.unread_header.casefold():
        output.add("W215", line=1, token=first)


def _separators(output: CheckedOutput) -> None:
    """Find what separates the entries of most lines: of no line a space (E118), or bars beside spaces (W209)."""
    texts, problems = output.lines.texts, output.problems
    has_separators = any(map(SEPARATOR.search, texts))  # most outputs have none
    if not output.target.is_of_words or "E114" in problems or not has_separators:
        return
    places = separations(texts)
    if places and not output.lines.counts["spaces"] and "E118" in output.codes:
        message = f"the entries of all lines are separated by {name_of(places[0].token)}"
        output.add("E118", message, count=len(places), places=places, sample=len(texts))
        problems.pop("W209", None)
        problems.pop("W208", None)  # the separator may be such a character
    elif places and "W209" not in problems:
        output.add("W209", places[0].message, count=len(places), places=places, sample=len(texts))


def _number_of_lines(output: CheckedOutput) -> None:
    """Compare the number of lines with that of the items (E103, E104), if that is known (W108)."""
    number, items, target = output.lines.lines, output.target.lines, output.target
    if items is None:
        reason = target.doubt
        if target.unreadable:
            reason = "what there is of its test set cannot be read"
        elif target.test is not None:
            folder = visible(os.path.join(target.challenge, target.test))
            reason = f"there is no {INPUT_FILE} and no {EXPECTED_FILE} in `{folder}`"
        output.add("W108", f"the number of lines is not checked: {reason}")
    elif number != items:
        causes = "".join(f"; {cause}" for cause in _line_count_causes(output, items))
        has = f"the output has {counted(number, 'line')}"
        at = min(number, items + 1)
        file = target.expected or target.input
        places = [Place(at, 1, "", f"{has}, {named(file.name)} has {items:,}{causes}")] if file else ()
        message = f"{has} for {counted(items, 'item')}{causes}"
        output.add("E103" if number < items else "E104", message, line=at, places=places)


def _numbers_far_above_one(output: CheckedOutput) -> None:
    """Report lines that total far more than 1 as E119 if most lines do, else as W201."""
    far = output.problems.pop("E119", None)
    if far is None:
        return
    if 2 * far.count > output.lines.lines and "E119" in output.codes:
        from geval_py.reading.wordprobs import far_above_one_note

        advice = far.places[0].message.partition("; ")[2]
        note = far_above_one_note(far.count, output.lines.lines, advice)
        fix = advice and f"{advice[0].upper()}{advice[1:]}."
        output.add("E119", note, count=far.count, places=far.places, fix=fix)
    elif output.target.is_of_words:
        near = output.problems.get("W201", far)
        places = sorted({*near.places, *far.places})
        output.add("W201", count=output.lines.counts["W201"] + far.count, places=places)


def _tokens_of_language_models(output: CheckedOutput) -> None:
    """Find subword marks (W219) and special tokens (W220) in the first lines."""
    if output.target.is_of_words:
        sample = output.lines.texts[:SAMPLED_FOR_SUBWORDS]
        for code, places in find_subwords(output.target, sample).items():
            output.add(code, count=len(places), places=places, sample=len(sample))


def _beginnings_and_labels(output: CheckedOutput, first: Block) -> None:
    """Find what begins each line, and no answer (W222), and labels that are no answers of any line (W303)."""
    texts = output.lines.texts[:SAMPLED_LINES]
    answers = str(first.expected, "utf-8", "replace").split("\n")[: first.known]
    prefix = _prefix_of(texts)
    if prefix and not _prefix_of(answers[:SAMPLED_LINES]):
        code, message = "W222", f"each line begins with its number, as in `{prefix}`"
    else:
        code, message = "W303", _unknown_labels(output.target, texts, answers)
    if message:
        output.add(code, message, count=output.lines.lines, line=1)


def _prefix_of(texts: Sequence[str]) -> str:
    """Return the number of the first of some lines that are numbered, perhaps as in `H-3`; "" for others."""
    matches = list(map(_NUMBERED.match, texts))
    kinds = {match and (match[1], match[3], int(match[2]) - line) for line, match in enumerate(matches)}
    is_numbered = len(matches) >= MIN_LINES and len(kinds) == 1
    return "".join(matches[0].group(1, 2)) if is_numbered and matches[0] else ""


def _unknown_labels(target: Target, texts: Sequence[str], answers: Sequence[str]) -> str:
    """Return what to say of lines without any label of the answers or of train; "" if most have some."""
    metric, prepare = target.metric, target.preparation or str
    if metric is None or metric.matching or metric.labels == "none":
        return ""
    from geval_py.scoring.metrics.columns import probable_labels  # which word gaps need not
    from geval_py.scoring.metrics.exact import best_guess

    def labels_of(text: str) -> list[str]:
        text = strip_spaces(prepare(text))
        if metric.labels == "several":
            return [label for label, _ in probable_labels(text)]
        return [best_guess(text) or text]

    training = first_lines(target.training, target.header) if target.training else []
    known = [label for answer in (*answers, *training) for label in labels_of(answer)]
    labels = {*known}
    if LINES_PER_LABEL * len(labels) > len(known) or labels <= {"0", "1"}:
        return ""
    unknown = [of_line for of_line in map(labels_of, texts) if any(of_line) and labels.isdisjoint(of_line)]
    if len(unknown) < MIN_LINES or 2 * len(unknown) <= len(texts):
        return ""
    lines_without = f"{len(unknown)} of the first {len(texts)} lines have no label of the answers"
    return f"{lines_without}: `{visible(shorten(unknown[0][0]))}` is none of {some_of(sorted(labels))}"


def _first_lines(output: CheckedOutput) -> None:
    """Find what is wrong with the first lines, and an unexplained score that is worse than that of `:1` (W304)."""
    target, first, lines = output.target, output.lines.block, output.lines
    if not (target.is_of_words or target.metric):
        return
    if not any(RULES_BY_CODE[code].needs_answers for code in output.codes):  # a board's time must not depend on them
        first = first._replace(expected=b"", known=0)
    _beginnings_and_labels(output, first)
    are_comparable = target.words_are_plain and lines.lines == target.lines
    answers = lines.counts["answers"]
    no_guess = answers * target.bits * math.log(2)
    for code, message, fix, places in faults_of_first_lines(
        first, target.lines or 0, target.metric, target.bits, words_are_plain=are_comparable
    ):
        if code == "W304":
            is_worse = (1 + 1e-9) * no_guess < lines.loss < math.inf  # a rounding error is no difference
            is_explained = any(one.is_error or one.share > 0.5 for one in output.problems.values())
            if is_explained or (target.is_of_words and not (is_worse and answers >= MIN_LINES)):
                break
            message = f"{RULES_BY_CODE['W304'].summary}; {message}" if target.is_of_words else message
        sample = min(first.known, SAMPLED_LINES) if places else 0
        output.add(code, message, count=len(places) or lines.lines, places=places, fix=fix, sample=sample)


FILE_RULES = (
    _beginning,
    _separators,
    _number_of_lines,
    _numbers_far_above_one,
    _tokens_of_language_models,
    _first_lines,  # the last: an error, or a problem of most lines, explains a bad score
)


_QUOTED_FIELD = re.compile(rb'(?m)(?:^|(?<=\t))"[^"]*(?:""[^"]*)*')
_OTHER_LINE_END = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]|\r(?!\n)")  # str.splitlines'


def _line_count_causes(output: CheckedOutput, items: int) -> Iterator[str]:
    """Yield likely causes of a wrong number of lines."""
    total, target = output.lines, output.target
    texts, first = total.texts, total.block
    per_item, surplus = divmod(total.lines, max(items, 1))
    is_multiple = items > 1 < per_item and not surplus
    if is_multiple and not (any(texts[1::2]) and any(texts[::2])):
        is_multiple = False
        yield "every second line is empty: print adds a line end to the one that the text has"
    elif "E111" in output.problems and total.lines > items:
        yield "there are empty lines"
    if total.lines == 1 and b"\r" in bytes(first.outputs).rstrip():
        yield "its lines end with CR alone: --fix makes LF of each CR"
    elif total.lines == 1 and "\\n" in texts[0]:
        yield r"it has `\n` in place of line ends: write line ends, not their repr()"
    if "W215" in output.problems:
        yield "the first line is a header"
    name = str(first.expected, "utf-8", "replace").split("\n")[0].strip()
    if total.lines + 1 == items and name.casefold() in HEADER_NAMES:
        yield f"`{name}`, the first answer, looks like a header: move the headers to in-header.tsv and out-header.tsv"
    if any(re.fullmatch('".+"', text) for text in texts):
        yield "there are quotes, as of a CSV writer: read and write with QUOTE_NONE"
    elif target.input is not None:
        data = b""
        with suppress(DataError), lines.LineReader(target.input) as inputs:
            data = inputs.block(MAX_INPUT_BYTES)
            data = b"" if inputs.block() else data  # a part of the input would give a wrong number
        merged = sum(field.count(b"\n") for field in _QUOTED_FIELD.findall(data[:-1]))
        splits = _OTHER_LINE_END.findall(data)
        if merged and items - merged - total.lines in (0, 1):  # pandas takes the first line for a header
            yield "the input has quotes, at which a CSV reader merges lines: read it with QUOTE_NONE"
        if splits and items + len(splits) == total.lines:
            point = f"U+{ord(splits[0].decode()):04X}"
            yield f'the input has {point}, at which str.splitlines splits: read lines by open(path, newline="\\n")'
    if is_multiple and target.is_of_words and not total.counts["spaces"] and "E111" not in output.problems:
        yield f"there are {per_item} lines an item, each of one entry: write all entries of a gap on one line"
    elif is_multiple and per_item == 2:
        yield 'twice as many, as if the file was opened to append ("a"): open it with "w"'
    from geval_py.reading.challenge import sets_of_length  # which few runs need

    test_set = os.path.basename(os.path.dirname(os.path.abspath(target.expected or target.input or "")))
    if question := sets_of_length(target.challenge, total.lines, test_set):
        yield question
