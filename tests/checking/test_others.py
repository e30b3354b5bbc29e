"""The rules of outputs that are no distributions over words."""

import json
import math
import random
import sys

import pytest

from geval_py import check
from geval_py.cli import main

OF_WORDS = "a:0.5 a:0.5 :0.1\nthe\n"  # what the rules of word gaps are about


@pytest.fixture
def submission(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("dev-0", "train"):
        (tmp_path / name).mkdir()

    def write(metric, output, expected="", train=""):
        (tmp_path / "config.txt").write_text(f"--metric {metric}\n")
        (tmp_path / "dev-0/out.tsv").write_bytes(output if isinstance(output, bytes) else output.encode())
        if expected:
            (tmp_path / "dev-0/expected.tsv").write_text(expected)
        if train:
            (tmp_path / "train/expected.tsv").write_text(train)
        return tmp_path

    return write


def problems(path):
    report = check(path)
    return {
        problem.rule.code: [(place.line, place.column, place.token, place.message) for place in problem.places]
        for problem in report.problems
        if problem.rule.code != "W108"  # some test sets have no answers here
    }


@pytest.mark.parametrize(
    "metric", ["BLEU", "WER", "Accuracy", "Macro-F1", "MultiLabel-F1", "SacreBLEU", "NMI", "MAP"]
)
def test_any_text_is_fine(submission, metric):
    assert problems(submission(metric, OF_WORDS, "x\ny\n")) == {}


CASES = "oslo:0.5 :0.5\n" * 3, "Oslo\n" * 3
FOUND = [  # metric, output, answers, the places of each rule
    ("BLEU --metric LogLossHashed", OF_WORDS, "", {"E113": [(2, 1, "the")], "W206": [(1, 7, "a:0.5")]}),
    ("Nonsense", OF_WORDS, "", {"E113": [(2, 1, "the")], "W206": [(1, 7, "a:0.5")]}),
    ("LogLoss", "a:0.5 a:0.5 :0.1\n", "the\n", {"W206": [(1, 7, "a:0.5")]}),
    ("LogLoss", "0.9\n", "the\n", {"E117": [(1, 1, "0.9")]}),
    ("LogLoss", "0.1 0.8 0.1\n", "noun\n", {"E117": [(1, 1, "0.1")]}),
    ("LogLoss --metric LogLossHashed", "0.9\n", "1\n", {"E117": [(1, 1, "0.9")]}),
    ("LogLossHashed", "0.9\n", "1\n", {"E115": [(1, 1, "0.9")]}),
    ("MultiLabel-F1", "\n\nrain\n", "\nrain\nrain\n", {"W217": [(2, 1, "")]}),
    ("MultiLabel-F1:l", "\n", "\n", {"W217": [(1, 1, "")]}),
    ("MultiLabel-LogLoss", "a:0.5 b:1.0\na:0.9 b:0.1\n", "a\nb\n", {}), ("RMSE", "0\n1\n", "1\n0\n", {}),
    ("Accuracy", "0\n1\n", "1\n0\n", {}),
    ("RMSE --in-header no.tsv", "1\nx\n", "1\n2\n", {"E117": [(2, 1, "x")]}),
    ("BLEU", "a b\n\n \nc\n", "", {"W217": [(2, 1, ""), (3, 1, "")]}),
    ("WER", b"\xef\xbb\xbfa\r\nb\xff\n", "", {"W210": [(1, 2, "\r")], "W211": [(1, 1, "\ufeff")], "W212": [(2, 2,
        "\ufffd")]}),
    ("WER", "a\n".encode("utf-16"), "", {"E106": [(0, 0, "")]}), ("RMSE:s<,><.>", "2,5\n1\n", "2\n1\n", {}),
    ("RMSE:s<,><.>", "2,5,\n1\n", "2\n1\n", {"E117": [(1, 1, "2.5.")]}),
    ("Hit@3", *CASES, {"W302": [(line, 1, "oslo") for line in (1, 2, 3)]}),
    ("ChoiceLogLoss", *CASES, {"W302": [(line, 1, "oslo") for line in (1, 2, 3)]}),
    ("Nonsense", b"a b\r\nc\xff\n", "x\n", {"E104": [(2, 1, "")], "W210": [(1, 4, "\r")], "W212": [(2, 2,
        "\ufffd")]}),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "output", "answers", "places"), FOUND)
