"""The rules about tokens of language models that were written as words."""

import pytest

from geval_py.checking.check import check_output
from geval_py.checking.rules import RULES
from geval_py.checking.targets import Target, with_options
from geval_py.checking.word_checks import SPECIAL_TOKENS, STAND_INS
from geval_py.reading.files import File

OURS = {"W219", "W220"}
ALL = [rule.code for rule in RULES]


@pytest.fixture
def check(tmp_path):
    """Check lines; return the problems of these rules by code."""

    def run(*lines, expected=None, train=None, **options):
        known = {}
        for name, words in (("expected", expected), ("training", train)):
            if words is not None:
                (tmp_path / f"{name}.tsv").write_text("".join(f"{word}\n" for word in words))
                known[name] = File(str(tmp_path / f"{name}.tsv"))
        (tmp_path / "out.tsv").write_text("".join(f"{line}\n" for line in lines))
        target = Target(File(str(tmp_path / "out.tsv")), str(tmp_path), expected=known.get("expected"))
        with_options(target)
        target.training = known.get("training")
        found = check_output(target, {*ALL} - {"W108"}, **options)
        return {problem.rule.code: problem for problem in problem_codes(found)}

    return run


def problem_codes(problems):
    return [problem for problem in problems if problem.rule.code in OURS]


def first(problem):
    place = problem.places[0]
    return (place.line, place.column, place.token, place.message)


PLAIN = "the:0.5 of:0.25 :0.25"
MARKED = {
    "Ġ": ("Ġthe:0.5 Ġof:0.25 s:0.05 :0.2", (1, 1, "Ġ"), "Ġthe"), "▁": ("s:0.1 ▁of:0.6 :0.3", (1, 7, "▁"), "▁of"),
    "##": ("the:0.5 ##ing:0.25 :0.25", (1, 9, "##"), "##ing"), "@@": ("th@@:0.5 of:0.25 :0.25", (1, 3, "@@"), "th@@"),
    "</w>": ("the</w>:0.5 of</w>:0.25 :0.25", (1, 4, "</w>"), "the</w>"),
}  # fmt: skip


@pytest.mark.parametrize("mark", MARKED)
def test_marks_of_subwords(mark, check):
    line, place, _ = MARKED[mark]
    problem = check(*[line] * 10)["W219"]
    message = f"`{mark}` is a mark of a subword tokenizer, and is taken for a part of the word"
    assert (problem.count, first(problem)) == (10, (*place, message))
    assert set(check(*[PLAIN] * 45, *[line] * 5)) == {"W219"}


@pytest.mark.parametrize("mark", MARKED)
def test_marks_on_few_lines_may_be_words(mark, check):
    line = MARKED[mark][0]
    assert check(*[line] * 4) == {}
    assert check(*[PLAIN] * 46, *[line] * 5) == {}


@pytest.mark.parametrize("mark", MARKED)
@pytest.mark.parametrize("place", ["expected", "train"])
def test_marks_that_the_language_has(mark, place, check):
    line, _, word = MARKED[mark]
    assert check(*[line] * 10, **{place: [word, *["x"] * 9]}) == {}
    assert set(check(*[line] * 10, **{place: ["x"] * 10})) == {"W219"}


@pytest.mark.parametrize("line", [
    "##:0.5 #:0.2 :0.3", "C#:0.1 @@:0.1 ▁:0.1 Ġ:0.1 :0.6", "a##b:0.1 xĠy:0.1 x▁y:0.1 @@x:0.1 :0.6",
    "unk:0.1 s:0.1 pad:0.1 <b>:0.1 [1]:0.1 <unk>s:0.1 x[UNK]:0.1 :0.4",
    "ing:0.1 ed:0.1 un:0.1 's:0.1 n't:0.1 re-:0.1 :0.4", "the:0.5 The:0.01 THE:0.001 :0.489",
])  # fmt: skip
def test_words_of_real_languages(line, check):
    assert check(*[line] * 50) == {}


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_special_tokens(token, check):
    problem = check(PLAIN, f"the:0.5 {token}:0.25 :0.25", PLAIN)["W220"]
    message = f"`{token}` is a special token or markup of a language model, and is taken for a word"
    assert (problem.count, first(problem)) == (1, (2, 9, token, message))
    assert check(PLAIN, f"{token}:0.75 :0.25", train=["the", token]) == {}
    assert check(PLAIN, f"{token}:0.75 :0.25", expected=["the", token]) == {}


@pytest.mark.parametrize("token", STAND_INS)
def test_words_that_stand_for_the_rest(token, check):
    line = f"the:0.5 {token}:0.5"
    problem = check(*[line] * 6, *[PLAIN] * 5)["W220"]
    assert (problem.count, problem.places[0].token) == (6, token)
    assert check(*[line] * 5, *[PLAIN] * 5) == {}
    assert check(*[line] * 6, train=["the", token]) == {}


def test_the_first_thousand_lines_are_looked_at(check):
    odd = "Ġthe:0.5 <unk>:0.1 the:0.1 :0.3"
    found = check(*[PLAIN] * 800, *[odd] * 300, max_places=2)
    assert {
        code: (problem.count, problem.share, [place.line for place in problem.places])
        for code, problem in found.items()
    } == {code: (220, 0.2, [801, 802]) for code in OURS}
    assert all(problem.summary.endswith(" (estimated from the first 1,000 lines)") for problem in found.values())
    assert check(*[PLAIN] * 1000, *[odd] * 300) == {}
