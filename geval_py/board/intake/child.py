"""The child process of the sandbox: receives a submission, checks its outputs and scores them.

Its answers reveal no more of the hidden answers than scores, losses, and whether the number of lines is right.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain
from typing import TYPE_CHECKING

from geval_py.board import submission
from geval_py.board.intake.sources import Parcel
from geval_py.board.references import expected_of
from geval_py.board.submission import FAILED, REJECTED, JsonDocument, Outputs, Result, Scored
from geval_py.errors import (
    DataError,
    FailedError,
    GevalError,
    MalformedLineError,
    RejectedError,
    SchemeError,
    SubmissionError,
)
from geval_py.reading import config, splits
from geval_py.reading.outputs import output_at
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
    with open(os.path.join(place, submission.JOB_FILE), encoding="ascii") as file:
        arguments = json.load(file)
    _watch_parent(parent)
    _set_limits(arguments["limits"])
    submission.write_document(os.path.join(place, submission.ANSWER_FILE), asdict(answer(arguments, place)))
    return 0


def answer(arguments: JsonDocument, place: str) -> Result:
    """Process a submission, and return the result or the reason why there is none."""
    try:
        return process(arguments, place)
    except SubmissionError as error:
        return Result(state=error.state, reason=error.reason, aside=error.aside)
    except MemoryError:
        return Result(state=FAILED, reason=f"it needs more than {arguments['limits']['memory']} bytes of memory")
    except OSError as error:
        return Result(state=FAILED, reason=f"a file could not be read or written: {error.strerror}")


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
        with suppress(ValueError):  # a lower limit holds already
            resource.setrlimit(what, (most, most))


def process(arguments: JsonDocument, place: str) -> Result:
    """Receive a submission unless its ``parcel`` is given; check its ``outputs``, and score them by their metrics.

    What was received is written into the place before anything is scored. Raises RejectedError, FailedError.
    """
    if "source" in arguments:
        parcel = asdict(_receive(arguments, place))
        submission.write_document(os.path.join(place, submission.PARCEL_FILE), parcel)
        outputs = [(output["test"], output["file"], arguments["metrics"]) for output in parcel["outputs"]]
    else:
        parcel, outputs = arguments["parcel"], arguments["outputs"]
    paths = {file["name"]: file["path"] for file in parcel["files"]}
    problems = check(paths, outputs, arguments)
    of_all = {"rule": "note", "name": "note", "severity": "note", "count": 1, "share": 0.0, "places": []}
    problems += (of_all | {"path": "submission", "summary": note} for note in parcel["notes"])
    errors = [problem for problem in problems if problem["severity"] == "error"]
    if errors:
        first, *others = errors
        more = f" (and {len(others)} more)" if others else ""
        return Result(
            state=REJECTED,
            reason=f"`{visible(first['path'])}`: {first['summary']} [{first['rule']}]{more}",
            problems=tuple(problems),
        )
    scored = (score(paths[name], name, test, metrics, arguments) for test, name, metrics in outputs if metrics)
    return Result(problems=tuple(problems), scored=tuple(chain.from_iterable(scored)))


def _receive(arguments: JsonDocument, place: str) -> Parcel:
    from geval_py.board.intake.receiving import receive
    from geval_py.board.intake.sources import Budget

    limits = {name: arguments["limits"][name] for name in ("bytes", "files", "listed")}
    budget = Budget(**limits, ends=time.monotonic() + arguments["limits"]["seconds"])
    named = {name: arguments[name] for name in ("variants", "transports")}
    return receive(arguments["source"], place, budget, tests=list(arguments["tests"]), **named)


def check(paths: Mapping[str, str], outputs: Outputs, arguments: JsonDocument) -> list[JsonDocument]:
    """Check all outputs by the rules of ``geval check`` that need no answers; return the problems as documents."""
    from geval_py.board.intake.sources import FREE_BYTES, MAX_RATIO, refused
    from geval_py.checking.check import check_targets
    from geval_py.checking.problem_formats import problem_document, problem_lines
    from geval_py.checking.rules import RULES
    from geval_py.reading.lines import count_lines

    rules = frozenset(rule.code for rule in RULES if not rule.needs_answers)
    problems: list[JsonDocument] = []
    for test, name, _ in outputs:
        try:
            path = expected_of(arguments["challenge"], arguments["answers"], test)
            expected = splits.answers_at(path)
            most = min(
                arguments["limits"]["bytes"], max(FREE_BYTES, LINE_BYTES * count_lines(splits.answers_at(path)))
            )
        except DataError as error:
            raise _challenge_fault(error, test) from error
        size = os.path.getsize(paths[name])
        if size > most:
            raise refused(name, f"is larger than {most} bytes")
        most = min(most, FREE_BYTES + MAX_RATIO * size)
        expected.name = f"{test}/{splits.EXPECTED_FILE}"  # its folder is not shown
        target = target_of(paths[name], name, expected, arguments, most)
        checked = check_targets([target], rules, max_bytes=most)
        if unread := [problem.summary for problem in checked.problems if problem.rule.code == "E101"]:
            raise FailedError(f"`{visible(name)}`: {visible(unread[0])}")  # this machine lacks what reads the format
        if checked.unreadable:
            raise _challenge_fault(checked.unreadable[0], test)
        problems += (problem_document(problem) | {"text": [*problem_lines(problem)]} for problem in checked.problems)
    return problems


def target_of(path: str, name: str, expected: File, arguments: JsonDocument, max_bytes: int) -> Target:
    """Return the target of the checks; of the answers only the number of lines is used."""
    from geval_py.checking.targets import Target, with_options

    target = Target(output_at(path).file, challenge=arguments["challenge"], expected=expected, shown=name)
    target.file.max_bytes = max_bytes
    with_options(target, [arguments["metric"]])
    target.words_are_plain = False
    return target


def score(path: str, name: str, test: str, metrics: Sequence[str], arguments: JsonDocument) -> list[Scored]:
    """Score an output; a metric other than the ranking one has no value if its filter selects no line.

    Raises RejectedError for a fault of the output, FailedError for others.
    """
    from geval_py.explaining.documents import choose_documents

    ranking = arguments["metric"]
    names = list(dict.fromkeys([ranking, *metrics]))
    try:
        evaluation = _evaluate(path, test, names, arguments)
        figure = evaluation.scores[0]
        if figure.error:
            raise figure.error
        by = arguments["tests"][test]["documents"] or (None if evaluation.split.input else False)
        documents = choose_documents(evaluation, by)
        documents = documents and documents.of_score(figure).several()
    except GevalError as error:
        if isinstance(error, DataError | SchemeError) and error.path == path:
            text = error.message if isinstance(error, SchemeError) else str(error).replace(path, visible(name))
            lines = "; ".join(line.strip() for line in text.splitlines()[:2])
            raise RejectedError(f"`{visible(name)}`: {lines}") from error
        if isinstance(error, DataError):
            raise _challenge_fault(error, test) from error
        raise FailedError(f"{test} cannot be scored: {str(error).partition(chr(10))[0]}") from error
    scored = [
        Scored(
            test=test,
            file=name,
            metric=metric,
            signature=scores.Signature.of(evaluation, [score]),
            lines=score.statistics.lines,
            score=None if math.isnan(score.value) else score.value,
        )
        for metric, score in zip(names, evaluation.scores, strict=True)
    ]
    values = submission.line_values(figure.metric, figure.statistics, documents, arguments["seed"])
    scored[0] = replace(scored[0], **values)
    return [score for score in scored if score.metric in metrics]


def _evaluate(path: str, test: str, metrics: Sequence[str], arguments: JsonDocument) -> scores.Evaluation:
    """Score an output by all metrics at once; where some but not all have no score, these have errors."""
    challenge = arguments["challenge"]
    task = config.config_task(challenge).replace(
        test_name=test,
        out_files=(path,),
        expected_file=expected_of(challenge, arguments["answers"], test),
        alt_metrics=tuple(metrics),
        select_metrics=(),
    )
    split = splits.locate(task)
    schemes = evaluate.select_schemes(task)
    return evaluate.score_output(split, split.outputs[0], schemes, evaluate.vocabulary_for(schemes, task))


def _challenge_fault(error: DataError, test: str) -> FailedError:
    """Return an error that blames the challenge, and quotes nothing of its answers."""
    where = f", line {error.line}, column {error.column}" if isinstance(error, MalformedLineError) else ""
    return FailedError(f"the challenge's files for {test} cannot be used ({type(error).__name__}{where})")
