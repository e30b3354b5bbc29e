"""The child process of the sandbox: receives a submission, checks its outputs and scores them.

Its answers reveal no more of the hidden answers than scores, losses, and whether the number of lines is right.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from geval_py.board import submission
from geval_py.board.references import expected_of
from geval_py.board.submission import FailedError, JsonDocument, Parcel, RejectedError, Scored, SubmissionError
from geval_py.errors import DataError, GevalError, MalformedLineError, SchemeError, UsageError
from geval_py.reading import config, splits
from geval_py.reading.outputs import output_at
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring import evaluate, scores
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.checking.targets import Target
    from geval_py.reading.files import File

NICENESS = 10
LINE_BYTES = 100_000  # of an output, for each line that is expected
WATCH_SECONDS = 1  # between two looks at whether the parent lives


def main(place: str, parent: int) -> int:
    """Do the job in a place and write the answer; return the exit status 0. ``parent`` is the id of the parent."""
    document = submission.read_document(os.path.join(place, submission.JOB_FILE))
    _watch_parent(parent)
    _set_limits(document["limits"])
    submission.write_document(os.path.join(place, submission.ANSWER_FILE), answer(document, place))
    return 0


def answer(document: JsonDocument, place: str) -> JsonDocument:
    """Do a job, and return the result or the reason why there is none."""
    limits = document["limits"]
    try:
        return {"result": JOBS[document["job"]](document["arguments"], limits, place)}
    except SubmissionError as error:
        kind = "rejected" if isinstance(error, RejectedError) else "failed"
        return {kind: error.reason, "aside": error.aside}
    except MemoryError:
        return {"failed": f"it needs more than {limits['memory']} bytes of memory"}
    except OSError as error:
        return {"failed": f"a file could not be read or written: {error.strerror}"}


def _watch_parent(parent: int) -> None:
    """Kill this process and its children, which are a group, when its parent is gone, which may have been killed."""
    if sys.platform == "win32" or os.getpgrp() != os.getpid():
        return
    import signal

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, WATCH_SECONDS, WATCH_SECONDS)
    look()


def _set_limits(limits: JsonDocument) -> None:
    """Limit memory, processor time (of all cores together) and the size of files; dump no core."""
    if sys.platform == "win32":
        return  # only the wall clock, which the parent watches
    import resource

    os.nice(NICENESS)
    seconds = limits["seconds"] * (os.cpu_count() or 1)
    for what, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["bytes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def process(arguments: JsonDocument, limits: JsonDocument, place: str) -> JsonDocument:
    """Receive a submission unless its ``parcel`` is given, check its outputs, and score those that are ``wanted``.

    What was received is written into the place before anything is scored. Scoring is left out if the digest is one of
    ``earlier``, or if the submission counts as more than are ``left`` of a quota. Raises RejectedError, FailedError.
    """
    if "parcel" in arguments:
        parcel, wanted = submission.parcel_of(arguments["parcel"]), arguments["wanted"]
    else:
        from geval_py.board.intake.receiving import receive
        from geval_py.board.intake.sources import Budget

        ends = time.monotonic() + limits["seconds"]
        budget = Budget(bytes=limits["bytes"], files=limits["files"], listed=limits["listed"], ends=ends)
        named = {name: arguments[name] for name in ("tests", "variants", "transports")}

        def max_bytes(test: str) -> int:
            with suppress(FailedError):  # which the check raises, once the files are received
                return _expected(arguments["challenge"], arguments["answers"], test, limits["bytes"])[1]
            return int(limits["bytes"])

        parcel = receive(arguments["source"], place, budget, **named, max_bytes=max_bytes)
        submission.write_document(os.path.join(place, submission.PARCEL_FILE), asdict(parcel))
        hidden = Counter(output.test for output in parcel.outputs if output.test in arguments["hidden"])
        left = arguments["left"]
        if parcel.digest in arguments["earlier"] or (left is not None and max(hidden.values(), default=1) > left):
            return {"problems": [], "reason": "", "scored": []}
        wanted = [(output.test, output.file, arguments["metrics"]) for output in parcel.outputs]
    problems = check(parcel, arguments, limits["bytes"])
    of_all = {"rule": "note", "name": "note", "severity": "note", "path": parcel.name, "count": 1, "share": 0.0}
    problems += (of_all | {"summary": note, "places": []} for note in parcel.notes)
    errors = [problem for problem in problems if problem["severity"] == "error"]
    if errors:
        first, *others = errors
        more = f" (and {len(others)} more)" if others else ""
        reason = f"`{visible(first['path'])}`: {first['summary']} [{first['rule']}]{more}"
        return {"problems": problems, "reason": reason, "scored": []}
    paths = {file.name: file.path for file in parcel.files}
    scored = [
        one for test, name, metrics in wanted if metrics for one in score(paths[name], name, test, metrics, arguments)
    ]
    return {"problems": problems, "reason": "", "scored": [asdict(one) for one in scored]}


JOBS = {"process": process}


def _expected(challenge: str, answers: str, test: str, limit: int) -> tuple[File, int]:
    """Return a test's answers, and the most bytes of an output, unpacked, for their number of lines."""
    from geval_py.board.intake.sources import FREE_BYTES
    from geval_py.reading.lines import count_lines

    try:
        expected = splits.answers_at(expected_of(challenge, answers, test))
        return expected, min(limit, max(FREE_BYTES, LINE_BYTES * count_lines(expected)))
    except DataError as error:
        raise _challenge_fault(error, test) from error


