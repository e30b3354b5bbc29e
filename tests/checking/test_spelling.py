"""Answers that are listed only in another spelling: which one is named, in the check and with the score."""

import html
import json
import unicodedata
from urllib.parse import quote

import pytest

from geval_py import check
from geval_py.cli import main

ANSWERS = ["café", "Poznań", "żółw", "don't", "AT&T", "the", "Of"]
OTHER_GUESSES = "x:0.1 y:0.05 :0.25"

AS_CP1252, ENTITIES, ESCAPES = "as UTF-8 that was read as cp1252 or Latin-1", "with HTML entities", "with escapes"
ATTACHED = "with more or less punctuation or quotes"
WITHOUT_ACCENTS, LOOK_ALIKE = str.maketrans("éńżółŁ", "enzolL"), str.maketrans("aceopxyATO", "асеорхуАТО")
SPELLINGS = {  # how an answer is written, what is said of it, and the pair that is shown
    "lower": (str.lower, "in another case", "`poznań` for `Poznań`"),
    "upper": (str.upper, "in another case", "`CAFÉ` for `café`"),
    "capitalised": (str.capitalize, "in another case", "`Café` for `café`"),
    "nfd": (lambda word: unicodedata.normalize("NFD", word), "in another Unicode form", "`cafe\u0301` for `café`"),
    "mojibake": (lambda word: word.encode().decode("cp1252", "replace"), AS_CP1252, "`cafÃ©` for `café`"),
    "latin-1": (lambda word: word.encode().decode("latin-1"), AS_CP1252, "`cafÃ©` for `café`"),
    "html": (html.escape, ENTITIES, "`don&#x27;t` for `don't`"),
    "numeric entities": (lambda word: word.encode("ascii", "xmlcharrefreplace").decode(), ENTITIES,
        "`caf&#233;` for `café`"),
    "json": (lambda word: json.dumps(word)[1:-1], ESCAPES, "`caf\\u00e9` for `café`"),
    "python": (lambda word: word.encode("unicode_escape").decode(), ESCAPES, "`caf\\xe9` for `café`"),
    "percent": (quote, ESCAPES, "`caf%C3%A9` for `café`"),
    "without accents": (lambda word: word.translate(WITHOUT_ACCENTS), "without accents", "`cafe` for `café`"),
    "question marks": (lambda word: word.encode("ascii", "replace").decode(),
        "with `?` for other characters than ASCII", "`caf?` for `café`"),
    "curly": (lambda word: word.replace("'", "’"), "with other quotes or apostrophes", "`don’t` for `don't`"),
    "comma": (lambda word: f"{word},", ATTACHED, "`café,` for `café`"),
    "quotes": (lambda word: f'"{word}"', ATTACHED, '`"café"` for `café`'),
    "look-alikes": (lambda word: word.translate(LOOK_ALIKE), "in letters of another script that look alike",
        "`саfé` for `café`"),
}  # fmt: skip


@pytest.fixture
def submission(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()

    def write(spell=str, answers=ANSWERS, times=8, metric="PerplexityHashed", blame=str):
        """Write an output in which each word is spelt by a function, and answers that are spelt by another."""
        (tmp_path / "config.txt").write_text(f"--metric {metric}\n")
        words = [word for _ in range(times) for word in answers]
        (tmp_path / "dev-0/in.tsv").write_text("left\tright\n" * len(words))
        (tmp_path / "dev-0/expected.tsv").write_text("".join(f"{blame(word)}\n" for word in words), encoding="utf-8")
        lines = (f"{spell(word)}:0.6 {OTHER_GUESSES}\n" for word in words)
        (tmp_path / "dev-0/out.tsv").write_text("".join(lines), encoding="utf-8", newline="")

    return write


def misspellings():
    return [problem for problem in check(".").problems if problem.rule.code == "W302"]


@pytest.mark.parametrize(
    ("spell", "name", "pair"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.long if n % 3 else ())
        for n, (name, row) in enumerate(SPELLINGS.items())
    ],
)
def test_a_spelling_is_named_by_the_check_and_with_the_score(spell, name, pair, submission, capsys):
    submission(spell)
    (problem,) = misspellings()
    assert f" of the first 56 answers are listed only {name}, such as " in problem.summary
    assert problem.summary.endswith(f"such as {pair}")
    assert main(["-t", "dev-0"]) == 0
    note = capsys.readouterr().err.splitlines()[0]
    assert note == f"geval: note: `./dev-0/out.tsv`: {problem.summary}"


def test_an_output_that_is_right_has_no_problem(submission, capsys):
    submission()
    assert check(".").problems == ()
    assert main(["-t", "dev-0"]) == 0
    assert capsys.readouterr().err == ""


def test_answers_that_keep_their_punctuation(submission):
    submission(blame=lambda word: f"{word}.")
    (problem,) = misspellings()
    assert problem.summary == f"56 of the first 56 answers are listed only {ATTACHED}, such as `café` for `café.`"


@pytest.mark.parametrize("blame", [
    lambda word: f"{word} ", lambda word: f" {word}", lambda word: f"17\t{word}",
], ids=["a space behind", "a space before", "an index column"])  # fmt: skip
def test_the_answers_are_blamed(blame, submission):
    submission(blame=blame)
    (problem,) = misspellings()
    name = "without the spaces or the number around them, and so the answers are at fault"
    assert problem.summary.startswith(f"56 of the first 56 answers are listed only {name}, such as `café` for `")
    assert problem.fix == "Clean the answers, or ask who made the challenge."


@pytest.mark.parametrize(("right", "wrong", "found"), [(0, 3, True), (0, 2, False), (3, 12, True), (3, 11, False)])
def test_hardly_any_answer_is_listed_as_it_is(right, wrong, found, submission):
    submission(lambda word: word.replace("Z", "z"), ["Yes"] * right + ["Zoo"] * wrong, 1)
    assert bool(misspellings()) == found


@pytest.mark.parametrize(("others", "found"), [(57, True), (58, False)])
@pytest.mark.parametrize(("word", "spell"), [("The", str.lower), ("été", lambda word: word.replace("é", "e"))])
def test_one_line_in_twenty_if_the_spelling_may_be_a_word(word, spell, others, found, submission):
    submission(spell, [word] * 3 + ["1990"] * others, 1)
    assert bool(misspellings()) == found


def test_two_lines_in_a_thousand_are_enough_of_a_spelling_that_is_no_word(submission):
    submission(lambda word: word.replace("&", "&amp;"), ["AT&T"] * 3 + ["1990"] * 400, 1)
    (problem,) = misspellings()
    assert (problem.count, problem.share) == (6, 6 / 403)  # of the first 200 lines, 3


@pytest.mark.parametrize("metric", ["PerplexityHashed:l", "BLEU", "LogLossHashed"])
def test_words_are_compared_only_as_the_metric_compares_them(metric, submission, capsys):
    submission(str.lower, metric=metric)
    assert bool(misspellings()) == (metric == "LogLossHashed")
    main(["-t", "dev-0"])
    assert ("listed only" in capsys.readouterr().err) == (metric == "LogLossHashed")


def test_the_places_are_the_first_lines(submission):
    submission(str.lower, ["The"], 50)
    (problem,) = check(".", max_places=2).problems
    assert (problem.count, problem.share) == (50, 1.0)
    assert [(place.line, place.column, place.token, place.message) for place in problem.places] == [
        (line, 1, "the", "`The` is expected; this is another word") for line in (1, 2)
    ]
