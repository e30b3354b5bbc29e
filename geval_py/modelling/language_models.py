"""Language models in this process, as adapters for the search for words: those of llama.cpp and of transformers.

llama.cpp is reached through the functions that llama-cpp-python binds. The package xllamacpp, which has wheels,
offers llama.cpp's server alone, and that tells neither all next tokens nor the probability of a text.
"""

from __future__ import annotations

import copy
import ctypes
import io
import json
import logging
import os
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import MissingFileError, ModelError
from geval_py.modelling.corpus import Doubles, Flags
from geval_py.modelling.word_search import AT_A_TIME, MAX_CONTEXT, Expansion, Floats, NextTokens, TokenModel, Tokens
from geval_py.text import named, visible
from geval_py.version import installs

Logits: TypeAlias = NDArray[np.float32]
MAX_TOKENS = 2048  # that are computed together
MAX_LOGITS = 1 << 26  # that are in memory together, 4 bytes each
MAX_TOKEN_BYTES = 256  # bytes of a token
NO_START = "the model has no token that begins a text, and a gap has no text before it"
QUANTISED: dict[str, dict[str, Any]] = {
    "int8": {"load_in_8bit": True},
    "int4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
}
AUTO_CLASSES = {
    "causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM", "encoder-decoder": "AutoModelForSeq2SeqLM",
}  # fmt: skip
GAP_MARKS = ("<extra_id_0>", "<mask>")  # T5, BART
CACHE_ERROR = 0.1  # of a cache's logits, as a part of their standard deviation: half precision is coarse


