"""A new challenge with sample data; in comments and ids, what GEval 1.42.2 does."""

import os
import re

import pytest
from raising import refused

from geval_py import Challenge, UsageError
from geval_py.authoring.init import init_challenge
from geval_py.authoring.validate import validate_challenge
from geval_py.errors import ExistingFileError
from geval_py.evaluation import evaluate_all
from geval_py.reading.config import Task, words_of
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.registry import METRICS

FILES = [
    ".gitignore", "README.md", "config.txt", "in-header.tsv", "out-header.tsv", "train/in.tsv", "train/expected.tsv",
    "dev-0/in.tsv", "dev-0/expected.tsv", "test-A/in.tsv", "test-A/expected.tsv",
]  # fmt: skip


def init(folder, *metrics, **settings):
    """Write a challenge; what belongs to a task is taken out of the settings."""
    fields = {name: settings.pop(name) for name in (*settings,) if name in Task.defaults}
    init_challenge(Task(expected_directory=str(folder), metrics=metrics, **fields), **settings)


@pytest.fixture
def challenge(tmp_path):
    return tmp_path / "C"


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_files_of_a_new_challenge(challenge):
    init(challenge, "PerplexityHashed")
    assert files_in(challenge) == sorted(FILES)
    assert (challenge / ".gitignore").read_text() == "\n*~\n*.swp\n*.bak\n*.pyc\n*.o\n.DS_Store\n.token\n"  # GEval's
    assert b"\r" not in b"".join(path.read_bytes() for path in challenge.rglob("*") if path.is_file())


@pytest.mark.parametrize(("metric", "in_header", "out_header"), [
    ("LikelihoodHashed", "LeftContext\tRightContext\n", "GuessedWord\n"),
    ("Likelihood", "Text\n", "Probability\n"), ("MacroAvg/Likelihood", "Text\n", "Probability\n"),
    ("Haversine", "Place\n", "Longitude\tLatitude\n"), ("CER", "Text\n", "CorrectedText\n"), ("MAP", "Word\n", None),
    ("Probabilistic-Soft2D-F0.5", "File\n", "Pictures\n"),
    ("CustomMetric1", "Abbreviation\tSentence\n", "Expansion\tBaseForm\n"),
    ("NDCG@3", "Word\n", None),
    *((metric, None, None) for metric in ("BLEU", "GLEU", "WER", "WAR", "Mean/WER", "Mean/WAR", "chrF")),
])  # fmt: skip
def test_headers(metric, in_header, out_header, challenge):
    """GEval 1.42.2: the same files; its columns have other names."""
    init(challenge, metric)
    words = words_of((challenge / "config.txt").read_text())
    page = (challenge / "README.md").read_text()
    for name, header in (("in-header", in_header), ("out-header", out_header)):
        path = challenge / f"{name}.tsv"
        assert (path.read_text() if path.exists() else None) == header
        assert (f"--{name}" in words, f"`{name}.tsv`" in page) == (header is not None,) * 2


CONFIGS = {
    "one metric": (["LogLossHashed"], {}, "--metric LogLossHashed"),
    "bits 10 are dropped": (["LogLossHashed10"], {}, "--metric LogLossHashed"),
    "other bits are kept": (["LogLossHashed8"], {}, "--metric LogLossHashed8"),
    "flags": (["LogLossHashed10:N<x>P<2>"], {}, "--metric LogLossHashed:N<x>P<2>"),
    "products are multiplied out": (["{LogLoss,Perplexity}Hashed"], {},
     "--metric LogLossHashed --metric PerplexityHashed"),
    "a test set": (["LogLossHashed"], {"test_name": "test-B"}, "--metric LogLossHashed --test-name test-B"),
    "precision": (["LogLossHashed"], {"precision": 2}, "--metric LogLossHashed --precision 2"),
    "percentage": (["LogLossHashed"], {"precision": 0, "percentage": True},
     "--metric LogLossHashed --precision 0 --show-as-percentage"),
    "alternative metrics": (["A"], {"alt_metrics": ("LogLossHashed",)}, "--metric LogLossHashed"),
    "a selected metric": (["LogLossHashed", "PerplexityHashed"], {"select_metrics": ("PerplexityHashed",)},
     "--metric PerplexityHashed"),
    "spaces are escaped, unlike in GEval": (["LogLossHashed:N<a b>"], {}, r"--metric LogLossHashed:N<a\ b>"),
}  # fmt: skip
HEADERS = " --in-header in-header.tsv --out-header out-header.tsv"


@pytest.mark.parametrize(("metrics", "settings", "text"), CONFIGS.values(), ids=CONFIGS)
def test_config(metrics, settings, text, challenge):
    init(challenge, *metrics, **settings)
    assert (challenge / "config.txt").read_text() == text + HEADERS


def test_what_no_config_can_hold_is_refused(challenge):
    with pytest.raises(UsageError, match=r"^config.txt cannot hold a backslash before white space: LogLoss"):
        init(challenge, r"LogLossHashed:s<\ ><b>")
    assert not challenge.exists()


