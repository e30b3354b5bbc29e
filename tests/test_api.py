"""The public API: names, signatures and fields that users' code depends on."""

import inspect
from dataclasses import fields

import pytest

import geval_py
from geval_py import METRICS, Distribution, Item, WordProbs

NAMES = {
    "METRICS", "Suite", "Accumulator", "Predictions", "Scorer", "AmbiguousFileError", "Calibration", "Challenge", "ClusterError", "Comparison", "ConfigError", "CorruptFileError", "DataError", "DataSet",
    "Distribution", "EmptyFileError", "ExistingFileError",
    "Evaluation", "Evaluations", "GevalError", "Interval", "Item", "LanguageModel", "LineCountError", "Luck", "MalformedLineError", "Metric", "MissingFileError", "Mixture",
    "MissingPackageError", "ModelError", "NextTokens", "NgramModel", "Output", "PartsError", "SchemeError", "Score", "TextScore", "TokenModel", "TooLargeError", "Tuning", "UnreadableFileError", "UsageError", "WordModel", "WordProbs",
    "__version__", "calibration", "check_submission", "compare", "evaluate", "evaluate_all", "format_line", "hashed_log_losses", "luck", "metric", "mix",
    "parse_line", "plots", "predict", "read_output", "tune", "write_output",
}  # fmt: skip
SIGNATURES = {
    "calibration": "(evaluation, *, documents=None)",
    "luck": "(evaluation, *, seeds=25, vocabulary=frozenset())",
    "tune": "(evaluation, *, words=None, temperature=False, documents=None, seed=12345, force=False, threads=None, progress=None)",
    "mix": "(evaluations, *, words=0, documents=None, seed=12345, force=False)",
    "compare": "(evaluations, *, baseline=None, samples=10000, seed=12345, documents=None, progress=None)",
    "check_submission": "(path='.', *, challenge=None, tests=(), metrics=(), rules=None, max_places=20, max_bytes=20000000000, progress=None, cluster=None)",
    "evaluate_all": "(challenge, test='test-A', *, metrics=(), tokenizer=None, keep_texts=True, cluster=None, on_fault=None)",
    "evaluate": "(challenge, test='test-A', *, out=None, metrics=(), tokenizer=None, keep_texts=True, cluster=None, inputs=None, vocabulary=())",
    "Scorer": "(vocabulary, metric='PerplexityHashed', *, threads=None)",
    "Scorer.losses": "(self, probabilities, expected, first_line=1, *, lines=None, log=False, logits=False, rest=None)",
    "Scorer.predictions": "(self, probabilities, *, log=False, logits=False, rest=None)",
    "metric": "(name, *, vocabulary=(), tokenizer=None)",
    "Accumulator.update": "(self, predictions, expected, lines=None)",
    "format_line": "(probabilities, rest=None, *, vocabulary=None)",
    "hashed_log_losses": "(outputs, expected, bits=10, first_line=1)",
    "parse_line": "(text, line=1)",
    "predict": "(model, items, *, train=None, top=300, right=0, candidates=0)",
    "read_output": "(path, *, header=None)",
    "write_output": "(path, lines, *, vocabulary=None)",
    "WordProbs.normalised": "(self)",
    "WordProbs.buckets": "(self, bits=10, line=1)",
    "Challenge.open": "(path)",
    "Challenge.split": "(self, test_name, out=None)",
    "DataSet.items": "(self, *, unescape=False)",
    "DataSet.to_frame": "(self, *, unescape=False)",
    "NgramModel.train": "(texts, order=5, *, prune=(), vocabulary=None, discount_fallback=False, interpolate_unigrams=True, vocab_pad=0, exact_discounts=False, skip_symbols=False)",
    "NgramModel.load": "(path)",
    "NgramModel.mix": "(models, weights=None, *, on=None)",
    "NgramModel.save": "(self, path)",
    "NgramModel.next_words": "(self, context='', k=10, bos=True)",
    "NgramModel.score": "(self, words, bos=True, eos=True)",
    "NgramModel.surprisals": "(self, words, bos=True, eos=False)",
    "NgramModel.text_surprisals": "(self, texts, bos=True, eos=False)",
    "NgramModel.score_texts": "(self, texts, bos=True, eos=True)",
    "NgramModel.perplexity": "(self, texts, bos=True, eos=True)",
    "LanguageModel.next_words": "(self, context, k=10)",
    "LanguageModel.surprisals": "(self, words)",
}
MEMBERS = {
    "Challenge": {"__getitem__", "__iter__", "description", "open", "schemes", "split", "split_names", "title"},
    "DataSet": {"__iter__", "__len__", "items", "outputs", "to_frame"},
    "Evaluation": {"line_losses", "lines", "score", "signature", "to_dict", "to_frame"},
    "Metric": {"bits", "direction", "name", "summary", "unit"},
    "NgramModel": {
        "load",
        "mix",
        "next_words",
        "perplexity",
        "save",
        "score",
        "score_texts",
        "surprisals",
        "train",
        "vocabulary",
    },
    "TextScore": {
        "logs",
        "known_logs",
        "oov",
        "tokens",
        "perplexity_including_oov",
        "perplexity_excluding_oov",
        "intervals",
    },
}
METRIC_TABLE = [
    ("LikelihoodHashed", "probability", "higher"),
    ("LogLossHashed", "nats", "lower"),
    ("PerplexityHashed", "words", "lower"),
    ("CrossEntropyHashed", "bits", "lower"),
    ("Likelihood", "probability", "higher"),
    ("LogLoss", "nats", "lower"),
    ("Perplexity", "words", "lower"),
    ("CrossEntropy", "bits", "lower"),
    ("MacroAvg/Likelihood", "probability", "higher"),
    ("Accuracy", "share", "higher"),
]
NEAR_METRIC_TABLE = [
    ("Hit@3", "share", "higher"),
    ("MRR", "share", "higher"),
    ("KeystrokesSaved@3", "share", "higher"),
    ("ChoiceAccuracy", "share", "higher"),
    ("ChoiceLogLoss", "nats", "lower"),
    ("CrossEntropyToNormsHashed", "bits", "lower"),
    ("KullbackLeiblerHashed", "bits", "lower"),
    ("RankCorrelation", "correlation", "higher"),
    ("BrierScore", "squared probability", "lower"),
    ("CalibrationError", "probability", "lower"),
    ("LogSkillScore", "share", "higher"),
]
TEXT_METRIC_TABLE = [
    ("BLEU", "share", "higher"),
    ("GLEU", "share", "higher"),
    ("SacreBLEU", "points", "higher"),
    ("chrF", "points", "higher"),
    ("chrF++", "points", "higher"),
    ("TER", "percent", "lower"),
    ("WER", "per word", "lower"),
    ("CER", "per character", "lower"),
    ("WAR", "share", "higher"),
    ("CAR", "share", "higher"),
    ("Mean/WER", "per word", "lower"),
    ("Mean/CER", "per character", "lower"),
    ("Mean/WAR", "share", "higher"),
    ("Mean/CAR", "share", "higher"),
    ("CharMatch", "share", "higher"),
    ("F1", "share", "higher"),
    ("Macro-F1", "share", "higher"),
    ("NMI", "share", "higher"),
    ("MultiLabel-F1", "share", "higher"),
    ("Mean/MultiLabel-F1", "share", "higher"),
    ("Probabilistic-MultiLabel-F1", "share", "higher"),
    ("MultiLabel-LogLoss", "nats", "lower"),
    ("MultiLabel-Likelihood", "probability", "higher"),
    ("RMSE", "answers' unit", "lower"),
    ("MSE", "its square", "lower"),
    ("MAE", "answers' unit", "lower"),
    ("SMAPE", "percent", "lower"),
    ("Pearson", "correlation", "higher"),
    ("Spearman", "correlation", "higher"),
    ("Haversine", "kilometres", "lower"),
    ("MAP", "share", "higher"),
    ("NDCG@10", "share", "higher"),
    ("TokenAccuracy", "share", "higher"),
    ("BIO-F1", "share", "higher"),
    ("BIO-F1-Labels", "share", "higher"),
    ("BIO-Weighted-F1", "share", "higher"),
    ("Soft-F1", "share", "higher"),
    ("Probabilistic-Soft-F1", "share", "higher"),
    ("FLC-F1", "share", "higher"),
    ("SegmentAccuracy", "share", "higher"),
    ("Soft2D-F1", "share", "higher"),
    ("Probabilistic-Soft2D-F1", "share", "higher"),
    ("ClippEU", "share", "higher"),
    ("RMSE-Against-Interval", "answers' unit", "lower"),
    ("MSE-Against-Interval", "its square", "lower"),
    ("MAE-Against-Interval", "answers' unit", "lower"),
    ("Improvement@0.5", "answers' unit", "higher"),
    ("CustomMetric1", "share", "higher"),
    ("Lower/Accuracy", "share", "higher"),
    ("Fuzzy/Accuracy", "share", "higher"),
    ("Fuzzy/MultiLabel-F1", "share", "higher"),
    ("MacroAvg/Accuracy", "share", "higher"),
    ("MacroAvg/F1", "share", "higher"),
    ("MacroAvg/RMSE", "answers' unit", "lower"),
    ("MacroAvg/MSE", "its square", "lower"),
    ("MacroAvg/MAE", "answers' unit", "lower"),
    ("MacroAvg/SMAPE", "percent", "lower"),
]


