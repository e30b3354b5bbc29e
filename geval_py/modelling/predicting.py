"""Models of word gaps by their addresses, the lines that they write, and the journal of long runs.

A journal is a file of JSON lines that only grows: an object, which says what work follows, and then a string for each
line of the output that is done. A process that is killed loses the item that it was at.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

from geval_py.errors import ModelError, UsageError
from geval_py.modelling import (
    baselines,
    chat_models,
    corpus,
    gap_models,
    language_models,
    masked_models,
    served_models,
    word_search,
)
from geval_py.reading.items import Item
from geval_py.scoring import writing
from geval_py.text import counted, named, suggestion, visible

ENDINGS = {"gguf": "gguf", "arpa": "arpa"}
MEANT = {  # the address in the place of one without its kind, by what stands before the colon
    "http": "openai:{0}", "https": "openai:{0}", "ollama": "openai:http://localhost:11434/v1#{1}",
    "huggingface": "hf:{1}", "vllm": "openai:http://localhost:8000/v1#{1}",
    "anthropic": "chat:https://api.anthropic.com/v1#{1}",
}  # fmt: skip
DIGESTS = "_sha256"  # ends the names of what a journal knows by digests of its files
FIRST_GAPS = 3  # a model that lists no word in any of them is at fault


class Options(NamedTuple):
    """How a model is opened and asked.

    It lists so many ``words`` on a line. So many tokens of the right context judge the likeliest words, too, and so
    many ``candidates`` of the baseline ngram-both are tried. N-grams have ``order`` words.
    ``parallel`` requests are sent at once to a server. It
    may ask to ``wait`` so many seconds; ``threads`` are llama.cpp's, by default one a core; ``dtype`` and ``device``
    are transformers'. A chat model is asked by a ``template`` and, if ``answers`` are to be counted, so many times.
    """

    words: int = baselines.TOP
    right_tokens: int = 0
    candidates: int = 0
    order: int = gap_models.ORDER
    parallel: int = 4
    wait: int = served_models.WAIT
    threads: int | None = None
    dtype: str | None = None
    device: str = "auto"
    template: str | None = None
    answers: int = 0


DEFAULTS = Options()


def _transformers_model(name: str, options: Options) -> baselines.WordModel:
    """Open a model of transformers by its kind: causal, masked, or encoder-decoder."""
    kind = language_models.kind_of(name)
    if kind != "causal" and options.right_tokens:
        sees = f"`hf:{visible(name)}`, of the kind {kind}, sees all of the right context"
        raise UsageError(f"{sees}: leave out --right-tokens")
    if kind == "masked":
        return masked_models.Masked(name, options.words, options.dtype, options.device)
    if kind == "encoder-decoder":
        return _searched(language_models.EncoderDecoder(name, options.dtype, options.device), options)
    return _searched(language_models.Causal(name, options.dtype, options.device), options)


def _searched(model: word_search.TokenModel, options: Options) -> word_search.WordSearch:
    return word_search.WordSearch(model, options.words, right=options.right_tokens)


class Model(NamedTuple):
    """A kind of model: its address, its summary, what opens it, the options that it heeds beside ``words``."""

    address: str
    summary: str
    make: Callable[[str, Options], baselines.WordModel]
    options: tuple[str, ...] = ()
    contexts: int = 1  # that it reads
    learns: bool = False  # it has to learn from train


OF_SEARCH = ("right_tokens", "candidates")
MODELS = {
    "rest": Model(
        "rest", "`:1` in each line, which is no guess",
        lambda _, options: baselines.ShareModel(options.words, "rest"), learns=True,
    ),
    "uniform": Model(
        "uniform", "the most frequent words of train, with equal probabilities",
        lambda _, options: baselines.ShareModel(options.words, "uniform"), learns=True,
    ),
    "unigram": Model(
        "unigram", "the words of train, with their relative frequencies",
        lambda _, options: baselines.ShareModel(options.words, "unigram"), learns=True,
    ),
    "document": Model(
        "document", "the words of the document, to be mixed with another output",
        lambda _, options: baselines.DocumentModel(options.words), contexts=2, learns=True,
    ),
    "ngram": Model(
        "ngram", "words predicted from the left context by n-grams",
        lambda _, options: gap_models.NgramGapModel(options.words, sides=1, order=options.order), ("order",),
        learns=True,
    ),
    "ngram-both": Model(
        "ngram-both", "words predicted from both contexts by n-grams",
        lambda _, options: gap_models.NgramGapModel(options.words, sides=2, order=options.order), ("order",),
        contexts=2, learns=True,
    ),
    "kenlm": Model(
        "kenlm:FILE", "the most frequent words of train, scored by an ARPA file",
        lambda path, options: baselines.FrequentWordScorer(path, options.words), contexts=2, learns=True,
    ),
    "arpa": Model(
        "arpa:FILE", "n-grams, by the left context",
        lambda path, options: baselines.NextWordModel(path, options.words),
    ),
    "gguf": Model(
        "gguf:FILE", "llama.cpp, in this process (llama-cpp-python)",
        lambda path, options: _searched(language_model(f"gguf:{path}", options), options), (*OF_SEARCH, "threads"),
    ),
    "hf": Model(
        "hf:NAME-OR-FOLDER", "transformers; hf:NAME@REVISION; the folder of a LoRA adapter",
        _transformers_model, (*OF_SEARCH, "dtype", "device"),
    ),
    "openai": Model(
        "openai:URL#MODEL", "a server of the completions protocol, such as llama.cpp's or vLLM's",
        lambda place, options: _searched(served_models.Served(place, options.parallel, options.wait), options),
        (*OF_SEARCH, "parallel", "wait"),
    ),
    "chat": Model(
        "chat:URL#MODEL", "a chat model on a server, which is asked for the word",
        lambda place, options: chat_models.Chat(
            place, options.words, options.parallel, options.answers, options.template, options.wait
        ),
        ("parallel", "wait", "template", "answers"), contexts=2,
    ),
}  # fmt: skip
ADDRESSES = [model.address for model in MODELS.values()]


def kind_of(address: str) -> Model:
    """Return the kind of a model by its address; raises UsageError, with what may be meant."""
    kind, _, place = address.partition(":")
    model = MODELS.get(kind)
    if model and (model.address == address or (place and ":" in model.address)):
        return model
    endings = os.path.basename(address).lower().split(".")[1:] if os.path.exists(address) else []
    of_file = next((ENDINGS[ending] for ending in endings if ending in ENDINGS), None)
    if of_file or os.path.isdir(address):
        advice = f"`{visible(address)}` is there: did you mean `{of_file or 'hf'}:{visible(address)}`?"
    elif kind in MEANT:
        advice = f"did you mean `{visible(MEANT[kind].format(address, place))}`?"
    else:
        likely = "chat:http://localhost:11434/v1#" if ":" in address else "hf:"  # Ollama's models are NAME:TAG
        near = suggestion(kind, MODELS, "{}") or f"did you mean `{likely}{visible(address)}`? "
        advice = f"{'' if model else near}a model is {', '.join(ADDRESSES)}"
    fault = f"`{visible(address)}` names no model" if model else f"there is no model `{visible(address)}`"
    raise UsageError(f"{fault}\n  {advice}")


def open_model(address: str, options: Options = DEFAULTS) -> baselines.WordModel:
    """Open a model by its address; raises UsageError for an unknown one, and for options that it does not heed."""
    kind = kind_of(address)
    for name, value in options._asdict().items():
        if name != "words" and value != getattr(DEFAULTS, name) and name not in kind.options:
            heeding = ", ".join(model.address for model in MODELS.values() if name in model.options)
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"`{visible(address)}` does not heed {option}\n  it is for {heeding}")
    if options.words < 1 and not kind.learns:
        raise UsageError(f"a language model lists one word or more on a line, not {options.words}")
    return kind.make(address.partition(":")[2], options)


def language_model(address: str, options: Options = DEFAULTS) -> word_search.TokenModel:
    """Open a language model: ``gguf:FILE``, ``hf:NAME`` or a folder, or ``openai:URL#MODEL``.

    Without llama.cpp, transformers computes a GGUF file.
    """
    kind, _, place = address.partition(":")
    if kind == "chat":
        message = f"`{visible(address)}` is a chat model, which does not tell the probabilities of a text"
        raise UsageError(f"{message}\n  geval predict takes it; choose gguf, hf, openai here")
    if kind == "gguf" and (find_spec("llama_cpp") or not find_spec("transformers") or not os.path.isfile(place)):
        return language_models.LlamaCpp(place, options.threads)
    if kind in ("gguf", "hf"):
        if (what := language_models.kind_of(place)) != "causal":
            message = f"{named(place)} is no causal model: {what} models predict no text from left to right"
            raise ModelError(message=f"{message}\n  geval predict takes it; choose a causal model here")
        return language_models.Causal(place, options.dtype, options.device)
    return served_models.Served(place, options.parallel, options.wait)


# Lines


def predict(
    model: str | baselines.WordModel,
    items: Iterable[Item],
    *,
    train: Iterable[Item] | None = None,
    words: int = baselines.TOP,
    right_tokens: int = 0,
    candidates: int = 0,
) -> Iterator[str]:
    """Yield a model's output line for each item.

    ``model`` is a WordModel, or the address of a baseline or a language model, as ``geval predict`` takes it. It
    lists so many ``words`` on a line (0: all, for a baseline); how many a WordModel lists is its own affair. With
    ``train``, it first learns from these items; a baseline must. For language models, ``right_tokens`` of the right
    context count, too, and so many ``candidates`` of the baseline ``ngram-both`` are tried, which needs ``train``.

    Raises UsageError for an unknown address, or without the ``train`` that a model needs; ModelError for a model that
    fails, lacks a method or returns what is no probability.
    """
    if train is None and candidates:
        raise UsageError("candidates are words of the items to learn from: give train=…")
    if isinstance(model, type):
        raise ModelError(message=f"{model.__name__} is a class: give an instance of it")
    is_users = not isinstance(model, str)
    if isinstance(model, str):
        if train is None and kind_of(model).learns:
            raise UsageError(f"the baseline `{visible(model)}` has to learn from items: give train=…")
        model = open_model(model, Options(words, right_tokens, candidates))
    missing = [name for name in ("fit", "words")[train is None :] if not hasattr(model, name)]
    if missing:
        raise ModelError(message=f"{type(model).__name__} is no WordModel: it lacks {', '.join(missing)}")
    if isinstance(model, baselines.DocumentModel):
        train = items = list(items)
    baseline = None if train is None else trained(model, train, candidates)
    return lines_of(model, items, baseline, is_users=is_users)


def trained(
    model: baselines.WordModel, train: Iterable[Item], candidates: int = 0
) -> gap_models.NgramGapModel | None:
    """Train a model and, if ``candidates`` are wanted, the baseline that has so many; return the baseline."""
    baseline = gap_models.NgramGapModel(candidates, sides=2) if candidates else None
    if baseline is not None:
        train = list(train)
        baseline.fit(train)
    model.fit(train)
    return baseline


def lines_of(
    model: baselines.WordModel,
    items: Iterable[Item],
    baseline: baselines.WordModel | None = None,
    *,
    is_users: bool = False,
) -> Iterator[str]:
    """Yield the line of each item; raises ModelError for a model that lists no word in the first gaps.

    The ``baseline`` has the candidates. What a user's model returns is checked, and written to the last digit.
    """
    may_be_blank = is_users or isinstance(model, baselines.ShareModel)
    blank: list[str] = []  # the first lines, while they list no word
    for item in items:
        left, right, _ = corpus.gap_of(item)
        shares = model.words(left, right, list(baseline.words(left, right, ())) if baseline else ())
        if is_users:
            try:
                yield writing.format_line(shares)
            except UsageError as error:
                raise ModelError(message=f"{type(model).__name__}.words, item {item.line}: {error}") from error
            continue
        line = line_of(shares)
        may_be_blank = may_be_blank or bool(shares) or item.line != len(blank) + 1  # a run that goes on
        if may_be_blank:
            yield from [*blank, line]
            blank.clear()
        else:
            blank.append(line)
            if len(blank) == FIRST_GAPS:
                break
    if blank:
        message = f"the model lists no word in the first {counted(len(blank), 'gap')}"
        cause = "check that the tokenizer belongs to the model, and that spaces separate the words of the text"
        raise ModelError(message=f"{message}\n  {cause}")


def line_of(shares: Mapping[str, float]) -> str:
    """Write words with six significant digits of their probabilities, and the rest.

    >>> line_of({"the": 0.5, "a": 0.25})
    'the:0.5 a:0.25 :0.25'
    """
    pairs: list[object] = [None] * (2 * len(shares))
    pairs[::2], pairs[1::2] = shares.keys(), shares.values()
    return ("%s:%.6g " * len(shares)) % tuple(pairs) + f":{max(1 - math.fsum(shares.values()), 0.0):.6g}"


# The journal


@contextmanager
def opened_journal(
    path: str, work: Mapping[str, Any], *, anew: bool = False
) -> Iterator[tuple[Sequence[str], Callable[[str], None]]]:
    """Open a journal, or begin it; yield the lines that are done, and a function that adds one.

    ``work`` says what the journal is of; ``anew`` forgets what is done of other work, as soon as a line is added. The
    names of digests in ``work`` end in ``DIGESTS``: an error says that the file has changed, without the digests. A
    line that was not written whole is passed over; what is done is in the file at every moment, and a journal
    without a line is removed. Raises UsageError for the lines of other work, unless ``anew``, and for a journal that
    another process has open.
    """
    try:
        with open(path, "ab+") as file:
            with suppress(ImportError):  # Windows keeps others from writing by itself
                import fcntl

                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    message = f"another process writes {named(path)}; wait until it has ended"
                    raise UsageError(message) from error
            head: dict[str, Any] = {}
            done: list[str] = []
            file.seek(0)
            for row in file:
                with suppress(ValueError):  # not written whole
                    entry = json.loads(row)
                    if isinstance(entry, dict):
                        head, done = entry, []
                    else:
                        done.append(entry)
            is_kept = bool(done)
            if head != work:
                if done and not anew:
                    difference = f"is of another model, input or options: {_difference(head, work)}"
                    raise UsageError(f"{named(path)} {difference}\n  --force begins anew")
                done = []

            def add(line: str) -> None:
                for entry in (line,) if done else (work, line):
                    file.write(b"\n" + json.dumps(entry).encode())  # behind half of a line, too
                file.flush()
                done.append(line)

            try:
                yield done, add
            finally:
                if not is_kept and not done:
                    with suppress(OSError):  # Windows removes no open file
                        os.unlink(path)
    except OSError as error:
        if error.filename is None:  # not of this file
            raise
        raise UsageError(f"Cannot write {named(path)}: {error.strerror}") from error


def _difference(head: Mapping[str, Any], work: Mapping[str, Any]) -> str:
    """Name the first thing that differs between the head of a journal and what it should be of."""
    name = next(name for name in {**work, **head} if head.get(name) != work.get(name))
    if name.endswith(DIGESTS):
        return f"the {name.removesuffix(DIGESTS).replace('_', ' ')} has changed"
    return f"{name} is {visible(str(work.get(name)))}, and was {visible(str(head.get(name)))}"
