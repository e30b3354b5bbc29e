"""Files that other tools write, as lines of an output: logs of evaluators and servers, n-best lists, predictions.

Samples of lm-evaluation-harness and responses of servers are JSON lines, and are known by a key. N-best lists of
Moses and Marian, and predictions of BabyLM's evaluation, have endings of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby, islice
from typing import Any

from geval_py.errors import UnreadableFileError
from geval_py.reading.files import naming
from geval_py.reading.lines import read_lines
from geval_py.reading.rows import (
    LOGARITHMS,
    PROBABILITIES,
    SCORE,
    TOKEN,
    Lines,
    Row,
    json_rows,
    line_of,
    line_of_entries,
    parsed_number,
    quoted,
    word_fault,
    words_of_choices,
)
from geval_py.text import some_of

MAX_HYPOTHESES = 1 << 20  # of a list
SEPARATOR = "|||"
_SURROGATE = re.compile("[\ud800-\udfff]")  # what UTF-8 cannot encode
PREDICTIONS, PREDICTION = "predictions", "pred"
LM_EVAL, OPENAI, BATCH_API = "filtered_resps", "choices", "custom_id"  # keys that only logged rows have


def read_json_lines(path: str, *, max_bytes: int | None = None) -> Lines:
    """Yield the lines of JSON: distributions, or rows that other tools log, as their keys show."""
    for row, values in json_rows(path, max_bytes, kinds=(dict, list)):
        if isinstance(values, list):
            yield line_of_fill_mask(row, values)
        elif row.number == 1 and _are_predictions(values):
            yield from _lines_of_predictions(path, values)
        elif values and all(type(value) in (int, float) for value in values.values()):
            yield line_of(row, {PROBABILITIES: values})
        elif LM_EVAL in values:
            yield line_of_lm_eval(row, values)
        elif OPENAI in values:
            yield line_of_openai(row, values)
        elif BATCH_API in values and "response" in values:
            what = "the Batch API's output is not in the order of the requests"
            raise row.error(f"{what}: sort it, and keep the body of each response", BATCH_API)
        else:
            yield line_of(row, values)


def logs_answers_alone(path: str) -> bool:
    """Whether the rows are samples of lm-evaluation-harness with one candidate, as the first one shows."""
    _, first = next(json_rows(path, kinds=(dict, list)), (None, None))
    resps = first.get(LM_EVAL) if isinstance(first, dict) else None
    return isinstance(resps, list) and len(resps) == 1


def line_of_lm_eval(row: Row, sample: Mapping[str, Any]) -> str:
    """Write a sample of a multiple-choice task that lm-evaluation-harness logs (``--log_samples``) as a line.

    The words are the choices, without the space before them; their numbers are the logarithms that the model gave.
    """
    if sample.get("doc_id") != row.number - 1:
        raise row.error(f"{row.number - 1} is wanted: a row for each document, in order, and one filter", "doc_id")
    arguments, answers = sample.get("arguments"), sample.get(LM_EVAL)
    if isinstance(arguments, dict):  # older versions write a list of lists
        arguments = [
            [one.get("arg_0"), one.get("arg_1")] if isinstance(one, dict) else one for one in arguments.values()
        ]
    if not isinstance(arguments, list) or not isinstance(answers, list) or len(arguments) != len(answers):
        raise row.error(f"an argument is wanted for each of the {LM_EVAL}", "arguments")
    words: list[str] = []
    numbers: list[float] = []
    for n, (argument, answer) in enumerate(zip(arguments, answers, strict=True)):
        choice = argument[1] if isinstance(argument, list) and len(argument) > 1 else None
        if not isinstance(choice, str) or not isinstance(answer, list) or len(answer) != 2:
            raise row.error("it is no log-probability of a choice: the task is no multiple choice", f"{LM_EVAL}[{n}]")
        words.append(choice)
        numbers.append(parsed_number(str(answer[0]), row, f"{LM_EVAL}[{n}]"))
    words = words_of_choices(row, "arguments", words)
    return line_of_entries(
        row, words, numbers, LOGARITHMS, lambda n: f"{LM_EVAL}[{n}]", lambda n: f"arguments[{n}].arg_1"
    )


def line_of_fill_mask(row: Row, answers: list[Any]) -> str:
    """Write what transformers' pipeline "fill-mask" returns for one gap as a line.

    Tokens lose the spaces around them. A token of white space alone is no word, and is left to the rest.
    """
    if not answers or not all(isinstance(one, dict) and {TOKEN, SCORE} <= one.keys() for one in answers):
        raise row.error(f"a list of maps with {TOKEN} and {SCORE} is wanted, of a text with one mask")
    return _line_of_tokens(row, [(one[TOKEN], one[SCORE]) for one in answers], PROBABILITIES, "")


def _line_of_tokens(row: Row, tokens: Iterable[tuple[Any, Any]], unit: str, place: str) -> str:
    """Write tokens without the spaces around them as a line; one of white space alone is left to the rest."""
    words: list[Any] = []
    numbers: list[Any] = []
    for token, number in tokens:
        word = token.strip() if isinstance(token, str) else token
        if word != "":
            words.append(word)
            numbers.append(number)
    return line_of_entries(row, words, numbers, unit, lambda n: f"{place}{quoted(words[n])}")


def line_of_openai(row: Row, response: Mapping[str, Any]) -> str:
    """Write the first token's alternatives in a response of an OpenAI-style server (``top_logprobs``) as a line.

    Chats have ``choices[0].logprobs.content[0].top_logprobs``, completions ``choices[0].logprobs.top_logprobs[0]``.
    Tokens lose the spaces around them. A token of white space alone is no word, and is left to the rest.
    """
    place, tokens = f"{OPENAI}[0].logprobs.top_logprobs[0]", None
    with suppress(LookupError, TypeError, AttributeError):  # a stranger's response has any form
        logprobs = response[OPENAI][0]["logprobs"]
        if logprobs.get("content") is None:
            tokens = logprobs["top_logprobs"][0]
        else:
            place = f"{OPENAI}[0].logprobs.content[0].top_logprobs"
            tokens = logprobs["content"][0]["top_logprobs"]
    if isinstance(tokens, dict):
        tokens = [{"token": token, "logprob": number} for token, number in tokens.items()]
    if not isinstance(tokens, list) or not tokens or not all(isinstance(one, dict) for one in tokens):
        raise row.error("the alternatives of the first token are wanted: ask the server for top_logprobs", place)
    return _line_of_tokens(row, [(one.get("token"), one.get("logprob")) for one in tokens], LOGARITHMS, f"{place}: ")


# N-best lists: a hypothesis a line, as Moses (-n-best-list) and Marian (--n-best) write them


def read_best(path: str, *, max_bytes: int | None = None) -> Lines:
    """Yield the hypothesis with the highest score of each list; of equal ones the first."""
    for _, hypotheses in _nbest_lists(path, max_bytes):
        yield max(hypotheses, key=lambda one: one[2])[1]


def read_nbest_words(path: str, *, max_bytes: int | None = None) -> Lines:
    """Yield each list as a line: the hypotheses are words, and their scores are logarithms."""
    for row, hypotheses in _nbest_lists(path, max_bytes):
        for word_row, word, _ in hypotheses:
            if (reason := word_fault(word)) is not None:
                raise word_row.error(f"{reason}; a list of texts ends in .nbest, without .words")
        _, words, numbers = zip(*hypotheses, strict=True)
        yield line_of_entries(row, words, numbers, LOGARITHMS, lambda n: f"hypothesis {n + 1}")


def _nbest_lists(path: str, max_bytes: int | None) -> Iterator[tuple[Row, list[tuple[Row, str, float]]]]:
    """Yield the first row of each list and its hypotheses: their row, text and score.

    Lists are numbered from 0; one without hypotheses is missing, which is an error.
    """

    def hypotheses() -> Iterator[tuple[str, tuple[Row, str, float]]]:
        for number, line in enumerate(read_lines(path, max_bytes=max_bytes), 1):
            row = Row(path, number)
            fields = [field.strip() for field in line.split(SEPARATOR)]
            if len(fields) < 4:
                raise row.error("`number ||| text ||| features ||| score` is wanted")
            yield fields[0], (row, fields[1], parsed_number(fields[3], row, "score"))

    for place, (number, group) in enumerate(groupby(hypotheses(), key=lambda one: one[0])):
        members = [one for _, one in islice(group, MAX_HYPOTHESES + 1)]
        row = members[0][0]
        if number != str(place):
            raise row.error(f"{place} is wanted, not {quoted(number)}: lists are numbered from 0", "number")
        if len(members) > MAX_HYPOTHESES:
            raise row.error(f"the list has more than {MAX_HYPOTHESES} hypotheses")
        yield row, members


# Predictions of BabyLM's evaluation (evaluation-pipeline-2025, --save_predictions, and its collated submissions)


def read_predictions(path: str, *, max_bytes: int | None = None) -> Lines:
    """Yield the predictions of all tasks of words, in the order of the file, as texts without the spaces around them.

    ``{TASK: {"predictions": [{"id": "TASK_0", "pred": …}, …]}}``, or such maps in a map of benchmarks. A prediction
    is a text, or the number of a class; other tasks are left out.
    """
    documents = [document for _, document in json_rows(path, max_bytes)]
    if len(documents) != 1 or not _are_predictions(documents[0]):
        raise UnreadableFileError(path=path, reason=f"a map of tasks is wanted, each with {PREDICTIONS}")
    yield from _lines_of_predictions(path, documents[0])


def notes_on_json(path: str) -> Iterator[str]:
    """Yield what a user should know of a file of JSON: the tasks of BabyLM that are left out."""
    _, document = next(json_rows(path, kinds=(dict, list)), (None, None))  # the first shows what the file holds
    if isinstance(document, dict) and _are_predictions(document):
        left_out = [quoted(task) for task, predictions in _tasks(document) if predictions is None]
        if left_out:
            yield f"tasks without texts or classes are left out: {some_of(left_out)}"


def _is_task(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(PREDICTIONS), list)


def _are_predictions(document: Mapping[str, Any]) -> bool:
    """Whether a map has tasks, or benchmarks of tasks."""
    values = document.values()
    return any(_is_task(one) or (isinstance(one, dict) and any(map(_is_task, one.values()))) for one in values)


def _tasks(document: Mapping[str, Any], *, are_benchmarks: bool = True) -> Iterator[tuple[str, list[Any] | None]]:
    """Yield the tasks of a file and their predictions; None for those of numbers, such as reading times."""
    for name, value in document.items():
        if _is_task(value):
            first = value[PREDICTIONS][0] if value[PREDICTIONS] else None
            one = first.get(PREDICTION) if isinstance(first, dict) else first
            yield name, None if isinstance(one, float | list) else value[PREDICTIONS]
        else:
            inside = list(_tasks(value, are_benchmarks=False)) if are_benchmarks and isinstance(value, dict) else []
            is_of_words = any(predictions is not None for _, predictions in inside)
            yield from inside if is_of_words else [(name, None)]


def _lines_of_predictions(path: str, document: Mapping[str, Any]) -> Lines:
    tasks = list(_tasks(document))
    with naming(path):
        if all(predictions is None for _, predictions in tasks):
            names = some_of(quoted(task) for task, _ in tasks)
            raise ValueError(f"no task has texts or classes as {PREDICTIONS}; it has {names}")
        for task, predictions in tasks:
            for n, one in enumerate(predictions or ()):
                place = f"{quoted(task)}, {PREDICTIONS}[{n}]"
                identity = one.get("id") if isinstance(one, dict) else None
                if not isinstance(identity, str) or not identity.endswith(f"_{n}"):
                    raise ValueError(f"{place}.id: an id that ends in _{n} is wanted")
                prediction, place = one.get(PREDICTION), f"{place}.{PREDICTION}"
                if isinstance(prediction, str):
                    line = prediction.strip()
                    if "\n" in line or "\r" in line or _SURROGATE.search(line):
                        raise ValueError(f"{place}: {quoted(prediction)} is not a line of text")
                    yield line
                elif type(prediction) is int:
                    yield str(prediction)
                else:
                    raise ValueError(f"{place}: a text or a whole number is wanted")