def test_where_problems_are(submission, metric, output, answers, places):
    found = problems(submission(metric, output, answers))
    assert {code: [place[:3] for place in of_code] for code, of_code in found.items()} == places


NOT_IN_FORMAT = {
    "RMSE": ("1.5\n0,5\n", (2, 1, "0,5", "`0,5` is not a number; write a decimal point, not a comma")),
    "MacroAvg/Likelihood": ("0.5\nnan\n", (2, 1, "nan")),
    "MAE": ("1\n\n", (2, 1, "", "the line is empty; write a number, such as 0.25")),
    "Spearman": ("1\n2 3\n", (2, 1, "2 3")),
    "F1": ("0.5\n-1\n", (2, 1, "-1", "0, 1 or a probability of 1 is expected, from 0 to 1")),
    "Haversine": ("1.5\t2\n1.5\tx\n", (2, 5, "x")),
    "BIO-F1": ("O B-a I-a\nO I-a\n", (2, 3, "I-a",
        "`I-a` goes on with no entity of this label; one begins with `B-`")),
    "BIO-Weighted-F1": ("O B-a I-a\nO I-a\n", (2, 3, "I-a")), "Soft-F1": ("a:1-4\na:1 b\n", (2, 5, "b")),
    "Probabilistic-Soft-F1": ("a:1-4\na:1 b:x\n", (2, 5, "b:x")), "FLC-F2": ("a:1-4:0.5\na:1,\n", (2, 1, "a:1,")),
    "SegmentAccuracy": ("a:1\na:1-4 b:4\n", (2, 7, "b:4",
        "position 4 is in two segments, the other one in column 1")),
    "Soft2D-F1": ("a:1/1,2,3,4\na:1,2,3,4 4,3,2,1\n", (2, 11, "4,3,2,1")),
    "Probabilistic-Soft2D-F1": ("1,2,3,4:0.5\n1,2,3,4:1.5\n", (2, 9, "1.5", "`1.5` is not from 0 to 1")),
    "ClippEU": ("1/1,2,3,4\n1,2,3,4 1,2,3,4/5\n", (2, 9, "1,2,3,4/5")),
    "MAE-Against-Interval": ("1.5\n1,2\n", (2, 1, "1,2")), "Improvement@0.5": ("1\nhigh\n", (2, 1, "high")),
    "CustomMetric1": ("a\tb\na\n", (2, 1, "a")),
}  # fmt: skip


@pytest.mark.parametrize("metric", NOT_IN_FORMAT)
def test_a_line_that_is_not_in_the_format(submission, metric):
    output, want = NOT_IN_FORMAT[metric]
    (place,) = problems(submission(metric, output))["E117"]
    assert place[: len(want)] == want


@pytest.mark.parametrize(
    "metric", ["Likelihood", "LogLoss", "{LogLoss,Likelihood}:N<x>", "Likelihood --metric Accuracy"]
)
@pytest.mark.parametrize("answers", ["dev-0", "train", "nowhere"])
def test_classes_under_a_metric_on_exact_words(submission, metric, answers):
    """As they are scored: the answers, those of train, or else the output tell that classes are meant."""
    known = {} if answers == "nowhere" else {"expected" if answers == "dev-0" else "train": "1\n0\n1\n"}
    assert problems(submission(metric, "0.9\n0.2\n0.8\tsure\n", **known)) == {}
    (place,) = problems(submission(metric, "0.9\n0,2\n0.8\n", **known))["E117"]
    assert place[:3] == (2, 1, "0,2")


WORD_GAPS, ANY_TEXT = "the rules of word gaps apply", "only the rules of any text apply"

