"""The rules of outputs that are no distributions over words."""

import pytest

from geval_py.checking.check import check_submission
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
    report = check_submission(path)
    return {
        problem.rule.code: [(place.line, place.column, place.token, place.message) for place in problem.places]
        for problem in report.problems
    }


@pytest.mark.parametrize("metric", ["BLEU", "WER", "Accuracy", "MultiLabel-F1", "SacreBLEU", "NMI", "MAP"])
def test_any_text_is_fine(submission, metric):
    assert problems(submission(metric, OF_WORDS, "x\ny\n")) == {}


def test_the_rules_of_word_gaps_hold_where_a_metric_is_of_them(submission):
    path = submission("BLEU --metric LogLossHashed", OF_WORDS)
    assert "W206" in problems(path)
    path = submission("Nonsense", OF_WORDS)
    assert "W206" in problems(path)


NOT_IN_FORMAT = {
    "RMSE": ("1.5\n0,5\n", (2, 1, "0,5", "`0,5` is not a number; write a decimal point, not a comma")),
    "MacroAvg/Likelihood": ("0.5\nnan\n", (2, 1, "nan")),
    "MAE": ("1\n\n", (2, 1, "", "the line is empty; write a number, such as 0.25")),
    "Spearman": ("1\n2 3\n", (2, 1, "2 3")),
    "F1": ("0.5\n-1\n", (2, 1, "-1", "0, 1 or a probability of 1 is expected, from 0 to 1")),
    "Haversine": ("1.5\t2\n1.5\tx\n", (2, 5, "x")),
    "BIO-F1": (
        "O B-a I-a\nO I-a\n",
        (2, 3, "I-a", "`I-a` goes on with no entity of this label; one begins with `B-`"),
    ),
}


@pytest.mark.parametrize("metric", NOT_IN_FORMAT)
def test_a_line_that_is_not_in_the_format(submission, metric):
    output, want = NOT_IN_FORMAT[metric]
    (place,) = problems(submission(metric, output))["E117"]
    assert place[: len(want)] == want


def test_a_class_that_the_training_set_has_not(submission):
    path = submission("Macro-F1", "noun\nnuon\nverb:0.9 :0.1\nxyz:0.6 noun:0.4\n", train="noun\nverb \n")
    assert problems(path) == {
        "W216": [
            (2, 1, "nuon", "the training set has no class `nuon`; did you mean `noun`?"),
            (4, 1, "xyz", "the training set has no class `xyz`"),
        ]
    }


def test_without_a_training_set_every_class_is_fine(submission):
    assert problems(submission("Macro-F1", "noun\nnuon\n")) == {}


def test_an_empty_line(submission):
    assert problems(submission("BLEU", "a b\n\n \nc\n")) == {
        "W217": [(2, 1, "", "the line is empty"), (3, 1, "", "the line is empty")]
    }


@pytest.mark.parametrize(("output", "code"), [("a\n", "E103"), ("a\nb\nc\n", "E104"), ("", "E102")])
def test_the_number_of_lines(submission, output, code):
    assert code in problems(submission("WER", output, "x\ny\n"))


def test_bytes_and_line_ends(submission):
    found = problems(submission("WER", b"\xef\xbb\xbfa\r\nb\xff\n"))
    assert {code: [place[:2] for place in places] for code, places in found.items()} == {
        "W210": [(1, 2)],
        "W211": [(1, 1)],
        "W212": [(2, 2)],
    }
    assert set(problems(submission("WER", "a\n".encode("utf-16")))) == {"E106"}


def test_nothing_is_mended(submission, capsys):
    path = submission("BLEU", "a  b \n")
    status = main(["check", "--fix"])
    assert (status, (path / "dev-0/out.tsv").read_text()) == (0, "a  b \n")
    assert "is scored with BLEU: only distributions over words are mended" in capsys.readouterr().err


def test_lines_are_read_as_the_flags_of_the_metric_leave_them(submission):
    assert problems(submission("RMSE:s<,><.>", "2,5\n1\n", "2\n1\n")) == {}
    (place,) = problems(submission("RMSE:s<,><.>", "2,5,\n1\n", "2\n1\n"))["E117"]
    assert place[:2] == (1, 1)
    assert problems(submission("Macro-F1:l", "Noun\nVREB\n", "noun\nverb\n", "NOUN\nverb\n")) == {
        "W216": [(2, 1, "vreb", "the training set has no class `vreb`; did you mean `verb`?")]
    }