class Prefixed(TokenModel):
    """The tokens behind a prefix, which is kept; those behind it are computed together in blocks of equal length.

    What is computed together depends on one item alone, and so do the digits of its answer.
    """

    def __init__(self, texts: list[bytes], ends: frozenset[int]) -> None:
        self.texts, self.ends = texts, ends
        self._prefix: list[int] = []
        self._first: Any = None

    def next_tokens(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[NextTokens]:
        """Return what comes next behind a prefix with each continuation."""
        behind = self._logs(prefix, continuations, last=True)
        answers = {place: NextTokens(None, np.exp(self._array(logs[-1]))) for place, logs in behind}
        return [answers[place] for place in sorted(answers)]

    def log_probabilities(self, prefix: Sequence[int], continuations: Sequence[Tokens]) -> list[Doubles]:
        """Return the natural logarithm of the probability of each token of each continuation."""
        answers = {
            place: np.array([float(row[token]) for row, token in zip(logs, continuations[place], strict=True)])
            for place, logs in self._logs(prefix, continuations, last=False)
        }
        return [answers[place] for place in sorted(answers)]

    def along(self, prefix: Sequence[int], tokens: Sequence[int], flags: Flags) -> tuple[Floats, Floats]:
        """Return the logarithm of each token, and what flagged tokens have before each and behind the last."""
        if not prefix:
            raise ModelError(message=NO_START)
        self._prefix = []
        logs = self._array(self._behind([[*prefix, *tokens]], last=False)[0])[len(prefix) - 1 :]
        return logs[np.arange(len(tokens)), tokens].astype(np.float64), np.exp(logs) @ flags.T.astype(np.float32)

    def _logs(
        self, prefix: Sequence[int], continuations: Sequence[Tokens], *, last: bool
    ) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield the place of each continuation, and the logarithms behind its ``last`` token, or before each."""
        if not prefix:
            raise ModelError(message=NO_START)
        if self._prefix != list(prefix):
            self._prefix = []  # in case that what follows fails
            self._first = self._behind([prefix], last=True)[0][-1]
            self._prefix = list(prefix)
        by_length = sorted(range(len(continuations)), key=lambda place: len(continuations[place]))
        for length, of_length in groupby(by_length, key=lambda place: len(continuations[place])):
            places, computed = list(of_length), length if last else length - 1
            tokens_of_row = max(1, computed)
            logits_of_row = len(self.texts) * (1 if last else tokens_of_row)
            size = max(1, min(AT_A_TIME, MAX_TOKENS // tokens_of_row, MAX_LOGITS // logits_of_row))
            for start in range(0, len(places), size):
                block = places[start : start + size]
                tokens = [continuations[place][:computed] for place in block]
                behind = self._behind(tokens, last=last) if computed > 0 else [[]] * len(block)
                before = [] if last and computed else [self._first]
                for place, logs in zip(block, behind, strict=True):
                    yield place, [*before, *logs]

    def _behind(self, rows: Sequence[Sequence[int]], *, last: bool) -> Sequence[Sequence[Any]]:
        """Return the logarithms behind each token, or the last one, of rows of equal length behind the prefix.

        Without a prefix, the only row becomes the prefix that is kept.
        """
        raise NotImplementedError

    def _array(self, logs: Any) -> Floats:
        """Return logarithms as an array of numpy's."""
        return np.asarray(logs)


class LlamaCpp(Prefixed):
    """A model in a GGUF file, computed by llama.cpp; raises MissingFileError and ModelError."""

    max_length = MAX_TOKENS

    def __init__(self, path: str, threads: int | None = None) -> None:
        if not os.path.isfile(path):
            raise MissingFileError(what="No file with the model", path=path)
        self._llama = llama = needed("llama_cpp", "gguf")
        self._quiet = llama.llama_log_callback(lambda *_: None)  # kept: C calls it
        llama.llama_log_set(self._quiet, None)
        llama.llama_backend_init()
        options = llama.llama_model_default_params()
        has_amx = b"AMX_INT8 = 1" in llama.llama_print_system_info()  # whose buffers crash (ggml-org/llama.cpp#20824)
        options.use_extra_bufts = not has_amx
        model = llama.llama_model_load_from_file(os.fsencode(path), options)
        settings = llama.llama_context_default_params()
        settings.n_ctx, settings.n_batch = MAX_CONTEXT + MAX_TOKENS + 64, MAX_TOKENS
        settings.n_seq_max, settings.kv_unified, settings.swa_full = AT_A_TIME + 1, True, True
        settings.n_threads = settings.n_threads_batch = threads or os.cpu_count() or 1
        self._context = llama.llama_init_from_model(model, settings) if model else None
        if not self._context:
            raise ModelError(path=path, message="llama.cpp cannot read this model\n  it is damaged, or of a new kind")
        self._vocabulary = vocabulary = llama.llama_model_get_vocab(model)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(max(MAX_TOKENS, MAX_CONTEXT), 0, 1)
        tokens = range(llama.llama_vocab_n_tokens(vocabulary))
        ends = frozenset(token for token in tokens if llama.llama_vocab_is_eog(vocabulary, token))
        buffer, texts = ctypes.create_string_buffer(MAX_TOKEN_BYTES), []
        for token in tokens:
            size = llama.llama_token_to_piece(vocabulary, token, buffer, MAX_TOKEN_BYTES, 0, False)
            texts.append(buffer.raw[: max(0, size)])
        super().__init__(texts, ends)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text from its beginning, after the token that begins texts, if there is one."""
        llama, written = self._llama, text.encode(errors="replace")
        most = len(written) + 8
        tokens = (llama.llama_token * most)()
        size = llama.llama_tokenize(self._vocabulary, written, len(written), tokens, most, False, False)
        first = llama.llama_vocab_bos(self._vocabulary)
        return [*([first] if first >= 0 else []), *tokens[:size]]

    def _behind(self, rows: Sequence[Sequence[int]], *, last: bool) -> Sequence[Sequence[Logits]]:
        llama, batch, start, size = self._llama, self._batch, len(self._prefix), 0
        copies = range(1, len(rows) + 1) if start else range(0)  # sequences that share the prefix, which is number 0
        if not start:
            llama.llama_memory_clear(self._memory, True)
        for sequence in copies:
            llama.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
        try:
            wanted: list[list[int]] = []
            for sequence, tokens in zip(copies or [0], rows, strict=True):
                for place, token in enumerate(tokens, start):
                    batch.token[size], batch.pos[size] = token, place
                    batch.n_seq_id[size], batch.seq_id[size][0] = 1, sequence
                    batch.logits[size] = not last or place == start + len(tokens) - 1
                    size += 1
                wanted.append([size - 1] if last else list(range(size - len(tokens), size)))
            batch.n_tokens = size
            if status := llama.llama_decode(self._context, batch):
                raise ModelError(message=f"llama.cpp cannot compute {size} tokens: status {status}")
            pointers = [[llama.llama_get_logits_ith(self._context, place) for place in places] for places in wanted]
            if not all(map(all, pointers)):
                raise ModelError(message="llama.cpp predicts no tokens by this model: is it one for embeddings?")
            width = len(self.texts)
            return [[_log_softmax(np.ctypeslib.as_array(pointer, (width,))) for pointer in row] for row in pointers]
        finally:
            for sequence in copies:
                llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)


def ids_of(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text alone, by a tokenizer of transformers."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _log_softmax(logits: Logits) -> Logits:
    shifted = logits - logits.max()
    logs: Logits = shifted - np.log(np.exp(shifted).sum())
    return logs


class Causal(Prefixed):
    """A causal model of transformers, by its name, its folder or its GGUF file; raises ModelError."""

    def __init__(self, name: str, dtype: str | None = None, device: str = "auto") -> None:
        self._torch, self._tokenizer, self._model = loaded(name, dtype, device)
        self._device = next(self._model.parameters()).device
        self._cache: Any = None
        self.max_length = max_length(self._model)
        self.max_context = min(MAX_CONTEXT, self.max_length // 2)  # as much room is left behind it
        self._is_gguf = os.path.isfile(name)
        first, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        starts = (first, end, *ids_of(self._tokenizer, "\n"))
        self._start = [token for token in starts if token is not None][:1]
        size = self._model.get_output_embeddings().weight.shape[0]
        texts = token_texts(self._tokenizer.backend_tokenizer)
        super().__init__(texts[:size] + [b""] * (size - len(texts)), frozenset({first, end} - {None}))
        self._use_cache = self._cache_is_exact(self._example())

    def notes(self) -> Iterator[str]:
        yield from uncased_note(self._tokenizer)
        if self._tokenizer.chat_template:
            yield "the model has a chat template: a base model predicts the words of a text better"
        if self._is_gguf:
            cause = "transformers computes the GGUF file, in more memory than llama.cpp needs"
            yield f"{cause}\n  {installs('gguf')}, which has to be compiled"
        if not self._use_cache:
            yield "the model has no exact cache: each text is computed as a whole, which is slower"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text from its beginning, after the token that begins texts, if there is one."""
        return [*self._start, *ids_of(self._tokenizer, text)]

    def expand(
        self, prefix: Sequence[int], continuations: Sequence[Tokens],
        end: Flags, go_on: Flags, least: Sequence[float], most: int,
    ) -> list[Expansion]:  # fmt: skip
        """Return what :func:`geval_py.modelling.word_search.expansion` does, computed where the model is."""
        ends, goes_on = (self._torch.from_numpy(flags).to(self._device) for flags in (end, go_on))
        answers: dict[int, Expansion] = {}
        for place, logs in self._logs(prefix, continuations, last=True):
            shares = logs[-1].exp()
            tokens = ((shares > least[place]) & goes_on).nonzero()[:, 0]
            if len(tokens) > most:
                tokens = tokens[shares[tokens].topk(most).indices]
            ended = float((shares @ ends.to(shares.dtype)).clamp(max=1))
            answers[place] = Expansion(ended, tokens.cpu().numpy(), shares[tokens].cpu().double().numpy())
        return [answers[place] for place in sorted(answers)]

    def _array(self, logs: Any) -> Floats:
        array: Floats = logs.cpu().numpy()
        return array

    def _behind(self, rows: Sequence[Sequence[int]], *, last: bool) -> Sequence[Sequence[Any]]:
        torch, cache, before = self._torch, None, [] if self._use_cache else self._prefix
        if self._prefix and self._use_cache:
            cache = copy.deepcopy(self._cache)
            cache.reorder_cache(torch.zeros(len(rows), dtype=torch.long))  # a copy for each row
        with torch.inference_mode():
            tokens = torch.tensor([[*before, *row] for row in rows], device=self._device)
            kept = 1 if last else len(rows[0])
            answer = self._computed(tokens, cache, kept)
            logits = answer.logits[:, -kept:].to(torch.promote_types(answer.logits.dtype, torch.float32))
            logs: Sequence[Sequence[Any]] = logits.log_softmax(-1)
        if not self._prefix and self._use_cache:
            self._cache = answer.cache
        return logs

    def _computed(self, tokens: Any, cache: Any, kept: int) -> Any:
        return self._model(tokens, cache=cache, use_cache=self._use_cache, logits_to_keep=kept)

    def _example(self) -> list[int]:
        """Return tokens that may stand before others."""
        return [number % len(self.texts) for number in range(8)]

    def _cache_is_exact(self, prefix: list[int]) -> bool:
        """Return whether tokens behind copies of a cache have the logits that they have in the whole text.

        Recurrent models may have no cache, or one that is right for a single token alone.
        """
        behind, logs = [number % len(self.texts) for number in range(8, 12)], []
        try:
            for self._use_cache in (True, False):
                self._prefix = []
                self._behind([prefix], last=True)
                self._prefix = prefix
                logs.append(self._array(self._behind([behind[:2], behind[2:]], last=False)))
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):  # whatever has no such cache
            return False
        finally:
            self._prefix = []
        return bool(np.abs(logs[0] - logs[1]).max() < CACHE_ERROR * logs[1].std())