def check(parcel: Parcel, arguments: JsonDocument, max_bytes: int) -> list[JsonDocument]:
    """Check all outputs by the rules of ``geval check`` that need no answers; return the problems as documents."""
    from geval_py.board.intake.sources import FREE_BYTES, MAX_RATIO
    from geval_py.checking.check import check_targets
    from geval_py.checking.problem_formats import problem_document, problem_lines
    from geval_py.checking.rules import RULES

    rules = frozenset(rule.code for rule in RULES if not rule.needs_answers)
    paths = {file.name: file.path for file in parcel.files}
    problems: list[JsonDocument] = []
    for output in parcel.outputs:
        path = paths[output.file]
        expected, most = _expected(arguments["challenge"], arguments["answers"], output.test, max_bytes)
        most = min(most, FREE_BYTES + MAX_RATIO * os.path.getsize(path))
        target = target_of(path, expected, arguments, most)
        try:
            checked = check_targets([target], rules, max_bytes=most)
        except UsageError as error:  # this machine lacks what reads the format
            reason = f"`{visible(output.file)}` cannot be read here: {visible(str(error))}"
            raise FailedError(reason) from error
        if checked.unreadable:
            raise _challenge_fault(checked.unreadable[0], output.test)
        for problem in checked.problems:
            renamed = replace(problem, path=output.file)
            problems.append(problem_document(renamed) | {"text": [*problem_lines(renamed)]})
    return problems


def target_of(path: str, expected: File, arguments: JsonDocument, max_bytes: int) -> Target:
    """Return the target of the checks; of the answers only the number of lines is used."""
    from geval_py.checking.targets import Target, with_options

    target = Target(output_at(path).file, challenge=arguments["challenge"], expected=expected)
    target.file.max_bytes = max_bytes
    return with_options(target, [arguments["metric"]])._replace(words_are_plain=False)


def score(path: str, name: str, test: str, metrics: Sequence[str], arguments: JsonDocument) -> list[Scored]:
    """Score an output; a metric other than the ranking one has no value if its filter selects no line.

    Raises RejectedError for a fault of the output, FailedError for others.
    """
    ranking, kept = arguments["metric"], list(metrics)
    while True:
        try:
            evaluation = _evaluate(path, test, kept or [ranking], arguments)
            break
        except GevalError as error:
            if isinstance(error, DataError | SchemeError) and error.path == path:
                if isinstance(error, SchemeError):
                    others = [one for one in kept if one == ranking or parse_schemes(one)[0].text != error.scheme]
                    if len(others) < len(kept):
                        kept = others
                        continue
                text = error.message if isinstance(error, SchemeError) else str(error).replace(path, visible(name))
                lines = "; ".join(line.strip() for line in text.splitlines()[:2])
                raise RejectedError(f"`{visible(name)}`: {lines}") from error
            if isinstance(error, DataError):
                raise _challenge_fault(error, test) from error
            raise FailedError(f"{test} cannot be scored: {str(error).partition(chr(10))[0]}") from error
    none = Scored(test=test, file=name, metric=ranking, signature="", lines=0, score=None)
    scored: dict[str, Scored] = {}
    for metric, one in zip(kept or [ranking], evaluation.scores, strict=True):
        value, told = None if math.isnan(one.value) else one.value, str(scores.Signature(evaluation, [one]))
        scored[metric] = replace(none, metric=metric, signature=told, lines=one.statistics.lines, score=value)
        if metric == ranking:
            from geval_py.explaining.documents import choose_documents

            by = arguments["documents"][test] or (None if evaluation.split.input else False)
            try:
                documents = choose_documents(evaluation, by)
                own = documents and documents.of_score(one).several()
            except GevalError as error:
                raise FailedError(f"{test} has no such documents: {str(error).partition(chr(10))[0]}") from error
            values = submission.line_values(one.metric, one.statistics, own, arguments["seed"])
            scored[metric] = replace(scored[metric], **values)
    return [scored.get(metric) or replace(none, metric=metric) for metric in metrics]


def _evaluate(path: str, test: str, metrics: Sequence[str], arguments: JsonDocument) -> scores.Evaluation:
    challenge = arguments["challenge"]
    task = config.config_task(challenge)
    task = task.replace(
        out_directory=challenge,
        expected_directory=challenge,
        test_name=test,
        out_files=(path,),
        expected_file=expected_of(challenge, arguments["answers"], test),
        metrics=(),
        alt_metrics=tuple(metrics),
        select_metrics=(),
    )
    split = splits.locate(task)
    schemes = evaluate.select_schemes(task)
    vocabulary = evaluate.vocabulary_for(schemes, task)
    return evaluate.evaluate_output(split, split.outputs[0], schemes, vocabulary)


def _challenge_fault(error: DataError, test: str) -> FailedError:
    """Return an error that blames the challenge, and quotes nothing of its answers."""
    where = f", line {error.line}, column {error.column}" if isinstance(error, MalformedLineError) else ""
    return FailedError(f"the challenge's files for {test} cannot be used ({type(error).__name__}{where})")
