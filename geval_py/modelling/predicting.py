"""Models of word gaps: their addresses, their answers, language models as such, and the journal of long work.

A journal is a text file: a line of JSON, which says whose work it is, and then the lines of the output that are done.
A process that is killed loses the item that it was at.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count, islice
from typing import Any, NamedTuple

from geval_py.errors import ModelError, UsageError
from geval_py.modelling import (
    baselines,
    chat_models,
    corpus,
    language_models,
    masked_models,
    ngram_model,
    served_models,
    word_search,
)
from geval_py.modelling.texts import line_of
from geval_py.reading import gap_columns, wordprobs
from geval_py.reading.items import Item
from geval_py.scoring import writing
from geval_py.tables.numbers import counted
from geval_py.text import named, shown, suggestion, visible

ADAPTERS = ("gguf", "hf", "openai")
KINDS = ("arpa", "kenlm", "chat", *ADAPTERS)
FORMS = ("arpa:FILE", "kenlm:FILE", "gguf:FILE", "hf:NAME-OR-FOLDER", "openai:URL#MODEL", "chat:URL#MODEL")
ENDINGS = {"gguf": "gguf", "arpa": "arpa"}
MEANT = {  # the address in the place of one without its kind, by what stands before the colon
    "http": "openai:{0}", "https": "openai:{0}", "ollama": "openai:http://localhost:11434/v1#{1}",
    "huggingface": "hf:{1}", "vllm": "openai:http://localhost:8000/v1#{1}",
}  # fmt: skip
MARKS = frozenset(mark.decode() for mark in corpus.MARKS)
MAX_WORDS = 1_000  # that are looked for behind a context
DIGESTS = "_sha256"  # ends the names of what a journal knows by digests of its files
FLOOR = 1e-4  # of the rest, which no line may lose
PUNCTUATION = ".,;:!?"
FEW = 0.001  # of the answers: where no more end in punctuation, it stands behind words and not in them
SAMPLED = 10_000  # answers of train that are looked at
FIRST = 3  # gaps: a model that lists no word in any of them is at fault


def predict(
    model: str | baselines.WordModel,
    items: Iterable[Item],
    *,
    train: Iterable[Item] | None = None,
    top: int = baselines.TOP,
    right: int = 0,
    candidates: int = 0,
) -> Iterator[str]:
    """Yield a model's output line for each item.

    ``model`` is a WordModel, or the address of a baseline or a language model, as ``geval predict`` takes it. It
    lists ``top`` words on a line (0: all, for a baseline); a WordModel lists what it likes, and has no ``right`` and
    ``candidates``. With ``train``, it first learns from these items; a baseline must. For language
    models, so many tokens of the ``right`` context count, too, and so many ``candidates`` of the baseline
    ``ngram-both`` are tried, which needs ``train``.

    Raises UsageError for an unknown address, and for a model that does not give one answer to each item; ModelError
    if there is nothing to learn from, for a model that fails, lacks a method or answers what is none.
    """
    asked = Asked(words=top, right=right, candidates=candidates)
    if train is None and candidates:
        raise UsageError(message="candidates are words of the items to learn from: give train=…")
    if isinstance(model, str):
        kind = model.partition(":")[0]
        address, model = model, open_model(model, asked)
        if train is None and kind not in ("arpa", "chat", *ADAPTERS):
            raise UsageError(message=f"the baseline `{visible(address)}` has to learn from items: give train=…")
    missing = [name for name in ("fit", "predict")[train is None :] if not hasattr(model, name)]
    if isinstance(model, type):
        raise ModelError(message=f"{model.__name__} is a class: give an instance of it")
    if missing:
        raise ModelError(message=f"{type(model).__name__} is no WordModel: it lacks {', '.join(missing)}")
    if train is not None:
        model.fit(train)
    return _lines(model, items)


def _lines(model: baselines.WordModel, items: Iterable[Item]) -> Iterator[str]:
    taken, answers = count(), count()
    source = (item for item, _ in zip(items, taken, strict=False))
    predicted = model.predict(source)
    if not isinstance(predicted, Iterable):
        raise ModelError(message=f"{type(model).__name__}.predict returned {shown(predicted)}, which has no answers")
    for answer, place in zip(predicted, answers, strict=False):
        try:
            yield answer if isinstance(answer, str) else writing.format_line(answer)
        except UsageError as error:
            raise ModelError(message=f"{type(model).__name__}.predict, answer {place + 1}: {error}") from error
    for _ in source:
        pass
    number, size = next(answers), next(taken)
    if number != size:
        raise UsageError(message=f"the model gave {counted(number, 'answer')} to {counted(size, 'item')}")


class Settings(NamedTuple):
    """How a language model is opened and asked.

    ``threads`` are for llama.cpp, by default one a core; so many ``parallel`` requests are sent to a server at once;
    ``dtype`` is the type of transformers' numbers: float32 by default, float16, bfloat16, int8 or int4; ``device`` is
    torch's. A chat model is asked by a ``template`` and, with ``samples``, so many times.
    """

    threads: int | None = None
    parallel: int = 4
    dtype: str | None = None
    device: str = "auto"
    template: str | None = None
    samples: int = 0


DEFAULTS = Settings()


def open_model(address: str, asked: Asked, settings: Settings = DEFAULTS) -> baselines.WordModel:
    """Make a model by its address: the name of a baseline, ``kenlm:FILE``, or that of a language model.

    Raises UsageError for an unknown name, and for what the model would not heed.
    """
    kind, _, rest = address.partition(":")
    if address not in baselines.BASELINES and not (rest and kind in KINDS):
        raise UsageError(message=_unknown(address, kind, rest))
    if kind not in ADAPTERS and (asked.right or asked.candidates):
        why = ", a chat model, sees both contexts: it" if kind == "chat" else ""
        raise UsageError(message=f"`{visible(address)}`{why} takes neither a right context nor candidates")
    if kind != "hf" and (settings.dtype or settings.device != "auto"):
        raise UsageError(message="--dtype and --device are for models of transformers: hf:NAME")
    if kind == "chat":
        samples, template = settings.samples, settings.template
        return GapWords(chat_models.Chat(rest, asked.words, settings.parallel, samples, template), asked)
    if settings.samples or settings.template is not None:
        raise UsageError(message="--samples and --template are for chat models: chat:URL#MODEL")
    if kind == "hf":
        what = language_models.kind_of(rest)
        if what != "causal" and asked.right:
            sees = f"`{visible(address)}`, of the kind {what}, sees all of the right context"
            raise UsageError(message=f"{sees}: leave out --right")
        if what == "masked":
            return GapWords(masked_models.Masked(rest, asked.words, settings.dtype, settings.device), asked)
        if what == "encoder-decoder":
            return GapWords(language_models.EncoderDecoder(rest, settings.dtype, settings.device), asked)
    if kind in ADAPTERS:
        return GapWords(language_model(address, settings), asked)
    return LeftModel(rest, asked.words) if kind == "arpa" else baselines.baseline(address, top=asked.words)


def _unknown(address: str, kind: str, rest: str) -> str:
    """Return what is wrong with the address of a model, and what may be meant."""
    endings = os.path.basename(address).lower().split(".")[1:] if os.path.exists(address) else []
    of_file = next((ENDINGS[ending] for ending in endings if ending in ENDINGS), None)
    if of_file or os.path.isdir(address):
        advice = f"`{visible(address)}` is there: did you mean `{of_file or 'hf'}:{visible(address)}`?"
    elif kind in MEANT:
        advice = f"did you mean `{visible(MEANT[kind].format(address, rest))}`?"
    elif ":" in address:
        advice = "" if kind in KINDS else suggestion(kind, KINDS, "{}:")
        advice += f"a model is {', '.join(baselines.BASELINES)}, {', '.join(FORMS)}"
    else:
        advice = suggestion(address, baselines.BASELINES) or f"did you mean `hf:{visible(address)}`? "
        advice += f"the baselines are {', '.join(baselines.BASELINES)} and kenlm:FILE"
    if kind in KINDS:
        return f"`{visible(kind)}:` names no model\n  {advice}"
    what = f"kind of model `{visible(kind)}:`" if ":" in address else f"baseline `{visible(address)}`"
    return f"there is no {what}\n  {advice}"


def language_model(address: str, settings: Settings = DEFAULTS) -> word_search.TokenModel:
    """Open a language model: ``gguf:FILE``, ``hf:NAME`` or a folder, or ``openai:URL#MODEL``.

    Without llama.cpp, transformers computes a GGUF file.
    """
    kind, _, rest = address.partition(":")
    if kind == "chat":
        message = f"`{visible(address)}` is a chat model, which does not tell the probabilities of a text"
        raise UsageError(message=f"{message}\n  geval predict takes it; choose {', '.join(ADAPTERS)} here")
    if kind == "gguf" and (find_spec("llama_cpp") or not find_spec("transformers") or not os.path.isfile(rest)):
        return language_models.LlamaCpp(rest, settings.threads)
    if kind in ("gguf", "hf"):
        if (what := language_models.kind_of(rest)) != "causal":
            message = f"{named(rest)} is no causal model: {what} models predict no text from left to right"
            raise ModelError(message=f"{message}\n  geval predict takes it; choose a causal model here")
        return language_models.Causal(rest, settings.dtype, settings.device)
    return served_models.Served(rest, settings.parallel)


class Asked(NamedTuple):
    """What a language model is asked for: ``words`` on a line, and with what.

    ``right`` tokens of the right context judge the likeliest words, too; 0 takes the left context alone. So many
    ``candidates`` of the n-gram baseline of both contexts are tried beside the model's own.
    """

    words: int = baselines.TOP
    right: int = 0
    candidates: int = 0


@dataclass
class NextWords(ngram_model.LanguageModel):
    """A language model over tokens as a model of the words of a text."""

    model: word_search.TokenModel

    def next_words(self, context: str | Iterable[str], k: int | None = 10) -> dict[str, float]:
        """Return the ``k`` most probable words behind a context (None: as many as are looked for at most)."""
        text = context if isinstance(context, str) else " ".join(context)
        return word_search.WordSearch(self.model, k or MAX_WORDS).words(text)

    def surprisals(self, words: str | Iterable[str]) -> list[float]:
        """Return the surprisal of each word of a text in bits; white space separates the words of a string."""
        listed = [word.decode(errors="replace") for word in line_of(words).split()]
        return word_search.WordSearch(self.model, 1).surprisals(listed)


class LeftModel:
    """An n-gram model in a file as a model of word gaps, by their left context; see :class:`NgramModel`."""

    def __init__(self, path: str, words: int) -> None:
        self._model, self._words = ngram_model.NgramModel.load(path), words

    def fit(self, items: Iterable[Item]) -> None:
        """Learn nothing: the model is trained."""

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item by a line of an output."""
        for item in items:
            left = [word.decode(errors="replace") for word in corpus.gap_of(item).left]
            shares = self._model.next_words(left, self._words + len(MARKS))
            end = shares.get("</s>", 0.0)  # where a word follows, the text does not end
            words = [word for word in shares if word not in MARKS and wordprobs.is_listable(word)]
            yield _line({word: shares[word] / max(FLOOR, 1 - end) for word in words[: self._words]})


