"""Check the outputs of a submission and score them: what a child process does, with files of a stranger's.

Nothing of what it gives is made from the answers but scores, losses, and whether the lines are as many.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from geval_py.board.answers import expected_of
from geval_py.board.database.store import pack
from geval_py.board.submission import (
    Document,
    FailedError,
    Findings,
    Parcel,
    ReceivedOutput,
    RejectedError,
    Scored,
    parcel_of,
    read_document,
    write_document,
)
from geval_py.errors import DataError, GevalError, MalformedLineError, SchemeError
from geval_py.reading.config import config_task
from geval_py.reading.schemes import parse_schemes
from geval_py.reading.splits import locate
from geval_py.scoring.columns import select_schemes
from geval_py.scoring.evaluate import evaluate_output, library_signature, vocabulary_for
from geval_py.scoring.scores import MetricScore, ScoredOutput, Signature
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.checking.targets import Target


def look(arguments: Document, max_bytes: int) -> Findings:
    """Check a parcel and score what is wanted of it; raises RejectedError, FailedError."""
    parcel = parcel_of(arguments["parcel"])
    problems: list[Document] = []
    if arguments["check"]:
        problems = check(parcel, arguments["challenge"], arguments["answers"], max_bytes)
        reason = _reason(problems)
        if reason:
            return Findings(problems=tuple(problems), reason=reason, digests={})
    digests: dict[str, str] = {}
    scored: list[Scored] = []
    for test, name, metrics in arguments["wanted"]:
        (file,) = (file for file in parcel.files if file.name == name)
        found = _scored(file.path, name, test, metrics, arguments)
        digests[name] = found[0].output_sha256
        scored += found
    return Findings(problems=tuple(problems), digests=digests, scored=tuple(scored))


def check(parcel: Parcel, challenge: str, answers: str, max_bytes: int) -> list[Document]:
    """Check all outputs by the rules of ``geval check`` that need no answers; gives documents of the problems."""
    from geval_py.checking.check import check_targets
    from geval_py.checking.problem_formats import problem_document
    from geval_py.checking.rules import RULES

    rules = frozenset(rule.code for rule in RULES if not rule.needs_answers)
    paths = {file.name: file.path for file in parcel.files}
    problems: list[Document] = []
    for output in parcel.outputs:
        target = _target(output, paths[output.file], challenge, answers)
        report = check_targets([target], rules, max_bytes=max_bytes)
        if report.unreadable:
            raise _own_fault(report.unreadable[0], output.test)
        problems += (problem_document(replace(one, path=output.file)) for one in report.problems)
    return problems


def _target(output: ReceivedOutput, path: str, challenge: str, answers: str) -> Target:
    """Say what is checked; the answers are there for the number of their lines alone."""
    from geval_py.checking.targets import Target, with_options

    try:
        expected = expected_of(challenge, answers, output.test)
    except DataError as error:
        raise _own_fault(error, output.test) from error
    return replace(with_options(Target(output=path, expected=expected), challenge), words_are_plain=False)


def _reason(problems: Sequence[Document]) -> str:
    """Say in one line why a submission is rejected; "" where no problem is an error."""
    errors = [problem for problem in problems if problem["severity"] == "error"]
    if not errors:
        return ""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"`{visible(first['path'])}`: {first['summary']} [{first['rule']}]{more}"


def _scored(path: str, name: str, test: str, metrics: Sequence[str], arguments: Document) -> list[Scored]:
    """Score an output with some metrics; one beside that which ranks, whose filter selects no line, has no value."""
    try:
        evaluation, had = _evaluated(path, test, metrics, arguments)
    except GevalError as error:
        if isinstance(error, DataError | SchemeError) and error.path == path:
            raise RejectedError(reason=f"`{visible(name)}`: {_without_path(error, path, name)}") from error
        if isinstance(error, DataError):
            raise _own_fault(error, test) from error
        raise FailedError(reason=f"{test} cannot be scored: {str(error).partition(chr(10))[0]}") from error
    found = _scores(evaluation, test, had, arguments["metric"], arguments["seed"])
    of = {one.metric: one for one in found}
    none = replace(found[0], signature="", lines=0, score=None, low=None, high=None, losses=None)
    return [of.get(metric) or replace(none, metric=metric) for metric in metrics]


def _evaluated(
    path: str, test: str, metrics: Sequence[str], arguments: Document
) -> tuple[ScoredOutput, Sequence[str]]:
    """Score with all metrics of which some line is, or with that which ranks if there is none; gives them too."""
    ranks, left = arguments["metric"], list(metrics)
    while True:
        try:
            had = left or [ranks]
            return _evaluate(path, test, had, arguments), had
        except SchemeError as error:
            others = [metric for metric in left if metric == ranks or _text_of(metric) != error.scheme]
            if error.path != path or len(others) == len(left):
                raise
            left = others


def _text_of(metric: str) -> str:
    (scheme,) = parse_schemes(metric)
    return scheme.text


def _evaluate(path: str, test: str, metrics: Sequence[str], arguments: Document) -> ScoredOutput:
    """Score an output with some metrics, each named by one scheme; raises GevalError."""
    challenge = arguments["challenge"]
    task = config_task(challenge)
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
    split = locate(task)
    schemes = select_schemes(task)
    return evaluate_output(split, split.outputs[0], schemes, vocabulary_for(schemes, task), sign=True)


def _without_path(error: GevalError, path: str, name: str) -> str:
    """Say what is wrong with an output in one line, under the name that it came with."""
    said = error.message if isinstance(error, SchemeError) else str(error).replace(path, visible(name))
    return "; ".join(line.strip() for line in said.splitlines()[:2])


def _own_fault(error: DataError, test: str) -> FailedError:
    """Say that the challenge is at fault, and not what stands in its answers."""
    where = f", line {error.line}, column {error.column}" if isinstance(error, MalformedLineError) else ""
    return FailedError(reason=f"the challenge's files for {test} cannot be used ({type(error).__name__}{where})")


def _scores(evaluation: ScoredOutput, test: str, metrics: Sequence[str], main: str, seed: int) -> list[Scored]:
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


def _signature_of(score: MetricScore, signature: Signature) -> Signature:
    """Give the signature of one of the scores that were made together: what it does not depend on is left out."""
    needs_input = score.metric.needs_input or any(name.startswith("in") for name in score.scheme.filters)
    return signature.replace(
        metrics=(score.scheme.text,),
        bits=(score.metric.bits,),
        lines=score.statistics.lines,
        input=signature.input if needs_input else None,
        header=signature.header if needs_input else None,
        vocabulary=signature.vocabulary if score.metric.needs_vocabulary else None,
        tokenizer=score.scheme.tokenizer,
        library=library_signature([score]),
    )


def _with_losses(scored: Scored, score: MetricScore, seed: int) -> Scored:
    """Add the line statistics, one column after the other; the 95 % interval of what is not made from their sums."""
    if score.metric.measure.of_sums and not score.statistics.classes:
        return replace(scored, losses=pack(score.statistics.columns))
    from geval_py.board.ranking.uncertainty import SAMPLES, interval_ends
    from geval_py.explaining.bootstrap import interval

    low, high = interval_ends(interval(score.metric, score.statistics, samples=SAMPLES, seed=seed))
    return replace(scored, low=low, high=high)


# The child process that looks into a submission, started by :mod:`geval_py.board.intake.sandbox`.


JOB_FILE, ANSWER_FILE = "job.json", "answer.json"
NICENESS = 10


def main(place: str) -> int:
    """Do the job in a place; gives the exit status, 0 wherever there is an answer."""
    document = read_document(os.path.join(place, JOB_FILE))
    limits = document["limits"]
    _limit(limits)
    write_document(os.path.join(place, ANSWER_FILE), _answer(document, limits, place))
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


def _limit(limits: Document) -> None:
    """Limit memory, processor time (that of all cores together) and the size of files; no core is dumped."""
    if sys.platform == "win32":
        return  # the wall clock alone, which the parent holds
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
    from geval_py.board.intake.contents import Sets
    from geval_py.board.intake.members import Budget
    from geval_py.board.intake.receiving import receive
    from geval_py.board.submission import parcel_document

    budget = Budget(bytes=limits["bytes"], files=limits["files"], ends=time.monotonic() + limits["seconds"])
    sets = Sets(tests=arguments["tests"], to_come=arguments["to_come"])
    parcel = receive(arguments["source"], place, budget, sets, arguments["transports"])
    return parcel_document(parcel)


def _look(arguments: Document, limits: Document, place: str) -> Document:
    from geval_py.board.submission import findings_document

    del place
    return findings_document(look(arguments, limits["bytes"]))


JOBS = {"receive": _receive, "look": _look}