class EncoderDecoder(Causal):
    """A model that reads both contexts of a gap, such as T5 or BART.

    T5 writes the words after a sentinel (Raffel et al., 2020, https://jmlr.org/papers/v21/20-074.html), BART repeats
    the left context before them (Lewis et al., 2020, https://aclanthology.org/2020.acl-main.703/).
    """

    def __init__(self, name: str, dtype: str | None = None, device: str = "auto") -> None:
        self._name = name
        super().__init__(name, dtype, device)
        added = self._tokenizer.added_tokens_decoder.items()
        self.ends |= {token for token, entry in added if entry.special}  # the next sentinel ends T5's words

    def infill(self, left: str, right: str) -> list[int]:
        """Return the tokens before the words in a gap between two texts."""
        most, tokenizer = self.max_context // 2 - 2, self._tokenizer
        before, after = ids_of(self._tokenizer, left)[-most:], ids_of(self._tokenizer, right)[:most]
        first = [token for token in (tokenizer.bos_token_id,) if token is not None]
        again = [*first, *before] if self._mark == tokenizer.mask_token_id else [self._mark]
        end = [tokenizer.eos_token_id, self._model.config.decoder_start_token_id]
        return [*first, *before, self._mark, *after, *end, *again]

    def _example(self) -> list[int]:
        return self.infill("a", "b")

    @cached_property
    def _mark(self) -> int:
        """The token that marks a gap."""
        for token in self._tokenizer.convert_tokens_to_ids([*GAP_MARKS]):
            if token not in (None, self._tokenizer.unk_token_id):
                return int(token)
        raise ModelError(message=f"the tokenizer of {named(self._name)} has no token that marks a gap")

    def _computed(self, tokens: Any, cache: Any, _kept: int) -> Any:
        if cache is None:
            start = int((tokens[0] == self._model.config.decoder_start_token_id).nonzero()[-1])
            self._encoded = self._model.get_encoder()(tokens[:1, :start])[0]
            tokens = tokens[:, start:]
        encoded = (self._encoded.expand(len(tokens), -1, -1),)
        return self._model(encoder_outputs=encoded, decoder_input_ids=tokens, cache=cache, use_cache=self._use_cache)