def test_the_answers_may_have_another_name(challenge):
    init(challenge, "LogLossHashed", expected_file="answers.tsv")
    assert files_in(challenge) == sorted(name.replace("expected", "answers") for name in FILES)
    assert "train/answers.tsv" in (challenge / "README.md").read_text()


def test_readme(challenge):
    init(challenge, "LogLossHashed12")
    text = (challenge / "README.md").read_text()
    assert text.startswith("\nGuess the missing word\n======================\n\nGive a probability")
    assert "Words are hashed into 4096 buckets (12 bits)." in text  # GEval: always 1024
    order = ["sample", "plain text", "expected.tsv", "logarithms", "probabilities themselves", "Directory structure"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert re.findall(r"^\* `([^`]*[^/])`", text, re.MULTILINE) == [name for name in FILES if name != ".gitignore"]
    assert not re.search(r"[ \r]$", text, re.MULTILINE)
    assert Challenge.open(challenge).title == "Guess the missing word"
    init(challenge.parent / "D", "Perplexity")
    assert "Words are compared as they are." in (challenge.parent / "D/README.md").read_text()


OF_WORD_GAPS = {
    *(name for name, of in METRICS.items() if of.is_of_words or (of.has_entries and of.answers == "one")),
    "LikelihoodHashed20", "Hit@5",
}  # fmt: skip

OF_OTHER_TASKS = [
    "F0.5", "Improvement@-1", "NDCG@3", "MacroAvg/F2", "Smart/Fuzzy/Accuracy", "Mean/Lower/MultiLabel-F2",
    "MacroAvg/SMAPE",
]  # fmt: skip


@pytest.mark.parametrize("metric", [*METRICS, "LikelihoodHashed20", "Hit@5", *OF_OTHER_TASKS])
def test_what_is_written_is_valid_and_can_be_scored(metric, challenge):
    init(challenge, metric)
    assert validate_challenge(str(challenge)) == ([], ())
    words = (challenge / "test-A/expected.tsv").read_text().splitlines()
    plain = words[0] in "01" or metric == "Accuracy" or metric not in OF_WORD_GAPS
    make = find_metric(metric).perfect or (str if plain else "{}:0.9 :0.1".format)
    (challenge / "test-A/out.tsv").write_text("".join(f"{make(word)}\n" for word in words))
    (evaluation,) = evaluate_all(str(challenge), "test-A")
    assert evaluation.scores[0].metric.name == metric


@pytest.mark.parametrize("there", FILES)
def test_a_file_that_is_there_stops_it(there, challenge):
    """GEval 1.42.2: ``File already there: `C/README.md` ``; it keeps what it wrote before, we write nothing."""
    (challenge / there).parent.mkdir(parents=True)
    (challenge / there).write_text("mine")
    with pytest.raises(ExistingFileError) as caught:
        init(challenge, "LogLossHashed")
    assert str(caught.value) == f"File already there: `{challenge}/{there}`"
    assert caught.value.exit_status == 1
    assert files_in(challenge) == [there]


def test_all_files_that_are_there_are_named(challenge):
    init(challenge, "LogLoss")
    with pytest.raises(ExistingFileError) as caught:
        init(challenge, "LogLoss")
    names = [f"`{challenge}/{name}`" for name in FILES]
    assert str(caught.value) == f"File already there: {names[0]}\n  and {', '.join(names[1:])}"


REFUSED = {
    "no metric": ((), {}, "no metric given, use metric=…"),
    "no such metric": (("Foo",), {}, "Unknown or broken metric definition: Foo\n  "),
    "dev-0": (("LogLoss",), {"test_name": "dev-0"},
     "a new challenge has its own dev-0: give the hidden test set another name"),
    "train": (("LogLoss",), {"test_name": "train"},
     "a new challenge has its own train: give the hidden test set another name"),
    "a path": (("LogLoss",), {"test_name": "../x"}, "a test set's name is a folder's: ../x"),
    "the folder itself": (("LogLoss",), {"test_name": "."}, "a test set's name is a folder's: ."),
    "the folder above": (("LogLoss",), {"test_name": ".."}, "a test set's name is a folder's: .."),
    "no name": (("LogLoss",), {"test_name": ""}, "a test set's name is a folder's: "),
    "a path of answers": (("LogLoss",), {"expected_file": "../x"}, "the answers need a file's name, without a folder"),
}  # fmt: skip


@pytest.mark.parametrize(("metrics", "fields", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_writes_nothing(metrics, fields, message, challenge):
    with pytest.raises(UsageError) as caught:
        init(challenge, *metrics, **fields)
    assert str(caught.value).startswith(message)
    assert not challenge.exists()


def test_what_cannot_be_written_leaves_nothing(challenge, monkeypatch):
    made = os.mkdir

    def fail(path, *mode):
        if str(path).endswith("dev-0"):
            raise OSError(28, "No space left on device", str(path))
        made(path, *mode)

    monkeypatch.setattr(os, "mkdir", fail)
    with refused(f"Cannot write `{challenge}/dev-0`: No space left on device"):
        init(challenge, "LogLossHashed")
    assert not challenge.exists()
