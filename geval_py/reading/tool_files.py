"""Rows of JSON as lines of an output: distributions, and what evaluators, servers and pipelines write (``SHAPES``).

A row that a tool writes is known by a key. Of a server's response, the line has the alternatives for the first token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from geval_py.reading.files import File
from geval_py.reading.rows import (
    BUCKETS,
    ID,
    LOGARITHMS,
    PROBABILITIES,
    TOKEN,
    WORDS,
    Row,
    Rows,
    id_text,
    json_rows,
    line_of,
    line_of_entries,
    parsed_number,
    quoted,
    text_fault,
    words_of_choices,
)
from geval_py.text import some_of

Shape: TypeAlias = Callable[[Row, Mapping[str, Any]], str]

# Notes on what the scores of a file mean.
THINKING = "the first token of a response begins the model's thinking, not the answer: turn its thinking off"
MARKUP = "the first token of a response begins markup or JSON, not the answer: ask for the word alone"

PREDICTIONS, PREDICTION = "predictions", "pred"
LM_EVAL = "filtered_resps"

# Of an alternative: the keys of its text, and of its number. "token" is a number where there is a TOKEN.
TOKEN_KEYS = (TOKEN, "decoded_token", "tok_str", "token")
NUMBER_KEYS = {
    "logprob": LOGARITHMS,
    "logProbability": LOGARITHMS,
    "log_probability": LOGARITHMS,
    "prob": PROBABILITIES,
    "score": PROBABILITIES,
}
SERVERS_ID = r"(?s)^(chatcmpl|cmpl|resp)[-_].*"  # of OpenAI's responses, which match no answer
LISTS = ("top_logprobs", "top_probs", "probs", "candidates")  # the keys of a token's list of alternatives


def read_json(file: File) -> Rows:
    """Yield the ids and lines of JSON: distributions, or rows that other tools write, as their keys show."""
    for row, values in json_rows(file, kinds=(dict, list)):
        if isinstance(values, list):
            yield "", line_of_fill_mask(row, values)
        elif row.number == 1 and (tasks := _tasks(values)):
            for line in _lines_of_tasks(row, tasks, file.notes):
                yield "", line
        else:
            identity = re.sub(SERVERS_ID, "", id_text(values.get(ID)))
            if identity and len(values) > 1:
                del values[ID]  # the rest may be a map from words to numbers
            line = line_of_row(row, values)
            if row.number == 1 and len(values.get(LM_EVAL, ())) == 1:
                file.lists_answers_alone = True
            for beginnings, note in ((("<think>:", "<|channel|>:"), THINKING), (('{"', "**", "```"), MARKUP)):
                if line.startswith(beginnings) and note not in file.notes:
                    file.notes.append(note)
            yield identity, line


def line_of_row(row: Row, values: Mapping[str, Any]) -> str:
    """Write a map of JSON as a line: a map from words to probabilities, or a row in one of SHAPES."""
    if values and all(type(value) in (int, float) for value in values.values()):
        return line_of(row, {PROBABILITIES: values})
    return next((shape for key, shape in SHAPES.items() if key in values), line_of)(row, values)


# Rows of evaluators and pipelines


def line_of_lm_eval(row: Row, sample: Mapping[str, Any]) -> str:
    """Write a sample of a multiple-choice task that lm-evaluation-harness logs (``--log_samples``) as a line.

    The words are the choices, without the space before them; their numbers are the logarithms that the model gave.
    """
    if sample.get("doc_id") != row.number - 1:
        raise row.error(f"{row.number - 1} is wanted: a row for each document, in order, and one filter", "doc_id")
    answers, choices, numbers = sample[LM_EVAL], [], []
    for n, answer in enumerate(answers if isinstance(answers, list) else ()):
        if isinstance(sample.get("arguments"), list):
            raise row.error("it is a list, as old versions of the harness log it: log the samples again", "arguments")
        choice, missing = _followed(sample, f"arguments.gen_args_{n}.arg_1")
        if missing or not isinstance(choice, str) or not isinstance(answer, list) or len(answer) != 2:
            raise row.error("it is no log-probability of a choice: the task is no multiple choice", f"{LM_EVAL}[{n}]")
        choices.append(choice)
        numbers.append(parsed_number(str(answer[0]), row, f"{LM_EVAL}[{n}]"))
    return line_of_entries(row, words_of_choices(row, "arguments", choices), numbers, LOGARITHMS)


def line_of_fill_mask(row: Row, answers: Sequence[Any]) -> str:
    """Write what transformers' pipeline "fill-mask" returns for one gap as a line."""
    if not answers or not all(isinstance(one, dict) and {TOKEN, "score"} <= one.keys() for one in answers):
        raise row.error(f"a list of maps with {TOKEN} and score is wanted, of a text with one mask")
    return _line_of_alternatives(row, answers)