def needed(module: str, extra: str) -> Any:
    """Import a module of an extra; raises ModelError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"Models of {extra}: need the package {error.name}, of the extra {extra}\n  {installs(extra)}"
        raise ModelError(message=message) from error


def kind_of(name: str) -> str:
    """Return whether a model of transformers is causal, masked or encoder-decoder; raises ModelError.

    The class of its configuration tells.
    """
    config = _config(_base(name) or name)
    if config.is_encoder_decoder:
        return "encoder-decoder"
    masked: Any = needed("transformers", "hf").MODEL_FOR_MASKED_LM_MAPPING
    return "masked" if type(config) in masked and not getattr(config, "is_decoder", False) else "causal"


def _base(name: str) -> str | None:
    """Return the name of the model that an adapter (LoRA) in a folder adapts, None for a model."""
    if not os.path.isfile(os.path.join(name, "adapter_config.json")):
        return None
    with _loading(name):
        base: str | None = needed("peft", "hf").PeftConfig.from_pretrained(name).base_model_name_or_path
        if not base:
            raise ValueError("the adapter names no model")
        return base


def loaded(name: str, dtype: str | None, device: str) -> tuple[Any, Any, Any]:
    """Return torch, a tokenizer and a model of transformers; raises ModelError.

    The ``name`` is NAME, NAME@REVISION, a folder, or a GGUF file, whose weights are dequantised.
    The ``device`` auto is the first GPU, if there is one, and balanced spreads a model over all GPUs and the memory.
    By the ``dtype`` int8 or int4, bitsandbytes quantises weights; quantised ones are taken as they are. The folder of
    an adapter stands for its model with it.
    """
    torch = needed("torch", "hf")
    backends = {"cuda": torch.cuda, "mps": torch.backends.mps}
    available = [kind for kind, backend in backends.items() if backend.is_available()]
    if device == "auto":
        device = [*available, "cpu"][0]
    elif device != "balanced" and device.partition(":")[0] not in ("cpu", *available):
        raise ModelError(message=f"torch has no device {visible(device)} here: {', '.join(['cpu', *available])}")
    adapted, adapter, kind = _base(name), name, AUTO_CLASSES[kind_of(name)]
    name = adapted or name
    tokenizer = _pretrained(name, "AutoTokenizer")
    if not tokenizer.is_fast:
        message = f"{named(name)} has no tokenizer of the package tokenizers"
        raise ModelError(message=f"{message}\n  a model of bytes, such as ByT5, has none: choose one such as mT5")
    config = _config(name)
    settings: dict[str, Any] = {"dtype": dtype or ("auto" if hasattr(config, "quantization_config") else "float32")}
    if dtype in QUANTISED:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
        quantised = needed("transformers", "hf").BitsAndBytesConfig(**QUANTISED[dtype])
        settings = {"dtype": "bfloat16", "quantization_config": quantised}
    model, report = _pretrained(name, kind, config=config, device_map=device, output_loading_info=True, **settings)
    if report["missing_keys"]:
        missing = visible(min(report["missing_keys"]))
        message = f"{named(name)} lacks weights of a {type(model).__name__}, such as {missing}"
        raise ModelError(message=f"{message}\n  it is a part of a model, or one that predicts no tokens")
    tokens, size = len(tokenizer), model.get_input_embeddings().weight.shape[0]
    if tokens > size:
        message = f"the tokenizer of {named(name)} has {tokens} tokens, and its model {size}"
        raise ModelError(message=f"{message}\n  the tokenizer is that of another model")
    with _loading(adapter):
        if adapted:
            model = needed("peft", "hf").PeftModel.from_pretrained(model, adapter).merge_and_unload()
        return torch, tokenizer, model.eval()


def uncased_note(tokenizer: Any) -> Iterator[str]:
    """Yield a note if a tokenizer changes capitals to small letters."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    if normalizer is not None and normalizer.normalize_str("Harbor") == "harbor":
        yield "the model is uncased: it lists no word with a capital letter\n  choose a cased model"