def test_the_names():
    assert set(geval_py.__all__) == NAMES
    assert len(geval_py.__all__) == len(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_there(name):
    assert getattr(geval_py, name) is not None


def test_another_name_is_not_there():
    name = "nothing"
    with pytest.raises(AttributeError) as caught:
        getattr(geval_py, name)
    assert str(caught.value) == "module 'geval_py' has no attribute 'nothing'"


@pytest.mark.parametrize(("name", "wanted"), SIGNATURES.items(), ids=SIGNATURES)
def test_a_signature(name, wanted):
    function = geval_py
    for part in name.split("."):
        function = getattr(function, part)
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == wanted


@pytest.mark.parametrize(("name", "wanted"), MEMBERS.items(), ids=MEMBERS)
def test_members(name, wanted):
    kind = getattr(geval_py, name)
    assert {*dir(kind), *getattr(kind, "fields", ()), *inspect.signature(kind).parameters} >= wanted


def test_fields_of_values():
    assert Item._fields == ("line", "columns", "expected")
    assert [field.name for field in fields(WordProbs)] == ["words", "values"]
    assert [field.name for field in fields(Distribution)] == ["masses", "rest"]


def test_the_table_of_metrics():
    found = [(name, metric.unit, metric.direction) for name, metric in METRICS.items()]
    assert found[: len(METRIC_TABLE)] == METRIC_TABLE
    assert found[len(METRIC_TABLE) :] == [*NEAR_METRIC_TABLE, *TEXT_METRIC_TABLE]
    assert all(metric.name == name and metric.summary for name, metric in METRICS.items())