def _line_of_alternatives(row: Row, alternatives: Iterable[Mapping[str, Any]]) -> str:
    """Write tokens without the spaces around them as a line; one of white space alone is left to the rest."""
    words: list[Any] = []
    numbers: list[Any] = []
    number_key = "logprob"
    for alternative in alternatives:
        token = next((alternative[key] for key in TOKEN_KEYS if key in alternative), None)
        number_key = next((key for key in NUMBER_KEYS if key in alternative), number_key)
        word = token.strip() if isinstance(token, str) else token
        if word != "":
            words.append(word)
            numbers.append(alternative.get(number_key))
    return line_of_entries(row, words, numbers, NUMBER_KEYS[number_key]) if words else ":1"


# Responses of servers


def response(name: str, request: str, *paths: str) -> Shape:
    """Return the function that writes a server's response as a line.

    One of the ``paths`` leads to the first token. If there is nothing, the error says what to ``request``.
    """

    def line_of_response(row: Row, values: Mapping[str, Any]) -> str:
        missing = ""
        for path in paths:
            token, missing = _followed(values, path)
            if not missing:
                alternatives = _alternatives(token)
                if alternatives and all(isinstance(one, dict) for one in alternatives):
                    return _line_of_alternatives(row, alternatives)
                missing = f"{path} has no alternatives"
        raise row.error(f"it looks like {name}, but {missing}: {request}")

    return line_of_response


def _followed(value: Any, path: str) -> tuple[Any, str]:
    """Follow a path such as ``choices[0].logprobs``; return the value there, or None and what is missing."""
    for step in re.finditer(r"-?\w+", path):
        place = path[: step.end()] + "]" * (path[step.end() :][:1] == "]")
        try:
            value = value[int(step[0]) if place.endswith("]") else step[0]]
        except (LookupError, TypeError):
            return None, f"{place} is missing"
        if value is None:
            return None, f"{place} is null"
    return value, ""


def _alternatives(token: Any) -> list[Any]:
    """Return the alternatives of a token: in a list, or by their ids or texts; none for anything else."""
    if not isinstance(token, dict):
        return []
    for key in LISTS:
        if key in token:
            return token[key] if isinstance(token[key], list) else []
    if isinstance(token.get("token"), str):  # a token without alternatives
        return []
    return [one if isinstance(one, dict) else {"token": text, "logprob": one} for text, one in token.items()]