def max_length(model: Any) -> int:
    """Return the number of tokens that a model of transformers takes."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None) or sys.maxsize


@lru_cache(maxsize=1)  # that of a GGUF file takes half a minute
def _config(name: str) -> Any:
    return _pretrained(name, "AutoConfig")


def _pretrained(name: str, kind: str, **settings: Any) -> Any:
    transformers = needed("transformers", "hf")
    transformers.logging.set_verbosity_error()
    place, file, revision = name, None, "main"
    if os.path.isfile(name):
        needed("gguf", "hf")
        place, file = os.path.split(os.path.abspath(name))
    elif not os.path.isdir(name) and "@" in name:
        place, _, revision = name.partition("@")
    with _loading(name), redirect_stderr(io.StringIO()):  # progress
        return getattr(transformers, kind).from_pretrained(place, gguf_file=file, revision=revision, **settings)


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Raise ModelError for whatever keeps a model from being loaded."""
    needed("torch", "hf")
    weights = needed("safetensors", "hf").SafetensorError
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, EOFError, struct.error, weights) as error:
        first = str(error).strip().partition("\n")[0]
        raise ModelError(message=f"transformers cannot load {named(name)}: {visible(first)}") from error


def token_texts(tokenizer: Any) -> list[bytes]:
    """Return the text of each token of a tokenizer of the package tokenizers, b"" for special tokens.

    Byte-level tokens are spelt in letters that stand for bytes; those of SentencePiece have a mark for a space, and
    write single bytes as `<0x0A>`.
    """
    written = json.loads(tokenizer.to_str())
    size = max(tokenizer.get_vocab().values(), default=-1) + 1  # numbers may be left out
    pieces = [tokenizer.id_to_token(token) or "" for token in range(size)]
    if "ByteLevel" in json.dumps([written["decoder"], written["pre_tokenizer"]]):
        # A byte is written by itself if it is printed, else by a letter from U+0100 on.
        printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printed]
        byte_of = {chr(byte): byte for byte in printed} | {chr(256 + n): byte for n, byte in enumerate(others)}
        texts = [bytes(byte_of.get(letter, 63) for letter in piece) for piece in pieces]
    else:
        texts = [
            bytes([int(piece[3:5], 16)])
            if re.fullmatch("<0x[0-9A-Fa-f]{2}>", piece)
            else piece.replace("\u2581", " ").encode()
            for piece in pieces
        ]
    for added in written["added_tokens"]:
        texts[added["id"]] = b"" if added["special"] else added["content"].replace("\u2581", " ").encode()
    return texts