OTHERWISE = "for another task, add --metric NAME or --challenge DIR"
UNKNOWN = "Unknown or broken metric definition:"
NOT_KNOWN = {  # config.txt, output, note
    "no config.txt": (None, "a:0.5 :0.5\n", f"{WORD_GAPS}, since `./config.txt` is not there; {OTHERWISE}"),
    "an empty one": ("", "a:0.5 :0.5\n", f"{WORD_GAPS}, since `./config.txt` names no metric; {OTHERWISE}"),
    "without a metric": ("--precision 2", "a:0.5 :0.5\n", f"{WORD_GAPS}, since `./config.txt` names no metric; {OTHERWISE}"),
    "unknown, of words": ("--metric Nonsense", "a:0.5 :0.5\n",
     f"{UNKNOWN} Nonsense; geval --list-metrics shows those that are known; in `./config.txt`; so {WORD_GAPS}"),
    "unknown": ("--metric BLEUU", "a b\n\n",
     f"{UNKNOWN} BLEUU; did you mean BLEU?; in `./config.txt`; so {ANY_TEXT}"),
    "broken": ("--nonsense", "a b\n",
     f"Invalid option `--nonsense'; did you mean --seed?; in `./config.txt`; so {ANY_TEXT}"),
    "no header": ("--metric BLEU --in-header no.tsv", "a b\n",
     "No file with header specification: `./no.tsv`; so no line is taken for a header"),
}  # fmt: skip