class GapWords:
    """A language model as a model of word gaps: a causal one over tokens, a masked one, or a chat model."""

    def __init__(self, model: word_search.TokenModel | masked_models.Masked | chat_models.Chat, asked: Asked) -> None:
        if asked.words < 1:
            raise UsageError(message=f"a language model lists one word or more on a line, not {asked.words}")
        self._model, self._asked = model, asked
        self._baseline = baselines.NgramGapModel(asked.candidates, sides=2) if asked.candidates else None
        self._after = ""
        self.method: str | None = getattr(model, "method", None)  # of a chat model

    def fit(self, items: Iterable[Item]) -> None:
        """Learn whether answers end in punctuation, how long they are and, if candidates are wanted, n-grams."""
        kept = list(items if self._baseline else islice(items, SAMPLED))
        if self._baseline is not None:
            self._baseline.fit(kept)
        answers = [item.expected or "" for item in kept[:SAMPLED]]
        punctuated = sum(len(word) > 1 and word[-1] in PUNCTUATION for word in answers)
        self._after = PUNCTUATION if answers and punctuated <= FEW * len(answers) else ""
        if isinstance(self._model, masked_models.Masked | chat_models.Chat):
            self._model.fit(answers, self._after)

    def notes(self, item: Item) -> Iterator[str]:
        """Yield what makes the predictions for items like this one worse."""
        if isinstance(self._model, language_models.Causal):
            yield from self._model.notes()
        if corpus.lacks_spaces(" ".join(_contexts(item))):
            cause = "the contexts have no spaces between words, which a language model is asked for"
            yield f"{cause}\n  split the texts into words"

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item by a line of an output."""
        asked = self._asked
        search = (
            self._model
            if isinstance(self._model, masked_models.Masked | chat_models.Chat)
            else word_search.WordSearch(self._model, asked.words, right=asked.right, after=self._after)
        )
        blank: list[str] | None = []  # the first lines, while they list no word
        for item in items:
            candidates: tuple[str, ...] = ()
            if self._baseline is not None:
                (line,) = self._baseline.predict([item])
                candidates = wordprobs.parse_line(line, item.line).words or ()
            shares = search.words(*_contexts(item), candidates)
            if blank is not None and not shares and item.line == len(blank) + 1:  # not where a run goes on
                blank.append(_line(shares))
                if len(blank) == FIRST:
                    break
                continue
            yield from blank or ()
            blank = None
            yield _line(shares)
        if blank:
            message = f"the model lists no word in the first {counted(len(blank), 'gap')}"
            cause = "check that the tokenizer belongs to the model, and that spaces separate the words of the text"
            raise ModelError(message=f"{message}\n  {cause}")


def _contexts(item: Item) -> tuple[str, str]:
    names = gap_columns.find_contexts(list(item.columns))
    left, right = (item.columns.get(name, "").replace("\\n", "\n") for name in names)  # two characters
    return left, right


def _line(shares: Mapping[str, float]) -> str:
    """Write a line whose rest, what is left of 1, is at least FLOOR."""
    listed = math.fsum(shares.values())
    scale = min(1.0, (1 - FLOOR) / listed) if listed > 0 else 1.0
    return baselines.line_of(list(shares), [share * scale for share in shares.values()], 1 - listed * scale)


# The journal


@contextmanager
def opened_journal(
    path: str, work: Mapping[str, Any], *, anew: bool = False
) -> Iterator[tuple[Sequence[str], Callable[[str], None]]]:
    """Open a journal, or begin it; yield the lines that are done, and a function that adds one.

    ``work`` says what the journal is of; ``anew`` forgets what is done of other work, as soon as a line is added. The
    names of digests in ``work`` end in ``DIGESTS``: an error says that the file has changed, without the digests. A
    last line that was not written whole is forgotten; what is done is in the file at every moment, and a journal
    without a line is removed. Raises UsageError for the lines of other work, unless ``anew``, and for a journal that
    another process has open.
    """
    head = json.dumps(work, sort_keys=True).encode()
    try:
        with open(path, "ab+") as file:
            with suppress(ImportError):  # Windows keeps others from writing by itself
                import fcntl

                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    message = f"another process writes {named(path)}; wait until it has ended"
                    raise UsageError(message=message) from error
            file.seek(0)
            whole, _, _ = file.read().rpartition(b"\n")
            first, *stored = whole.split(b"\n")
            done: list[str] = []
            if stored and first == head:
                file.truncate(len(whole) + 1)
                done = [line.decode() for line in stored]
            elif stored and not anew:
                difference = f"is of another model, input or options: {_difference(first, work)}"
                raise UsageError(message=f"{named(path)} {difference}\n  --force begins anew")

            def add(line: str) -> None:
                if not done:
                    file.truncate(0)
                    file.write(head + b"\n")
                file.write(line.encode() + b"\n")
                file.flush()
                done.append(line)

            try:
                yield done, add
            finally:
                if not stored and not done:
                    with suppress(OSError):  # Windows removes no open file
                        os.unlink(path)
    except OSError as error:
        if error.filename is None:  # not of this file
            raise
        raise UsageError(message=f"Cannot write {named(path)}: {error.strerror}") from error


def _difference(first: bytes, work: Mapping[str, Any]) -> str:
    """Name the first thing that differs between the head of a journal and what it should be of."""
    with suppress(ValueError):
        old = json.loads(first)
        if isinstance(old, dict):
            for name, value in work.items():
                if old.get(name) != value:
                    if name.endswith(DIGESTS):
                        return f"the {name.removesuffix(DIGESTS).replace('_', ' ')} has changed"
                    return f"{name} is {visible(str(value))}, and was {visible(str(old.get(name)))}"
    return "its first line is damaged"
