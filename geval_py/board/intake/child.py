"""The child process of the sandbox: receives a submission, or checks and scores its outputs.

Its answers reveal no more of the hidden answers than scores, losses, and whether the number of lines is right.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from geval_py.board import submission
from geval_py.board.references import expected_of
from geval_py.board.submission import (
    REPORT_FILE,
    Document,
    FailedError,
    Findings,
    Parcel,
    ReceivedOutput,
    RejectedError,
    Scored,
)
from geval_py.errors import DataError, GevalError, MalformedLineError, SchemeError, UsageError
from geval_py.reading import config, splits
from geval_py.reading.outputs import output_at
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring import evaluate, scores
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.checking.targets import Target


NICENESS = 10
WATCH_SECONDS = 1  # between two looks at whether the parent lives


def main(place: str, parent: int) -> int:
    """Do the job in a place and write the answer; return the exit status 0. ``parent`` is the id of the parent."""
    document = submission.read_document(os.path.join(place, submission.JOB_FILE))
    limits = document["limits"]
    _watch_parent(parent)
    _set_limits(limits)
    submission.write_document(os.path.join(place, submission.ANSWER_FILE), _answer(document, limits, place))
    return 0


def _answer(document: Document, limits: Document, place: str) -> Document:
    try:
        return {"result": JOBS[document["job"]](document["arguments"], limits, place)}
    except RejectedError as error:
        return {"rejected": error.reason, "aside": error.aside}
    except FailedError as error:
        return {"failed": error.reason, "aside": error.aside}
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


def _set_limits(limits: Document) -> None:
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


def _receive(arguments: Document, limits: Document, place: str) -> Document:
    from geval_py.board.intake.receiving import receive
    from geval_py.board.intake.sources import Budget

    ends = time.monotonic() + limits["seconds"]
    budget = Budget(bytes=limits["bytes"], files=limits["files"], listed=limits["listed"], ends=ends)
    named = {name: arguments[name] for name in ("tests", "variants", "transports")}
    return submission.parcel_document(receive(arguments["source"], place, budget, **named))


def _check_and_score(arguments: Document, limits: Document, _: str) -> Document:
    parcel = submission.parcel_of(arguments["parcel"])
    problems: list[Document] = []
    if arguments["check"]:
        problems = check(parcel, arguments["challenge"], arguments["answers"], limits["bytes"])
        reason = _reason(problems)
        if reason:
            return submission.findings_document(Findings(problems=tuple(problems), reason=reason, digests={}))
    digests: dict[str, str] = {}
    scored: list[Scored] = []
    for test, name, metrics in arguments["wanted"]:
        (file,) = (file for file in parcel.files if file.name == name)
        found = _scored(file.path, name, test, metrics, arguments)
        digests[name] = found[0].output_sha256
        scored += found
    findings = Findings(problems=tuple(problems), digests=digests, scored=tuple(scored))
    return submission.findings_document(findings)


def _report(arguments: Document, _: Document, place: str) -> Document:
    """Write the page that ``geval report`` makes of an output, and name it."""
    from geval_py.reading.challenge import Challenge
    from geval_py.reports.page import page
    from geval_py.reports.report import Report

    path, test, metric = (arguments[name] for name in ("path", "test", "metric"))
    challenge = arguments["challenge"]
    try:
        evaluation = _evaluate(path, test, [metric], {**arguments, "answers": challenge}, keep_texts=True)
        text = page(Report(evaluation), Challenge.open(challenge).title)
    except GevalError as error:
        raise FailedError(reason=visible(str(error).partition("\n")[0].replace(path, arguments["name"]))) from error
    with open(os.path.join(place, REPORT_FILE), "w", encoding="utf-8") as file:
        file.write(text)
    return {"page": REPORT_FILE}


JOBS = {"receive": _receive, "score": _check_and_score, "report": _report}


def check(parcel: Parcel, challenge: str, answers: str, max_bytes: int) -> list[Document]:
    """Check all outputs by the rules of ``geval check`` that need no answers; return the problems as documents."""
    from geval_py.checking.check import check_targets
    from geval_py.checking.problem_formats import problem_document
    from geval_py.checking.rules import RULES

    rules = frozenset(rule.code for rule in RULES if not rule.needs_answers)
    paths = {file.name: file.path for file in parcel.files}
    problems: list[Document] = []
    for output in parcel.outputs:
        target = _target(output, paths[output.file], challenge, answers)
        try:
            report = check_targets([target], rules, max_bytes=max_bytes)
        except UsageError as error:  # this machine lacks what reads the format
            raise FailedError(
                reason=f"`{visible(output.file)}` cannot be read here: {visible(str(error))}"
            ) from error
        if report.unreadable:
            raise _challenge_fault(report.unreadable[0], output.test)
        problems += (problem_document(replace(one, path=output.file)) for one in report.problems)
    return problems


def _target(output: ReceivedOutput, path: str, challenge: str, answers: str) -> Target:
    """Return the target of the checks; of the answers only the number of lines is used."""
    from geval_py.checking.targets import Target, with_options

    try:
        expected = expected_of(challenge, answers, output.test)
    except DataError as error:
        raise _challenge_fault(error, output.test) from error
    target = Target(output=output_at(path).path, expected=expected)
    return replace(with_options(target, challenge), words_are_plain=False)


def _reason(problems: Sequence[Document]) -> str:
    """Describe in one line why a submission is rejected; "" if no problem is an error."""
    errors = [problem for problem in problems if problem["severity"] == "error"]
    if not errors:
        return ""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"`{visible(first['path'])}`: {first['summary']} [{first['rule']}]{more}"


def _scored(path: str, name: str, test: str, metrics: Sequence[str], arguments: Document) -> list[Scored]:
    """Score an output; a metric other than the ranking one has no value if its filter selects no line."""
    try:
        evaluation, kept = _evaluate_kept(path, test, metrics, arguments)
    except GevalError as error:
        if isinstance(error, DataError | SchemeError) and error.path == path:
            raise RejectedError(reason=f"`{visible(name)}`: {_without_path(error, path, name)}") from error
        if isinstance(error, DataError):
            raise _challenge_fault(error, test) from error
        raise FailedError(reason=f"{test} cannot be scored: {str(error).partition(chr(10))[0]}") from error
    found = _scores(evaluation, test, kept, arguments["metric"], arguments["seed"])
    of = {one.metric: one for one in found}
    none = replace(found[0], signature="", lines=0, score=None, low=None, high=None, losses=None)
    return [of.get(metric) or replace(none, metric=metric) for metric in metrics]


def _evaluate_kept(
    path: str, test: str, metrics: Sequence[str], arguments: Document
) -> tuple[scores.ScoredOutput, Sequence[str]]:
    """Score by the metrics whose filters select a line, at least by the ranking one; return these metrics too."""
    ranking, left = arguments["metric"], list(metrics)
    while True:
        kept = left or [ranking]
        try:
            return _evaluate(path, test, kept, arguments), kept
        except SchemeError as error:
            others = [one for one in left if one == ranking or parse_schemes(one)[0].text != error.scheme]
            if error.path != path or len(others) == len(left):
                raise
            left = others


def _evaluate(
    path: str, test: str, metrics: Sequence[str], arguments: Document, *, keep_texts: bool = False
) -> scores.ScoredOutput:
    challenge = arguments["challenge"]
    task = config.config_task(challenge)
    task = replace(
        task,
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
    return evaluate.evaluate_output(split, split.outputs[0], schemes, vocabulary, sign=True, keep_texts=keep_texts)


def _without_path(error: GevalError, path: str, name: str) -> str:
    """Return the error of an output on one line, with the submitted name in place of the path."""
    message = error.message if isinstance(error, SchemeError) else str(error).replace(path, visible(name))
    return "; ".join(line.strip() for line in message.splitlines()[:2])


def _challenge_fault(error: DataError, test: str) -> FailedError:
    """Return an error that blames the challenge, and quotes nothing of its answers."""
    where = f", line {error.line}, column {error.column}" if isinstance(error, MalformedLineError) else ""
    return FailedError(reason=f"the challenge's files for {test} cannot be used ({type(error).__name__}{where})")


def _scores(evaluation: scores.ScoredOutput, test: str, metrics: Sequence[str], main: str, seed: int) -> list[Scored]:
    signature = evaluation.signature
    if signature is None or signature.output is None:
        raise FailedError(reason=f"{test} was scored without a signature")
    scored = []
    for metric, score in zip(metrics, evaluation.scores, strict=True):
        one = Scored(
            test=test,
            output_sha256=signature.output,
            metric=metric,
            signature=str(_signature_of(score, signature)),
            lines=score.statistics.lines,
            score=None if math.isnan(score.value) else score.value,
        )
        scored.append(_with_losses(one, score, seed) if metric == main else one)
    return scored


def _signature_of(score: scores.MetricScore, signature: scores.Signature) -> scores.Signature:
    """Return the signature of one of the scores, without the parts that it does not depend on."""
    needs_input = score.metric.needs_input or any(name.startswith("in") for name in score.scheme.filters)
    return signature.replace(
        metrics=(score.scheme.text,),
        bits=(score.metric.bits,),
        lines=score.statistics.lines,
        input=signature.input if needs_input else None,
        header=signature.header if needs_input else None,
        vocabulary=signature.vocabulary if score.metric.needs_vocabulary else None,
        tokenizer=score.scheme.tokenizer,
        library=evaluate.library_signature([score]),
    )


def _with_losses(scored: Scored, score: scores.MetricScore, seed: int) -> Scored:
    """Add the line statistics or, for a metric that is no function of their sums, the 95 % interval."""
    if score.metric.measure.of_sums and not score.statistics.classes:
        return replace(scored, losses=submission.pack(score.statistics.columns))
    from geval_py.board.ranking.uncertainty import SAMPLES
    from geval_py.explaining.statistics import interval

    low, high = interval(score.metric, score.statistics, samples=SAMPLES, seed=seed).ends
    return replace(scored, low=low, high=high)