@pytest.mark.parametrize(("config", "output", "note"), NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_what_is_not_known_is_said(submission, capsys, config, output, note):
    path = submission("BLEU", output)
    (path / "config.txt").unlink()
    if config is not None:
        (path / "config.txt").write_text(config)
    words = ["check", "-t", "dev-0", "--lines", str(output.count("\n"))]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert shown.out == "no problems in 1 file\n"
    assert shown.err == f"geval: note: {note}\n"
    assert check(".", tests=["dev-0"]).notes == (note,)
    assert main([*words, "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["notes"], shown.err) == ([note], "")


@pytest.mark.parametrize("output", ["3.5\n-2\n", "B-per O\nO\n", "1990\nnever\n", "noun\nthe:0.5 :0.5\n"])
def test_other_tasks_without_a_metric(output, submission):
    path = submission("Accuracy", output)
    assert "E113" not in problems(path)
    (path / "config.txt").unlink()
    report = check(path, rules=["E11"])
    assert {problem.rule.code for problem in report.problems} <= {"E113", "E115"}
    assert report.status == 1
    assert report.notes[0].endswith(OTHERWISE)


def test_nothing_is_fixed(submission, capsys):
    path = submission("BLEU", "a  b \n")
    status = main(["check", "--fix"])
    assert (status, (path / "dev-0/out.tsv").read_text()) == (0, "a  b \n")
    assert "is scored with BLEU: only distributions over words are fixed" in capsys.readouterr().err
    submission("Nonsense", b"a b\r\nc\xff\n", "x\n")
    assert main(["check", "--fix", "-t", "dev-0"]) == 1
    assert "is scored with a metric that is not known: only distributions" in capsys.readouterr().err


VECTOR = " ".join(["-6.9"] * 1024)
OF_WORDS_NEAR = [
    "Hit@3", "MRR", "ChoiceAccuracy", "ChoiceLogLoss", "RankCorrelation",
    "KullbackLeiblerHashed", "CrossEntropyToNormsHashed8",
]  # fmt: skip


@pytest.mark.parametrize("metric", OF_WORDS_NEAR)
def test_the_rules_of_word_gaps_hold_for_other_scores_of_words(submission, metric):
    expected = "a:1\n" * 4 if metric in OF_WORDS_NEAR[-3:] else "a\n" * 4
    found = problems(
        submission(metric, "a:0.5 :0.5\na:0,5 :0.5\na:0.5 b:0.25 c:-1e-9 :0.25\na:0.50 a:0.50 :0.10\n", expected)
    )
    assert {code: [place[:3] for place in places] for code, places in found.items()} == {
        "E114": [(2, 3, "0,5")], "W201": [(3, 16, "c:-1e-9")], "W202": [(4, 1, "")], "W206": [(4, 8, "a:0.50")],
    }  # fmt: skip
    assert problems(submission(metric, "a:0.5 :0.5\n" * 4, expected)) == {}


@pytest.mark.parametrize("metric", [*OF_WORDS_NEAR, "Hit@3 --metric LogLossHashed"])
def test_a_vector_has_no_words(submission, metric):
    found = problems(submission(metric, f"a:0.5 :0.5\n{VECTOR}\n"))
    name = metric.partition(" ")[0]
    message = f"{name} compares words: write `word:probability` entries"
    assert found == {"E117": [(2, 1, "-6.9", message)]}
    assert problems(submission("LogLossHashed", f"a:0.5 :0.5\n{VECTOR}\n")) == {}


@pytest.mark.parametrize(("metric", "codes"), [
    ("LogLossHashed", {"W204", "W214", "W301"}), ("Hit@3 --metric LogLossHashed", {"W204", "W214", "W301"}),
    ("Hit@3 --metric MRR", set()), ("ChoiceAccuracy", set()), ("ChoiceLogLoss", {"W301"}),
    ("KullbackLeiblerHashed", {"W204", "W214"}), ("RankCorrelation", set()),
])  # fmt: skip
def test_the_rest_is_asked_for_where_a_loss_needs_it(submission, metric, codes):
    assert set(problems(submission(metric, "b:1\n:1\n", "a\na\n"))) == codes


OF_CLASS = "the probability of the class 1 is from 0 to 1: divide percentages by 100, and apply the sigmoid to logits"
COUNTS = "`80` is not in [0,1], so all numbers of the line are read as logarithms; they look like percentages: "
NO_PROBABILITIES = {  # metric: output, answers, the first message, what the lines have and what to do
    "BrierScore": ("en:80 de:20\n" * 3, "en\nde\nen\n", f"{COUNTS}divide each by 100",
     "neither probabilities nor their logarithms; they look like percentages: divide each by 100"),
    "LogLoss": ("93\n12\t:\n0.9\n", "1\n0\n1\n", f"`93` is no probability; {OF_CLASS}", f"no probabilities; {OF_CLASS}"),
    "Likelihood": ("2.5\n-1.5\n1\n", "1\n0\n1\n", f"`2.5` is no probability; {OF_CLASS}", f"no probabilities; {OF_CLASS}"),
    "MacroAvg/Likelihood": ("93\n12\n0\n", "1\n0\n1\n", f"`93` is no probability; {OF_CLASS}", f"no probabilities; {OF_CLASS}"),
}  # fmt: skip


@pytest.mark.parametrize("metric", NO_PROBABILITIES)
def test_numbers_that_are_no_probabilities(submission, metric, capsys):
    output, answers, message, what = NO_PROBABILITIES[metric]
    path = submission(metric, output, answers, train="en\nde\n")
    (problem,) = check(path, rules=["E119"]).problems
    count = problem.count
    assert problem.places[0].message == message
    assert (
        f"{problem.summary}; {problem.fix[0].lower()}{problem.fix[1:-1]}"
        == f"{count} of 3 lines have numbers that are {what}"
    )
    assert main(["-t", "dev-0"]) == 0
    note = f"geval: note: `./dev-0/out.tsv`: {count} of 3 lines have numbers that are {what}\n"
    assert note in capsys.readouterr().err


def test_a_few_numbers_that_are_no_probabilities_of_a_class(submission):
    """GEval moves them into [0, 1], which rounding may need."""
    assert problems(submission("LogLoss", "1.0000001\n0.2\n1.2\n0.1\n", "1\n0\n1\n0\n")) == {}


TAGS, PLACES = ["noun", "verb", "verb", "noun"], range(20)
TEXTS = [f"The dog number {place % 3} sleeps." for place in PLACES]
PREFIXES = {  # metric, how a line is written, its answer, what each line begins with
    "a number and a TAB": ("RMSE", lambda place, text: f"{place}\t{place % 7}.5", lambda place, text: f"{place % 7}.5", "0"),
    "a number and a comma": ("Accuracy", lambda place, text: f"{place + 1},{text}", None, "1"),
    "grep -n": ("LogLossHashed", lambda place, text: f"{place + 1}:dog:0.5 :0.5", lambda place, text: "dog", "1"),
    "a list": ("BLEU", lambda place, text: f"{place + 1}. {text}", None, "1"),
    "fairseq": ("BLEU", lambda place, text: f"H-{place}\t{text}", None, "H-0"),
    "Kaldi": ("WER", lambda place, text: f"utt{place:03} {text}", None, "utt000"),
}  # fmt: skip


@pytest.mark.parametrize("name", PREFIXES)
def test_what_begins_each_line(submission, name):
    metric, write, answer, what = PREFIXES[name]
    answers = list(map(answer, PLACES, TEXTS)) if answer else TEXTS
    written = list(map(write, PLACES, TEXTS))
    found = problems(
        submission(metric, "".join(f"{text}\n" for text in written), "".join(f"{text}\n" for text in answers))
    )
    assert found["W222"] == [(1, 1, "", f"each line begins with its number, as in `{what}`")]


@pytest.mark.parametrize("metric", ["BLEU", "Accuracy", "MAP", "RMSE"])
def test_answers_that_begin_so_themselves(submission, metric):
    lines = "".join(f"{place}\t{text}\n" for place, text in enumerate(TEXTS))
    assert problems(submission(metric, lines, lines)) == {} or metric == "RMSE"
    ids = "".join(f"d{place}\td{place + 1}\n" for place in PLACES)
    assert metric == "RMSE" or problems(submission(metric, ids, ids)) == {}


LABELS = {  # metric, line, its first label, and why it is none of the answers
    "in another case": ("Macro-F1", str.capitalize, "Noun"),
    "a class of a model": ("Accuracy", lambda tag: f"LABEL_{len(tag)}", "LABEL_4"),
    "quotes": ("Macro-F1", lambda tag: f'"{tag}"', '"noun"'),
    "a score beside it": ("MacroAvg/Accuracy", lambda tag: f"{tag}\t0.93", "noun\\t0.93"),
    "percentages": ("MultiLabel-F1", lambda tag: f"{tag}:75", "noun:75"),
    "other names": ("BrierScore", lambda tag: f"{tag}s:0.9 :0.1", "nouns"),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_never_occur(submission, name):
    metric, write, label = LABELS[name]
    output = "".join(f"{write(tag)}\n" for tag in TAGS * 5)
    answers = "".join(f"{tag}\n" for tag in TAGS * 5)
    message = f"20 of the first 20 lines have no label of the answers: `{label}` is none of noun, verb"
    assert problems(submission(metric, output, train=answers))["W303"] == [(1, 1, "", message)]
    assert problems(submission(metric, output, answers))["W303"] == [(1, 1, "", message)]


def test_hidden_answers_are_not_told(submission):
    path = submission("Macro-F1", "Noun\n" * 20, "noun\nverb\n" * 10)
    assert check(path, rules=["W222", "W303"]).problems == ()


def test_labels_that_may_be_right(submission):
    answers = "".join(f"{tag}\n" for tag in TAGS * 5)
    names = "".join(f"name {place}\n" for place in PLACES)
    assert problems(submission("Macro-F1", answers, answers)) == {}
    assert "W303" not in problems(submission("Accuracy", names.upper(), names))  # not of few labels
    assert problems(submission("Accuracy", "0.7\n" * 20, "1\n0\n" * 10)) == {}
    assert problems(submission("Fuzzy/MultiLabel-F1", answers.replace("n", "m"), answers)) == {}
    assert problems(submission("Macro-F1:l", answers.upper(), answers)) == {}


RANDOM = random.Random(1)
PRICES = RANDOM.sample([100, 200, 300, 400, 900] * 4, 20)
CLASSES = RANDOM.sample([1, 0, 1, 1, 0] * 4, 20)
LISTS = RANDOM.sample(["d1 d2", "d3 d4", "d1 d2"] * 6, 18)
WORSE = {  # metric, answers, output, and the guess that would be better on each line
    "standardised numbers": ("RMSE", PRICES, [(price - 380) / 279 for price in PRICES], "380"),
    "logarithms": ("MAE", PRICES, [math.log1p(price) for price in PRICES], "380"),
    "numbers of other lines": ("RMSE", PRICES, RANDOM.sample(PRICES, 20), "380"),
    "the probability of the other class": ("LogLoss", CLASSES, [0.9 - 0.8 * one for one in CLASSES], "0.6"),
    "classes as probabilities": ("LogLoss", CLASSES, [0, *CLASSES[1:]], "0.6"),
    "numbers of other classes": ("Accuracy", CLASSES, [1 - one for one in CLASSES], "1"),
    "labels in another order": ("Macro-F1", ["noun", "noun", "verb"] * 5, ["verb", "adj", "noun"] * 5, "noun"),
    "probabilities below one half": ("MultiLabel-F1", ["a b", "a b", "b"] * 5, ["a:0.4 b:0.45"] * 15, "a b"),
    "labels of another scheme": ("BIO-F1", ["B-PER O", "O B-LOC"] * 9, ["B-PERSON O", "O B-GPE"] * 9, "B-PER O"),
    "items apart by spaces": ("MAP", [one.replace(" ", "\t") for one in LISTS], LISTS, "d1\\td2"),
    "many lines": ("RMSE", PRICES * 500, [price / 1000 for price in PRICES] * 500, "380.204"),
}  # fmt: skip


def lines_of(values):
    return "".join(f"{value}\n" for value in values)


@pytest.mark.parametrize("name", WORSE)
def test_one_guess_on_all_lines_that_is_better(submission, name, capfd):
    metric, answers, output, guess = WORSE[name]
    path = submission(metric, lines_of(output), lines_of(answers))
    (problem,) = (one for one in check(path).problems if one.rule.code == "W304")
    assert problem.summary == f"{metric} would be better with `{guess}` on each line"
    assert problem.fix == "Write lines in the order of in.tsv, and values in the units and classes of expected.tsv."
    assert main(["-t", "dev-0"]) == 0
    note = f"geval: note: `./dev-0/out.tsv`: {problem.summary}\n"
    assert (note in capfd.readouterr().err) == (metric != "LogLoss")


def test_a_better_guess_that_is_not_utf_8_or_beyond_all_numbers(submission):
    path = submission("Accuracy", "x\n" * 20)
    (path / "dev-0/expected.tsv").write_bytes(b"\xe9\n" * 19 + b"x\n")
    (problem,) = (one for one in check(path).problems if one.rule.code == "W304")
    assert problem.summary == "Accuracy would be better with `\ufffd` on each line"
    assert problems(submission("RMSE", "1e308\n" * 20, "1e308\n" * 20)) == {}


def test_a_metric_whose_package_is_missing_is_not_asked_for_a_better_guess(submission, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert problems(submission("Probabilistic-MultiLabel-F1", "a:0.1\n" * 20, "a\n" * 20)) == {}


NOT_WORSE = {
    "the mean of train": ("RMSE", PRICES, [360] * 20),
    "a frequent class": ("Accuracy", CLASSES, [1] * 20),
    "probabilities of words that are digits": ("Perplexity", CLASSES, ["0:0.3 1:0.3 2:0.4"] * 20),
    "a part of the lines": ("RMSE", PRICES * 20_000, [1] * 400_000),
    "texts": ("BLEU", ["a b c d", "a b c d", "b c"] * 5, ["x"] * 15),
    "few lines": ("RMSE", PRICES[:4], [0] * 4), "changed lines": ("Accuracy:l", ["A", "A", "B"] * 5, ["c"] * 15),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_WORSE)
def test_no_guess_that_is_clearly_better(submission, name):
    metric, answers, output = NOT_WORSE[name]
    assert "W304" not in problems(submission(metric, lines_of(output), lines_of(answers)))


def test_a_line_without_a_label(submission):
    message = "only a rest: all words are equally likely"
    found = problems(submission("BrierScore", "en:0.5 :0.5\n:1\n:0.25 :0.75\n", "en\n" * 3))
    assert found == {"W214": [(2, 1, ":1", message), (3, 1, ":0.25 :0.75", message)]}


def test_the_rules_of_labels(submission):
    no_probability = "`en` has no probability; an entry is `word:probability`, and a word cannot contain a space"
    no_line = "the line is empty; write `:1` where there is no guess"
    found = problems(submission("BrierScore", "en:0.5 pl:0.5\nen\n\nEN:0.7 pl:0.3\n", "en\n" * 4))
    assert found == {"E117": [(2, 1, "en", no_probability), (3, 1, "", no_line)]}
