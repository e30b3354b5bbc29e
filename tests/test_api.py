"""The public API: names, signatures and fields that users' code depends on."""

import inspect
from dataclasses import fields
from pkgutil import resolve_name

import pytest
from raising import refused

import geval_py
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import Distribution, WordProbs

NAMES = {
    "Challenge", "DataError", "Evaluation", "Evaluations", "GevalError", "MalformedLineError", "Metric", "NgramModel",
    "UsageError", "__version__", "check", "compare", "evaluate", "evaluate_all", "format_line", "improve",
    "parse_line", "predict", "read_output", "score", "score_file", "write_output",
}  # fmt: skip
SIGNATURES = {
    "explaining.calibration.calibration": "(evaluation, *, documents=None)",
    "explaining.luck.luck": "(evaluation, *, seeds=25)",
    "improve": "(*outputs, words=None, documents=None, seed=12345, force=False, threads=None)",
    "compare": "(*outputs, baseline=None, samples=10000, seed=12345, documents=None, runs=None, "
    "paired_runs=False, no_worse_than=None, detect=None, tries=None, progress=None)",
    "check": "(path='.', *, challenge=None, tests=(), metrics=(), rules=None, max_places=20, max_bytes=20000000000, progress=None)",
    "evaluate_all": "(challenge, test='test-A', *, metric=(), tokenizer=None, cluster=None, on_fault=None)",
    "evaluate": "(challenge, test='test-A', *, output=None, metric=(), tokenizer=None, cluster=None)",
    "score_file": "(output, expected, *, metric, input=None, tokenizer=None, vocabulary=(), cluster=None)",
    "score": "(predictions, references, *, metric=(), inputs=None, tokenizer=None, vocabulary=(), name='predictions')",
    "Metric": "(name, *, vocabulary=None, duplicates='error', threads=None, tokenizer=None)",
    "Metric.__call__": "(self, predictions, references, *, lines=1, **numbers)",
    "Metric.losses": "(self, predictions, references, *, lines=1, **numbers)",
    "Metric.update": "(self, predictions, references, *, lines=None, **numbers)",
    "Metric.predictions": "(self, arrays, *, log=False, logits=False, rest=None)",
    "format_line": "(probabilities, rest=None, *, vocabulary=None, log=False, logits=False, top=None)",
    "parse_line": "(text, line=1)",
    "predict": "(model, items, *, train=None, words=300, right_tokens=0, candidates=0)",
    "read_output": "(path, *, header=None)",
    "write_output": "(path, lines, *, vocabulary=None, top=None, **numbers)",
    "reading.wordprobs.WordProbs.normalised": "(self)",
    "reading.wordprobs.WordProbs.buckets": "(self, bits=10, line=1)",
    "Challenge.open": "(path)",
    "reading.challenge.DataSet.items": "(self, *, unescape=False)",
    "reading.challenge.DataSet.to_frame": "(self, *, unescape=False)",
    "NgramModel.train": "(texts, order=5, *, prune=(), vocabulary=None, discount_fallback=False, interpolate_unigrams=True, vocab_pad=0, exact_discounts=False, skip_symbols=False, counts=None, sentence_marks=True)",
    "NgramModel.load": "(path)",
    "NgramModel.save": "(self, path)",
    "NgramModel.next_words": "(self, context='', k=10, bos=None)",
    "NgramModel.score": "(self, words, bos=True, eos=True)",
    "NgramModel.surprisals": "(self, words, bos=None, eos=False)",
    "NgramModel.text_surprisals": "(self, texts, bos=None, eos=False)",
    "NgramModel.score_texts": "(self, texts, bos=True, eos=True)",
    "NgramModel.perplexity": "(self, texts, bos=True, eos=True)",
}
MEMBERS = {
    "Challenge": {"__getitem__", "__iter__", "open", "schemes", "title"},
    "reading.challenge.DataSet": {"__iter__", "__len__", "items", "outputs", "to_frame"},
    "Evaluation": {"calibration", "errors", "interval", "line_losses", "line_scores", "lines", "luck", "read_items",
        "score", "scores_dict", "signature", "to_dict", "to_frame", "worst_features"},
    "Evaluations": {"to_frame", "to_latex", "to_markdown"},
    "scoring.scores.Score": {"direction", "error", "interval", "name", "to_dict", "unit", "value"},
    "Metric": {"__add__", "__len__", "compute", "losses", "predictions", "reset", "update"},
    "NgramModel": {"load", "next_words", "perplexity", "save", "score", "score_texts", "surprisals", "train",
        "vocabulary"},
    "modelling.ngram_model.TextScore": {"logs", "known_logs", "oov", "tokens", "perplexity_including_oov",
        "perplexity_excluding_oov", "intervals"},
}  # fmt: skip


def test_the_names():
    assert sorted(geval_py.__all__) == sorted(NAMES)
    assert [name for name in NAMES if getattr(geval_py, name) is None] == []
    with refused("No geval_py attribute nothing", AttributeError):
        _ = geval_py.nothing


@pytest.mark.parametrize(("name", "wanted"), SIGNATURES.items(), ids=SIGNATURES)
def test_a_signature(name, wanted):
    signature = inspect.signature(resolve_name(f"geval_py.{name}"))
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == wanted


@pytest.mark.parametrize(("name", "wanted"), MEMBERS.items(), ids=MEMBERS)
def test_members(name, wanted):
    kind = resolve_name(f"geval_py.{name}")
    assert {*dir(kind), *getattr(kind, "fields", ()), *inspect.signature(kind).parameters} >= wanted


def test_fields_of_values():
    assert Item._fields == ("line", "columns", "expected")
    assert [field.name for field in fields(WordProbs)] == ["words", "values"]
    assert [field.name for field in fields(Distribution)] == ["masses", "rest"]
