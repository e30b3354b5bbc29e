"""``geval baseline``: outputs of simple models."""

import shutil
from pathlib import Path

import pytest

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
OUTPUT = Path("dev-0") / "out-model=ngram-both.tsv"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    shutil.copytree(GAZETTE, tmp_path / "gazette", ignore=shutil.ignore_patterns("out-model*"))
    monkeypatch.chdir(tmp_path / "gazette")
    return tmp_path


def test_the_default_is_written_into_the_folder_of_the_test(geval, folder):
    assert geval("baseline", "-t", "dev-0") == (0, f"wrote `./{OUTPUT}`\n", "")
    assert geval("-t", "dev-0") == (0, "66.22\n", "")
    assert geval("check", "-t", "dev-0")[0] == 0
    assert len(OUTPUT.read_text().splitlines()[0].split()) == 301


@pytest.mark.slow
def test_a_baseline_of_both_contexts_says_that_it_has_one(geval):
    header = Path("in-header.tsv")
    header.write_text(header.read_text().replace("RightContext", "copyright"))
    others = header.read_text().strip().replace("LeftContext\t", "").replace("\t", ", ")
    note = "geval: note: no column is the right context: ngram-both uses column LeftContext alone\n"
    note += f"  --left and --right name the columns of both; the other columns are {others}\n"
    assert geval("baseline", "-t", "dev-0") == (0, f"wrote `./{OUTPUT}`\n", note)
    assert geval("baseline", "-t", "dev-0", "ngram")[2] == ""
    columns = ("--left", "LeftContext", "--right", "copyright")
    assert geval("baseline", "-t", "dev-0", "--force", *columns) == (0, f"wrote `./{OUTPUT}`\n", "")
    assert geval("-t", "dev-0", "-o", OUTPUT.name) == (0, "66.22\n", "")


def test_an_output_is_not_written_over(geval):
    OUTPUT.write_text("mine\n")
    status, out, err = geval("baseline", "-t", "dev-0")
    assert (status, out) == (2, "")
    assert err == f"geval: `./{OUTPUT}` is there already, and is left as it is\n  --force writes over it\n"
    assert OUTPUT.read_text() == "mine\n"
    assert geval("baseline", "-t", "dev-0", "--force", "--words", "5")[0] == 0
    assert len(OUTPUT.read_text().splitlines()[0].split()) == 6
    words = ("baseline", "-t", "dev-0", "ngram", "--order", "2")
    assert geval(*words) == (0, "wrote `./dev-0/out-model=ngram,order=2.tsv`\n", "")


def test_there_is_nothing_to_train_on(geval):
    Path("test-A/expected.tsv").unlink()  # which is not needed
    assert geval("baseline", "unigram")[0] == 0
    Path("train/expected.tsv").unlink()
    message = "geval: There is nothing to train on: `./train`\n  it takes in.tsv and expected.tsv\n"
    assert geval("baseline", "-t", "dev-0") == (1, "", message)
    shutil.rmtree("train")
    status, _, err = geval("baseline", "-t", "dev-0")
    assert (status, err.splitlines()[0]) == (1, "geval: No such set in the challenge: `./train`")


def test_outputs_in_another_folder_need_the_challenge(geval):
    Path("outputs/dev-0").mkdir(parents=True)
    status, _, err = geval("baseline", "-t", "dev-0", "unigram", "--out-directory", "outputs")
    assert (status, err) == (1, "geval: No file with the input: `outputs/dev-0/in.tsv`\n"
        "  --expected-directory DIR says where the challenge is\n")  # fmt: skip
    words = ["--out-directory", "outputs", "--expected-directory", "."]
    assert geval("baseline", "-t", "dev-0", "unigram", *words)[0] == 0
    assert Path("outputs/dev-0/out-model=unigram.tsv").exists()
    words = ("baseline", "-t", "dev-0", "rest", "--expected-directory", ".", "--out-directory", "mine")
    assert geval(*words) == (0, "wrote `mine/dev-0/out-model=rest.tsv`\n", "")


def test_an_arpa_file_scores_the_most_frequent_words_in_both_contexts(geval):
    Path("text.txt").write_text("a b c\na b c\nd b e\n")
    assert geval("lm", "train", "text.txt", "-o", "2", "--arpa", "m.arpa", "--discount-fallback")[0] == 0
    assert geval("baseline", "-t", "dev-0", "kenlm:m.arpa", "--words", "4")[0] == 0
    lines = Path("dev-0/out-model=kenlm-m.arpa.tsv").read_text().splitlines()
    assert len({len(line.split()) for line in lines}) == 1
    assert all(line.split(":")[-1] == lines[0].split(":")[-1] for line in lines)  # the rest is the unigram's
    missing = "geval: Cannot read `x.arpa`: No such file or directory\n"
    assert geval("baseline", "-t", "dev-0", "kenlm:x.arpa") == (1, "", missing)
    Path("broken.arpa").touch()
    assert geval("baseline", "kenlm:broken.arpa")[::2] == (1,
        "geval: This is no ARPA file: it has no line \\data\\\n  in `broken.arpa`\n")  # fmt: skip


def test_contexts_with_other_names(geval):
    Path("in-header.tsv").write_text("FileId\tcopyright\tTextBefore\tTextAfter\n")
    assert geval("baseline", "-t", "dev-0") == (2, "",
        "geval: no column has a name of a context, such as LeftContext and RightContext\n"
        "  --left and --right name the columns; there are FileId, copyright, TextBefore, TextAfter\n")  # fmt: skip
    assert geval("baseline", "-t", "dev-0", "--left", "TextBefore", "--right", "TextAfter")[0] == 0
    assert geval("-t", "dev-0") == (0, "66.22\n", "")
    status, _, err = geval("baseline", "-t", "dev-0", "--left", "TextBefor", "--right", "TextAfter", "--force")
    assert (status, err) == (2, "geval: no column TextBefor (--left)\n"
        "  did you mean TextBefore? there are FileId, copyright, TextBefore, TextAfter\n")  # fmt: skip