_TOP_LOGPROBS = "ask the server for top_logprobs"
# github.com/ggml-org/llama.cpp, tools/server/README.md and server-task.cpp (probs_vector_to_json): POST /completion.
# A token has "top_logprobs", with post_sampling_probs "top_probs", and in versions before December 2024 "probs".
_LLAMA_CPP = response("a response of llama.cpp", "ask the server for n_probs", "completion_probabilities[0]")
# github.com/ollama/ollama, docs/api.md; ollama-python #601: of generate and chat.
# A token of vLLM's CompletionOutput.logprobs is a map from ids to {"logprob", "rank", "decoded_token"}.
_OLLAMA = response("a response of Ollama", _TOP_LOGPROBS, "logprobs[0]")
SHAPES: dict[str, Shape] = {  # by a key of such rows
    WORDS: line_of,
    PROBABILITIES: line_of,
    BUCKETS: line_of,
    LM_EVAL: line_of_lm_eval,
    # platform.openai.com/docs/api-reference/chat/object, and the older completions/object
    "choices": response(
        "a response of OpenAI",
        _TOP_LOGPROBS,
        "choices[0].logprobs.content[0]",
        "choices[0].logprobs.top_logprobs[0]",
    ),
    "completion_probabilities": _LLAMA_CPP,
    "tokens_predicted": _LLAMA_CPP,
    # ai.google.dev/api/generate-content#LogprobsResult, and the names of google-genai's model_dump
    "candidates": response(
        "a response of Gemini",
        "ask for responseLogprobs, and for the number of alternatives as logprobs",
        "candidates[0].logprobs_result.top_candidates[0]",
        "candidates[0].logprobsResult.topCandidates[0]",
    ),
    # platform.openai.com/docs/api-reference/responses/object; what the model thought comes before the message
    "output": response(
        "a response of OpenAI's Responses API",
        "ask for top_logprobs, and include message.output_text.logprobs",
        "output[-1].content[0].logprobs[0]",
    ),
    # docs.vllm.ai/en/latest/api/vllm/outputs: RequestOutput
    "outputs": response("an output of vLLM", "ask for SamplingParams(logprobs=20)", "outputs[0].logprobs[0]"),
    LOGARITHMS: lambda row, values: (line_of if isinstance(values[LOGARITHMS], dict) else _OLLAMA)(row, values),
    "eval_count": _OLLAMA,
    "done": _OLLAMA,
    # platform.openai.com/docs/guides/batch: its rows are not in the order of the requests
    "custom_id": response("a row of OpenAI's Batch API", "sort by custom_id, and keep response.body", "choices"),
    "error": response("a server's error", "send the request again", "choices"),
}


# Predictions of BabyLM's evaluation (evaluation-pipeline-2025, --save_predictions, and its collated submissions):
# {TASK: {"predictions": [{"id": "TASK_0", "pred": …}, …]}}, or such maps in a map of benchmarks


def _tasks(document: Mapping[str, Any], *, are_benchmarks: bool = True) -> list[tuple[str, list[Any]]]:
    """Return the tasks of a file, or of one benchmark, with their predictions; [] if there are none."""
    tasks: list[tuple[str, list[Any]]] = []
    for name, value in document.items():
        inside = value if isinstance(value, dict) else {}
        if isinstance(inside.get(PREDICTIONS), list):
            tasks.append((name, inside[PREDICTIONS]))
        else:
            tasks += (_tasks(inside, are_benchmarks=False) if are_benchmarks else []) or [(name, [])]
    return tasks if any(predictions for _, predictions in tasks) else []


def _lines_of_tasks(row: Row, tasks: list[tuple[str, list[Any]]], notes: list[str]) -> Iterator[str]:
    """Yield the predictions of all tasks, in the order of the file: texts without the spaces around them, or classes.

    A note names the tasks of numbers, such as reading times, and others, which are left out.
    """
    left_out: list[str] = []
    for task, predictions in tasks:
        first = predictions[0] if predictions else 0.0
        if isinstance(first.get(PREDICTION) if isinstance(first, dict) else first, float | list):
            left_out.append(quoted(task))
            continue
        for n, one in enumerate(predictions):
            place = f"{quoted(task)}, {PREDICTIONS}[{n}]"
            identity = one.get(ID) if isinstance(one, dict) else None
            if not isinstance(identity, str) or not identity.endswith(f"_{n}"):
                raise row.error(f"an id that ends in _{n} is wanted", f"{place}.{ID}")
            prediction = one.get(PREDICTION)
            if not isinstance(prediction, str) and type(prediction) is not int:
                raise row.error("a text or a whole number is wanted", f"{place}.{PREDICTION}")
            line = str(prediction).strip()
            if fault := text_fault(line):
                raise row.error(fault, f"{place}.{PREDICTION}")
            yield line
    if len(left_out) == len(tasks):
        raise row.error(f"no task has texts or classes as {PREDICTIONS}; it has {some_of(left_out)}")
    if left_out:
        notes.append(f"tasks without texts or classes are left out: {some_of(left_out)}")
